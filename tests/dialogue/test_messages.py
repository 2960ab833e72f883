import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, UserError

Write = Callable[[str, Any], Path]

BOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Book a table.",
        "parameters": {"type": "object", "properties": {"people": {"type": "integer"}}},
    },
}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*made: tuple[str, dict[str, Any]], first: int = 1) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(made, start=first)
        ],
    }


def result(text: str, number: int = 1) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


TALK = [
    {"role": "system", "content": "You book tables."},
    user("a table for two"),
    calls(("book", {"people": 2})),
    result("booked"),
    says("Done."),
    user("thanks"),
    says("Bye."),
]


def parsed(recorded: tuple[str, ...] | None) -> list[Any]:
    return [json.loads(each) for each in recorded or ()]


def load(path: Path, **how: Any) -> DialogueSet:
    return load_dialogues(path, outcome="tool-calls", **how)


def read(write: Write, *lines: Any, name: str = "own.jsonl") -> DialogueSet:
    return load(write(name, "\n".join(map(json.dumps, lines))))


def test_turns_are_what_the_user_says_and_all_between_stays_as_recorded(write: Write):
    (dialogue,) = read(write, {"id": "a", "messages": TALK, "tools": [BOOK]}).dialogues
    first, second = dialogue.turns
    assert (dialogue.id, first.system, first.user) == ("a", "", "a table for two")
    assert parsed(first.recorded) == TALK[:1]
    assert first.calls == {"book[0]": "call 1", "book[0].people": "2"}
    assert (second.system, second.user, second.answer) == ("Done.", "thanks", "Bye.")
    assert parsed(second.recorded) == TALK[2:5]
    assert second.calls == {}
    assert parsed(dialogue.closing) == TALK[6:]
    assert [tool.to_json() for tool in dialogue.tools] == [BOOK]
    transcript = dialogue.context(1).transcript
    assert transcript is not None
    assert transcript.before == (first.recorded, second.recorded)


@pytest.mark.parametrize(
    "shape",
    [
        lambda one: json.dumps([one, {**one, "id": "b"}]),
        lambda one: json.dumps([one, {**one, "id": "b"}], indent=1),
        lambda one: f"{json.dumps(one)}\n\n{json.dumps({**one, 'id': 'b'})}\n",
        lambda one: json.dumps(one, indent=2),
        json.dumps,
    ],
    ids=["array", "indented array", "lines", "one object", "one line"],
)
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_file_is_lines_or_an_array_or_one_dialogue(
    write: Write, shape: Callable[[Any], str], ending: str
):
    found = load(write(f"own.{ending}", shape({"id": "a", "messages": TALK, "tools": [BOOK]})))
    assert found.layout == "messages"
    assert [dialogue.id for dialogue in found.dialogues] == ["a", "b"][: len(found.dialogues)]
    assert {len(dialogue.turns) for dialogue in found.dialogues} == {2}


def test_messages_that_follow_each_other_are_one_reply(write: Write):
    said = [
        user("hi"),
        says("Hello."),
        says("How can I help?"),
        user("thanks"),
        says("A"),
        says("B"),
    ]
    first, second = load_dialogues(write("a.json", {"messages": said})).dialogues[0].turns
    assert second.system == "Hello.\nHow can I help?"
    assert (first.answer, second.answer) == (None, "A\nB")
    said = [
        user("hi"),
        says("Wait."),
        calls(("book", {})),
        result("done"),
        says("Done."),
        says("Bye."),
    ]
    (turn,) = load_dialogues(write("a.json", {"messages": said})).dialogues[0].turns
    assert turn.answer == "Done.\nBye."


def test_lists_of_messages_alone_are_dialogues_named_by_file_and_line(write: Write):
    found = read(write, TALK, TALK)
    assert [dialogue.id for dialogue in found.dialogues] == ["own-1", "own-2"]
    assert load(write("b.json", [TALK, TALK])).dialogues[1].id == "b-2"
    assert load(write("c.json", TALK)).dialogues[0].id == "c-1"


