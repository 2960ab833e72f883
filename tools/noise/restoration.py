"""Makes the sheets for the blind audits of slips in locked words, and scores them.

::

    python -m tools.noise.restoration --data multiwoz21 --split test --output sheets
    python -m tools.noise.restoration --score sheets/restore.csv sheets/restore-key.csv

``restore.csv`` has one recoverable slip in a locked word a dialogue. The reader sees the dialogue
so far and the mistyped utterance, and writes what was meant. ``drawn.csv`` has slips as the noise
model draws them in locked words, whatever the rule says of them. The reader writes the utterance,
or ``?`` if it cannot be told. The keys have the original, and what the rule says. The sheets hold
sentences of the data and are not part of the repository.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.campaign.figures import binomial_interval
from pytest_dstfuzz.config import VariantSettings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, DstFuzzError
from pytest_dstfuzz.files import read_text, write_text
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.draft import LOCKED
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.operators import IN_WORDS
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.seeding import stream

SHEET: Final = ("id", "dialogue", "utterance", "restored")
KEY: Final = ("id", "dialogue_id", "turn", "original", "recoverable")
#: Answer of a reader who cannot tell.
UNREADABLE: Final = "?"


class Item(NamedTuple):
    """A mistyped utterance in its dialogue."""

    dialogue: str
    turn: int
    before: str
    original: str
    typed: str
    recoverable: bool


def candidates(
    perturber: Perturber, data: DialogueSet, kind: AnswerKind, dialogue: Dialogue, turn: int
) -> list[tuple[Item, float]]:
    """Return the slips in locked words of a turn, each with its weight in the noise model.

    The label of the turn stands for the answer of a bot.
    """
    here, label = dialogue.turns[turn], kind.label(dialogue, turn)
    said = [text for past in dialogue.turns[:turn] for text in (past.system, past.user)]
    answer = "" if label is None else kind.text(label)
    values = kind.locked_values(data, here, label)
    source = perturber.prepare(here.user, values, here.system, (*said, answer))
    before = "\n".join(text for text in (*said, here.system) if text)
    allowed = {
        (at + change.start, at + change.end, change.after)
        for at, part in (source.support.explained if source.support else ())
        for change in part.changes
    }
    found = []
    for site in perturber.noise.model.of(here.user).sites:
        for slip in site.slips:
            inside = slip.kind in IN_WORDS and any(
                word.start <= slip.start and slip.end <= word.end and role == LOCKED
                for word, role in zip(source.words, source.mask.roles, strict=True)
            )
            if inside:
                typed = here.user[: slip.start] + slip.after + here.user[slip.end :]
                rule = (slip.start, slip.end, slip.after) in allowed
                item = Item(dialogue.id, turn, before, here.user, typed, rule)
                found.append((item, slip.weight))
    return found


def draw_items(
    perturber: Perturber,
    data: DialogueSet,
    kind: AnswerKind,
    count: int,
    name: str,
    *,
    recoverable: bool,
) -> list[Item]:
    """Draw slips in locked words, one a dialogue, each by its weight in the noise model.

    Args:
        perturber: of the profile ``natural``.
        data: the dialogues.
        kind: the kind of the bot's answers, which decides what is locked.
        count: the number of slips; fewer if the data has too few dialogues.
        name: the name of the random stream.
        recoverable: whether only slips count that the rule allows.
    """
    rng = stream(0, "restoration", name)
    items: list[Item] = []
    for place in rng.permutation(len(data.dialogues)).tolist():
        dialogue = data.dialogues[place]
        turn = int(rng.integers(len(dialogue.turns)))
        all_of = candidates(perturber, data, kind, dialogue, turn)
        some = [(item, w) for item, w in all_of if item.recoverable or not recoverable]
        if some and len(items) < count:
            weights = np.array([weight for _, weight in some])
            items.append(some[int(rng.choice(len(some), p=weights / weights.sum()))][0])
        if len(items) == count:
            break
    return items


def write(folder: Path, name: str, items: Sequence[Item]) -> None:
    """Write a sheet without the originals, and its key."""
    rows = [(item.before, item.typed, "") for item in items]
    keys = [(i.dialogue, i.turn, i.original, "yes" if i.recoverable else "no") for i in items]
    _write(folder / f"{name}.csv", SHEET, rows)
    _write(folder / f"{name}-key.csv", KEY, keys)


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(head)
    table.writerows((number, *row) for number, row in enumerate(rows, 1))
    write_text(path, text.getvalue())


def score(sheet: Path, key: Path) -> Iterator[str]:
    """Yield how many utterances were restored, and how well the rule foresaw it.

    An utterance is restored if its words are those of the original, whatever the case and marks.
    """
    answers = {row["id"]: row["restored"].strip() for row in _rows(sheet)}
    allowed = {"yes": [0, 0], "no": [0, 0]}
    for row in _rows(key):
        if not (answer := answers.get(row["id"], "")):
            raise DataError(f"{sheet}: item {row['id']} has no answer")
        right = answer != UNREADABLE and word_list(answer) == word_list(row["original"])
        allowed[row["recoverable"]][right] += 1
    (bad, good), (refused_bad, refused_good) = allowed["yes"], allowed["no"]
    for name, part, whole in (
        ("recoverable by the rule, and restored (precision)", good, good + bad),
        ("restored, and recoverable by the rule (recall)", good, good + refused_good),
        ("refused by the rule, and not restored", refused_bad, refused_bad + refused_good),
    ):
        if whole:
            low, high = (100 * bound for bound in binomial_interval(part, whole))
            share = f"{100 * part / whole:.1f} % (95 % interval {low:.1f} to {high:.1f})"
            yield f"{name}: {part} of {whole}, {share}"


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_text(path))))


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="sample", help="what --dst-data takes")
    parser.add_argument("--split", default="test")
    parser.add_argument("--outcome", choices=[*KINDS], default="state", help="kind of answers")
    parser.add_argument("--output", type=Path, help="folder to write to")
    parser.add_argument("--restore", type=int, default=200, help="recoverable slips")
    parser.add_argument("--drawn", type=int, default=400, help="slips of any kind")
    parser.add_argument("--score", nargs=2, type=Path, metavar=("SHEET", "KEY"))
    given = parser.parse_args()
    try:
        if given.score:
            print("\n".join(score(*given.score)))
            return 0
        if given.output is None:
            parser.error("give --output or --score")
        data = load_dialogues(given.data, given.split)
        kind = KINDS[given.outcome]
        perturber = Perturber.of(VariantSettings(), data, load_lexicon())
        for name, count in (("restore", given.restore), ("drawn", given.drawn)):
            sure = name == "restore"
            items = draw_items(perturber, data, kind, count, name, recoverable=sure)
            write(given.output, name, items)
            print(f"{given.output / name}.csv: {len(items)} items")
    except DstFuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
