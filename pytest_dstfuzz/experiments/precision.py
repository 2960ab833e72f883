"""Precision: do reported violations keep the meaning, by the judgement of a reader?

``dstfuzz experiment precision-sheet REPORT`` draws violations out of a JSON report, at
most one a dialogue, mixes hidden decoys among them (`decoys`) and writes two files: the
sheet for the reader, in which nothing tells which is which, and the key.

Sheet, one JSON object a line: ``id``; ``earlier`` (the earlier user utterances that the
tracker saw perturbed: ``turn``, ``clean``, ``perturbed``), ``system``, ``clean`` and
``perturbed``. The reader answers with one JSON object a line: ``{"id": "q001", "same":
true}``, true where the perturbed dialogue asks for the same as the clean one as far as
the slots go; ``note`` is free.

``dstfuzz experiment precision-score KEY JUDGEMENTS`` compares the answers with the key:
precision = violations judged the same, with Wilson's interval (right here, since each
dialogue gives one), and how many decoys were caught, by kind.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.experiments.decoys import KINDS, Decoy, DecoyMaker
from pytest_dstfuzz.report.edits import undo_edits
from pytest_dstfuzz.report.files import write_text
from pytest_dstfuzz.report.json_report import read_report, report_turns
from pytest_dstfuzz.seeding import stream

#: Quantile of the normal distribution for 95 %.
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows for the reader, and the key to them, in the same order."""

    rows: tuple[dict[str, Any], ...]
    key: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Precision:
    """What the judgements say."""

    violations: int
    same: int
    decoys: int
    caught: int
    #: Kind of decoy -> (caught, all).
    by_kind: Mapping[str, tuple[int, int]]
    #: Ids of violations judged to change the meaning: false alarms to look at.
    false_alarms: tuple[str, ...]
    #: Ids of decoys that the reader let pass.
    missed: tuple[str, ...]

    @property
    def precision(self) -> float | None:
        """Share of the violations that keep the meaning."""
        return self.same / self.violations if self.violations else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the precision."""
        return wilson(self.same, self.violations) if self.violations else None


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share; one trial a dialogue is assumed."""
    share, square = hits / trials, _Z * _Z
    centre = share + square / (2 * trials)
    spread = _Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def draw_sheet(
    turns: Sequence[TurnResult], *, violations: int = 200, decoys: int = 40, seed: int = 0
) -> Sheet:
    """Draw the violations, make the decoys, and shuffle them into one sheet.

    Fewer violations are taken where fewer dialogues have one. Decoys come from
    dialogues that gave no violation while these last, and carry about as many edits.

    Raises:
        UserError: the turns hold no violation, or give no occasion for so many decoys.
    """
    drawn = _draw_violations(turns, violations, seed)
    if not drawn:
        raise UserError("the report holds no violation to judge")
    hidden = _draw_decoys(turns, drawn, decoys, seed)
    entries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        _entry(turn, variant, variant.text, "violation", "") for turn, variant in drawn
    ]
    entries += [_entry(made.turn, made.variant, made.text, made.kind, made.what) for made in hidden]
    order = stream(seed, "precision", "order").permutation(len(entries))
    rows, key = [], []
    for number, position in enumerate(order, start=1):
        row, secret = entries[int(position)]
        rows.append({"id": f"q{number:03d}", **row})
        key.append({"id": f"q{number:03d}", **secret})
    return Sheet(tuple(rows), tuple(key))


def score(key: Iterable[Mapping[str, Any]], judgements: Iterable[Mapping[str, Any]]) -> Precision:
    """Compare judgements with the key.

    Raises:
        DataError: a row is judged twice, not at all, or is not of this key, or an
            answer is neither true nor false.
    """
    kinds = {str(row["id"]): _kind(row) for row in key}
    answers = _answers(judgements, kinds)
    real = [name for name, kind in kinds.items() if kind == "violation"]
    fake = [name for name, kind in kinds.items() if kind != "violation"]
    by_kind = {
        kind: (
            sum(not answers[name] for name in fake if kinds[name] == kind),
            sum(kinds[name] == kind for name in fake),
        )
        for kind in KINDS
        if kind in kinds.values()
    }
    return Precision(
        violations=len(real),
        same=sum(answers[name] for name in real),
        decoys=len(fake),
        caught=sum(not answers[name] for name in fake),
        by_kind=by_kind,
        false_alarms=tuple(name for name in real if not answers[name]),
        missed=tuple(name for name in fake if answers[name]),
    )


def score_lines(result: Precision) -> list[str]:
    """Return the figures as lines of text."""
    lines = []
    if result.precision is not None and result.interval is not None:
        low, high = result.interval
        lines.append(
            f"precision: {result.same} of {result.violations} violations keep the meaning = "
            f"{result.precision:.1%} (95 % Wilson interval {low:.1%} to {high:.1%})"
        )
    lines.append(f"decoys caught: {result.caught} of {result.decoys}")
    lines += [f"  {kind}: {hit} of {count}" for kind, (hit, count) in result.by_kind.items()]
    if result.false_alarms:
        lines.append(f"judged to change the meaning: {', '.join(result.false_alarms)}")
    if result.missed:
        lines.append(f"decoys let pass: {', '.join(result.missed)}")
    return lines


