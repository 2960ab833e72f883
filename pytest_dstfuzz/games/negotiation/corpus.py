"""Reads human negotiations about books, hats and balls (deal or no deal). Each side has a row.

The files have the layout of the files that Lewis et al. (2017, "Deal or No Deal?") published.
``data.txt`` contains all rows, including those of ``val.txt`` and ``test.txt``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text

YOU: Final = "YOU:"
THEM: Final = "THEM:"
END: Final = "<eos>"
SELECT: Final = "<selection>"
_OTHER: Final = {YOU: THEM, THEM: YOU}
_ITEMS: Final = 3
_AMOUNT: Final = re.compile(r"item(\d)=(\d+)")
_ROW: Final = re.compile(
    r"<input> (?P<goal>[\d ]+) </input> <dialogue> (?P<words>.*) </dialogue> "
    r"<output> (?P<output>.*) </output> <partner_input> (?P<other>[\d ]+) </partner_input>"
)
_LINE: Final = re.compile(
    r"(?P<goal>\d+(?: \d+){5}) (?P<words>.*?<selection>)(?P<output>.*?)(?: <eos>)? "
    r"reward=(?:\d+|no agreement|disconnect) (?P<end>agree|disagree)\s+(?P<other>\d+(?: \d+){5})"
)


@dataclass(frozen=True, slots=True)
class NegotiationRow:
    """A negotiation seen from one side."""

    counts: tuple[int, ...]  #: The count of each item.
    values: tuple[int, ...]  #: The value of one of each item for this side.
    other_values: tuple[int, ...]  #: The values for the other side, which only that side knows.
    words: tuple[str, ...]  #: Speakers, words and ends of turns; the last is ``<selection>``.
    #: This side's amount of each item, or ``None`` without an agreement.
    chosen: tuple[int, ...] | None

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies the negotiation and the side. It is equal in all files."""
        return self.counts, self.values, self.words

    @property
    def other_key(self) -> tuple[object, ...]:
        """Identifies the other side's view of the same negotiation."""
        words = tuple(_OTHER.get(word, word) for word in self.words)
        return self.counts, self.other_values, words


@dataclass(frozen=True, slots=True)
class NegotiationSplits:
    """Rows for training, validation and test. Each negotiation is in only one part."""

    train: tuple[NegotiationRow, ...]
    val: tuple[NegotiationRow, ...]
    test: tuple[NegotiationRow, ...]
    left_out: int  #: Rows of ``data.txt`` whose negotiation is in another split, for either side.


def load_negotiations(folder: Path) -> NegotiationSplits:
    """Read ``data.txt``, ``val.txt`` and ``test.txt``. Keep test rows out of the training rows.

    If one side of a negotiation is in ``val.txt`` or ``test.txt``, both sides are excluded.

    Raises:
        DataError: a file is missing, or a line is invalid.
    """
    val, test = (tuple(_rows(folder / f"{name}.txt", _ROW)) for name in ("val", "test"))
    held_out = {key for row in (*val, *test) for key in (row.key, row.other_key)}
    every = list(_rows(folder / "data.txt", _LINE))
    # A few rows are in both val.txt and test.txt.
    tested = {key for row in test for key in (row.key, row.other_key)}
    train = tuple(row for row in every if row.key not in held_out)
    val = tuple(row for row in val if row.key not in tested)
    return NegotiationSplits(train, val, test, len(every) - len(train))


def _rows(path: Path, layout: re.Pattern[str]) -> Iterator[NegotiationRow]:
    for number, line in enumerate(read_text(path, "file of negotiations").splitlines(), start=1):
        if not line.strip():
            continue
        found = layout.fullmatch(line.strip())
        if found is None:
            raise DataError(
                f"{path}, line {number}: not a negotiation in the layout of {path.name}: counts "
                "and values, the dialogue up to <selection>, and the selection"
            )
        counts, values = _goal(found["goal"])
        amounts = [int(amount) for _, amount in _AMOUNT.findall(found["output"])][:_ITEMS]
        agreed = found.groupdict().get("end", "agree") == "agree"
        legal = len(amounts) == _ITEMS and all(
            amount <= count for amount, count in zip(amounts, counts, strict=True)
        )
        chosen = tuple(amounts) if agreed and legal else None
        words = tuple(found["words"].split())
        yield NegotiationRow(counts, values, _goal(found["other"])[1], words, chosen)


def _goal(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = tuple(map(int, text.split()))
    return numbers[::2], numbers[1::2]


def vocabulary_of(rows: Sequence[NegotiationRow], least: int) -> tuple[str, ...]:
    """Return the words that occur at least ``least`` times in the rows, in alphabetical order."""
    counted = Counter(word for row in rows for word in row.words)
    return tuple(sorted(word for word, count in counted.items() if count >= least))
