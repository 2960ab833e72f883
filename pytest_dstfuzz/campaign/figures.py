"""Figures of a campaign from one pass over its results: rates, intervals, ledger, yields."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from statistics import NormalDist
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult

__all__ = [
    "FEWEST_DIALOGUES",
    "Counts",
    "binomial_interval",
    "count",
    "interval_name",
    "ratio",
    "ratio_interval",
    "tallied",
]


class ResultTally(Protocol):
    """What takes in one result after the other, and keeps only what its figures need."""

    def add(self, turn: TurnResult, /) -> None:
        """Take in a result."""


_Tally = TypeVar("_Tally", bound=ResultTally)


def tallied(tally: _Tally, results: Iterable[TurnResult]) -> _Tally:
    """Return a tally that has taken in all results; their order does not matter."""
    for turn in results:
        tally.add(turn)
    return tally


class DialogueNumbers(dict[str, int]):
    """Id of a dialogue -> its number, from 0 in order of appearance; several sums share one."""

    def __missing__(self, dialogue: str) -> int:
        self[dialogue] = number = len(self)
        return number


class DialogueSums:
    """Sums of the same few whole numbers for each dialogue, in 4 bytes each: below 2 ** 31."""

    def __init__(self, columns: int, numbers: DialogueNumbers | None = None) -> None:
        self._columns: Final = columns
        self._numbers = DialogueNumbers() if numbers is None else numbers
        self._sums = array("i")

    def add(self, dialogue: str, *parts: int) -> None:
        """Add a number to each of the columns of a dialogue."""
        start = self._numbers[dialogue] * self._columns
        if (more := start + self._columns - len(self._sums)) > 0:
            self._sums.frombytes(bytes(more * self._sums.itemsize))
        for place, part in enumerate(parts, start):
            self._sums[place] += part

    def rows(self, *columns: int) -> list[tuple[int, ...]]:
        """Return those columns of each dialogue; zeros of one of which nothing was added."""
        found = (self._sums[column :: self._columns] for column in columns)
        return list(zip(*found, strict=True))

    def pairs(self, part: int, whole: int) -> list[tuple[int, int]]:
        """Return two of the columns, as `ratio_interval` takes them."""
        return [(row[0], row[1]) for row in self.rows(part, whole)]


class DistinctCount:
    """How many different texts there are, by 8 bytes of the digest of each."""

    #: Digests that may come between two times that those alike are dropped.
    _ROOM: Final = 4096

    def __init__(self) -> None:
        self._digests = array("Q")
        self._full = self._ROOM

    def add(self, text: str) -> None:
        """Take in a text."""
        self._digests.append(_digest(text))
        if len(self._digests) >= self._full:
            self._drop_doubles()
            self._full = 2 * len(self._digests) + self._ROOM

    @property
    def value(self) -> int:
        """The number of different texts."""
        self._drop_doubles()
        return len(self._digests)

    def _drop_doubles(self) -> None:
        self._digests = array("Q", np.unique(self._digests).tobytes())


class ExactSum:
    """A sum of floats that does not depend on their order: `math.fsum`, one by one.

    The partial sums do not overlap and lose nothing (Shewchuk, Discrete & Computational Geometry
    18, 1997, pages 305 to 363); there are a handful of them at most for values of like size.
    """

    __slots__ = ("_partials", "count")

    def __init__(self) -> None:
        self._partials: list[float] = []
        #: How many values were added.
        self.count = 0

    def add(self, value: float) -> None:
        """Add a finite value."""
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
        """The mean; 0 of none."""
        return self.value / self.count if self.count else 0.0


class LastByTurn:
    """A few numbers of each turn, in 8 bytes each; what is said of one last counts.

    Several relations and tests have a result for a turn, and its clean answer counts once.
    """

    def __init__(self, columns: int) -> None:
        self._columns: Final = columns
        self._digests = array("Q")
        self._values = array("d")

    def add(self, turn: str, *values: float) -> None:
        """Take in what is known of a turn, by its id."""
        self._digests.append(_digest(turn))
        self._values.extend(values)

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of every turn, in no order that means anything."""
        if not self._digests:
            return []
        # Backwards, as the first of those alike is kept.
        _, places = np.unique(np.frombuffer(self._digests, np.uint64)[::-1], return_index=True)
        table = np.frombuffer(self._values, np.float64).reshape(-1, self._columns)[::-1]
        return list(map(tuple, table[places].tolist()))


def _digest(text: str) -> int:
    """Return 64 bits of the digest of a text."""
    coded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(coded, digest_size=8).digest(), "little")


#: With fewer dialogues there is no interval: no method holds what it says. A comparison with
#: a baseline needs as many.
FEWEST_DIALOGUES: Final = 6
#: With fewer an interval is called approximate.
FEW_DIALOGUES: Final = 20


