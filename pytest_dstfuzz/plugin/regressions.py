"""Regressions, which are remembered violations: their items, acceptance and new entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.registry import as_comparison
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.plugin.campaigns import SessionCampaigns
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.plugin.items import brings_its_own, own_items, place_of_tracker
from pytest_dstfuzz.plugin.options import given_options
from pytest_dstfuzz.plugin.results import FOUND, ItemOutcome, ResultCollector
from pytest_dstfuzz.plugin.selection import uses_fixtures
from pytest_dstfuzz.printable import format_count, format_list, printable
from pytest_dstfuzz.regressions.regression import (
    FOLDER,
    MOST_OF_ONE,
    Corpus,
    FoundTally,
    Regression,
    ReplayOutcome,
    corpus_path,
    is_kept,
    one,
    read_corpus,
    reasons_by_weakness,
    remember_violations,
    update_corpus,
)
from pytest_dstfuzz.relations.registry import as_relation, relation_by_name
from pytest_dstfuzz.report.page import StyledLine
from pytest_dstfuzz.report.redact import mask_text
from pytest_dstfuzz.report.wording import shorten
from pytest_dstfuzz.trackers.validation import unknown_slot

_MOST_NAMED = 10
_UNCLEAR = "the clean answer changed, or the comparison has no verdict"


class _NamedRegression(NamedTuple):
    number: int
    #: The first names of the list.
    names: str


_OWN: pytest.StashKey[RegressionCorpus] = pytest.StashKey()


@dataclass(eq=False)
class RegressionCorpus:
    """The regressions of a session's data."""

    _context: RunContext
    _results: ResultCollector
    _campaigns: SessionCampaigns
    #: Number of regressions that at least one tracker did not replay.
    unreplayed: int = field(default=0, init=False)

    @property
    def _settings(self) -> Settings:
        return self._context.settings

    @property
    def _folder(self) -> Path:
        given = self._settings.output.regressions
        return self._context.config.rootpath / FOLDER if given is None else Path(given)

    @property
    def path(self) -> Path:
        """The file for the session's data."""
        return corpus_path(self._folder, self._context.data.name)

    def _check_folder(self) -> None:
        """Raise an error for a folder from the user that is missing or no folder.

        Otherwise a typo would hide the remembered violations. ``--dst-remember`` creates the
        folder. A path in an ini file may name a folder for later.
        """
        folder, output = self._folder, self._settings.output
        if output.regressions is None or output.remember or folder.is_dir():
            return
        if folder.is_symlink() or folder.exists():
            raise UserError(
                f"--dst-regressions: {folder} is not a folder, so no remembered violation was "
                "found. Name the folder of the files, such as .dstfuzz/regressions"
            )
        given = given_options(self._context.config)
        if any(one.name == "regressions" and one.on_command_line for one in given):
            raise UserError(
                f"--dst-regressions: there is no folder {folder}, so no remembered violation was "
                "found. Correct the path, or create the folder with --dst-remember"
            )

    @property
    def _of_other_data(self) -> str:
        """A sentence if the folder has only violations of other data, or ``""``."""
        if self._settings.output.remember or self.path.exists():
            return ""
        others = sorted(path.stem for path in self._folder.glob("*.jsonl"))
        if not others:
            return ""
        return (
            f"no remembered violation was replayed: {self._folder} has those of "
            f"{format_list(others, _MOST_NAMED)}, but none of {self._context.data.name}. Choose "
            "the data with --dst-data or the folder with --dst-regressions, or rename the file if "
            "only the name of the data has changed"
        )

    @property
    def written(self) -> Path | None:
        """The file for new violations, if the run should remember them."""
        return self.path if self._settings.output.remember else None

    @cached_property
    def corpus(self) -> Corpus:
        """The violations remembered by earlier sessions. A broken line in the file is an error.

        An unknown slot in the file is also an error, because its violation would always count as
        fixed.
        """
        self._check_folder()
        corpus, ontology = read_corpus(self.path), self._context.data.ontology
        for entry in corpus.values():
            if not entry.kind.has_slots:
                continue
            if problem := unknown_slot({change.slot: "" for change in entry.changed}, ontology):
                raise DataError(
                    f"{self.path}: the regression {entry.id} has {problem}. Correct its line, "
                    f"or remove it with dstfuzz retire {entry.id}"
                )
        return corpus

    def wanted(self) -> list[str]:
        """Return the ids of the regressions that this session may replay."""
        replay = self._settings.output.replay
        return [*self.corpus] if replay is None else [one(self.corpus, replay).id]

    def collect(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Insert the regressions before the tests of their trackers, or in place of all tests."""
        replay = self._settings.output.replay is not None
        if self._context.mistake is not None or not (uses_fixtures(items) or replay):
            return
        try:
            wanted = self.wanted()
        except UserError as error:
            raise pytest.UsageError(str(error)) from error
        session.config.stash[_OWN] = self
        places = self._places(items, wanted)
        if replay:
            places = dict.fromkeys(places or [session], 0)
            session.config.hook.pytest_deselected(items=list(items))
            items.clear()
        # From the end, because each insertion moves the tests that follow.
        for place, index in reversed(places.items()):
            items[index:index] = self._replays(place, wanted)

    def _places(
        self, items: Sequence[pytest.Item], wanted: Sequence[str]
    ) -> dict[pytest.Collector, int]:
        """Return the places of the trackers that tests use, each with the index of its first test.

        Also counts the regressions that are not replayed with the tracker of some test.
        """
        places: dict[pytest.Collector, int] = {}
        for index, item in enumerate(items):
            if "dst_model" not in getattr(item, "fixturenames", ()):
                continue
            if place := place_of_tracker(item):
                # Without a tracker in the settings, the test ends with a message.
                if self._settings.tracker.model or brings_its_own(item, "dst_model"):
                    places.setdefault(place, index)
            else:
                self.unreplayed = len(wanted)
        return places

    def _replays(self, place: pytest.Collector, wanted: Sequence[str]) -> list[pytest.Item]:
        """Return the tests of regressions that ask the tracker of a place."""
        # A fixture with parameters makes several tests of a regression.
        by_name: dict[str, list[pytest.Item]] = {name: [] for name in wanted}
        for item in own_items(place, __file__) if self.corpus else ():
            by_name.get(_entry_of(item).id, []).append(item)
        reply, output = self._settings.reply, self._settings.output
        return [
            item
            for name in wanted
            for item in by_name[name]
            # The suite's own fixture may select another kind of answer later.
            if self.corpus[name].outcome == reply.outcome
            or output.replay is not None
            or brings_its_own(item, "dst_outcome")
        ]

    def ask_again(
        self,
        request: pytest.FixtureRequest,
        model: object,
        *,
        relation: object,
        outcome: OutcomeKind,
        compare: object,
    ) -> DstRegression:
        """Replay a regression. If no fixture returns its relation, look up the relation by name."""
        entry: Regression = request.param
        if told := self._not_of_this_run(entry, outcome):
            if self._settings.output.replay is None:
                pytest.skip(told)
            pytest.fail(told, pytrace=False)
        found = None
        if not isinstance(relation, str):
            found = as_relation(relation, "the fixture dst_relation")
        if entry.expected:  # The expected values are known, so no relation is needed.
            found = None
        elif found is None or found.name != entry.relation:
            found = relation_by_name(entry.relation)
        predictor = self._campaigns.predictor(model, request.node, entry.outcome)
        answers = predictor.predict([entry.clean, entry.seen])
        comparison = self._comparison(entry.outcome, compare)
        replayed, changes = entry.replayed(answers, found, comparison)
        request.node.stash[FOUND] = ItemOutcome(regression=entry.id, outcome=replayed)
        return DstRegression(self._settings, entry, replayed, changes)

    def _not_of_this_run(self, entry: Regression, outcome: OutcomeKind) -> str:
        """Return why a run cannot replay a regression, and the option to add, or ``""``."""
        if entry.outcome != outcome:
            was, now = (KINDS[one].words.one for one in (entry.outcome, outcome))
            return (
                f"the regression {entry.id} needs a test of {was}, but this run tests {now}: "
                f"add --dst-outcome={entry.outcome}"
            )
        history = self._settings.reply.history
        # A belief state does not depend on the author of the history.
        if entry.kind.has_slots or entry.history == history:
            return ""
        whose = {"own": "the system's own messages", "recorded": "recorded messages"}
        return (
            f"the regression {entry.id} was found with {whose[entry.history]} in the history, but "
            f"this run has {whose[history]}: add --dst-history={entry.history}"
        )

    def why_accepted(self, result: TurnResult, relation: str) -> str:
        """Return why all violations of a turn are accepted, or ``""`` if one is not accepted."""
        reasons: dict[str, None] = {}
        whole = reasons_by_weakness(self.corpus)
        for entry in self._found(result, relation):
            if entry.weakness in whole:
                reasons[whole[entry.weakness]] = None
                continue
            known = self.corpus.get(entry.id)
            # An acceptance covers only the recorded slots.
            if known is None or known.status != "accepted" or entry.slots - known.slots:
                return ""
            reasons[known.reason] = None
        return "; ".join(reasons)

    def why_accepted_as_a_whole(self) -> dict[str, str]:
        """Return the accepted weaknesses with their reasons, redacted if necessary."""
        show = mask_text if self._settings.output.redact else str
        return {name: show(why) for name, why in reasons_by_weakness(self.corpus).items()}

    def finish(self) -> list[StyledLine]:
        """Remember new violations if the user asked for it. Return lines for the terminal."""
        lines = []
        replayed = self._results.regressions
        if fixed := self._named("fixed"):
            verb = "is" if fixed.number == 1 else "are"
            text = f"{fixed.number} of {format_count(len(replayed), 'regression')} {verb} fixed"
            lines.append(StyledLine(f"{text}: dstfuzz retire {fixed.names}", "good"))
        if unclear := self._named("unclear"):
            count = f"{unclear.number} of {format_count(len(replayed), 'regression')}"
            text = f"it is unclear whether {count} would be fixed, because {_UNCLEAR}"
            lines.append(StyledLine(f"{text}: {unclear.names}", "warning"))
        if self.unreplayed:
            number = format_count(self.unreplayed, "remembered violation")
            text = (
                f"{number} not replayed with at least one tracker, because its dst_model is a "
                "fixture of a class or a parameter of a test: define the fixture in a file of "
                "tests or in a conftest.py, with params= if there are several trackers"
            )
            lines.append(StyledLine(text, "warning"))
        if self._settings.output.replay is not None:
            lines += [self._said_of(name, outcome) for name, outcome in sorted(replayed.items())]
        if self._context.stored is not None and self.corpus:
            number = format_count(len(self.corpus), "remembered violation")
            verb = "is" if len(self.corpus) == 1 else "are"
            text = f"{number} {verb} not replayed: --dst-results does not call the tracker"
            lines.append(StyledLine(text))
        if text := self._of_other_data:
            lines.append(StyledLine(text, "warning"))
        if self._settings.output.remember:
            lines.append(self._remember())
        return lines

    def facts(self) -> list[dict[str, Any]]:
        """Return the report's entries for replayed regressions."""
        show = mask_text if self._settings.output.redact else str
        found = []
        for name, outcome in sorted(self._results.regressions.items()):
            entry = self.corpus[name]
            changed = entry.lines_of(entry.changed, show)
            known = {"status": entry.status, "reason": show(entry.reason), "turn": entry.turn}
            more = {"changed": changed, "outcome": outcome, "weakness": entry.weakness}
            found.append({"id": name, **known, **more})
        return found

    def _named(self, outcome: ReplayOutcome) -> _NamedRegression | None:
        """Return the number of replayed regressions with an outcome, and the first few names."""
        found = sorted(name for name, one in self._results.regressions.items() if one == outcome)
        more = f" (and {len(found) - _MOST_NAMED} more)" if len(found) > _MOST_NAMED else ""
        return _NamedRegression(len(found), " ".join(found[:_MOST_NAMED]) + more) if found else None

    def _said_of(self, name: str, outcome: str) -> StyledLine:
        """Return a line about a regression that the option ``--dst-replay`` names."""
        entry = self.corpus[name]
        state = f"accepted: {entry.reason}" if entry.status == "accepted" else "open"
        changed = ", ".join(change.slot for change in entry.changed)
        what = f"unknown: {_UNCLEAR}" if outcome == "unclear" else outcome
        text = f"regression {name} ({state}), {changed} at turn {entry.turn}: {what}"
        return StyledLine(text, "good" if outcome == "fixed" else "warning")

    def _remember(self) -> StyledLine:
        """Add violations to the file.

        Read it again first, because another process may write to it.
        """
        found = FoundTally(self.corpus)
        new = left = 0
        try:
            for relation, one in self._results.with_relations(self._context.data):
                for entry in self._found(one, relation):
                    found.add(entry)
            if kept := found.kept:
                before, after = update_corpus(
                    self.path, lambda known: remember_violations(known, kept)
                )
                new, left = len(after) - len(before), found.left_out(after)
        except UserError as error:
            return StyledLine(f"failed: no violation was remembered: {error}", "bad")
        more = f"; {left} more were not (limit: {MOST_OF_ONE} of one weakness)" if left else ""
        told = f"{format_count(new, 'new violation')} {'was' if new == 1 else 'were'} remembered"
        return StyledLine(f"{told} in {self.path}{more}")

    def _found(self, result: TurnResult, relation: str) -> Iterator[Regression]:
        if not result.violations:
            return
        dialogue = self._context.data.dialogue(result.dialogue_id)
        for variant in filter(is_kept, result.violations):
            rules = self._context.data.normalisation
            # A suite's own fixture or marker may have selected the comparison.
            compared = "; or ".join(sorted(self._results.comparisons))
            history = self._settings.reply.history
            yield Regression.of(result, variant, dialogue, relation, rules, compared, history)

    def _comparison(self, outcome: OutcomeKind, given: object) -> Comparison:
        """Return the comparison of answers. ``given`` is the value of the fixture."""
        if KINDS[outcome].words.values:
            return self._context.comparison(replace(self._settings.reply, outcome=outcome))
        if given is None or isinstance(given, str):
            reply = replace(self._settings.reply, outcome=outcome, compare=given)
            return self._context.comparison(reply)
        where = "the fixture dst_compare returned neither a name nor a comparison"
        return as_comparison(given, where, self._settings.reply)


#: Maximum number of texts and changes in the text of a failure, and of characters of each.
_MOST_TEXTS: Final = 4
_MOST_CHANGES: Final = 3
_LONGEST: Final = 160


@dataclass(frozen=True, eq=False)
class DstRegression:
    """A remembered violation and its outcome."""

    _settings: Settings
    entry: Regression
    outcome: ReplayOutcome
    #: The slots that change now. If it is ``unclear``, the slots of the clean answer that changed.
    changes: tuple[Difference, ...]

    def assert_fixed(self) -> None:
        """Fail if the violation persists.

        It does not fail if it is accepted or the session has a gate.

        Skip if the outcome is unknown.
        """
        __tracebackhide__ = True
        if self.outcome == "unasked":
            pytest.skip("the budget ended before this regression was replayed")
        if self.outcome == "unclear":
            changes = "; ".join(self._shown())
            pytest.skip(printable(f"unknown: {_UNCLEAR} ({changes})"))
        if self.outcome == "failed":
            pytest.fail(
                f"{KINDS[self.entry.outcome].words.who} failed on regression {self.entry.id}",
                pytrace=False,
            )
        if self.outcome == "broken":
            if self.entry.status == "accepted" and self._settings.output.replay is None:
                pytest.xfail(printable(f"accepted: {self.entry.reason}"))
            if self._settings.gate.fail_on == "gate" and self._settings.output.replay is None:
                pytest.xfail("still broken; the gate judges the session")
            pytest.fail(self._explained(), pytrace=False)

    def _explained(self) -> str:
        show = mask_text if self._settings.output.redact else str
        lines = [f"regression {self.entry.id} is still broken, at turn {self.entry.turn}", ""]
        texts = list(self.entry.told)
        if (before := len(texts) - _MOST_TEXTS) > 0:
            more = f"dstfuzz regressions {self.entry.id} shows all"
            lines.append(f"  ... {format_count(before, 'text')} before: {more}")
        lines += [
            f"  {f'{who}:':<8} {shorten(show(text), _LONGEST)}"
            for who, text in texts[-_MOST_TEXTS:]
        ]
        what = "edits" if self.entry.edits else "by"
        lines += ["", f"  {f'{what}:':<8} {self.entry.done}"]
        changes = self._shown()
        lines += [f"  changed: {shorten(line, _LONGEST)}" for line in changes[:_MOST_CHANGES]]
        if (left := len(changes) - _MOST_CHANGES) > 0:
            lines.append(f"  ... and {format_count(left, 'more change')}")
        if self.entry.status == "accepted":
            why = show(self.entry.reason)
            lines += ["", f"  accepted: {why} (it fails only with --dst-replay)"]
        else:
            lines += ["", f"  to accept it: dstfuzz accept {self.entry.id} --reason '...'"]
            if weakness := self.entry.weakness:
                lines.append(f"  or its weakness: dstfuzz accept {weakness} --reason '...'")
        return printable("\n".join(lines))

    def _shown(self) -> list[str]:
        show = mask_text if self._settings.output.redact else str
        return self.entry.lines_of(self.changes, show)


def _entry_of(item: pytest.Item) -> Regression:
    """Return the regression that a test replays."""
    entry: Regression = item.callspec.params["dst_regression"]  # type: ignore[attr-defined]  # a function has it
    return entry


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise the test by regressions, in the order of their ids."""
    corpus = metafunc.config.stash[_OWN].corpus
    metafunc.parametrize("dst_regression", corpus.values(), ids=list(corpus), indirect=True)


@pytest.fixture
def dst_regression(
    request: pytest.FixtureRequest,
    dst_model: object,
    dst_search: object,  # noqa: ARG001 - with these fixtures, tests share a tracker
    dst_relation: object,
    dst_outcome: OutcomeKind,
    dst_compare: object,
    dst_lexicon: Lexicon,  # noqa: ARG001 - likewise
) -> DstRegression:
    """A remembered violation, replayed."""
    return request.config.stash[_OWN].ask_again(
        request, dst_model, relation=dst_relation, outcome=dst_outcome, compare=dst_compare
    )


def regression(dst_regression: DstRegression) -> None:
    """Test that a remembered violation is fixed."""
    dst_regression.assert_fixed()
