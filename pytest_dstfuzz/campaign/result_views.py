"""Results seen in another way, without a copy of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Final

from pytest_dstfuzz.campaign.results import Results, TurnResult

__all__ = ["MappedResults"]


class MappedResults(Collection[TurnResult]):
    """Results, each changed by a function when it is read."""

    def __init__(self, results: Results, change: Callable[[TurnResult], TurnResult]) -> None:
        self._results: Final = results
        self._change: Final = change

    def __iter__(self) -> Iterator[TurnResult]:
        return map(self._change, self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, item: object) -> bool:
        return any(turn == item for turn in self)


class JoinedResults(Collection[TurnResult]):
    """Several results, one after the other."""

    def __init__(self, parts: Sequence[Results]) -> None:
        self._parts: Final = parts

    def __iter__(self) -> Iterator[TurnResult]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, item: object) -> bool:
        return any(item in part for part in self._parts)
