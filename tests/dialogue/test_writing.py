"""Dialogues as messages and back: nothing is lost of what was recorded with its messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz import cli
from pytest_dstfuzz.dialogue.dialogues import Dialogue, entry_of, json_lines, whole_dialogue
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SAID = TEXTS.filter(str.strip)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["book", "find"]), st.dictionaries(TEXTS, VALUES, max_size=3)),
    max_size=3,
)
CONTENTS = SAID | st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, SAID)
    | st.just({"type": "image_url", "image_url": {"url": "data:,"}}),
    min_size=1,
    max_size=3,
)
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("book", "find")]


def exchange(number: int, content: Any, calls: Any, answer: str, name: str) -> Iterator[Any]:
    """Yield the messages of one exchange."""
    yield {"role": "user", "content": content, **({"name": name} if name else {})}
    if calls:
        made = [
            {
                "id": f"c{number}-{place}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for place, (tool, arguments) in enumerate(calls)
        ]
        yield {"role": "assistant", "content": None, "tool_calls": made}
        for call in made:
            yield {"role": "tool", "tool_call_id": call["id"], "content": answer}
    if answer:
        yield {"role": "assistant", "content": answer}


@st.composite
def recordings(draw: st.DrawFn) -> dict[str, Any]:
    prompt = draw(st.sampled_from(["", "system", "developer"]))
    messages = [{"role": prompt, "content": "Be brief."}] if prompt else []
    for number in range(draw(st.integers(1, 3))):
        names = st.sampled_from(["", "Ann"])
        messages += exchange(number, *draw(st.tuples(CONTENTS, CALLS, TEXTS, names)))
    messages.append({"role": "user", "content": draw(SAID)})
    tools = draw(st.sampled_from([[], TOOLS]))
    return {"id": draw(SAID.filter(str.isprintable)), "messages": messages, "tools": tools}


def loaded(folder: Path, text: str) -> tuple[Dialogue, ...]:
    path = folder / "own.jsonl"
    path.write_text(text, encoding="utf-8", newline="")
    return load_dialogues(path, outcome="tool-calls").dialogues


@given(recordings())
@settings(max_examples=60, deadline=None)
def test_what_was_recorded_comes_back_the_same(recording: dict[str, Any]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        dialogues = loaded(folder, json.dumps(recording))
        assert loaded(folder, "".join(json_lines(dialogues))) == dialogues


def test_messages_are_written_as_they_were_recorded(tmp_path: Path) -> None:
    recording = {
        "id": "a",
        "messages": list(exchange(0, "a table", [("book", {"people": 2})], "Done.", "")),
        "tools": TOOLS,
        "states": [{"people": "2"}],
    }
    (dialogue,) = loaded(tmp_path, json.dumps(recording))
    written = entry_of(dialogue)
    assert written["messages"] == recording["messages"]
    assert written["states"] == recording["states"]
    assert [tool["function"]["name"] for tool in written["tools"]] == ["book", "find"]


def test_dialogues_that_are_texts_become_messages_and_stay_unlabelled(tmp_path: Path) -> None:
    plain = load_dialogues(SAMPLE).dialogues[0]
    roles = [message["role"] for message in whole_dialogue(plain)]
    assert roles[:3] == ["user", "assistant", "user"]
    (found,) = loaded(tmp_path, "".join(json_lines([plain])))
    assert [(turn.system, turn.user, turn.state) for turn in found.turns] == [
        (turn.system, turn.user, turn.state) for turn in plain.turns
    ]
    assert {turn.calls for turn in found.turns} == {None}


def test_the_command_writes_what_the_reader_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "own.json", tmp_path / "out" / "own.jsonl"
    talk = list(exchange(0, "a table", [("book", {})], "Done.", ""))
    source.write_text(json.dumps([{"messages": talk}, {"messages": talk}]))
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    line = ["convert", "--data", str(source), "--tools", str(tools), "--output", str(target)]
    assert cli.main(line) == 0
    assert "(dialogues: 2, turns: 2)" in capsys.readouterr().out
    dialogues = load_dialogues(source, outcome="tool-calls", tools=tools).dialogues
    assert load_dialogues(target, outcome="tool-calls").dialogues == dialogues
    assert cli.main(["convert", "--data", str(source), "--output", str(source)]) == 2
    assert "which would be overwritten" in capsys.readouterr().err
