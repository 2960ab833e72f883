"""The pairing of two builds turn by turn: statistics, nondeterminism, drift of clean answers."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from statistics import NormalDist
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from scipy.stats import permutation_test as permuted

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.campaign.attempts import fold_label
from pytest_dstfuzz.campaign.deciding import RepetitionTally
from pytest_dstfuzz.campaign.figures import DialogueNumbers
from pytest_dstfuzz.campaign.results import (
    RUN_OUTCOMES,
    Results,
    TurnResult,
    VariantOutcome,
    VariantResult,
)
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison, as_before
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.config.parsers import over, percent
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange, diff_states
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    ComparedVariant,
    Contents,
    Failing,
    Groups,
    OwnAnswers,
    Pair,
    State,
    Tally,
    TurnOutcomes,
    TurnPosition,
    VariantSums,
    by_relation,
    digest_of,
    failures_of,
    make_kept_state,
    name_groups,
    parts_of,
    same_names,
    settings_of,
)
from pytest_dstfuzz.gate.verdict import LimitFinding, Part, Verdict
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind, Words
from pytest_dstfuzz.totals.troubles import failure_text
from pytest_dstfuzz.weaknesses.groups import WeaknessTally, member_id

#: Number of random permutations, or subsets of dialogues. If fewer exist, all are used.
RESAMPLES: Final = 9_999
#: The probability with which a real difference should be detected.
POWER: Final = 0.8
#: The power to plan for. Changes are skewed, so planning with `POWER` itself yields only 75 to 80
#: %.
_AIM: Final = 0.85
_AIM_QUANTILE: Final = NormalDist().inv_cdf(_AIM)
LEVEL: Final = 0.95
#: Number of random rows in memory at once.
_SLICE: Final = 1_000

Floats = npt.NDArray[np.float64]
#: Returns the context of a dialogue's turn, from the id and the number of the turn.
ContextOf: TypeAlias = Callable[[str, int], Context]


@dataclass(frozen=True, slots=True)
class PairedViolations:
    """Numbers of violations of two builds on the same variants: arrays with one entry per dialogue.

    The arrays may also hold the estimated failures of two builds on the same turns. In that case
    ``variants`` counts turns.
    """

    #: Violations in the baseline and in the run.
    before: Floats
    after: Floats
    #: Number of compared variants, each above 0.
    variants: Floats

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> PairedViolations:
        """Create the arrays from the tallies of dialogues. Each tally has at least one variant."""
        return cls.of_rows((tally.before, tally.after, tally.variants) for tally in tallies)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[float, float, int]]) -> PairedViolations:
        """Create the arrays from (violations before and after, variants) of each dialogue."""
        columns = np.array(list(rows), dtype=np.float64).reshape(-1, 3).T
        return cls(*columns)

    @property
    def difference(self) -> float:
        """Failure rate of the run minus the failure rate of the baseline."""
        return float((self.after - self.before).sum() / self.variants.sum())


def fewest_dialogues(level: float = LEVEL) -> int:
    """Return the minimum number of dialogues for an interval: 6 for 95 %.

    The interval is built from the subsets of the dialogues, 2 to the power of n for n dialogues.
    Each end of the interval must leave out at least one subset.
    """
    return math.ceil(math.log2(2 / (1 - level)))


def interval(
    paired: PairedViolations, rng: np.random.Generator, level: float = LEVEL
) -> tuple[float, float] | None:
    """Return the interval of the difference, or ``None`` if there are too few dialogues."""
    count = len(paired.variants)
    if count < fewest_dialogues(level):
        return None
    changes = paired.after - paired.before
    columns = np.stack([changes, paired.variants], axis=1)
    sums = np.concatenate([drawn @ columns for drawn in _subsets(count, rng)])
    # An empty subset has no difference.
    values = np.sort(np.divide(*sums[sums[:, 1] > 0].T))
    left_out = max(1, math.floor((1 - level) / 2 * (len(values) + 1)))
    return float(values[left_out - 1]), float(values[-left_out])


def permutation_test(paired: PairedViolations, rng: np.random.Generator) -> float:
    """Return the two-sided p-value of a permutation test, which swaps the builds within dialogues.

    There must be at least two dialogues.
    """

    def difference(after: Floats, before: Floats, axis: int) -> Floats:
        found: Floats = (after - before).sum(axis=axis)
        return found

    test = permuted(
        (paired.after, paired.before),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_SLICE,
        rng=rng,
    )
    return float(test.pvalue)


def dialogues_needed(paired: PairedViolations, margin: float, level: float = LEVEL) -> int | None:
    """Return how many dialogues like these would settle the verdict with probability `POWER`.

    A difference above the margin is settled if its interval is above 0 and the observed difference
    is above the margin. Any other difference is settled if its interval is below the margin. The
    estimate takes the observed difference as the true one. The spread of few dialogues (at least
    two) is itself uncertain. The noncentral t distribution accounts for this, as approximated in
    Abramowitz and Stegun 26.7.10. Changes are skewed, so the computation aims at the higher
    probability `_AIM`. ``tests/gate/gate_simulation.md`` reports how often the advised numbers
    suffice. The result is ``None`` if the difference equals the margin, because no number of
    dialogues settles that.
    """
    seen = paired.difference
    if seen == margin:
        return None
    count, fewest = len(paired.variants), fewest_dialogues(level)
    residuals = paired.after - paired.before - seen * paired.variants
    # The standard error of one dialogue; n dialogues divide it by the root of n.
    error = math.sqrt(float(residuals @ residuals) / (count - 1)) / float(paired.variants.mean())
    if not error:
        return fewest
    distance = (seen if seen > margin else margin - seen) / error
    # Half of all campaigns observe less than the true difference. If it is just above the margin,
    # they observe less than the margin.
    above = (seen - margin) / error if seen > margin else math.inf

    def enough(number: int) -> bool:
        freedom, root = number - 1, math.sqrt(number)
        edge = float(stdtrit(freedom, (1 + level) / 2))
        excess = distance * root - edge * (1 - 1 / (4 * freedom))
        reached = min(excess / math.sqrt(1 + edge**2 / (2 * freedom)), above * root)
        return reached >= _AIM_QUANTILE

    high = fewest
    while not enough(high):
        high *= 2
    return bisect.bisect_left(range(high), True, lo=fewest, key=enough)


def _subsets(count: int, rng: np.random.Generator) -> Iterable[Floats]:
    """Yield arrays of ones and zeros, [subsets, dialogues]. Each row is a set of dialogues."""
    if 2**count - 1 <= RESAMPLES:
        numbers = np.arange(1, 2**count)[:, None]
        yield (numbers >> np.arange(count) & 1).astype(np.float64)
        return
    for start in range(0, RESAMPLES, _SLICE):
        rows = min(_SLICE, RESAMPLES - start)
        yield rng.integers(0, 2, size=(rows, count), dtype=np.int8).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Matching:
    """The dialogues of two builds, matched by id.

    A dialogue of both builds may have been renamed. A dialogue that was changed is still compared
    up to the turn before the change.
    """

    #: Baseline id -> run id of dialogues that are the same, or changed.
    known: Mapping[str, str]
    #: Ids that are new in this run, and ids of the baseline that are no longer in the data.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Pairs of baseline id and run id.
    renamed: tuple[tuple[str, str], ...] = ()

    def of_tested(self, tested: Collection[str]) -> Matching:
        """Return a copy that counts only ``tested`` dialogues as added."""
        return replace(self, added=tuple(sorted(set(tested) - set(self.known.values()))))

    def to_json(self) -> dict[str, Any]:
        """Return the object ``suite`` of the JSON report's comparison."""
        plain: dict[str, Any] = to_json(self)
        return {name: plain[name] for name in ("added", "removed", "changed", "renamed")}


