"""What was recorded beside texts as JSON that people read: tools, messages, other names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pytest_dstfuzz.dialogue.calls import Tool, Transcript, canonical
from pytest_dstfuzz.json_data import from_json


def transcript_json(transcript: Transcript) -> dict[str, Any]:
    """Return a transcript as plain JSON: ``tools``, ``recorded``; if any ``names``, ``results``.

    ``recorded`` has for each exchange the messages before its user utterance, in the form of
    OpenAI's API, or null.
    """
    told: dict[str, Any] = {
        "tools": [
            tool.to_json()["function"] | ({"read_only": True} if tool.read_only else {})
            for tool in transcript.tools
        ],
        "recorded": [
            None if messages is None else [json.loads(one) for one in messages]
            for messages in transcript.before
        ],
    }
    if transcript.names:
        told["names"] = dict(transcript.names)
    if transcript.results:
        told["results"] = [list(pair) for pair in transcript.results]
    return told


def transcript_of_json(data: object) -> Transcript:
    """Build what `transcript_json` wrote; a ``ValueError`` says what is wrong.

    Messages and schemas come back with sorted keys, whatever their texts were.
    """
    form = from_json(_Form, data)
    tools = (
        Tool(one.name, one.description, canonical(one.parameters), one.read_only)
        for one in form.tools
    )
    before = (
        None if messages is None else tuple(map(canonical, messages)) for messages in form.recorded
    )
    return Transcript(tuple(tools), tuple(before), tuple(form.names.items()), results=form.results)


@dataclass(frozen=True, slots=True)
class _ToolForm:
    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    tools: tuple[_ToolForm, ...] = ()
    recorded: tuple[tuple[dict[str, Any], ...] | None, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    results: tuple[tuple[str, str], ...] = ()
