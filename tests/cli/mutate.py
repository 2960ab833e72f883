"""Damage to a JSON value, drawn with a seed: one change somewhere in it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

#: What may stand in the place of a value.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3.5, 10**30, -(10**30), 1e308, float("nan"), float("inf")),
    *("", "north", "\ud800", "\x1b[31m", "x" * 5000, [], {}, [[]], [None], {"": None}, [1, 2, 3]),
    *({"a": {"b": []}}, [{"a": 1}], ["a", "b"]),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a value but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        yield (*at, name)
        if isinstance(item, dict | list):
            yield from places(item, (*at, name))


def damaged(value: Any, draws: random.Random) -> tuple[str, Any]:
    """Return a description of a change, and a copy of ``value`` that has it."""
    new = json.loads(json.dumps(value))  # a third of the time of a deep copy
    path = draws.choice(list(places(new)))
    inner = new
    for name in path[:-1]:
        inner = inner[name]
    last, how = path[-1], draws.choice(("odd", "odd", "gone", "twice", "swap", "type"))
    where = ".".join(map(str, path))
    if how == "gone":
        del inner[last]
    elif how == "twice" and isinstance(inner, list):
        inner.insert(last, copy.deepcopy(inner[last]))
    elif how == "swap":
        other = draws.choice(list(places(value)))
        found = value
        for name in other:
            found = found[name]
        inner[last] = copy.deepcopy(found)
        how = f"as {'.'.join(map(str, other))}"
    elif how == "type":
        inner[last] = [inner[last]] if draws.random() < 0.5 else str(inner[last])
    else:
        inner[last] = draws.choice(ODD)
        how = f"{inner[last]!r:.40}"
    return f"{where}: {how}", new


def damaged_text(value: Any, draws: random.Random) -> tuple[str, str]:
    """Return a description of damage to the JSON of a value, and the text that has it."""
    text = json.dumps(value)
    kind = draws.choice(("value", "value", "value", "value", "cut", "letter"))
    if kind == "value":
        what, new = damaged(value, draws)
        return what, json.dumps(new)
    at = draws.randrange(len(text))
    if kind == "cut":
        return f"cut at {at}", text[:at]
    letter = draws.choice('{}[]",:0 9x\\\ud800\x00')
    return f"{letter!r} at {at}", text[:at] + letter + text[at + 1 :]
