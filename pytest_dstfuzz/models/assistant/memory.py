"""What the assistant knows at a turn: values so far, calls made, results, who said what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.models.assistant.schema import Described, Slot, ToolView
from pytest_dstfuzz.models.assistant.words import folded, says

#: Stands for any value; such an argument is left out of a call.
ANY: Final = "dontcare"
#: Results, and rows of one result, that are looked at.
_RESULTS: Final = 4
_ROWS: Final = 10
#: Candidates of each kind: the same key of a result, another argument, another key.
_MOST: Final = {"result": 5, "argument": 8, "other": 6}


class EarlierValue(NamedTuple):
    """A value from earlier in the dialogue that an argument could take over."""

    text: str
    kind: str
    source: Described
    #: The tool that it came from.
    tool: str
    #: Exchanges since an assistant's text named it, None = never.
    age: int | None
    #: Its place among the rows of a result.
    row: int


@dataclass
class Result:
    """What one call gave back, as rows of texts."""

    tool: str
    rows: list[dict[str, str]]


@dataclass
class Memory:
    """The dialogue up to a turn. Values stand under the slot that they fill."""

    values: dict[Slot, str] = field(default_factory=dict)
    #: Name of the tool that the last turn was about.
    active: str | None = None
    #: Arguments of the last call of each tool.
    calls: dict[str, dict[str, str]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    #: Texts of the assistant, folded, one an exchange.
    said: list[str] = field(default_factory=list)
    #: The assistant's last text, and whether results came before it.
    system: str = ""
    after_results: bool = False

    def copy(self) -> Memory:
        """Return one that can go on by itself."""
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
        """Note that the user spoke and the assistant's turn begins."""
        self.system = ""
        self.after_results = False
        self.said.append("")

    def hear_text(self, text: str) -> None:
        """Note what the assistant said."""
        if text.strip():
            self.system = f"{self.system} {text}".strip()
            if self.said:
                self.said[-1] = folded(self.system)
            else:
                self.said.append(folded(text))

    def hear_call(self, tool: ToolView | None, name: str, arguments: Mapping[str, Any]) -> None:
        """Note a call that was made: its arguments stand from here on."""
        given = {key: as_text(value) for key, value in arguments.items() if value is not None}
        self.calls[name] = given
        self.active = name
        if tool is not None:
            for slot in tool.slots:
                if slot.name in given:
                    self.values[slot] = given[slot.name]

    def hear_result(self, name: str, content: Any) -> None:
        """Note what a call gave back."""
        self.after_results = True
        rows = result_rows(content)
        if rows:
            self.results = [*self.results[1 - _RESULTS :], Result(name, rows)]

    def candidates(self, slot: Slot) -> list[EarlierValue]:
        """Return what the slot could take over, the likeliest of each kind first."""
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
        """Return how many exchanges ago the assistant named a value, 0 = in its last text."""
        wanted = folded(value)
        for back, text in enumerate(reversed(self.said[-8:])):
            if says(text, wanted):
                return back
        return None


_KEYS: dict[str, Described] = {}


def _key(name: str) -> Described:
    if name not in _KEYS:
        if len(_KEYS) > 4096:
            _KEYS.clear()
        _KEYS[name] = Described(name, "")
    return _KEYS[name]


def as_text(value: Any) -> str:
    """Return a JSON value as a value of a slot.

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
    """Return the rows of a tool result: objects with texts, numbers or flags in them.

    >>> result_rows('{"hits": [{"name": "Vela", "rooms": 2}]}')
    [{'name': 'Vela', 'rooms': '2'}]
    """
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
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
