"""Outcomes of tool calls as trees: calls with their arguments, and which call is which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import CallPath, ToolCall, call_path, place_of, value_of
from pytest_dstfuzz.dialogue.outcome import Outcome

#: An argument: its text, or the parts of a list or of an object by their steps.
Tree = str | dict[str, "Tree"]
#: A step of a path within an argument, ``.name`` or ``[0]``.
_STEP: Final = re.compile(r"\[\d+\]|\.?[^.\[]+|.", re.DOTALL)
_IN_LIST: Final = re.compile(r"\[(\d+)\]")


class CallId(NamedTuple):
    """Which call of a message it is: the tool, and the number among its calls."""

    tool: str
    number: int

    def __str__(self) -> str:
        return f"{self.tool}[{self.number}]"


@dataclass(slots=True)
class CallTree:
    """One call: the text of its own path, and its arguments."""

    place: str | None = None
    arguments: dict[str, Tree] = field(default_factory=dict)

    def paths(self, call: CallId) -> Iterator[tuple[str, str]]:
        """Yield the paths of the call under an id, with their texts."""
        if self.place is not None:
            yield str(call), self.place
        for name, tree in self.arguments.items():
            yield from _paths(f"{call}{name}", tree)


def calls_of_outcome(outcome: Outcome) -> tuple[dict[CallId, CallTree], dict[str, str]]:
    """Return the calls of an outcome, and what in it is none."""
    calls: dict[CallId, CallTree] = {}
    others: dict[str, str] = {}
    for path, text in outcome.items():
        found = call_path(path)
        if found is None:
            others[path] = text
            continue
        call = calls.setdefault(CallId(found.tool, found.number), CallTree())
        if found.argument:
            _put(call.arguments, steps(found), text)
        else:
            call.place = text
    return calls, others


def made_calls(outcome: Outcome) -> tuple[ToolCall, ...]:
    """Return the calls that an outcome says, in their order; undoes `calls_outcome`.

    A name with a dot or a bracket may come back as an object or a list: with the same paths.

    >>> [str(call) for call in made_calls(Outcome({"book[0]": "call 1", "book[0].people": "2"}))]
    ['book(people=2)']
    """
    calls, _ = calls_of_outcome(outcome)
    placed = sorted(calls.items(), key=lambda pair: (place_of(pair[1].place or "") or 0, pair[0]))
    return tuple(
        ToolCall(
            call.tool,
            {step.removeprefix("."): value_of_tree(part) for step, part in tree.arguments.items()},
        )
        for call, tree in placed
    )


def steps(path: CallPath) -> list[str]:
    """Return the way to an argument: ``guests[1].name`` is ``.guests``, ``[1]``, ``.name``."""
    found = _STEP.findall(path.argument)
    return [f".{found[0]}", *found[1:]] if found else []


def value_of_tree(tree: Tree) -> object:
    """Return the JSON value of an argument."""
    if isinstance(tree, str):
        return value_of(tree)
    numbers = [_IN_LIST.fullmatch(step) for step in tree]
    if all(numbers):
        ordered = sorted(tree, key=lambda step: int(step[1:-1]))
        return [value_of_tree(tree[step]) for step in ordered]
    return {step.removeprefix("."): value_of_tree(part) for step, part in tree.items()}


def _put(tree: dict[str, Tree], way: Sequence[str], text: str) -> None:
    """Put a text where a way leads to; a name with a dot that is another one's, under itself."""
    here = tree
    for at, step in enumerate(way[:-1]):
        inner = here.setdefault(step, {})
        if isinstance(inner, str):
            here["".join(way[at:])] = text
            return
        here = inner
    here[way[-1]] = text


def _paths(path: str, tree: Tree) -> Iterator[tuple[str, str]]:
    if isinstance(tree, str):
        yield path, tree
    else:
        for step, part in tree.items():
            yield from _paths(f"{path}{step}", part)


def assigned(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Return for each row the column that it is given, so that the gains are largest in all.

    The Hungarian method with potentials (Kuhn 1955, Munkres 1957), on a square of costs: O(n^3).
    ``None`` = there are not enough columns.
    """
    rows, columns = len(gains), len(gains[0]) if gains else 0
    size = max(rows, columns)
    most = max((gain for row in gains for gain in row), default=0)
    costs = [
        [most - gains[i][j] if i < rows and j < columns else most for j in range(size)]
        for i in range(size)
    ]
    square = _Square(costs)
    for row in range(1, size + 1):
        square.take(row)
    found: list[int | None] = [None] * rows
    for column in range(1, columns + 1):
        if square.row_of[column] <= rows:
            found[square.row_of[column] - 1] = column - 1
    return found


class _Square:
    """Rows that are given a column each, as cheaply as can be; both are counted from 1."""

    def __init__(self, costs: Sequence[Sequence[int]]) -> None:
        self._costs = costs
        size = len(costs)
        self._of_row, self._of_column = [0] * (size + 1), [0] * (size + 1)
        #: Column -> its row, 0 = none. Column 0 has the row that is being given one.
        self.row_of = [0] * (size + 1)

    def take(self, row: int) -> None:
        """Give one more row a column."""
        self.row_of[0], column = row, 0
        came_from = [0] * len(self.row_of)
        least: dict[int, int] = {}
        done: list[int] = []
        while self.row_of[column]:
            done.append(column)
            column = self._nearest(column, done, least, came_from)
        while column:
            self.row_of[column] = self.row_of[came_from[column]]
            column = came_from[column]

    def _nearest(
        self, column: int, done: Sequence[int], least: dict[int, int], came_from: list[int]
    ) -> int:
        """Return the cheapest column that is not done, and move the potentials there."""
        row = self.row_of[column]
        for other in range(1, len(self.row_of)):
            if other in done:
                continue
            cost = self._costs[row - 1][other - 1] - self._of_row[row] - self._of_column[other]
            if other not in least or cost < least[other]:
                least[other], came_from[other] = cost, column
        left = [other for other in least if other not in done]
        found = min(left, key=lambda other: (least[other], other))
        step = least[found]
        for other in done:
            self._of_row[self.row_of[other]] += step
            self._of_column[other] -= step
        for other in left:
            least[other] -= step
        return found


def by_tool(calls: Mapping[CallId, CallTree]) -> dict[str, list[CallId]]:
    """Return tool -> its calls, by number."""
    found: dict[str, list[CallId]] = {}
    for call in sorted(calls):
        found.setdefault(call.tool, []).append(call)
    return found