def ratio_interval(
    pairs: Sequence[tuple[int, int]], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a ratio of sums over dialogues.

    Where no dialogue has any part, the upper bound is Clopper and Pearson's for 0 of n
    dialogues, ``1 - ((1 - level) / 2) ** (1 / n)``: about 3.7 / n for 95 %. Likewise below 1
    where every dialogue is all part. ``pairs`` are numerator and denominator of each dialogue;
    where fewer than `FEWEST_DIALOGUES` have a denominator above 0 there is no interval.
    """
    # Sorted, as sums of floats depend on their order.
    tested = sorted(pair for pair in pairs if pair[1])
    if len(tested) < FEWEST_DIALOGUES:
        return None
    part, whole = (sum(column) for column in zip(*tested, strict=True))
    trials = float(len(tested)) if part in (0, whole) else _trials_worth(tested, level)
    return binomial_interval(trials * part / whole, trials, level)


def mean_interval(
    pairs: Sequence[tuple[float, float]], most: float, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a mean of estimated probabilities over dialogues.

    As `ratio_interval`, of a rate that may be known better than from as many trials as there are
    turns. So n dialogues are worth ``n ** 2 / 4`` trials at the most: few that are alike by chance
    would say too much of all others. How often it holds: ``tests/campaign/expected_simulation.md``.

    Args:
        pairs: sum of the estimates of each dialogue, and how many they are.
        most: what the mean would be if all failed that can; above 0.
        level: of the interval.

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
    """Return what a 95 % interval over so many dialogues may be called.

    >>> interval_name(12), interval_name(20)
    ('approximate 95 % interval', '95 % interval')
    """
    return f"{'approximate ' if dialogues < FEW_DIALOGUES else ''}95 % interval"


def _trials_worth(
    pairs: Sequence[tuple[float, float]], level: float, most: float | None = None
) -> float:
    """Return how many independent trials dialogues are worth, for an interval of ``level``.

    They are worth ``most`` at the most: as many as there are, where nobody says.
    """
    parts, wholes = np.array(pairs, dtype=np.float64).T
    count, total = len(parts), float(wholes.sum())
    rate = float(parts.sum()) / total
    # What the rate changes by when a dialogue is left out.
    influences = (parts - rate * wholes) / (total - wholes)
    squares = influences**2
    variance = (count - 1) / count * float(squares.sum())
    trials = rate * (1 - rate) / variance if variance else total
    trials = min(trials, total if most is None else most)
    freedom = float(count - 1)
    # 1 / count where all dialogues add alike to the variance, 1 where it is one's alone.
    share = float((squares**2).sum() / squares.sum() ** 2) if variance else 0.0
    if share > 1 / count:
        freedom = min(freedom, 2 / (share - 1 / count))
    return trials * (NormalDist().inv_cdf((1 + level) / 2) / _t_quantile(freedom, level)) ** 2


def binomial_interval(part: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's interval (Biometrika 26, 1934, pages 404 to 413).

    Neither ``part``, of 0 to ``trials``, nor these, above 0, need be whole numbers.
    """
    # Loads scipy, which a run of few dialogues does without.
    from scipy.special import betaincinv  # noqa: PLC0415

    tail, rest = (1 - level) / 2, trials - part
    low = 0.0 if part <= 0 else float(betaincinv(part, rest + 1, tail))
    high = 1.0 if rest <= 0 else float(betaincinv(part + 1, rest, 1 - tail))
    return low, high


def _t_quantile(freedom: float, level: float) -> float:
    """Return what Student's t stays within, either way, with probability ``level``."""
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    return float(stdtrit(freedom, (1 + level) / 2))


@dataclass(frozen=True, slots=True)
class Counts:
    """Variants by what became of them.

    ``generated == vacuous + duplicate + vetoed + over_rate + unstable + valid`` and
    ``valid == held + violations + uncredited + carried + improved + errors``, always.
    """

    vacuous: int = 0
    duplicate: int = 0
    vetoed: int = 0
    over_rate: int = 0
    held: int = 0
    violations: int = 0
    #: In rows of a transformation or operator: violations that its edits are not to
    #: blame for, because the perturbed context alone breaks the relation (or the budget
    #: ended before that was known). In the total, where every violation counts, 0.
    uncredited: int = 0
    carried: int = 0
    improved: int = 0
    errors: int = 0
    #: Run, and answered now so and now so: a sequential test decided nothing.
    unstable: int = 0

    @property
    def valid(self) -> int:
        """Variants that were run, and are not unstable."""
        broken = self.violations + self.uncredited + self.carried
        return self.held + broken + self.improved + self.errors

    @property
    def answered(self) -> int:
        """Variants that were run and got an answer: the tracker did not fail on them."""
        return self.valid - self.errors

    @property
    def generated(self) -> int:
        """All variants."""
        not_run = self.vacuous + self.duplicate + self.vetoed + self.over_rate
        return not_run + self.unstable + self.valid

    @property
    def valid_rate(self) -> float | None:
        """Valid / generated; ``None`` when nothing was generated."""
        return ratio(self.valid, self.generated)

    @property
    def failure_rate(self) -> float | None:
        """Violations / valid; ``None`` where no valid variant was answered."""
        return ratio(self.violations, self.valid) if self.answered else None

    @property
    def yield_rate(self) -> float | None:
        """The yield, violations / generated; ``None`` when nothing was generated."""
        return ratio(self.violations, self.generated)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(Counts))
        )

    def to_json(self) -> dict[str, Any]:
        """Return counts and rates as a plain dictionary, sums and rates included."""
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
    """The counts of a campaign."""

    total: Counts
    #: By transformation; a variant with edits of several is counted in each row.
    transformations: dict[str, Counts]
    #: By (transformation, operator), likewise.
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


