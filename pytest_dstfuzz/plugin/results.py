"""Results of a session, collected from tests or read from a folder."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.campaign.code import OF_TRACKER
from pytest_dstfuzz.campaign.results import (
    RUN_OUTCOMES,
    MappedResults,
    Results,
    TurnOutcome,
    TurnResult,
)
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.arguments import rules_of_slots
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.config import JUDGE, Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import KEPT_BACK
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.perturb.spelling import words_of_ontology
from pytest_dstfuzz.plugin.context import TrackerFacts
from pytest_dstfuzz.plugin.items import MadeObject, own_items
from pytest_dstfuzz.plugin.relations import PARTED, SUITES
from pytest_dstfuzz.plugin.selection import NODE
from pytest_dstfuzz.plugin.stored import StoredRun
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.report.explain import explain, weakness_of
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.totals.plainest import PlainestTally
from pytest_dstfuzz.totals.totals import RelationFacts, Totals
from pytest_dstfuzz.totals.troubles import LEAST_TELLING, MOST_ERRORS, AnswersTally
from pytest_dstfuzz.trackers.tracker import NAMELESS

_PACKAGE: Final = Path(__file__).parents[1]
_PYTEST: Final = Path(inspect.getfile(pytest.Item)).parent
#: Its messages do not quote dialogues. Nor do those of this package with ``--dst-redact``.
_TIMEOUT: Final = "pytest_timeout.py"
_OUTPUT: Final = f"What the test printed and logged is {KEPT_BACK}."


def is_about_dialogues(item: pytest.Item) -> bool:
    """Return whether a test uses a fixture of this package."""
    return any(name.startswith("dst_") for name in getattr(item, "fixturenames", ()))


def keep_back(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> None:
    """Redact a report that may quote a dialogue. Location and type of the error stay."""
    printed, report.sections = bool(report.sections), []
    # pytest adds the output of a subtest to a copy of this report.
    report.dstfuzz_private = True  # type: ignore[attr-defined]  # any will do
    if call.excinfo is None:
        return
    message = _message(call.excinfo)
    if hasattr(report, "wasxfail"):
        # The reason of a mark is in the code of the test. That of a call may have any text.
        if isinstance(call.excinfo.value, pytest.xfail.Exception):
            report.wasxfail = f"reason: {message}"
        report.longrepr = _places(call.excinfo, message)  # For --xfail-tb.
    elif report.skipped and isinstance(report.longrepr, tuple):
        path, line, _ = report.longrepr
        report.longrepr = (path, line, f"Skipped: {message}")
    elif report.failed:
        # A failure of this package is plain text without a traceback.
        shown = message if _is_own(call.excinfo) else _places(call.excinfo, message)
        report.longrepr = f"{shown}\n{_OUTPUT}" if printed else shown


def keep_back_end(excinfo: pytest.ExceptionInfo[BaseException], config: pytest.Config) -> None:
    """Redact the exception that ends a session, because it may quote a dialogue."""
    # The traceback of Ctrl-C would show the arguments of all functions.
    config.option.fulltrace = False
    if _is_own(excinfo):
        return
    if isinstance(excinfo.value, pytest.exit.Exception):
        excinfo.value.msg = KEPT_BACK
    if any(map(str, excinfo.value.args)):
        excinfo.value.args = (KEPT_BACK,)


def _message(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    shown = _is_own(excinfo) or _raised_in(excinfo).name == _TIMEOUT
    return str(excinfo.value) if shown else KEPT_BACK


def _is_own(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return _PACKAGE in _raised_in(excinfo).parents


def _raised_in(excinfo: pytest.ExceptionInfo[BaseException]) -> Path:
    """Return the file with the code that raised an exception, directly or through pytest."""
    paths = [Path(str(one.path)) for one in excinfo.traceback]
    return next((path for path in reversed(paths) if _PYTEST not in path.parents), paths[-1])


def _places(excinfo: pytest.ExceptionInfo[BaseException], message: str) -> str:
    """Return a traceback without source code, arguments and variables."""
    places = [f"{one.path}:{one.lineno + 1}: in {one.name}" for one in excinfo.traceback]
    return "\n".join([f"{excinfo.typename}: {message}", *places])


#: Own settings of a test that decide only which variants are drawn.
_ONLY_DRAWN: Final = re.compile(r"\b(?:variants|seed)=[^,]*(?:, )?")
#: In place of the search in the key of results if the relation makes the edits.
OWN_EDITS = "own"


def group_key(
    origin: str, own: str, search: str, lexicon: str, comparison: Comparison, relation: str
) -> str:
    """Return the name of a group of results: the origin of the tests and their own settings.

    A baseline uses the same names for its groups.
    """
    compared = "" if comparison.exact else f" compare={comparison.identity}"
    # ``metamorphic`` was once the only relation. Groups of older baselines omit it.
    tested = "" if relation == "metamorphic" else f" relation={relation}"
    return f"{origin} {own} {search} {lexicon}{compared}{tested}"


def clean_tally(comparison: Comparison, fallbacks: tuple[str, ...]) -> AnswersTally | None:
    """Return a tally that tells whether a comparison tells clean answers apart.

    ``None`` if all different answers differ by the comparison, or if a language model compares
    them, which would cost calls.
    """
    if comparison.exact or JUDGE in comparison.name.split(","):
        return None
    return AnswersTally(fallbacks, Folding(comparison).agree)


@dataclass(frozen=True, kw_only=True)
class ItemOutcome:
    """The result of a test. A worker of xdist sends it as JSON with the report of the test.

    The result belongs to a turn, a remembered violation or a conformance check. It can also be a
    mistake of the user that ends the session.
    """

    result: TurnResult | None = None
    #: Separates results of one turn under different settings or trackers.
    key: str = ""
    #: Fingerprint of the lexicon behind the variants.
    lexicon: str = ""
    #: Fingerprint of the policy that chose the edits, and a note on it.
    policy: tuple[str, str] = ("", "")
    #: Name of the tracker and kind of answer, see `Origins.model`.
    model: str = ""
    #: Tracker -> number of results that all selected tests of the session need.
    planned: Mapping[str, int] = field(default_factory=dict)
    #: Settings of the test that differ from the session's.
    own: str = ""
    #: Name of the tested relation, and its properties.
    relation: str = ""
    about_relation: RelationFacts = field(default_factory=RelationFacts)
    #: Name of the comparison of replies; ``""`` if no reply was tested.
    compared: str = ""
    #: Its identity, see `Comparison.identity`.
    compared_by: str = ""
    #: Whether it told clean answers of the tracker apart in this process, see
    #: `AnswersTally.told_apart`.
    told_apart: bool | None = None
    #: Digests of the user's own code, see `code_of_rules`.
    code: Mapping[str, str] = field(default_factory=dict)
    #: ``search`` -> the name from a fixture, if no marker set it.
    chosen: Mapping[str, str] = field(default_factory=dict)
    #: Id of the worker if the process is one, and the costs of its trackers so far.
    worker: str = ""
    facts: TrackerFacts | None = None
    #: The objects of the test's fixtures, if the process is a worker.
    made: tuple[MadeObject, ...] = ()
    #: File and line if the test belongs to the suite.
    place: tuple[str, int] | None = None
    #: Id of a remembered violation, and its outcome.
    regression: str = ""
    outcome: str = ""
    conformance: bool = False
    problem: str = ""
    #: The exit status for a problem.
    status: int = 0


#: On a test or the node of a fixture: the result for its next report.
FOUND: pytest.StashKey[ItemOutcome] = pytest.StashKey()

#: The results of replays, see `ReplayOutcome`.
_WORST_FIRST: Final = ("broken", "failed", "unclear", "unasked", "fixed")


class _Way(NamedTuple):
    """The properties of a test that decide how it counts mistakes."""

    #: Settings of the test that differ from the session's.
    own: str
    #: Name of the relation.
    relation: str
    #: Identity of the comparison.
    compared_by: str


class ResultCollector:
    """Collects results from all processes, in any order."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], TurnResult] = {}
        #: Name of a tracker -> its results.
        self._models: dict[str, ResultCollector] = {}
        #: Id of a turn -> file and line of the first test of the suite for it.
        self.places: dict[str, tuple[str, int]] = {}
        #: Fingerprints of the lexicons behind the results.
        self.lexicons: set[str] = set()
        #: Fingerprints of the policies that chose the edits, with a note on each.
        self.policies: dict[str, str] = {}
        #: Names of the comparisons of replies.
        self.comparisons: set[str] = set()
        #: Their identities, see `Comparison.identity`.
        self.compared_by: set[str] = set()
        #: Identity -> name, ids of the answered turns, and each process's `ItemOutcome.told_apart`.
        self._compared: dict[str, tuple[str, set[str], set[bool | None]]] = {}
        #: Digests of the user's own code behind the results.
        self.code: dict[str, str] = {}
        #: ``search`` -> the names from fixtures.
        self.chosen: dict[str, set[str]] = {}
        #: Key of results -> how its test counts mistakes.
        self._ways: dict[str, _Way] = {}
        #: Name of a tested relation -> its properties.
        self.relations: dict[str, RelationFacts] = {}
        #: Settings of tests that differ from the session's.
        self.own: set[str] = set()
        #: Costs of the trackers of each worker so far.
        self.services: dict[str, TrackerFacts] = {}
        #: A mistake of the user that only running tests revealed.
        self.problem = ""
        #: Its exit status.
        self.problem_status = 0
        #: Such mistakes that no test shows.
        self.conflicts: list[str] = []
        #: Whether the conformance kit has checked a tracker.
        self.conformance = False
        #: Id of a remembered violation -> its outcome.
        self.regressions: dict[str, str] = {}
        self._planned: dict[str, int] = {}
        #: The files of all collected tests, selected or not, each with the name of a tracker.
        self.collected: set[tuple[str, str]] = set()
        #: (origin, fixture) -> name of the first object that the fixture returned in any process.
        self._made: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._found)

    @property
    def planned(self) -> int:
        """Number of results that the selected tests need, as far as known."""
        return sum(self._planned.values())

    def plan(self, planned: Mapping[str, int]) -> None:
        """Record the number of results that the selected tests need, for each tracker."""
        for model, number in planned.items():
            self._planned[model] = max(number, self._planned.get(model, 0))

    def models(self) -> dict[str, ResultCollector]:
        """Return the results of each tracker by its name, ``""`` for the tracker of the options.

        Trackers without results are included. Figures of different trackers are never added up.
        """
        names = sorted({*self._planned, *self._models})
        if len(names) <= 1:
            return dict.fromkeys(names or [""], self)
        found = {name: self._models.get(name, ResultCollector()) for name in names}
        for name, one in found.items():
            one.plan({name: self._planned.get(name, 0)})
        return found

    @property
    def tested(self) -> bool:
        """Whether a tracker was tested or selected for a test."""
        found = self._found or self.conformance or self.regressions or self.problem
        return bool(found or self.planned)

    @property
    def missing(self) -> int:
        """Number of planned results that are missing."""
        return max(0, self.planned - len(self))

    def add(self, found: ItemOutcome | Mapping[str, Any]) -> None:
        """Record the result of a test. A result from another process is JSON."""
        one = found if isinstance(found, ItemOutcome) else from_json(ItemOutcome, found)
        if one.problem and not self.problem:
            self.problem, self.problem_status = one.problem, one.status
        for made in one.made:
            first = self._made.setdefault((made.origin, made.fixture), made.name)
            if first != made.name and not self.problem:
                self.problem = made.refusal
                self.conflicts.append(made.refusal)
                self.problem_status = pytest.ExitCode.USAGE_ERROR
        self.conformance = self.conformance or one.conformance
        if one.regression:
            # With several trackers, the worst result counts.
            known = self.regressions.get(one.regression, one.outcome)
            self.regressions[one.regression] = min(known, one.outcome, key=_WORST_FIRST.index)
        if one.result is not None:
            self.plan(one.planned)
            self.add_result(one, one.result)
            model = self._models.setdefault(one.model, ResultCollector())
            model.add_result(one, one.result)

    def add_result(self, found: ItemOutcome, result: TurnResult) -> None:
        """Record a result and its metadata."""
        self._found[found.key, result.id] = result
        if found.place is not None:
            self.places.setdefault(result.id, found.place)
        self.lexicons.add(found.lexicon)
        if found.compared:
            self.comparisons.add(found.compared)
            self.compared_by.add(found.compared_by)
            _, answered, told = self._compared.setdefault(
                found.compared_by, (found.compared, set(), set())
            )
            told.add(found.told_apart)
            if result.clean_state is not None:
                answered.add(result.id)
        for name, digest in found.code.items():
            # Fixtures of two folders may return different objects with one name.
            known = self.code.get(name, digest).split()
            self.code[name] = " ".join(sorted({*known, digest}))
        own = _ONLY_DRAWN.sub("", found.own).rstrip(", ")
        self._ways[found.key] = _Way(own, found.relation, found.compared_by)
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

    def blind_comparisons(self, data: DialogueSet) -> list[str]:  # noqa: ARG002 - see above
        """Return the names of comparisons by which all clean answers agree, although they differ.

        Each test may have its own comparison. Fewer than `LEAST_TELLING` turns may have such
        answers by chance.
        """
        return sorted(
            name
            for name, answered, told in self._compared.values()
            if len(answered) >= LEAST_TELLING and False in told and True not in told
        )

    def carried_text(self) -> str:
        """Return a sentence if too many variants are carried from untested turns, or ``""``.

        The mistake of a ``carried`` variant counts at the earlier turn at which it was made.
        """
        results = [(self._ways[key], result) for (key, _), result in self._found.items()]
        tested = {
            (way, one.dialogue_id, one.turn_index)
            for way, one in results
            if one.outcome != "skipped"
        }
        run = lost = 0
        for way, one in results:
            outcomes = Counter(variant.outcome for variant in one.variants)
            run += sum(outcomes[outcome] for outcome in RUN_OUTCOMES)
            earlier = {(way, one.dialogue_id, index) for index in range(one.turn_index)}
            lost += 0 if earlier <= tested else outcomes["carried"]
        if lost <= MOST_ERRORS * run:
            return ""
        return (
            f"{lost:,} of {run:,} variants count as carried, because an earlier turn made the "
            "mistake, and not all earlier turns were tested, so no result counts these mistakes: "
            "select whole dialogues"
        )

    def load(self) -> None:
        """Load results that exist before the first test. This class has none."""

    def info(self, data: DialogueSet) -> RunInfo:
        """Return facts about the data and the run."""
        return RunInfo.of(data)

    def results(self, data: DialogueSet) -> Results:
        """Return all results in the order of the data."""
        return tuple(result for _, result in self.grouped(data))

    def with_relations(self, data: DialogueSet) -> Iterable[tuple[str, TurnResult]]:
        """Return all results, each with the name of the tested relation."""
        return [(self._ways[key].relation, result) for key, result in self.grouped(data)]

    def named(self, settings: Settings) -> Settings:
        """Return settings with the names from fixtures and all tested relations."""
        names: dict[str, Any] = {
            setting: ", ".join(sorted(found)) for setting, found in self.chosen.items()
        }
        if self.relations:
            # The relations of the session in their order, then those of markers and fixtures.
            asked = relations_named(settings.variant.relation)
            first = [one.name for one in asked if one.name in self.relations]
            others = sorted(set(self.relations).difference(first))
            names["relation"] = PARTED.join([*first, *others])
        if not all(map(rules_of_slots, self.comparisons)):
            kinds = (result.kind for result in self._found.values())
            names["outcome"] = next((one for one in kinds if not one.has_slots), REPLIES).name
        return settings.replace_options(**names)

    def groups(self, data: DialogueSet) -> dict[str, Results]:
        """Return the results of each group. A group is a tracker with the settings of a test."""
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


