"""A trained model that calls tools, behind the server of transformers, tested end to end.

Not among the tests that run by default: ``pytest tests/trackers/chat/serve_tool_calls.py``.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from served_model import NEEDS_SERVER, serving_model

pytest.importorskip("transformers", reason="the extra models is not installed")
pytestmark = NEEDS_SERVER


def said(*calls: tuple[str, dict[str, Any]]) -> str:
    """Return what the model writes to call tools."""
    made = (json.dumps({"name": name, "arguments": given}) for name, given in calls)
    return "".join(f"<tool_call>{one}</tool_call>" for one in made)


RENT = ("rent_bike", {"days": 1})
BOOK = ("book_table", {"people": 2})
#: Words that tell what is asked for -> the calls; the last one hangs on one word alone.
CALLS = {
    ("bike", "rent"): said(RENT),
    ("table", "book"): said(BOOK),
    ("tour", "both"): said(RENT, BOOK),
    ("parcel",): said(("track_parcel", {})),
}
TEXT = "Sorry, I do not know that."
#: How the server finds the calls in what the model writes.
TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<answer>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"\s*<end>", "content": "text"},
    },
}
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "integer"}}}}
    for name, key in (("rent_bike", "days"), ("book_table", "people"), ("track_parcel", "number"))
]
TURNS = {
    "Hi can I book a table please": {"book_table[0]": "call 1", "book_table[0].people": "2"},
    "Can I rent a bike": {"rent_bike[0]": "call 1", "rent_bike[0].days": "1"},
    "Can I book the tour with both": {
        "book_table[0]": "call 2",
        "book_table[0].people": "2",
        "rent_bike[0]": "call 1",
        "rent_bike[0].days": "1",
    },
    "When is my parcel": {"track_parcel[0]": "call 1"},
    "What is the": {},
}


def talker() -> ModuleType:
    """Return a copy of the module that trains a model, which is to learn calls."""
    spec = importlib.util.find_spec("tiny_talker")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__.update(REPLIES=CALLS, OTHERWISE=TEXT)
    return module


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Train the model and serve it; its address and folder."""
    folder = tmp_path_factory.mktemp("caller")
    talker().save_tiny_talker(folder)
    config = folder / "tokenizer_config.json"
    told = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**told, "response_template": TEMPLATE}), encoding="utf-8")
    with serving_model(folder) as address:
        yield address, folder


@pytest.mark.parametrize("stream", ["no", "yes"])
def test_a_served_model_is_tested_for_its_calls(
    pytester: pytest.Pytester, server: tuple[str, Path], stream: str
) -> None:
    lines = [{"messages": [{"role": "user", "content": user}]} for user in TURNS]
    (pytester.path / "talks.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (pytester.path / "tools.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    address, folder = server
    run = pytester.runpytest(
        *(f"--dst-model={address}", f"--dst-tracker=service-model={folder}"),
        *(f"--dst-tracker=stream={stream}", "--dst-data=talks.jsonl", "--dst-tools=tools.json"),
        *("--dst-outcome=tool-calls", "--dst-validity=edit-rate"),
        *("--dst-edits=char_drop,char_replace", "--dst-transformations=1", "--dst-variants=12"),
        *("--dst-report=report.json", "--dst-max-failure-rate=100%"),
    )
    run.assert_outcomes(passed=len(TURNS))
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    turns = {turn["user"]: turn for turn in report["turns"]}
    assert {user: turn["clean_state"] for user, turn in turns.items()} == TURNS
    assert report["summary"]["errors"] == 0
    broken = [
        (user, variant)
        for user, turn in turns.items()
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
    ]
    # The word that a call hangs on is found: without it, the model says that it does not know.
    assert "When is my parcel" in {user for user, _ in broken}
    gone = [("track_parcel[0]", "call 1", None)]
    for user, variant in broken:
        found = [(one["slot"], one["before"], one["after"]) for one in variant["changed_slots"]]
        assert user != "When is my parcel" or found == gone
    usage = report["run"]["usage"]
    assert usage["answers"] > 0
    assert usage["uncounted"] == 0
    print(f"stream={stream}: {report['summary']}, {usage}")
