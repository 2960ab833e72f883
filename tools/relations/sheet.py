"""Writes a sheet of rewrites for readers to judge blind: is the stated change of the state right?

``python -m tools.relations.sheet --relation value-swap --data DIR --output SHEET --key KEY`` writes
``sheet.jsonl`` and ``INSTRUCTIONS.md`` for the readers and, into the folder of the key,
``key.tsv``, which alone is for the repository: the sheet has sentences of the data.

The labels stand for the tracker's answers. The seed decides the order of the dialogues. From each
dialogue that the relation applies to, one rewrite is drawn. Some rewrites, hidden among the others,
state a wrong change. If a reader lets these pass, the reader did not read them.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import (
    BySearch,
    Delta,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    Scenes,
    begin,
    list_rewrites,
)
from pytest_dstfuzz.seeding import stream

#: Rewrites of a turn of which one is drawn.
_LOOKED_AT: Final = 64

INSTRUCTIONS: Final = """\
# Is the stated delta right?

Each line of `sheet.jsonl` is a dialogue between a user and a system (hotels, trains and the
like), and a change that was made to it. A tracker reads such a dialogue and writes down what the
user wants: slots with values. For the clean dialogue that is `state`. Somebody states what has to
become of it when the dialogue is as `changed` shows it. Is that right?

| key | is |
| --- | --- |
| `row` | its number |
| `clean` | the clean dialogue, its last round last |
| `changed` | the dialogue after the change; `...` = this round is the same |
| `about` | the change in short, or nothing |
| `before` | the state before the last round of the clean dialogue |
| `state` | the state after it: what the user of the clean dialogue wants |
| `stated` | what slots have to be after the changed dialogue; all others as in `state` |

`none` = the slot has no value. "anything but X" = every value, or none, is admissible except X.

Judge as a careful reader who knows what users mean. `right`: someone who reads the changed
dialogue would write down a state in which each stated slot has one of the values that are stated,
and all others are as in `state`. It is `right` as well where the sentence is a little clumsy but
can be read in one way only. `wrong`: a careful reader would write down something else, or cannot
tell (the sentence makes no sense, may be read in two ways, another slot would change too, the
stated slot would not change). Labels of such data have errors of their own; where `state` itself
does not fit the clean dialogue in the slot that is stated, or in what the change touches, say
`wrong` too and note `label`.

Some rows are wrong on purpose; their number is not said. Use nothing but the sheet.

Write `verdicts.csv` beside the sheet with the head `row,verdict,note`: each row once, `right` or
`wrong`, and for `wrong` a few words that say why.
"""

_Draw = np.random.Generator
_Values = Mapping[str, Sequence[str]]
#: Makes wrong deltas.
_Decoy = Callable[[Sequence[Delta], Outcome, _Values, _Draw], list[Delta]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rewrite that was drawn from a turn of the data."""

    dialogue: str
    turn: int
    rewrite: Rewrite
    before: Outcome
    now: Outcome
    #: As the relation says, or a decoy's.
    deltas: tuple[Delta, ...]
    #: Kind of decoy; empty for what the relation says.
    decoy: str = ""


def rewrites(relation: Relation, scene: Scene) -> Iterator[Rewrite]:
    """Yield the rewrites of a turn, or none if the relation does not apply."""
    begun = begin(relation, scene)
    if not isinstance(begun, BySearch | Inapplicable):
        yield from list_rewrites(begun)


def draw(relation: Relation, data: DialogueSet, wanted: int, seed: int) -> list[Drawn]:
    """Return one rewrite from each of ``wanted`` dialogues."""
    lexicon = load_lexicon()
    scenes = Scenes(data, lexicon, Locks(lexicon, data.ontology, data.cue_words), seed)
    rng = stream(seed, "relation sheet", relation.name)
    found: list[Drawn] = []
    for place in rng.permutation(len(data.dialogues)).tolist():
        dialogue = data.dialogues[place]
        whole = relation.unit == "dialogue"
        turns = (
            [len(dialogue.turns) - 1] if whole else rng.permutation(len(dialogue.turns)).tolist()
        )
        for turn in turns:
            scene = scenes.labelled(relation.name, dialogue, turn)
            if any(state is None for state in scene.states[: turn + 1]):
                continue
            made = list(islice(rewrites(relation, scene), _LOOKED_AT))
            if made:
                one = made[int(rng.integers(len(made)))]
                deltas = one.expected.deltas
                found.append(Drawn(dialogue.id, turn, one, scene.before, scene.now, deltas))
                break
        if len(found) == wanted:
            return found
    raise UserError(
        f"the relation {relation.name} applies to {len(found)} dialogues of {data.name} "
        f"({data.split}): ask for fewer than {wanted} rewrites and decoys"
    )


def another_value(
    deltas: Sequence[Delta], _now: Outcome, values: _Values, rng: _Draw
) -> list[Delta]:
    """State another value, which nobody named."""
    one = deltas[int(rng.integers(len(deltas)))]
    others = [
        value for value in values.get(one.slot, ()) if value not in {one.before, *_named(one)}
    ]
    # A slot with one value in all of the data has none to name: then it is said to be lost.
    return _replaced(deltas, one, _pick(others, rng) if others else None)


