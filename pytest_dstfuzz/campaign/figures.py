"""Figures of a campaign: rates, intervals and counts, computed in one pass over its results."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from statistics import NormalDist
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from pytest_dstfuzz.campaign.results import (
    RUN_OUTCOMES,
    ConversationTurn,
    TurnResult,
    VariantResult,
)

__all__ = [
    "FEWEST_DIALOGUES",
    "TURNS",
    "Counts",
    "EstimatedFailures",
    "ExpectedTally",
    "binomial_interval",
    "count",
    "interval_name",
    "ratio",
    "ratio_interval",
    "tally_results",
]


class ResultTally(Protocol):
    """Base class of collectors. A collector keeps only the data that its figures need."""

    def add(self, turn: TurnResult, /) -> None:
        """Count the variants in a result."""


_Tally = TypeVar("_Tally", bound=ResultTally)


def tally_results(tally: _Tally, results: Iterable[TurnResult]) -> _Tally:
    """Add all results to ``tally`` and return it. Their order does not matter."""
    for turn in results:
        tally.add(turn)
    return tally


class DialogueNumbers(dict[str, int]):
    """Numbers dialogues from 0 in order of appearance. Several sums share the numbers."""

    def __missing__(self, dialogue: str) -> int:
        self[dialogue] = number = len(self)
        return number


class DialogueSums:
    """Integer sums for each dialogue. A sum has 4 bytes and must be below 2 ** 31."""

    def __init__(self, columns: int, numbers: DialogueNumbers | None = None) -> None:
        self._columns: Final = columns
        self._numbers = DialogueNumbers() if numbers is None else numbers
        self._sums = array("i")

    def add(self, dialogue: str, *parts: int) -> None:
        """Add numbers to the sums of a dialogue, one number per sum."""
        start = self._numbers[dialogue] * self._columns
        if (more := start + self._columns - len(self._sums)) > 0:
            self._sums.frombytes(bytes(more * self._sums.itemsize))
        for place, part in enumerate(parts, start):
            self._sums[place] += part

    def rows(self, *columns: int) -> list[tuple[int, ...]]:
        """Return some columns of each dialogue. Dialogues without numbers have zeros."""
        found = (self._sums[column :: self._columns] for column in columns)
        return list(zip(*found, strict=True))

    def pairs(self, part: int, whole: int) -> list[tuple[int, int]]:
        """Return two columns in the form that `ratio_interval` needs."""
        return [(row[0], row[1]) for row in self.rows(part, whole)]


class DistinctCount:
    """Counts distinct texts. It stores 8 bytes of each text's digest."""

    #: Number of new digests before duplicates are dropped.
    _ROOM: Final = 4096

    def __init__(self) -> None:
        self._digests = array("Q")
        self._full = self._ROOM

    def add(self, text: str) -> None:
        """Count a text if it is new."""
        self._digests.append(_digest(text))
        if len(self._digests) >= self._full:
            self._drop_doubles()
            self._full = 2 * len(self._digests) + self._ROOM

    @property
    def value(self) -> int:
        """The number of distinct texts."""
        self._drop_doubles()
        return len(self._digests)

    def _drop_doubles(self) -> None:
        self._digests = array("Q", np.unique(self._digests).tobytes())


class ExactSum:
    """A running sum of floats. Like in `math.fsum`, their order does not matter.

    The partial sums do not overlap and are exact (Shewchuk, Discrete & Computational Geometry 18,
    1997, pages 305 to 363). If the values have similar sizes, there are only a few partial sums.
    """

    __slots__ = ("_partials", "count")

    def __init__(self) -> None:
        self._partials: list[float] = []
        #: Number of added values.
        self.count = 0

    def add(self, value: float) -> None:
        """Add a finite value to the sum."""
        kept = 0
        for part in self._partials:
            high, low = (value, part) if abs(value) >= abs(part) else (part, value)
            value = high + low
            if rest := low - (value - high):
                self._partials[kept] = rest
                kept += 1
        self._partials[kept:] = [value]
        self.count += 1

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return math.fsum(self._partials)

    @property
    def mean(self) -> float:
        """The mean, or 0 without values."""
        return self.value / self.count if self.count else 0.0


