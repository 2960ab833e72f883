"""From the text of a chat model's answer to a belief state; nothing is guessed."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.json_data import each_key_once

#: What a model thought aloud before its answer, where the service leaves it in.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
#: Words in braces, which are no JSON and not meant to be.
_WORDS = re.compile(r"""\{[^{}"':]*\}""")


class NoStateError(TrackerError):
    """An answer that holds no belief state, or more than one."""


def parse_answer(text: str, normalisation: str) -> BeliefState:
    """Return the belief state that an answer holds.

    It is the one JSON object in the text: alone, in a fenced block, or among other words. An
    answer with two different objects is refused, as is a slot with two values, and a value
    that is an object or a list of them. ``null`` is a slot that was not mentioned.
    """
    found = _the_object(_THOUGHTS.sub("", text, count=1))
    for slot, value in found.items():
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, dict | list) for part in parts):
            kind = "an object" if isinstance(value, dict) else "a list of lists or objects"
            raise NoStateError(f"the value of {slot!r} is {kind}, not a text")
    return normalise_state(found, normalisation)


def _the_object(text: str) -> dict[str, Any]:
    """Return the one JSON object in a text."""
    found: list[dict[str, Any]] = []
    start = _OPENING.search(text)
    while start is not None:
        place = start.start()
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            # Half an object must not be skipped: an object inside of it would be found.
            if text[place] == "{" and not _WORDS.match(text, place):
                raise NoStateError("it holds an object that is no JSON, or half of one") from None
            end = place + 1
        else:
            if isinstance(value, dict) and value not in found:
                found.append(value)
            elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
                raise NoStateError("it holds a list of objects")
        start = _OPENING.search(text, end)
    if len(found) > 1:
        raise NoStateError(f"it holds {len(found)} different JSON objects")
    if not found:
        raise NoStateError("it holds no JSON object")
    return found[0]


def _no_number(name: str) -> float:
    raise NoStateError(f"it holds {name}, which is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=each_key_once(lambda key: NoStateError(f"it has two values for {key!r}")),
    parse_constant=_no_number,
)