def write_sheet(report: Path, sheet_path: Path, key_path: Path, **options: int) -> Sheet:
    """Read a report, draw a sheet (options of `draw_sheet`) and write sheet and key."""
    if sheet_path.resolve() == key_path.resolve():
        raise UserError(f"sheet and key would be the same file, {sheet_path}")
    sheet = draw_sheet(report_turns(read_report(report)), **options)
    write_text(sheet_path, _jsonl(sheet.rows))
    write_text(key_path, _jsonl(sheet.key))
    return sheet


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line.

    Raises:
        DataError: it cannot be read, or a line is no object with an ``id``.
    """
    try:
        # Not splitlines: a text may hold separators that JSON does not escape.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise DataError(f"{path}, line {number}: must be an object with a text 'id'")
        rows.append(row)
    return rows


def _draw_violations(
    turns: Sequence[TurnResult], count: int, seed: int
) -> list[tuple[TurnResult, VariantResult]]:
    by_dialogue: dict[str, list[tuple[TurnResult, VariantResult]]] = {}
    for turn in sorted(turns, key=lambda turn: (turn.dialogue_id, turn.turn_index)):
        for variant in turn.violations:
            by_dialogue.setdefault(turn.dialogue_id, []).append((turn, variant))
    random = stream(seed, "precision", "violations")
    drawn = [found[int(random.integers(len(found)))] for found in by_dialogue.values()]
    return [drawn[int(index)] for index in random.permutation(len(drawn))[:count]]


def _draw_decoys(
    turns: Sequence[TurnResult],
    drawn: Sequence[tuple[TurnResult, VariantResult]],
    count: int,
    seed: int,
) -> list[Decoy]:
    maker = DecoyMaker(turns)
    used = {turn.dialogue_id for turn, _ in drawn}
    random = stream(seed, "precision", "decoys")
    bases = [
        (turn, variant)
        for turn in sorted(turns, key=lambda turn: (turn.dialogue_id, turn.turn_index))
        for variant in turn.variants
        if variant.outcome in RUN_OUTCOMES and variant.edits
    ]
    order = [bases[int(index)] for index in random.permutation(len(bases))]
    fresh = [base for base in order if base[0].dialogue_id not in used]
    # Where every dialogue has a violation, other turns of these dialogues serve as well.
    spare = [base for base in order if base[0].dialogue_id in used]
    made: list[Decoy] = []
    taken: set[str] = set()
    exhausted: set[str] = set()
    # Kinds take turns; the others fill the places of one that has no occasion left.
    for kind in itertools.cycle(KINDS):
        if len(made) == count or len(exhausted) == len(KINDS):
            break
        if kind in exhausted:
            continue
        edits = len(drawn[int(random.integers(len(drawn)))][1].edits)
        decoy = _first_decoy(maker, fresh, taken, kind, edits) or _first_decoy(
            maker, spare, taken, kind, edits
        )
        if decoy is None:
            exhausted.add(kind)
        else:
            made.append(decoy)
            taken.add(decoy.turn.id)
    if len(made) < count:
        raise UserError(
            f"the report gives occasion for {len(made)} decoys only, not {count}: "
            "test more turns, or ask for fewer"
        )
    return made


def _first_decoy(
    maker: DecoyMaker,
    bases: Sequence[tuple[TurnResult, VariantResult]],
    taken: set[str],
    kind: str,
    edits: int,
) -> Decoy | None:
    """Return a decoy of a turn not taken yet, with the number of edits nearest to ``edits``."""
    for turn, variant in sorted(bases, key=lambda base: abs(len(base[1].edits) - edits)):
        if turn.id not in taken:
            decoy = maker.make(turn, variant, kind)
            if decoy is not None:
                return decoy
    return None


def _entry(
    turn: TurnResult, variant: VariantResult, text: str, kind: str, what: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    row = {
        "earlier": [
            {
                "turn": earlier.turn_index,
                "clean": undo_edits(variant.context[earlier.turn_index], earlier.edits),
                "perturbed": variant.context[earlier.turn_index],
            }
            for earlier in variant.context_edits
        ],
        "system": turn.system,
        "clean": turn.user,
        "perturbed": text,
    }
    secret = {"kind": kind, "turn": turn.id, "variant": variant.index, "what": what}
    return row, secret


def _kind(row: Mapping[str, Any]) -> str:
    kind = row.get("kind")
    if kind != "violation" and kind not in KINDS:
        raise DataError(f"row {row['id']!r} of the key has no kind: is it a key?")
    return str(kind)


def _answers(judgements: Iterable[Mapping[str, Any]], kinds: Mapping[str, str]) -> dict[str, bool]:
    answers: dict[str, bool] = {}
    for row in judgements:
        name, same = row["id"], row.get("same")
        if name not in kinds:
            raise DataError(f"judgement of {name!r}, which the key does not have")
        if name in answers:
            raise DataError(f"{name!r} is judged twice")
        if not isinstance(same, bool):
            raise DataError(f"judgement of {name!r}: 'same' must be true or false, not {same!r}")
        answers[name] = same
    missing = [name for name in kinds if name not in answers]
    if missing:
        raise DataError(f"{len(missing)} rows are not judged, the first is {missing[0]!r}")
    return answers


def _jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
