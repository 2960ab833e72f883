"""Tool calls: what an assistant does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, History, Outcome, argument_texts
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.kinds.kind import AnswerKind, Words


class ToolCalls(AnswerKind):
    """The tools that an assistant calls in a message, with their arguments."""

    name = "tool-calls"
    has_tools = True
    needs_earlier = False
    words = Words(
        who="the assistant",
        what="tool calls",
        short="calls",
        noun="calls",
        several="tool calls",
        answers="answers",
        labels="recorded calls",
        right="right calls",
        accuracy=("share of right messages", "unchanged turns", "recorded message"),
        identifier="tool_calls",
        nothing="calls nothing",
        slot="argument",
        domain="tool",
        does="does",
        empty="no calls",
        are_empty=" call nothing",
        plural=True,
    )

    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the recorded calls."""
        return dialogue.turns[index].calls

    def adds_up(self, history: History) -> bool:
        """Say whether the calls are all those of a rollout."""
        return history == "own"

    def label_values(self, dialogue: Dialogue, index: int) -> Iterator[tuple[str, str]]:
        """Yield the arguments of the recorded calls."""
        for path, text in (self.label(dialogue, index) or {}).items():
            for value in argument_texts({path: text}):
                yield AnswerPath.of(path).part[1], value

    def values(self, data: DialogueSet, turn: Turn, clean: Outcome | None) -> Iterator[str]:
        """Yield the arguments of the calls that are recorded, and of those that are made."""
        del data
        for made in (turn.calls, clean):
            yield from argument_texts(made or {})


TOOL_CALLS: Final = ToolCalls()
