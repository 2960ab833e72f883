"""Keys of trackers behind an address: how a service is reached, and what one kind needs."""

from __future__ import annotations

from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.parsers import Option, Value

#: Kinds of address, as what comes before ``+http(s)`` in it; ``""`` is the own contract.
SERVICES = ("", "rasa", "openai")

TRACKER_KEYS: tuple[Option, ...] = (
    Option(
        "timeout",
        Value(parsers.positive("seconds"), "S", float),
        "seconds that one attempt to ask a service may take (default: 30)",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "retries",
        Value(parsers.integer(0, 100), "N", int),
        "more attempts where a service is busy, fails or does not answer (default: 4)",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "dead_after",
        Value(parsers.integer(0, 1_000_000), "N", int),
        "after so many requests in a row that nobody answers, for all their attempts, the service "
        "is taken for dead: nothing more is asked, exit status 6 (default: 20; 0: never)",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "concurrency",
        Value(parsers.integer(1, 1024), "N", int),
        "requests to a service in flight at once (default: 16)",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "rate_limit",
        Value(parsers.positive("requests a second"), "N", float),
        "at most so many requests to a service a second (default: no limit)",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "header",
        Value(parsers.headers, "'NAME: VALUE'", separator="\n"),
        "send this header to a service; $NAME in the value is taken from the environment; may be "
        "repeated (one a line in an ini file). DSTFUZZ_TOKEN in the environment is sent as a "
        "bearer token",
        scopes=("place",),
        kinds=SERVICES,
    ),
    Option(
        "slot_map",
        Value(parsers.text, "PATH"),
        "which slot of a Rasa bot is which slot of the data: a TOML or JSON file (default: those "
        "with the same name)",
        scopes=("path", "place"),
        kinds=("rasa",),
    ),
    Option(
        "service_model",
        Value(parsers.text, "NAME"),
        "name of the chat model (default: the only one that the service lists)",
        kinds=("openai",),
    ),
    Option(
        "prompt",
        Value(parsers.text, "PATH"),
        "Jinja2 template of what the chat model is told (default: a shipped one)",
        scopes=("path", "place"),
        kinds=("openai",),
    ),
    Option(
        "prices",
        Value(parsers.prices, "IN,OUT", float, separator=","),
        "what a million tokens of prompts and of answers cost, for the report and max-cost",
        kinds=("openai",),
    ),
)
