"""Make a system that can be tested of what a team already has: a function, or an object.

The shortest one is a function that takes the messages so far and returns its reply::

    # my_bot.py                   pytest --dst-model=my_bot:reply --dst-outcome=reply
    def reply(messages):
        question = messages[-1]["content"].lower()
        return "We open at nine." if "open" in question else "Sorry, I do not know."

It may be ``async``, and one whose first parameter is called ``context`` is given a `Context`. An
object with ``reset()`` and ``reply(user)`` is led through each dialogue from its start.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final, cast

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.dialogue.outcome import History
from pytest_dstfuzz.dialogue.writing import messages_of
from pytest_dstfuzz.errors import MalformedAnswerError, UserError
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.adapting import Adapter, FunctionAdapter, as_it_is, made
from pytest_dstfuzz.trackers.rolling import RollingReplies
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, declared

#: What to do about a system that is asked for replies and has none.
LEAVE_OUT: Final = "leave --dst-outcome=reply out"
_MESSAGES: Final = (
    '; your function gets a list of messages, of which the question is messages[-1]["content"]'
)
_OWN_HISTORY: Final = (
    "The bot is an object with reset() and reply(user): it is led through each dialogue by the "
    "user's words alone, so its own replies are the history, and not those that were recorded."
)


class ReplyFunction(FunctionAdapter):
    """A system made of a function from messages (see `messages_of`) to the reply to the last."""

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self._takes_context = first_parameter(wrapped) == "context"
        #: For the message of one that does not take what it is given.
        self.asked_with = "" if self._takes_context else _MESSAGES

    def _call(self, context: Context) -> object:
        return self.wrapped(context if self._takes_context else messages_of(context))

    def _read(self, answer: object) -> Prediction:
        return as_reply(answer, "the reply function")


class StatefulReply(Adapter):
    """A system made of an object with ``reset()`` and ``reply(user)``.

    What was recorded of the system cannot be put into it: its own replies are the history.
    """

    #: For the user, see `notes_of`.
    notes = (_OWN_HISTORY,)

    def _ask(self, context: Context) -> Prediction:
        self._waited(self.wrapped.reset())
        said = [self._waited(self.wrapped.reply(user)) for user in context.user_utterances]
        return as_reply(said[-1], "reply()")


def as_replier(candidate: object, history: History = "recorded") -> Tracker:
    """Return what replies as a `Tracker`, adapted where necessary; else it is a `UserError`.

    It may be a tracker whose predictions have a `Prediction.reply`, an object with ``reset`` and
    ``reply``, one with ``reply`` alone, a function from messages to text, or a class of one of
    these that needs no arguments. Where the ``history`` is its own, it is a `RollingReplies`.
    """
    found = _adapted(made(candidate))
    if history == "recorded" or isinstance(found, RollingReplies | StatefulReply):
        return found
    # An error may stand in the place of an answer, as `Tracker` says.
    return cast("Tracker", RollingReplies(found))


def _adapted(candidate: object) -> Tracker:

    def has(name: str) -> bool:
        return callable(declared(candidate, name))

    if has("predict"):
        return as_it_is(candidate)
    if has("reply"):
        if has("reset"):
            return StatefulReply(candidate)
        return ReplyFunction(declared(candidate, "reply"))
    if has("update") or has("update_turn"):
        raise UserError(f"{describe(candidate)} keeps a belief state and says nothing: {LEAVE_OUT}")
    if callable(candidate):
        return ReplyFunction(candidate)
    raise UserError(
        f"{describe(candidate)} replies to nothing: give a function from messages to its reply, or "
        "an object with reset() and reply(user)"
    )


def as_reply(said: object, who: str) -> Prediction:
    """Return the reply of a system as a prediction, not checked yet; ``who`` returned it."""
    if isinstance(said, Prediction):
        return said
    if isinstance(said, str):
        return Prediction(BeliefState(), reply=said)
    hint = ""
    if isinstance(said, Mapping):
        hint = f"; if it keeps a belief state and says nothing, {LEAVE_OUT}"
    raise MalformedAnswerError(f"{who} must return a text, not {describe(said)}{hint}")


def first_parameter(function: object) -> str:
    """Return the name of the first parameter of a function, or ``""``."""
    try:
        names = [*inspect.signature(cast("type[object]", function)).parameters]
    except (TypeError, ValueError):  # Of some objects that are not written in Python.
        return ""
    return names[0] if names else ""
