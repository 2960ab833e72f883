"""Compares the kinds of slips of the model of typing with public lists of errors.

::

    python -m tools.noise.corpora --multiwoz trade-tsv.zip --sgd train.zip --corpus NAME=PATH ...

The lists are not part of the repository. Three layouts are read: ``right: wrong, wrong*3``
(Norvig), ``$right`` and its errors on the lines after it (Birkbeck), and ``wrong->right``
(Wikipedia). Writes Markdown to standard output.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rapidfuzz.distance import OSA

from pytest_dstfuzz.errors import DataError, DstFuzzError, UserError
from pytest_dstfuzz.noise.evidence import Evidence, distinct_slips
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import equal_ends
from tools.noise import sources
from tools.noise.build import gathered, keyboard

#: Shorter words are left out: their slips are mostly other words, which nobody can find in a text.
SHORTEST: Final = 4
#: Most frequent words of the texts, for the shares of the model.
WORDS: Final = 2_000


class Pair(NamedTuple):
    """A word, what was typed for it, and how often."""

    word: str
    typed: str
    times: float


class Happened(NamedTuple):
    """One slip: its kind, and where it is."""

    kind: str
    first: bool = False
    last: bool = False


def happened(word: str, typed: str, keys: Mapping[str, str]) -> Happened:
    """Return what happened to a word; a doubled letter is missing or put in at its last place.

    >>> keys = {"o": "ip", "i": "uo"}
    >>> [happened("hotel", typed, keys).kind for typed in ("htel", "hootel", "hitel", "ohtel")]
    ['missing', 'again', 'beside', 'swap']
    """
    if word.replace(" ", "") == typed.replace(" ", ""):
        return Happened("blank_in" if " " in typed else "blank_out")
    head, tail = equal_ends(word, typed)
    old, new = word[head : len(word) - tail], typed[head : len(typed) - tail]
    place = Happened("", head == 0, head + len(old) >= len(word))
    near = keys.get(word[head - 1 : head], "") + keys.get(word[head : head + 1], "")
    match len(old), len(new):
        case 1, 0:
            return place._replace(kind="missing")
        case 0, 1:
            again = new in (word[head - 1 : head], word[head : head + 1])
            return place._replace(kind="again" if again else "near" if new in near else "put_in")
        case 1, 1:
            return place._replace(kind="beside" if new in keys.get(old, "") else "wrong")
        case 2, 2 if old == new[::-1]:
            return place._replace(kind="swap")
    return Happened("two" if OSA.distance(word, typed) == 2 else "more")


#: A row of the table: its name, the kinds in it, and the kinds that it is a share of.
_EXTRA: Final = ("again", "near", "put_in")
_WRONG: Final = ("beside", "wrong")
_ONE: Final = ("missing", *_EXTRA, *_WRONG, "swap")
ROWS: Final = (
    ("a letter missing", ("missing",), _ONE),
    ("a letter too many", _EXTRA, _ONE),
    ("another letter", _WRONG, _ONE),
    ("two letters swapped", ("swap",), _ONE),
    ("of other letters: of a key beside", ("beside",), _WRONG),
    ("of letters too many: one of the word again", ("again",), _EXTRA),
)


class Shares(NamedTuple):
    """How often each kind is in a list, and how often one letter slipped at the ends."""

    kinds: Counter[str]
    first: float
    last: float

    @classmethod
    def of(cls, pairs: Iterable[Pair], keys: Mapping[str, str]) -> Shares:
        """Count the slips of spelled words of four letters and more."""
        kinds: Counter[str] = Counter()
        first = last = 0.0
        for pair in pairs:
            word, typed = pair.word.lower(), pair.typed.lower()
            if len(word) < SHORTEST or not (_spelled(word) and _spelled(typed)) or word == typed:
                continue
            found = happened(word, typed, keys)
            kinds[found.kind] += pair.times  # type: ignore[assignment] # weights are fractions
            first += pair.times * found.first
            last += pair.times * found.last
        return cls(kinds, first, last)

    def cells(self) -> Iterator[float]:
        """Yield the share in percent of each row."""
        one = sum(self.kinds[kind] for kind in _ONE)
        for _, mine, whole in ROWS:
            yield _percent(sum(self.kinds[k] for k in mine), sum(self.kinds[k] for k in whole))
        yield _percent(self.first, one)
        yield _percent(self.last, one)
        every = self.kinds.total()
        yield from (_percent(self.kinds[k], every) for k in ("two", "blank_in", "blank_out"))


NAMES: Final = (
    *(name for name, *_ in ROWS),
    *("of one letter: the first", "of one letter: the last"),
    *("of all: two letters", "of all: a blank put in", "of all: a blank missing"),
)


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0


def _spelled(text: str) -> bool:
    return text.isascii() and text.replace(" ", "").isalpha()


def read_corpus(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a list of errors; its layout is told from its first line."""
    try:
        lines = path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from None
    word = ""
    for line in lines:
        if line.startswith("$"):
            word = line[1:].strip()
        elif "->" in line:
            typed, _, words = line.strip().partition("->")
            yield _pair(words.split(",")[0], typed)
        elif ":" in line:
            right, _, errors = line.partition(":")
            yield from (_pair(right, error) for error in errors.split(","))
        elif line.strip():
            yield _pair(word, line.split()[0])


