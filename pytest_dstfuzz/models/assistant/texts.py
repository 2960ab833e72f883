"""What the assistant says where it calls nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.models.assistant.memory import ANY, Memory
from pytest_dstfuzz.models.assistant.schema import Slot, ToolView

GREETING: Final = "Hello! Tell me what you need."
MORE: Final = "Is there more that I can do for you?"
UNABLE: Final = "I have no tool for that. Is there more that I can do for you?"
#: Parts of a result, and values of a list, that are read out.
_TOLD: Final = 5


def question(slot: Slot) -> str:
    """Return the question for an argument that is missing."""
    label = " ".join(slot.label) or slot.name
    if slot.boolean:
        about = slot.description[:1].lower() + slot.description[1:].rstrip(" .")
        return f"Please say yes or no: {about or label}?"
    if 0 < len(slot.values) <= _TOLD:
        listed = ", ".join(slot.values[:-1])
        return f"What {label} would you like: {listed} or {slot.values[-1]}?"
    return f"What {label} would you like?"


def confirmation(tool: ToolView, memory: Memory) -> str:
    """Return the question whether a call is to be made, with its arguments."""
    given = [
        f"{' '.join(slot.label) or slot.name}: {memory.values[slot]}"
        for slot in tool.slots
        if memory.values.get(slot, ANY) != ANY
    ]
    details = ", ".join(given) or " ".join(tool.label)
    return f"Please confirm: {details}. Is that right?"


def results(rows: list[dict[str, str]]) -> str:
    """Return what a tool gave back, as far as one can say it."""
    if not rows:
        return f"That is done. {MORE}"
    count = f"I found {len(rows)}. The first is " if len(rows) > 1 else "Here it is: "
    return f"{count}{_row(rows[0])}. Is that what you had in mind?"


def _row(row: Mapping[str, str]) -> str:
    told = [f"{key.replace('_', ' ')} {value}" for key, value in row.items() if value]
    return ", ".join(told[:_TOLD])
