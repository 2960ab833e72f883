"""Tool calls over HTTP: a service of one's own, and `dstfuzz serve` around a function."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from loopback import Asked, Says, Service

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, messages_and_tools
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import ask_malformed_again
from pytest_dstfuzz.trackers.web import contract
from pytest_dstfuzz.trackers.web.contract import ContractError

sys.path.append(str(Path(__file__).parents[1] / "chat"))

from table_talk import BOOK, CONTEXT, DATA, DIALOGUE, FIND, MESSAGES

CALL = {"function": {"name": "book_table", "arguments": '{"people": 2, "at": {"day": "2"}}'}}
MESSAGE = {"role": "assistant", "content": "Sure.", "tool_calls": [CALL, CALL]}
SERVE = Callable[[Callable[[Asked], Says]], Service]


def ask(service: Service, **given: Any) -> Prediction | TrackerError:
    settings = Settings.of(model=service.url, outcome="tool-calls", retries=0, **given)
    (found,) = tracker_for(settings, DATA).predict([CONTEXT])
    return found


def test_a_service_gets_messages_and_tools(serve: SERVE) -> None:
    service = serve(lambda asked: Says(MESSAGE if asked.method == "POST" else None))
    found = ask(service)
    assert isinstance(found, Prediction)
    assert found.calls == calls_outcome(calls_of(MESSAGE))
    assert found.reply == "Sure."
    asked = service.asked[-1].body
    assert asked["messages"] == MESSAGES
    assert asked["tools"] == [BOOK.to_json(), FIND.to_json()]
    assert asked["dialogue"][-1]["user"] == CONTEXT.user


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"reply": "At nine."}, "if the service replies to users, use --dst-outcome=reply"),
        ({"state": {}}, "leave --dst-outcome=tool-calls out"),
        ({"choices": [{"message": MESSAGE}]}, "use openai+http://..."),
        ({"tool_call": []}, 'there is a key "tool_call"'),
        ([], "it must be a message"),
        ({"tool_calls": {}}, "instead of a list"),
        ({"tool_calls": [{"function": {"name": "x", "arguments": "{"}}]}, "not valid JSON"),
    ],
)
def test_another_answer_is_told(serve: SERVE, body: object, problem: str) -> None:
    found = ask(serve(lambda asked: Says(body if asked.method == "POST" else None)))
    assert isinstance(found, TrackerError)
    assert problem in str(found)


def test_a_service_whose_model_writes_half_of_a_call_may_be_asked_again(serve: SERVE) -> None:
    half = {"tool_calls": [{"function": {"name": "book_table", "arguments": "{"}}]}
    bodies = [half, half, MESSAGE]
    service = serve(lambda asked: Says(bodies.pop(0) if asked.method == "POST" else None))
    tracker = tracker_for(Settings.of(model=service.url, outcome="tool-calls"), DATA)
    first = tracker.predict([CONTEXT])
    assert isinstance(first[0], MalformedAnswerError)
    found = ask_malformed_again(tracker, [CONTEXT], first)
    assert found.malformed == [2]
    assert isinstance(found.answers[0], Prediction)


@pytest.mark.parametrize("outcome", ["state", "reply"])
def test_a_service_that_calls_tools_is_told_from_others(outcome: Any) -> None:
    with pytest.raises(ContractError, match="--dst-outcome=tool-calls"):
        contract.read_answer(MESSAGE, outcome)


def same(context: Context) -> Context:
    """Return a context as a service of ours reads it."""
    body = json.loads(json.dumps(contract.request_json(context, "tool-calls")))
    return contract.read_request(body, "tool-calls")


def test_what_a_service_reads_is_what_was_sent() -> None:
    for context in (CONTEXT, DIALOGUE.context(0), CONTEXT.saying("A table for thre.")):
        read = same(context)
        assert messages_and_tools(read) == messages_and_tools(context)
        assert read.exchanges == context.exchanges


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"dialogue": []}, '"messages"'),
        ({"messages": MESSAGES[:-1]}, "must end with a user message"),
        ({"messages": MESSAGES, "tools": [{}]}, '"tools"'),
        ({"messages": [{"role": "human", "content": ""}]}, "'user'"),
        ({"dialogues": [[], []], "messages": [MESSAGES]}, "a list of 2 lists"),
    ],
)
def test_a_wrong_request_is_told(body: dict[str, Any], problem: str) -> None:
    read = partial(contract.read_group, most=4) if "dialogues" in body else contract.read_request
    with pytest.raises(ContractError, match=problem):
        read(body, outcome="tool-calls")


def test_a_function_behind_dstfuzz_serve_answers_as_it_does_itself() -> None:
    pytest.importorskip("uvicorn")
    from test_serve import served  # noqa: PLC0415 - needs the extra serve

    def answer(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        if "table" not in messages[-1]["content"]:
            return {"role": "assistant", "content": "I can book tables, say when."}
        told = {"messages": len(messages), "tools": [one["function"]["name"] for one in tools]}
        call = {"name": "book_table", "arguments": {**told, "note": "2", "none": None}}
        return {"role": "assistant", "content": None, "tool_calls": [{"function": call}]}

    contexts = [CONTEXT, DIALOGUE.context(0), *(CONTEXT.saying(f"table {n}") for n in range(9))]
    own = as_tracker(answer, outcome="tool-calls")
    with served(own, outcome="tool-calls") as address:
        settings = Settings.of(model=address, outcome="tool-calls")
        found = tracker_for(settings, DATA).predict(contexts)
    expected = own.predict(contexts)
    assert [(one.calls, one.reply) for one in found] == [(one.calls, one.reply) for one in expected]
    assert expected[0].calls != expected[1].calls == {}
