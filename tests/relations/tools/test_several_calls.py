"""Messages that make several calls, and values that are no words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from booking import answered, called, described, said, tool

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall
from pytest_dstfuzz.dialogue.load import load_dialogues

HIRE = tool(
    "hire_boat",
    "Hires a boat.",
    ["harbour"],
    boat=described("string", "Which.", enum=["dinghy", "ketch", "yawl"]),
    harbour=described("string", "Where.", enum=["Ulsta", "Vidlin", "Walls"]),
    rowers=described("integer", "How many row."),
)
LAMP = tool("set_lamp", "Sets a lamp.", [], level=described("string", "How bright."))
WRITE = tool("write_mail", "Writes a mail.", [], to=described("string", "To whom."))


def hire(boat: str, harbour: str, **more: object) -> ToolCall:
    return ToolCall("hire_boat", {"boat": boat, "harbour": harbour, **more})


def variants(
    path: Path, relation: str, tools: Sequence[Tool], *talks: tuple[str, list[ToolCall]]
) -> list[Any]:
    """Return the rewrites of dialogues of one turn, of a bot that calls what was recorded."""
    lines = []
    for number, (text, calls) in enumerate(talks):
        results = [answered(place, ok=True) for place in range(len(calls))]
        user = {"role": "user", "content": text}
        messages = [user, called(*calls), *results, said("Done.")]
        listed = [
            {"type": "function", "function": {"name": one.name, "parameters": one.schema}}
            for one in tools
        ]
        lines.append(json.dumps({"id": f"d{number}", "messages": messages, "tools": listed}))
    data = path / "talks.jsonl"
    data.write_text("\n".join(lines), encoding="utf-8")
    made = dict(talks)

    def answer(messages: list[dict[str, Any]], _: object) -> object:
        return made.get(messages[-1]["content"]) or "All right."

    settings = Settings.of(outcome="tool-calls", turns="all", variants=20, repeatable=True)
    dialogues = load_dialogues(data, "test", outcome="tool-calls")
    results = Campaign(answer, dialogues, settings, relation=relation)
    return [variant for one in results for variant in one.variants]


TWO = (
    "hire a dinghy from Ulsta and a ketch from Vidlin",
    [hire("dinghy", "Ulsta"), hire("ketch", "Vidlin")],
)


@pytest.mark.parametrize("relation", ["turn-back", "removal"])
def test_two_calls_of_a_tool_leave_open_which_of_them_is_meant(
    relation: str, tmp_path: Path
) -> None:
    assert not variants(tmp_path, relation, [HIRE], TWO)
    assert variants(tmp_path, relation, [HIRE], (TWO[0], TWO[1][:1]))


def test_nobody_says_the_name_of_a_tool(tmp_path: Path) -> None:
    level = ToolCall("set_lamp", {"level": "30 %"})
    dim = ("dim the lamp to 40 % at once", [ToolCall("set_lamp", {"level": "40 %"})])
    both = ("hire a yawl from Walls and set the lamp to 30 %", [hire("yawl", "Walls"), level])
    found = variants(tmp_path, "turn-back", [HIRE, LAMP], both, dim)
    texts = {one.text.partition("Actually, ")[2] for one in found}
    assert {"make the level 40 %.", "make the boat ketch.", "make the harbour Ulsta."} <= texts
    assert not [text for text in texts if "_" in text]


def test_two_tools_with_arguments_of_one_name_leave_open_which_is_meant(tmp_path: Path) -> None:
    moor = HIRE._replace(name="moor_boat")
    calls = [hire("yawl", "Walls"), ToolCall("moor_boat", {"harbour": "Ulsta"})]
    asked = ("hire a yawl from Walls and moor it in Ulsta", calls)
    found = variants(tmp_path, "turn-back", [HIRE, moor], asked)
    assert {one.text.partition("make the ")[2].split()[0] for one in found} == {"boat"}


def test_the_sign_of_an_amount_goes_with_it(tmp_path: Path) -> None:
    dim = ("please set the lamp in the hall at 40 %", [ToolCall("set_lamp", {"level": "40 %"})])
    (one,) = variants(tmp_path, "removal", [LAMP], dim)
    assert one.text == "please set the lamp in the hall"


def test_a_number_in_words_is_no_number_of_a_call(tmp_path: Path) -> None:
    talks = [
        ("hire a yawl from Walls with two rowers", [hire("yawl", "Walls", rowers=2)]),
        ("hire a ketch from Ulsta with three rowers", [hire("ketch", "Ulsta", rowers=3)]),
    ]
    found = variants(tmp_path, "value-swap", [HIRE], *talks)
    (one,) = [one for one in found if one.text == "hire a yawl from Walls with three rowers"]
    assert [str(delta) for delta in one.expected] == ["hire_boat[0].rowers: 2 -> 3"]


def test_an_address_keeps_its_letters(tmp_path: Path) -> None:
    talks = [
        (f"please write a mail to {to}", [ToolCall("write_mail", {"to": to})])
        for to in ("Ann.Lee@Firm.example", "bo@yard.example")
    ]
    found = variants(tmp_path, "value-swap", [WRITE], *talks)
    assert {one.text for one in found} == {text for text, _ in talks}