@dataclass(eq=False)
class ModelResults:
    """The results of a tracker in a session."""

    #: ``""`` if the session tests only one.
    name: str
    collector: ResultCollector
    _settings: Settings
    _data: DialogueSet
    #: Weakness -> why it is accepted.
    _accepted: Mapping[str, str]
    #: Its name in a baseline.
    tracker: str

    @cached_property
    def settings(self) -> Settings:
        """The settings of the session, with the names of the tracker and of fixture values."""
        named = self.collector.named(self._settings)
        return named.replace_options(model=self.name) if self.name else named

    @cached_property
    def _found(self) -> Results:
        found = self.collector.results(self._data) if self.collector else ()
        return MappedResults(found, self.marked) if self.name else found

    @cached_property
    def results(self) -> Results:
        """The results in the form for reports."""
        redact = self._settings.output.redact
        return MappedResults(self._found, redact_turn) if redact else self._found

    def marked(self, result: TurnResult) -> TurnResult:
        """Return a result with the name of its tracker."""
        return replace(result, model=self.name) if self.name else result

    @cached_property
    def totals(self) -> Totals:
        """All figures, from one pass over the results."""
        hide = redact_turn if self._settings.output.redact else None
        relations, fallbacks = self.collector.relations, self._settings.reply.fallback
        words = " ".join(words_of_ontology(self._data.ontology))
        totals = Totals(relations, fallbacks, hide, self._accepted, words)
        totals.order = tuple(self.settings.variant.relation.split(PARTED))
        for group, result in self.collector.grouped(self._data) if self.collector else ():
            totals.add(self.marked(result), group)
        return totals

    @cached_property
    def summary(self) -> Summary:
        """The figures of the first relation. Figures of several relations are never added up."""
        return self.totals.first(self.settings.variant.relation).summary