def match_dialogues(old: Iterable[TurnOutcomes], contents: Contents) -> Matching:
    """Match the dialogues of a baseline with the data of a run."""
    #: Position and key of the last turn of each dialogue in the baseline.
    lasts: dict[str, tuple[int, str]] = {}
    for turn in old:
        lasts[turn.dialogue] = max(lasts.get(turn.dialogue, (-1, "")), (turn.turn, turn.key))
    holders: dict[tuple[int, str], list[str]] = {}
    for name, keys in contents.items():
        for place in enumerate(keys):
            holders.setdefault(place, []).append(name)
    known = {name: name for name, last in lasts.items() if name in holders.get(last, ())}
    taken = set(known)
    renamed = []
    for name, last in lasts.items():
        free = [other for other in holders.get(last, ()) if other not in taken]
        if name not in known and free:
            known[name] = free[0]
            taken.add(free[0])
            renamed.append((name, free[0]))
    left = contents.keys() - taken
    changed = [name for name in lasts if name not in known and name in left]
    known |= {name: name for name in changed}
    return Matching(
        known=known,
        removed=tuple(sorted(lasts.keys() - known.keys())),
        changed=tuple(sorted(changed)),
        renamed=tuple(sorted(renamed)),
    )


#: Maximum number of dialogues with new variation that is attributed to chance.
_FEW: Final = 1


