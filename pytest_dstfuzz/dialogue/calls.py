"""Tool calls: what an assistant does, as JSON, and flattened to paths like a belief state.

The calls of a message become an outcome: ``book_table[0]`` says that the tool is called, and which
call of the message it is, ``book_table[0].people`` is an argument of it. So all that this package
does with slots (diffs, blame, gates, baselines) it does with arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.outcome import Outcome

#: A tool's name with the number of the call, and what comes after it.
_PATH: Final = re.compile(r"(?P<tool>.*?)\[(?P<number>0|[1-9][0-9]*)\](?P<rest>\..*)?", re.DOTALL)
#: A name within an argument, with the places in the lists that it leads to.
_STEP: Final = re.compile(r"(.+?|)((?:\[(?:0|[1-9][0-9]*)\])*)", re.DOTALL)
_PLACE: Final = re.compile(r"call (\d+)")


class Tool(NamedTuple):
    """A function that an assistant can call."""

    name: str
    description: str = ""
    #: JSON schema of the arguments, as JSON with sorted keys.
    parameters: str = "{}"
    #: Whether it is said to change nothing, as MCP's ``readOnlyHint`` says it.
    read_only: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        found: dict[str, Any] = json.loads(self.parameters)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the tool in the form of OpenAI's API."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.schema,
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: its name, and its arguments as JSON values."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the call as code: ``book_table(people=2, area='north')``."""
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"


@dataclass(frozen=True, eq=False)
class Transcript:
    """What was recorded of a dialogue beside its texts: tools, tool calls and their results.

    Two of them are equal where their `key` is.
    """

    tools: tuple[Tool, ...] = ()
    #: For each exchange the messages before its user utterance, see `Turn.recorded`. Exchanges
    #: beyond, which an edit added, have the text of the system alone.
    before: tuple[tuple[str, ...] | None, ...] = ()
    #: Where the tools have other names than in the data: each other name of a tool, or of an
    #: argument (``tool.argument``), with the one of the data, by which answers are told.
    names: tuple[tuple[str, str], ...] = ()
    #: The messages after the newest utterance of the user, as those before one: what the assistant
    #: called for it already, and what came back.
    after: tuple[str, ...] = ()
    #: What the recorded tools returned in the whole dialogue, for rollouts: each call in its order,
    #: ``[name, arguments]`` as JSON, with the text of the result.
    results: tuple[tuple[str, str], ...] = ()

    @cached_property
    def key(self) -> str:
        """Hexadecimal digest of all of it."""
        parts = {"names": self.names, "after": self.after, "results": self.results}
        more = {name: part for name, part in parts.items() if part}
        told = json.dumps([self.tools, self.before, *([more] if more else [])], ensure_ascii=True)
        return sha256(told.encode("ascii")).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def canonical(value: object) -> str:
    """Return a JSON value as text that is the same for equal values: sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def calls_outcome(calls: Iterable[ToolCall]) -> Outcome:
    """Return the tool calls of a message as an outcome; no calls are an empty one.

    A tool's calls are numbered from 0 in their order. The path of a call itself says which of the
    message it is. A text stands as it is, but where it could be read as another JSON value: so
    nothing is lost. An empty list or object is ``[]`` or ``{}``.

    >>> dict(calls_outcome([ToolCall("book", {"people": 2, "area": "north"})]))
    {'book[0]': 'call 1', 'book[0].area': 'north', 'book[0].people': '2'}
    """
    values: dict[str, str] = {}
    counts: dict[str, int] = {}
    for place, call in enumerate(calls, start=1):
        number = counts[call.name] = counts.get(call.name, -1) + 1
        path = f"{call.name}[{number}]"
        values[path] = f"call {place}"
        for name, value in call.arguments.items():
            values.update(_flat(f"{path}.{name}", value))
    return Outcome(values)


def _flat(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for place, inner in enumerate(value):
            yield from _flat(f"{path}[{place}]", inner)
    else:
        yield path, text_of(value)


def text_of(value: object) -> str:
    """Return a JSON value that is no filled list or object as the text of an outcome.

    >>> text_of("north"), text_of(2), text_of("2"), text_of(True)
    ('north', '2', '"2"', 'true')
    """
    if isinstance(value, str):
        return canonical(value) if value != value_of(value) else value
    return canonical(value)


def value_of(text: str) -> object:
    """Return the JSON value that a text of an outcome stands for; undoes `text_of`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # Of brackets in brackets, thousands deep.
        return text


