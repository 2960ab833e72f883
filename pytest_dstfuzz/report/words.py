"""What reports call the things they are about: those who keep a state, and those who reply."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import ByLabel
from pytest_dstfuzz.dialogue.outcome import REPLY, TOOL_CALLS, OutcomeKind, who_answers

#: A judgement by the label -> in words.
BY_LABEL: Final[dict[ByLabel, str]] = {
    "right-to-wrong": "was right, now wrong",
    "corrected": "was wrong, now right",
    "wrong-to-wrong": "wrong either way",
}


class Words(NamedTuple):
    """The words for one kind of outcome."""

    #: Who answers.
    who: str
    #: What is tested of an answer, and its short form.
    what: str
    short: str
    #: What answers are called, and what says that they are right, each of many.
    answers: str
    labels: str
    #: Name of the share of those that are right.
    right: str
    #: Whether an answer has several values, each with a name.
    values: bool
    #: What such a name is, and what several of them belong to.
    slot: str = "slot"
    domain: str = "domain"
    #: What somebody who answers otherwise does otherwise.
    does: str = "says"
    #: What an answer without any value is, and what is to be said of many such.
    empty: str = "empty answers"
    are_empty: str = ", which hardly any variant can change"
    #: Whether ``short`` names several things.
    plural: bool = False

    @property
    def do(self) -> str:
        """The verb of ``short``."""
        return "do" if self.plural else "does"


_OF_STATES: Final = Words(
    who_answers("state"),
    "belief state",
    "state",
    "answers",
    "labels",
    "accuracy",
    True,
    does="believes",
)
_OF_REPLIES: Final = Words(
    who_answers(REPLY), "reply", "reply", "replies", "recorded answers", "right replies", False
)


_OF_CALLS: Final = Words(
    who_answers(TOOL_CALLS),
    "tool calls",
    "calls",
    "answers",
    "recorded calls",
    "right calls",
    True,
    "argument",
    "tool",
    "does",
    "no calls",
    " call nothing",
    plural=True,
)
_WORDS: Final = {REPLY: _OF_REPLIES, TOOL_CALLS: _OF_CALLS}


def words_of(kind: OutcomeKind) -> Words:
    """Return the words for a kind of outcome.

    >>> words_of("reply").what
    'reply'
    """
    return _WORDS.get(kind, _OF_STATES)


def expectation(text: str, kind: OutcomeKind) -> str:
    """Return what a relation expects, in the words for a kind of outcome.

    >>> expectation("the state stays as it is", "reply")
    'the answer stays as it is'
    >>> expectation("the state stays as it is", "tool-calls")
    'the calls stay as they are'
    """
    if kind == TOOL_CALLS:
        return re.sub(r"\bstate stays as it is\b", "calls stay as they are", text)
    return re.sub(r"\bstate(s?)\b", r"answer\1", text) if kind == REPLY else text
