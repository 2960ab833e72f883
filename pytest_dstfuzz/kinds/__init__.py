"""Internal: the kinds of answers under test: states, replies and tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS

__all__ = ["KINDS"]

#: Name in options and reports -> kind of answer.
KINDS: Final[Mapping[OutcomeKind, AnswerKind]] = {
    kind.name: kind for kind in (BELIEF_STATES, REPLIES, TOOL_CALLS)
}
