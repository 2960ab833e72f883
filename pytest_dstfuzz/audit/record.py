"""The file of an audit, and the statistics computed from its judgements."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.audit.decoys import ALL_KINDS
from pytest_dstfuzz.audit.sample import (
    KEEPING,
    AuditRow,
    Draw,
    Question,
    Sample,
    Verdict,
    draw_sample,
    of_relation,
)
from pytest_dstfuzz.campaign.figures import FEWEST_DIALOGUES, interval_name, ratio_interval
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import lock_file, read_versioned, write_json
from pytest_dstfuzz.json_data import from_json, to_json

#: Quantile of the normal distribution for a 95 % interval.
_Z: Final = 1.959964

#: Row id -> verdict.
Judgements = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Precision:
    """The statistics of one judge over the rows judged so far.

    The field names are keys of the file.
    """

    #: Number of judged violations, and how many the judge accepted.
    violations: int
    keeps: int
    #: Share of accepted violations, or ``None`` if no violation was judged.
    precision: float | None
    #: 95 % interval of the precision. ``None`` if no violation was judged, or if some dialogue has
    #: several judged violations and there are fewer than `FEWEST_DIALOGUES` dialogues.
    interval: tuple[float, float] | None
    #: ``wilson``, or ``dialogues`` (`ratio_interval`) if a dialogue has several judged violations.
    method: str
    #: Number of dialogues with a judged violation.
    dialogues: int
    decoys: int
    caught: int
    #: Kind of decoy -> (caught, judged).
    by_kind: Mapping[str, tuple[int, int]]
    #: Ids of violations that the judge rejected: possible false positives.
    false_alarms: tuple[str, ...]
    #: Ids of decoys that the judge accepted.
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two judges on rows that both judged.

    The field names are keys of the file.
    """

    judges: tuple[str, str]
    rows: int
    agreed: int
    #: Cohen's kappa, or ``None`` if it is not defined.
    kappa: float | None
    disagreements: tuple[str, ...]


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion (JASA 22, 1927, 209-212)."""
    share, square = hits / trials, _Z * _Z
    centre = share + square / (2 * trials)
    spread = _Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa ``(p - e) / (1 - e)`` of two judges' verdicts on the same rows.

    ``p`` is the observed agreement. ``e`` is the agreement expected by chance from how often each
    judge gave each verdict (Educational and Psychological Measurement 20, 1960, 37-46). Kappa
    ranges from -1 to 1. It is ``None`` if there are no rows, or if both judges gave the same single
    verdict to every row.
    """
    if not pairs:
        return None
    count = len(pairs)
    first, second = (Counter(column) for column in zip(*pairs, strict=True))
    # Use integers, so that 1 - e is exactly 0 when chance agreement is perfect.
    by_chance = sum(first[verdict] * second[verdict] for verdict in first)
    if by_chance == count * count:
        return None
    agreed = sum(one == two for one, two in pairs)
    return (agreed * count - by_chance) / (count * count - by_chance)


def precision(sample: Sample, judgements: Judgements) -> Precision:
    """Compare one judge's verdicts with the true kinds of the rows. Skip unjudged rows."""
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
    """Return the agreement of every pair of judges, over violations and decoys."""
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
    """Return the statistics of one judge as lines of text."""
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
        lines.append(f"  missed decoys: {', '.join(result.missed)}")
    return lines


def agreement_lines(result: Agreement) -> list[str]:
    """Return the agreement of two judges as lines of text."""
    one, two = result.judges
    kappa = "undefined: all verdicts are equal" if result.kappa is None else f"{result.kappa:.2f}"
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
        return f" (no interval: needs {FEWEST_DIALOGUES} dialogues, got {result.dialogues})"
    low, high = result.interval
    name = "95 % Wilson interval"
    if result.method != "wilson":
        name = f"{interval_name(result.dialogues)} over dialogues"
    return f" ({name} {100 * low:.1f} to {100 * high:.1f} %)"


_SCHEMA_VERSION: Final = 1


