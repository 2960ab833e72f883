"""The summary of a campaign, and an estimate of the noise in its violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.deciding import Repeats, RepeatsTally
from pytest_dstfuzz.campaign.figures import (
    Counts,
    DialogueNumbers,
    DialogueSums,
    EstimatedFailures,
    ExpectedTally,
    Reach,
    ReachTally,
    column,
    ratio,
    ratio_interval,
    tally_results,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, faults
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.seeding import stream

__all__ = ["Summary", "summarise"]


DRAWS: Final = 1_000
#: Grid of the model: means of w, and concentrations of its beta distribution. The concentration is
#: high if w is similar in all contexts.
_MEANS: Final = np.geomspace(0.0005, 0.45, 28)
_SIZES: Final = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
#: Values of w for numerical integration, dense near 0, and their relative widths.
_NODES: Final = 0.5 * ((np.arange(80) + 0.5) / 80) ** 2
_WIDTHS: Final = (np.arange(80) + 0.5) / 80
#: Rate of violations in fragile turns, which break easily. These have half of all violations.
_FRAGILE: Final = 0.8

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """The uncertainty due to a tracker that is not repeatable."""

    #: Number of clean turns with several answers, and the minimum number of their answers.
    turns: int
    answers: int
    #: Number of turns whose first ``answers`` answers were not all the same.
    differed: int
    #: Probability that two answers to a clean turn differ.
    disagreement: float
    #: Its 95 % interval over dialogues; ``None`` with too few dialogues.
    disagreement_interval: tuple[float, float] | None
    #: Probability that an answer is not the usual one to its context.
    wobble: float
    #: Variants whose first answer broke the relation, but which held after the vote.
    outvoted: int
    #: Mean number of reported violations that are noise, and of real ones that are not reported.
    expected_noise: float
    expected_missed: float
    #: 95 % interval of the number of violations without noise.
    real_violations: tuple[int, int]


class NoiseTally:
    """Collects repeated answers and estimates the noise.

    For each turn with a vote it stores the counts, about 300 bytes. Sums are not enough, because
    the model draws all variants of a turn together.
    """

    def __init__(self) -> None:
        #: (dialogue, kinds of the answers to a clean turn) -> number of turns.
        self._kinds: Counter[tuple[str, tuple[int, ...]]] = Counter()
        #: (answers of the most frequent kind, all other answers) -> number of clean turns.
        self._clean: Counter[tuple[int, int]] = Counter()
        self._cases: list[tuple[tuple[str, int, str, int], _VotedTurn]] = []
        self._tested = self._reported = self._outvoted = 0

    def add(self, turn: TurnResult) -> None:
        """Record a turn if its clean turn has several answers."""
        # Ignore turns with a different answer each time, because they are not tested.
        if not turn.clean_votes or turn.reason == UNSTABLE:
            return
        self._kinds[turn.dialogue_id, turn.clean_votes] += 1
        self._clean[_usual_and_others(turn)] += 1
        self._cases += ((_place(turn), case) for case in _case(turn))
        self._tested += sum(map(_counts, turn.variants))
        self._reported += len(turn.violations)
        self._outvoted += sum(
            item.votes is not None and item.votes.changed > 0 and item.outcome == "held"
            for item in turn.variants
        )

    @property
    def noise(self) -> Noise | None:
        """The noise; ``None`` if no clean turn has several answers."""
        if not self._kinds:
            return None
        answers = min(len(kinds) for _, kinds in self._kinds)
        pairs: dict[str, tuple[int, int]] = {}
        for (dialogue, kinds), turns in self._kinds.items():
            differing, all_pairs = pairs.get(dialogue, (0, 0))
            some, of = _differing(kinds[:answers])
            pairs[dialogue] = differing + turns * some, all_pairs + turns * of
        found = list(pairs.values())
        self._cases.sort(key=itemgetter(0))
        cases = [case for _, case in self._cases]
        model = _Model(cases, self._clean, self._tested, self._reported)
        real, noise = model.draws(stream(0, "noise"))
        low, high = np.percentile(real, [2.5, 97.5])
        return Noise(
            turns=self._kinds.total(),
            answers=answers,
            differed=sum(
                turns for (_, kinds), turns in self._kinds.items() if len({*kinds[:answers]}) > 1
            ),
            disagreement=sum(part for part, _ in found) / sum(whole for _, whole in found),
            disagreement_interval=ratio_interval(found),
            wobble=model.wobble,
            outvoted=self._outvoted,
            expected_noise=float(noise.mean()),
            expected_missed=float((real - self._reported + noise).mean()),
            real_violations=(int(np.floor(low)), int(np.ceil(high))),
        )


def _place(turn: TurnResult) -> tuple[str, int, str, int]:
    # Two tests may run the same turn with different settings.
    return turn.dialogue_id, turn.turn_index, turn.id, len(turn.variants)


def _differing(kinds: Sequence[int]) -> tuple[int, int]:
    """Count the differing pairs of answers, and all pairs."""
    count = len(kinds)
    same = sum(number * (number - 1) // 2 for number in Counter(kinds).values())
    return count * (count - 1) // 2 - same, count * (count - 1) // 2


class _VariantVotes(NamedTuple):
    """The answers to a variant that was asked several times. The majority decides."""

    #: Answers that break the relation, and answers that keep it.
    changed: int
    kept: int
    reported: bool
    #: Whether the variant would hold if the vote on the clean turn were wrong.
    flips: bool
    #: Answers after the first that equal the clean state, and those that do not.
    same: int
    others: int


@dataclass(frozen=True, slots=True)
class _VotedTurn:
    """A turn with at least one variant that was asked several times."""

    #: Answers to its clean turn for and against the clean value.
    clean: tuple[int, int]
    voted: tuple[_VariantVotes, ...]
    #: Number of variants that held with a single answer.
    held: int


class _Model:
    """A Bayesian model of votes. An answer differs from the usual one with probability w.

    ``clean`` are the votes on clean turns. ``tested`` is the number of variants that could be
    violations. ``reported`` is the number of reported violations.
    """

    def __init__(
        self,
        cases: Sequence[_VotedTurn],
        clean: Mapping[tuple[int, int], int],
        tested: int,
        reported: int,
    ) -> None:
        self._cases, self._tested, self._reported = cases, tested, reported
        most = 1 + max(
            [
                *(right for right, _ in clean),
                *(max(case.clean) for case in self._cases),
                *(max(one.changed, one.kept) for case in self._cases for one in case.voted),
                1,
            ]
        )
        #: [cells, right answers, wrong answers]: E[w^wrong (1 - w)^right].
        self._table = _table(most)
        logs = sum(
            count * np.log(self._table[:, r, q] + self._table[:, q, r])
            for (r, q), count in sorted(clean.items())
        )
        weights = np.exp(logs - np.max(logs))
        self._weights: Floats = weights / weights.sum()
        #: Mean of w.
        self.wobble = float(self._weights @ np.repeat(_MEANS, len(_SIZES)))

    def draws(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw two arrays: numbers of real violations, and numbers of reported ones that are noise.

        Each array has `DRAWS` random numbers.
        """
        reported = self._reported
        cells = rng.choice(len(self._weights), size=DRAWS, p=self._weights)
        rates = rng.beta(0.5 + reported, 0.5 + max(self._tested - reported, 0), size=DRAWS)
        real, noise = np.zeros(DRAWS), np.zeros(DRAWS)
        same, others = np.zeros(DRAWS), np.zeros(DRAWS)
        for case in self._cases:
            changed, of_held = _draw(case, self._table[cells], rates, rng)
            reported_here = np.array([one.reported for one in case.voted])
            found = changed & reported_here
            real += changed.sum(axis=1) + of_held
            noise += reported_here.sum() - found.sum(axis=1)
            same += found @ np.array([one.same for one in case.voted])
            others += found @ np.array([one.others for one in case.voted])
        # If more than half of the answers do not show a change, it does not count as a change.
        missing = np.minimum(rng.beta(0.5 + same, 0.5 + others), 0.5)
        # Hidden changes cannot be estimated if none was seen, so assume that there are none.
        missing = np.where(others > 0, missing, 0.0)
        missed = rng.negative_binomial(real + 0.5, 1.0 - missing)
        return np.minimum(real + missed, max(self._tested, reported)), noise


