"""A chat model as an assistant that calls tools, against a service on loopback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from assistant_server import assistant, call, calling, pieces, streamed, whole
from chat_server import asked_about, chat, completion, refusal
from loopback import Asked, Says, Service
from table_talk import BOOK, CONTEXT, DATA, FIND, MESSAGES

from pytest_dstfuzz.config import build_settings
from pytest_dstfuzz.config.parsers import mask_command_line
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, usage_of

PARALLEL = calling(call("book_table", {"people": 2}, 0), call("find_menu", {"day": "today"}, 1))


def model_at(service: Service, data: DialogueSet = DATA, **given: Any) -> Tracker:
    options = {"model": f"openai+{service.url}", "outcome": "tool-calls", "retries": 0, **given}
    return tracker_for(build_settings(options), data)


def answer(service: Service, **given: Any) -> Prediction | TrackerError:
    (found,) = model_at(service, **given).predict([CONTEXT])
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls_are_read_streamed_or_not(stream: bool) -> None:
    with assistant(lambda _: PARALLEL) as service:
        bot = model_at(service, stream=stream)
        (found,) = bot.predict([CONTEXT])
        (asked,) = asked_about(service)
    assert isinstance(found, Prediction)
    assert found.calls == {
        "book_table[0]": "call 1",
        "book_table[0].people": "2",
        "find_menu[0]": "call 2",
        "find_menu[0].day": "today",
    }
    assert asked.body["messages"] == MESSAGES
    assert asked.body["tools"] == [BOOK.to_json(), FIND.to_json()]
    assert asked.body.get("stream", False) is stream
    assert "tool_choice" not in asked.body
    usage = usage_of(bot)
    assert usage is not None
    assert (usage.answers, usage.uncounted, usage.tokens) == (1, 0, 15)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("required", "required"),
        ("book_table", {"type": "function", "function": {"name": "book_table"}}),
    ],
)
def test_how_tools_are_chosen_is_sent(choice: str, sent: object) -> None:
    with assistant(lambda _: PARALLEL) as service:
        answer(service, tool_choice=choice)
        assert asked_about(service)[0].body["tool_choice"] == sent


def test_a_text_calls_nothing() -> None:
    with assistant(lambda _: {"role": "assistant", "content": "For when?"}) as service:
        found = answer(service)
    assert isinstance(found, Prediction)
    assert (found.calls, found.reply) == ({}, "For when?")


def test_the_old_form_of_a_call_is_read() -> None:
    old = {"role": "assistant", "function_call": call("find_menu", {})["function"]}
    with assistant(lambda _: old) as service:
        found = answer(service)
    assert isinstance(found, Prediction)
    assert found.calls == {"find_menu[0]": "call 1"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (calling(call("book_table", '{"people": ')), "arguments that are not valid JSON"),
        (calling(call("book_table", "[2]")), "instead of a JSON object"),
        (calling(call("", "{}")), "names no tool"),
    ],
)
def test_a_call_that_cannot_be_read_is_an_error(
    message: dict[str, Any], problem: str, stream: bool
) -> None:
    with assistant(lambda _: message) as service:
        found = answer(service, stream=stream)
    assert isinstance(found, TrackerError)
    assert problem in str(found)


def test_an_unknown_tool_and_a_call_without_id_are_calls() -> None:
    made = calling({"type": "function", "function": {"name": "tables", "arguments": None}})
    with assistant(lambda _: made) as service:
        found = answer(service)
    assert isinstance(found, Prediction)
    assert found.calls == {"tables[0]": "call 1"}


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (whole(PARALLEL, "length"), "was cut off"),
        (completion(None, choices=[]), "instead of a chat completion"),
        (streamed(pieces(PARALLEL)[:3], None), "before its answer was complete"),
        (refusal(400, "no tools here"), "answered 400"),
    ],
)
def test_what_is_no_answer_is_an_error(says: Says, problem: str) -> None:
    with chat(lambda _: says) as service:
        found = answer(service, stream=True)
    assert isinstance(found, TrackerError)
    assert problem in str(found)


def test_what_a_service_refuses_is_left_out_from_then_on() -> None:
    def strict(asked: Asked) -> Says:
        for key in ("stream_options", "temperature"):
            if key in asked.body:
                return refusal(422, f"Unexpected keys in the request: {key}")
        return streamed(pieces(PARALLEL), counts=False)

    with chat(strict) as service:
        bot = model_at(service, stream=True, concurrency=1)
        found = bot.predict([CONTEXT, CONTEXT])
        sent = [{"stream_options", "temperature"} & {*one.body} for one in asked_about(service)]
    assert all(isinstance(one, Prediction) for one in found)
    assert sent == [{"stream_options", "temperature"}, {"temperature"}, set(), set()]
    usage = usage_of(bot)
    assert usage is not None
    assert (usage.answers, usage.uncounted) == (2, 2)


def test_a_refusal_for_another_reason_keeps_the_temperature() -> None:
    def broken(asked: Asked) -> Says:
        if len(asked.body["messages"]) > 1:
            return refusal(400, "too long: ... what is the temperature today ...")
        return whole(PARALLEL)

    with chat(broken) as service:
        bot = model_at(service, concurrency=1)
        found = bot.predict([CONTEXT, Context((Exchange("", "Hello"),))])
        sent = ["temperature" in asked.body for asked in asked_about(service)]
    assert isinstance(found[0], TrackerError)
    assert sent == [True, False, True]


def test_no_credential_comes_out_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "sk-0123456789abcdef0123"
    monkeypatch.setenv("DSTFUZZ_TOKEN", shown)
    said = calling(call("find_menu", {"key": shown}), content=f"Your key is {shown}.")
    with assistant(lambda _: said) as service:
        found = answer(service, stream=True)
        assert asked_about(service)[0].headers["authorization"] == f"Bearer {shown}"
    assert isinstance(found, Prediction)
    assert found.calls == {"find_menu[0]": "call 1", "find_menu[0].key": "***"}
    assert found.reply == "Your key is ***."


def test_no_half_of_a_credential_is_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "tulips-and-roses"[:14]
    monkeypatch.setenv("DSTFUZZ_TOKEN", shown)
    said = calling(call("find_menu", f'{{"a": "{"x" * 45}{shown}'))
    with assistant(lambda _: said) as service:
        found = answer(service)
    assert isinstance(found, TrackerError)
    assert "tulip" not in str(found)


@pytest.mark.parametrize(
    ("given", "data", "problem"),
    [
        ({"tool_choice": "book_tabel"}, DATA, "Did you mean 'book_table'"),
        (
            {"tool_choice": "auto", "outcome": "reply"},
            DATA,
            "applies only to assistants that call tools",
        ),
        ({"model": "http://localhost:1", "stream": True}, DATA, "openai+http://... or anthropic"),
        ({"model": "rasa+http://localhost:1"}, DATA, "leave --dst-outcome=tool-calls out"),
    ],
)
def test_a_mistake_is_told_before_anybody_is_asked(
    given: dict[str, Any], data: DialogueSet, problem: str
) -> None:
    options = {"model": "openai+http://localhost:1", "outcome": "tool-calls", **given}
    with pytest.raises(UserError) as raised:
        tracker_for(build_settings(options), data)
    assert problem in str(raised.value)


def test_a_model_needs_tools() -> None:
    bare = DialogueSet("t", "test", (replace(DATA.dialogues[0], tools=()),))
    settings = build_settings({"model": "openai+http://localhost:1", "outcome": "tool-calls"})
    with pytest.raises(UserError, match="the data has no tools"):
        tracker_for(settings, bare)


def test_the_command_that_repeats_a_run_shows_how_a_model_is_asked() -> None:
    words = ["--dst-tracker=stream=yes", "--dst-tracker", "tool-choice=book_table"]
    assert mask_command_line(words) == words
