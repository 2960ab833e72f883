import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str, Any], Path]


@pytest.fixture(scope="session")
def shared_data():
    default = Path(__file__).resolve().parents[3] / "shared"
    folder = Path(os.environ.get("DSTFUZZ_SHARED", default)) / "data"
    if not (folder / "multiwoz21").is_dir():
        pytest.skip("needs the MultiWOZ files of ../shared (or $DSTFUZZ_SHARED)")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text, bytes or JSON to a file below ``tmp_path``."""

    def make(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8", newline="")
        return path

    return make


def _metadata(**domains: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        domain: {"semi": frame.get("semi", {}), "book": {"booked": [], **frame.get("book", {})}}
        for domain, frame in domains.items()
    }


@pytest.fixture
def original() -> dict[str, Any]:
    """Two dialogues in the original schema; the second one ends with the user."""
    return {
        "AAA01.json": {
            "goal": {},
            "log": [
                {"text": "I need a Guest House in the Center, please!", "metadata": {}},
                {
                    "text": "For how long ?",
                    "metadata": _metadata(
                        hotel={
                            "semi": {"type": "guest house", "area": "center", "name": "none"},
                            "book": {"stay": "", "day": ""},
                        },
                        police={"semi": {"name": "x"}},
                    ),
                },
                {"text": "two nights,  any day", "metadata": {}},
                {
                    "text": "Booked.",
                    "metadata": _metadata(
                        hotel={
                            "semi": {"type": "guest house", "area": "center", "parking": "free"},
                            "book": {"stay": "two", "day": "dont care"},
                        },
                        taxi={"semi": {"leaveAt": "5:45pm", "arriveBy": "not mentioned"}},
                    ),
                },
            ],
        },
        "BBB02.json": {
            "goal": {},
            "log": [
                {"text": "a taxi to abc", "metadata": {}},
                {"text": "when?", "metadata": _metadata(taxi={"semi": {"destination": "abc"}})},
                {"text": "never mind"},
            ],
        },
    }


@pytest.fixture
def sharded() -> list[dict[str, Any]]:
    """One dialogue in the schema of 2.2."""
    return [
        {
            "dialogue_id": "CCC03.json",
            "services": ["hotel", "taxi"],
            "turns": [
                {
                    "speaker": "USER",
                    "utterance": "a room for 2 days",
                    "frames": [
                        {
                            "service": "hotel",
                            "state": {
                                "active_intent": "find_hotel",
                                "slot_values": {"hotel-bookstay": ["2", "two"]},
                            },
                        },
                        {"service": "taxi", "slots": []},
                    ],
                },
                {"speaker": "SYSTEM", "utterance": "which area?", "frames": []},
                {
                    "speaker": "USER",
                    "utterance": "any",
                    "frames": [
                        {
                            "service": "hotel",
                            "state": {
                                "slot_values": {
                                    "hotel-bookstay": ["2"],
                                    "hotel-area": ["dontcare"],
                                }
                            },
                        },
                        {
                            "service": "taxi",
                            "state": {
                                "slot_values": {"taxi-leaveat": ["9:15"], "taxi-arriveby": []}
                            },
                        },
                    ],
                },
            ],
        }
    ]


@pytest.fixture
def dials() -> list[dict[str, Any]]:
    """One dialogue in TRADE's JSON."""
    return [
        {
            "dialogue_idx": "DDD04.json",
            "domains": ["hotel"],
            "dialogue": [
                {
                    "system_transcript": "",
                    "turn_idx": 0,
                    "transcript": "a hotel in the east",
                    "belief_state": [
                        {"slots": [["hotel-area", "east"]], "act": "inform"},
                        {"slots": [["hotel-type", "true"]], "act": "inform"},
                        {"slots": [["hotel-name", "x"]], "act": "request"},
                    ],
                }
            ],
        }
    ]


TSV_HEADER = (
    "# Dialogue ID\tTurn Index\tLast Turn\tSystem Response\tUser Utterance\t"
    "hotel-area\thotel-type\thotel-internet\t\n"
)


@pytest.fixture
def tsv() -> str:
    """Two dialogues in TRADE's TSV; the header ends with a tab, as the published one does."""
    return (
        TSV_HEADER
        + "EEE05.json\t0\tFalse\t\ta guesthouse .\tnone\tfalse\tnone\n"
        + "EEE05.json\t1\tTrue\twhere ?\tanywhere with wifi\tdo not care\tfalse\ttrue\n"
        + "FFF06.json\t0\tTrue\t\thi\tnone\tnone\tnone\n"
    )


@pytest.fixture
def pizza() -> str:
    """Unlabelled and labelled dialogues of a team's own bot, both forms of a line."""
    lines = [
        {"dialogue_id": "p1", "utterances": ["A LARGE pizza", "Which one?", "Hawaii"]},
        {
            "dialogue_id": "p2",
            "turns": [
                {"user": "Hi", "state": {}},
                {
                    "system": "Size?",
                    "user": "Big one",
                    "state": {"pizza-Size": "Big", "pizza-crust": "none", "pizza-top": "any"},
                },
            ],
        },
        {
            "dialogue_id": "p3",
            "utterances": ["any crust", "ok"],
            "states": [{"pizza-crust": "don't care"}],
        },
    ]
    return "\n".join(json.dumps(line) for line in lines) + "\n\n"