@dataclass(slots=True)
class Audit:
    """A sample of violations and decoys, and the verdicts on it so far."""

    sample: Sample
    path: Path
    #: Judge -> row id -> verdict.
    judges: dict[str, Judgements] = field(default_factory=dict)

    def verdicts(self, judge: str) -> Judgements:
        """Return the verdicts of a judge so far, as a read-only mapping."""
        return self.judges.get(judge, {})

    def left(self, judge: str) -> tuple[AuditRow, ...]:
        """Return the rows that the judge has not judged yet, in the judge's order."""
        given = self.verdicts(judge)
        return tuple(row for row in self.sample.order(judge) if row.id not in given)

    def say(self, judge: str, verdicts: Mapping[str, str]) -> None:
        """Add verdicts of a judge and write the file. New verdicts replace earlier ones.

        Verdicts that other processes have written to the file in the meantime are kept.

        Raises:
            DataError: a row is not in the sample, or a verdict is no answer to its question.
            UserError: the file now has verdicts on another sample.
        """
        known_rows = {row.id for row in self.sample.rows}
        for name, verdict in verdicts.items():
            if name not in known_rows:
                raise DataError(f"judgement of {name!r}, which is not in the sample")
            if verdict not in self.sample.question.answers.values():
                words = " or ".join(self.sample.question.answers.values())
                raise DataError(f"judgement of {name!r}: must be {words}, not {verdict!r}")
        self._write({judge: verdicts})

    def save(self) -> None:
        """Write the file with the verdicts that it has. It also stores how the sample was drawn.

        Raises:
            UserError: the file now has verdicts on another sample.
        """
        self._write({})

    def _write(self, new: Mapping[str, Mapping[str, str]]) -> None:
        """Add the file's verdicts and new ones by judge, and write the file, under a lock."""
        with lock_file(self.path):
            if self.path.exists():
                known = _read(self.path)
                _refuse_other_sample(self.path, known, self.sample)
                self.judges.update(known.judges)
            for judge, verdicts in new.items():
                merged = {**self.verdicts(judge), **verdicts}
                # In the order of the rows, so that the file does not depend on that of the answers.
                self.judges[judge] = {
                    row.id: merged[row.id] for row in self.sample.rows if row.id in merged
                }
            write_json(self.path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        sample, judges = self.sample, dict(sorted(self.judges.items()))
        return {
            "schema_version": _SCHEMA_VERSION,
            "sample": {
                **{name: value for name, value in asdict(sample.draw).items() if value != ""},
                "fingerprint": sample.fingerprint,
                "key": {row.id: row.key() for row in sample.rows},
            },
            "judges": judges,
            "figures": {
                "judges": to_json({name: precision(sample, judges[name]) for name in judges}),
                "agreements": to_json(agreements(sample, judges)),
            },
        }

    def lines(self, judge: str) -> list[str]:
        """Return a judge's statistics, or only the progress while rows are left.

        Statistics before the end would reveal which rows are decoys, and other judges' verdicts.
        """
        left = len(self.left(judge))
        if left:
            whole = len(self.sample.rows)
            return [
                f"{judge}: {whole - left} of {whole} rows judged; figures come after the last row"
            ]
        done = {name: given for name, given in sorted(self.judges.items()) if not self.left(name)}
        lines = [
            line
            for name, given in done.items()
            for line in precision_lines(name, precision(self.sample, given), self.sample.question)
        ]
        for found in agreements(self.sample, done):
            lines += agreement_lines(found)
        return lines


def audit_path(report: Path, turns: Results, relation: str) -> Path:
    """Return the path of the audit file. Each of several relations has its own file.

    Raises:
        UserError: the report does not have the relation, or has several relations and none is
            named.
    """
    of_relation(turns, relation)
    several = len({turn.relation for turn in turns}) > 1
    # The name of a suite's relation may contain any character.
    name = re.sub(r"[^\w.-]", "_", relation)
    return report.with_name(f"{report.stem}{f'.{name}' if several else ''}.audit.json")


def open_audit(path: Path, turns: Results, given: Mapping[str, Any]) -> Audit:
    """Open an audit: draw its sample, or resume it with the verdicts in its file.

    ``given`` holds the fields of `Draw` that the user has set. Others come from the file or the
    defaults.
    """
    known = _read(path) if path.exists() else _AuditFile(_SampleDraw(), {})
    was_drawn = {item.name: getattr(known.sample, item.name) for item in fields(Draw)}
    sample = draw_sample(turns, Draw(**{**was_drawn, **given}))
    _refuse_other_sample(path, known, sample)
    return Audit(sample, path, {**known.judges})


def _refuse_other_sample(path: Path, known: _AuditFile, sample: Sample) -> None:
    """Raise an error if the file has verdicts on another sample."""
    if known.judges and sample.fingerprint != known.sample.fingerprint:
        drawn = {item.name: getattr(known.sample, item.name) for item in fields(Draw)}
        was = ", ".join(f"{name.replace('_', '-')} {n}" for name, n in drawn.items() if n != "")
        raise UserError(
            f"{path} contains judgements of another sample ({was}): draw the same sample from the "
            "same report, or move that file away to start again"
        )


@dataclass(frozen=True, slots=True)
class _SampleDraw(Draw):
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class _AuditFile:
    """The stored parts of an audit. Everything else is computed from them."""

    sample: _SampleDraw
    judges: dict[str, dict[str, Verdict]]


def _read(path: Path) -> _AuditFile:
    content = read_versioned(path, "audit", "schema_version", _SCHEMA_VERSION)
    try:
        return from_json(_AuditFile, content)
    except ValueError as error:
        raise DataError(f"{path} is not an audit: {error}") from None
