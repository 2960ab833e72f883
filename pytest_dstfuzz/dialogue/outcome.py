"""What a system answers to a context: a flat mapping of texts, whatever kind of system it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

#: What is tested of a system: the belief state that it keeps, what it replies, what it calls.
OutcomeKind = Literal["state", "reply", "tool-calls"]
#: Whose messages stand in the history of a question: those that were recorded, or its own.
History = Literal["recorded", "own"]
#: The path of a reply.
REPLY: Final = "reply"
TOOL_CALLS: Final = "tool-calls"


class Outcome(Mapping[str, str]):
    """An immutable mapping *path -> text*; a path that is absent is not answered.

    The paths of a belief state are its slots, a reply has the one path ``reply``, those of tool
    calls are like ``book_table[0].people`` (see `calls_outcome`). Iteration is sorted by path, so
    that equal outcomes print and serialise alike.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(sorted((values or {}).items()))

    def __getitem__(self, path: str) -> str:
        return self._values[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Outcome):
            return self._values == other._values
        if isinstance(other, Mapping):
            return self._values == dict(other)
        return NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"

    def to_json(self) -> dict[str, str]:
        """Return a plain dictionary, sorted by path."""
        return dict(self._values)


def reply_outcome(text: str) -> Outcome:
    """Return the outcome of a reply; white space at its ends is no part of it.

    >>> reply_outcome(" At nine. ")
    Outcome({'reply': 'At nine.'})
    """
    return Outcome({REPLY: text.strip()})