class LastByTurn:
    """A few numbers for each turn, 8 bytes each. Later numbers of a turn replace earlier ones.

    Several relations and tests may have results for one turn, but its clean answer counts once.
    """

    def __init__(self, columns: int) -> None:
        self._columns: Final = columns
        self._digests = array("Q")
        self._values = array("d")

    def add(self, turn: str, *values: float) -> None:
        """Set the numbers of a turn by its id."""
        self._digests.append(_digest(turn))
        self._values.extend(values)

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of every turn in arbitrary order."""
        if not self._digests:
            return []
        # Reversed, because `np.unique` keeps the first of several equal digests.
        _, places = np.unique(np.frombuffer(self._digests, np.uint64)[::-1], return_index=True)
        table = np.frombuffer(self._values, np.float64).reshape(-1, self._columns)[::-1]
        return list(map(tuple, table[places].tolist()))


def _digest(text: str) -> int:
    """Return 64 bits of the digest of a text."""
    coded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(coded, digest_size=8).digest(), "little")


#: Minimum number of dialogues for an interval. With fewer dialogues, no method reaches its level. A
#: comparison with a baseline needs the same number.
FEWEST_DIALOGUES: Final = 6
#: With fewer dialogues, an interval is called approximate.
FEW_DIALOGUES: Final = 20


def ratio_interval(
    pairs: Sequence[tuple[int, int]], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a ratio of sums over dialogues.

    ``pairs`` are the numerator and denominator of each dialogue. If all numerators are 0, the upper
    bound is Clopper and Pearson's for 0 of n dialogues: ``1 - ((1 - level) / 2) ** (1 / n)``, about
    3.7 / n for 95 %. If all numerators equal their denominators, the lower bound is computed in the
    same way. If fewer than `FEWEST_DIALOGUES` dialogues have a denominator above 0, the result is
    ``None``.
    """
    # Sort the pairs, because sums of floats depend on their order.
    tested = sorted(pair for pair in pairs if pair[1])
    if len(tested) < FEWEST_DIALOGUES:
        return None
    part, whole = (sum(column) for column in zip(*tested, strict=True))
    trials = float(len(tested)) if part in (0, whole) else _trials_worth(tested, level)
    return binomial_interval(trials * part / whole, trials, level)


