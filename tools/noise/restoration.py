"""Makes the sheets for the blind audits of slips in locked words, and scores them.

::

    python -m tools.noise.restoration --data multiwoz21 --split test --output sheets
    python -m tools.noise.restoration --answers sheets/restore-key.csv answers.csv restore.tsv
    python -m tools.noise.restoration --score tools/noise/sheets/drawn.tsv

``restore.csv`` has one recoverable slip in a locked word a dialogue. ``drawn.csv`` has slips as the
noise model draws them in locked words, whether the rule accepts them or not. A reader sees the
dialogue so far and the mistyped utterance, and writes a file with the columns ``id``, ``typed`` and
``meant``: each mistyped word and the word that the user meant, or ``?`` if the reader cannot tell.
If there are several such words, ``|`` separates them. The result has words but no sentence of the
data, so it may be part of the repository. The sheets may not.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
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

SHEET: Final = ("id", "dialogue", "utterance")
KEY: Final = ("id", "dialogue", "turn", "word", "typed", "recoverable")
RESULT: Final = (*KEY[1:5], "meant", "recoverable", "restored")
#: Answer of a reader who cannot tell.
UNREADABLE: Final = "?"


class Item(NamedTuple):
    """A mistyped utterance in its dialogue."""

    dialogue: str
    turn: int
    before: str
    utterance: str
    word: str
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
            words = [
                word
                for word, role in zip(source.words, source.mask.roles, strict=True)
                if role == LOCKED and word.start <= slip.start and slip.end <= word.end
            ]
            if not words or slip.kind not in IN_WORDS:
                continue
            text, word = here.user, words[0]
            typed = text[word.start : slip.start] + slip.after + text[slip.end : word.end]
            utterance = text[: word.start] + typed + text[word.end :]
            rule = (slip.start, slip.end, slip.after) in allowed
            item = Item(dialogue.id, turn, before, utterance, word.text, typed, rule)
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
    sheet = [(number, item.before, item.utterance) for number, item in enumerate(items, 1)]
    key = [
        (number, item.dialogue, item.turn, item.word, item.typed, _YES[item.recoverable])
        for number, item in enumerate(items, 1)
    ]
    _write(folder / f"{name}.csv", SHEET, sheet, ",")
    _write(folder / f"{name}-key.csv", KEY, key, ",")


def join(key: Path, answers: Path, output: Path) -> None:
    """Write the result of a reader: which words were restored, without sentences."""
    given = {row["id"]: row for row in _rows(answers, ",")}
    rows = []
    for row in _rows(key, ","):
        if (answer := given.get(row["id"])) is None:
            raise DataError(f"{answers}: item {row['id']} has no answer")
        meant = _meant(answer, row["typed"])
        restored = _YES[word_list(meant) == word_list(row["word"]) and meant != UNREADABLE]
        rows.append((*(row[name] for name in KEY[1:5]), meant, row["recoverable"], restored))
    _write(output, RESULT, rows, "\t")


def _meant(answer: Mapping[str, str], typed: str) -> str:
    """Return what a reader took a mistyped word for; ``""`` if the reader did not name it."""
    for part, meant in zip(answer["typed"].split("|"), answer["meant"].split("|"), strict=True):
        if part and part.lower() in typed.lower():
            whole = typed.lower().replace(part.lower(), meant.lower())
            return UNREADABLE if meant == UNREADABLE else whole
        if part and typed.lower() in part.lower():
            return meant
    return ""


def score(result: Path) -> Iterator[str]:
    """Yield how many words were restored, and how well the rule foresaw it."""
    rows = [(row["recoverable"], row["restored"]) for row in _rows(result, "\t")]
    for name, one, other in (
        ("recoverable by the rule, and restored (precision)", 0, 1),
        ("restored, and recoverable by the rule (recall)", 1, 0),
    ):
        whole = [row for row in rows if row[one] == "yes"]
        part = sum(row[other] == "yes" for row in whole)
        if whole:
            low, high = (100 * bound for bound in binomial_interval(part, len(whole)))
            share = f"{100 * part / len(whole):.1f} % (95 % interval {low:.1f} to {high:.1f})"
            yield f"{name}: {part} of {len(whole)}, {share}"


_YES: Final = {True: "yes", False: "no"}


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]], mark: str) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n", delimiter=mark)
    table.writerow(head)
    table.writerows(rows)
    write_text(path, text.getvalue())


def _rows(path: Path, mark: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_text(path)), delimiter=mark))


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="sample", help="what --dst-data takes")
    parser.add_argument("--split", default="test")
    parser.add_argument("--outcome", choices=[*KINDS], default="state", help="kind of answers")
    parser.add_argument("--output", type=Path, help="folder to write to")
    parser.add_argument("--restore", type=int, default=200, help="recoverable slips")
    parser.add_argument("--drawn", type=int, default=400, help="slips of any kind")
    parser.add_argument("--answers", nargs=3, type=Path, metavar=("KEY", "ANSWERS", "RESULT"))
    parser.add_argument("--score", type=Path, metavar="RESULT")
    given = parser.parse_args()
    try:
        if given.score:
            print("\n".join(score(given.score)))
            return 0
        if given.answers:
            join(*given.answers)
            return 0
        if given.output is None:
            parser.error("give --output, --answers or --score")
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
