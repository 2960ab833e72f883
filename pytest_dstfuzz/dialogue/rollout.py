"""What full rollouts need of recorded dialogues: what tools returned, and the end state.

In a rollout the assistant goes through a dialogue by itself. Its commitment is then not what one
message calls, but all calls that took effect so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.messages import decoded
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS, Outcome
from pytest_dstfuzz.dialogue.spool import gathered


def end_state(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> Outcome:
    """Return all calls that took effect, as an outcome: of those of one `loose_key` the first.

    Those of tools that are said to read only have none.

    >>> two = ToolCall("book", {"people": 2})
    >>> dict(end_state([two, ToolCall("find"), two], [Tool("find", read_only=True)]))
    {'book[0]': 'call 1', 'book[0].people': '2'}
    """
    tools = tuple(tools)
    reading = {tool.name for tool in tools if tool.read_only}
    left_out = defaults_of(tools)
    made: dict[str, ToolCall] = {}
    for call in calls:
        if call.name not in reading:
            made.setdefault(loose_key(call, left_out), call)
    return calls_outcome(made.values())


def loose_key(call: ToolCall, left_out: Mapping[str, object]) -> str:
    """Return what is the same text for calls that a tool would take for one.

    Their arguments are the same but for capitals, outer blanks, ``"2"`` for 2, null, and what the
    tool takes where nothing is said (`defaults_of`).
    """
    given = {
        name: told
        for name, value in call.arguments.items()
        if (told := _loosely(value)) is not None and left_out.get(f"{call.name}.{name}") != told
    }
    return canonical([call.name, given])


def defaults_of(tools: Iterable[Tool], names: Mapping[str, str] | None = None) -> dict[str, object]:
    """Return ``tool.argument`` -> what it is where nobody says, in the form of `loose_key`.

    ``names`` says what tools and arguments are called instead, see `Transcript.names`.
    """
    found = {}
    for tool in tools:
        properties = tool.schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if isinstance(inner, dict) and "default" in inner:
                own = f"{tool.name}.{name}"
                found[(names or {}).get(own, own)] = _loosely(inner["default"])
    return found


def _loosely(value: object) -> object:
    """Return a JSON value in the form in which it is looked up."""
    if isinstance(value, Mapping):
        return {name: _loosely(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_loosely(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).casefold()
    if isinstance(value, str | int | float):
        text = str(value).strip().casefold()
        with suppress(ValueError):
            return float(text)
        return text
    return value


def rolled_out(data: DialogueSet) -> DialogueSet:
    """Return data for full rollouts.

    The label of a turn becomes the end state of the recording before the next utterance, and each
    dialogue knows what its tools returned.
    """
    return replace(data, dialogues=gathered(map(_rolled_out, data.dialogues)))


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
    made: list[ToolCall | None] = []
    results: dict[int, str] = {}
    # An id may be that of a later call once its own call has a result.
    waiting: dict[str, int] = {}
    for message in map(decoded, block):
        if message.role == "tool":
            place = waiting.pop(message.answers or "", None)
            if place is not None:
                results[place] = message.text
        for called in message.calls:
            waiting[called.id] = len(made)
            made.append(called.call)
    for place, call in enumerate(made):
        if call is not None:
            yield call, results.get(place)