def mean_interval(
    pairs: Sequence[tuple[float, float]], most: float, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval for a mean of estimated probabilities, over dialogues.

    It is computed like `ratio_interval`, but an estimate may be more precise than one trial per
    turn. For n dialogues, the number of trials is at most ``n ** 2 / 4``, because a few dialogues
    may be alike by chance. ``tests/campaign/expected_simulation.md`` reports the coverage.

    Args:
        pairs: sum and number of the estimates of each dialogue.
        most: the maximum of the mean, above 0: its value if every turn fails that can fail.
        level: the confidence level.

    Returns:
        ``None`` with fewer than `FEWEST_DIALOGUES` dialogues.
    """
    tested = sorted((part / most, whole) for part, whole in pairs if whole)
    if len(tested) < FEWEST_DIALOGUES:
        return None
    part, whole = (math.fsum(column) for column in zip(*tested, strict=True))
    rate = min(part / whole, 1.0)
    trials = float(len(tested))
    if 0.0 < rate < 1.0:
        trials = _trials_worth(tested, level, most=len(tested) ** 2 / 4)
    low, high = binomial_interval(trials * rate, trials, level)
    return most * low, most * high


def interval_name(dialogues: int) -> str:
    """Return the name of a 95 % interval, with the number of dialogues.

    >>> interval_name(12), interval_name(20)
    ('approximate 95 % interval', '95 % interval')
    """
    return f"{'approximate ' if dialogues < FEW_DIALOGUES else ''}95 % interval"


def _trials_worth(
    pairs: Sequence[tuple[float, float]], level: float, most: float | None = None
) -> float:
    """Return the effective number of independent trials for an interval of ``level``.

    The result is at most ``most``. If ``most`` is ``None``, it is at most the sum of denominators.
    """
    parts, wholes = np.array(pairs, dtype=np.float64).T
    count, total = len(parts), float(wholes.sum())
    rate = float(parts.sum()) / total
    # Compute the change of the rate if a dialogue is left out.
    influences = (parts - rate * wholes) / (total - wholes)
    squares = influences**2
    variance = (count - 1) / count * float(squares.sum())
    trials = rate * (1 - rate) / variance if variance else total
    trials = min(trials, total if most is None else most)
    freedom = float(count - 1)
    # 1 / count if all dialogues contribute equally to the variance, 1 if only one does.
    share = float((squares**2).sum() / squares.sum() ** 2) if variance else 0.0
    if share > 1 / count:
        freedom = min(freedom, 2 / (share - 1 / count))
    return trials * (NormalDist().inv_cdf((1 + level) / 2) / t_quantile(freedom, level)) ** 2


def binomial_interval(part: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's interval (Biometrika 26, 1934, pages 404 to 413).

    ``part`` is from 0 to ``trials``, and ``trials`` is above 0. They need not be integers.
    """
    # Import late, because a run with few dialogues does not need scipy.
    from scipy.special import betaincinv  # noqa: PLC0415

    tail, rest = (1 - level) / 2, trials - part
    low = 0.0 if part <= 0 else float(betaincinv(part, rest + 1, tail))
    high = 1.0 if rest <= 0 else float(betaincinv(part + 1, rest, 1 - tail))
    return low, high


def t_quantile(freedom: float, level: float) -> float:
    """Return the two-sided quantile of Student's t for probability ``level``."""
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    return float(stdtrit(freedom, (1 + level) / 2))


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of variants by outcome.

    ``generated == vacuous + duplicate + vetoed + over_rate + unstable + valid`` and
    ``valid == held + violations + uncredited + carried + improved + errors`` always hold.
    """

    vacuous: int = 0
    duplicate: int = 0
    vetoed: int = 0
    over_rate: int = 0
    held: int = 0
    violations: int = 0
    #: In the row of a transformation or operator: violations that its edits did not cause, because
    #: the perturbed context alone breaks the relation, or whose cause is unknown because the budget
    #: ended. It is 0 in the total, in which every violation counts.
    uncredited: int = 0
    carried: int = 0
    improved: int = 0
    errors: int = 0
    #: Variants that were run, but about which the sequential test was undecided.
    unstable: int = 0

    @property
    def valid(self) -> int:
        """Number of variants that were run and are not unstable."""
        broken = self.violations + self.uncredited + self.carried
        return self.held + broken + self.improved + self.errors

    @property
    def answered(self) -> int:
        """Number of variants that were run without a failure of the tracker."""
        return self.valid - self.errors

    @property
    def generated(self) -> int:
        """Number of all variants."""
        not_run = self.vacuous + self.duplicate + self.vetoed + self.over_rate
        return not_run + self.unstable + self.valid

    @property
    def valid_rate(self) -> float | None:
        """Valid / generated; ``None`` if nothing was generated."""
        return ratio(self.valid, self.generated)

    @property
    def failure_rate(self) -> float | None:
        """Violations / valid; ``None`` if no valid variant has an answer."""
        return ratio(self.violations, self.valid) if self.answered else None

    @property
    def yield_rate(self) -> float | None:
        """Violations / generated; ``None`` if nothing was generated."""
        return ratio(self.violations, self.generated)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(Counts))
        )

    def to_json(self) -> dict[str, Any]:
        """Return counts, sums and rates as a plain dictionary."""
        return {
            "generated": self.generated,
            **{item.name: getattr(self, item.name) for item in fields(self)},
            "valid": self.valid,
            "valid_rate": self.valid_rate,
            "failure_rate": self.failure_rate,
            "yield": self.yield_rate,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts of a campaign, by transformation and operator."""

    total: Counts
    #: Counts by transformation. A variant with several transformations counts in each row.
    transformations: dict[str, Counts]
    #: Counts by (transformation, operator).
    operators: dict[tuple[str, str], Counts]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "total": self.total.to_json(),
            "transformations": {
                name: counts.to_json() for name, counts in self.transformations.items()
            },
            "operators": [
                {"transformation": transformation, "operator": operator, **counts.to_json()}
                for (transformation, operator), counts in self.operators.items()
            ],
        }


