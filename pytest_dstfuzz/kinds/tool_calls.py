"""Tool calls: the actions of an assistant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    History,
    Outcome,
    argument_texts,
    arguments_in,
    text_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.dialogue.readers.tools import enum_members
from pytest_dstfuzz.kinds.kind import AnswerKind, SlotRules, Words


class CallArgument(NamedTuple):
    """An argument of a tool call, with a value that users can say."""

    path: AnswerPath
    #: The value in lower case, in the spelling of users.
    value: str
    #: The value in the form of the outcome.
    text: str


def list_spoken_arguments(calls: Outcome) -> dict[str, CallArgument]:
    """Return the arguments of tool calls with values that users can say, by slot.

    If a slot name repeats, because a tool is called again or a list has several members, a number
    is added.
    """
    found: dict[str, CallArgument] = {}
    for path, text in arguments_in(calls):
        value = spell_value(value_of(text))
        if value is None:
            continue
        slot = name = _slot_of(path)
        number = 1
        while slot in found:
            number += 1
            slot = f"{name}#{number}"
        found[slot] = CallArgument(path, value, text)
    return found


def spell_value(value: object) -> str | None:
    """Return a JSON value in the spelling of users, or ``None`` if nobody would say it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        return None
    return str(value).strip().lower() or None


def _slot_of(place: AnswerPath) -> str:
    """Return the slot name of an argument. It begins with the tool instead of a domain."""
    argument = place.part[1].removeprefix(f"{place.tool}.")
    return f"{place.tool.replace('-', '_')}-{argument}"


class ToolCalls(AnswerKind):
    """The tools that an assistant calls in a message, with their arguments."""

    name = "tool-calls"
    has_tools = True
    needs_earlier = False
    words = Words(
        who="the assistant",
        what="tool calls",
        short="calls",
        noun="calls",
        several="tool calls",
        answers="answers",
        labels="recorded calls",
        right="right calls",
        accuracy=("share of right messages", "clean turns", "recorded message"),
        identifier="tool_calls",
        nothing="calls nothing",
        slot="argument",
        domain="tool",
        does="does",
        empty="no calls",
        are_empty=" call nothing",
        plural=True,
    )

    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the recorded calls."""
        return dialogue.turns[index].calls

    def adds_up(self, history: History) -> bool:
        """Return whether an answer includes the calls of earlier turns, as in a rollout."""
        return history == "own"

    def label_values(self, dialogue: Dialogue, index: int) -> Iterator[tuple[str, str]]:
        """Yield the arguments of the recorded calls."""
        for path, text in argument_texts(self.label(dialogue, index) or {}):
            yield path.part[1], text

    def slot_values(self, answer: Outcome) -> Mapping[str, str]:
        """Return the arguments of the calls with the values as users say them."""
        return {slot: one.value for slot, one in list_spoken_arguments(answer).items()}

    def slot_rules(self, data: DialogueSet) -> Mapping[str, SlotRules]:
        """Return the rules of the tool schemas for arguments."""
        found: dict[str, SlotRules] = {}
        for tool in data.tools:
            needed, inner = tool.schema.get("required"), tool.schema.get("properties") or {}
            inner = {name: one for name, one in inner.items() if isinstance(one, dict)}
            flags = [name for name, one in inner.items() if one.get("type") == "boolean"]
            for argument, value in (*enum_members(tool), *product(flags, (True, False))):
                path = AnswerPath.of(f"{tool.name}[0].{argument}")
                rules = found.get(_slot_of(path), SlotRules(path, {}))
                if (spoken := spell_value(value)) is not None:
                    rules.values.setdefault(spoken, text_of(value))
                default = spell_value(inner.get(argument, {}).get("default"))
                found[_slot_of(path)] = rules._replace(
                    required=isinstance(needed, list) and argument in needed,
                    default=default or rules.default,
                )
        return found

    def is_closed(self, data: DialogueSet, path: str) -> bool:
        """Return whether the schema of the tool lists the values of an argument."""
        rules = self.slot_rules(data).get(_slot_of(AnswerPath.of(path)))
        return rules is not None and bool(rules.values)

    def values(self, data: DialogueSet, turn: Turn, clean: Outcome | None) -> Iterator[str]:
        """Yield the arguments of the recorded calls and of the clean answer."""
        del data
        for made in (turn.calls, clean):
            yield from (text for _, text in argument_texts(made or {}))


TOOL_CALLS: Final = ToolCalls()
