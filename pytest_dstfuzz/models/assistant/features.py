"""The inputs of the assistant's network: words, schemas and a memory of the dialogue."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from pytest_dstfuzz.comparisons.embedding import NUMBER, load_shipped_vectors
from pytest_dstfuzz.dialogue.number_words import with_digits
from pytest_dstfuzz.json_data import load_json

Array = np.ndarray[Any, np.dtype[np.float32]]
#: Size of a word vector.
WIDTH: Final = 96
#: Number of shape features of a token.
SHAPE: Final = 16
#: Longest text in tokens. Assistant texts are cut at the start, user texts at the end.
LONGEST: Final = 90
_TOKEN: Final = re.compile(
    r"\d+(?:[.,:/]\d+)+|[^\W_]+(?:[.'’-][^\W_]+)*\.?(?<=[ap]\.m\.)|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]"
)
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TIMES: Final = frozenset(
    [
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("january", "february", "march", "april", "may", "june", "july", "august"),
        *("september", "october", "november", "december", "today", "tomorrow", "tonight"),
    ]
)
_HALVES: Final = frozenset(
    ["am", "pm", "a.m", "p.m", "a.m.", "p.m.", "morning", "afternoon", "evening", "night", "noon"]
)


class TextToken(NamedTuple):
    """One token of a text: ``text == whole[start:end]``."""

    text: str
    start: int
    end: int
    lower: str


def tokens(text: str) -> list[TextToken]:
    """Return the words, numbers and symbols of a text with their positions.

    >>> [token.text for token in tokens("Book it at 7:30 p.m., don't wait!")]
    ['Book', 'it', 'at', '7:30', 'p.m.', ',', "don't", 'wait', '!']
    """
    return [
        TextToken(found[0], found.start(), found.end(), found[0].lower().replace("’", "'"))
        for found in _TOKEN.finditer(text)
    ]


def label_words(name: str) -> list[str]:
    """Return the words of an identifier in lower case.

    >>> label_words("number_of_seats"), label_words("FindRestaurants")
    (['number', 'of', 'seats'], ['find', 'restaurants'])
    """
    return [found[0].lower() for found in _PARTS.finditer(name)]


@lru_cache(maxsize=65536)
def word_vector(word: str) -> tuple[Array, float]:
    """Return the normalised vector ``[WIDTH]`` of a lower-case word, and the vector's length."""
    table = load_shipped_vectors()
    place = table.places.get(NUMBER if any(map(str.isdigit, word)) else word)
    row = (
        table.parts(word).total if place is None else table.words[place] * table.word_scales[place]
    )
    length = float(np.sqrt(row @ row))
    return np.asarray(row / np.float32(max(length, 1e-9)), np.float32), length


@lru_cache(maxsize=65536)
def plain(word: str) -> str:
    """Return a lower-case word in the form for comparing values, with numbers as digits."""
    return with_digits(word)


def directions(words: list[str]) -> tuple[Array, Array]:
    """Return normalised vectors of words, ``[words, WIDTH]``, and their lengths, ``[words]``."""
    if not words:
        return np.zeros((0, WIDTH), np.float32), np.zeros(0, np.float32)
    found = [word_vector(word) for word in words]
    return np.stack([one for one, _ in found]), np.array([n for _, n in found], np.float32)


def sum_vector(words: list[str]) -> Array:
    """Return the normalised sum of word vectors, or zeros if there are no words."""
    rows, lengths = directions(words)
    total = lengths @ rows
    return np.asarray(total / np.float32(max(float(np.sqrt(total @ total)), 1e-9)), np.float32)


@lru_cache(maxsize=65536)
def _shape(text: str) -> tuple[float, ...]:
    lower = text.lower()
    digit = any(map(str.isdigit, text))
    return (
        float(digit),
        float(text.isdigit()),
        float(digit and ":" in text),
        float(text[:1].isupper()),
        float(len(text) > 1 and text.isupper()),
        float(not text[:1].isalnum()),
        float(text == "?"),
        float(not digit and any(map(str.isdigit, with_digits(lower)))),
        float(lower in _TIMES),
        float(lower in _HALVES or (digit and lower.endswith(("am", "pm")))),
        float(text in "$£€#"),
        float(lower not in load_shipped_vectors().places),
        min(word_vector(lower)[1], 2.0),
    )


