"""Writes a sheet of violations for readers to group blind, without knowing the package's groups.

``python -m tools.weaknesses.sheet --data DIR --seed 0 --output SHEET --key KEY`` writes
``sheet.jsonl`` and ``INSTRUCTIONS.md`` for the readers, and for the key ``violations.json``, the
same violations as results, and ``ids.tsv``, which alone is for the repository: the sheet has
sentences of the data.

The seed decides the order of the dialogues. From each dialogue that breaks, one violation is drawn,
until each tracker has as many as requested. Nobody sees them before. If `--without` names a first
sheet, on which the grouping was chosen, the second sheet has none of its dialogues.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.report.wording import earlier_edits, mark_edits
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

#: Dialogues that are tested at once.
_TOGETHER: Final = 8

INSTRUCTIONS: Final = """\
# Group violations

Each line of `sheet.jsonl` is one violation, found by a test of two dialogue state trackers. A
tracker reads a dialogue and says what the user wants: values of slots. The two are separate
programs, trained apart. The test changed what the user typed a little, in a way that keeps the
meaning, so the tracker should have answered as before; it did not.

| key | is |
| --- | --- |
| `row` | its number |
| `tracker` | which of the two |
| `dialogue` | the earlier rounds, as the tracker saw them; an edit in one of them is marked |
| `system` | what the system said last |
| `clean` | what the user said, unchanged |
| `variant` | the same with the least that breaks it, `[-old-]{+new+}`; or see the rounds before |
| `state` | what the tracker answered to the clean dialogue |
| `changed` | what it answered otherwise: slot, value before, value after; `null` = none |

Group the violations by what one fix would mend: same cause, same group; as many groups as you
think right. A fix mends one tracker. Read all rows before you settle on groups, and every row
again once you have.

Write `groups.csv` beside the sheet, with the head `row,group,name`: each row once, the number of
its group, and a short name for the group. Use nothing but the sheet: no program that groups, no
other file, nobody else's opinion.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", required=True, help="as --dst-data takes it")
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", nargs="+", default=["trade", "simpletod"])
    parser.add_argument("--each", type=int, default=75, help="violations of each tracker")
    parser.add_argument("--variants", type=int, default=4, help="number of variants of each turn")
    parser.add_argument("--validity", default="natural")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the dialogues, the variants and the draw"
    )
    parser.add_argument("--without", type=Path, help="ids.tsv of a sheet with other dialogues")
    parser.add_argument("--output", type=Path, required=True, help="folder of the sheet")
    parser.add_argument("--key", type=Path, required=True, help="folder of the key")
    options = parser.parse_args(arguments)
    try:
        make(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def make(options: argparse.Namespace) -> None:
    """Write the sheet and its key."""
    data = load_dialogues(options.data, options.split)
    if options.without is not None:
        seen = dialogues_of(options.without)
        kept = tuple(one for one in data.dialogues if one.id not in seen)
        data = replace(data, dialogues=kept)
    found: list[tuple[str, TurnResult]] = []
    for model in options.model:
        settings = Settings.of(
            model=model,
            turns="all",
            validity=options.validity,
            search="random",
            variants=options.variants,
            seed=options.seed,
        )
        tracker = tracker_for(settings, data)
        drawn = draw(tracker, data, settings, options.each)
        found += [(model, result) for result in drawn]
    order = stream(options.seed, "sheet", "rows").permutation(len(found))
    rows = [found[index] for index in order]
    dialogues = {dialogue.id: dialogue for dialogue in data.dialogues}
    lines = [
        json.dumps(
            {"row": n, "tracker": m, **row_of(t, dialogues[t.dialogue_id])}, ensure_ascii=False
        )
        for n, (m, t) in enumerate(rows, 1)
    ]
    write_text(options.output / "sheet.jsonl", "".join(f"{line}\n" for line in lines))
    write_text(options.output / "INSTRUCTIONS.md", INSTRUCTIONS)
    results = [{"row": n, "tracker": m, "turn": t.to_json()} for n, (m, t) in enumerate(rows, 1)]
    write_text(options.key / "violations.json", json.dumps(results))
    ids = [f"{n}\t{m}\t{t.id}\t{t.variants[0].index}\n" for n, (m, t) in enumerate(rows, 1)]
    write_text(options.key / "ids.tsv", "".join(["row\ttracker\tturn\tvariant\n", *ids]))


def dialogues_of(ids: Path) -> frozenset[str]:
    """Return the dialogues from which the violations of an ``ids.tsv`` come."""
    try:
        with ids.open(encoding="utf-8", newline="") as lines:
            turns = [row["turn"] for row in csv.DictReader(lines, delimiter="\t")]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{ids} is no list of ids: {error}") from None
    return frozenset(turn.rpartition("-t")[0].rpartition("-")[2] for turn in turns)


def draw(tracker: Tracker, data: DialogueSet, settings: Settings, wanted: int) -> list[TurnResult]:
    """Return turns of different dialogues, each with one violation and no other variant."""
    found: list[TurnResult] = []
    seed = settings.variant.seed
    order = stream(seed, "sheet", "dialogues").permutation(len(data.dialogues))
    for start in range(0, len(order), _TOGETHER):
        chosen = [data.dialogues[index] for index in order[start : start + _TOGETHER]]
        campaign = Campaign(tracker, replace(data, dialogues=tuple(chosen)), settings)
        results = list(campaign)
        found += [one for dialogue in chosen for one in _one_of(results, dialogue.id, seed)]
        print(f"{settings.tracker.model}: {len(found)} of {wanted}", file=sys.stderr, flush=True)
        if len(found) >= wanted:
            break
    return found[:wanted]


def _one_of(results: Sequence[TurnResult], dialogue: str, seed: int) -> Iterator[TurnResult]:
    """Yield one violation of a dialogue, drawn from all violations that it has."""
    pairs = [
        (turn, variant)
        for turn in results
        if turn.dialogue_id == dialogue
        for variant in turn.violations
    ]
    if pairs:
        turn, variant = pairs[stream(seed, "sheet", "violation", dialogue).integers(len(pairs))]
        yield replace(turn, variants=(variant,))


def row_of(turn: TurnResult, dialogue: Dialogue) -> dict[str, Any]:
    """Return the part of a violation that a reader sees."""
    (variant,) = turn.variants
    plain = variant.plain
    marked = {index: mark_edits(text, edits) for index, text, edits in earlier_edits(plain)}
    said = [marked.get(index, text) for index, text in enumerate(plain.context)]
    return {
        "dialogue": [
            {"system": earlier.system, "user": text}
            for earlier, text in zip(dialogue.turns, said, strict=False)
        ],
        "system": turn.system,
        "clean": turn.user,
        "variant": mark_edits(undo_edits(plain.text, plain.edits), plain.edits),
        "state": dict(turn.clean_state or {}),
        "changed": [[one.slot, one.before, one.after] for one in plain.changed_slots],
    }


if __name__ == "__main__":
    sys.exit(main())