#: Outcome of a variant -> field of `Counts`, where the names differ.
_COLUMNS = {"violation": "violations", "error": "errors"}


def column(variant: VariantResult, *, credit: bool) -> str:
    """Return the field of `Counts` in which a variant is counted.

    With ``credit`` a violation is one only where the variant's own edits caused it, alone or with
    the context.
    """
    if credit and variant.outcome == "violation" and variant.cause not in ("turn", "both"):
        return "uncredited"
    return _COLUMNS.get(variant.outcome, variant.outcome)


def count(variants: Iterable[VariantResult], *, credit: bool = False) -> Counts:
    """Count variants by what became of them; see `column`."""
    return Counts(**Counter(column(variant, credit=credit) for variant in variants))


class LedgerTally:
    """Counts the variants of results, one turn after the other."""

    def __init__(self) -> None:
        self._total: Counter[str] = Counter()
        self._rows: dict[tuple[str, ...], Counter[str]] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in what became of the variants of a turn."""
        for variant in turn.variants:
            self._total[column(variant, credit=False)] += 1
            credited = column(variant, credit=True)
            keys: set[tuple[str, ...]] = {(edit.transformation,) for edit in variant.edits}
            keys.update((edit.transformation, edit.operator) for edit in variant.edits)
            for key in keys:
                self._rows.setdefault(key, Counter())[credited] += 1

    @property
    def ledger(self) -> Ledger:
        """The ledger of what was taken in, its rows sorted by name."""
        counts = {key: Counts(**row) for key, row in sorted(self._rows.items())}
        return Ledger(
            total=Counts(**self._total),
            transformations={key[0]: row for key, row in counts.items() if len(key) == 1},
            operators={(key[0], key[1]): row for key, row in counts.items() if len(key) == 2},
        )


def ledger(results: Iterable[TurnResult]) -> Ledger:
    """Return the ledger of a campaign."""
    return tallied(LedgerTally(), results).ledger


def ratio(part: int, whole: int) -> float | None:
    """Return a share; ``None`` of nothing."""
    return part / whole if whole else None


#: Smallest effective sample size that a figure is given for.
FEWEST: Final = 30
#: What figures are given for: so many user turns.
TURNS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """How many of 1,000 user turns fail under a noise model."""

    #: ``None`` where too little was tested for a figure.
    per_1000: float | None
    #: 95 % interval over dialogues, of 1,000 turns; ``None`` with too few dialogues.
    interval: tuple[float, float] | None
    #: Of the variants that were run.
    effective_sample_size: float
    #: Slips per word.
    slip_rate: float | None
    #: The noise models, by name.
    noise: str
    #: User turns that the figure is of.
    turns: int
    #: Of 1,000: how many have a slip that touches no lock, and how many one that touches a lock.
    distorted_per_1000: float
    locked_per_1000: float
    #: Of 1,000: how many are distorted in a way that was not judged: over the edit rates, or
    #: without an answer of the tracker.
    unjudged_per_1000: float
    #: Why there is no figure; ``""`` where there is one.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FailingMass:
    """What a search without a density has found: at least so many turns fail."""

    #: Of 1,000 user turns, those that are typed as one of the violations found.
    per_1000_at_least: float
    #: Different violations of a turn in its clean context, or that its own edits cause.
    variants: int
    slip_rate: float
    noise: str
    turns: int


def turn_failures(turn: TurnResult) -> float:
    """Return the estimated probability that a turn fails; see `has_expectation`."""
    return _weighed(turn, turn.variants, "failure")


def weight_of(turn: TurnResult, violation: VariantResult) -> float:
    """Return what of `turn_failures` a violation accounts for, with the duplicates of it."""
    same = [variant for variant in turn.variants if _text(variant) == _text(violation)]
    return _weighed(turn, same, "failure")


def has_expectation(turn: TurnResult) -> bool:
    """Say whether a turn is one that failures are expected of.

    The tracker answered the clean turn, and the relation says something about it.
    """
    return (
        turn.noise is not None
        and turn.clean_state is not None
        and turn.outcome not in ("skipped", "inapplicable")
    )


class ExpectedTally:
    """Estimates the failures of 1,000 user turns, one turn after the other."""

    def __init__(self) -> None:
        #: (noise models, slip rate) of the turns.
        self._models: set[tuple[str, float]] = set()
        self._weights, self._squares = ExactSum(), ExactSum()
        self._failing, self._unjudged = ExactSum(), ExactSum()
        self._distorted, self._locked = ExactSum(), ExactSum()
        self._dialogues: dict[str, ExactSum] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in a turn, where it is one of a search by density that failures are expected of."""
        noise = turn.noise
        if noise is None or not noise.sampled or not has_expectation(turn):
            return
        self._models.add((noise.models, noise.slip_rate))
        for variant in turn.variants:
            if variant.valid:
                weight = variant.weight or 0.0
                self._weights.add(weight)
                self._squares.add(weight * weight)
        failing = turn_failures(turn)
        self._failing.add(failing)
        self._dialogues.setdefault(turn.dialogue_id, ExactSum()).add(failing)
        self._distorted.add(noise.distorted)
        self._locked.add(noise.locked)
        self._unjudged.add(_weighed(turn, turn.variants, "unjudged"))

    @property
    def expected(self) -> ExpectedFailures | None:
        """The estimate; ``None`` without a turn of a search by density."""
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
                f"the effective sample size is {size:.1f}, and below {FEWEST} a figure says too "
                "little: it takes more turns, or more variants of each"
            )
        interval = None
        if not reason and distorted:
            found = [(parts.value, float(parts.count)) for parts in self._dialogues.values()]
            interval = mean_interval(found, distorted)
        name, rate = min(models)
        return ExpectedFailures(
            per_1000=None if reason else TURNS * self._failing.mean,
            interval=None if interval is None else (TURNS * interval[0], TURNS * interval[1]),
            effective_sample_size=size,
            slip_rate=rate if len(models) == 1 else None,
            noise=name if len(models) == 1 else "",
            turns=self._failing.count,
            distorted_per_1000=TURNS * distorted,
            locked_per_1000=TURNS * self._locked.mean,
            unjudged_per_1000=TURNS * self._unjudged.mean,
            reason=reason,
        )