def _pair(word: str, typed: str) -> Pair:
    form, _, count = typed.partition("*")
    spelled, written = (text.strip().replace("_", " ") for text in (word, form))
    return Pair(spelled, written, float(count.strip() or 1))


def of_model(model: NoiseModel, words: Mapping[str, int]) -> Iterator[Pair]:
    """Yield what a model makes of words, each as often as the word."""
    for word, count in words.items():
        for site in model.of(word).sites:
            for text, weight in site.texts.items():
                yield Pair(word, text, count * weight)


def of_data(evidence: Evidence) -> Iterator[Pair]:
    """Yield the slips that were found in the training splits."""
    for (word, typed), count in distinct_slips(evidence.slips).items():
        yield Pair(word, typed, count)


def lines(given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table."""
    keys = keyboard(load_lexicon())
    columns = {}
    for corpus in given.corpus:
        name, _, path = corpus.partition("=")
        if not path:
            raise UserError(f"--corpus={corpus} needs a name and a file: NAME=PATH")
        columns[name] = Shares.of(read_corpus(Path(path)), keys)
    written, spoken = sources.read_multiwoz(given.multiwoz), sources.read_sgd(given.sgd)
    evidence = gathered(written, spoken, load_lexicon())
    mean = [
        sum(row) / len(columns) for row in zip(*(c.cells() for c in columns.values()), strict=True)
    ]
    words = dict(evidence.counts.words.most_common(WORDS))
    model = NoiseModel.load(given.model)
    columns["training splits"] = Shares.of(of_data(evidence), keys)
    columns["model"] = Shares.of(of_model(model, words), keys)
    yield f"| share in % | {' | '.join(columns)} | model / mean of the lists |"
    yield f"| --- |{' ---: |' * (len(columns) + 1)}"
    rows = zip(*(column.cells() for column in columns.values()), strict=True)
    for name, row, middle in zip(NAMES, rows, mean, strict=True):
        ratio = f"{row[-1] / middle:.2f}" if middle else "-"
        yield f"| {name} | {' | '.join(f'{cell:.1f}' for cell in row)} | {ratio} |"
    sizes = ", ".join(f"{name} {shares.kinds.total():,.0f}" for name, shares in columns.items())
    yield f"\nSlips: {sizes}."


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--multiwoz", type=Path, required=True, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--sgd", type=Path, required=True, help="train.zip of SGD")
    parser.add_argument("--corpus", action="append", required=True, help="NAME=PATH of a list")
    parser.add_argument("--model", default="typing", help="a model, or the path of one")
    try:
        for line in lines(parser.parse_args()):
            print(line, flush=True)
    except DstFuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