def shapes(read: list[TextToken], *, user: bool) -> Array:
    """Return features of each token's form ``[tokens, SHAPE]``: letters, digits, place, speaker."""
    table = np.zeros((len(read), SHAPE), np.float32)
    for number, token in enumerate(read):
        table[number, :13] = _shape(token.text)
        table[number, 13] = user
        table[number, 14] = number == 0 or read[number - 1].text in ".!?"
        table[number, 15] = number == len(read) - 1
    return table


@lru_cache(maxsize=65536)
def fold_value(text: str) -> str:
    """Return a text in the form for comparing values.

    This form has lower case, single spaces, and numbers as digits.
    """
    return " ".join(with_digits(text).lower().split()).strip(" .,!?")


def says(text: str, value: str) -> bool:
    """Return whether a text contains a value as whole words. Both must be folded."""
    place = text.find(value) if value else -1
    while place >= 0:
        end = place + len(value)
        before, after = text[place - 1 : place], text[end : end + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        place = text.find(value, place + 1)
    return False


_BOOLEAN: Final = ("True", "False")
_NUMBERS: Final = ("integer", "number")


def _words(text: str) -> list[str]:
    return [token.lower for token in tokens(text) if token.text[:1].isalnum()]


@dataclass(frozen=True)
class DescribedObject:
    """An object with a name and a description: a tool or a slot."""

    name: str
    description: str

    @cached_property
    def label(self) -> list[str]:
        """The words of the name, without numbers."""
        return [word for word in label_words(self.name) if not word.isdigit()]

    @cached_property
    def about(self) -> list[str]:
        """The words of the description."""
        return _words(self.description)

    @cached_property
    def label_vector(self) -> Array:
        """The normalised vector of the name ``[WIDTH]``."""
        return sum_vector(self.label)

    @cached_property
    def about_vector(self) -> Array:
        """The normalised vector of the description ``[WIDTH]``."""
        return sum_vector(self.about)

    @cached_property
    def label_rows(self) -> Array:
        """The word vectors of the name ``[words, WIDTH]``, with lengths of at most 1."""
        return _rows(self.label)

    @cached_property
    def about_rows(self) -> Array:
        """The word vectors of the description, ``[words, WIDTH]``, scaled to length 1 at most."""
        return _rows(self.about)


def _rows(words: list[str]) -> Array:
    rows, lengths = directions(words)
    return np.asarray(rows * np.minimum(lengths, 1)[:, None], np.float32)


@dataclass(frozen=True)
class Slot(DescribedObject):
    """A parameter of a tool. Slots are equal if name, description, values and type are equal."""

    values: tuple[str, ...]
    #: JSON type of the parameter. Default: ``string``.
    kind: str
    #: Default value as text.
    default: str | None = field(default=None, compare=False)

    @cached_property
    def value_words(self) -> tuple[list[str], ...]:
        """The words of each value."""
        return tuple(label_words(value) or _words(value) for value in self.values)

    @cached_property
    def value_vectors(self) -> Array:
        """The normalised vectors of the values ``[values, WIDTH]``."""
        return np.stack([sum_vector(words) for words in self.value_words])

    @cached_property
    def value_rows(self) -> tuple[Array, ...]:
        """The word vectors of each value, scaled to length 1 at most."""
        return tuple(_rows(words) for words in self.value_words)

    @cached_property
    def folded_values(self) -> tuple[str, ...]:
        """The values in the form for searching in texts, see `fold_value`."""
        return tuple(fold_value(value.replace("_", " ")) for value in self.values)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of the values with more than two letters."""
        return frozenset(word for words in self.value_words for word in words if len(word) > 2)

    @cached_property
    def value_tokens(self) -> tuple[tuple[str, ...], ...]:
        """The tokens of each value, in the form for searching in texts."""
        return tuple(
            tuple(plain(token.lower) for token in tokens(value.replace("_", " ")))
            for value in self.values
        )

    @property
    def boolean(self) -> bool:
        """Whether the only values are true and false."""
        return {value.lower() for value in self.values} == {"true", "false"}

    @property
    def number(self) -> bool:
        """Whether the schema requires a number."""
        return self.kind in _NUMBERS


@dataclass(frozen=True)
class ToolView(DescribedObject):
    """One tool with its parameters, in the order of the schema."""

    slots: tuple[Slot, ...]
    #: Names of required parameters. Missing ones are asked for in this order.
    required: tuple[str, ...]


def read_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[ToolView, ...]:
    """Return the tools of a request. Entries that are not functions with a name are left out."""
    found = []
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            found.append(_tool(function))
    return tuple(found)


def _tool(function: Mapping[str, Any]) -> ToolView:
    schema = _mapping(function.get("parameters"))
    properties = _mapping(schema.get("properties"))
    required = schema.get("required")
    slots = tuple(_slot(str(name), _mapping(given)) for name, given in properties.items())
    return ToolView(
        function["name"],
        str(function.get("description") or ""),
        slots,
        tuple(name for name in required if name in properties)
        if isinstance(required, list)
        else (),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _slot(name: str, given: Mapping[str, Any]) -> Slot:
    kind = given.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array" and isinstance(given.get("items"), Mapping):
        values = given["items"].get("enum")
    else:
        values = given.get("enum")
    if kind == "boolean":
        listed: tuple[str, ...] = _BOOLEAN
    else:
        listed = tuple(
            str(value)
            for value in (values if isinstance(values, list) else ())
            if value is not None
        )
    default = given.get("default")
    return Slot(
        name,
        str(given.get("description") or ""),
        listed,
        str(kind),
        None if default is None else str(default),
    )


#: Stands for any value. Such an argument is left out of a call.
ANY: Final = "dontcare"
#: Number of results in memory, and of rows used per result.
_RESULTS: Final = 4
_ROWS: Final = 10
#: Maximum number of candidates by origin: same result key, other argument, other result key.
_MOST: Final = {"result": 5, "argument": 8, "other": 6}


class EarlierValue(NamedTuple):
    """A value from earlier in the dialogue that an argument could take."""

    text: str
    kind: str
    source: DescribedObject
    #: Name of the tool that returned it.
    tool: str
    #: Number of exchanges since the assistant named it. ``None`` means never.
    age: int | None
    #: Index of its row in the result.
    row: int


@dataclass
class Result:
    """The result of one tool call, as rows of texts."""

    tool: str
    rows: list[dict[str, str]]


@dataclass
class Memory:
    """The assistant's memory of the dialogue up to a turn.

    Slots are keys of ``values``.
    """

    values: dict[Slot, str] = field(default_factory=dict)
    #: Name of the tool of the last turn.
    active: str | None = None
    #: Arguments of the last call of each tool.
    calls: dict[str, dict[str, str]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    #: Folded texts of the assistant, one per exchange.
    said: list[str] = field(default_factory=list)
    #: The assistant's latest text, and whether results came before it.
    system: str = ""
    after_results: bool = False

    def copy(self) -> Memory:
        """Return an independent copy."""
        return Memory(
            dict(self.values),
            self.active,
            dict(self.calls),
            list(self.results),
            list(self.said),
            self.system,
            self.after_results,
        )

    def begin_answer(self) -> None:
        """Prepare for the assistant's next message. Clear the data about its last message."""
        self.system = ""
        self.after_results = False
        self.said.append("")

    def hear_text(self, text: str) -> None:
        """Store a text of the assistant."""
        if text.strip():
            self.system = f"{self.system} {text}".strip()
            if self.said:
                self.said[-1] = fold_value(self.system)
            else:
                self.said.append(fold_value(text))

    def hear_call(self, tool: ToolView | None, name: str, arguments: Mapping[str, Any]) -> None:
        """Store a call. Its arguments become the current values of the tool's slots."""
        given = {key: as_text(value) for key, value in arguments.items() if value is not None}
        self.calls[name] = given
        self.active = name
        if tool is not None:
            for slot in tool.slots:
                if slot.name in given:
                    self.values[slot] = given[slot.name]

    def hear_result(self, name: str, content: Any) -> None:
        """Store the result of a call."""
        self.after_results = True
        rows = result_rows(content)
        if rows:
            self.results = [*self.results[1 - _RESULTS :], Result(name, rows)]

    def candidates(self, slot: Slot) -> list[EarlierValue]:
        """Return earlier values that the slot could take, the most recent of each kind first."""
        found: dict[tuple[str, str], EarlierValue] = {}
        for result in reversed(self.results):
            for place, row in enumerate(result.rows[:_ROWS]):
                for key, value in row.items():
                    self._offer(found, slot, result.tool, place, (key, value))
        for other, value in self.values.items():
            if other != slot and value != ANY:
                low = value.casefold()
                if ("argument", low) not in found:
                    found["argument", low] = EarlierValue(
                        value, "argument", other, "", self.age(value), 0
                    )
        chosen: list[EarlierValue] = []
        for kind, most in _MOST.items():
            these = [one for (of, _), one in found.items() if of == kind]
            these.sort(key=lambda one: (99 if one.age is None else one.age, one.row))
            chosen += these[:most]
        return chosen

    def _offer(
        self,
        found: dict[tuple[str, str], EarlierValue],
        slot: Slot,
        tool: str,
        place: int,
        item: tuple[str, str],
    ) -> None:
        key, value = item
        kind = "result" if key == slot.name else "other"
        low = value.casefold()
        if (kind, low) in found:
            return
        age = self.age(value)
        if age is None and kind == "other":
            return
        found[kind, low] = EarlierValue(value, kind, _key(key), tool, age, place)

    def age(self, value: str) -> int | None:
        """Return how many exchanges ago the assistant named a value. 0 means its last message."""
        wanted = fold_value(value)
        for back, text in enumerate(reversed(self.said[-8:])):
            if says(text, wanted):
                return back
        return None


_KEYS: dict[str, DescribedObject] = {}


def _key(name: str) -> DescribedObject:
    if name not in _KEYS:
        if len(_KEYS) > 4096:
            _KEYS.clear()
        _KEYS[name] = DescribedObject(name, "")
    return _KEYS[name]


def as_text(value: Any) -> str:
    """Write a JSON value as the text of a slot's value.

    >>> as_text(True), as_text(2), as_text(["a", "b"])
    ('True', '2', 'a, b')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, (str, int, float)) for one in value):
        return ", ".join(map(as_text, value))
    if isinstance(value, (bool, int, float)):
        return str(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def result_rows(content: Any, depth: int = 3) -> list[dict[str, str]]:
    """Return the rows of a tool result: objects that contain texts, numbers or flags.

    >>> result_rows('{"hits": [{"name": "Vela", "rooms": 2}]}')
    [{'name': 'Vela', 'rooms': '2'}]
    """
    if isinstance(content, str):
        try:
            content = load_json(content)
        except ValueError:
            return []
    if isinstance(content, Mapping):
        flat = {
            str(key): as_text(value)
            for key, value in content.items()
            if isinstance(value, (str, int, float))
        }
        inner = [value for value in content.values() if isinstance(value, (list, Mapping))]
        rows = [flat] if flat else []
        return rows + _inner_rows(inner, depth)
    return _inner_rows(content, depth) if isinstance(content, list) else []


def _inner_rows(items: Sequence[Any], depth: int) -> list[dict[str, str]]:
    if depth == 0:
        return []
    return [
        row
        for item in items[:_ROWS]
        if isinstance(item, (list, Mapping))
        for row in result_rows(item, depth - 1)
    ]


#: Numbers of additional features for each kind of input.
PAIR: Final = 6
SLOT: Final = 12
VALUE: Final = 15
CANDIDATE: Final = 18
TOOL: Final = 10
CALL: Final = 14
#: Smaller numbers are candidates even if no text contains them.
_FEW: Final = 7
_FIGURE: Final = re.compile(r"[0-9]{1,9}(?:,[0-9]{3})*(?:\.[0-9]{1,9})?")
#: Tokens after a number that is an hour.
_HOURS: Final = (("am",), ("pm",), ("a.m.",), ("p.m.",), ("a.m",), ("p.m",), ("o'clock",))
_KINDS: Final = ("result", "argument", "other")


@dataclass(frozen=True)
class TurnText:
    """The assistant's last text and the user's text as one token sequence with a gap."""

    read: list[TextToken]
    #: Number of tokens in the assistant's text. The gap and the user's tokens follow.
    heard: int
    system: str
    user: str
    system_folded: str
    user_folded: str
    #: The tokens in the form for comparing values.
    plain: tuple[str, ...]
    #: Normalised vectors ``[tokens, WIDTH]`` and shapes ``[tokens, SHAPE]``. The gap is zero.
    vectors: Array
    shapes: Array

    def text(self, start: int, end: int) -> str:
        """Return the original text from token ``start`` to token ``end`` (inclusive)."""
        whole = self.system if start < self.heard else self.user
        return whole[self.read[start].start : self.read[end].end]


_GAP: Final = TextToken("", 0, 0, "")


def turn_text(system: str, user: str) -> TurnText:
    """Split the assistant's text and the user's text of a turn into tokens."""
    heard, spoken = tokens(system)[-LONGEST:], tokens(user)[:LONGEST]
    gap_vector, gap_shape = np.zeros((1, WIDTH), np.float32), np.zeros((1, 16), np.float32)
    vectors = [
        directions([token.lower for token in heard])[0],
        gap_vector,
        directions([token.lower for token in spoken])[0],
    ]
    looks = [shapes(heard, user=False), gap_shape, shapes(spoken, user=True)]
    return TurnText(
        [*heard, _GAP, *spoken],
        len(heard),
        system,
        user,
        fold_value(system),
        fold_value(user),
        (*(plain(one.lower) for one in heard), "", *(plain(one.lower) for one in spoken)),
        np.concatenate(vectors),
        np.concatenate(looks),
    )


@dataclass(frozen=True)
class ToolsAsked:
    """The network's inputs for choosing among the tools of a turn."""

    vectors: Array
    facts: Array


@dataclass(frozen=True)
class ValuesAsked:
    """The network's inputs for a slot's values in the schema."""

    #: ``[values, WIDTH]``
    vectors: Array
    #: ``[values, VALUE]``
    facts: Array
    #: ``[values, tokens]``: 1 if the token is part of the value.
    hits: Array


@dataclass(frozen=True)
class SlotsAsked:
    """The network's inputs for the slots of one tool at a turn."""

    #: Slots for numbers list the possible numbers as values.
    slots: tuple[Slot, ...]
    #: ``[slots, 2, WIDTH]``: name and description.
    vectors: Array
    #: ``[slots, SLOT]``
    facts: Array
    #: ``[slots, tokens, PAIR]``
    pairs: Array
    values: list[ValuesAsked]
    #: Candidates of each slot, with features ``[candidates, CANDIDATE]``.
    candidates: list[tuple[list[EarlierValue], Array]]


def _overlap(turn: TurnText, rows: Array) -> tuple[float, float]:
    """Return two numbers: how well words match the assistant's text, and the user's text.

    A word's match is the highest product of its vector with a word of the text. The result is the
    mean over ``rows``, for each text.
    """
    if not len(rows):
        return 0.0, 0.0
    met = rows @ turn.vectors.T
    heard = met[:, : turn.heard].max(axis=1).mean() if turn.heard else 0.0
    spoken = met[:, turn.heard + 1 :]
    return float(heard), float(spoken.max(axis=1).mean()) if spoken.shape[1] else 0.0


def ask_tools(turn: TurnText, tools: tuple[ToolView, ...], memory: Memory) -> ToolsAsked:
    """Compute the network's inputs for choosing among the tools of a turn."""
    vectors = np.stack([np.stack([one.label_vector, one.about_vector]) for one in tools])
    facts = np.zeros((len(tools), TOOL), np.float32)
    for number, tool in enumerate(tools):
        filled = sum(slot in memory.values for slot in tool.slots)
        facts[number, :4] = (*_overlap(turn, tool.label_rows), *_overlap(turn, tool.about_rows))
        facts[number, 4] = memory.active == tool.name
        facts[number, 5] = tool.name in memory.calls
        facts[number, 6] = filled / max(len(tool.slots), 1)
        facts[number, 7] = memory.active is None
        facts[number, 8] = len(tools) == 1
        facts[number, 9] = memory.after_results
    return ToolsAsked(vectors, facts)


def ask_slots(turn: TurnText, tool: ToolView, memory: Memory) -> SlotsAsked:
    """Compute the network's inputs for the slots of a tool."""
    slots = tuple(_listed(turn, slot) for slot in tool.slots)
    open_slots = missing(tool, memory)
    facts = np.zeros((len(slots), SLOT), np.float32)
    pairs = np.zeros((len(slots), len(turn.read), PAIR), np.float32)
    values, candidates = [], []
    for number, (slot, known) in enumerate(zip(slots, tool.slots, strict=True)):
        current = memory.values.get(known)
        met = pairs[number]
        _meet(met, turn, slot, current)
        facts[number] = (
            current is not None,
            current == ANY,
            slot.name in tool.required,
            bool(slot.values),
            slot.boolean,
            slot.number,
            open_slots[:1] == [known],
            open_slots == [known],
            memory.active == tool.name,
            current is not None and says(turn.system_folded, fold_value(current)),
            memory.after_results,
            tool.name in memory.calls,
        )
        found = memory.candidates(known)
        vectors_of = slot.value_vectors if slot.values else _NOTHING
        facts_of = _values(turn, slot, current, found)
        values.append(ValuesAsked(vectors_of, facts_of, _hits(turn, slot)))
        # A slot with listed values takes only these.
        found = [] if slot.values else found
        candidates.append((found, _candidates(turn, slot, tool, current, found)))
    vectors = np.zeros((len(slots), 2, WIDTH), np.float32)
    for number, slot in enumerate(slots):
        vectors[number] = slot.label_vector, slot.about_vector
    return SlotsAsked(slots, vectors, facts, pairs, values, candidates)


def _listed(turn: TurnText, slot: Slot) -> Slot:
    """Return the slot. If its schema requires a number without a list, add possible numbers."""
    if not slot.number or slot.values:
        return slot
    said = {word for word in turn.plain if _FIGURE.fullmatch(word)}
    found = said | {str(number) for number in range(1, _FEW)}
    ordered = sorted(found, key=lambda word: (float(word.replace(",", "")), word))
    return replace(slot, values=tuple(ordered))


_NOTHING: Final = np.zeros((0, WIDTH), np.float32)


def _meet(met: Array, turn: TurnText, slot: Slot, current: str | None) -> None:
    """Fill in the features of each token for a slot."""
    for place, rows in ((0, slot.label_rows), (1, slot.about_rows)):
        if len(rows):
            met[:, place] = (turn.vectors @ rows.T).max(axis=1)
    held = frozenset(fold_value(current).split()) if current is not None else frozenset()
    about = {*slot.label, *slot.about}
    for place, token in enumerate(turn.read):
        low = token.lower
        if low:
            met[place, 2] = low in slot.vocabulary
            met[place, 3] = low in held
            met[place, 4] = low in about
    if slot.values and not slot.boolean:
        rows = slot.value_vectors
        met[:, 5] = (turn.vectors @ rows.T).max(axis=1)


def _values(turn: TurnText, slot: Slot, current: str | None, found: list[EarlierValue]) -> Array:
    before = {one.text.casefold() for one in found if one.kind == "argument"}
    given = {one.text.casefold() for one in found if one.kind == "result"}
    table = np.zeros((len(slot.values), VALUE), np.float32)
    held = None if current is None else fold_value(current)
    for number, value in enumerate(slot.folded_values):
        yes, no = value in ("true", "yes"), value in ("false", "no", "none")
        table[number, :8] = (
            not (yes or no) and says(turn.user_folded, value),
            not (yes or no) and says(turn.system_folded, value),
            yes,
            no,
            value.replace(".", "").isdigit(),
            held == value,
            len(slot.values) == 2,
            1 / (1 + number),
        )
        table[number, 14] = slot.default is not None and slot.values[number] == slot.default
        table[number, 12] = slot.values[number].casefold() in before
        table[number, 13] = slot.values[number].casefold() in given
        if not (yes or no):
            table[number, 8:10] = _overlap(turn, slot.value_rows[number])
    # Mark the values with the best match, because the match may be high for all values.
    for place in (8, 9):
        if len(table) > 1:
            table[:, place + 2] = table[:, place] >= table[:, place].max() - 1e-6
    return table


def _hits(turn: TurnText, slot: Slot) -> Array:
    table = np.zeros((len(slot.values), len(turn.read)), np.float32)
    for number, wanted in enumerate(slot.value_tokens):
        if wanted and wanted[0] in turn.plain:
            for place in range(len(turn.plain) - len(wanted) + 1):
                end = place + len(wanted)
                hour = wanted[0].isdigit() and turn.plain[end : end + 1] in _HOURS
                if turn.plain[place:end] == wanted and not hour:
                    table[number, place:end] = 1
    return table


def _candidates(
    turn: TurnText, slot: Slot, tool: ToolView, current: str | None, found: list[EarlierValue]
) -> Array:
    table = np.zeros((len(found), CANDIDATE), np.float32)
    held = None if current is None else current.casefold()
    fit = frozenset(slot.folded_values)
    kinds = [one.kind for one in found]
    for number, one in enumerate(found):
        low = fold_value(one.text)
        source = one.source
        table[number] = (
            *(one.kind == kind for kind in _KINDS),
            float(slot.label_vector @ source.label_vector),
            _about(slot, source),
            source.name == slot.name,
            one.age == 0,
            one.age is not None and one.age > 0,
            0.0 if one.age is None else 1 / (1 + one.age),
            says(turn.user_folded, low),
            held == one.text.casefold(),
            kinds.count(one.kind) == 1,
            number == kinds.index(one.kind),
            one.tool == tool.name,
            any(map(str.isdigit, one.text)),
            ":" in one.text,
            low in fit,
            held is not None,
        )
    return table


def _about(slot: Slot, source: DescribedObject) -> float:
    other = source.about_vector if source.about else source.label_vector
    return float(slot.about_vector @ other)


def ask_call(turn: TurnText, tool: ToolView, memory: Memory, new: int) -> Array:
    """Return the features ``[CALL]`` for the decision to call a tool now.

    ``new`` is the number of slots whose value the turn has changed.
    """
    given = {
        slot.name: memory.values[slot] for slot in tool.slots if memory.values.get(slot, ANY) != ANY
    }
    last = memory.calls.get(tool.name)
    same = last is not None and {k: v.casefold() for k, v in last.items()} == {
        k: v.casefold() for k, v in given.items()
    }
    told = [says(turn.system_folded, fold_value(value)) for value in given.values()]
    asked = turn.system.rstrip().endswith("?") or "confirm" in turn.system_folded
    return np.array(
        (
            last is not None,
            same,
            new > 0,
            min(new, 4) / 4,
            memory.active == tool.name,
            memory.active is None,
            sum(told) / max(len(told), 1),
            len(told) > 1 and all(told),
            memory.after_results,
            asked,
            "?" in turn.user,
            len(tool.required) / 5,
            (len(given) - len(tool.required)) / 5,
            not turn.system,
        ),
        np.float32,
    )


def missing(tool: ToolView, memory: Memory) -> list[Slot]:
    """Return the required slots that have no value yet, in the order of the schema."""
    by_name = {slot.name: slot for slot in tool.slots}
    return [by_name[name] for name in tool.required if by_name[name] not in memory.values]
