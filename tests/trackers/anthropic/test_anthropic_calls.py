"""A model behind Anthropic's API, against a service whose types are those of its client library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="the client library of Anthropic is not installed")

import anthropic
from chat_server import asked_about
from loopback import Asked, Says, Service, serving
from official import Blocks, as_sse, call, official, streamed, text
from table_talk import CONTEXT, DATA, TURNS

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, usage_of

BLOCKS = [text("Let me see."), call("book_table", people=2), call("find_menu", day="today")]
PROMPT = str(Path(__file__).with_name("prompt.jinja"))
KEY = "sk-ant-0123456789abcdef"


def model_at(service: Service, data: DialogueSet = DATA, **given: Any) -> Tracker:
    options = {"model": f"anthropic+{service.url}", "outcome": "tool-calls", "retries": 0, **given}
    return tracker_for(Settings.of(**options), data)


def answer_with(blocks: Blocks, **given: Any) -> tuple[Prediction | TrackerError, Asked]:
    with official(lambda _: blocks) as service:
        (found,) = model_at(service, **given).predict([CONTEXT])
        return found, asked_about(service)[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_calls_are_read_streamed_or_not(stream: bool) -> None:
    with official(lambda _: BLOCKS) as service:
        bot = model_at(service, stream=stream, prices="1000000,2000000")
        (found,) = bot.predict([CONTEXT])
        first, asked = asked_about(service)
    assert isinstance(found, Prediction), found
    assert found.calls == {
        "book_table[0]": "call 1",
        "book_table[0].people": "2",
        "find_menu[0]": "call 2",
        "find_menu[0].day": "today",
    }
    assert found.reply == "Let me see."
    # Models of today take no temperature, and are asked without from then on.
    assert first.body == {**asked.body, "temperature": 0}
    assert asked.body["system"] == "You work in a restaurant."
    assert [one["name"] for one in asked.body["tools"]] == ["book_table", "find_menu"]
    usage = usage_of(bot)
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (12, 5, 22)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ("book_table", {"type": "tool", "name": "book_table"}),
    ],
)
def test_how_tools_are_chosen_is_sent(choice: str, sent: object) -> None:
    found, asked = answer_with(BLOCKS, tool_choice=choice)
    assert isinstance(found, Prediction), found
    assert asked.body["tool_choice"] == sent


def test_it_replies_as_well() -> None:
    found, asked = answer_with([text("At nine.")], outcome="reply")
    assert isinstance(found, Prediction), found
    assert found.reply == "At nine."
    assert "tools" not in asked.body


def test_it_is_asked_for_a_belief_state() -> None:
    data = DialogueSet("t", "test", ())
    with official(lambda _: [text('{"table-people": "2"}')]) as service:
        bot = model_at(service, data, outcome="state", prompt=PROMPT)
        (found,) = bot.predict([Context((Exchange("", TURNS[1].user),))])
    assert isinstance(found, Prediction), found
    assert found.state == {"table-people": "2"}


def test_the_token_is_sent_as_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", KEY)
    found, asked = answer_with([text(f"Your key is {KEY}."), *BLOCKS], stream=True)
    assert asked.headers["x-api-key"] == KEY
    assert "authorization" not in asked.headers
    assert isinstance(found, Prediction)
    assert KEY not in f"{found}"


def test_a_header_of_the_user_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", KEY)
    _, asked = answer_with(BLOCKS, header="Authorization: Bearer other")
    assert asked.headers["authorization"] == "Bearer other"
    assert "x-api-key" not in asked.headers


def failing(says: Says) -> TrackerError:
    def answer(asked: Asked) -> Says:
        return says if asked.method == "POST" else Says({"data": [{"id": "tiny"}]})

    with serving(answer) as service:
        (found,) = model_at(service, stream=True).predict([CONTEXT])
    assert isinstance(found, TrackerError)
    return found


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (Says(OVERLOADED, 529), "answered 529"),
        (Says(OVERLOADED), "instead of a message with a list of content"),
        (as_sse([*streamed(BLOCKS)[:4], OVERLOADED]), "ended its stream with an error"),
        (as_sse(streamed(BLOCKS)[:-2]), "before its answer was complete"),
        (as_sse(streamed(BLOCKS, "max_tokens")), "was cut off"),
    ],
)
def test_what_is_no_answer_is_an_error(says: Says, problem: str) -> None:
    assert problem in str(failing(says))


def test_the_simulated_service_is_one_to_the_client_library() -> None:
    """What the other tests ask is what the library's own requests are answered with."""
    sent: Any = {"model": "tiny", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with official(lambda _: BLOCKS) as service:
        client = anthropic.Anthropic(base_url=service.url, api_key="k", max_retries=0)
        with client:
            whole = client.messages.create(**sent)
            with client.messages.stream(**sent) as stream:
                pieces = stream.get_final_message()
    for found in (whole, pieces):
        uses = [block.input for block in found.content if block.type == "tool_use"]
        assert uses == [{"people": 2}, {"day": "today"}]
        assert found.stop_reason == "tool_use"