class OwnAnswersTally:
    """Collects the clean turns that both builds answered several times."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[float, float, int]] = {}

    def add(self, dialogue: str, before: OwnAnswers | None, after: OwnAnswers | None) -> None:
        """Record how the answers to one turn vary in each build."""
        if before is None or after is None:
            return
        was, now, turns = self._rows.get(dialogue, (0.0, 0.0, 0))
        self._rows[dialogue] = (was + before.share, now + after.share, turns + 1)

    def finding(self, limit: float, rng: np.random.Generator) -> LimitFinding | None:
        """Judge the rise of inconsistent answers: the share that differs from the usual answer.

        Return ``None`` if the share is unknown, did not rise above the limit, or rose in too few
        dialogues.
        """
        rows = [row for _, row in sorted(self._rows.items())]
        grown = sum(now > was for was, now, _ in rows)
        if not rows or grown <= _FEW:
            return None
        paired = PairedViolations.of_rows(rows)
        if not over(paired.difference, limit):
            return None
        turns = int(paired.variants.sum())
        was, now = (float(side.sum()) / turns for side in (paired.before, paired.after))
        reason = (
            f"{percent(now)} of the repeated answers to a turn differ from the most frequent one, "
            f"{percent(was)} in the baseline ({turns:,} turns in {len(rows):,} dialogues), and "
            f"{percent(limit)} more are allowed: answers to the same question vary more than before"
        )
        bounds = interval(paired, rng, LEVEL)
        verdict: Verdict = "inconclusive"
        if bounds is None:
            reason += f"; this may be chance: an interval needs {fewest_dialogues(LEVEL)} dialogues"
        elif not over(bounds[0], limit):
            reason += "; this may be chance"
        else:
            verdict = "drift"
        return LimitFinding(
            None, "max-clean-drift", limit, verdict, reason, paired.difference, bounds
        )


#: Default share of turns whose clean answer may change.
DEFAULT_MAX_DRIFT: Final = 0.0
#: Maximum number of slots of each kind in a sentence.
_MOST_SLOTS: Final = 5
_KINDS: Final = ("lost", "gained", "changed")


@dataclass(frozen=True, slots=True)
class CleanPair:
    """The answers of two builds to one clean turn, both in the form that a baseline stores."""

    turn_id: str
    dialogue: str
    before: State
    after: State
    label: State | None = None
    kind: AnswerKind = BELIEF_STATES

    @property
    def changed(self) -> bool:
        """Whether the answers differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between the clean answers of two builds."""

    turns: int
    #: The turns whose answer changed.
    moved: tuple[CleanPair, ...] = ()
    #: Changes of slots: kind -> slot -> number of turns, the most frequent first.
    slots: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Turns with a label, and the number that each build got right.
    labelled: int = 0
    right_before: int = 0
    right_after: int = 0
    #: Whether the changed answers are, by the labels, no worse than before.
    excused: bool = False
    #: Changed turns without a label.
    unlabelled: int = 0
    #: Further turns that the baseline answered and on which the tracker failed now. No label
    #: excuses them.
    silenced: int = 0
    #: The first such turns, with the tracker's failures.
    failures: tuple[str, ...] = ()
    #: Turns whose answer has another text, if a test compares in another way than the run.
    unsure: int = 0

    @property
    def changed(self) -> tuple[str, ...]:
        """Ids of the turns whose answer changed."""
        return tuple(pair.turn_id for pair in self.moved)

    @property
    def share(self) -> float:
        """Share of turns that changed or lost their answer. Labels may excuse turns."""
        return self.changed_share + (self.silenced / self._all if self._all else 0.0)

    @property
    def changed_share(self) -> float:
        """Share of turns that changed their answer. Labels may excuse turns."""
        count = self.unlabelled if self.excused else len(self.changed)
        return count / self._all if self._all else 0.0

    @property
    def _all(self) -> int:
        return self.turns + self.silenced

    def to_json(self, *, hidden: bool = False) -> dict[str, Any]:
        """Return the entry ``clean`` of a comparison. If ``hidden``, show values as ``x``."""
        return {
            "turns": self.turns,
            "silenced": self.silenced,
            "changed": list(self.changed),
            "answers": [_answer(pair, hidden) for pair in self.moved],
            "lost": dict(self.slots.get("lost", {})),
            "gained": dict(self.slots.get("gained", {})),
            "other_value": dict(self.slots.get("changed", {})),
            "labelled": self.labelled,
            "accuracy_before": self.right_before / self.labelled if self.labelled else None,
            "accuracy_after": self.right_after / self.labelled if self.labelled else None,
        }


class DriftTally:
    """Compare the answers of two builds to clean turns, one turn after the other.

    Changed answers are stored, because a report lists each of them.
    """

    def __init__(self) -> None:
        self.turns = 0
        self._moved: list[CleanPair] = []
        self._labelled = self._right_before = self._right_after = 0
        #: See `Drift.unsure`.
        self.unsure = 0
        #: Whether either build ever gives the answer of a non-empty label; the slots of all labels.
        self._met = False
        self._known: set[str] = set()

    def add(self, pair: CleanPair) -> None:
        """Record the answers of both builds to one turn."""
        self.turns += 1
        if pair.changed:
            self._moved.append(pair)
        if (label := pair.label) is not None:
            self._labelled += 1
            self._right_before += pair.before == label
            self._right_after += pair.after == label
            self._met = self._met or bool(label and label in (pair.before, pair.after))
            self._known.update(label)

    def drift(self, silenced: int = 0, failures: tuple[str, ...] = ()) -> Drift:
        """Return the differences, see `Drift`."""
        moved = sorted(self._moved, key=lambda pair: (pair.dialogue, pair.turn_id))
        return Drift(
            turns=self.turns,
            moved=tuple(moved),
            slots=_slots(moved),
            labelled=self._labelled,
            right_before=self._right_before,
            right_after=self._right_after,
            excused=self._met and _excused(moved, self._known),
            unlabelled=sum(pair.label is None for pair in moved),
            silenced=silenced,
            failures=failures,
            unsure=self.unsure,
        )


def judge_drift(
    drift: Drift, limit: float, disagreement: float = 0.0, unanswered: int = 0, compared: str = ""
) -> LimitFinding:
    """Judge the change of the clean answers by the share of compared turns that may change.

    Args:
        drift: the differences between the builds.
        limit: the share of turns that may change.
        disagreement: the chance that two answers of this build to one clean turn differ. It does
            not affect the verdict, but is reported.
        unanswered: number of shared turns that one build did not answer, including those on which
            only this build failed. It is reported.
        compared: a note on how replies were compared, or ``""``.
    """
    share, allowed = drift.share, f"{percent(limit)} are allowed"
    words = (drift.moved[0].kind if drift.moved else BELIEF_STATES).words
    what = f"{words.slot}s"
    if not drift.turns:
        reason = "no turn has an answer in both the baseline and this run"
    elif not drift.changed:
        reason = f"no clean answer changed ({drift.turns:,} turn{'' if drift.turns == 1 else 's'})"
    else:
        reason = f"clean answers changed at {len(drift.changed):,} of {drift.turns:,} turns"
        reason += f": {_slots_text(drift.slots, what)}" if words.values else ""
    if drift.changed and drift.labelled:
        before, after = (
            percent(right / drift.labelled) for right in (drift.right_before, drift.right_after)
        )
        right, labels = words.right, words.labels
        reason += (
            f"; {right} on the {drift.labelled:,} turn{'' if drift.labelled == 1 else 's'} with "
            f"{labels}: {before} in the baseline, {after} now"
        )
        if drift.excused:
            reason += ", so the changed answers are not worse"
    drifted = over(share, limit)
    reason += _silenced_text(drift, words)
    if drift.silenced or (drift.changed and (drifted or not drift.excused or drift.unlabelled)):
        without = " without a label" if drift.excused and drift.labelled else ""
        reason += f"; {percent(share)} of the turns{without}, {allowed}"
    if drifted and disagreement:
        reason += (
            f"; two answers to one clean turn differ in {percent(disagreement)} of cases, so "
            "some changes may be chance: allow a share with dst_max_clean_drift"
        )
    reason += _compared_text(drift, compared)
    if others := unanswered - drift.silenced:
        turns = "turn" if others == 1 else "turns"
        reason += f"; {others:,} more {turns} had no answer in one of the builds"
    unsure = over(drift.unsure / max(drift.turns, 1), limit)
    verdict: Verdict = "drift" if drifted else "inconclusive" if unsure else "pass"
    if drifted and not over(drift.changed_share, limit):
        # There is no new answer that the user could accept.
        verdict = "regression"
    return LimitFinding(None, "max-clean-drift", limit, verdict, reason, share)


def _compared_text(drift: Drift, compared: str) -> str:
    """Return a text about the comparison of the answers, or ``""``."""
    text = f"; {drift.unsure:,} more answers have another text" if drift.unsure else ""
    return f"{text}; {compared}" if compared and (drift.changed or drift.unsure) else text


def _silenced_text(drift: Drift, words: Words) -> str:
    """Return a text about turns with a failure of the tracker only now, or ``""``."""
    if not drift.silenced:
        return ""
    named = f" ({'; '.join(drift.failures)})" if drift.failures else ""
    turns = "turn" if drift.silenced == 1 else "turns"
    return f"; {words.who} failed on {drift.silenced:,} {turns} that the baseline answers{named}"


def _excused(changed: Iterable[CleanPair], known: Collection[str]) -> bool:
    """Return whether the changed answers are, by the labels, no worse than before.

    The number of right turns, of right slots, and of right slots within the labels must not fall.
    The number of right turns is not enough: if no answer is completely right, it is 0 for both
    builds. An empty answer has no wrong slot, so the last number counts labelled slots only. If no
    answer of either build ever matches a label, for example because the slots have other names,
    labels excuse nothing. A change of a slot that no label has is never excused. Neither is the
    loss or another value of a slot that the label of its turn lacks, if the label has a slot that
    neither answer has: this may be its name in the label. ``known`` holds the slots of labels.
    """
    turns = slots = named = 0
    moved = [(pair, pair.label) for pair in changed if pair.label is not None]
    for pair, label in moved:
        changes = diff_states(pair.before, pair.after)
        lost = any(one.before is not None and one.slot not in label for one in changes)
        renamed = lost and any(slot not in pair.before and slot not in pair.after for slot in label)
        if renamed or any(one.slot not in known for one in changes):
            return False
        turns += (pair.after == label) - (pair.before == label)
        for slot in {*pair.before, *pair.after, *label}:
            wanted = label.get(slot)
            better = (pair.after.get(slot) == wanted) - (pair.before.get(slot) == wanted)
            slots += better
            named += better if slot in label else 0
    return bool(moved) and min(turns, slots, named) >= 0


def _answer(pair: CleanPair, hidden: bool) -> dict[str, Any]:
    """Return the slots of a turn whose value differs, with their values."""

    def shown(value: str | None) -> str | None:
        return "x" if hidden and value is not None else value

    changed = [
        {"slot": one.slot, "before": shown(one.before), "after": shown(one.after)}
        for one in diff_states(pair.before, pair.after)
    ]
    return {"turn": pair.turn_id, "slots": changed}


def _slots(moved: Iterable[CleanPair]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for pair in moved:
        for one in diff_states(pair.before, pair.after):
            kind = _KINDS[0 if one.after is None else 1 if one.before is None else 2]
            found[kind][one.path.part[1]] += 1
    return {
        kind: dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
        for kind, counts in found.items()
    }


def _slots_text(slots: Mapping[str, Mapping[str, int]], what: str) -> str:
    """Describe the changes of slots: ``slots lost origin (31), date (2); gained ...``."""
    parts = []
    for kind, counts in slots.items():
        if counts:
            named = [f"{slot} ({count:,})" for slot, count in counts.items()][:_MOST_SLOTS]
            more = len(counts) - len(named)
            parts.append(f"{kind} {', '.join(named)}" + (f" and {more} more" if more else ""))
    return f"{what} {'; '.join(parts)}"


#: Maximum number of failed turns in a message.
_MOST_FAILURES: Final = 3
#: Outcomes with an answer of the tracker; an error has none.
_ANSWERED: tuple[VariantOutcome, ...] = tuple(name for name in RUN_OUTCOMES if name != "error")


@dataclass(frozen=True, slots=True)
class Pairing:
    """The turns and variants that two builds share."""

    #: The variants that both builds were asked.
    shared: VariantSums
    #: Clean answers of both builds.
    clean: DriftTally
    #: The agreement of each build's repeated answers to clean turns.
    own: OwnAnswersTally
    matching: Matching
    #: Turns in both builds, and turns in only one.
    turns: int
    only_baseline: int
    only_run: int
    #: Dialogues with a shared turn, and all dialogues that the run tested.
    dialogues: int
    tested: int
    #: Turns that the baseline answered and on which the tracker failed now.
    silenced: int
    #: The first such turns: the id, and the id with the failure.
    failures: tuple[tuple[str, str], ...]
    #: Turns with failure estimates in both builds, by dialogue, sorted; from the first relation
    #: that has any.
    failing: Mapping[str, Failing]
    #: Relation of both builds -> its shared variants.
    asked: Mapping[str, VariantSums]
    #: Relations that only one build tested.
    only_baseline_relations: tuple[str, ...]
    only_run_relations: tuple[str, ...]
    #: Whether the bot is deterministic in this run.
    repeats: bool
    #: The weaknesses of the run under shared relations, or under all relations if none is shared.
    weaknesses: WeaknessTally

    @property
    def variants(self) -> int:
        """Number of variants that were identical and answered in both builds."""
        return self.shared.variants

    @property
    def share(self) -> float | None:
        """Share of `variants` among all variants that either build ran on shared turns."""
        possible = self.shared.possible
        return self.variants / possible if possible else None

    @property
    def new(self) -> tuple[tuple[str, int], ...]:
        """Turn ids and numbers of variants that are a violation in the run only."""
        return self.shared.moved(1)

    @property
    def gone(self) -> tuple[tuple[str, int], ...]:
        """Turn ids and numbers of variants that are a violation in the baseline only."""
        return self.shared.moved(-1)

    def failed(self, *, hidden: bool) -> tuple[str, ...]:
        """Return the first turns with an answer in the baseline and a failure of the tracker now.

        Each turn has its error message, unless texts are ``hidden``.
        """
        return tuple(name if hidden else text for name, text in self.failures)

    def of(self, relation: str) -> Pairing:
        """Return the pairing with the variants of one relation only."""
        return replace(self, shared=self.asked.get(relation, VariantSums()))

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        return self.shared.by_dialogue(part)

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        return self.shared.by_part()


def pair_up(
    baseline: Baseline,
    groups: Groups,
    contents: Contents,
    comparison: Comparison = EXACT,
    fallback: tuple[str, ...] = (),
    context_of: ContextOf | None = None,
) -> Pairing:
    """Return the turns and variants that a baseline and a run share, in one pass over the run.

    Variants are compared with variants of the same relation. Each relation stores an answer to the
    clean turns. The answer of the first relation counts. If the builds share no relation, only the
    clean answers are compared. A reply that the comparison accepts counts as unchanged. A recorded
    reply that gives no answer, or that matches a pattern of ``fallback``, is no label.
    ``context_of`` returns the context of a dialogue's turn; ``None`` = the last exchange only.
    """
    before, after = by_relation(baseline.groups), by_relation(name_groups(groups))
    shared = tuple(name for name in after if name in before)
    joined = {name: name for name in shared} or dict(islice(zip(after, before, strict=False), 1))
    how = _HowCompared.of(baseline, comparison, fallback, context_of)
    common = _Common(chain.from_iterable(baseline.groups.values()), contents, how)
    weaknesses, asked, tested = WeaknessTally(), dict[str, VariantSums](), set[str]()
    answers, failing = RepetitionTally(), list[dict[str, Failing]]()
    # Shared relations come first, and each turn counts once.
    for name in (*joined, *(name for name in after if name not in joined)):
        found, earlier = None, before[joined[name]] if name in joined else {}
        if name in joined:
            found = common.begin(earlier)
            if name in shared:
                asked[name] = found.asked
                failing.append(found.failing)
        for own, group, turns in _named(earlier, after[name]):
            for turn in turns:
                answers.add(turn)
                if turn.outcome != "skipped":
                    tested.add(turn.dialogue_id)
                    if found is not None:
                        found.add(own, turn, GroupSettings.of(group))
                if not shared or name in asked:
                    weaknesses.add(turn)
    return Pairing(
        shared=_together(asked),
        clean=common.clean,
        own=common.own,
        matching=common.matching.of_tested(tested),
        turns=common.both.count,
        silenced=common.silenced,
        failures=tuple(common.failures),
        only_baseline=common.old.count - common.both.count,
        only_run=common.new.count - common.both.count,
        dialogues=len(common.dialogues),
        tested=len(tested),
        failing=next((dict(sorted(each.items())) for each in failing if each), {}),
        asked=asked,
        only_baseline_relations=tuple(name for name in before if name not in after),
        only_run_relations=tuple(name for name in after if name not in before),
        repeats=answers.same,
        weaknesses=weaknesses,
    )


class _HowCompared(NamedTuple):
    """The settings for comparing answers."""

    #: Whether values are digests.
    hidden: bool
    folding: Folding
    #: Patterns of replies without an answer.
    fallback: tuple[str, ...]
    #: The identity of the comparison; ``""`` if it is exact.
    identity: str
    #: Returns the context of a turn.
    context_of: ContextOf | None

    def asked(self, turn: TurnResult) -> Context:
        """Return the context of a turn, for comparisons that take it."""
        if self.context_of is None:
            return Context((Exchange(turn.system, turn.user),))
        return self.context_of(turn.dialogue_id, turn.turn_index)

    @classmethod
    def of(
        cls,
        baseline: Baseline,
        comparison: Comparison,
        fallback: tuple[str, ...],
        context_of: ContextOf | None,
    ) -> _HowCompared:
        """Compare by a comparison. A hidden baseline has only digests."""
        folding = Folding(EXACT if baseline.hidden else comparison)
        identity = "" if comparison.exact else comparison.identity
        return cls(baseline.hidden, folding, fallback, identity, context_of)


class GroupSettings(NamedTuple):
    """The settings of the tests of a group that may differ from those of the run."""

    #: The identity of the comparison; ``""`` if it is exact.
    comparison: str
    #: Whether the tests have patterns of their own for replies without an answer.
    fallback: bool

    @classmethod
    def of(cls, group: str) -> GroupSettings:
        """Read the settings from the name of a group.

        >>> GroupSettings.of("test_a.py::test_it[a compare=b-] relation=value-swap")
        GroupSettings(comparison='', fallback=False)
        """
        rest, _, _ = f" {settings_of(group)}".partition(" relation=")
        rest, _, comparison = rest.partition(" compare=")
        return cls(comparison, " fallback=" in rest)


class _Places:
    """Count each turn for the first relation that has it.

    A turn that occurs in several groups of one relation counts several times. Each group has its
    own results.
    """

    def __init__(self, numbers: DialogueNumbers) -> None:
        self._numbers = numbers
        self._earlier: set[int] = set()
        self._now: set[int] = set()
        self.count = 0

    def begin(self) -> None:
        """Begin to count the turns of the next relation."""
        self._earlier |= self._now
        self._now = set()

    def add(self, dialogue: str, turn: int) -> bool:
        """Record a turn, and return whether it counts."""
        place = self._numbers[dialogue] << 32 | turn
        self._now.add(place)
        self.count += (counts := place not in self._earlier)
        return counts


class _Common:
    """Collects the turns and variants that two builds share, relation by relation."""

    def __init__(
        self, before: Iterable[TurnOutcomes], contents: Contents, how: _HowCompared
    ) -> None:
        self.matching, self.contents, self.how = match_dialogues(before, contents), contents, how
        #: New ids of renamed dialogues. Their variants are not compared, because variants are drawn
        #: by dialogue name.
        self.renamed = frozenset(new_name for _, new_name in self.matching.renamed)
        numbers = DialogueNumbers()
        self.old, self.new = _Places(numbers), _Places(numbers)
        self.both, self._answered = _Places(numbers), _Places(numbers)
        self._unsure = _Places(numbers)
        self.clean = DriftTally()
        self.own = OwnAnswersTally()
        self.dialogues: set[str] = set()
        self.silenced = 0
        self.failures: list[tuple[str, str]] = []

    def begin(self, before: Mapping[str, Sequence[TurnOutcomes]]) -> _OfOne:
        """Begin to collect the next relation; ``before`` holds its turns in the baseline."""
        for places in (self.old, self.new, self.both, self._answered, self._unsure):
            places.begin()
        known = self.matching.known
        for turn in chain.from_iterable(before.values()):
            self.old.add(known.get(turn.dialogue, f"{turn.dialogue} (removed)"), turn.turn)
        return _OfOne(self, before)

    def note(self, was: TurnOutcomes, turn: TurnResult, tested: GroupSettings) -> bool:
        """Record a turn of both builds, and return whether both gave the same answer."""
        if self.both.add(turn.dialogue_id, turn.turn_index):
            self.dialogues.add(turn.dialogue_id)
            failed = turn.clean_state is None and turn.outcome == "error"
            if was.state is not None and failed:
                self.silenced += 1
                if len(self.failures) < _MOST_FAILURES:
                    self.failures.append((turn.id, failure_text(turn, hidden=False)))
        pair = _clean(was, turn, self.how)
        if pair is not None and tested.fallback:
            pair = replace(pair, label=None)  # The label may be no answer by the test's patterns.
        if pair is not None and not pair.changed and tested.comparison != self.how.identity:
            shown = make_kept_state(turn.clean_state or {}, self.how.hidden)
            if pair.before != shown and self._unsure.add(turn.dialogue_id, turn.turn_index):
                self.clean.unsure += 1
        if pair is not None and self._answered.add(turn.dialogue_id, turn.turn_index):
            self.clean.add(pair)
            self.own.add(turn.dialogue_id, was.own, OwnAnswers.of(turn))
        return pair is not None and not pair.changed


class _OfOne:
    """Collects the turns and variants that two builds share under one relation."""

    def __init__(self, common: _Common, before: Mapping[str, Sequence[TurnOutcomes]]) -> None:
        self._common = common
        known = common.matching.known
        self._old = {
            TurnPosition(name, known[turn.dialogue], turn.turn): turn
            for name, turns in before.items()
            for turn in turns
            if turn.dialogue in known
        }
        self.asked = VariantSums()
        #: Estimated failures of each dialogue; they do not require the same variants.
        self.failing: dict[str, Failing] = {}

    def add(self, group: str, turn: TurnResult, how: GroupSettings) -> None:
        """Record a turn of the run that was not skipped. ``group`` is its name in the baseline."""
        at = TurnPosition(group, turn.dialogue_id, turn.turn_index)
        self._common.new.add(at.dialogue, at.turn)
        was = self._old.get(at)
        if was is None or was.key != self._common.contents[at.dialogue][at.turn]:
            return
        same = self._common.note(was, turn, how)
        if at.dialogue not in self._common.renamed:
            self.asked.possible += _possible(was, turn)
            for pair in _pairs(was, turn, same_answer=same):
                self.asked.add(pair)
        now = failures_of(turn)
        if was.failures is not None and now is not None:
            turns, before, after = self.failing.get(turn.dialogue_id, Failing())
            more = Failing(turns + 1, before + was.failures, after + now)
            self.failing[turn.dialogue_id] = more


def _together(asked: Mapping[str, VariantSums]) -> VariantSums:
    """Return the sums of the shared variants over all relations."""
    found = VariantSums()
    for one in asked.values():
        found.take(one)
    return found


def _named(
    before: Mapping[str, Sequence[TurnOutcomes]], after: Mapping[str, Results]
) -> Iterable[tuple[str, str, Results]]:
    """Return the groups of a run: name in the baseline, even if it was renamed, own name, turns."""
    names = same_names(after, before)
    gone = before.keys() - after.keys() - {*names.values()}
    new = after.keys() - before.keys() - names.keys()
    names |= _most_alike({one: before[one] for one in gone}, {one: after[one] for one in new})
    return [(names.get(name, name), name, turns) for name, turns in after.items()]


def _most_alike(
    before: Mapping[str, Sequence[TurnOutcomes]], after: Mapping[str, Results]
) -> dict[str, str]:
    """Return the old names of groups with other settings, such as a higher number of variants.

    The groups with the most variants in common are the same. Without any in common, their clean
    answers can be compared.
    """
    if not (before and after):
        return {}
    old = {
        name: {one.digest for turn in turns for one in turn.variants}
        for name, turns in before.items()
    }
    new = {
        name: {digest_of(one) for turn in turns for one in turn.variants}
        for name, turns in after.items()
    }
    ranked = sorted(
        (-len(new[name] & old[earlier]), name, earlier) for name in new for earlier in old
    )
    found: dict[str, str] = {}
    for _, name, earlier in ranked:
        if name not in found and earlier not in found.values():
            found[name] = earlier
    return found


def _pairs(old: TurnOutcomes, turn: TurnResult, *, same_answer: bool) -> Iterator[Pair]:
    known = {item.number: item for item in old.variants}
    # If an edit is added or removed, the numbers of all later rewrites shift.
    rewritten = {item.digest: item for item in reversed(old.variants)}
    for variant in turn.variants:
        after = ComparedVariant.of(turn, variant)
        before = known.get(variant.index)
        if _is_rewrite(turn, variant):
            before = rewritten.get(after.digest)
        if before is None or before.digest != after.digest:
            continue
        if before.outcome in _ANSWERED and after.outcome in _ANSWERED:
            changed = (*before.changed, *before.carried, *after.changed, *after.carried)
            yield Pair(
                turn_id=turn.id,
                dialogue=turn.dialogue_id,
                index=variant.index,
                before=before,
                after=after,
                name=member_id(turn, variant),
                same_answer=same_answer,
                parts=frozenset(
                    parts_of((*(old.state or ()), *(turn.clean_state or ()), *changed))
                    | {Part("transformation", edit.transformation) for edit in variant.edits}
                ),
            )


def _is_rewrite(turn: TurnResult, variant: VariantResult) -> bool:
    """Return whether the relation itself made the variant, not the search."""
    return bool(variant.moves) or any(
        edit.transformation == turn.relation for edit in variant.edits
    )


def _clean(old: TurnOutcomes, turn: TurnResult, how: _HowCompared) -> CleanPair | None:
    """Return both builds' clean answers to one turn, or ``None`` if a build has no answer."""
    if old.state is None or turn.clean_state is None:
        return None
    before: Mapping[str, str] = old.state
    after: Mapping[str, str] = make_kept_state(turn.clean_state, how.hidden)
    label = turn.label
    # To a question that a recorded bot did not answer, other replies are right, too.
    if label is not None and is_fallback(turn.kind.text(label), how.fallback):
        label = None
    right: Mapping[str, str] | None = label and make_kept_state(label, how.hidden)
    if how.identity and how.hidden:
        right = None  # Digests tell no texts that agree.
    elif how.identity:
        asked, said = how.asked(turn), Outcome(before)
        after = dict(as_before(how.folding.comparison, asked, said, turn.clean_state))
        if label is not None:
            folded = fold_label(how.folding, label, said, Outcome(after), asked)
            # A label that agrees with two answers that differ excuses nothing.
            right = None if folded.undecided else dict(folded.label)
    return CleanPair(turn.id, turn.dialogue_id, before, after, right, turn.kind)


def _possible(old: TurnOutcomes, turn: TurnResult) -> int:
    """Count the different variants of a turn that at least one of the two builds ran."""
    ran = {variant.index for variant in turn.variants if variant.outcome in RUN_OUTCOMES}
    if any(_is_rewrite(turn, variant) for variant in turn.variants):
        # Rewrites are counted by digest, because their numbers may shift.
        digests = {digest_of(one) for one in turn.variants if one.outcome in RUN_OUTCOMES}
        return len(digests | {item.digest for item in old.variants if item.outcome in RUN_OUTCOMES})
    return len(ran | {item.number for item in old.variants if item.outcome in RUN_OUTCOMES})
