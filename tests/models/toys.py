"""Tools of our own for the tests of the assistant, and ways to talk to it."""

from __future__ import annotations

import json
from typing import Any


def tool(name: str, description: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


WEATHER = tool(
    "get_weather",
    "Get the weather of a city on a date",
    {"city": text("Name of the city"), "date": text("Date of the forecast")},
    "city",
)
TABLE = tool(
    "reserve_table",
    "Make a table reservation at a restaurant",
    {
        "restaurant_name": text("Name of the restaurant"),
        "time": text("Time of the reservation"),
        "party_size": {"type": "integer", "description": "Number of people in the party"},
    },
    *("restaurant_name", "time", "party_size"),
)
MUSIC = tool(
    "play_song",
    "Play a song on a device",
    {
        "song": text("Title of the song"),
        "room": {"type": "string", "description": "Room to play in", "enum": ["kitchen", "attic"]},
    },
    "song",
)
TOOLS = [WEATHER, TABLE, MUSIC]


def user(said: str) -> dict[str, Any]:
    return {"role": "user", "content": said}


def assistant(said: str) -> dict[str, Any]:
    return {"role": "assistant", "content": said}


def calls(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
