"""All figures of a run that reports show, from one pass over its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final, Self

from pytest_dstfuzz.campaign.results import Results, TurnOutcome, TurnResult
from pytest_dstfuzz.campaign.sums import DistinctCount, LastByTurn, tallied
from pytest_dstfuzz.comparisons.fallbacks import is_fallback
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind, Words
from pytest_dstfuzz.relations.rewrite import OTHER_LANGUAGE
from pytest_dstfuzz.report.cases import CasesTally
from pytest_dstfuzz.report.novelty import Novelty
from pytest_dstfuzz.report.own_spread import SpreadTally
from pytest_dstfuzz.report.plainest import PlainestTally
from pytest_dstfuzz.report.redact import redacted
from pytest_dstfuzz.report.sections import RelationFacts, Section
from pytest_dstfuzz.report.weaknesses import without_texts
from pytest_dstfuzz.weaknesses.groups import Weakness, WeaknessTally

#: The plainest violations of the run that are at hand.
_MOST_PLAINEST: Final = 20


class Survey:
    """What was found under each relation, and of all together what concerns none of them.

    Turns are taken in first; the figures are read when all are in.
    """

    def __init__(
        self, facts: Mapping[str, RelationFacts] | None = None, fallbacks: tuple[str, ...] = ()
    ) -> None:
        """Begin without a result.

        Args:
            facts: what relations say of themselves, by name.
            fallbacks: regular expressions of replies that are no answer, beside the known ones.
        """
        self._facts, self._fallbacks = facts or {}, fallbacks
        self._sections: dict[str, Section] = {}
        self.count = 0
        self.cases: Final = CasesTally()
        self.replies: Final = SpreadTally()
        self.plainest: Final = PlainestTally(_MOST_PLAINEST)
        #: Which violations the baseline knows, once that is known.
        self.novelty = Novelty()
        #: Turns that were not run, by relation; their dialogues; why, of the first that says it.
        self.skipped: Counter[str] = Counter()
        self._skipped_dialogues = DistinctCount()
        #: Turns that lack some of their variants, and how many they lack together, at most.
        self.unfinished = self.left_out = 0
        #: Whether the clean reply to a turn gives no answer.
        self._unanswered = LastByTurn(1)
        self.why_skipped = ""
        #: Turns with a violation.
        self.broken = 0

    @classmethod
    def of(
        cls,
        results: Iterable[TurnResult],
        facts: Mapping[str, RelationFacts] | None = None,
        fallbacks: tuple[str, ...] = (),
    ) -> Self:
        """Survey results; the rest is as for a new one."""
        return tallied(cls(facts, fallbacks), results)

    def add(self, turn: TurnResult) -> None:
        """Take in a result."""
        name = turn.relation
        if name not in self._sections:
            facts = self._facts.get(name, RelationFacts())
            self._sections[name] = Section(name, turn.side, facts, turn.kind)
        self._sections[name].add(turn)
        self.count += 1
        for tally in (self.cases, self.replies, self.plainest):
            tally.add(turn)
        if not turn.kind.words.values and turn.clean_state is not None:
            reply = turn.kind.text(turn.clean_state)
            self._unanswered.add(turn.id, is_fallback(reply, self._fallbacks))
        self.broken += bool(turn.violations)
        if turn.left_out:
            self.unfinished += 1
            self.left_out += turn.left_out
            self.why_skipped = self.why_skipped or turn.reason
        if turn.outcome == "skipped":
            self.skipped[name] += 1
            self._skipped_dialogues.add(turn.dialogue_id)
            self.why_skipped = self.why_skipped or turn.reason

    def sections(self, named: str) -> tuple[Section, ...]:
        """Return what was found under each relation that has results.

        Those that ``named`` lists, with commas between them, come first and in its order.
        """
        asked = [name for name in named.split(",") if name in self._sections]
        names = dict.fromkeys([*asked, *sorted(self._sections)])
        return tuple(self._sections[name] for name in names)

    def first(self, named: str) -> Section:
        """Return what was found under the first relation: what a report of one is about."""
        for one in self.sections(named):
            return one
        return Section("", "should-not-change", RelationFacts(), BELIEF_STATES)

    @property
    def kind(self) -> AnswerKind:
        """What of the answers was tested: a run tests one kind."""
        return next((one.kind for one in self._sections.values()), BELIEF_STATES)

    @property
    def words(self) -> Words:
        """What reports call what was tested."""
        return self.kind.words

    @property
    def relations(self) -> int:
        """How many relations have results."""
        return len(self._sections)

    @property
    def skipped_dialogues(self) -> int:
        """Dialogues with a turn that was not run."""
        return self._skipped_dialogues.value

    @property
    def fallbacks(self) -> tuple[int, int]:
        """How many clean replies give no answer, and how many there are; each turn counts once."""
        rows = self._unanswered.rows()
        return sum(none > 0 for (none,) in rows), len(rows)

    @property
    def in_other_languages(self) -> int:
        """Turns that are not in English, in which nothing was edited; each counts once."""
        sections = self._sections.values()
        return max((one.inapplicable.get(OTHER_LANGUAGE, 0) for one in sections), default=0)

    @cached_property
    def outcomes(self) -> Counter[TurnOutcome]:
        """Results by what became of the turns."""
        return sum((one.outcomes for one in self._sections.values()), Counter[TurnOutcome]())

    @cached_property
    def errors(self) -> dict[str, int]:
        """The reasons of errors: how often each was given, the most frequent first."""
        counts: Counter[str] = Counter()
        for one in self._sections.values():
            counts.update(one.reasons.errors)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def read_results(
    results: Results,
    facts: Mapping[str, RelationFacts],
    fallbacks: tuple[str, ...],
    accepted: Mapping[str, str],
    *,
    redact: bool,
) -> tuple[Survey, tuple[Weakness, ...]]:
    """Return the figures of results and their weaknesses, from one pass over them.

    Args:
        results: as they were found.
        facts: as for a `Survey`.
        fallbacks: likewise.
        accepted: weakness -> why it may stay.
        redact: leave out what was said: what violations have in common shows only there.
    """
    survey, tally = Survey(facts, fallbacks), WeaknessTally()
    for turn in results:
        tally.add(turn)
        survey.add(redacted(turn) if redact else turn)
    found = tuple(replace(one, accepted=accepted.get(one.id, "")) for one in tally.weaknesses)
    return survey, without_texts(found) if redact else found
