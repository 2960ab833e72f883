"""The tools of the sample dialogues: five invented assistants with two tools each."""

from __future__ import annotations

from typing import Any, Final

CUISINES: Final = ("Italian", "Indian", "Thai", "Greek", "Mexican", "vegetarian")
AREAS: Final = ("north", "south", "harbour", "old town")
BRANCHES: Final = ("Central", "Riverside", "Hillside")
SERVICES: Final = ("haircut", "massage", "dental check-up", "eye test")


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _one_of(description: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {**_text(description), "enum": list(values)}


def _count(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 1}


def _tool(
    name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


#: Domain -> its tools.
TOOLS: Final[dict[str, list[dict[str, Any]]]] = {
    "dining": [
        _tool(
            "find_restaurant",
            "Search for a restaurant by cuisine and part of town",
            {
                "cuisine": _one_of("Kind of food that the restaurant serves", CUISINES),
                "area": _one_of("Part of town where the restaurant is", AREAS),
            },
        ),
        _tool(
            "book_table",
            "Reserve a table at a restaurant",
            {
                "restaurant": _text("Name of the restaurant"),
                "date": _text("Date of the reservation"),
                "time": _text("Time of the reservation"),
                "people": _count("Number of people at the table"),
            },
        ),
    ],
    "weather": [
        _tool(
            "get_weather",
            "Get the weather forecast of a city on a date",
            {"city": _text("Name of the city")},
            {"date": _text("Date of the forecast")},
        )
    ],
    "taxi": [
        _tool(
            "book_taxi",
            "Order a taxi for a ride",
            {
                "departure": _text("Location from which the taxi departs"),
                "destination": _text("Address or location that the taxi goes to"),
                "time": _text("Time at which the taxi leaves"),
            },
            {"passengers": _count("Number of passengers in the taxi")},
        )
    ],
    "library": [
        _tool(
            "find_books",
            "Search the books of the library by author",
            {"author": _text("Name of the author of the book")},
        ),
        _tool(
            "reserve_book",
            "Reserve a book for pickup at a branch of the library",
            {
                "title": _text("Title of the book"),
                "branch": _one_of("Branch of the library", BRANCHES),
            },
        ),
    ],
    "parcels": [
        _tool(
            "track_parcel",
            "Track a parcel and find out where it is",
            {"tracking_number": _text("Tracking number of the parcel")},
        )
    ],
    "appointments": [
        _tool(
            "book_appointment",
            "Make an appointment at the centre",
            {
                "service": _one_of("Kind of service that the appointment is for", SERVICES),
                "date": _text("Date of the appointment"),
                "time": _text("Time of the appointment"),
            },
        )
    ],
}