class AnswerPath(tuple[str | int, ...]):
    """The place of a text in an outcome, taken apart: a slot, or a way into tool calls.

    ``("hotel-area",)``; ``("book_table", 0)``, the first call of a tool, and
    ``("book_table", 0, "guests", 1, "name")``, a part of an argument of it. As text it is the path
    of the outcome again.
    """

    __slots__ = ()

    @classmethod
    def of(cls, path: str | AnswerPath) -> AnswerPath:
        """Take a path of an outcome apart.

        >>> tuple(AnswerPath.of("book_table[0].guests[1].name")), tuple(AnswerPath.of("hotel-area"))
        (('book_table', 0, 'guests', 1, 'name'), ('hotel-area',))
        """
        return path if isinstance(path, AnswerPath) else _taken_apart(path)

    @property
    def in_call(self) -> bool:
        """Whether it is the path of a call or of a part of one."""
        return len(self) > 1

    @property
    def is_call(self) -> bool:
        """Whether it is the path of a call itself."""
        return len(self) == 2

    @property
    def call(self) -> AnswerPath:
        """The path of the call; without any step if it is in none."""
        return AnswerPath(self[:2] if self.in_call else ())

    @property
    def tool(self) -> str:
        """The tool of the call, or the slot."""
        return str(self[0])

    @property
    def argument(self) -> str:
        """The way to a part of an argument as text: ``guests[1].name``."""
        return _joined(self[2:]).removeprefix(".")

    @property
    def part(self) -> tuple[str, str]:
        """The domain and the slot that it counts for, ``""`` = no domain.

        Of a tool call these are the tool and the argument, whichever call of the message and
        whichever member of a list it is of.

        >>> AnswerPath.of("book_table[1].people").part
        ('book_table', 'book_table.people')
        >>> AnswerPath.of("hotel-area").part, AnswerPath.of("size").part
        (('hotel', 'hotel-area'), ('', 'size'))
        """
        if self.in_call:
            return self.tool, ".".join(step for step in self if isinstance(step, str)).rstrip(".")
        domain, dash, _ = self.tool.partition("-")
        return domain if dash else "", self.tool

    def __str__(self) -> str:
        return _joined(self).removeprefix(".")


@lru_cache(1 << 14)
def _taken_apart(path: str) -> AnswerPath:
    found = _PATH.fullmatch(path)
    if found is None:
        return AnswerPath((path,))
    steps: list[str | int] = [found["tool"], int(found["number"])]
    for part in (found["rest"] or "").split(".")[1:]:
        name, places = _STEP.fullmatch(part).groups()  # type: ignore[union-attr]  # matches all
        steps += [name, *map(int, places[1:-1].split("][") if places else ())]
    return AnswerPath(steps)


def _joined(steps: Iterable[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def place_of(text: str) -> int | None:
    """Return which call of the message the text of a call's own path says, counted from 1."""
    found = _PLACE.fullmatch(text)
    return int(found[1]) if found else None


def argument_texts(calls: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts and numbers among the arguments of tool calls, as people write them.

    >>> argument_texts({"book[0]": "call 1", "book[0].people": '"2"', "book[0].pets": "false"})
    ('2',)
    """
    found = []
    for path, text in calls.items():
        taken, value = AnswerPath.of(path), value_of(text)
        if not taken.in_call or taken.is_call or isinstance(value, bool):
            continue
        if isinstance(value, str | int | float) and str(value).strip():
            found.append(str(value))
    return tuple(found)
