"""Sums that a pass over any number of results needs: a few numbers a dialogue, and no turn."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Protocol, TypeVar

import numpy as np

from pytest_dstfuzz.campaign.results import TurnResult

__all__ = ["tallied"]


class ResultTally(Protocol):
    """What takes in one result after the other, and keeps only what its figures need."""

    def add(self, turn: TurnResult, /) -> None:
        """Take in a result."""


_Tally = TypeVar("_Tally", bound=ResultTally)


def tallied(tally: _Tally, results: Iterable[TurnResult]) -> _Tally:
    """Return a tally that has taken in all results; their order does not matter."""
    for turn in results:
        tally.add(turn)
    return tally


class DialogueNumbers(dict[str, int]):
    """Id of a dialogue -> its number, from 0 in order of appearance; several sums share one."""

    def __missing__(self, dialogue: str) -> int:
        self[dialogue] = number = len(self)
        return number


class DialogueSums:
    """Sums of the same few whole numbers for each dialogue, in 4 bytes each: below 2 ** 31."""

    def __init__(self, columns: int, numbers: DialogueNumbers | None = None) -> None:
        self._columns: Final = columns
        self._numbers = DialogueNumbers() if numbers is None else numbers
        self._sums = array("i")

    def add(self, dialogue: str, *parts: int) -> None:
        """Add a number to each of the columns of a dialogue."""
        start = self._numbers[dialogue] * self._columns
        if (more := start + self._columns - len(self._sums)) > 0:
            self._sums.frombytes(bytes(more * self._sums.itemsize))
        for place, part in enumerate(parts, start):
            self._sums[place] += part

    def rows(self, *columns: int) -> list[tuple[int, ...]]:
        """Return those columns of each dialogue; zeros of one of which nothing was added."""
        found = (self._sums[column :: self._columns] for column in columns)
        return list(zip(*found, strict=True))

    def pairs(self, part: int, whole: int) -> list[tuple[int, int]]:
        """Return two of the columns, as `intervals.ratio_interval` takes them."""
        return [(row[0], row[1]) for row in self.rows(part, whole)]


class DistinctCount:
    """How many different texts there are, by 8 bytes of the digest of each."""

    #: Digests that may come between two times that those alike are dropped.
    _ROOM: Final = 4096

    def __init__(self) -> None:
        self._digests = array("Q")
        self._full = self._ROOM

    def add(self, text: str) -> None:
        """Take in a text."""
        self._digests.append(_digest(text))
        if len(self._digests) >= self._full:
            self._drop_doubles()
            self._full = 2 * len(self._digests) + self._ROOM

    @property
    def value(self) -> int:
        """The number of different texts."""
        self._drop_doubles()
        return len(self._digests)

    def _drop_doubles(self) -> None:
        self._digests = array("Q", np.unique(self._digests).tobytes())


class ExactSum:
    """A sum of floats that does not depend on their order: `math.fsum`, one by one.

    The partial sums do not overlap and lose nothing (Shewchuk, Discrete & Computational Geometry
    18, 1997, pages 305 to 363); there are a handful of them at most for values of like size.
    """

    __slots__ = ("_partials", "count")

    def __init__(self) -> None:
        self._partials: list[float] = []
        #: How many values were added.
        self.count = 0

    def add(self, value: float) -> None:
        """Add a finite value."""
        kept = 0
        for part in self._partials:
            high, low = (value, part) if abs(value) >= abs(part) else (part, value)
            value = high + low
            if rest := low - (value - high):
                self._partials[kept] = rest
                kept += 1
        self._partials[kept:] = [value]
        self.count += 1

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return math.fsum(self._partials)

    @property
    def mean(self) -> float:
        """The mean; 0 of none."""
        return self.value / self.count if self.count else 0.0


class LastByTurn:
    """A few numbers of each turn, in 8 bytes each; what is said of one last counts.

    Several relations and tests have a result for a turn, and its clean answer counts once.
    """

    def __init__(self, columns: int) -> None:
        self._columns: Final = columns
        self._digests = array("Q")
        self._values = array("d")

    def add(self, turn: str, *values: float) -> None:
        """Take in what is known of a turn, by its id."""
        self._digests.append(_digest(turn))
        self._values.extend(values)

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of every turn, in no order that means anything."""
        if not self._digests:
            return []
        # Backwards, as the first of those alike is kept.
        _, places = np.unique(np.frombuffer(self._digests, np.uint64)[::-1], return_index=True)
        table = np.frombuffer(self._values, np.float64).reshape(-1, self._columns)[::-1]
        return list(map(tuple, table[places].tolist()))


def _digest(text: str) -> int:
    """Return 64 bits of the digest of a text."""
    coded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(coded, digest_size=8).digest(), "little")
