"""What the tests of a session found, from this process and from workers, each once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.types import DialogueSet


def result_payload(
    key: str,
    result: TurnResult,
    lexicon: str,
    *,
    policy: tuple[str, str] = ("", ""),
    planned: int = 0,
    own: str = "",
    plain: bool = True,
) -> dict[str, Any]:
    """Return what is recorded of a test.

    Args:
        key: tells the results of one turn under different settings or trackers apart.
        result: what was found.
        lexicon: fingerprint of the words that the variants were made with.
        policy: fingerprint of the policy that chose what to change, and a note on it.
        planned: how many results the selected tests of the whole session ask for.
        own: settings of the test that the session does not have.
        plain: give plain values, which xdist can send to another process.
    """
    return {
        "key": key,
        "result": result.to_json() if plain else result,
        "lexicon": lexicon,
        "policy": list(policy),
        "planned": planned,
        "own": own,
    }


def problem_payload(problem: str) -> dict[str, Any]:
    """Return what is recorded of a mistake that ends the session."""
    return {"problem": problem}


class Record:
    """Results as they come in, in whatever order and from whichever process."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], TurnResult] = {}
        #: Fingerprints of the lexicons that results were found with.
        self.lexicons: set[str] = set()
        #: Fingerprints of the policies that chose what to change, and a note on each.
        self.policies: dict[str, str] = {}
        #: Settings of single tests that the session does not have.
        self.own: set[str] = set()
        #: A mistake of the user that only showed while tests ran.
        self.problem = ""
        #: How many results the selected tests ask for, as far as is known.
        self.planned = 0

    def __len__(self) -> int:
        return len(self._found)

    @property
    def missing(self) -> int:
        """How many results were asked for and did not come."""
        return max(0, self.planned - len(self))

    def add(self, payload: Mapping[str, Any]) -> None:
        """Take in what `result_payload` or `problem_payload` made."""
        if "problem" in payload:
            self.problem = self.problem or str(payload["problem"])
            return
        result = payload["result"]
        if not isinstance(result, TurnResult):
            result = TurnResult.from_json(result)
        self._found[payload["key"], result.id] = result
        self.lexicons.add(str(payload["lexicon"]))
        fingerprint, note = payload["policy"]
        if fingerprint:
            self.policies[fingerprint] = note
        if payload["own"]:
            self.own.add(str(payload["own"]))
        self.planned = max(self.planned, int(payload["planned"]))

    def results(self, data: DialogueSet) -> tuple[TurnResult, ...]:
        """Return all results in the order of the data, whoever found them and when."""
        place = {dialogue.id: number for number, dialogue in enumerate(data.dialogues)}
        return tuple(
            result
            for _, result in sorted(
                self._found.items(),
                key=lambda item: (place[item[1].dialogue_id], item[1].turn_index, item[0]),
            )
        )
