"""What full rollouts need of recorded dialogues: what tools returned, and the end state.

In a rollout the assistant goes through a dialogue by itself. Its commitment is then not what one
message calls, but all calls that took effect so far.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS, Outcome
from pytest_dstfuzz.dialogue.readers.chat_form import arguments_of, text_of_content


def end_state(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> Outcome:
    """Return all calls that took effect, as an outcome: identical ones count once.

    Those of tools that are said to read only have none.

    >>> two = ToolCall("book", {"people": 2})
    >>> dict(end_state([two, ToolCall("find"), two], [Tool("find", read_only=True)]))
    {'book[0]': 'call 1', 'book[0].people': '2'}
    """
    reading = {tool.name for tool in tools if tool.read_only}
    made = {
        (call.name, canonical(dict(call.arguments))): call
        for call in calls
        if call.name not in reading
    }
    return calls_outcome(made.values())


def rolled_out(data: DialogueSet) -> DialogueSet:
    """Return data for full rollouts.

    The label of a turn becomes the end state of the recording before the next utterance, and each
    dialogue knows what its tools returned.
    """
    return replace(data, dialogues=tuple(map(_rolled_out, data.dialogues)))


def with_history(data: DialogueSet, settings: ReplySettings) -> DialogueSet:
    """Return data as settings ask for it: for full rollouts, where the history is the system's."""
    rolls = settings.outcome == TOOL_CALLS and settings.history == "own"
    return rolled_out(data) if rolls else data


def _rolled_out(dialogue: Dialogue) -> Dialogue:
    after = [*(turn.recorded or () for turn in dialogue.turns[1:]), dialogue.closing]
    calls: list[ToolCall] = []
    turns = []
    for turn, block in zip(dialogue.turns, after, strict=True):
        calls += [call for call, _ in _called(block)]
        known = turn.calls is not None
        turns.append(replace(turn, calls=end_state(calls, dialogue.tools) if known else None))
    results = tuple(
        (canonical([call.name, dict(call.arguments)]), told)
        for block in after
        for call, told in _called(block)
        if told is not None
    )
    return replace(dialogue, turns=tuple(turns), results=results)


def _called(block: Iterable[str]) -> Iterator[tuple[ToolCall, str | None]]:
    """Yield the calls of recorded messages with their results; ``None`` = it has none."""
    messages = [json.loads(text) for text in block]
    results = {
        one.get("tool_call_id"): text_of_content(one.get("content"))
        for one in messages
        if one.get("role") == "tool"
    }
    for message in messages:
        for called in message.get("tool_calls") or ():
            function = called["function"]
            arguments = arguments_of(function.get("arguments") or "")
            if arguments is not None:
                call = ToolCall(function["name"], arguments)
                yield call, results.get(called.get("id"))
