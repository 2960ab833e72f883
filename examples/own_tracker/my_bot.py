"""A tracker is a function from the dialogue so far to the belief state."""

import re

from pytest_dstfuzz.dialogue.types import Context


def track(context: Context) -> dict[str, str]:
    state = {}
    for said in context.user_utterances:
        if area := re.search(r"\b(north|south|east|west|centre)\b", said.lower()):
            state["restaurant-area"] = area[1]
    return state