def _draw(
    case: _VotedTurn, table: Floats, rates: Floats, rng: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Draw the real violations among the variants of a turn.

    ``table`` has likelihoods, [DRAWS, right, wrong]. ``rates`` has rates of violations, [DRAWS].
    Return two arrays. The first says which variants with a vote are real violations, [DRAWS,
    voted]. The second is the number of real violations among the others, [DRAWS].
    """
    ones = np.ones(DRAWS)
    fragile = (rates / 2) / np.maximum(_FRAGILE - rates / 2, rates)
    right, against = case.clean
    weights: list[Floats] = []
    chances: list[list[Floats]] = []
    for wrong in (False, True):
        for share, rate in ((1 - fragile, rates / 2), (fragile, ones * _FRAGILE)):
            likely = table[:, against, right] if wrong else table[:, right, against]
            weight = np.log(share) + np.log(likely)
            each: list[Floats] = []
            for one in case.voted:
                b, a, flips = one.changed, one.kept, one.flips
                change, same = rate * table[:, b, a], (1 - rate) * table[:, a, b]
                if wrong and flips:
                    change, same = rate * table[:, a, b], (1 - rate) * table[:, b, a]
                weight = weight + np.log(change + same)
                each.append(change / (change + same))
            change, same = rate * table[:, 0, 1], (1 - rate) * table[:, 1, 0]
            if wrong:
                change, same = rate * table[:, 1, 0], (1 - rate) * table[:, 0, 1]
            weights.append(weight + case.held * np.log(change + same))
            each.append(change / (change + same) if wrong else np.zeros(DRAWS))
            chances.append(each)
    logs = np.stack(weights)
    total = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
    which = (rng.random(DRAWS) * total[-1] > total).sum(axis=0).clip(0, 3)
    picked = np.stack([np.stack(each) for each in chances])[which, :, np.arange(DRAWS)]
    changed = rng.random((DRAWS, len(case.voted))) < picked[:, :-1]
    of_held = rng.binomial(case.held, picked[:, -1])
    return changed, of_held


def _table(most: int) -> Floats:
    """Return likelihoods, [cells, right, wrong]: E[w^wrong (1 - w)^right], up to ``most`` each."""
    means, sizes = np.repeat(_MEANS, len(_SIZES)), np.tile(_SIZES, len(_MEANS))
    first, second = 2 * means * sizes, (1 - 2 * means) * sizes
    share = 2 * _NODES
    density = np.exp(
        (first[:, None] - 1) * np.log(share) + (second[:, None] - 1) * np.log1p(-share)
    )
    density = density * _WIDTHS
    density = density / density.sum(axis=1, keepdims=True)
    powers = np.arange(most + 1)
    right = (1 - _NODES[:, None]) ** powers
    wrong = _NODES[:, None] ** powers
    likelihoods: Floats = np.einsum("cn,nr,nw->crw", density, right, wrong)
    return likelihoods


def _usual_and_others(turn: TurnResult) -> tuple[int, int]:
    """Count the clean answers of the most frequent kind, and all others.

    Votes on variants count likewise: all wrong answers together.
    """
    kinds = Counter(turn.clean_votes).items()
    counts = sorted((count for kind, count in kinds if kind >= 0), reverse=True)
    most, *others = counts or [0]
    return most, sum(others)


def _counts(item: VariantResult) -> bool:
    """Return whether a variant was run and might be a violation."""
    return item.outcome in ("held", "violation")


def _case(turn: TurnResult) -> Iterator[_VotedTurn]:
    """Yield the model's data on a turn if one of its variants has a vote."""
    voted = [(v, v.votes) for v in turn.variants if v.votes is not None and _counts(v)]
    if not voted:
        return
    change = _change if turn.kind.has_slots else _changed_paths
    changes = Counter(change(item) for item, _ in voted if item.outcome == "violation")
    common = changes.most_common(1)[0][0] if changes else None
    clean = [votes for item, votes in voted if common is None or change(item) == common]
    yield _VotedTurn(
        clean=(min(vote.clean for vote in clean), max(vote.against for vote in clean)),
        voted=tuple(
            _VariantVotes(
                changed=votes.changed,
                kept=votes.kept,
                reported=item.outcome == "violation",
                flips=item.outcome == "violation" and change(item) == common,
                same=votes.same,
                others=votes.asked - 1 - votes.same,
            )
            for item, votes in voted
        ),
        held=sum(item.outcome == "held" and item.votes is None for item in turn.variants),
    )


def _change(item: VariantResult) -> tuple[tuple[str, str | None], ...]:
    """Return the new changes of a violation. Equal changes count as the same violation."""
    return tuple((one.slot, one.after) for one in faults(item.changed_slots))


def _changed_paths(item: VariantResult) -> tuple[tuple[str, str | None], ...]:
    """Return the changed paths of a reply. Two wordings of a wrong reply are one change."""
    return tuple((path, None) for path, _ in _change(item))


#: The keys of the JSON report, in their order.
_KEYS: Final = (
    "turns generated vacuous duplicate vetoed over_rate valid held violations carried improved "
    "errors valid_rate failure_rate failure_rate_interval yield calls minimiser_calls "
    "conversation_calls turns_broken turns_tested dialogues_tested turn_failure_rate "
    "turn_failure_rate_interval clean_answered clean_empty clean_empty_share "
    "failure_rate_not_empty clean_labelled clean_right clean_accuracy noise repeats "
    "estimated_failures reach unstable malformed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Counts):
    """The figures of every report: counts and rates of variants and of turns."""

    #: Turns with a result, without those after the end of the budget.
    turns: int
    #: 95 % interval over dialogues. ``None`` if fewer than `figures.FEWEST_DIALOGUES` have valid
    #: variants or if no valid variant has an answer.
    failure_rate_interval: tuple[float, float] | None
    #: Number of requested contexts.
    calls: int
    #: Number of contexts for minimisation, which ``calls`` does not include.
    minimiser_calls: int
    #: Number of contexts requested again to check repeatability, which ``calls`` does not include.
    repeat_calls: int
    #: Turns with at least one violation.
    turns_broken: int
    #: Turns and dialogues with at least one valid variant, the units of the intervals.
    turns_tested: int
    dialogues_tested: int
    #: The same interval for the share of tested turns that are broken.
    turn_failure_rate_interval: tuple[float, float] | None
    #: Turns with an answer to the clean turn, and turns whose answer has no slot.
    clean_answered: int
    clean_empty: int
    #: Violations / valid over the turns with a non-empty answer, since most variants cannot change
    #: an empty answer. ``None`` if no valid variant has an answer.
    failure_rate_not_empty: float | None
    #: Turns with a label, and turns whose clean answer equals the label. A turn is wrong if the
    #: tracker failed, as in `trackers.evaluate`. Labels and answers have the same normalisation.
    clean_labelled: int
    clean_right: int
    #: Number of contexts for whole conversations, which ``calls`` does not include.
    conversation_calls: int = 0
    #: Answers that could not be parsed, such as arguments that are not JSON. Each was retried.
    malformed: int = 0
    #: Noise of a tracker that need not be repeatable; ``None`` if no clean turn was repeated.
    noise: Noise | None = None
    #: Checks of a tracker that must be repeatable; ``None`` if nothing was requested again.
    repeats: Repeats | None = None
    #: Estimates; ``None`` unless the search is `by_density` and the profile has a noise model.
    estimated_failures: EstimatedFailures | None = None
    #: Words that are never mistyped; ``None`` in profiles without a noise model.
    reach: Reach | None = None

    @property
    def turn_failure_rate(self) -> float | None:
        """Turns broken / turns tested; ``None`` if no variant has an answer."""
        return ratio(self.turns_broken, self.turns_tested) if self.answered else None

    @property
    def malformed_share(self) -> float | None:
        """Malformed answers / (malformed answers + calls); ``None`` without any."""
        return ratio(self.malformed, self.malformed + self.calls)

    @property
    def clean_empty_share(self) -> float | None:
        """Share of empty answers among the clean answers; ``None`` without an answer."""
        return ratio(self.clean_empty, self.clean_answered)

    @property
    def clean_accuracy(self) -> float | None:
        """Joint goal accuracy of the clean answers; ``None`` without a label."""
        return ratio(self.clean_right, self.clean_labelled)

    @property
    def broken_per_1000_calls(self) -> float | None:
        """Turns broken per 1,000 calls; ``None`` without a call."""
        return 1000 * self.turns_broken / self.calls if self.calls else None

    def to_json(self) -> dict[str, Any]:
        """Return the ``summary`` of the JSON report. Floats are not rounded."""
        names = {key: "yield_rate" if key == "yield" else key for key in _KEYS.split()}
        return {key: to_json(getattr(self, name)) for key, name in names.items()}


class SummaryTally:
    """Computes a `Summary` from results."""

    def __init__(self, numbers: DialogueNumbers | None = None) -> None:
        self._counted: Counter[str] = Counter()
        #: Counts of the variants of turns whose clean answer is not empty.
        self._telling: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        #: Violations, valid variants, turns broken and turns tested of each dialogue.
        self._dialogues = DialogueSums(4, numbers)
        self._noise, self._repeats = NoiseTally(), RepeatsTally()
        self._expected = ExpectedTally()
        self._reach = ReachTally()

    def add(self, turn: TurnResult) -> None:
        """Count the results of a turn."""
        counts = Counter(column(variant, credit=False) for variant in turn.variants)
        self._counted.update(counts)
        if turn.outcome != "skipped":
            self._turns["ran"] += 1
            if turn.clean_state is not None:
                self._turns["answered"] += 1
                self._turns["empty"] += not turn.clean_state
                if turn.clean_state:
                    self._telling.update(counts)
            if turn.label is not None:
                self._turns["labelled"] += 1
                self._turns["right"] += turn.is_right
        self._turns["calls"] += turn.calls
        self._turns["minimiser_calls"] += turn.minimiser_calls
        self._turns["repeat_calls"] += turn.repeat_calls
        self._turns["conversation_calls"] += turn.conversation_calls
        self._turns["malformed"] += turn.malformed
        of_turn = Counts(**counts)
        broken, tested = bool(turn.violations), turn.tested
        self._turns["broken"] += broken
        self._turns["tested"] += tested
        self._dialogues.add(turn.dialogue_id, of_turn.violations, of_turn.valid, broken, tested)
        for tally in (self._noise, self._repeats, self._expected, self._reach):
            tally.add(turn)

    @property
    def summary(self) -> Summary:
        """The figures of the added turns."""
        turns = self._turns
        # If no variant has an answer, a rate would be meaningless.
        rated = self._dialogues if Counts(**self._counted).answered else DialogueSums(4)
        return Summary(
            **self._counted,
            turns=turns["ran"],
            failure_rate_interval=ratio_interval(rated.pairs(0, 1)),
            calls=turns["calls"],
            minimiser_calls=turns["minimiser_calls"],
            repeat_calls=turns["repeat_calls"],
            conversation_calls=turns["conversation_calls"],
            malformed=turns["malformed"],
            turns_broken=turns["broken"],
            turns_tested=turns["tested"],
            dialogues_tested=sum(tested > 0 for (tested,) in self._dialogues.rows(3)),
            turn_failure_rate_interval=ratio_interval(rated.pairs(2, 3)),
            clean_answered=turns["answered"],
            clean_empty=turns["empty"],
            failure_rate_not_empty=Counts(**self._telling).failure_rate,
            clean_labelled=turns["labelled"],
            clean_right=turns["right"],
            noise=self._noise.noise,
            repeats=self._repeats.repeats,
            estimated_failures=self._expected.expected,
            reach=self._reach.reach,
        )


def summarise(results: Iterable[TurnResult]) -> Summary:
    """Return the figures of ``results``. Their order does not matter."""
    return tally_results(SummaryTally(), results).summary


class YieldsTally:
    """Counts variants by slot and by domain.

    A variant counts for each slot of the clean prediction, and for each slot that it changed. It is
    a violation for the slots that it changed anew. For the other slots it counts as held. But if
    the change was carried, it counts as carried, and if the slot is now right, as improved. An
    argument of a tool is one slot for all calls of the tool.

    A domain is the part of a slot before its first dash. Slots without a dash have no domain and
    are left out. The domain of a tool call is its tool.
    """

    def __init__(self) -> None:
        self._slots: dict[str, Counter[str]] = {}
        self._domains: dict[str, Counter[str]] = {}

    def add(self, turn: TurnResult) -> None:
        """Count the variants of a turn."""
        for variant in turn.variants:
            for rows, group in ((self._slots, _slot), (self._domains, _domain)):
                for name, field in _at_stake(turn, variant, group).items():
                    rows.setdefault(name, Counter())[field] += 1

    @property
    def slots(self) -> dict[str, Counts]:
        """Counts by slot, sorted by slot."""
        return {name: Counts(**row) for name, row in sorted(self._slots.items())}

    @property
    def domains(self) -> dict[str, Counts]:
        """Counts by domain, sorted by domain."""
        return {name: Counts(**row) for name, row in sorted(self._domains.items())}


#: The outcomes of a slot of a violation, the strongest last.
_STRENGTH: Final = ("carried", "improved", "violations")


def _slot(path: str) -> str:
    return AnswerPath.of(path).part[1]


def _domain(path: str) -> str | None:
    return AnswerPath.of(path).part[0] or None


def _at_stake(
    turn: TurnResult, variant: VariantResult, group: Callable[[str], str | None]
) -> dict[str, str]:
    """Map each group of slots to the field of `Counts` that counts the variant."""
    # A group has the strongest outcome of its slots.
    found = {group(slot): "held" for slot in turn.clean_state or ()}
    about = set(faults(variant.changed_slots))
    kinds = {
        change: "carried" if change.carried else "violations" if change in about else "improved"
        for change in variant.changed_slots
    }
    for change in sorted(kinds, key=lambda one: _STRENGTH.index(kinds[one])):
        found[group(change.slot)] = kinds[change]
    if variant.outcome not in ("violation", "carried"):
        found = dict.fromkeys(found, column(variant, credit=False))
    return {name: field for name, field in found.items() if name is not None}
