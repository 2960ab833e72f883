"""Locked values of tool calls without an ontology: recorded values and members of enums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.draft import LOCKED
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import take_apart

TOOLS = [
    {
        "name": "orderFood",
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {
                "dish": {"type": "string"},
                "crustKind": {"type": "string", "enum": ["thin", "stuffed"]},
                "extras": {"type": "array", "items": {"type": "string", "enum": ["capers"]}},
                "guests": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"drink": {"type": "string"}}},
                },
                "count": {"type": "integer"},
                "vegan": {"type": "boolean"},
                "note": {"type": "string"},
            },
        },
    }
]


def call(name: str, arguments: Any, number: int) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "ok"},
    ]


ARGUMENTS = {
    "dish": "marinara  pie",
    "guests": [{"drink": "limonata"}, {"drink": "2"}],
    "count": 3,
    "vegan": True,
    "note": "please leave it at the green door behind the shop",
}
MESSAGES = [
    {"role": "user", "content": "a pie"},
    *call("orderFood", ARGUMENTS, 1),
    *call("pay", {"sum": 12.5}, 2),
]


@pytest.fixture
def data(tmp_path: Path) -> DialogueSet:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"messages": MESSAGES, "tools": TOOLS}))
    return load_dialogues(path, outcome="tool-calls")


def test_arguments_are_slots_with_recorded_values_and_members_of_enums(data: DialogueSet) -> None:
    assert data.ontology is not None
    assert data.ontology.values == {
        "orderFood.count": ("3",),
        "orderFood.crustKind": ("stuffed", "thin"),
        "orderFood.dish": ("marinara pie",),
        "orderFood.extras": ("capers",),
        "orderFood.guests.drink": ("2", "limonata"),
        "orderFood.note": (),
        "orderFood.vegan": (),
        "pay.sum": ("12.5",),
    }
    assert not data.ontology.complete
    assert data.slot_phrases["orderFood.crustKind"] == "crust kind"
    assert {"crust", "dish", "drink", "food"} <= set(data.cue_words)
    assert not {"order", "is", "of"} & set(data.cue_words)


def test_the_locks_hold_them_in_every_utterance(data: DialogueSet) -> None:
    locks = Locks(load_lexicon(), data.ontology, data.cue_words)
    text = "could somebody get me a stuffed marinara with capers and a limonata"
    parts = take_apart(text)
    mask = locks.mask(text, parts)
    locked = {
        word.text for word, state in zip(parts.words, mask.roles, strict=True) if state == LOCKED
    }
    assert {"stuffed", "marinara", "capers", "limonata"} <= locked


def test_states_keep_their_slots_and_other_outcomes_know_nothing_of_calls(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    line = {"messages": MESSAGES, "tools": TOOLS, "states": [{"food-dish": "pie"}]}
    path.write_text(json.dumps(line))
    found = load_dialogues(path, outcome="tool-calls").ontology
    plain = load_dialogues(path).ontology
    assert found is not None
    assert plain is not None
    assert found.values["food-dish"] == ("pie",)
    assert plain.values == {"food-dish": ("pie",)}
