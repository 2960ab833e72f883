"""The bots of the gallery read what a small language model writes."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_dstfuzz import Context, Exchange

SMOL = Path(__file__).parents[2] / "examples" / "gallery" / "smol.py"
TOOLS = [{"type": "function", "function": {"name": "book_table", "parameters": {}}}]

Writes = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def smol() -> ModuleType:
    spec = importlib.util.spec_from_file_location("smol", SMOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def writes(smol: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writes]:
    """Start a server, and return a function that sets its answer and returns its requests."""
    text, bodies = [""], list[dict[str, Any]]()

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            answer = {"choices": [{"message": {"role": "assistant", "content": text[0]}}]}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing."""

    def write(answer: str) -> list[dict[str, Any]]:
        text[0] = answer
        return bodies

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(smol, "SERVER", f"http://127.0.0.1:{server.server_address[1]}")
        yield write
        server.shutdown()


def test_the_help_desk_gets_the_whole_conversation(smol: ModuleType, writes: Writes) -> None:
    asked = writes(" Yes, dogs are allowed.\nQuestion: ")
    messages = [
        {"role": "user", "content": "I have a dog."},
        {"role": "assistant", "content": "Okay."},
        {"role": "user", "content": "May I bring it?"},
    ]
    assert smol.reply(messages) == "Yes, dogs are allowed."
    assert asked[0]["messages"][-3:] == messages
    assert asked[0]["messages"][0]["role"] == "system"
    assert asked[0]["temperature"] == 0


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("people=2; day=Friday; time=none; people=3", {"table-people": "2", "table-day": "friday"}),
        ("people=none; day=none; time=7 pm; area=north", {"table-time": "7 pm"}),
        ("I do not know.", {}),
    ],
)
def test_the_first_value_of_a_slot_counts(
    smol: ModuleType, writes: Writes, text: str, state: dict[str, str]
) -> None:
    writes(text)
    assert smol.track(Context((Exchange("", "a table"),))) == state


def test_a_written_call_becomes_a_call(smol: ModuleType, writes: Writes) -> None:
    writes('book_table(people=4, day="saturday", outside=true)')
    message = smol.call([{"role": "user", "content": "a table"}], TOOLS)
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "book_table"
    given = json.loads(call["function"]["arguments"])
    assert given == {"people": 4, "day": "saturday", "outside": True}


@pytest.mark.parametrize("text", ['order_taxi(day="friday")', "A table for 4, of course."])
def test_other_texts_are_no_calls(smol: ModuleType, writes: Writes, text: str) -> None:
    writes(text)
    message = smol.call([{"role": "user", "content": "a table"}], TOOLS)
    assert message == {"role": "assistant", "content": text}
