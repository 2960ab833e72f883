"""The assistant's training, from dialogues in the form of SGD to a file that can be asked."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.models.assistant.assistant import Assistant
from pytest_dstfuzz.models.assistant.network import Weights
from tools.assistant.sgd import read_split

pytest.importorskip("torch")

from tools.assistant import train as training
from tools.assistant.evaluate import main as evaluate

SCHEMA = [
    {
        "service_name": "Boats_1",
        "description": "Rent a boat",
        "slots": [
            {"name": "lake", "description": "Name of the lake", "is_categorical": False},
            {
                "name": "kind",
                "description": "Kind of boat",
                "is_categorical": True,
                "possible_values": ["rowing", "sailing"],
            },
        ],
        "intents": [
            {
                "name": "RentBoat",
                "description": "Rent a boat on a lake",
                "required_slots": ["lake"],
                "optional_slots": {"kind": "rowing"},
            }
        ],
    }
]


def act(kind: str, slot: str = "", value: str = "") -> dict[str, Any]:
    values = [value] if value else []
    return {"act": kind, "slot": slot, "values": values, "canonical_values": values}


def frame(actions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"service": "Boats_1", "actions": actions, "slots": [], **more}


def dialogue(name: str, lake: str, kind: str) -> dict[str, Any]:
    asked = f"I want to row on lake {lake}"
    start = asked.index(lake)
    span = {"slot": "lake", "start": start, "exclusive_end": start + len(lake)}
    state = {"active_intent": "RentBoat", "requested_slots": []}
    first = frame([act("INFORM", "lake", lake)], state={**state, "slot_values": {"lake": [lake]}})
    first["slots"] = [span]
    full = {**state, "slot_values": {"lake": [lake], "kind": [kind]}}
    call = {"method": "RentBoat", "parameters": {"lake": lake, "kind": kind}}
    texts_and_frames = (
        (asked, first),
        (f"A {kind} boat on {lake}, is that it?", frame([act("CONFIRM", "kind", kind)])),
        ("It is, please rent it", frame([act("AFFIRM")], state=full)),
        ("The boat is yours", frame([], service_call=call, service_results=[{"lake": lake}])),
    )
    turns = [
        {"speaker": speaker, "utterance": text, "frames": [made]}
        for speaker, (text, made) in zip(("USER", "SYSTEM") * 2, texts_and_frames, strict=True)
    ]
    return {"dialogue_id": name, "services": ["Boats_1"], "turns": turns}


@pytest.fixture(scope="module")
def sgd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sgd")
    lakes = (("Mirabel", "rowing"), ("Thornmere", "sailing"))
    made = [dialogue(f"1_{n}", lake, kind) for n, (lake, kind) in enumerate(lakes)]
    for split in ("train", "dev"):
        with zipfile.ZipFile(folder / f"{split}.zip", "w") as file:
            file.writestr(f"{split}/schema.json", json.dumps(SCHEMA))
            file.writestr(f"{split}/dialogues_001.json", json.dumps(made))
    return folder


def test_dialogues_become_messages_with_what_is_right(sgd: Path) -> None:
    first = next(read_split(sgd / "train.zip", "train"))
    roles = [message["role"] for message in first.messages]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert [gold.place for gold in first.turns] == [0, 2]
    called = ("Boats_1_RentBoat", {"lake": "Mirabel", "kind": "rowing"})
    assert [gold.call for gold in first.turns] == [None, called]
    parameters = first.tools[0]["function"]["parameters"]
    assert parameters["required"] == ["lake"]
    assert parameters["properties"]["kind"]["default"] == "rowing"


def test_a_run_that_was_stopped_gives_the_same_bytes(
    sgd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: str) -> bytes:
        output = tmp_path / f"{folder}.npz"
        given = ["--sgd", str(sgd), "--work", str(tmp_path / folder), "--output", str(output)]
        training.main([*given, "--epochs", "2", "--batch-size", "2"])
        return output.read_bytes()

    content = run("whole")
    with monkeypatch.context() as patched:
        # The first epoch is kept, and then somebody pulls the plug.
        patched.setattr(training, "measure", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run("parts")
    assert run("parts") == content
    assistant = Assistant(Weights.read(content))
    assert assistant([{"role": "user", "content": "I want to row"}], [])["role"] == "assistant"
    evaluate(["--sgd", str(sgd), "--weights", str(tmp_path / "whole.npz")])
    assert "2 dialogues, 4 user turns" in capsys.readouterr().out
