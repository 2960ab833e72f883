"""Tool calls as JSON, as paths of an outcome, and as trees."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.json_data import from_json, load_json

__all__ = ["REPLY", "AnswerPath", "list_calls", "plain_marks"]

#: The kind of answer under test: a belief state, a reply, or tool calls.
OutcomeKind = Literal["state", "reply", "tool-calls"]
#: The system messages in the history of a question: the recorded ones, or the system's own.
History = Literal["recorded", "own"]
#: The path of a reply.
REPLY: Final = "reply"
TOOL_CALLS: Final = "tool-calls"


class Outcome(Mapping[str, str]):
    """An immutable mapping *path -> text*. Missing paths have no answer.

    The paths of a belief state are its slots. A reply has the single path ``reply``. Tool calls
    have paths like ``book_table[0].people`` (see `calls_outcome`). Iteration is sorted by path, so
    that equal outcomes print and serialise identically.
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
    """Return the outcome of a reply. White space at its ends is removed.

    >>> reply_outcome(" At nine. ")
    Outcome({'reply': 'At nine.'})
    """
    return Outcome({REPLY: text.strip()})


#: Typographic marks -> their ASCII equivalents.
_MARKS: Final = str.maketrans(
    {
        **dict.fromkeys("’‘‚‛′ʼ`´＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        # Hyphens (also non-breaking), figure dash, en dash, em dash, bar, minus signs.
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        # Invisible: soft hyphen, zero-width space, word joiner, byte order mark.
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", None),
    }
)


def plain_marks(text: str) -> str:
    r"""Return a text in NFC, with ASCII quotes and dashes, and single blanks.

    >>> plain_marks("“Joe’s” 5\u201310\u00a0km"), plain_marks("cafe\u0301")
    ('"Joe\'s" 5-10 km', 'café')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_MARKS))
    elif "`" in text:
        text = text.translate(_MARKS)
    return " ".join(text.split())


def list_text(members: Iterable[str]) -> str:
    """Return a list as a text, the form that belief states store.

    >>> list_text(["window", "wifi"])
    '["wifi", "window"]'
    """
    return json.dumps(sorted(members), ensure_ascii=False)


@lru_cache(maxsize=1 << 14)
def members_of(text: str) -> tuple[str, ...]:
    """Return the members of a list. A text that is not a list is the only member.

    >>> members_of('["wifi", "window"]'), members_of("wifi"), members_of("[wifi]")
    (('wifi', 'window'), ('wifi',), ('[wifi]',))
    """
    found = parse_list(text)
    if found is None or not all(isinstance(one, str) for one in found):
        return (text,)
    return tuple(map(str, found))


def parse_list(text: str) -> list[object] | None:
    """Parse a text as a JSON list. Return ``None`` if it is not one."""
    if not (text[:1] == "[" and text[-1:] == "]"):
        return None
    try:
        found = load_json(text)
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def format_value(value: str | None) -> str:
    """Format a value for people. Lists get commas, and ``none`` means no value.

    >>> format_value('["wifi", "window"]'), format_value(None), format_value("none")
    ('wifi, window', 'none', '"none"')
    """
    if value is None or value == "":
        return "none"
    return '"none"' if value == "none" else ", ".join(members_of(value))


#: The name of a tool with the number of the call, and the path inside the call.
_PATH: Final = re.compile(r"(?P<tool>.*?)\[(?P<number>0|[1-9][0-9]*)\](?P<rest>\..*)?", re.DOTALL)
#: A name inside an argument, with the list indices after it.
_STEP: Final = re.compile(r"(.+?|)((?:\[(?:0|[1-9][0-9]*)\])*)", re.DOTALL)
_PLACE: Final = re.compile(r"call (\d+)")


class Tool(NamedTuple):
    """A function that an assistant can call."""

    name: str
    description: str = ""
    #: JSON schema of the arguments, as JSON with sorted keys.
    parameters: str = "{}"
    #: Whether the tool is declared to change nothing, as by MCP's ``readOnlyHint``.
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
    """The recorded data of a dialogue except its texts: tools, tool calls and results.

    Two transcripts are equal if they have the same `key`.
    """

    tools: tuple[Tool, ...] = ()
    #: For each exchange, the messages before its user utterance, see `Turn.recorded`. An exchange
    #: that an edit added has the entry ``None``, and only the text of the system.
    before: tuple[tuple[str, ...] | None, ...] = ()
    #: Pairs ``(new name, name in the data)`` of renamed tools and arguments (``tool.argument``).
    #: Reports use the names in the data.
    names: tuple[tuple[str, str], ...] = ()
    #: The messages after the newest user utterance, in the same form: the calls that the assistant
    #: has already made for it, and their results.
    after: tuple[str, ...] = ()
    #: The results of the recorded calls in the whole dialogue, in order, for rollouts. Each is a
    #: pair of the call as JSON ``[name, arguments]`` and the text of its result.
    results: tuple[tuple[str, str], ...] = ()

    @cached_property
    def key(self) -> str:
        """Hexadecimal digest of all fields."""
        parts = {"names": self.names, "after": self.after, "results": self.results}
        more = {name: part for name, part in parts.items() if part}
        told = json.dumps([self.tools, self.before, *([more] if more else [])], ensure_ascii=True)
        return sha256(told.encode("ascii")).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def canonical(value: object) -> str:
    """Return a JSON value as text with sorted keys. Equal values give equal texts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def calls_outcome(calls: Iterable[ToolCall]) -> Outcome:
    """Return the tool calls of a message as an outcome, which is empty without calls.

    The calls of each tool are numbered from 0. The text at the path of a call is its position in
    the message. A string is stored unchanged, but with quotes if it looks like another JSON value.
    An empty list or object is ``[]`` or ``{}``.

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
    """Return a JSON scalar, empty list or empty object as a text of an outcome.

    >>> text_of("north"), text_of(2), text_of("2"), text_of(True)
    ('north', '2', '"2"', 'true')
    """
    if isinstance(value, str):
        return canonical(value) if value != value_of(value) else value
    return canonical(value)


def value_of(text: str) -> object:
    """Return the JSON value for a text of an outcome. The inverse of `text_of`."""
    try:
        return load_json(text)
    except ValueError:
        return text


class AnswerPath(tuple[str | int, ...]):
    """A parsed path of an outcome: a slot, or a path into tool calls.

    Examples are ``("hotel-area",)``, ``("book_table", 0)`` for the first call of a tool, and
    ``("book_table", 0, "guests", 1, "name")`` for a part of its arguments. ``str()`` returns the
    path of the outcome.
    """

    __slots__ = ()

    @classmethod
    def of(cls, path: str | AnswerPath) -> AnswerPath:
        """Parse a path of an outcome.

        >>> tuple(AnswerPath.of("book_table[0].guests[1].name")), tuple(AnswerPath.of("hotel-area"))
        (('book_table', 0, 'guests', 1, 'name'), ('hotel-area',))
        """
        return path if isinstance(path, AnswerPath) else _taken_apart(path)

    @property
    def in_call(self) -> bool:
        """Whether the path leads to a call or to a part of a call."""
        return len(self) > 1

    @property
    def is_call(self) -> bool:
        """Whether it is the path of a whole call."""
        return len(self) == 2

    @property
    def call(self) -> AnswerPath:
        """The path of the call, empty if it is not in a call."""
        return AnswerPath(self[:2] if self.in_call else ())

    @property
    def tool(self) -> str:
        """The tool of the call, or the slot."""
        return str(self[0])

    @property
    def argument(self) -> str:
        """The path of a part of an argument as text: ``guests[1].name``."""
        return _joined(self[2:]).removeprefix(".")

    @property
    def part(self) -> tuple[str, str]:
        """The domain and the slot that count the path in figures. The domain may be ``""``.

        For tool calls these are the tool and the argument, without the number of the call and
        indices of lists.

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
    """Return the position of a call in its message, from 1. ``text`` is the text at its path."""
    found = _PLACE.fullmatch(text)
    return int(found[1]) if found else None


def arguments_in(calls: Mapping[str, str]) -> Iterator[tuple[AnswerPath, str]]:
    """Yield the path and text of each argument of tool calls. Members of a list are separate."""
    for path, text in calls.items():
        place = AnswerPath.of(path)
        if place.in_call and not place.is_call:
            yield place, text


def argument_texts(calls: Mapping[str, str]) -> Iterator[tuple[AnswerPath, str]]:
    """Yield the texts and numbers among the arguments of tool calls, as people write them.

    >>> calls = {"book[0]": "call 1", "book[0].people": '"2"', "book[0].pets": "false"}
    >>> [text for _, text in argument_texts(calls)]
    ['2']
    """
    for path, text in arguments_in(calls):
        value = value_of(text)
        said = isinstance(value, str | int | float) and not isinstance(value, bool)
        if said and str(value).strip():
            yield path, str(value)


#: An argument: its text, or the parts of a list or an object.
Tree = str | dict[str | int, "Tree"]


@dataclass(slots=True)
class CallTree:
    """One call: the text at its path, and its arguments."""

    place: str | None = None
    arguments: dict[str | int, Tree] = field(default_factory=dict)

    def paths(self, call: AnswerPath) -> Iterator[tuple[str, str]]:
        """Yield (path, text) for each value of the call, with paths that begin with ``call``."""
        if self.place is not None:
            yield str(call), self.place
        yield from _paths(call, self.arguments)


def calls_of_outcome(
    outcome: Mapping[str, str] | Mapping[AnswerPath, str],
) -> tuple[dict[AnswerPath, CallTree], dict[str, str]]:
    """Return the calls in an outcome by their paths, and the texts outside of calls."""
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


def list_calls(outcome: Mapping[str, str] | Mapping[AnswerPath, str]) -> tuple[ToolCall, ...]:
    """Return the calls of an outcome in order. The inverse of `calls_outcome`.

    If the name of an argument has a dot or a bracket, the argument may become an object or a list
    with the same paths.

    >>> [str(call) for call in list_calls({"book[0]": "call 1", "book[0].people": "2"})]
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
    """Store a text at a path. If a parent already has a text, use a dotted name."""
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


def assign_columns(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Assign a column to each row. The total gain is as large as possible.

    The Hungarian method with potentials (Kuhn 1955, Munkres 1957) does this on a square of costs,
    in O(n^3). If there are too few columns, some rows get ``None``.
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
    """The cheapest assignment of rows to columns, built row by row. Both count from 1."""

    def __init__(self, costs: Sequence[Sequence[int]]) -> None:
        self._costs = costs
        size = len(costs)
        self._of_row, self._of_column = [0] * (size + 1), [0] * (size + 1)
        #: Column -> its row, 0 = none. Column 0 has the row that is being assigned.
        self.row_of = [0] * (size + 1)

    def take(self, row: int) -> None:
        """Assign one more row."""
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
        """Return the cheapest column that is not done, and update the potentials."""
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
    """Return the calls of each tool, sorted by number."""
    found: dict[str, list[AnswerPath]] = {}
    for call in sorted(calls):
        found.setdefault(call.tool, []).append(call)
    return found


def transcript_json(transcript: Transcript) -> dict[str, Any]:
    """Return a transcript as JSON.

    The keys are ``tools``, ``recorded``, ``names`` and ``results``. ``recorded`` has the messages
    before each user utterance in the form of OpenAI's API, or null. ``names`` and ``results`` are
    omitted if empty.
    """
    told: dict[str, Any] = {
        "tools": [
            tool.to_json()["function"] | ({"read_only": True} if tool.read_only else {})
            for tool in transcript.tools
        ],
        "recorded": [
            None if messages is None else [json.loads(one) for one in messages]
            for messages in transcript.before
        ],
    }
    if transcript.names:
        told["names"] = dict(transcript.names)
    if transcript.results:
        told["results"] = [list(pair) for pair in transcript.results]
    return told


def transcript_of_json(data: object) -> Transcript:
    """Build a transcript from the output of `transcript_json`.

    The keys of messages and schemas are sorted, and not in the order of the data.

    Raises:
        ValueError: If the data is malformed. The message names the fault.
    """
    form = from_json(_Form, data)
    tools = (
        Tool(one.name, one.description, canonical(one.parameters), one.read_only)
        for one in form.tools
    )
    before = (
        None if messages is None else tuple(map(canonical, messages)) for messages in form.recorded
    )
    return Transcript(tuple(tools), tuple(before), tuple(form.names.items()), results=form.results)


@dataclass(frozen=True, slots=True)
class _ToolForm:
    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    tools: tuple[_ToolForm, ...] = ()
    recorded: tuple[tuple[dict[str, Any], ...] | None, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    results: tuple[tuple[str, str], ...] = ()
