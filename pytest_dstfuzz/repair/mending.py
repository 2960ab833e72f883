"""Measures what remedies before a bot repair and break, on two halves of the dialogues."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz import (
    Campaign,
    Context,
    Prediction,
    TurnResult,
    UserError,
    VariantResult,
)
from pytest_dstfuzz.campaign.answers import Answer, Folding
from pytest_dstfuzz.campaign.figures import TURNS, ExpectedTally, ratio_interval
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.perturb.spelling import SpellingCorrector, words_of_ontology
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.repair.remedies import REMEDIES, Correctors, Remedy, SaidWords
from pytest_dstfuzz.repair.sources import clean_dialogue
from pytest_dstfuzz.report.figures import undecided_text
from pytest_dstfuzz.seeding import stream

#: Number of dialogues whose contexts the bot is asked for together.
_TOGETHER: Final = 16
#: Outcomes of the variants that count.
_JUDGED: Final = ("held", "violation", "improved")
#: A remedy is advised if it avoids at least this share of the failures.
_SHARE: Final = 0.25
#: User turns of 1,000 that have a slip, if the report does not say it.
_DISTORTED: Final = 100.0
#: If the bot fails on more than this share of the contexts, no remedy is advised.
MOST_FAILURES: Final = 0.05
#: Half of the dialogues: the first makes the promise, the second checks it.
Half = Literal["first", "second"]
HALVES: Final[tuple[Half, Half]] = ("first", "second")
#: Called with the number of finished dialogues and the total.
Progress = Callable[[int, int], None]


class MendingCounts(NamedTuple):
    """The effect of a remedy on some dialogues."""

    #: Violations without the remedy, and those among them that no longer occur.
    violations: int = 0
    mended: int = 0
    #: Variants that hold without the remedy, and those among them that now break.
    held: int = 0
    spoilt: int = 0
    #: Clean turns, those whose texts the remedy alters, and those whose answer changes. A new
    #: answer that is right by the label does not count.
    turns: int = 0
    altered: int = 0
    changed: int = 0

    def __add__(self, other: tuple[int, ...]) -> MendingCounts:  # type: ignore[override]  # adds numbers
        return MendingCounts(*(one + two for one, two in zip(self, other, strict=True)))


class PromisedFigure(NamedTuple):
    """A number with its 95 % interval over dialogues. ``None`` if there are too few of them."""

    value: float
    interval: tuple[float, float] | None

    def times(self, factor: float) -> PromisedFigure:
        """Return the figure in another unit."""
        if self.interval is None:
            return PromisedFigure(factor * self.value, None)
        low, high = self.interval
        return PromisedFigure(factor * self.value, (factor * low, factor * high))

    def plus(self, other: PromisedFigure) -> PromisedFigure:
        """Return the sum of two figures, as if they were independent.

        The interval comes from the intervals of the parts (Zou and Donner, Statistics in Medicine
        27, 2008, 1693-1702).
        """
        value = self.value + other.value
        if self.interval is None or other.interval is None:
            return PromisedFigure(value, None)
        (low, high), (other_low, other_high) = self.interval, other.interval
        down = math.hypot(self.value - low, other.value - other_low)
        up = math.hypot(high - self.value, other_high - other.value)
        return PromisedFigure(value, (value - down, value + up))

    def differs(self, other: PromisedFigure) -> bool | None:
        """Return whether two figures of different dialogues differ by more than chance explains.

        ``None`` if a figure has no interval.
        """
        negative = None if other.interval is None else (-other.interval[1], -other.interval[0])
        interval = self.plus(PromisedFigure(-other.value, negative)).interval
        return None if interval is None else not interval[0] <= 0 <= interval[1]


class Share(NamedTuple):
    """A share of cases, with its 95 % interval over dialogues."""

    part: int
    whole: int
    interval: tuple[float, float] | None

    @property
    def figure(self) -> PromisedFigure:
        """The share as a number, 0 without cases."""
        return PromisedFigure(self.part / self.whole if self.whole else 0.0, self.interval)


@dataclass
class HalfResult:
    """The effect of a remedy on one half of the dialogues."""

    dialogues: list[MendingCounts] = field(default_factory=list)
    without: ExpectedTally = field(default_factory=ExpectedTally)
    behind: ExpectedTally = field(default_factory=ExpectedTally)

    @property
    def total(self) -> MendingCounts:
        """The sum over the dialogues."""
        return sum(self.dialogues, MendingCounts())

    @property
    def shares(self) -> dict[str, Share]:
        """The shares by name: ``mended``, ``spoilt`` and ``changed``."""
        return {
            part: self._share(part, whole)
            for part, whole in (("mended", "violations"), ("spoilt", "held"), ("changed", "turns"))
        }

    def _share(self, part: str, whole: str) -> Share:
        pairs = [(getattr(one, part), getattr(one, whole)) for one in self.dialogues]
        total = self.total
        return Share(getattr(total, part), getattr(total, whole), ratio_interval(pairs))

    @property
    def failures(self) -> tuple[PromisedFigure, PromisedFigure] | None:
        """Estimated failures of 1,000 user turns without and with the remedy, or ``None``.

        With the remedy, they include turns without a slip whose answer changes.
        """
        before, after = self.without.expected, self.behind.expected
        if not before or before.per_1000 is None or not after or after.per_1000 is None:
            return None
        clean = self.shares["changed"].figure.times(TURNS - before.distorted_per_1000)
        behind = PromisedFigure(after.per_1000, after.interval).plus(clean)
        return PromisedFigure(before.per_1000, before.interval), behind

    @property
    def promises(self) -> dict[str, PromisedFigure]:
        """The figures that the other half can check: all shares, and the failures behind it."""
        found = {name: one.figure for name, one in self.shares.items()}
        return found if self.failures is None else {**found, "failures": self.failures[1]}

    @property
    def rates(self) -> tuple[float, float]:
        """Failures of 1,000 user turns without and with the remedy.

        If there is no estimate, they are rough: all variants count the same.
        """
        if self.failures is not None:
            before, after = self.failures
            return before.value, after.value
        total, expected = self.total, self.without.expected
        distorted = _DISTORTED if expected is None else expected.distorted_per_1000
        share = distorted / max(total.violations + total.held, 1)
        clean = (TURNS - distorted) * self.shares["changed"].figure.value
        broken = total.violations - total.mended + total.spoilt
        return share * total.violations, share * broken + clean

    @property
    def gain(self) -> float:
        """The failures of 1,000 user turns that the remedy prevents."""
        before, after = self.rates
        return before - after

    @property
    def pays(self) -> bool:
        """Whether the remedy prevents a quarter of the failures, and more than it causes."""
        return self.gain > 0 and self.gain >= _SHARE * self.rates[0]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        shares = {
            f"{name}_share": {
                "share": round(one.figure.value, 4),
                "interval": _rounded(one.interval, 4),
            }
            for name, one in self.shares.items()
        }
        failures = self.failures
        return {
            "dialogues": len(self.dialogues),
            **self.total._asdict(),
            **shares,
            "failures_per_1000": None
            if failures is None
            else {
                "without": round(failures[0].value, 2),
                "without_interval": _rounded(failures[0].interval, 2),
                "behind": round(failures[1].value, 2),
                "behind_interval": _rounded(failures[1].interval, 2),
            },
        }


def _rounded(interval: tuple[float, float] | None, digits: int) -> list[float] | None:
    return None if interval is None else [round(bound, digits) for bound in interval]


@dataclass
class RemedyResult:
    """The effect of one remedy on both halves."""

    remedy: Remedy
    first: HalfResult = field(default_factory=HalfResult)
    second: HalfResult = field(default_factory=HalfResult)

    def of(self, half: Half) -> HalfResult:
        """Return the result on one half."""
        return self.first if half == "first" else self.second

    @property
    def holds(self) -> dict[str, bool | None]:
        """Whether the second half confirms each promise; ``None`` if it has too few dialogues."""
        first, second = self.first.promises, self.second.promises
        found = {
            name: one.differs(second[name]) if name in second else None
            for name, one in first.items()
        }
        return {name: None if differs is None else not differs for name, differs in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "remedy": self.remedy.name,
            "first_half": self.first.to_json(),
            "second_half": self.second.to_json(),
            "holds": self.holds,
        }


@dataclass(frozen=True)
class MendingResult:
    """The effects of all remedies, and the remedy to use."""

    remedies: tuple[RemedyResult, ...]
    #: Corrector -> its words besides the lexicon.
    words: Mapping[str, frozenset[str]]
    #: Number of contexts that the bot was asked for.
    asked: int
    #: Why dialogues are missing, or ``""``.
    ended: str = ""
    #: Number of contexts of all turns, of those that the bot failed on, and of turns left out
    #: because of that.
    contexts: int = 0
    failures: int = 0
    left_out: int = 0
    #: Why the judge decided too few pairs of replies, or ``""``.
    undecided: str = ""

    @property
    def trouble(self) -> str:
        """Why the figures say nothing about the remedies, or ``""``."""
        if self.failures > MOST_FAILURES * self.contexts:
            return (
                f"the bot failed on {self.failures:,} of {format_count(self.contexts, 'context')}, "
                f"more than {percent(MOST_FAILURES)}"
            )
        return self.undecided

    @property
    def best(self) -> RemedyResult:
        """The remedy with the largest gain on the first half."""
        return max(self.remedies, key=lambda one: one.first.gain)

    @property
    def advised(self) -> RemedyResult | None:
        """The best remedy if it pays on the first half and the second half confirms the gain.

        ``None`` if there is a `trouble`.
        """
        best = self.best
        if self.trouble:
            return None
        return best if best.first.pays and best.second.gain > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        advised = self.advised
        return {
            "advised": None if advised is None else advised.remedy.name,
            "remedies": [one.to_json() for one in self.remedies],
            "asked": self.asked,
            "ended": self.ended,
            "contexts": self.contexts,
            "failures": self.failures,
            "left_out": self.left_out,
            "trouble": self.trouble,
        }


class _Case(NamedTuple):
    """A clean turn of the report, with the contexts to send to the bot."""

    turn: TurnResult
    clean: Context
    #: The context of the clean answer. It is asked independently if answers vary.
    reference: Context
    #: The variants that count, with their contexts.
    variants: tuple[tuple[VariantResult, Context], ...]
    #: Each context -> the contexts that the bot sees: without a remedy, and behind each one.
    seen: Mapping[Context, tuple[Context, ...]]

    @property
    def asks(self) -> Iterator[Context]:
        """All contexts to send to the bot."""
        yield self.reference
        for contexts in self.seen.values():
            yield from contexts


def _counts(turn: TurnResult) -> bool:
    return turn.side == "should-not-change" and turn.clean_state is not None and turn.tested


def draw_turns(results: Results, most: int, seed: int) -> dict[str, list[TurnResult]]:
    """Return the turns to measure by dialogue, with the dialogues in random order.

    Raises:
        UserError: no turn can be measured.
    """
    names = sorted({turn.dialogue_id for turn in results if _counts(turn)})
    if not names:
        raise UserError(
            "the report has no variants under a relation that keeps the answer, so there is "
            "nothing to mend: test the relation metamorphic, which is the default"
        )
    order = stream(seed, "mend", "dialogues").permutation(len(names))[:most]
    drawn: dict[str, list[TurnResult]] = {names[int(place)]: [] for place in order}
    for turn in results:
        if turn.dialogue_id in drawn and _counts(turn):
            drawn[turn.dialogue_id].append(turn)
    return drawn


class _Measurement:
    """Calls the bot without and with each remedy, dialogue by dialogue."""

    def __init__(self, campaign: Campaign, drawn: Mapping[str, Sequence[TurnResult]]) -> None:
        self._campaign = campaign
        self._folding = Folding(campaign.comparison)
        self._drawn = drawn
        self._ids = frozenset(campaign.data.ids)
        self._found = tuple(map(RemedyResult, REMEDIES))
        self._ontology = frozenset(words_of_ontology(campaign.data.ontology))
        self._plain = SpellingCorrector(self._ontology)
        self._of_first = SaidWords(turn for name in list(drawn)[::2] for turn in drawn[name])
        self._contexts = self._failures = self._left_out = 0

    def run(self, progress: Progress) -> MendingResult:
        """Measure all dialogues, or as many as the budget allows."""
        predictor, names, done = self._campaign.predictor, list(self._drawn), 0
        for start in range(0, len(names), _TOGETHER):
            cases = {
                place: list(self._cases(names[place], first=place % 2 == 0))
                for place in range(start, min(start + _TOGETHER, len(names)))
            }
            asked = [context for of in cases.values() for case in of for context in case.asks]
            answers = predictor.predict(asked)
            for place, of in cases.items():
                if all(context in answers for case in of for context in case.asks):
                    self._add(HALVES[place % 2], of, answers)
                    done += 1
            progress(done, len(names))
            predictor.forget()
            if predictor.stopped():
                break
        if not done:
            raise UserError(f"no dialogue was measured: {predictor.stopped()}")
        every = SaidWords(turn for turns in self._drawn.values() for turn in turns)
        words = self._words(every.learned())
        facts = self._campaign.judges.facts
        return MendingResult(
            self._found,
            words,
            predictor.calls,
            predictor.stopped(),
            contexts=self._contexts,
            failures=self._failures,
            left_out=self._left_out,
            undecided="" if facts is None else undecided_text(facts),
        )

    def _words(self, learned: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the words of the conversations for each corrector."""
        strange = frozenset(word for word in learned if not self._plain.knows(word))
        return {"spelling": self._ontology | strange, "vocabulary": self._ontology | learned}

    @property
    def _varies(self) -> bool:
        """Whether the bot may answer the same context differently each time."""
        return not self._campaign.predictor.repeats

    def _correctors(self, name: str, *, first: bool) -> Correctors:
        """Return correctors that have learned the first half's words, except one dialogue's."""
        words = self._words(self._of_first.learned(name if first else None))
        return Correctors(
            SpellingCorrector(words["spelling"]),
            SpellingCorrector(words["vocabulary"], only_own=True),
        )

    def _cases(self, name: str, *, first: bool) -> Iterator[_Case]:
        """Yield the turns of a dialogue, which may be in the first half."""
        correctors = self._correctors(name, first=first)
        for turn in self._drawn[name]:
            dialogue = clean_dialogue(self._campaign.data, self._ids, turn)
            index = turn.turn_index
            clean = dialogue.context(index)
            variants = tuple(
                (one, dialogue.context(index, {**dict(enumerate(one.context)), index: one.text}))
                for one in turn.variants
                if _is_plain(one)
            )
            seen = {
                context: (context, *(one.applied(context, correctors) for one in REMEDIES))
                for context in (clean, *(context for _, context in variants))
            }
            yield _Case(turn, clean, clean.again(1) if self._varies else clean, variants, seen)

    def _add(self, half: Half, cases: Iterable[_Case], answers: Mapping[Context, Answer]) -> None:
        """Add the counts of a dialogue to the results of all remedies."""
        totals = [MendingCounts() for _ in REMEDIES]
        for case in cases:
            asked = frozenset(case.asks)
            self._contexts += len(asked)
            given = {
                context: answer
                for context in asked
                if isinstance(answer := answers[context], Prediction)
            }
            # A failure says nothing about a remedy, because the bot may fail at any time.
            if failures := len(asked) - len(given):
                self._failures += failures
                self._left_out += 1
                continue
            clean = given[case.reference]
            self._folding.prepare([(case.clean, [clean], [given[one] for one in case.asks])])
            without = self._broken(case, 0, clean, given)
            for place, found in enumerate(self._found):
                broken = self._broken(case, place + 1, clean, given, without)
                totals[place] += _counts_of(without, broken)
                totals[place] += self._counts_of_clean(case, place + 1, clean, given)
                result = found.of(half)
                result.without.add(_with_outcomes(case.turn, without))
                result.behind.add(_with_outcomes(case.turn, broken))
        for found, total in zip(self._found, totals, strict=True):
            found.of(half).dialogues.append(total)

    def _broken(
        self,
        case: _Case,
        place: int,
        clean: Prediction,
        answers: Mapping[Context, Prediction],
        without: Mapping[int, bool] | None = None,
    ) -> dict[int, bool]:
        """Return for each variant, by number, whether it breaks.

        ``place`` selects the contexts that the bot sees. ``without`` has the result without a
        remedy, which applies if the remedy does not change the answer.
        """
        broken = {}
        for variant, context in case.variants:
            number, seen = variant.index, case.seen[context][place]
            answer = answers[seen]
            if without is not None and answer == answers[context]:
                broken[number] = without[number]
            elif without is None and not self._varies and answer.state == variant.state:
                # The report's verdict also knows which slips a value may keep.
                broken[number] = variant.outcome == "violation"
            else:
                broken[number] = not self._right(case, clean, answer, seen)
        return broken

    def _counts_of_clean(
        self, case: _Case, place: int, clean: Prediction, answers: Mapping[Context, Prediction]
    ) -> MendingCounts:
        """Return the counts of a clean turn with a remedy before the bot."""
        seen = case.seen[case.clean][place]
        if seen == case.clean:
            return MendingCounts(turns=1)
        right = self._right(case, clean, answers[seen], seen)
        return MendingCounts(turns=1, altered=1, changed=int(not right))

    def _right(self, case: _Case, clean: Prediction, answer: Prediction, seen: Context) -> bool:
        """Return whether an answer agrees with the label, or otherwise with the clean answer."""
        folded = self._folding.to_clean([answer], [clean], clean.state, case.clean, seen=seen)
        if folded[0].state == clean.state:
            return True
        label = case.turn.label
        # A recorded reply is one of many right ones.
        if label is None or case.turn.outcome_kind == REPLY:
            return False
        return self._folding.agree(label, answer.state, case.clean)


