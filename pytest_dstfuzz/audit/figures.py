"""What judgements say: precision with its interval, decoys caught, agreement of judges."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.audit.decoy_draw import ALL_KINDS
from pytest_dstfuzz.audit.question import KEEPING, Question
from pytest_dstfuzz.audit.sample import AuditRow, Sample
from pytest_dstfuzz.campaign.intervals import FEWEST_DIALOGUES, interval_name, ratio_interval

#: Quantile of the normal distribution for 95 %.
_Z: Final = 1.959964

#: Id of a row -> verdict.
Judgements = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Precision:
    """What one judge says, of the rows judged so far; its fields are the keys in the file."""

    #: Violations judged, and those that keep the meaning.
    violations: int
    keeps: int
    #: Share of the violations that keep the meaning; ``None`` where none was judged.
    precision: float | None
    #: 95 % interval of the precision; ``None`` where nothing can be said: no violation was
    #: judged, or several of a dialogue and of fewer than `FEWEST_DIALOGUES` dialogues.
    interval: tuple[float, float] | None
    #: ``wilson``, or ``dialogues`` (`ratio_interval`) where one gave several of the violations.
    method: str
    #: Those that gave the violations.
    dialogues: int
    decoys: int
    caught: int
    #: Kind of decoy -> (caught, judged).
    by_kind: Mapping[str, tuple[int, int]]
    #: Ids of violations judged to change the meaning: false alarms to look at.
    false_alarms: tuple[str, ...]
    #: Ids of decoys that the judge let pass.
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree, on the rows that both have judged; likewise."""

    judges: tuple[str, str]
    rows: int
    agreed: int
    #: Cohen's kappa; ``None`` where chance alone would make them agree on all.
    kappa: float | None
    disagreements: tuple[str, ...]


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of independent trials (JASA 22, 1927, 209-212)."""
    share, square = hits / trials, _Z * _Z
    centre = share + square / (2 * trials)
    spread = _Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa ``(p - e) / (1 - e)`` of two judges' verdicts on the same rows.

    ``p`` is the share on which they agree, ``e`` the one that two judges who gave their
    verdicts by chance, each as often as he did, would agree on (Educational and
    Psychological Measurement 20, 1960, 37-46). From -1 to 1; ``None`` without rows, or where
    both gave one and the same verdict to all.
    """
    if not pairs:
        return None
    count = len(pairs)
    first, second = (Counter(column) for column in zip(*pairs, strict=True))
    # In whole numbers, so that 1 - e is exactly 0 where it is.
    by_chance = sum(first[verdict] * second[verdict] for verdict in first)
    if by_chance == count * count:
        return None
    agreed = sum(one == two for one, two in pairs)
    return (agreed * count - by_chance) / (count * count - by_chance)


def precision(sample: Sample, judgements: Judgements) -> Precision:
    """Compare one judge's verdicts with the key; rows without a verdict do not count."""
    judged = [row for row in sample.rows if row.id in judgements]
    real = [row for row in judged if row.real]
    fake = [row for row in judged if not row.real]
    keeps = [row for row in real if judgements[row.id] == sample.question.good]
    caught = [row for row in fake if judgements[row.id] == sample.question.bad]
    kinds = Counter(row.kind for row in fake)
    hits = Counter(row.kind for row in caught)
    interval, method = _interval(real, keeps)
    return Precision(
        violations=len(real),
        keeps=len(keeps),
        precision=len(keeps) / len(real) if real else None,
        interval=interval,
        method=method,
        dialogues=len({row.dialogue for row in real}),
        decoys=len(fake),
        caught=len(caught),
        by_kind={kind: (hits[kind], kinds[kind]) for kind in ALL_KINDS if kinds[kind]},
        false_alarms=tuple(row.id for row in real if judgements[row.id] == sample.question.bad),
        missed=tuple(row.id for row in fake if judgements[row.id] == sample.question.good),
    )


def agreements(sample: Sample, judges: Mapping[str, Judgements]) -> tuple[Agreement, ...]:
    """Return the agreement of every two judges, over violations and decoys."""
    found = []
    for one, two in itertools.combinations(judges, 2):
        both = [row.id for row in sample.rows if row.id in judges[one] and row.id in judges[two]]
        pairs = [(judges[one][name], judges[two][name]) for name in both]
        apart = [name for name, (a, b) in zip(both, pairs, strict=True) if a != b]
        found.append(
            Agreement(
                (one, two), len(both), len(both) - len(apart), cohen_kappa(pairs), tuple(apart)
            )
        )
    return tuple(found)


def precision_lines(judge: str, result: Precision, question: Question = KEEPING) -> list[str]:
    """Return the figures of one judge as lines of text."""
    lines = []
    if result.precision is not None:
        lines.append(
            f"{judge}: {result.keeps} of {result.violations} violations {question.share} = "
            f"precision {100 * result.precision:.1f} %{_bounds(result)}"
        )
    if result.decoys:
        kinds = ", ".join(
            f"{kind.replace('_', ' ')} {hit} of {count}"
            for kind, (hit, count) in result.by_kind.items()
        )
        lines.append(f"  decoys caught: {result.caught} of {result.decoys} ({kinds})")
    if result.false_alarms:
        lines.append(f"  judged {question.otherwise}: {', '.join(result.false_alarms)}")
    if result.missed:
        lines.append(f"  decoys let pass: {', '.join(result.missed)}")
    return lines


def agreement_lines(result: Agreement) -> list[str]:
    """Return the agreement of two judges as lines of text."""
    one, two = result.judges
    kappa = "not defined: one verdict throughout" if result.kappa is None else f"{result.kappa:.2f}"
    lines = [
        f"{one} and {two} agree on {result.agreed} of {result.rows} rows; Cohen's kappa {kappa}"
    ]
    if result.disagreements:
        lines.append(f"  they disagree on: {', '.join(result.disagreements)}")
    return lines


def _interval(
    real: Sequence[AuditRow], keeps: Sequence[AuditRow]
) -> tuple[tuple[float, float] | None, str]:
    whole = Counter(row.dialogue for row in real)
    if all(count == 1 for count in whole.values()):
        return (wilson(len(keeps), len(real)) if real else None), "wilson"
    part = Counter(row.dialogue for row in keeps)
    pairs = [(part[dialogue], whole[dialogue]) for dialogue in sorted(whole)]
    return ratio_interval(pairs), "dialogues"


def _bounds(result: Precision) -> str:
    if result.interval is None:
        return f" (no interval: {result.dialogues} dialogues, and it takes {FEWEST_DIALOGUES})"
    low, high = result.interval
    name = "95 % Wilson interval"
    if result.method != "wilson":
        name = f"{interval_name(result.dialogues)} over dialogues"
    return f" ({name} {100 * low:.1f} to {100 * high:.1f} %)"
