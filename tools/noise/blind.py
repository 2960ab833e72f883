"""A sheet to judge blind: words slipped by the model of typing among slips that people made.

``python -m tools.noise.blind --multiwoz trade-tsv.zip --sgd train.zip --model typing --output DIR``
writes ``sheet.csv``, where `real` or `made` is put into the last column, and ``key.csv``;
``python -m tools.noise.blind --score sheet.csv key.csv`` says how many were told apart. The sheet
has sentences of the sources: it is not for the repository.

Both halves are of the same part of the training dialogues. The model that makes one of them is
fitted to the other parts, as for the table of likelihoods; it slips as it does in a run, and what
comes out with one slip is taken. Each item is of another dialogue, and both halves have as many of
each source. People's slips are those that were found: with four letters or more, of a frequent
word, and no word themselves. With ``--findable`` those that are made are of that sort, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.evidence import RARER, SHORTEST, Evidence, Text, find, part_of
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import LETTER_KINDS, TWO
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.words import Edit, one_letter_away, take_apart, word_list
from tools.noise import sources
from tools.noise.blind_score import MADE, REAL, print_score, write_key, write_sheet
from tools.noise.build import FOLDS, gathered, model_without, say
from tools.noise.likelihood import happened

#: Items of each half.
ITEMS: Final = 200
#: Of the parts of the dialogues, the one that both halves are of.
PART: Final = 0
_TYPED_KINDS: Final = {*LETTER_KINDS, "misspelling", TWO, "blank"}
_BETWEEN: Final = re.compile(r"(?<=[.?!])\s+")


class Item(NamedTuple):
    """A sentence with one slip."""

    #: The dialogue, after the name of its source.
    dialogue: str
    #: With the slip between ``[[`` and ``]]``.
    sentence: str
    kind: str
    #: What happened: a key of `likelihood.HAPPENED`.
    what: str
    word: str
    typed: str

    @property
    def source(self) -> str:
        """Name of the data that it is of."""
        return source_of(self.dialogue)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--multiwoz", type=Path, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--sgd", type=Path, help="train.zip of SGD")
    parser.add_argument("--model", help="the model as it ships: a name or a file")
    parser.add_argument("--output", type=Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="of the choice and the order")
    parser.add_argument("--items", type=int, default=ITEMS, help="of each half")
    parser.add_argument("--findable", action="store_true", help="make only what could be found")
    parser.add_argument("--score", nargs=2, type=Path, metavar=("SHEET", "KEY"))
    options = parser.parse_args(arguments)
    needed = (options.multiwoz, options.sgd, options.model, options.output)
    if options.score is None and None in needed:
        parser.error("give --multiwoz, --sgd, --model and --output, or --score")
    try:
        if options.score is not None:
            print_score(*options.score)
        else:
            make(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def make(options: argparse.Namespace) -> None:
    """Write the sheet and its key."""
    shipped = NoiseModel.load(options.model)
    strange = {kind.name for kind in shipped.file.kinds} - _TYPED_KINDS
    if strange:
        raise UserError(
            f"{options.model} is no model of typing: it has {', '.join(sorted(strange))}"
        )
    lexicon = load_lexicon()
    spoken, written = sources.read_sgd(options.sgd), sources.read_multiwoz(options.multiwoz)
    texts = [*written, *spoken.texts]
    evidence = gathered(written, spoken, lexicon)
    model = model_without(evidence, texts, PART)
    held = list(sentences(text for text in texts if part_of(text.source, FOLDS) == PART))
    generator = np.random.default_rng(options.seed)
    real = real_items(held, evidence, generator, options.items)
    maker = Maker(model, shipped.slip_rate, evidence, lexicon if options.findable else None)
    made = maker.items(held, real, generator)
    order = generator.permutation(len(real) + len(made))
    items = [[*real, *made][index] for index in order]
    write_sheet(options.output / "sheet.csv", [item.sentence for item in items])
    write_key(
        options.output / "key.csv",
        [(i.kind, i.source, i.dialogue, i.what, i.word, i.typed) for i in items],
    )
    for source, count in sorted(Counter(item.source for item in real).items()):
        say(f"{source}: {count} real, {count} made")


def source_of(dialogue: str) -> str:
    """Return the name of the data that a dialogue is of."""
    return dialogue.partition(" ")[0]


def sentences(texts: Iterable[Text]) -> Iterator[Text]:
    """Yield the sentences of texts; those with brackets like those of the sheet are left out."""
    for source, text in texts:
        for sentence in _BETWEEN.split(text.strip()):
            if "[[" not in sentence and "]]" not in sentence:
                yield Text(source, sentence)


def marked(sentence: str, start: int, end: int) -> str:
    """Return a sentence with brackets around a part."""
    return f"{sentence[:start]}[[{sentence[start:end]}]]{sentence[end:]}"


def real_items(
    held: Iterable[Text], evidence: Evidence, generator: np.random.Generator, count: int
) -> list[Item]:
    """Choose slips that people made, each alone in its sentence and of another dialogue.

    Raises:
        UserError: there are not so many.
    """
    read = sources.read_slips()
    found = []
    for text in held:
        slips = find([text], read, evidence.counts)
        if len(slips) != 1:
            continue
        word, typed, dialogue = slips[0]
        what = happened(word, typed, evidence.keyboard)
        for place in take_apart(text.text).words:
            if place.lower == typed:
                sentence = marked(text.text, place.start, place.end)
                found.append(Item(dialogue, sentence, REAL, what, word, typed))
    chosen: dict[str, Item] = {}
    for index in generator.permutation(len(found)):
        if len(chosen) < count:
            chosen.setdefault(found[index].dialogue, found[index])
    if len(chosen) < count:
        raise UserError(f"there are slips in {len(chosen)} held-out dialogues, not in {count}")
    return list(chosen.values())


class Maker(NamedTuple):
    """Makes slips as a model does."""

    model: NoiseModel
    slip_rate: float
    evidence: Evidence
    #: Says which words there are, where only what could be found in texts is to be made.
    lexicon: Lexicon | None

    def items(
        self, held: Sequence[Text], real: Sequence[Item], generator: np.random.Generator
    ) -> list[Item]:
        """Slip words of other dialogues, as many of each source as people's slips are.

        Each sentence is typed once, in an order by chance; where one word slips, it is taken.

        Raises:
            UserError: there are too few sentences.
        """
        read = sources.read_slips()
        left = Counter(item.source for item in real)
        used = {item.dialogue for item in real}
        items: list[Item] = []
        for index in generator.permutation(len(held)):
            if len(items) == len(real):
                return items
            text = held[index]
            if text.source in used or not left[source_of(text.source)]:
                continue
            item = self._item(text, read, generator)
            if item is not None:
                items.append(item)
                used.add(item.dialogue)
                left[item.source] -= 1
        if len(items) < len(real):
            raise UserError(f"of {len(held)} held-out sentences only {len(items)} had a slip made")
        return items

    def _item(
        self, text: Text, read: Collection[str], generator: np.random.Generator
    ) -> Item | None:
        if any(word in read for word in word_list(text.text)):
            return None
        edits = self.model.draw(text.text, generator, self.slip_rate)
        if len(edits) != 1:
            return None
        word, start, end = _slipped(text.text, edits[0])
        sentence = apply_edits(text.text, edits)
        typed = sentence[start:end].lower()
        if self.lexicon is not None and not self._findable(word, typed, self.lexicon):
            return None
        what = happened(word, typed, self.evidence.keyboard)
        return Item(text.source, marked(sentence, start, end), MADE, what, word, typed)

    def _findable(self, word: str, typed: str, lexicon: Lexicon) -> bool:
        """Say whether `evidence.propose` would have found it, had somebody typed it once more."""
        counts = self.evidence.counts
        if len(typed) < SHORTEST or not (typed.isascii() and typed.isalpha()):
            return False
        if lexicon.is_word(typed):
            return False
        enough = max(sources.FREQUENT, RARER * (counts.words[typed] + 1))
        if " " in word:
            first, _, second = word.partition(" ")
            return counts.pairs[first, second] >= enough
        near = len(word) >= SHORTEST - 1 and word in one_letter_away(typed)
        return near and lexicon.is_word(word) and counts.words[word] >= enough


def _slipped(sentence: str, edit: Edit) -> tuple[str, int, int]:
    """Return the word, or two, that an edit is in, and where it stands after the edit."""
    words = [w for w in take_apart(sentence).words if w.end >= edit.start and w.start <= edit.end]
    start, end = words[0].start, words[-1].end
    return sentence[start:end].lower(), start, end + len(edit.after) - len(edit.before)


if __name__ == "__main__":
    sys.exit(main())
