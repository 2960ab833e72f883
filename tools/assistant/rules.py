"""The assistant with rules in place of its network, to see how far matching of words leads."""

from __future__ import annotations

import re

from pytest_dstfuzz.models.assistant.assistant import Decision
from pytest_dstfuzz.models.assistant.features import (
    Memory,
    Slot,
    ToolView,
    fold_value,
    missing,
    says,
)

_YES = re.compile(
    r"\b(?:yes|yeah|yep|sure|ok|okay|correct|right|perfect|great|please do)\b", re.IGNORECASE
)
_DATE = re.compile(
    r"\b(?:(?:today|tomorrow|(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|(?:the )?\d{1,2}(?:st|nd|rd|th)(?: of \w+)?|(?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december) \d{1,2}(?:st|nd|rd|th)?)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"\b(?:\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\d{1,2}:\d\d|noon)", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b|\b(?:one|two|three|four|five|six)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’]*(?: (?:of |the |and )?[A-Z][\w'’]*)*")
_FORMS = (
    ({"date", "day"}, _DATE),
    ({"time"}, _TIME),
    ({"number", "amount", "price"}, _NUMBER),
)
_AT_ONCE = ("find", "search", "get", "check", "lookup", "look", "list", "show")


def take_turn_by_rules(memory: Memory, tools: tuple[ToolView, ...], user: str) -> Decision:
    """Decide like `take_turn`, by the words of the schemas, dates, times, numbers and names."""
    heard, spoken = set(fold_value(memory.system).split()), set(fold_value(user).split())
    order = sorted(tools, key=lambda tool: -_met(tool, spoken, heard, memory))
    tool = order[0]
    asked = [slot for slot in missing(tool, memory) if _asks(slot, heard)]
    new = 0
    for slot in tool.slots:
        value = _value(slot, user, memory, asked=slot in asked[:1])
        if value is not None and memory.values.get(slot) != value:
            memory.values[slot] = value
            new += 1
    lacking = tuple(missing(tool, memory))
    sure = bool({*tool.label} & {*_AT_ONCE}) or (
        "confirm" in heard and _YES.search(user) is not None
    )
    given = {slot.name: memory.values[slot] for slot in tool.slots if slot in memory.values}
    call = not lacking and sure and memory.calls.get(tool.name) != given
    memory.active = tool.name
    memory.begin_answer()
    return Decision(tool, call, lacking)


def _met(tool: ToolView, spoken: set[str], heard: set[str], memory: Memory) -> float:
    words = {word for word in (*tool.label, *tool.about) if len(word) > 3}
    near = 2 * len(words & spoken) + len(words & heard)
    return near / max(len(words), 1) + (0.5 if memory.active == tool.name else 0)


def _asks(slot: Slot, heard: set[str]) -> bool:
    return bool({word for word in (*slot.label, *slot.about) if len(word) > 3} & heard)


def _value(slot: Slot, user: str, memory: Memory, *, asked: bool) -> str | None:
    if slot.boolean:
        return ("True" if _YES.search(user) else "False") if asked else None
    if slot.values:
        low = fold_value(user)
        pairs = zip(slot.values, slot.folded_values, strict=True)
        return next((value for value, text in pairs if says(low, text)), None)
    words = {*slot.label, *slot.about}
    for kinds, form in _FORMS:
        if words & kinds:
            found = form.search(user)
            return found[0] if found else None
    named = _NAME.search(user) if asked else None
    return named[0] if named else _offered(slot, user, memory)


def _offered(slot: Slot, user: str, memory: Memory) -> str | None:
    """Return the value that the assistant has just named, if the user says yes."""
    if _YES.search(user):
        for one in memory.candidates(slot):
            if one.kind == "result" and one.age == 0:
                return one.text
    return None
