"""Functions and objects that reply, as systems that can be tested; what replies to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange, messages_of
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.replies import StatefulReply, as_replier
from pytest_dstfuzz.trackers.tracker import Prediction, notes_of
from pytest_dstfuzz.trackers.validation import check_prediction

CONTEXT = Context((Exchange("Hello!", "Are you open?"), Exchange("Yes.", "And on Sunday?")))


def reply(messages: list[dict[str, str]]) -> str:
    """The ten-line form of the documentation."""
    return f"{len(messages)}: {messages[-1]['content']}"


async def slow(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return reply(messages)


def of_context(context: Context) -> str:
    return context.user


class Session:
    """Counts what it hears; leaks where it is not reset."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def reset(self) -> None:
        self.heard.clear()

    def reply(self, user: str) -> str:
        self.heard.append(user)
        return " | ".join(self.heard)


class SlowSession(Session):
    async def reset(self) -> None:  # type: ignore[override]  # As bots of async frameworks do.
        super().reset()

    async def reply(self, user: str) -> str:  # type: ignore[override]  # Likewise.
        return super().reply(user)


class Named:
    def reply(self, messages: list[dict[str, str]]) -> str:
        return reply(messages)


class Batched:
    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState(), reply=context.user) for context in contexts]


class Keeper:
    def reset(self) -> None: ...

    def update(self, _: str, __: str) -> dict[str, str]:
        return {}


def test_a_dialogue_is_messages_in_turn() -> None:
    later = [
        {"role": "user", "content": "Are you open?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And on Sunday?"},
    ]
    assert messages_of(CONTEXT) == [{"role": "assistant", "content": "Hello!"}, *later]
    assert messages_of(CONTEXT, "system")[0] == {"role": "system", "content": "Hello!"}
    assert messages_of(CONTEXT, "system")[1:] == later
    silent = Context((Exchange("", "Hi"), Exchange("", "Hello?")))
    assert [one["role"] for one in messages_of(silent)] == ["user", "user"]


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (reply, "4: And on Sunday?"),
        (slow, "4: And on Sunday?"),
        (of_context, "And on Sunday?"),
        (Named, "4: And on Sunday?"),
        (Named(), "4: And on Sunday?"),
        (Session, "Are you open? | And on Sunday?"),
        (SlowSession(), "Are you open? | And on Sunday?"),
        (Batched, "And on Sunday?"),
        (lambda messages: Prediction(BeliefState(), reply=messages[0]["role"]), "assistant"),
    ],
)
def test_what_replies_is_a_system(system: Any, said: str) -> None:
    found = as_tracker(system, outcome="reply").predict([CONTEXT, CONTEXT])
    assert [answer.reply for answer in found] == [said, said]


def test_of_a_session_the_user_hears_that_its_own_replies_are_the_history() -> None:
    tracker = as_replier(Session())
    assert isinstance(tracker, StatefulReply)
    (note,) = notes_of(tracker)
    assert "consists of its own replies" in note
    assert as_replier(tracker, "own") is tracker


@pytest.mark.parametrize(
    ("system", "why"),
    [
        (lambda _: None, "must return a text, not None"),
        (lambda _: 3, "must return a text, not int 3"),
        (
            lambda _: {"a": "b"},
            "keeps a belief state and does not reply, leave --dst-outcome=reply",
        ),
    ],
)
def test_what_is_no_text_is_no_reply(system: Any, why: str) -> None:
    (answer,) = as_replier(system).predict([CONTEXT])
    assert isinstance(answer, MalformedAnswerError)
    assert why in str(answer)


@pytest.mark.parametrize("system", [Keeper(), Keeper])
def test_what_keeps_a_state_alone_says_nothing(system: object) -> None:
    with pytest.raises(UserError, match=r"does not reply: leave --dst-outcome=reply out"):
        as_replier(system)


def test_what_is_no_system_replies_to_nothing() -> None:
    with pytest.raises(UserError, match=r"int 3 cannot reply: give a function that takes messages"):
        as_replier(3)


def test_a_prediction_of_a_state_alone_is_no_reply() -> None:
    with pytest.raises(
        TrackerError, match=r"a BeliefState instead of a text as the reply.*leave --dst"
    ):
        check_prediction(Prediction(BeliefState({"a": "b"})), outcome="reply")
    with pytest.raises(TrackerError, match=r"the bot returned no reply$"):
        check_prediction(Prediction(BeliefState()), outcome="reply")


def test_trackers_that_ship_say_nothing() -> None:
    said = "trade keeps a belief state and does not reply: leave --dst-outcome=reply out"
    with pytest.raises(UserError, match=said):
        resolve_tracker("trade", outcome="reply")


@pytest.mark.parametrize("system", [reply, slow, Session])
def test_a_system_that_replies_is_told_apart_where_states_are_tested(system: object) -> None:
    with pytest.raises(
        UserError, match=r"replies to messages .*: add --dst-outcome=reply"
    ) as caught:
        as_tracker(system)
    assert "<function" not in str(caught.value)


def test_a_function_that_returns_text_is_told_apart_where_states_are_tested() -> None:
    (answer,) = as_tracker(of_context).predict([CONTEXT])
    assert isinstance(answer, MalformedAnswerError)
    assert "if the system replies to users, add --dst-outcome=reply" in str(answer)
