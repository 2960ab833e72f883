"""Conversations that cannot be read: one message that says where, what, and what would be right."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz import cli
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError

USER = {"role": "user", "content": "a table for two"}
FUNCTION = {"name": "book", "arguments": '{"people": 2}'}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "booked"}
TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Book a table.",
        "parameters": {
            "type": "object",
            "properties": {"people": {"type": "integer"}, "area": {"enum": ["north"]}},
        },
    },
}
USE = {"type": "tool_use", "id": "c1", "name": "book", "input": {}}


def said(*messages: Any, **more: Any) -> str:
    return json.dumps({"messages": [USER, *messages], **more})


def calling(**changes: Any) -> dict[str, Any]:
    return {**CALLING, "tool_calls": [{**CALL, **changes}]}


def function(**changes: Any) -> dict[str, Any]:
    return calling(function={**FUNCTION, **changes})


def tool(**changes: Any) -> str:
    return said(tools=[{**TOOL, "function": {**TOOL["function"], **changes}}])


BAD = {
    "cut off": (
        '{"messages": [',
        r"not valid JSON, perhaps cut off.*one dialogue per line, \{\"mess",
    ),
    "number": ("3", r"3 instead of a dialogue, \{\"messages\""),
    "no messages": (
        '{"id": "a"}',
        r"has no 'messages': it is an object with the key id; expected \{\"messages\"",
    ),
    "text": ('{"messages": "hi"}', r"messages: 'hi' instead of a list"),
    "id": (said(id=[1]), r"id: \[1\] instead of a text"),
    "no role": (said({"content": "x"}), r"messages\[1\]: lacks 'role'"),
    "role": (said({"role": "asistant", "content": ""}), r"'asistant'. Did you mean 'assistant'\?"),
    "nobody": (said({"role": "narrator", "content": "x"}), r"'narrator'\. Valid: user,"),
    "no content": (
        said({"role": "user"}),
        r"messages\[1\]: a message with the role 'user' needs 'con",
    ),
    "content": (
        said({"role": "user", "content": 3}),
        r"messages\[1\]\.content: 3 instead of a text or a",
    ),
    "calls": (
        said({**CALLING, "tool_calls": CALL}),
        r"tool_calls: .* instead of a list or null; the",
    ),
    "flat call": (
        said(calling(function=None, name="book")),
        r"messages\[1\]\.tool_calls\[0\]\.function: None instead of an object; the form of ",
    ),
    "no function": (
        said({**CALLING, "tool_calls": [{"id": "c1", "name": "book"}]}),
        r"tool_calls\[0\]: lacks 'function'; the form of calls is \"tool_calls\": \[\{\"id\"",
    ),
    "no name": (said(function(name=" ")), r"tool_calls\[0\] calls a tool without a name; expected"),
    "arguments": (
        said(function(arguments=3)),
        r"function\.arguments: 3 instead of a text or an object",
    ),
    "one id": (
        said({**CALLING, "tool_calls": [CALL, CALL]}),
        r"tool_calls\[1\]: the id 'c1' belongs to an earlier call that has no result yet",
    ),
    "old call": (
        said({"role": "assistant", "function_call": {"arguments": "{}"}}),
        r"function_call: lacks 'name'; the form of calls is",
    ),
    "half a character": (said({"role": "user", "content": "\ud800"}), r"contains a lone surrogate"),
    "half in arguments": (
        said(function(arguments='{"a": "\\ud800"}'), tools=[TOOL]),
        r"turn 0 contains a lone surrogate",
    ),
    "states": (
        said(states=[{}, {}]),
        r"has 2 states for 1 turn: 'states' needs one entry for each",
    ),
    "state": (said(states=[3]), r"states: \[0\]: 3 instead of an object or null"),
    "tools": (said(tools=3), r"tools: 3 instead of a list of tools, \[\{\"type\": \"func"),
    "tools as text": (said(tools="[{"), r"tools is not valid JSON.*expected a list of tools"),
    "tool": (said(tools=["book"]), r"tools\[0\]: 'book' instead of a tool, "),
    "tool's name": (tool(name=None), r"tools\[0\] has no 'name', which must be a text; expected"),
    "tool without a name": (tool(name=""), r"tools\[0\] has an empty 'name'; expected"),
    "two tools": (said(tools=[TOOL, TOOL]), r"tools\[1\]: there is already a tool 'book'"),
    "description": (
        tool(description=3),
        r"tools\[0\] \(book\): description: 3 instead of a text",
    ),
    "schema": (
        tool(parameters=[]),
        r"\(book\): parameters: \[\] instead of the JSON schema of the arg",
    ),
    "properties": (
        tool(parameters={"properties": {"people": "integer"}}),
        r"\(book\): parameters\.properties\.people: 'integer' instead of a JSON schema, ",
    ),
    "enum": (
        tool(parameters={"properties": {"a": {"enum": "x"}}}),
        r"parameters\.properties\.a\.enum: 'x' instead of a list of values",
    ),
    "half in a tool": (tool(description="\ud800"), r"tools\[0\] contains a lone surrogate"),
    "Anthropic's call": (
        said({"role": "assistant", "content": [{**USE, "input": "x"}]}),
        r"messages\[1\]\.content\[0\]: input: 'x' instead of an object; the form of calls",
    ),
    "Anthropic's block": (
        said({"role": "assistant", "content": [USE, 3]}),
        r"messages\[1\]: content\[1\]: 3 instead of an object",
    ),
    "Anthropic's prompt": (said(system=3), r"system: 3 instead of a text or a list"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_a_broken_line_is_named_with_what_would_be_right(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(f"{said(CALLING, RESULT)}\n\n{line}\n")
    with pytest.raises(DataError, match=message) as error:
        load_dialogues(path, outcome="tool-calls")
    told = str(error.value)
    assert "\n" not in told
    assert f"{path}: line 3" in told or f"{path}: dialogue own-3, turn" in told


LOGS = {
    "no dialogue": (
        "a.csv",
        "role,text\nuser,hi",
        r"no column for dialogue among role, text; valid",
    ),
    "no speaker": (
        "a.csv",
        "id,text\n1,hi",
        r"no column for speaker .* speaker: speaker, role, aut",
    ),
    "who": (
        "a.csv",
        "id,role,text\n1,custmer,hi",
        r"line 2: unknown speaker 'custmer'\. Did you m",
    ),
    "columns": (
        "a.csv",
        "id,role,text\n1,user,hi, you",
        r"line 2 has 4 columns, but the header has 3; put",
    ),
    "quote": (
        "a.csv",
        'id,role,text\n1,user,"hi" you',
        r"line 2: .*double the quotes within a te",
    ),
    "open quote": ("a.csv", 'id,role,text\n1,user,"hi', r"line 2: unexpected end of data"),
    "no id": ("a.csv", "id,role,text\n,user,hi", r"line 2 has no dialogue id"),
    "no user": ("a.csv", "id,role,text\n1,bot,hi", r"has no dialogues"),
    "other table": ("a.csv", "a,b\n1,2", r"a CSV with the columns dialogue_id, speaker and text"),
    "users": ("a.jsonl", '"hi"\n3', r"line 2: 3; expected a user utterance"),
    "users' list": ("a.json", '["hi", [3]]', r"entry 1: \[3\]; expected a user utterance"),
    "empty text": ("a.json", '["hi", ""]', r"entry 1 has no text; expected a user"),
    "cut off users": (
        "a.jsonl",
        '"hi"\n"ho',
        r"line 2 is not valid JSON.*expected a user utteranc",
    ),
    "array": ("a.json", '[{"messages": [', r"a\.json is not valid JSON.*expected a list of dialog"),
}


@pytest.mark.parametrize(("name", "content", "message"), LOGS.values(), ids=LOGS)
def test_a_broken_log_is_one_message(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        load_dialogues(path, outcome="tool-calls")
    assert "\n" not in str(error.value)
    assert name in str(error.value)


WHOLE: list[Any] = [
    {"id": "a", "messages": [USER, CALLING, RESULT, USER], "tools": [TOOL], "states": [{}, None]},
    {
        "system": "Be brief.",
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "text", "text": "So."}, USE]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "booked"}],
            },
        ],
    },
]
JUNK: list[Any] = [None, True, 3, -1.5, "", "x", "\ud800", [], {}, ["a"], [3], {"a": 1}, [{}], [[]]]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a value but itself."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*at, name)
        if isinstance(inner, dict | list):
            yield from places(inner, (*at, name))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_whatever_is_broken_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    entry = copy.deepcopy(data.draw(st.sampled_from(WHOLE)))
    *path, last = data.draw(st.sampled_from(list(places(entry))))
    inner = entry
    for name in path:
        inner = inner[name]
    if data.draw(st.booleans()):
        inner[last] = data.draw(st.sampled_from(JUNK))
    else:
        del inner[last]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "own.jsonl"
        file.write_text(json.dumps(entry))
        try:
            load_dialogues(file, outcome="tool-calls")
        except DataError as error:
            assert "own.jsonl" in str(error)  # noqa: PT017 - others are read
            assert "\n" not in str(error)  # noqa: PT017 - as above
        else:
            assert cli.main(["check-data", str(file)]) == 0
