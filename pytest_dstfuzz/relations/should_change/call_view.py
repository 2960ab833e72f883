"""Data with tool calls as the relations on slots see it: an argument is a slot.

Its tool is the domain, and its value is written as people write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, Tool, text_of, value_of
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.readers.tools import enum_members
from pytest_dstfuzz.relations.should_change.sites import spoken

#: A text of more words is something to pass on, such as the body of a mail, and no value.
_MOST_WORDS: Final = 8
#: Values that go without saying.
_ASSUMED: Final = frozenset({"1", "one", "today", "now"})


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of a call that people can say."""

    path: AnswerPath
    #: As people write it, in lower case.
    value: str
    #: As it stands in the outcome.
    text: str


@dataclass(frozen=True)
class CallView:
    """Data as the relations on slots see it, and the way back."""

    data: DialogueSet
    #: Slot and value -> the text that the value is in a call.
    texts: Mapping[tuple[str, str], str]
    #: Slot -> its tool and argument.
    places: Mapping[str, AnswerPath]
    #: Slots that the tools need, and those that may be left out; others are in no schema.
    required: frozenset[str]
    optional: frozenset[str]
    #: Slots whose values are texts to pass on.
    passages: frozenset[str]
    #: Slot -> the value that its schema takes where none is given.
    defaults: Mapping[str, str]
    #: Slot and value -> the turns whose recorded calls have it, by dialogue and number.
    recorded: Mapping[tuple[str, str], list[tuple[Dialogue, int]]]
    #: See `Scene.kept`.
    kept: dict[object, object] = field(default_factory=dict)

    @classmethod
    def of(cls, data: DialogueSet) -> CallView:
        """Read the recorded calls and the schemas of the tools."""
        texts: dict[tuple[str, str], str] = {}
        places: dict[str, AnswerPath] = {}
        values: dict[str, dict[str, None]] = {}
        required: dict[str, bool] = {}
        defaults: dict[str, str] = {}
        for tool in data.tools:
            for place, listed in _of_schema(tool):
                slot = slot_of(place)
                places.setdefault(slot, place)
                known = values.setdefault(slot, {})
                for value in listed:
                    if (told := spoken_value(value)) is not None:
                        known[told] = None
                        texts.setdefault((slot, told), text_of(value))
                required[slot] = place.argument in _required(tool)
                if (default := _default(tool, place.argument)) is not None:
                    defaults[slot] = default
        recorded: dict[tuple[str, str], list[tuple[Dialogue, int]]] = {}
        dialogues = []
        for one in data.dialogues:
            turns = []
            for number, turn in enumerate(one.turns):
                for slot, argument in spoken_arguments(turn.calls or Outcome()).items():
                    places.setdefault(slot, argument.path)
                    texts.setdefault((slot, argument.value), argument.text)
                    recorded.setdefault((slot, argument.value), []).append((one, number))
                turns.append(replace(turn, state=as_state(turn.calls), recorded=None))
            dialogues.append(Dialogue(one.id, tuple(turns)))
        ontology = Ontology({s: tuple(sorted(v)) for s, v in sorted(values.items())}, False)
        return cls(
            replace(data, dialogues=tuple(dialogues), ontology=ontology, normalisation="plain"),
            texts,
            places,
            frozenset(slot for slot, needed in required.items() if needed),
            frozenset(slot for slot, needed in required.items() if not needed),
            frozenset(slot for slot, value in texts if _is_passage(value)),
            defaults,
            recorded,
        )

    def worded(self, slot: str, value: str) -> str:
        """Return a value in the spelling of the data: `Elm Hill`, not `elm hill`."""
        text = self.texts.get((slot, value))
        return value if text is None else " ".join(str(value_of(text)).split())

    def may_be_default(self, slot: str, value: str) -> bool:
        """Say whether an assistant may choose a value that nobody says.

        Nobody has to say that they are one, or mean today. Of others the schema says it, or half of
        the recorded calls with the value follow no utterance that says it.
        """
        if value in _ASSUMED or self.defaults.get(slot) == value:
            return True
        if ("default", slot, value) not in self.kept:
            places = self.recorded.get((slot, value), [])
            unsaid = sum(not _is_said(value, one, turn) for one, turn in places)
            self.kept["default", slot, value] = bool(unsaid) and 2 * unsaid >= len(places)
        return bool(self.kept["default", slot, value])


def spoken_arguments(calls: Outcome) -> dict[str, CallArgument]:
    """Return the arguments of tool calls that people can say, by slot.

    Of a further call of a tool, and of a list, the slot has a number.
    """
    found: dict[str, CallArgument] = {}
    for path, text in calls.items():
        place = AnswerPath.of(path)
        value = spoken_value(value_of(text)) if place.in_call and not place.is_call else None
        if value is None:
            continue
        slot = name = slot_of(place)
        number = 1
        while slot in found:
            number += 1
            slot = f"{name}#{number}"
        found[slot] = CallArgument(place, value, text)
    return found


def as_state(calls: Outcome | None) -> BeliefState | None:
    """Return tool calls as a belief state."""
    if calls is None:
        return None
    return BeliefState({slot: one.value for slot, one in spoken_arguments(calls).items()})


def slot_of(place: AnswerPath) -> str:
    """Return what an argument is called as a slot: the tool stands for the domain."""
    argument = place.part[1].removeprefix(f"{place.tool}.")
    return f"{place.tool.replace('-', '_')}-{argument}"


def spoken_value(value: object) -> str | None:
    """Return a JSON value as people write it; ``None`` = nobody says such a one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        return None
    return str(value).strip().lower() or None


def _is_passage(value: str) -> bool:
    return "\n" in value or len(value.split()) > _MOST_WORDS


def _is_said(value: str, dialogue: Dialogue, last: int) -> bool:
    """Say whether anybody says a value up to a turn."""
    texts = (text for turn in dialogue.turns[: last + 1] for text in (turn.user, turn.system))
    return any(spoken(text).mentions(value) for text in texts)


def _of_schema(tool: Tool) -> Iterator[tuple[AnswerPath, list[object]]]:
    """Yield the arguments of a tool with the values that its schema lists."""
    found: dict[str, list[object]] = {}
    for argument, value in enum_members(tool):
        known = found.setdefault(argument, [])
        if value is not None:
            known.append(value)
    for name, inner in _properties(tool).items():
        if isinstance(inner, dict) and inner.get("type") == "boolean":
            found[name] = [True, False]
    for argument, values in found.items():
        yield AnswerPath.of(f"{tool.name}[0].{argument}"), values


def _default(tool: Tool, argument: str) -> str | None:
    inner = _properties(tool).get(argument)
    return spoken_value(inner.get("default")) if isinstance(inner, dict) else None


def _properties(tool: Tool) -> Mapping[str, object]:
    found = tool.schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(tool: Tool) -> list[str]:
    needed = tool.schema.get("required")
    return needed if isinstance(needed, list) else []
