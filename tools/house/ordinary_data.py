"""Two trackers, and dialogues as in SGD, for the ordinary runs that are not fixed runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz import Context
from tools.house.fixed_bots import slots

#: Of each dialogue what was said, the user first, and the slots that the user gives.
_FERRIES: Final[Sequence[Sequence[tuple[str, Mapping[str, str]]]]] = (
    (
        ("I would like to take the ferry to Harwich", {"port": "Harwich"}),
        ("On which day?", {}),
        ("It has to leave on Friday", {"day": "Friday"}),
    ),
    (
        ("Is there a slow ferry to Dover on Sunday?", {"port": "Dover", "day": "Sunday"}),
        ("There is. Anything else?", {}),
        ("No, thanks, that was all", {}),
    ),
    (("Please book us a ferry on Monday", {"day": "Monday"}),),
)
_SLOTS: Final = {"port": ["Dover", "Harwich"], "day": []}


def track(context: Context) -> dict[str, str]:
    """Return the slots of the shipped dialogues that some rules find."""
    return slots([{"user": said} for said in context.user_utterances])


def track_ferry(context: Context) -> dict[str, str]:
    """Return the port and the day of a ferry."""
    state = {}
    for said in context.user_utterances:
        for slot, rule in {"port": r"ferry to (\w+)", "day": r"on (\w+day)"}.items():
            if found := re.search(rule, said.lower()):
                state[f"ferries_1-{slot}"] = found[1]
    return state


def write_ferries(folder: Path) -> None:
    """Write dialogues and their schema in the form of SGD."""
    split = folder / "sgd" / "test"
    split.mkdir(parents=True)
    dialogues = [_dialogue(number, said) for number, said in enumerate(_FERRIES)]
    (split / "dialogues_001.json").write_text(json.dumps(dialogues), encoding="utf-8")
    rows = [
        {"name": name, "is_categorical": bool(values), "possible_values": values}
        for name, values in _SLOTS.items()
    ]
    intent = {"name": "Book", "required_slots": ["port"], "optional_slots": {"day": ""}}
    schema = [{"service_name": "Ferries_1", "slots": rows, "intents": [intent]}]
    (split / "schema.json").write_text(json.dumps(schema), encoding="utf-8")


def _dialogue(number: int, said: Sequence[tuple[str, Mapping[str, str]]]) -> dict[str, Any]:
    values: dict[str, list[str]] = {}
    turns = []
    for place, (text, given) in enumerate(said):
        frame: dict[str, Any] = {"service": "Ferries_1", "slots": []}
        if place % 2:
            frame["actions"] = []
        else:
            values |= {name: [value] for name, value in given.items()}
            frame["state"] = {"active_intent": "Book", "slot_values": dict(values)}
        speaker = "SYSTEM" if place % 2 else "USER"
        turns.append({"speaker": speaker, "utterance": text, "frames": [frame]})
    return {"dialogue_id": f"1_{number:05}", "services": ["Ferries_1"], "turns": turns}