class MassTally:
    """Adds up how likely the violations found are, one turn after the other."""

    def __init__(self) -> None:
        self._models: set[tuple[str, float]] = set()
        self._chances = ExactSum()
        self._variants = 0

    def add(self, turn: TurnResult) -> None:
        """Take in a turn of a search without a density that failures are expected of."""
        noise = turn.noise
        if noise is None or noise.sampled or not has_expectation(turn):
            return
        self._models.add((noise.models, noise.slip_rate))
        found = distinct_chances(turn.violations)
        self._chances.add(math.fsum(found))
        self._variants += len(found)

    @property
    def mass(self) -> FailingMass | None:
        """What was found; ``None`` without a noise model.

        Nor is there any where tests have different models, or slip rates.
        """
        if len(self._models) != 1:
            return None
        (name, rate) = min(self._models)
        return FailingMass(
            per_1000_at_least=TURNS * self._chances.mean,
            variants=self._variants,
            slip_rate=rate,
            noise=name,
            turns=self._chances.count,
        )


def distinct_chances(violations: Iterable[VariantResult]) -> list[float]:
    """Return how likely each text is that breaks a turn in its clean context.

    No text of a turn is run twice.
    """
    return sorted(
        math.exp(variant.log_probability)
        for variant in violations
        if variant.log_probability is not None
        and (not variant.context_edits or variant.cause == "turn")
    )


def _text(variant: VariantResult) -> tuple[str, float | None]:
    """Return what tells texts apart, even those that are not to be shown and look the same."""
    return variant.text, variant.log_probability


def _weighed(turn: TurnResult, variants: Iterable[VariantResult], outcome: str) -> float:
    """Return the weights of variants with an outcome, see `_outcome`, added up."""
    return math.fsum(one.weight or 0.0 for one in variants if _outcome(turn, one) == outcome)


def _outcome(turn: TurnResult, variant: VariantResult) -> str:
    """Say what a variant of a sample counts as: ``failure``, ``kept`` or ``unjudged``."""
    if variant.outcome == "duplicate":
        # It was not run, as another one has its text: what holds for that one holds for it.
        same = _text(variant)
        variant = next(one for one in turn.variants if one.valid and _text(one) == same)
    if variant.outcome == "vacuous":
        return "kept"
    if variant.outcome not in RUN_OUTCOMES or variant.outcome == "error":
        return "unjudged"
    broken = variant.outcome == "violation" and variant.cause != "context"
    return "failure" if broken else "kept"
