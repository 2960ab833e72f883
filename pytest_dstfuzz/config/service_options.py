"""The part of the option table that is about trackers behind an address."""

from __future__ import annotations

from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.option import Option

SERVICE_OPTIONS: tuple[Option, ...] = (
    Option(
        "timeout",
        parsers.positive("seconds"),
        "S",
        "seconds that one attempt to ask a service may take (default: 30)",
    ),
    Option(
        "retries",
        parsers.integer(0, 100),
        "N",
        "more attempts where a service is busy, fails or does not answer (default: 4)",
    ),
    Option(
        "dead_after",
        parsers.integer(0, 1_000_000),
        "N",
        "after so many requests in a row that nobody answers, for all their attempts, the service "
        "is taken for dead: nothing more is asked, exit status 6 (default: 20; 0: never)",
    ),
    Option(
        "concurrency",
        parsers.integer(1, 1024),
        "N",
        "requests to a service in flight at once (default: 16)",
    ),
    Option(
        "rate_limit",
        parsers.positive("requests a second"),
        "N",
        "at most so many requests to a service a second (default: no limit)",
    ),
    Option(
        "header",
        parsers.headers,
        "'NAME: VALUE'",
        "send this header to a service; $NAME in the value is taken from the environment; may be "
        "repeated (one a line in an ini file). DSTFUZZ_TOKEN in the environment is sent as a "
        "bearer token",
        separator="\n",
    ),
    Option(
        "slot_map",
        parsers.text,
        "PATH",
        "which slot of a Rasa bot is which slot of the data: a TOML or JSON file (default: those "
        "with the same name)",
    ),
    Option(
        "service_model",
        parsers.text,
        "NAME",
        "name of the chat model (default: the only one that the service lists)",
    ),
    Option(
        "prompt",
        parsers.text,
        "PATH",
        "Jinja2 template of what the chat model is told (default: a shipped one)",
    ),
    Option(
        "prices",
        parsers.prices,
        "IN,OUT",
        "what a million tokens of prompts and of answers cost, for the report and max-cost",
        separator=",",
    ),
)
