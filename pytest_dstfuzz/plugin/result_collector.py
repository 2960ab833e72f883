"""What the tests of a session found, from this process and from workers, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import Results, TurnResult
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.slots import rules_of_slots
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.plugin.relations import PARTED
from pytest_dstfuzz.plugin.tracker_pool import TrackerFacts
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.totals.totals import RelationFacts

#: In the key of results, in the place of the search where the relation edits the turns itself.
OWN_EDITS = "own"


def group_key(
    origin: str, own: str, search: str, lexicon: str, comparison: Comparison, relation: str
) -> str:
    """Return what tells results of a turn apart: who tested it, and by which settings of its own.

    The groups of a baseline go by it.
    """
    compared = "" if comparison.exact else f" compare={comparison.identity}"
    # Without the relation that was the only one once: groups of older baselines go by it.
    tested = "" if relation == "metamorphic" else f" relation={relation}"
    return f"{origin} {own} {search} {lexicon}{compared}{tested}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one test found out; a worker of xdist sends it as JSON with the report of the test.

    It is about a turn, a remembered violation, a tracker that the conformance kit has checked, or
    a mistake of the user that ends the session.
    """

    result: TurnResult | None = None
    #: Tells the results of one turn under different settings or trackers apart.
    key: str = ""
    #: Fingerprint of the words that the variants were made with.
    lexicon: str = ""
    #: Fingerprint of the policy that chose what to change, and a note on it.
    policy: tuple[str, str] = ("", "")
    #: Name of the tracker and of what is tested of its answers, see `Origins.model`.
    model: str = ""
    #: How many results the selected tests of the whole session ask for, of each tracker.
    planned: Mapping[str, int] = field(default_factory=dict)
    #: Settings of the test that the session does not have.
    own: str = ""
    #: Name of the relation that was tested, and what it says of itself.
    relation: str = ""
    about_relation: RelationFacts = field(default_factory=RelationFacts)
    #: Name of what said whether two replies are the same; ``""`` where no reply was tested.
    compared: str = ""
    #: ``search`` -> the name that a fixture gave, where no marker did.
    chosen: Mapping[str, str] = field(default_factory=dict)
    #: The process, where it is a worker, and what its trackers cost so far.
    worker: str = ""
    facts: TrackerFacts | None = None
    #: File and line of a test of the suite's own.
    place: tuple[str, int] | None = None
    #: Id of a remembered violation, and what became of it.
    regression: str = ""
    outcome: str = ""
    conformance: bool = False
    problem: str = ""
    #: The exit status that a problem asks for.
    status: int = 0


#: On a test, or on what holds the fixture of one: what its next report is to tell.
FOUND: pytest.StashKey[Found] = pytest.StashKey()


