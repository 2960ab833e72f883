"""The schema-guided dialogues (SGD): a list of dialogues in each file, and a schema beside them.

The form is that of MultiWOZ 2.2, with three differences: slots are named within their service
(``Restaurants_2``, slot ``date``), a user turn has the states of those services alone that it is
about, and a value stands there in all the spellings in which it was said so far.

With tools (the intents of the schema) the calls that the system made of its services are read, too:
each as a message before the utterance of the system, with its results after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from pytest_dstfuzz.dialogue.calls import Tool, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.chat_form import Message, Oddities
from pytest_dstfuzz.dialogue.readers.messages import turns_of
from pytest_dstfuzz.dialogue.readers.sgd_schema import tool_name
from pytest_dstfuzz.dialogue.readers.source import SourceFile, as_state, checked
from pytest_dstfuzz.errors import DataError, nearest


class _ServiceState(msgspec.Struct):
    slot_values: dict[str, list[str]] = {}


class _ServiceCall(msgspec.Struct):
    method: str
    parameters: dict[str, Any]


class _ServiceFrame(msgspec.Struct):
    service: str
    #: Frames of the system have none.
    state: _ServiceState | None = None
    #: Only frames of the system may have one.
    service_call: _ServiceCall | None = None
    service_results: list[dict[str, Any]] = []


class _Spoken(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = ()


class _Conversation(msgspec.Struct):
    dialogue_id: str
    turns: list[_Spoken]
    services: list[str] = []


def read_sgd(
    file: SourceFile, normalisation: str, tools: Mapping[str, tuple[Tool, ...]] | None = None
) -> Iterator[Dialogue]:
    """Yield the dialogues of one file; slots are called ``service-slot``.

    A service keeps its state until a turn has another one. Of several spellings of a value that
    of the turn before is taken where it is still there, else the first. With the ``tools`` of each
    service the calls are read, too.
    """
    for entry, place in file.entries(_Conversation, "dialogue_id"):
        turns: list[Turn] = []
        system = ""
        states: dict[str, dict[str, str]] = {}
        for number, said in enumerate(entry.turns):
            if said.speaker.upper() != "USER":
                system = said.utterance
                continue
            where = f"{place}, utterance {number}"
            for frame in checked(list[_ServiceFrame], said.frames, f"{where}: 'frames'"):
                if frame.state is not None:
                    before = states.get(frame.service, {})
                    states[frame.service] = _values(frame.state.slot_values, before)
            label = {
                f"{service}-{slot}": value
                for service, values in states.items()
                for slot, value in values.items()
            }
            state = as_state(label, where, normalisation)
            turns.append(Turn(len(turns), system, said.utterance, state))
            system = ""
        dialogue = Dialogue(entry.dialogue_id, tuple(turns))
        yield dialogue if tools is None else _with_calls(dialogue, entry, place, tools)


def _with_calls(
    dialogue: Dialogue, entry: _Conversation, place: str, tools: Mapping[str, tuple[Tool, ...]]
) -> Dialogue:
    """Return a dialogue with its calls; the states of its turns stay."""
    unknown = next((name for name in entry.services if name not in tools), None)
    if unknown is not None:
        close = nearest(unknown, tools)
        hint = f" Did you mean {close!r}?" if close else ""
        raise DataError(f"{place}: the service {unknown!r} is not in the schema.{hint}")
    messages: list[Message] = []
    for number, said in enumerate(entry.turns):
        if said.speaker.upper() == "USER":
            messages.append({"role": "user", "content": said.utterance})
            continue
        frames = checked(list[_ServiceFrame], said.frames, f"{place}, utterance {number}: 'frames'")
        messages += _called(frames, len(messages))
        messages.append({"role": "assistant", "content": said.utterance})
    turns, closing = turns_of(messages, place, Oddities())
    if len(turns) != len(dialogue.turns):
        raise DataError(f"{place}: an utterance of the user is empty; leave it out")
    labelled = (
        replace(turn, state=before.state)
        for turn, before in zip(turns, dialogue.turns, strict=True)
    )
    offered = tuple(tool for name in entry.services for tool in tools[name])
    return Dialogue(dialogue.id, tuple(labelled), offered, closing)


def _called(frames: Sequence[_ServiceFrame], first: int) -> list[Message]:
    """Return the message with the calls of one turn of the system, and those with their results."""
    calls: list[Message] = []
    results: list[Message] = []
    for number, frame in enumerate(frames, start=first):
        call = frame.service_call
        if call is None:
            continue
        function = {
            "name": tool_name(frame.service, call.method),
            "arguments": canonical(call.parameters),
        }
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
        content = canonical(frame.service_results)
        results.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})
    made = [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
    return [*made, *results]


def _values(given: Mapping[str, list[str]], before: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for slot, spellings in given.items():
        if spellings:
            old = before.get(slot)
            found[slot] = old if old in spellings else spellings[0]
    return found