def other_slot(deltas: Sequence[Delta], now: Outcome, values: _Values, rng: _Draw) -> list[Delta]:
    """State the new value for a slot that nobody mentioned, and not for the right slot."""
    taken = {delta.slot for delta in deltas}
    slots = [slot for slot in values if slot not in taken and len(values[slot]) > 1]
    slot = slots[int(rng.integers(len(slots)))]
    others = [value for value in values[slot] if value != now.get(slot)]
    return [Delta(slot, now.get(slot), Admissible((_pick(others, rng),)))]


def unchanged(
    _deltas: Sequence[Delta], _now: Outcome, _values: _Values, _rng: _Draw
) -> list[Delta]:
    """State that nothing changes."""
    return []


def dropped(deltas: Sequence[Delta], _now: Outcome, values: _Values, rng: _Draw) -> list[Delta]:
    """State that the slot loses its value, or that it gets another one if it should lose it."""
    one = deltas[int(rng.integers(len(deltas)))]
    if None in one.after or one.before is None:
        return another_value(deltas, _now, values, rng)
    return _replaced(deltas, one, None)


def _slot(delta: Delta) -> str:
    return delta.slot


def _named(delta: Delta) -> tuple[str | None, ...]:
    return delta.after.values


def _pick(values: Sequence[str], rng: _Draw) -> str:
    return values[int(rng.integers(len(values)))]


def _replaced(deltas: Sequence[Delta], one: Delta, value: str | None) -> list[Delta]:
    wrong = Delta(one.slot, one.before, Admissible((value,)))
    return [wrong if delta is one else delta for delta in deltas]


#: The kinds of decoys of relations that state a delta, in turn.
DECOYS: Final[Mapping[str, _Decoy]] = {
    "another value": another_value,
    "other slot": other_slot,
    "unchanged": unchanged,
    "dropped": dropped,
}


def decoys(drawn: Sequence[Drawn], data: DialogueSet, rng: _Draw) -> list[Drawn]:
    """Return the same rewrites with wrong changes. The kinds of wrong changes alternate."""
    values = _values(data)
    found = []
    kinds = cycle(DECOYS)
    for one in drawn:
        # Of a state that is to stay only this can be wrong: that something changes.
        kind = next(kinds) if one.deltas else "other slot"
        wrong = DECOYS[kind](one.deltas, one.now, values, rng)
        found.append(replace(one, deltas=tuple(sorted(wrong, key=_slot)), decoy=kind))
    return found


def _values(data: DialogueSet) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            for slot, value in (turn.state or BeliefState()).items():
                found.setdefault(slot, set()).add(value)
    return {slot: sorted(values) for slot, values in sorted(found.items())}


def row_of(one: Drawn) -> dict[str, Any]:
    """Return the part of a rewrite that readers see."""
    clean, changed = _rounds(one.rewrite.reference), _rounds(one.rewrite.seen)
    aligned = len(clean) == len(changed)
    same = [aligned and left == right for left, right in zip(clean, changed, strict=False)]
    shown = ["..." if aligned and same[n] else text for n, text in enumerate(changed)]
    stated = {delta.slot: f"{delta.before or 'none'} -> {delta.after}" for delta in one.deltas}
    return {
        "clean": clean,
        "changed": shown,
        "about": "" if one.decoy or one.rewrite.expected.deltas else one.rewrite.about,
        "before": dict(one.before),
        "state": dict(one.now),
        "stated": stated or "nothing changes",
    }


def _rounds(context: Context) -> list[str]:
    return [f"SYSTEM: {one.system} USER: {one.user}" for one in context.exchanges]


def make(options: argparse.Namespace) -> None:
    """Write the sheet and its key."""
    relation = relation_by_name(options.relation)
    data = load_dialogues(options.data, options.split)
    drawn = draw(relation, data, options.rewrites + options.decoys, options.seed)
    rng = stream(options.seed, "relation sheet", relation.name, "decoys")
    rows = [*drawn[: options.rewrites], *decoys(drawn[options.rewrites :], data, rng)]
    order = [rows[place] for place in rng.permutation(len(rows)).tolist()]
    lines = [
        json.dumps({"row": n, **row_of(one)}, ensure_ascii=False) for n, one in enumerate(order, 1)
    ]
    write_text(options.output / "sheet.jsonl", "".join(f"{line}\n" for line in lines))
    write_text(options.output / "INSTRUCTIONS.md", INSTRUCTIONS)
    options.key.mkdir(parents=True, exist_ok=True)
    with (options.key / "key.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["row", "dialogue", "turn", "operators", "decoy"])
        for n, one in enumerate(order, 1):
            kinds = sorted(
                {edit.operator for edit in one.rewrite.edits} | {m.kind for m in one.rewrite.moves}
            )
            writer.writerow([n, one.dialogue, one.turn, ",".join(kinds), one.decoy])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--relation", required=True)
    parser.add_argument("--data", required=True, help="as --dst-data takes it")
    parser.add_argument("--split", default="test")
    parser.add_argument("--rewrites", type=int, default=60)
    parser.add_argument("--decoys", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="folder of the sheet")
    parser.add_argument("--key", type=Path, required=True, help="folder of the key")
    options = parser.parse_args(arguments)
    try:
        make(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