class ResultCollector:
    """Results as they come in, in whatever order and from whichever process."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], TurnResult] = {}
        #: Name of a tracker -> what was found of it alone.
        self._models: dict[str, ResultCollector] = {}
        #: Id of a turn -> file and line of the first test of the suite's own that was about it.
        self.places: dict[str, tuple[str, int]] = {}
        #: Fingerprints of the lexicons that results were found with.
        self.lexicons: set[str] = set()
        #: Fingerprints of the policies that chose what to change, and a note on each.
        self.policies: dict[str, str] = {}
        #: Names of what said whether two replies are the same.
        self.comparisons: set[str] = set()
        #: ``search`` -> the names that fixtures gave.
        self.chosen: dict[str, set[str]] = {}
        #: What tells results apart -> name of the relation that was tested.
        self._relations: dict[str, str] = {}
        #: Name of a relation that was tested -> what it says of itself.
        self.relations: dict[str, RelationFacts] = {}
        #: Settings of single tests that the session does not have.
        self.own: set[str] = set()
        #: What the trackers of each worker cost so far.
        self.services: dict[str, TrackerFacts] = {}
        #: A mistake of the user that only showed while tests ran.
        self.problem = ""
        #: The exit status that it asks for.
        self.problem_status = 0
        #: Whether the conformance kit has checked a tracker.
        self.conformance = False
        #: Id of a remembered violation -> what became of it.
        self.regressions: dict[str, str] = {}
        self._planned: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._found)

    @property
    def planned(self) -> int:
        """How many results the selected tests ask for, as far as is known."""
        return sum(self._planned.values())

    def plan(self, planned: Mapping[str, int]) -> None:
        """Take in how many results the selected tests ask for, of each tracker."""
        for model, number in planned.items():
            self._planned[model] = max(number, self._planned.get(model, 0))

    def models(self) -> dict[str, ResultCollector]:
        """Return what was found of each tracker, by its name; ``""`` where the session has one.

        A tracker without a result is there too. No figure is ever made of two trackers.
        """
        names = sorted({*self._planned, *self._models})
        if len(names) <= 1:
            return {"": self}
        found = {name: self._models.get(name, ResultCollector()) for name in names}
        for name, one in found.items():
            one.plan({name: self._planned.get(name, 0)})
        return found

    @property
    def tested(self) -> bool:
        """Whether anything was asked of a tracker, or was going to be."""
        found = self._found or self.conformance or self.regressions or self.problem
        return bool(found or self.planned)

    @property
    def missing(self) -> int:
        """How many results were asked for and did not come."""
        return max(0, self.planned - len(self))

    def add(self, found: Found | Mapping[str, Any]) -> None:
        """Take in what a test found; from another process it comes as JSON."""
        one = found if isinstance(found, Found) else from_json(Found, found)
        if one.problem and not self.problem:
            self.problem, self.problem_status = one.problem, one.status
        self.conformance = self.conformance or one.conformance
        if one.regression:
            self.regressions[one.regression] = one.outcome
        if one.result is not None:
            self.plan(one.planned)
            self.add_result(one, one.result)
            model = self._models.setdefault(one.model, ResultCollector())
            model.add_result(one, one.result)

    def add_result(self, found: Found, result: TurnResult) -> None:
        """Take in a result, and what is told with it."""
        self._found[found.key, result.id] = result
        if found.place is not None:
            self.places.setdefault(result.id, found.place)
        self.lexicons.add(found.lexicon)
        if found.compared:
            self.comparisons.add(found.compared)
        self._relations[found.key] = found.relation
        self.relations[found.relation] = found.about_relation
        for setting, name in found.chosen.items():
            self.chosen.setdefault(setting, set()).add(name)
        fingerprint, note = found.policy
        if fingerprint:
            self.policies[fingerprint] = note
        if found.facts is not None:
            self.services[found.worker] = found.facts
        if found.own:
            self.own.add(found.own)

    def load(self) -> None:
        """Take in what is there before any test; of tests that are to come nothing is."""

    def info(self, data: DialogueSet) -> RunInfo:
        """Describe the data of the session, and what is known of its run beside the results."""
        return RunInfo.of(data)

    def results(self, data: DialogueSet) -> Results:
        """Return all results in the order of the data, whoever found them and when."""
        return tuple(result for _, result in self.grouped(data))

    def with_relations(self, data: DialogueSet) -> Iterable[tuple[str, TurnResult]]:
        """Return all results, each with the name of the relation that was tested."""
        return [(self._relations[key], result) for key, result in self.grouped(data)]

    def named(self, settings: Settings) -> Settings:
        """Return settings that name what fixtures gave, and all tested relations."""
        names: dict[str, Any] = {
            setting: ", ".join(sorted(found)) for setting, found in self.chosen.items()
        }
        if self.relations:
            # Those that the session names in its order, and then those of markers and fixtures.
            asked = relations_named(settings.variant.relation)
            first = [one.name for one in asked if one.name in self.relations]
            others = sorted(set(self.relations).difference(first))
            names["relation"] = PARTED.join([*first, *others])
        if not all(map(rules_of_slots, self.comparisons)):
            kinds = (result.kind for result in self._found.values())
            names["outcome"] = next((one for one in kinds if not one.has_slots), REPLIES).name
        return settings.replace_options(**names)

    def groups(self, data: DialogueSet) -> dict[str, Results]:
        """Return the results of each tracker and each test's own settings apart."""
        found: dict[str, list[TurnResult]] = {}
        for key, result in self.grouped(data):
            found.setdefault(key, []).append(result)
        return {key: tuple(results) for key, results in sorted(found.items())}

    def grouped(self, data: DialogueSet) -> Iterable[tuple[str, TurnResult]]:
        """Return the group and the result of every test, in the order of the data."""
        place = {name: number for number, name in enumerate(data.ids)}
        found = ((key, result) for (key, _), result in self._found.items())
        return sorted(
            found, key=lambda item: (place[item[1].dialogue_id], item[1].turn_index, item[0])
        )
