"""Systems in whose history their own replies stand: what they are asked, and how often."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Again, Context, Exchange
from pytest_dstfuzz.errors import GivenUpError, TrackerError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.rolling import RollingReplies
from pytest_dstfuzz.trackers.tracker import BatchInterrupt, Prediction, Usage, notes_of, usage_of
from pytest_dstfuzz.trackers.validation import check_prediction


class Bot:
    """Replies with the dialogue as it sees it; fails, gives up or is interrupted where told."""

    usage = Usage(3)
    fingerprint = "bot 1"

    def __init__(self) -> None:
        self.asked: list[Context] = []

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        answers: list[object] = []
        for context in contexts:
            self.asked.append(context)
            if "stop" in context.user:
                raise BatchInterrupt(dict(enumerate(answers)))
            answers.append(self._reply(context))
        return answers

    def _reply(self, context: Context) -> object:
        if "fail" in context.user:
            return TrackerError("no idea")
        if "gone" in context.user:
            return GivenUpError("the service is dead")
        return "" if "mute" in context.user else "/".join(context.utterances)


def context(*users: str, opening: str = "") -> Context:
    """Return a context in which the system is recorded as saying other things."""
    systems = (opening, *(f"recorded {number}" for number in range(len(users) - 1)))
    return Context(tuple(map(Exchange, systems, users)))


def asked(bot: Bot) -> list[tuple[str, ...]]:
    return [one.utterances for one in bot.asked]


def texts(answers: Sequence[object]) -> list[str]:
    return [check_prediction(answer, outcome="reply").state["reply"] for answer in answers]


def test_its_own_replies_stand_in_the_history() -> None:
    bot = Bot()
    (said,) = texts(RollingReplies(bot).predict([context("a", "b", "c", opening="Hi.")]))
    assert asked(bot) == [
        ("Hi.", "a"),
        ("Hi.", "a", "Hi./a", "b"),
        ("Hi.", "a", "Hi./a", "b", "Hi./a/Hi./a/b", "c"),
    ]
    assert said == "Hi./a/Hi./a/b/Hi./a/Hi./a/b/c"


def test_questions_before_others_are_asked_once() -> None:
    bot = Bot()
    tracker = RollingReplies(bot)
    tracker.predict([context("a"), context("a", "b"), context("a", "b", "c")])
    assert tracker.requests == len(bot.asked) == 3
    # A variant of the last question costs one request, one of the second two.
    tracker.predict([context("a", "b", "x"), context("a", "y", "c")])
    assert tracker.requests == 6
    # The last question of a context is asked each time: whether it agrees with itself is seen.
    tracker.predict([context("a", "b", "c")])
    assert tracker.requests == 7


def test_a_repetition_is_a_dialogue_of_its_own() -> None:
    bot = Bot()
    tracker = RollingReplies(bot)
    tracker.predict([context("a", "b"), Again(context("a", "b").exchanges, 1)])
    assert tracker.requests == 4


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=6))
def test_answers_do_not_depend_on_batches_or_on_what_is_remembered(users: list[list[str]]) -> None:
    contexts = [context(*each) for each in users]
    together = texts(RollingReplies(Bot()).predict(contexts))
    forgetful = RollingReplies(Bot(), memory=1)
    assert together == [texts(forgetful.predict([one]))[0] for one in contexts]


@pytest.mark.parametrize(("word", "why"), [("fail", "no idea"), ("mute", "an empty reply")])
def test_a_reply_that_is_missing_is_a_failure_of_those_that_need_it(word: str, why: str) -> None:
    tracker = RollingReplies(Bot())
    found = tracker.predict([context("a", word, "c"), context("a", "b")])
    assert isinstance(found[0], TrackerError)
    assert str(found[0]).startswith("no reply to the earlier question 2")
    assert why in str(found[0])
    assert texts(found[1:]) == ["a/a/b"]


def test_a_system_that_gives_up_is_not_asked_on() -> None:
    found = RollingReplies(Bot()).predict([context("gone", "b")])
    assert isinstance(found[0], GivenUpError)


def test_an_interrupt_loses_no_reply_that_is_there() -> None:
    bot = Bot()
    with pytest.raises(BatchInterrupt) as stopped:
        RollingReplies(bot).predict([context("a"), context("b", "c"), context("b", "stop")])
    assert {place: str(said) for place, said in stopped.value.answers.items()} == {
        0: "a",
        1: "b/b/c",
    }


def test_it_says_what_the_system_says_of_itself() -> None:
    tracker = as_tracker(Bot(), outcome="reply", history="own")
    assert isinstance(tracker, RollingReplies)
    assert as_tracker(tracker, outcome="reply", history="own") is tracker
    assert (tracker.fingerprint, tracker.repeatable, usage_of(tracker)) == ("bot 1", None, Usage(3))
    assert "--dst-history=own" in notes_of(tracker)[0]


def test_a_function_is_wrapped_too() -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        return str(len(messages))

    tracker = as_tracker(reply, outcome="reply", history="own")
    (found,) = tracker.predict([context("a", "b")])
    assert isinstance(found, Prediction)
    assert found.reply == "3"
    assert usage_of(tracker) == Usage(2, 2)