def test_what_follows_a_result_is_not_of_the_next_message_but_parallel_calls_are(write: Write):
    talk = [
        user("two tables"),
        calls(("book", {"people": 2})),
        calls(("book", {"people": 3}), first=2),
        result("ok"),
        result("ok", 2),
        calls(("book", {"people": 4}), first=3),
        result("ok", 3),
        user("hello?"),
        user("still there?"),
    ]
    first, second, third = read(write, {"messages": talk}).dialogues[0].turns
    assert first.calls == {
        "book[0]": "call 1",
        "book[0].people": "2",
        "book[1]": "call 2",
        "book[1].people": "3",
    }
    assert (second.calls, third.calls) == (None, None)
    assert third.recorded == ()


def test_the_old_form_of_calls_becomes_the_new_one(write: Write):
    old = [
        user("a table"),
        {"role": "assistant", "function_call": {"name": "book", "arguments": '{"people": 2}'}},
        {"role": "function", "name": "book", "content": "booked"},
        user("thanks"),
    ]
    found = read(write, {"messages": old, "functions": [BOOK["function"]]})
    first, second = found.dialogues[0].turns
    assert first.calls == {"book[0]": "call 1", "book[0].people": "2"}
    made, answered = parsed(second.recorded)
    assert made["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert found.dialogues[0].tools[0].name == "book"
    assert found.notes == ()


def test_pictures_stand_before_the_text_that_is_varied(write: Write):
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    talk = [user([picture, {"type": "text", "text": "what is"}, {"type": "text", "text": "this?"}])]
    (turn,) = read(write, {"messages": talk}).dialogues[0].turns
    assert turn.user == "what is\nthis?"
    assert parsed(turn.recorded) == [user([picture])]


def test_an_id_that_is_given_is_not_that_of_another_call(write: Write):
    mixed = calls(("book", {}), ("book", {}))
    mixed["tool_calls"][0]["id"] = "call_1"
    del mixed["tool_calls"][1]["id"]
    talk = [user("a"), mixed, {**result("b"), "tool_call_id": "call_1"}, user("c")]
    _, second = read(write, {"messages": talk}).dialogues[0].turns
    assert [call["id"] for call in parsed(second.recorded)[0]["tool_calls"]] == ["call_1", "call_2"]


def test_a_conversation_with_more_tools_than_are_looked_at_is_recognised(write: Write):
    tools = [{"name": f"t{n}", "description": "x" * 100} for n in range(900)]
    lines = [json.dumps({"tools": tools, "messages": TALK})] * 2
    for text in ("\n".join(lines), f"[{','.join(lines)}]", lines[0].replace("{", "{\n", 1)):
        assert load(write("own.json", text)).layout == "messages"


def test_a_list_of_tools_beside_them_is_no_conversation(write: Write):
    write("d/tools.json", {"tools": [BOOK]})
    path = write("d/own.jsonl", {"messages": TALK})
    found = load(path.parent)
    assert [dialogue.id for dialogue in found.dialogues] == ["own-1"]


def test_states_are_labels_of_their_own(write: Write):
    (dialogue,) = read(write, {"messages": TALK, "states": [{"people": "2"}, None]}).dialogues
    assert [turn.state for turn in dialogue.turns] == [{"people": "2"}, None]


@pytest.mark.parametrize(
    ("messages", "tools", "told"),
    [
        (
            [user("a"), {**calls(("book", {})), "tool_calls": [{"function": {"name": "book"}}]}],
            None,
            r"Calls have no id; an id was added \(once at .*messages\[1\]\.tool_calls\[0\]\)",
        ),
        (
            [user("a"), calls(("book", {})), {"role": "tool", "content": "b"}],
            None,
            r"Tool results have no 'tool_call_id'",
        ),
        ([user("a"), result("b")], None, r"Tool results have no call before them"),
        ([user("a"), calls(("book", {})), user("b")], None, r"Calls have no result before"),
        ([user("a"), calls(("boook", {}))], [BOOK], r"'boook' is called, .* did you mean 'book'\?"),
        ([user("a"), user(" ")], None, r"User messages have no text"),
        ([{**user("a"), "name": "x"}], None, r"keys besides role and content"),
        ([user("a"), {"role": "assistant"}], None, r"no text and no call"),
    ],
)
def test_what_looks_like_a_fault_is_taken_and_told(
    write: Write, messages: Any, tools: Any, told: str
):
    found = read(write, {"messages": messages, "tools": tools})
    (note,) = found.notes
    assert re.search(told, note)


def test_malformed_arguments_stay_in_what_is_sent_and_are_no_label(write: Write):
    broken = calls(("book", {}))
    broken["tool_calls"][0]["function"]["arguments"] = '{"people": '
    found = read(write, {"messages": [user("a"), broken, result("?"), user("b")]}, TALK)
    first, second = found.dialogues[0].turns
    assert first.calls is None
    assert parsed(second.recorded)[0] == broken
    assert "are not a JSON object" in found.notes[0]


ANTHROPIC: dict[str, Any] = {
    "id": "a",
    "system": "You book tables.",
    "messages": [
        user("a table for two"),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "book", "input": {"people": 2}},
                {"type": "tool_use", "id": "c2", "name": "book", "input": {"people": 3}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "booked"},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [{"type": "text", "text": "full"}],
                },
                {"type": "text", "text": "and?"},
                {"type": "image", "source": {"type": "url", "url": "http://localhost/a.png"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
    "tools": [
        {
            "name": "book",
            "description": "Book a table.",
            "input_schema": BOOK["function"]["parameters"],
        }
    ],
}


def test_the_form_of_anthropic_is_read_as_the_chat_form(write: Write):
    found = read(write, ANTHROPIC)
    (dialogue,) = found.dialogues
    assert [tool.to_json() for tool in dialogue.tools] == [BOOK]
    first, second = dialogue.turns
    assert parsed(first.recorded) == [{"role": "system", "content": "You book tables."}]
    assert first.calls == {
        "book[0]": "call 1",
        "book[0].people": "2",
        "book[1]": "call 2",
        "book[1].people": "3",
    }
    assert (second.system, second.user, second.answer) == ("Let me see.", "and?", "Done.")
    picture = {"type": "image_url", "image_url": {"url": "http://localhost/a.png"}}
    made = calls(("book", {"people": 2}), ("book", {"people": 3}))
    assert parsed(second.recorded) == [
        {**made, "content": "Let me see."},
        result("booked"),
        {**result("full", 2), "content": [{"type": "text", "text": "full"}]},
        user([picture]),
    ]
    assert found.notes == ()


def test_what_the_chat_form_has_no_place_for_is_told(write: Write):
    talk = [
        user("a"),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "c1", "name": "book", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": True}],
        },
    ]
    thought, failed = read(write, {"messages": talk}).notes
    assert "blocks of the type 'thinking', which are ignored (once at" in thought
    assert "marked as errors" in failed


@pytest.mark.parametrize(
    "tools",
    [
        [BOOK],
        [BOOK["function"]],
        json.dumps([BOOK]),
        {"tools": [BOOK]},
        [{**ANTHROPIC["tools"][0], "cache_control": {}}],
        [
            {
                "name": "book",
                "description": "Book a table.",
                "inputSchema": BOOK["function"]["parameters"],
            }
        ],
    ],
    ids=["chat", "function", "text", "answer of MCP", "Anthropic", "MCP"],
)
def test_tools_are_read_in_each_form(write: Write, tools: Any):
    (dialogue,) = read(write, {"messages": TALK, "tools": tools}).dialogues
    assert [tool.to_json() for tool in dialogue.tools] == [BOOK]


def test_dialogues_without_tools_get_those_of_a_file(write: Write):
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [ANTHROPIC["tools"][0]]}}
    path = write("tools.json", answer)
    other = {**BOOK, "function": {"name": "other"}}
    data = write("own.json", [{"messages": TALK}, {"messages": TALK, "tools": [other]}])
    found = load(data, tools=path)
    assert [one.tools[0].name for one in found.dialogues] == ["book", "other"]
    assert found.ontology is not None
    assert "book.people" in found.ontology.values
    own = write("b.json", {"messages": TALK, "tools": [BOOK]})
    assert "those in" in load(own, tools=path).notes[-1]
    with pytest.raises(UserError, match="add --dst-outcome=tool-calls"):
        load_dialogues(data, tools=path)
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read: No such file"):
        load(data, tools=write("x", "").with_name("nowhere.json"))
