"""What the tests of a session found, from this process and from workers, each once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet

#: On a test, or on what holds the fixture of one: what its next report is to tell.
FOUND: pytest.StashKey[dict[str, Any]] = pytest.StashKey()


def result_payload(  # noqa: PLR0913 - all but the first three are given by their names
    key: str,
    result: TurnResult,
    lexicon: str,
    *,
    policy: tuple[str, str] = ("", ""),
    planned: int = 0,
    own: str = "",
    plain: bool = True,
    service: tuple[str, Mapping[str, Any]] = ("", {}),
    relation: str = "",
    chosen: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what is recorded of a test."""
    return {
        "key": key,
        "result": result.to_json() if plain else result,
        "lexicon": lexicon,
        "policy": list(policy),
        "planned": planned,
        "own": own,
        "service": list(service),
        "relation": relation,
        "chosen": dict(chosen),
    }


def problem_payload(problem: str, status: int) -> dict[str, Any]:
    """Return what is recorded of a mistake that ends the session, and its exit status."""
    return {"problem": problem, "status": int(status)}


def conformance_payload() -> dict[str, Any]:
    """Return what is recorded of a tracker that the conformance kit has checked."""
    return {"conformance": True}


def regression_payload(name: str, outcome: str) -> dict[str, Any]:
    """Return what is recorded of a remembered violation that was asked for again."""
    return {"regression": name, "outcome": outcome}


class ResultCollector:
    """Results as they come in, in whatever order and from whichever process."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], TurnResult] = {}
        #: Id of a turn -> file and line of the first test of the suite's own that was about it.
        self.places: dict[str, tuple[str, int]] = {}
        #: Fingerprints of the lexicons that results were found with.
        self.lexicons: set[str] = set()
        #: Fingerprints of the policies that chose what to change, and a note on each.
        self.policies: dict[str, str] = {}
        #: ``search``, ``relation`` -> the names that fixtures gave.
        self.chosen: dict[str, set[str]] = {}
        #: What tells results apart -> name of the relation that was tested.
        self._relations: dict[str, str] = {}
        #: Settings of single tests that the session does not have.
        self.own: set[str] = set()
        #: What the trackers of each worker cost so far.
        self.services: dict[str, Mapping[str, Any]] = {}
        #: A mistake of the user that only showed while tests ran.
        self.problem = ""
        #: The exit status that it asks for.
        self.problem_status = 0
        #: Whether the conformance kit has checked a tracker.
        self.conformance = False
        #: Id of a remembered violation -> what became of it.
        self.regressions: dict[str, str] = {}
        #: How many results the selected tests ask for, as far as is known.
        self.planned = 0

    def __len__(self) -> int:
        return len(self._found)

    @property
    def tested(self) -> bool:
        """Whether anything was asked of a tracker, or was going to be."""
        found = self._found or self.conformance or self.regressions or self.problem
        return bool(found or self.planned)

    @property
    def missing(self) -> int:
        """How many results were asked for and did not come."""
        return max(0, self.planned - len(self))

    def add(self, payload: Mapping[str, Any]) -> None:
        """Take in what one of the functions above made."""
        if "problem" in payload:
            if not self.problem:
                self.problem, self.problem_status = str(payload["problem"]), payload["status"]
            return
        if "conformance" in payload:
            self.conformance = True
            return
        if "regression" in payload:
            self.regressions[payload["regression"]] = payload["outcome"]
            return
        result = payload["result"]
        if not isinstance(result, TurnResult):
            result = TurnResult.from_json(result)
        self._found[payload["key"], result.id] = result
        if place := payload.get("place"):
            file, line = place
            self.places.setdefault(result.id, (str(file), int(line)))
        self.lexicons.add(str(payload["lexicon"]))
        self._take_names(payload)
        fingerprint, note = payload["policy"]
        if fingerprint:
            self.policies[fingerprint] = note
        process, facts = payload["service"]
        if process:
            self.services[process] = facts
        if payload["own"]:
            self.own.add(str(payload["own"]))
        self.planned = max(self.planned, int(payload["planned"]))

    def _take_names(self, payload: Mapping[str, Any]) -> None:
        """Note by which search and relation a result was found."""
        self._relations[payload["key"]] = str(payload["relation"])
        for setting, name in payload["chosen"].items():
            self.chosen.setdefault(setting, set()).add(str(name))

    def results(self, data: DialogueSet) -> tuple[TurnResult, ...]:
        """Return all results in the order of the data, whoever found them and when."""
        return tuple(result for _, result in self._sorted(data))

    def with_relations(self, data: DialogueSet) -> list[tuple[str, TurnResult]]:
        """Return all results, each with the name of the relation that was tested."""
        return [(self._relations[key], result) for key, result in self._sorted(data)]

    def named(self, settings: Settings) -> Settings:
        """Return settings that name the searches and relations that fixtures gave."""
        names: dict[str, Any] = {
            setting: ", ".join(sorted(found)) for setting, found in self.chosen.items()
        }
        return settings.replace_options(**names)

    def groups(self, data: DialogueSet) -> dict[str, tuple[TurnResult, ...]]:
        """Return the results of each tracker and each test's own settings apart."""
        found: dict[str, list[TurnResult]] = {}
        for key, result in self._sorted(data):
            found.setdefault(key, []).append(result)
        return {key: tuple(results) for key, results in sorted(found.items())}

    def _sorted(self, data: DialogueSet) -> list[tuple[str, TurnResult]]:
        """Return the key and the result of every test, in the order of the data."""
        place = {dialogue.id: number for number, dialogue in enumerate(data.dialogues)}
        found = ((key, result) for (key, _), result in self._found.items())
        return sorted(
            found, key=lambda item: (place[item[1].dialogue_id], item[1].turn_index, item[0])
        )