def models_of(
    collector: ResultCollector,
    settings: Settings,
    data: DialogueSet,
    accepted: Mapping[str, str],
) -> tuple[ModelResults, ...]:
    """Return the results of each tracker of a session, in the order of their names."""
    found = collector.models()
    nameless = settings.tracker.model or NAMELESS
    if len(found) == 1:
        ((name, one),) = found.items()
        return (ModelResults("", one, settings, data, accepted, name),)
    return tuple(
        ModelResults(name or nameless, one, settings, data, accepted, name or nameless)
        for name, one in found.items()
    )


class StoredCollector(ResultCollector):
    """Reads results from a folder instead of tests. Each use reads the folder again."""

    def __init__(
        self, run: StoredRun, settings: Settings, comparison: Callable[[], Comparison]
    ) -> None:
        """Create an empty collector. ``comparison`` returns the comparison for answers."""
        super().__init__()
        self._run, self._settings = run, settings
        self._comparison = comparison

    def load(self) -> None:
        """Load the facts about the run from the folder.

        Raises:
            UserError: the results cannot be judged, see `StoredRun.results`.
        """
        info = self._run.info
        self.relations = {name: info.relations[name] for name in self._run.relations}
        self.lexicons = {info.lexicon}
        self.comparisons = set(filter(None, [info.compared]))
        comparison = self._comparison()
        self.compared_by = set() if comparison.exact else {comparison.identity}
        code = self._run.decided.get("code", {})
        self.code = {name: code[name] for name in code if name not in OF_TRACKER}
        # The notes of the run include those on the policy.
        self.policies = {info.policy: ""} if info.policy else {}
        self.plan({"": len(self._run.results())})

    def blind_comparisons(self, data: DialogueSet) -> list[str]:
        """Return the name of the comparison if all clean answers agree although they differ."""
        comparison = self._comparison()
        tally = clean_tally(comparison, self._settings.reply.fallback)
        if tally is None:
            return []
        for turn in self._run.results():
            tally.add(turn, data.dialogue(turn.dialogue_id).context(turn.turn_index))
            if tally.differ:
                break
        return [comparison.name] if tally.one and tally.told_apart is False else []

    def __len__(self) -> int:
        # Unreadable results do not count.
        return len(self._run.results()) if self.planned and not self.problem else 0

    @property
    def tested(self) -> bool:
        """Whether there are results to judge."""
        return bool(self.planned or self.problem)

    def info(self, data: DialogueSet) -> RunInfo:  # noqa: ARG002 - from the folder
        """Return facts about the data and the run of the folder."""
        return self._run.info

    def results(self, data: DialogueSet) -> Results:  # noqa: ARG002 - in order already
        """Return all results, in the order of the data."""
        return self._run.results()

    def with_relations(self, data: DialogueSet) -> Iterator[tuple[str, TurnResult]]:
        """Yield all results, each with the name of its relation."""
        return ((result.relation, result) for result in self.results(data))

    def named(self, settings: Settings) -> Settings:
        """Return settings with the relations that have results."""
        return settings.replace_options(relation=PARTED.join(self._run.relations))

    def grouped(self, data: DialogueSet) -> Iterator[tuple[str, TurnResult]]:
        """Yield all results, each with the name of its group."""
        keys = self._names()
        return ((keys[result.relation], result) for result in self.results(data))

    def groups(self, data: DialogueSet) -> dict[str, Results]:  # noqa: ARG002 - see above
        """Return the results of each relation.

        The keys are the group names of the built-in suite.
        """
        names = self._names()
        return {
            key: self._run.results(name) for name, key in sorted(names.items(), key=itemgetter(1))
        }

    def _names(self) -> dict[str, str]:
        """Maps each relation to the name of its group."""
        settings, info = self._settings, self._run.info
        suite, comparison = next(iter(SUITES[settings.reply.outcome])), self._comparison()
        names: dict[str, str] = {}
        for name in self._run.relations:
            own = info.relations[name].edits == "own"
            search = OWN_EDITS if own else settings.variant.search
            names[name] = group_key(
                *(f"{NODE}::{suite}[]", "", search, info.lexicon, comparison, name)
            )
        return names


