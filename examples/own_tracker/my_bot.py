"""A tracker is a function from the dialogue so far to the belief state."""

import re

from pytest_dstfuzz import Context


def track(context: Context) -> dict[str, str]:
    state = {}
    for said in context.user_utterances:
        if time := re.search(r"\bleav(?:e|ing) (?:at|after|by) (\d\d?:\d\d)", said.lower()):
            state["train-leaveat"] = time[1]
    return state
