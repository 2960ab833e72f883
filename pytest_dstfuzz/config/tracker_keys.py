"""Keys of trackers behind an address: how a service is reached, and what one kind needs.

They are given as ``--dst-tracker KEY=VALUE``, or in a table of ``pyproject.toml``::

    [tool.dstfuzz.tracker]
    timeout = 60
    header = ["X-Team: bots"]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.parsers import Option, Value
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import read_table

TABLE: Final = "[tool.dstfuzz.tracker]"

#: Kinds of address, as what comes before ``+http(s)`` in it; ``""`` is the own contract.
SERVICES = ("", "rasa", "openai", "anthropic")
#: Kinds behind which a model is asked as it is.
MODELS = ("openai", "anthropic")
#: Whose message is what the system says before the user has said anything.
OPENING_ROLES = ("assistant", "system")

_service = partial(Option, scopes=("place",), of="tracker", kinds=SERVICES)

#: Keys of trackers that are loaded here.
WEIGHT_KEYS: tuple[Option, ...] = (
    Option(
        "checkpoint",
        Value(parsers.text, "PATH"),
        "weights of the tracker instead of the shipped ones",
        scopes=("path", "place", "ini"),
        of="tracker",
    ),
    Option(
        "device",
        Value(parsers.text, "NAME"),
        "device of the tracker: cpu, cuda, cuda:1, ... (default: cpu)",
        scopes=("place", "ini"),
        of="tracker",
    ),
)
TRACKER_KEYS: tuple[Option, ...] = (
    _service(
        "timeout",
        parsers.SECONDS,
        "seconds that one attempt to ask a service may take (default: 30)",
    ),
    _service(
        "retries",
        parsers.count(0, 100),
        "more attempts where a service is busy, fails or does not answer (default: 4)",
    ),
    _service(
        "dead_after",
        parsers.count(0, 1_000_000),
        "after so many requests in a row that nobody answers, for all their attempts, the service "
        "is taken for dead: nothing more is asked, exit status 6 (default: 20; 0: never)",
    ),
    _service(
        "concurrency",
        parsers.count(1, 1024),
        "requests to a service in flight at once, and calls of an async function (default: 16)",
    ),
    _service(
        "rate_limit",
        Value(parsers.positive("requests a second"), "N", float),
        "at most so many requests to a service a second (default: no limit)",
    ),
    _service(
        "header",
        Value(parsers.headers, "'NAME: VALUE'", separator="\n"),
        "send this header to a service; $NAME in the value is taken from the environment; may be "
        "repeated (a list in the table). DSTFUZZ_TOKEN in the environment is sent as a "
        "bearer token",
    ),
    Option(
        "opening",
        Value(parsers.choice("role", OPENING_ROLES), "ROLE"),
        "for --dst-outcome=reply or tool-calls: role of what the system says before the user, "
        "assistant (default) or system, where the user has to speak first",
        of="tracker",
        kinds=SERVICES,
    ),
    Option(
        "slot_map",
        Value(parsers.text, "PATH"),
        "which slot of a Rasa bot is which slot of the data: a TOML or JSON file (default: those "
        "with the same name)",
        scopes=("path", "place"),
        of="tracker",
        kinds=("rasa",),
    ),
    Option(
        "service_model",
        Value(parsers.text, "NAME"),
        "name of the chat model (default: the only one that the service lists)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prompt",
        Value(parsers.text, "PATH"),
        "Jinja2 template of what the chat model is told (default: a shipped one); with "
        "--dst-outcome=reply or tool-calls a text, its system message (default: none)",
        scopes=("path", "place"),
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prices",
        Value(parsers.prices, "IN,OUT", float, separator=","),
        "what a million tokens of prompts and of answers cost, for the report and max-cost",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "stream",
        parsers.SWITCH,
        "whether the chat model's answers are to come in pieces, as programs for people ask for "
        "them (default: no)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "tool_choice",
        Value(parsers.text, "HOW"),
        "for --dst-outcome=tool-calls: how the chat model is to choose among the tools: auto, "
        "required (it calls one at least), none, or the name of a tool (default: nothing is said)",
        of="tracker",
        kinds=MODELS,
    ),
)


KEYS: tuple[str, ...] = tuple(item.name for item in (*WEIGHT_KEYS, *TRACKER_KEYS))
#: What an experiment takes over of a service beside its name.
ADAPTER: tuple[str, ...] = ("tracker", *(item.name for item in TRACKER_KEYS))


def keys_of(kinds: tuple[str, ...]) -> str:
    """Return the keys of some kinds of address as users write them, with commas between."""
    return ", ".join(item.flag for item in TRACKER_KEYS if item.kinds == kinds)


def table_keys(path: Path) -> dict[str, str]:
    """Return the keys of the table ``[tool.dstfuzz.tracker]``, each with its value as text."""
    table = read_table(path, TABLE)
    if not isinstance(table, Mapping):
        raise UserError(f"{path}: {TABLE} must be a table")
    known = {item.name: item for item in (*WEIGHT_KEYS, *TRACKER_KEYS)}
    found: dict[str, str] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        # Of a factory's own parameter nothing is known: what is yes or no is taken too.
        text = known.get(name, Option(name, parsers.SWITCH, "")).text_of(value)
        if text is None:
            several = name in known and known[name].value.separator
            how = "a list of texts" if several else "a text or a number"
            raise UserError(f"{path}: {TABLE}: {key} must be {how}")
        found[name] = text
    return found