#: Outcome of a variant -> field of `Counts`, if the names differ.
_COLUMNS = {"violation": "violations", "error": "errors"}


def column(variant: VariantResult, *, credit: bool) -> str:
    """Return the field of `Counts` that counts a variant.

    If ``credit`` is true, a violation counts only if its own edits caused it, alone or with the
    context.
    """
    if credit and variant.outcome == "violation" and variant.cause not in ("turn", "both"):
        return "uncredited"
    return _COLUMNS.get(variant.outcome, variant.outcome)


def count(variants: Iterable[VariantResult], *, credit: bool = False) -> Counts:
    """Count variants by outcome, see `column`."""
    return Counts(**Counter(column(variant, credit=credit) for variant in variants))


class LedgerTally:
    """Builds a `Ledger` from results."""

    def __init__(self) -> None:
        self._total: Counter[str] = Counter()
        self._rows: dict[tuple[str, ...], Counter[str]] = {}

    def add(self, turn: TurnResult) -> None:
        """Count the variants of a turn."""
        for variant in turn.variants:
            self._total[column(variant, credit=False)] += 1
            credited = column(variant, credit=True)
            keys: set[tuple[str, ...]] = {(edit.transformation,) for edit in variant.edits}
            keys.update((edit.transformation, edit.operator) for edit in variant.edits)
            for key in keys:
                self._rows.setdefault(key, Counter())[credited] += 1

    @property
    def ledger(self) -> Ledger:
        """The ledger of the added turns, with rows sorted by name."""
        counts = {key: Counts(**row) for key, row in sorted(self._rows.items())}
        return Ledger(
            total=Counts(**self._total),
            transformations={key[0]: row for key, row in counts.items() if len(key) == 1},
            operators={(key[0], key[1]): row for key, row in counts.items() if len(key) == 2},
        )


def ledger(results: Iterable[TurnResult]) -> Ledger:
    """Return the ledger of a campaign."""
    return tally_results(LedgerTally(), results).ledger


def ratio(part: int, whole: int) -> float | None:
    """Return a share, or ``None`` if ``whole`` is 0."""
    return part / whole if whole else None


#: Minimum effective sample size for an estimate.
FEWEST: Final = 30
#: Estimates are per 1,000 user turns.
TURNS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ConversationFailures:
    """The failures in whole conversations, with slips from a noise model."""

    #: Turns per 1,000 whose answer differs from that in the unmodified conversation, without
    #: corrected answers.
    per_1000: float
    #: 95 % interval over dialogues; ``None`` with too few dialogues.
    interval: tuple[float, float] | None
    #: Share of the conversations with such a turn, and its interval.
    broken_share: float
    broken_share_interval: tuple[float, float] | None
    #: Number of conversations and of their turns.
    conversations: int
    turns: int
    #: The part of `per_1000` after a recoverable slip in a locked word.
    in_locked_per_1000: float
    #: Turns per 1,000 without a verdict; they count as unchanged.
    unjudged_per_1000: float
    #: The figures by label, as in `EstimatedFailures`.
    right_to_wrong_per_1000: float | None = None
    wrong_to_wrong_per_1000: float | None = None
    corrected_per_1000: float | None = None


@dataclass(frozen=True, slots=True)
class AccuracyWithSlips:
    """The shares of right answers, in [0, 1]."""

    #: Without slips, and with slips in one turn.
    clean: float
    one_turn: float
    #: With slips in the whole conversation; ``None`` if no whole conversation was run.
    conversation: float | None


