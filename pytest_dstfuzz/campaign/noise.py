r"""How many violations of a tracker that disagrees with itself are noise, and how many are real.

The model. To one context a tracker gives its usual answer, and with chance w another one, the
same one each time: the worst case, as answers that go wrong in different ways do not add up to a
majority. w differs from context to context: 2 w is distributed as Beta(2 m s, (1 - 2 m) s). Each
pair (m, s) of a grid has the weight that the clean turns give it, each with r answers of the most
frequent kind and q of the second::

    L(r, q) = E[w^q (1 - w)^r],    weight(m, s) ~ product over clean turns of L(r, q) + L(q, r)

(one of the two kinds is the usual one). A variant with b answers that break the relation and a
that keep it has really changed with the odds rho L(b, a) : (1 - rho) L(a, b), where rho is the rate
of violations of its turn; turns are sound or fragile (`_FRAGILE`), as the violations of one turn
come together. That the clean vote of a turn is wrong, which spoils all of its variants, has the
odds L(against, clean) : L(clean, against) times those that the answers to the variants give it.

A real violation is missed where the first answer to it happened to be that of the clean turn: with
chance phi, for which the later answers to the violations found stand. So of V real ones found, a
number with a negative binomial distribution (V + 1/2, 1 - phi) was missed.

From all of this `DRAWS` numbers of real violations are drawn; their 2.5 and 97.5 percentiles are
the interval. By the likelihood principle it need not know when voting stopped, nor that only what
broke once was asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, faults
from pytest_dstfuzz.seeding import stream

DRAWS: Final = 1_000
#: Mean of w, and how alike contexts are: the grid.
_MEANS: Final = np.geomspace(0.0005, 0.45, 28)
_SIZES: Final = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
#: Values of w, close together near 0.
_NODES: Final = 0.5 * ((np.arange(80) + 0.5) / 80) ** 2
_WIDTHS: Final = (np.arange(80) + 0.5) / 80
#: Rate of violations in a turn that any edit upsets; such turns make up half of all violations.
_FRAGILE: Final = 0.8

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """What the answers of a tracker that disagrees with itself leave open."""

    #: Clean turns that were asked several times, ``answers`` times each at least.
    turns: int
    answers: int
    #: Those whose first ``answers`` answers were not all the same.
    differed: int
    #: Chance that two answers to one clean turn differ.
    disagreement: float
    #: Its 95 % interval over dialogues; ``None`` with too few of them.
    disagreement_interval: tuple[float, float] | None
    #: Chance that one answer is not the usual one to its context.
    wobble: float
    #: Variants whose first answer broke the relation, and the vote said otherwise.
    outvoted: int
    #: Reported violations that are noise, and real ones that are not reported, on average.
    expected_noise: float
    expected_missed: float
    #: 95 % interval of the number of violations that the tracker would have without its noise.
    real_violations: tuple[int, int]


class NoiseTally:
    """Takes in what a tracker answered several times, one turn after the other.

    Of each turn with a variant that was put to the vote it keeps the counts of that vote, some 300
    bytes: which of them are noise is drawn together, so no sums will do.
    """

    def __init__(self) -> None:
        #: (dialogue, kinds of the answers to a clean turn) -> turns.
        self._kinds: Counter[tuple[str, tuple[int, ...]]] = Counter()
        #: Answers to a clean turn of the most frequent kind, and of the next one -> turns.
        self._clean: Counter[tuple[int, int]] = Counter()
        self._cases: list[tuple[tuple[str, int, str, int], _VotedTurn]] = []
        self._tested = self._reported = self._outvoted = 0

    def add(self, turn: TurnResult) -> None:
        """Take in a turn, where its clean turn was asked more than once."""
        # A turn to which something else is said each time is not tested.
        if not turn.clean_votes or turn.reason == UNSTABLE:
            return
        self._kinds[turn.dialogue_id, turn.clean_votes] += 1
        self._clean[_most_and_next(turn)] += 1
        self._cases += ((_place(turn), case) for case in _case(turn))
        self._tested += sum(map(_counts, turn.variants))
        self._reported += len(turn.violations)
        self._outvoted += sum(
            item.votes is not None and item.votes.changed > 0 and item.outcome == "held"
            for item in turn.variants
        )

    @property
    def noise(self) -> Noise | None:
        """The noise; ``None`` where no clean turn was asked more than once."""
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
    # Two tests may run one turn with other settings.
    return turn.dialogue_id, turn.turn_index, turn.id, len(turn.variants)


def _differing(kinds: Sequence[int]) -> tuple[int, int]:
    """Return how many pairs of answers differ, and how many pairs there are."""
    count = len(kinds)
    same = sum(number * (number - 1) // 2 for number in Counter(kinds).values())
    return count * (count - 1) // 2 - same, count * (count - 1) // 2


class _Voted(NamedTuple):
    """A variant that was put to the vote."""

    #: Answers that break the relation and that keep it.
    changed: int
    kept: int
    reported: bool
    #: Whether it would hold if the clean vote were wrong.
    flips: bool
    #: Of the answers but for the first, those that are as the clean state, and the others.
    same: int
    others: int


@dataclass(frozen=True, slots=True)
class _VotedTurn:
    """A turn some of whose variants were put to the vote."""

    #: Answers to its clean turn for and against the clean value.
    clean: tuple[int, int]
    voted: tuple[_Voted, ...]
    #: Variants that were asked once and held.
    held: int


class _Model:
    """The model of this module, for the votes of some turns and the answers to clean ones.

    ``tested`` variants might have been violations, ``reported`` are.
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
        """Return numbers of real violations, and of reported ones that are noise: [DRAWS] each."""
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
        # A change that is kept back by more than half of the answers is none.
        missing = np.minimum(rng.beta(0.5 + same, 0.5 + others), 0.5)
        # Where none was found there is nothing to learn it from: as if no answer kept one back.
        missing = np.where(others > 0, missing, 0.0)
        missed = rng.negative_binomial(real + 0.5, 1.0 - missing)
        return np.minimum(real + missed, max(self._tested, reported)), noise


def _draw(
    case: _VotedTurn, table: Floats, rates: Floats, rng: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Draw which variants of a turn are real violations.

    From likelihoods, [DRAWS, right, wrong], and rates of violations, [DRAWS]. Returns whether
    each variant that was put to the vote is one, [DRAWS, voted], and how many of those are
    that were not, [DRAWS].
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


def _most_and_next(turn: TurnResult) -> tuple[int, int]:
    """Return how many clean answers are of the most frequent kind, and of the next one.

    Of replies all others are the next one: those to a variant count as one as well, see `folding`.
    """
    kinds = Counter(turn.clean_votes).items()
    counts = sorted((count for kind, count in kinds if kind >= 0), reverse=True)
    most, *others = counts or [0]
    return most, sum(others[:1] if turn.kind.has_slots else others)


def _counts(item: VariantResult) -> bool:
    """Whether a variant was run and might have been a violation."""
    return item.outcome in ("held", "violation")


def _case(turn: TurnResult) -> Iterator[_VotedTurn]:
    """Yield what is needed of a turn, if one of its variants was put to the vote."""
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
            _Voted(
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
    """Return what a violation changed anew, to tell whether two are the same."""
    return tuple((one.slot, one.after) for one in faults(item.changed_slots))


def _changed_paths(item: VariantResult) -> tuple[tuple[str, str | None], ...]:
    """Return the same of replies: two wordings of one wrong reply are one change."""
    return tuple((path, None) for path, _ in _change(item))