def _counts_of(without: Mapping[int, bool], broken: Mapping[int, bool]) -> MendingCounts:
    """Return the counts of the variants of a turn."""
    return MendingCounts(
        violations=sum(without.values()),
        mended=sum(failed and not broken[number] for number, failed in without.items()),
        held=sum(not failed for failed in without.values()),
        spoilt=sum(broken[number] and not failed for number, failed in without.items()),
    )


def _is_plain(variant: VariantResult) -> bool:
    """Return whether a variant changes only the user's utterances."""
    moved = variant.exchanges or variant.reference or variant.transcript
    return variant.valid and variant.outcome in _JUDGED and not moved


def _with_outcomes(turn: TurnResult, broken: Mapping[int, bool]) -> TurnResult:
    """Return a turn with other outcomes of its variants."""

    def judged(one: VariantResult) -> VariantResult:
        if (failed := broken.get(one.index)) is None:
            return one
        if failed:
            return replace(one, outcome="violation")
        return replace(one, outcome="improved" if one.outcome == "improved" else "held")

    return replace(turn, variants=tuple(map(judged, turn.variants)))


def try_remedies(
    campaign: Campaign, drawn: Mapping[str, Sequence[TurnResult]], progress: Progress
) -> MendingResult:
    """Measure all remedies on the drawn dialogues. Every second dialogue is in the first half.

    Raises:
        UserError: the dialogues differ from the report's, or the bot cannot be called.
    """
    return _Measurement(campaign, drawn).run(progress)
