"""The results of a folder that is judged: collected as from tests, an item for each relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from pytest_dstfuzz.campaign.results import Results, TurnOutcome, TurnResult
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.plugin.items import own_items
from pytest_dstfuzz.plugin.relations import PARTED, SUITES
from pytest_dstfuzz.plugin.result_collector import OWN_EDITS, ResultCollector, group_key
from pytest_dstfuzz.plugin.selection import NODE
from pytest_dstfuzz.plugin.stored import StoredRun
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.explain import explain
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.redact import KEPT_BACK, redacted
from pytest_dstfuzz.totals.plainest import PlainestTally


class StoredCollector(ResultCollector):
    """The results of a folder as if they had come in from tests: read anew each time."""

    def __init__(
        self, run: StoredRun, settings: Settings, comparison: Callable[[], Comparison]
    ) -> None:
        """Begin with nothing; ``comparison`` gives what answers were compared by."""
        super().__init__()
        self._run, self._settings = run, settings
        self._comparison = comparison

    def load(self) -> None:
        """Take in what the folder says of its run.

        Raises:
            UserError: it cannot be judged; see `StoredRun.results`.
        """
        info = self._run.info
        self.relations = {name: info.relations[name] for name in self._run.relations}
        self.lexicons = {info.lexicon}
        self.comparisons = set(filter(None, [info.compared]))
        # What there is to say of it is among the notes of the run.
        self.policies = {info.policy: ""} if info.policy else {}
        self.plan({"": len(self._run.results())})

    def __len__(self) -> int:
        # What could not be read is no result.
        return len(self._run.results()) if self.planned and not self.problem else 0

    @property
    def tested(self) -> bool:
        """Whether there is a folder that is judged."""
        return bool(self.planned or self.problem)

    def info(self, data: DialogueSet) -> RunInfo:  # noqa: ARG002 - as the folder tells of it
        """Describe the data and the run of the folder."""
        return self._run.info

    def results(self, data: DialogueSet) -> Results:  # noqa: ARG002 - they are in its order
        """Return all results, in the order of the data."""
        return self._run.results()

    def with_relations(self, data: DialogueSet) -> Iterator[tuple[str, TurnResult]]:
        """Yield all results, each with the name of its relation."""
        return ((result.relation, result) for result in self.results(data))

    def named(self, settings: Settings) -> Settings:
        """Return settings that name the relations that have results."""
        return settings.replace_options(relation=PARTED.join(self._run.relations))

    def grouped(self, data: DialogueSet) -> Iterator[tuple[str, TurnResult]]:
        """Yield all results, each with the name of its group."""
        keys = {name: key for key, name in self._names().items()}
        return ((keys[result.relation], result) for result in self.results(data))

    def groups(self, data: DialogueSet) -> dict[str, Results]:  # noqa: ARG002 - see above
        """Return the results of each relation apart, called as those of the built-in suite are."""
        names = self._names()
        return {key: self._run.results(names[key]) for key in sorted(names)}

    def _names(self) -> dict[str, str]:
        """Return the relation of each group."""
        settings, info = self._settings, self._run.info
        suite, comparison = next(iter(SUITES[settings.reply.outcome])), self._comparison()
        names: dict[str, str] = {}
        for name in self._run.relations:
            own = info.relations[name].edits == "own"
            search = OWN_EDITS if own else settings.variant.search
            key = group_key(f"{NODE}::{suite}[]", "", search, info.lexicon, comparison, name)
            names[key] = name
        return names


class Items:
    """An item for each relation of a folder: of a million turns there cannot be as many."""

    def __init__(
        self,
        run: StoredRun,
        settings: Settings,
        why_accepted: Callable[[TurnResult, str], str],
    ) -> None:
        self._run, self._settings = run, settings
        self._why_accepted = why_accepted

    def collect(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the items, and leave out the tests that would ask the tracker."""
        asking = [item for item in items if "dst_model" in getattr(item, "fixturenames", ())]
        if asking:
            session.config.hook.pytest_deselected(items=asking)
            items[:] = [item for item in items if item not in asking]
        session.config.stash[_ITEMS] = self
        items.extend(own_items(session, __file__))

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations that have results."""
        return self._run.relations

    def verdict(self, relation: str, item: pytest.Item) -> StoredRelation:
        """Go over the results of a relation."""
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
    """What a folder holds under one relation, as far as its test needs to know."""

    _settings: Settings
    _relation: str
    #: Turns by what became of them.
    outcomes: Counter[TurnOutcome] = field(default_factory=Counter)
    _accepted: Counter[str] = field(default_factory=Counter)
    #: Why the tracker failed, at the first turn at which it did.
    _error: str = ""
    _who: str = ""
    _plainest: PlainestTally = field(default_factory=lambda: PlainestTally(1))

    def add(self, result: TurnResult, why_accepted: Callable[[TurnResult, str], str]) -> None:
        """Take in a result of the relation."""
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
        """Fail where a turn is broken or the tracker failed at one, as the tests of turns do.

        Under ``--dst-fail-on=gate`` the session is judged at its end. It skips where no turn was
        tested.
        """
        __tracebackhide__ = True
        broken = self.outcomes["violation"] - self._accepted.total()
        errors = self.outcomes["error"]
        tested = self.outcomes["violation"] + errors + self.outcomes["held"]
        if not tested:
            pytest.skip(f"no turn was tested under {self._relation}")
        if self._settings.gate.fail_on == "gate":
            return
        if broken or errors:
            pytest.fail(printable(self._failed(broken, errors, tested)), pytrace=False)
        if self._accepted:
            pytest.xfail(printable(f"accepted: {'; '.join(self._accepted)}"))

    def _failed(self, broken: int, errors: int, tested: int) -> str:
        of = f"of {tested:,} tested turns under {self._relation}"
        parts = []
        if broken:
            parts.append(f"{broken:,} {of} are broken; the plainest:")
            parts += [self._explained(turn) for turn, _ in self._plainest.pairs]
        if errors:
            why = KEPT_BACK if self._settings.output.redact else self._error
            parts.append(f"{self._who} failed at {errors:,} {of}: {why}")
        return "\n\n".join(parts)

    def _explained(self, turn: TurnResult) -> str:
        shown = redacted(turn) if self._settings.output.redact else turn
        settings = self._settings.replace_options(relation=self._relation)
        return explain(shown, settings, command=None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item of each relation, in the order in which they were asked."""
    names: Sequence[str] = metafunc.config.stash[_ITEMS].relations
    metafunc.parametrize("dst_stored", names, ids=names, indirect=True)


@pytest.fixture
def dst_stored(request: pytest.FixtureRequest) -> StoredRelation:
    """What a folder of results holds under one relation."""
    return request.config.stash[_ITEMS].verdict(request.param, request.node)


def results(dst_stored: StoredRelation) -> None:
    """What was tested holds, but for what is accepted."""
    dst_stored.assert_holds()
