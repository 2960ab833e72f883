"""Outcomes of tool calls as trees: calls with their arguments, and which call is which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_dstfuzz.dialogue.calls import AnswerPath, ToolCall, place_of, value_of

#: An argument: its text, or the parts of a list or of an object.
Tree = str | dict[str | int, "Tree"]


@dataclass(slots=True)
class CallTree:
    """One call: the text of its own path, and its arguments."""

    place: str | None = None
    arguments: dict[str | int, Tree] = field(default_factory=dict)

    def paths(self, call: AnswerPath) -> Iterator[tuple[str, str]]:
        """Yield the paths of the call as that of ``call``, with their texts."""
        if self.place is not None:
            yield str(call), self.place
        yield from _paths(call, self.arguments)


def calls_of_outcome(
    outcome: Mapping[str, str] | Mapping[AnswerPath, str],
) -> tuple[dict[AnswerPath, CallTree], dict[str, str]]:
    """Return the calls of an outcome by their paths, and what in it is none."""
    calls: dict[AnswerPath, CallTree] = {}
    others: dict[str, str] = {}
    for path, text in outcome.items():
        found = AnswerPath.of(path)
        if not found.in_call:
            others[str(path)] = text
            continue
        call = calls.setdefault(found.call, CallTree())
        if found.is_call:
            call.place = text
        else:
            _put(call.arguments, found[2:], text)
    return calls, others


def made_calls(outcome: Mapping[str, str] | Mapping[AnswerPath, str]) -> tuple[ToolCall, ...]:
    """Return the calls that an outcome says, in their order; undoes `calls_outcome`.

    A name with a dot or a bracket may come back as an object or a list: with the same paths.

    >>> [str(call) for call in made_calls({"book[0]": "call 1", "book[0].people": "2"})]
    ['book(people=2)']
    """
    calls, _ = calls_of_outcome(outcome)
    placed = sorted(calls.items(), key=lambda pair: (place_of(pair[1].place or "") or 0, pair[0]))
    return tuple(
        ToolCall(
            call.tool, {str(step): value_of_tree(part) for step, part in tree.arguments.items()}
        )
        for call, tree in placed
    )


def value_of_tree(tree: Tree) -> object:
    """Return the JSON value of an argument."""
    if isinstance(tree, str):
        return value_of(tree)
    places = [step for step in tree if isinstance(step, int)]
    if len(places) == len(tree):
        return [value_of_tree(tree[place]) for place in sorted(places)]
    return {str(step): value_of_tree(part) for step, part in tree.items()}


def _put(tree: dict[str | int, Tree], way: Sequence[str | int], text: str) -> None:
    """Put a text where a way leads to; a name with a dot that is another one's, under itself."""
    here, named, start = tree, tree, 0
    for at, step in enumerate(way[:-1]):
        if isinstance(step, str):
            named, start = here, at
        inner = here.setdefault(step, {})
        if isinstance(inner, str):
            named[AnswerPath(("", 0, *way[start:])).argument] = text
            return
        here = inner
    here[way[-1]] = text


def _paths(path: AnswerPath, tree: Tree) -> Iterator[tuple[str, str]]:
    if isinstance(tree, str):
        yield str(path), tree
    else:
        for step, part in tree.items():
            yield from _paths(AnswerPath((*path, step)), part)


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


def by_tool(calls: Mapping[AnswerPath, CallTree]) -> dict[str, list[AnswerPath]]:
    """Return tool -> its calls, by number."""
    found: dict[str, list[AnswerPath]] = {}
    for call in sorted(calls):
        found.setdefault(call.tool, []).append(call)
    return found