@dataclass(frozen=True, slots=True)
class EstimatedFailures:
    """The estimated failures of 1,000 user turns under a noise model."""

    #: Estimated failures per 1,000 user turns; ``None`` if the sample is too small.
    per_1000: float | None
    #: 95 % interval over dialogues, per 1,000 turns; ``None`` with too few dialogues.
    interval: tuple[float, float] | None
    #: Effective sample size of the variants that were run.
    effective_sample_size: float
    #: Typing errors per word.
    slip_rate: float | None
    #: Names of the noise models.
    noise: str
    #: Number of user turns behind the estimate.
    turns: int
    #: Turns per 1,000 with typing errors that touch no lock, and with typing errors that touch one.
    distorted_per_1000: float
    locked_per_1000: float
    #: Distorted turns per 1,000 without a verdict: over the edit rates, or without an answer.
    unjudged_per_1000: float
    #: Turns per 1,000 that fail after a right clean answer, that fail after a wrong clean answer,
    #: and whose wrong answer a variant corrects; ``None`` if a turn has no label.
    right_to_wrong_per_1000: float | None = None
    wrong_to_wrong_per_1000: float | None = None
    corrected_per_1000: float | None = None
    #: The part of `per_1000` with a recoverable slip in a locked word; ``None`` if unknown.
    in_locked_per_1000: float | None = None
    #: Shares of right answers; ``None`` if a turn has no label.
    accuracy: AccuracyWithSlips | None = None
    #: Whole conversations with slips; ``None`` if none was run.
    conversation: ConversationFailures | None = None
    #: The reason if there is no estimate, else ``""``.
    reason: str = ""


def turn_failures(turn: TurnResult) -> float:
    """Return the estimated probability that a turn fails. See `has_expectation`."""
    return _weighed(turn, _sampled(turn), "failure")


def weight_of(turn: TurnResult, violation: VariantResult) -> float:
    """Return the share of `turn_failures` from one violation and its duplicates."""
    if violation.weight is None:
        return 0.0
    same = [variant for variant in _sampled(turn) if _text(variant) == _text(violation)]
    return _weighed(turn, same, "failure")


def has_expectation(turn: TurnResult) -> bool:
    """Return whether the expected number of failures is defined for a turn.

    This needs a noise model, an answer to the clean turn, and a relation that applies.
    """
    return (
        turn.noise is not None
        and turn.clean_state is not None
        and turn.outcome not in ("skipped", "inapplicable")
    )


