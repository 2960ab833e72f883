"""Replies: the texts of a bot."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.dialogue.calls import REPLY, Outcome, reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, answer_of
from pytest_dstfuzz.kinds.kind import AnswerKind, Words


class Replies(AnswerKind):
    """The replies of a bot. They contain no values that the user gave."""

    name = "reply"
    has_exact_labels = False
    words = Words(
        who="the bot",
        what="reply",
        short="reply",
        noun="answer",
        several="replies",
        answers="replies",
        labels="recorded answers",
        right="right replies",
        accuracy=("share of right replies", "clean questions", "recorded answer"),
        identifier="reply",
        nothing="says nothing",
        are_right="agree with the recorded ones",
        values=False,
    )

    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the recorded reply, if there is one."""
        recorded = answer_of(dialogue, index)
        return reply_outcome(recorded) if recorded else None

    def text(self, answer: Outcome) -> str:
        """Return the reply."""
        return answer.get(REPLY, "")


REPLIES: Final = Replies()
