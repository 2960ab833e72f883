"""A chat model as a system that replies, against a service on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chat_server import asked_about, chat, completion, refusal
from loopback import Asked, Says, Service

from pytest_dstfuzz.config import build_settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.chat.client import ChatReplies
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, is_repeatable, usage_of

DATA = DialogueSet("toy", "test", ())
CONTEXT = Context((Exchange("Hello!", "Are you open?"), Exchange("Yes.", "On Sunday?")))


def bot_of(service: Service, **given: Any) -> ChatReplies:
    settings = build_settings({"model": f"openai+{service.url}", "outcome": "reply", **given})
    tracker = tracker_for(settings, DATA)
    assert isinstance(tracker, ChatReplies)
    return tracker


def echo(asked: Asked) -> Says:
    return completion(f"{len(asked.body['messages'])} messages")


def roles(asked: Asked) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in asked.body["messages"]]


LATER = [("user", "Are you open?"), ("assistant", "Yes."), ("user", "On Sunday?")]


@pytest.mark.parametrize(
    ("opening", "prompt", "first"),
    [
        ("assistant", "", [("assistant", "Hello!")]),
        ("system", "", [("system", "Hello!")]),
        ("assistant", "Be brief. {{x}}", [("system", "Be brief. {{x}}"), ("assistant", "Hello!")]),
        ("system", "Be brief.", [("system", "Be brief.\n\nHello!")]),
    ],
)
def test_it_is_asked_as_it_is(
    opening: str, prompt: str, first: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "prompt.txt").write_text(f"{prompt}\n", encoding="utf-8")
    how = {"prompt": str(tmp_path / "prompt.txt")} if prompt else {}
    with chat(echo) as service:
        bot = bot_of(service, opening=opening, **how)
        (found,) = bot.predict([CONTEXT])
        (asked,) = asked_about(service)
    assert roles(asked) == [*first, *LATER]
    assert set(asked.body) == {"model", "messages", "temperature"}
    assert isinstance(found, Prediction)
    assert found.reply == f"{len(first) + 3} messages"
    usage = usage_of(bot)
    assert usage is not None
    assert (usage.answers, usage.tokens) == (1, 15)
    assert not is_repeatable(bot, outcome="reply")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (completion("We open at", finish="length"), "was cut off: it reached the limit"),
        (completion(None), "has no text"),
        (refusal(400, "roles must alternate"), "first, put the system's opening words into"),
        (refusal(404, "no such model"), "answered 404"),
    ],
)
def test_what_is_no_reply_is_an_error(answer: Says, message: str) -> None:
    with chat(lambda _: answer) as service:
        (found,) = bot_of(service).predict([CONTEXT])
    assert isinstance(found, TrackerError)
    assert message in str(found)
    assert ("--dst-tracker opening=system" in str(found)) == ("opening words" in message)


def test_an_empty_prompt_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text(" \n", encoding="utf-8")
    with chat(echo) as service, pytest.raises(UserError, match=r"none\.txt: the prompt is empty"):
        bot_of(service, prompt=str(tmp_path / "none.txt"))


def test_the_role_of_the_opening_is_for_systems_that_reply() -> None:
    settings = build_settings({"model": "http://localhost:1", "opening": "system"})
    with pytest.raises(UserError, match=r"opening applies only to bots that reply"):
        tracker_for(settings, DATA)


def test_a_rasa_bot_calls_no_tools() -> None:
    settings = build_settings({"model": "rasa+http://localhost:1", "outcome": "tool-calls"})
    with pytest.raises(UserError, match=r"not its tool calls: leave --dst-outcome=tool-calls out"):
        tracker_for(settings, DATA)