class Items:
    """Collects one item per relation of a results folder. One per turn could be too many."""

    def __init__(
        self,
        run: StoredRun,
        settings: Settings,
        why_accepted: Callable[[TurnResult, str], str],
    ) -> None:
        self._run, self._settings = run, settings
        self._why_accepted = why_accepted
        #: Relations whose tests were selected, and those whose tests ran.
        self._selected: dict[str, None] = {}
        self._asked: set[str] = set()

    def collect(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the items and deselect tests that would call the tracker."""
        asking = [item for item in items if "dst_model" in getattr(item, "fixturenames", ())]
        if asking:
            session.config.hook.pytest_deselected(items=asking)
            items[:] = [item for item in items if item not in asking]
        session.config.stash[_ITEMS] = self
        items.extend(own_items(session, __file__))

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations with results."""
        return self._run.relations

    def plan(self, items: Iterable[pytest.Item]) -> None:
        """Record the relations of the selected tests."""
        params = (getattr(getattr(item, "callspec", None), "params", {}) for item in items)
        self._selected = dict.fromkeys(
            one["dst_stored"] for one in params if one.get("dst_stored") in self.relations
        )

    @property
    def unjudged(self) -> list[str]:
        """The relations whose tests were selected but did not run."""
        return [name for name in self._selected if name not in self._asked]

    def verdict(self, relation: str, item: pytest.Item) -> StoredRelation:
        """Return the results of a relation for its test."""
        self._asked.add(relation)
        found = StoredRelation(self._settings, relation)
        for result in self._run.results(relation):
            found.add(result, self._why_accepted)
        item.user_properties += [
            ("dst_relation", relation),
            ("dst_turns", found.outcomes.total()),
            ("dst_turns_broken", found.outcomes["violation"]),
        ]
        return found


_ITEMS: pytest.StashKey[Items] = pytest.StashKey()


@dataclass
class StoredRelation:
    """The stored results of a relation, for the test of this relation."""

    _settings: Settings
    _relation: str
    #: Number of turns by outcome.
    outcomes: Counter[TurnOutcome] = field(default_factory=Counter)
    _accepted: Counter[str] = field(default_factory=Counter)
    #: The error at the first turn with one.
    _error: str = ""
    _who: str = ""
    _plainest: PlainestTally = field(default_factory=lambda: PlainestTally(1))

    def add(self, result: TurnResult, why_accepted: Callable[[TurnResult, str], str]) -> None:
        """Record a result of the relation."""
        self.outcomes[result.outcome] += 1
        if result.outcome == "violation":
            if reason := why_accepted(result, self._relation):
                self._accepted[reason] += 1
            else:
                self._plainest.add(result)
        elif result.outcome == "error" and not self._error:
            reasons = (one.reason for one in result.variants if one.outcome == "error")
            self._error = result.reason or next(reasons, "no reason given")
            self._who = result.kind.words.who

    def assert_holds(self) -> None:
        """Fail if a turn has a violation that is not accepted, or if the tracker failed.

        Skip if no turn was tested. With ``--dst-fail-on=gate``, never fail, because the gate judges
        the session at its end.
        """
        __tracebackhide__ = True
        broken = self.outcomes["violation"] - self._accepted.total()
        errors = self.outcomes["error"]
        tested = self.outcomes["violation"] + errors + self.outcomes["held"]
        if not tested:
            pytest.skip(f"the relation {self._relation} was tested on no turn")
        if self._settings.gate.fail_on == "gate":
            return
        if broken or errors:
            pytest.fail(printable(self._failed(broken, errors, tested)), pytrace=False)
        if self._accepted:
            pytest.xfail(printable(f"accepted: {'; '.join(self._accepted)}"))

    def _failed(self, broken: int, errors: int, tested: int) -> str:
        turns = "turn" if tested == 1 else "turns"
        of = f"of {tested:,} {turns} tested with the relation {self._relation}"
        parts = []
        if broken:
            parts.append(f"{broken:,} {of} {'is' if broken == 1 else 'are'} broken; the plainest:")
            parts += [self._explained(turn) for turn, _ in self._plainest.pairs]
        if errors:
            why = KEPT_BACK if self._settings.output.redact else self._error
            parts.append(f"{self._who} failed at {errors:,} {of}: {why}")
        return "\n".join(parts)

    def _explained(self, turn: TurnResult) -> str:
        shown = redact_turn(turn) if self._settings.output.redact else turn
        settings = self._settings.replace_options(relation=self._relation)
        return explain(shown, settings, command=None, weakness=weakness_of(turn))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise the test by relations, in the order of the run."""
    names: Sequence[str] = metafunc.config.stash[_ITEMS].relations
    metafunc.parametrize("dst_stored", names, ids=names, indirect=True)


@pytest.fixture
def dst_stored(request: pytest.FixtureRequest) -> StoredRelation:
    """The stored results of a relation."""
    return request.config.stash[_ITEMS].verdict(request.param, request.node)


def results(dst_stored: StoredRelation) -> None:
    """Test that the stored results of a relation have no violation, except accepted ones."""
    dst_stored.assert_holds()
