"""Reads schema-guided dialogues as messages with tools, with the right answers at each turn."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Gold:
    """The right answers at one user turn."""

    #: Place of the user's message.
    place: int
    service: str
    #: Name of the tool that the turn is about, None = none.
    active: str | None
    #: Values of the service's slots in all their spellings, before and after the turn.
    before: Mapping[str, list[str]]
    after: Mapping[str, list[str]]
    #: Slot -> where its value stands in the user's text, and in the assistant's text before it.
    spans: Mapping[str, tuple[int, int]]
    heard: Mapping[str, tuple[int, int]]
    #: The call that comes next: name and arguments.
    call: tuple[str, Mapping[str, str]] | None
    #: Canonical spellings that the annotation gives for values of the service.
    canonical: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class SgdDialogue:
    """One dialogue as messages, with its tools."""

    name: str
    tools: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    #: Tool -> its service.
    services: Mapping[str, str]
    turns: list[Gold]


def tools_of(service: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one tool for each intent of a service."""
    slots = {slot["name"]: slot for slot in service["slots"]}

    def parameter(name: str, defaults: Mapping[str, str]) -> dict[str, Any]:
        slot = slots[name]
        found = {"type": "string", "description": slot["description"]}
        if slot["is_categorical"]:
            found["enum"] = slot["possible_values"]
        if defaults.get(name, "dontcare") != "dontcare":
            found["default"] = defaults[name]
        return found

    return [
        {
            "type": "function",
            "function": {
                "name": f"{service['service_name']}_{intent['name']}",
                "description": intent["description"],
                "parameters": {
                    "type": "object",
                    "properties": {
                        name: parameter(name, intent["optional_slots"])
                        for name in (*intent["required_slots"], *intent["optional_slots"])
                    },
                    "required": list(intent["required_slots"]),
                },
            },
        }
        for intent in service["intents"]
    ]


def read_split(archive: Path, split: str, most: int | None = None) -> Iterator[SgdDialogue]:
    """Yield the dialogues of a split in the order of its files."""
    with zipfile.ZipFile(archive) as file:
        schema = json.loads(file.read(f"{split}/schema.json"))
        services = {one["service_name"]: one for one in schema}
        given = 0
        for name in sorted(file.namelist()):
            if "dialogues_" not in name:
                continue
            for entry in json.loads(file.read(name)):
                if given == most:
                    return
                given += 1
                yield _dialogue(entry, services)


def _dialogue(entry: Mapping[str, Any], services: Mapping[str, Any]) -> SgdDialogue:
    tools: list[dict[str, Any]] = []
    owner: dict[str, str] = {}
    for service in entry["services"]:
        for tool in tools_of(services[service]):
            tools.append(tool)
            owner[tool["function"]["name"]] = service
    messages: list[dict[str, Any]] = []
    turns: list[Gold] = []
    states: dict[str, dict[str, list[str]]] = {}
    canonical: dict[str, dict[str, set[str]]] = {}
    spoken = entry["turns"]
    for number, turn in enumerate(spoken):
        for frame in turn["frames"]:
            seen = canonical.setdefault(frame["service"], {})
            for action in frame["actions"]:
                seen.setdefault(action["slot"], set()).update(action["canonical_values"])
            for slot, value in frame.get("service_call", {}).get("parameters", {}).items():
                seen.setdefault(slot, set()).add(value)
        if turn["speaker"] == "USER":
            after = spoken[number + 1] if number + 1 < len(spoken) else None
            before = spoken[number - 1] if number else None
            turns += _gold(len(messages), turn, before, after, states, canonical)
            messages.append({"role": "user", "content": turn["utterance"]})
        else:
            messages += _answer(turn, number)
    return SgdDialogue(entry["dialogue_id"], tools, messages, owner, turns)


def _answer(turn: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    for frame in turn["frames"]:
        call = frame.get("service_call")
        if call:
            name = f"call_{number}"
            called = f"{frame['service']}_{call['method']}"
            function = {"name": called, "arguments": json.dumps(call["parameters"])}
            tool_call = {"id": name, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [tool_call]}
            content = json.dumps(frame.get("service_results", []))
            yield {"role": "tool", "tool_call_id": name, "content": content}
    yield {"role": "assistant", "content": turn["utterance"]}


def _gold(
    place: int,
    turn: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    states: dict[str, dict[str, list[str]]],
    canonical: Mapping[str, Mapping[str, set[str]]],
) -> Iterator[Gold]:
    answered = [frame["service"] for frame in after["frames"]] if after else []
    frames = {frame["service"]: frame for frame in turn["frames"]}
    main = next((one for one in answered if one in frames), next(iter(frames)))
    call = None
    for frame in after["frames"] if after else ():
        if "service_call" in frame:
            made = frame["service_call"]
            call = f"{frame['service']}_{made['method']}", made["parameters"]
    for service, frame in frames.items():
        old, new = states.get(service, {}), frame["state"]["slot_values"]
        states[service] = new
        if service != main:
            continue
        intent = frame["state"]["active_intent"]
        heard = {
            slot["slot"]: (slot["start"], slot["exclusive_end"])
            for given in (before["frames"] if before else ())
            if given["service"] == service
            for slot in given["slots"]
        }
        yield Gold(
            place,
            service,
            None if intent == "NONE" else f"{service}_{intent}",
            old,
            new,
            {s["slot"]: (s["start"], s["exclusive_end"]) for s in frame["slots"]},
            heard,
            call,
            {slot: frozenset(values) for slot, values in canonical.get(service, {}).items()},
        )
