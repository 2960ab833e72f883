"""The figures on SGD's calls, on two dialogues in its form that were written here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.calls import gold

SLOTS = [
    {"name": "port", "is_categorical": False, "possible_values": []},
    {"name": "day", "is_categorical": False, "possible_values": []},
    {"name": "speed", "is_categorical": False, "possible_values": []},
]
SCHEMA = [
    {
        "service_name": "Ferries_1",
        "slots": SLOTS,
        "intents": [
            {
                "name": "FindFerry",
                "required_slots": ["port"],
                "optional_slots": {"day": "dontcare", "speed": "dontcare"},
            }
        ],
    }
]


def frame(*actions: tuple[str, str, str], **more: Any) -> list[dict[str, Any]]:
    told = [
        {"slot": slot, "values": [value], "canonical_values": [canonical]}
        for slot, value, canonical in actions
    ]
    return [{"service": "Ferries_1", "actions": told, **more}]


TURNS = [
    {
        "speaker": "USER",
        "utterance": "A ferry to harwich, any speed.",
        "frames": frame(
            ("port", "harwich", "Harwich"),
            ("speed", "any", "dontcare"),
            state={"slot_values": {"port": ["harwich"], "speed": ["any"]}},
        ),
    },
    {
        "speaker": "SYSTEM",
        "utterance": "On March 8th?",
        "frames": frame(("day", "March 8th", "2019-03-08")),
    },
    {
        "speaker": "USER",
        "utterance": "Yes.",
        "frames": frame(
            state={"slot_values": {"port": ["harwich"], "day": ["March 8th"], "speed": ["any"]}}
        ),
    },
    {
        "speaker": "SYSTEM",
        "utterance": "Done.",
        "frames": frame(
            service_call={
                "method": "FindFerry",
                "parameters": {"port": "Harwich", "day": "2019-03-08"},
            },
            service_results=[],
        ),
    },
]


def test_each_step_finds_more_of_the_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test"
    variant = tmp_path / "sgd_x" / "data" / "v1" / "test"
    for folder in (test, variant):
        folder.mkdir(parents=True)
    entry = {"dialogue_id": "1_0", "services": ["Ferries_1"], "turns": TURNS}
    (test / "dialogues_001.json").write_text(json.dumps([entry]))
    (test / "schema.json").write_text(json.dumps(SCHEMA))
    (variant / "schema.json").write_text(json.dumps(SCHEMA).replace("Ferries_1", "Ships_1"))
    monkeypatch.setattr(sys, "argv", ["gold", "--data", str(tmp_path)])
    gold.main()
    shown = capsys.readouterr().out
    assert "1 dialogues, 2 turns of the user, 1 calls at 1 turns, 1 tools" in shown
    assert "| the state alone, as it was said | 0 | 3 |" in shown
    assert "| and the user's actions of that service and slot | 1 | 2 | 50.00% |" in shown
    assert "| and the system's actions | 2 | 2 | 100.00% | 1 | 100.00% |" in shown
    assert "written as messages and read again: the same" in shown
    assert "v1: 1 of 1 come back, 1 are renamed" in shown
