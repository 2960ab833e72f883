"""The reader of the schema-guided dialogues, on a file in their form that was written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.testing import check_relation


def user(text: str, **states: dict[str, list[str]]) -> dict[str, Any]:
    frames = [
        {"service": service, "slots": [], "state": {"active_intent": "Go", "slot_values": values}}
        for service, values in states.items()
    ]
    return {"speaker": "USER", "utterance": text, "frames": frames}


def system(text: str) -> dict[str, Any]:
    frame = {"service": "Ferries_1", "slots": [], "actions": []}
    return {"speaker": "SYSTEM", "utterance": text, "frames": [frame]}


DIALOGUES = [
    {
        "dialogue_id": "1_00000",
        "services": ["Ferries_1", "Cabins_2"],
        "turns": [
            user("A ferry to Harwich on the 8th.", Ferries_1={"port": ["Harwich"], "day": ["8th"]}),
            system("On March 8th, with a car?"),
            user(
                "Yes, and slow.",
                Ferries_1={
                    "port": ["Harwich"],
                    "day": ["March 8th", "8th"],
                    "car": ["True"],
                    "speed": ["Slow"],
                },
            ),
            system("Done."),
            user("A cabin too, any will do.", Cabins_2={"size": ["dontcare"]}),
        ],
    }
]
SCHEMA = [
    {
        "service_name": "Ferries_1",
        "slots": [
            {"name": "port", "is_categorical": False, "possible_values": ["Dover"]},
            {"name": "day", "is_categorical": False, "possible_values": []},
            {"name": "car", "is_categorical": True, "possible_values": ["True", "False"]},
            {"name": "speed", "is_categorical": True, "possible_values": ["Slow", "Fast"]},
            {"name": "phone", "is_categorical": False, "possible_values": []},
        ],
        "intents": [
            {"required_slots": ["port"], "optional_slots": {"day": "", "car": "", "speed": ""}}
        ],
    },
    {
        "service_name": "Cabins_2",
        "slots": [{"name": "bed_size", "is_categorical": False, "possible_values": []}],
        "intents": [{"required_slots": ["bed_size"], "optional_slots": {}}],
    },
]


@pytest.fixture
def sgd(tmp_path: Path) -> Path:
    """Return a folder of two splits, each with a schema of its own."""
    for split, schema in (("dev", SCHEMA[1:]), ("test", SCHEMA)):
        folder = tmp_path / "sgd" / split
        folder.mkdir(parents=True)
        (folder / "dialogues_001.json").write_text(json.dumps(DIALOGUES))
        (folder / "schema.json").write_text(json.dumps(schema))
    return tmp_path / "sgd"


def test_states_are_kept_by_service_in_one_spelling(sgd: Path) -> None:
    found = load_dialogues(sgd, "test")
    assert (found.layout, found.normalisation, found.name) == ("sgd", "plain", "sgd")
    first, second, third = found.dialogues[0].turns
    assert (first.system, first.user) == ("", "A ferry to Harwich on the 8th.")
    assert first.state == {"ferries_1-port": "harwich", "ferries_1-day": "8th"}
    both = {**first.state, "ferries_1-car": "true", "ferries_1-speed": "slow"}
    assert second.state == both
    assert third.state == {**both, "cabins_2-size": "dontcare"}


def test_the_schema_of_the_split_says_which_slots_there_are(sgd: Path) -> None:
    found = load_dialogues(sgd, "test")
    assert found.ontology is not None
    assert found.ontology.values == {
        "cabins_2-bed_size": (),
        "cabins_2-size": (),
        "ferries_1-car": ("false", "true"),
        "ferries_1-day": ("8th",),
        "ferries_1-port": ("harwich",),
        "ferries_1-speed": ("fast", "slow"),
    }
    assert found.slot_phrases == {
        "cabins_2-bed_size": "bed size",
        "ferries_1-day": "day",
        "ferries_1-port": "port",
        "ferries_1-speed": "speed",
    }


def test_relations_use_what_it_says(sgd: Path) -> None:
    check_relation("value-swap", load_dialogues(sgd, "test")).assert_passed()
    check_relation("turn-back", load_dialogues(sgd, "test")).assert_passed()


def test_a_broken_frame_is_named(sgd: Path) -> None:
    wrong = json.loads(json.dumps(DIALOGUES))
    wrong[0]["turns"][2]["frames"][0]["state"]["slot_values"]["port"] = "Harwich"
    (sgd / "test" / "dialogues_001.json").write_text(json.dumps(wrong))
    with pytest.raises(DataError, match=r"dialogue 1_00000, utterance 2: 'frames'.*slot_values"):
        load_dialogues(sgd, "test")