class ConversationTally:
    """Counts the failures in whole conversations with slips."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._labelled = True
        #: Failures and turns of each dialogue.
        self._dialogues = DialogueSums(2)
        #: (dialogue, number) of each conversation -> whether a turn fails.
        self._conversations: dict[tuple[str, int], bool] = {}

    def add(self, turn: TurnResult) -> None:
        """Count the turn in each conversation."""
        counts = self._counts
        for one in turn.conversations:
            failed = one.outcome == "violation"
            counts["turns"] += 1
            counts["failed"] += failed
            counts["in_locked"] += failed and one.in_locked
            counts["right_to_wrong"] += failed and turn.is_right
            counts["corrected"] += one.outcome == "improved"
            counts["unjudged"] += one.outcome in ("error", "unstable")
            counts["right"] += _right_with_slips(turn, one)
            self._labelled = self._labelled and turn.label is not None
            self._dialogues.add(turn.dialogue_id, failed, 1)
            place = turn.dialogue_id, one.number
            self._conversations[place] = self._conversations.get(place, False) or failed

    @property
    def accuracy(self) -> float | None:
        """The share of right answers; ``None`` without a conversation."""
        return ratio(self._counts["right"], self._counts["turns"])

    @property
    def failures(self) -> ConversationFailures | None:
        """The figures; ``None`` without a conversation."""
        counts, turns = self._counts, self._counts["turns"]
        if not turns:
            return None

        def rate(count: int) -> float:
            return TURNS * count / turns

        broken = DialogueSums(2)
        for (dialogue, _), failed in self._conversations.items():
            broken.add(dialogue, failed, 1)
        interval = ratio_interval(self._dialogues.pairs(0, 1))
        wrong = counts["failed"] - counts["right_to_wrong"]
        return ConversationFailures(
            per_1000=rate(counts["failed"]),
            interval=None if interval is None else (TURNS * interval[0], TURNS * interval[1]),
            broken_share=sum(self._conversations.values()) / len(self._conversations),
            broken_share_interval=ratio_interval(broken.pairs(0, 1)),
            conversations=len(self._conversations),
            turns=turns,
            in_locked_per_1000=rate(counts["in_locked"]),
            unjudged_per_1000=rate(counts["unjudged"]),
            right_to_wrong_per_1000=rate(counts["right_to_wrong"]) if self._labelled else None,
            wrong_to_wrong_per_1000=rate(wrong) if self._labelled else None,
            corrected_per_1000=rate(counts["corrected"]) if self._labelled else None,
        )


def _right_with_slips(turn: TurnResult, one: ConversationTurn) -> bool:
    """Return whether an answer is right. Without a verdict, use the verdict on the clean answer."""
    if one.outcome == "improved":
        return one.fully_corrected
    return turn.is_right and one.outcome != "violation"


class ExpectedTally:
    """Estimates the failures of 1,000 user turns."""

    def __init__(self) -> None:
        #: (noise models, slip rate) of the turns.
        self._models: set[tuple[str, float]] = set()
        self._weights, self._squares = ExactSum(), ExactSum()
        self._failing, self._unjudged = ExactSum(), ExactSum()
        self._distorted, self._locked = ExactSum(), ExactSum()
        self._right, self._corrected = ExactSum(), ExactSum()
        self._clean_right, self._fully_corrected = ExactSum(), ExactSum()
        self._in_locked = ExactSum()
        self._labelled = True
        self._dialogues: dict[str, ExactSum] = {}
        self._conversations = ConversationTally()

    def add(self, turn: TurnResult) -> None:
        """Record a turn if it has an expectation and its variants are a weighted sample."""
        noise = turn.noise
        if noise is None or not noise.sampled or not has_expectation(turn):
            return
        self._models.add((noise.models, noise.slip_rate))
        for variant in _sampled(turn):
            if variant.valid:
                weight = variant.weight or 0.0
                self._weights.add(weight)
                self._squares.add(weight * weight)
        failing = turn_failures(turn)
        self._failing.add(failing)
        self._dialogues.setdefault(turn.dialogue_id, ExactSum()).add(failing)
        self._distorted.add(noise.distorted)
        self._locked.add(noise.locked)
        locked = [variant for variant in _sampled(turn) if variant.in_locked]
        self._in_locked.add(_weighed(turn, locked, "failure"))
        self._unjudged.add(_weighed(turn, _sampled(turn), "unjudged"))
        self._labelled = self._labelled and turn.label is not None
        self._right.add(failing if turn.is_right else 0.0)
        self._corrected.add(_weighed(turn, _sampled(turn), "corrected"))
        self._clean_right.add(float(turn.is_right))
        now = [one for one in _sampled(turn) if _ran(turn, one).fully_corrected]
        self._fully_corrected.add(_weighed(turn, now, "corrected"))
        self._conversations.add(turn)

    @property
    def expected(self) -> EstimatedFailures | None:
        """The estimate; ``None`` without a weighted sample."""
        if not self._models:
            return None
        squares, models = self._squares.value, self._models
        size = self._weights.value**2 / squares if squares else 0.0
        distorted = self._distorted.mean
        reason = ""
        if len(models) > 1:
            reason = "tests have different noise models or slip rates"
        elif size < FEWEST:
            reason = (
                f"needs a sample of {FEWEST} variants, got {size:.0f}: test more turns, or more "
                "variants of each"
            )
        interval = None
        if not reason and distorted:
            found = [(parts.value, float(parts.count)) for parts in self._dialogues.values()]
            interval = mean_interval(found, distorted)
        name, rate = min(models)
        split = self._labelled and not reason
        right, corrected = self._right.mean, self._corrected.mean
        clean = self._clean_right.mean
        accuracy = AccuracyWithSlips(
            clean, clean - right + self._fully_corrected.mean, self._conversations.accuracy
        )
        return EstimatedFailures(
            per_1000=None if reason else TURNS * self._failing.mean,
            interval=None if interval is None else (TURNS * interval[0], TURNS * interval[1]),
            effective_sample_size=size,
            slip_rate=rate if len(models) == 1 else None,
            noise=name if len(models) == 1 else "",
            turns=self._failing.count,
            distorted_per_1000=TURNS * distorted,
            locked_per_1000=TURNS * self._locked.mean,
            in_locked_per_1000=None if reason else TURNS * self._in_locked.mean,
            unjudged_per_1000=TURNS * self._unjudged.mean,
            right_to_wrong_per_1000=TURNS * right if split else None,
            wrong_to_wrong_per_1000=TURNS * (self._failing.mean - right) if split else None,
            corrected_per_1000=TURNS * corrected if split else None,
            accuracy=accuracy if split else None,
            conversation=None if reason else self._conversations.failures,
            reason=reason,
        )


@dataclass(frozen=True, slots=True)
class Reach:
    """The number of words that the noise model never mistypes."""

    #: Number of words, and number of words that are never mistyped.
    words: int
    unreached: int
    #: Reason why words are never mistyped -> number of words, most frequent first.
    reasons: Mapping[str, int]
    #: Frequent words that are never mistyped -> number of times.
    examples: Mapping[str, int]

    @property
    def share(self) -> float:
        """The share of words that are never mistyped, in [0, 1]."""
        return self.unreached / self.words


#: Number of examples in a `Reach`.
_EXAMPLES: Final = 10


class ReachTally:
    """Counts the words that are never mistyped."""

    def __init__(self) -> None:
        self._words = 0
        self._reasons: Counter[str] = Counter()
        self._texts: Counter[str] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Add the words of a turn."""
        if turn.noise is not None:
            found = turn.noise.unreached
            self.add_words(turn.noise.words, [(one.text, one.reason) for one in found])

    def add_words(self, count: int, unreached: Sequence[tuple[str, str]]) -> None:
        """Add ``count`` words. Record those that are never mistyped, with the reasons."""
        self._words += count
        self._texts.update(text for text, _ in unreached)
        self._reasons.update(reason for _, reason in unreached)

    @property
    def reach(self) -> Reach | None:
        """The counts; ``None`` without words."""
        if not self._words:
            return None
        examples = _in_order(self._texts)[:_EXAMPLES]
        reasons = dict(_in_order(self._reasons))
        return Reach(self._words, self._reasons.total(), reasons, dict(examples))


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return counts in descending order. Equal counts are sorted by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _sampled(turn: TurnResult) -> list[VariantResult]:
    """Return the variants that were drawn from the noise model."""
    return [variant for variant in turn.variants if variant.weight is not None]


