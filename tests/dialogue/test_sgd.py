"""The reader of the schema-guided dialogues, on a file in their form that was written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.calls import ToolCall
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.paraphrases import sgd_paraphrases
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


CALL = {
    "method": "FindFerry",
    "parameters": {"port": "Harwich", "day": "2019-03-08", "car": "True"},
}
CALLING = [
    {
        "service_name": "Ferries_1",
        "description": "Ferries of the east coast",
        "slots": SCHEMA[0]["slots"],
        "intents": [
            {
                "name": "FindFerry",
                "description": "Look a ferry up",
                "required_slots": ["port", "day"],
                "optional_slots": {"car": "True", "speed": "dontcare"},
            }
        ],
    },
    {**SCHEMA[1], "description": "", "intents": []},
]


def renamed(suffix: str) -> Any:
    """Return the schema as a paraphrase of it: names with a suffix."""
    return json.loads(
        json.dumps(CALLING)
        .replace('"port"', f'"port{suffix}"')
        .replace("FindFerry", f"Find{suffix}")
        .replace("Ferries_1", f"Ferries_1{suffix}")
    )


@pytest.fixture
def calling(sgd: Path) -> Path:
    """Return the folder, with one call and its results."""
    dialogues = json.loads(json.dumps(DIALOGUES))
    frame = dialogues[0]["turns"][3]["frames"][0]
    frame |= {"service_call": CALL, "service_results": [{"port": "Harwich", "phone": "1"}]}
    (sgd / "test" / "dialogues_001.json").write_text(json.dumps(dialogues))
    (sgd / "test" / "schema.json").write_text(json.dumps(CALLING))
    for name in ("v1", "v2"):
        folder = sgd / "sgd_x" / "data" / name / "test"
        folder.mkdir(parents=True)
        (folder / "schema.json").write_text(json.dumps(renamed(name[1])))
    return sgd


def test_intents_are_tools_and_service_calls_are_labels(calling: Path) -> None:
    (dialogue,) = load_dialogues(calling, "test", outcome="tool-calls").dialogues
    (plain,) = load_dialogues(calling, "test").dialogues
    assert [turn.state for turn in dialogue.turns] == [turn.state for turn in plain.turns]
    assert plain.tools == ()
    assert plain.turns[1].recorded is None
    (tool,) = dialogue.tools
    assert tool.name == "Ferries_1_FindFerry"
    assert tool.description == "Look a ferry up (Ferries of the east coast)"
    assert tool.schema["required"] == ["port", "day"]
    assert tool.schema["properties"]["car"] == {
        "type": "string",
        "description": "",
        "enum": ["True", "False"],
        "default": "True",
    }
    first, second, third = dialogue.turns
    assert (first.calls, third.calls) == ({}, None)
    assert second.calls == {
        "Ferries_1_FindFerry[0]": "call 1",
        "Ferries_1_FindFerry[0].car": "True",
        "Ferries_1_FindFerry[0].day": "2019-03-08",
        "Ferries_1_FindFerry[0].port": "Harwich",
    }
    made, result, said = (json.loads(each) for each in third.recorded or ())
    assert made["tool_calls"][0]["id"] == result["tool_call_id"]
    assert json.loads(result["content"]) == [{"port": "Harwich", "phone": "1"}]
    assert said["content"] == third.system == "Done."


def test_tools_need_a_schema_with_the_services(calling: Path) -> None:
    (calling / "test" / "schema.json").write_text(json.dumps(CALLING[:1]))
    with pytest.raises(DataError, match=r"dialogue 1_00000: the service 'Cabins_2' is not in the"):
        load_dialogues(calling, "test", outcome="tool-calls")
    alone = calling.parent / "dialogues_001.json"
    alone.write_bytes((calling / "test" / "dialogues_001.json").read_bytes())
    with pytest.raises(DataError, match=r"the schema\.json .* is missing"):
        load_dialogues(alone, outcome="tool-calls")


def test_sgd_x_has_the_same_calls_in_other_words(calling: Path) -> None:
    first, second = sgd_paraphrases(calling, "test")
    assert (first.name, second.name) == ("v1", "v2")
    (dialogue,) = load_dialogues(calling, "test", outcome="tool-calls").dialogues
    (tool,) = first.applied(dialogue.tools)
    assert tool.name == "Ferries_11_Find1"
    assert list(tool.schema["properties"]) == ["car", "day", "port1", "speed"]
    call = ToolCall("Ferries_1_FindFerry", CALL["parameters"])
    other = first.renamed(call)
    assert other == ToolCall(
        "Ferries_11_Find1", {"port1": "Harwich", "day": "2019-03-08", "car": "True"}
    )
    assert first.original(other) == call
    own = ToolCall("own", {"port": "x"})
    assert first.renamed(own) == first.original(own) == own


def test_a_schema_that_is_no_paraphrase_is_refused(calling: Path) -> None:
    wrong = renamed("1")
    wrong[0]["intents"][0]["required_slots"].reverse()
    path = calling / "sgd_x" / "data" / "v1" / "test" / "schema.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(
        DataError,
        match=r"Ferries_11 is not a paraphrase of Ferries_1: its intent .* has other slots",
    ):
        sgd_paraphrases(calling, "test")
    path.write_text(json.dumps(wrong[:1]))
    with pytest.raises(
        DataError, match=r"is not a paraphrase of .*: it has 1 service instead of 2"
    ):
        sgd_paraphrases(calling, "test")
    path.unlink()
    with pytest.raises(DataError, match="does not contain SGD-X"):
        sgd_paraphrases(calling, "val")
