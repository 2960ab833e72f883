"""Relations on the list of tools: what is asked, that right assistants pass, and what they find."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from booking import AREAS, BOOK, TALKS, dialogue, right

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.paraphrases import with_paraphrases
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name, relations_named
from pytest_dstfuzz.testing import check_relation

NAMES = [name for name in RELATIONS.shipped if name.startswith("tools-")]
WORDS = [
    {
        "name": "plain words",
        "tools": {
            "book_table": {
                "name": "reserve",
                "description": "Keeps a table free.",
                "parameters": {"people": "guests", "day": {"name": "date"}, "area": "people"},
            },
            "call_taxi": "order_cab",
        },
    }
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DialogueSet:
    """Return the dialogues with the tools in other words."""
    path = tmp_path_factory.mktemp("words") / "words.json"
    path.write_text(json.dumps(WORDS), encoding="utf-8")
    return with_paraphrases(TALKS, path)


def results(assistant: object, data: DialogueSet, relation: str) -> Campaign:
    settings = Settings.of(outcome="tool-calls", turns="all", variants=4, repeatable=True)
    campaign = Campaign(assistant, data, settings, relation=relation)
    list(campaign)
    return campaign


@pytest.mark.parametrize("name", NAMES)
def test_they_are_sound_and_a_right_assistant_has_no_violation(
    name: str, data: DialogueSet
) -> None:
    found = check_relation(name, data, outcome="tool-calls")
    found.assert_passed()
    assert found.rewrites >= found.asked
    campaign = results(right, data, name)
    assert [one.outcome for one in campaign.results] == ["held"] * 5
    assert all(variant.about for one in campaign.results for variant in one.variants)


def first_tool(_: object, tools: Sequence[Mapping[str, Any]]) -> object:
    """Call whatever is listed first, with all of its parameters."""
    function = tools[0]["function"]
    arguments = dict.fromkeys(function["parameters"]["properties"], "yes")
    return {"tool_calls": [{"function": {"name": function["name"], "arguments": arguments}}]}


def counting(_: object, tools: Sequence[Mapping[str, Any]]) -> object:
    """Book for as many people as the tool has parameters."""
    book = next(one["function"] for one in tools if one["function"]["name"] == "book_table")
    people = len(book["parameters"]["properties"])
    return {"tool_calls": [{"function": {"name": "book_table", "arguments": {"people": people}}}]}


def old_names(_: object, __: object) -> object:
    """Book a table by the names that it was written for."""
    call = {"name": "book_table", "arguments": {"people": 2}}
    return {"tool_calls": [{"function": call}]}


@pytest.mark.parametrize(
    ("assistant", "name", "change"),
    [
        (first_tool, "tools-order", "book_table[0]: call 1 -> none"),
        (first_tool, "tools-distractor", "book_table[0]: call 1 -> none"),
        (counting, "tools-optional", "book_table[0].people: 4 -> 3"),
        (old_names, "tools-paraphrase", "book_table (old name)[0]: none -> call 2"),
    ],
)
def test_planted_faults_are_found(
    assistant: object, name: str, change: str, data: DialogueSet
) -> None:
    campaign = results(assistant, data, name)
    found = {
        str(one)
        for result in campaign.results
        for variant in result.violations
        for one in variant.changed_slots
    }
    assert change in found


def test_recorded_calls_and_answers_have_the_other_names(data: DialogueSet) -> None:
    seen: list[tuple[Any, Any]] = []

    def looking(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> object:
        seen.append((messages, tools))
        return right(messages, tools)

    campaign = results(looking, data, "tools-paraphrase")
    assert campaign.results[0].variants[0].state == campaign.results[0].clean_state
    renamed = [
        (messages, tools)
        for messages, tools in seen
        if tools[0]["function"]["name"] == "reserve" and len(messages) > 1
    ]
    calls = [
        call["function"]
        for messages, _ in renamed
        for message in messages
        for call in message.get("tool_calls", ())
    ]
    assert sorted(call["name"] for call in calls) == ["order_cab", "reserve"]
    reserved = next(call for call in calls if call["name"] == "reserve")
    assert json.loads(reserved["arguments"]) == {"guests": 2, "date": "friday", "people": "north"}
    function = renamed[0][1][0]["function"]
    assert function["description"] == "Keeps a table free."
    assert function["parameters"]["required"] == ["guests", "date"]
    assert function["parameters"]["properties"]["people"]["enum"] == [*AREAS]


def test_an_optional_parameter_goes_only_where_no_call_uses_it() -> None:
    asked: list[list[dict[str, Any]]] = []

    def looking(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> object:
        asked.append(tools)
        return right(messages, tools)

    results(looking, DialogueSet("d", "test", TALKS.dialogues[:1]), "tools-optional")
    for tools in asked:
        by_name = {one["function"]["name"]: one["function"]["parameters"] for one in tools}
        assert {"people", "day", "area"} <= by_name["book_table"]["properties"].keys()
        assert "people" in by_name["call_taxi"]["properties"]


def test_an_optional_parameter_of_a_later_call_stays_from_the_first_turn_on() -> None:
    first = ToolCall("book_table", {"people": 2, "day": "friday"})
    later = ToolCall("book_table", {"people": 2, "day": "friday", "terrace": True})
    talk = dialogue(
        "later", ("a table for 2 on friday", first), ("on the terrace please", later), tools=(BOOK,)
    )
    found = results(right, DialogueSet("d", "test", (talk,)), "tools-optional").results
    about = {variant.about for one in found for variant in one.variants}
    assert about == {"book_table without its optional parameter area"}


def test_a_tool_keeps_its_parameters_where_a_later_call_cannot_be_read() -> None:
    talk = dialogue("cut", ("a taxi for 3 people", ToolCall("call_taxi", {"people": 3})))
    cut = json.loads(talk.closing[0])
    cut["tool_calls"][0]["function"]["arguments"] = '{"people": 2, "terrace": tr'
    cut["tool_calls"][0]["function"]["name"] = "book_table"
    later = replace(talk, closing=(*talk.closing, json.dumps(cut)))
    about = [
        {one.about for result in found for one in result.variants}
        for found in (
            results(right, DialogueSet("d", "test", (each,)), "tools-optional").results
            for each in (talk, later)
        )
    ]
    assert {one.partition(" ")[0] for one in about[0]} >= {"book_table", "call_taxi"}
    assert {one.partition(" ")[0] for one in about[1]} == {"call_taxi", "send_receipt"}


def test_a_distractor_is_about_something_else() -> None:
    other = BOOK._replace(name="book_restaurant"), Tool("tune_radio", "Finds a station.")
    more = replace(TALKS.dialogues[2], id="other", tools=other)
    data = DialogueSet("d", "test", (*TALKS.dialogues, more))
    campaign = results(right, data, "tools-distractor")
    told = {v.about.split(",")[1].strip() for r in campaign.results for v in r.variants}
    assert "tune_radio" in told
    assert "book_restaurant" not in told
    assert told & {"water_plants", "tune_piano", "count_beehives"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"book_tabel": "x"}, "no tool 'book_tabel' in the data; did you mean 'book_table'"),
        ({"book_table": {"parameters": {"peple": "x"}}}, "did you mean 'people'"),
        ({"book_table": "call_taxi"}, "two tools would have the name 'call_taxi'"),
        (
            {"book_table": {"parameters": {"people": "day"}}},
            "two parameters would have the name 'day'",
        ),
        ({"book_table": {"title": "x"}}, "title"),
    ],
)
def test_what_does_not_fit_is_told(given: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text(json.dumps([{"tools": given}]), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        with_paraphrases(TALKS, path)


def test_they_are_for_tool_calls_alone() -> None:
    with pytest.raises(UserError, match="tests tool calls, not slots: use one of"):
        Campaign(dict, "sample", relation="tools-order")
    assert {one.name for one in relations_named("all", TALKS, "tool-calls")} >= {*NAMES} - {
        "tools-paraphrase"
    }
    why = relation_by_name("tools-paraphrase").impossible(TALKS)
    assert "--dst-relation=tools-paraphrase:" in why