def _text(variant: VariantResult) -> tuple[str, float | None]:
    """Return a key for a variant's text. It distinguishes redacted texts that look equal."""
    return variant.text, variant.log_probability


def _weighed(turn: TurnResult, variants: Iterable[VariantResult], outcome: str) -> float:
    """Return the total weight of variants with an outcome, see `_outcome`."""
    return math.fsum(one.weight or 0.0 for one in variants if _outcome(turn, one) == outcome)


def _ran(turn: TurnResult, variant: VariantResult) -> VariantResult:
    """Return a sampled variant. A duplicate is replaced by the variant that ran."""
    if variant.outcome != "duplicate":
        return variant
    same = _text(variant)
    return next(one for one in _sampled(turn) if one.valid and _text(one) == same)


def _outcome(turn: TurnResult, variant: VariantResult) -> str:
    """Return the outcome of a sampled variant.

    It is ``failure``, ``corrected``, ``kept`` or ``unjudged``.
    """
    variant = _ran(turn, variant)
    if variant.outcome == "vacuous":
        return "kept"
    if variant.outcome not in RUN_OUTCOMES or variant.outcome == "error":
        return "unjudged"
    if variant.outcome == "improved":
        return "corrected"
    broken = variant.outcome == "violation" and variant.cause != "context"
    return "failure" if broken else "kept"
