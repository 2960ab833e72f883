"""When two messages make the same calls, and when two values of an argument or a slot are one.

Rules are given as ``--dst-arguments "book_table.people=number"``, in markers, or in a
table of ``pyproject.toml``::

    [tool.dstfuzz.arguments]
    "book_table.people" = "number"
    "*.city" = ["NYC", "New York"]
    "restaurant-time" = "instant"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config.parsers import Option, Value, choice
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import read_table

ARGUMENTS_TABLE: Final = "[tool.dstfuzz.arguments]"
#: Whether the order of calls counts.
CALL_ORDERS: Final = ("any", "exact")

_call = partial(Option, scopes=("test",))


def argument_rule(value: str) -> str:
    """Take ``ARGUMENT=RULE``; the result has no blanks around the two."""
    pattern, equals, rule = (part.strip() for part in value.partition("="))
    if not (pattern and equals and rule):
        raise ValueError(
            "is no rule of an argument or a slot: write ARGUMENT=RULE, such as "
            "book_table.people=number"
        )
    return f"{pattern}={rule}"


def argument_rules(value: str) -> tuple[str, ...]:
    """Take rules of arguments, one a line."""
    return tuple(argument_rule(line) for line in value.split("\n") if line.strip())


def rule_lines(given: object, where: str) -> list[str]:
    """Return rules that were given as a mapping as lines of the option.

    Args:
        given: argument or pattern -> rule: a name, or a list of admissible values; a table within
            it holds what comes after the dot.
        where: messages begin with it.

    Raises:
        UserError: it is none.
    """
    if not isinstance(given, Mapping):
        raise UserError(
            f'{where} must be a table of arguments and rules, such as {{"book_table.people": '
            '"number"}'
        )
    return [f"{pattern}={rule}" for pattern, rule in _flat(given, "", where)]


def _flat(given: Mapping[Any, Any], before: str, where: str) -> Iterator[tuple[str, str]]:
    for name, rule in given.items():
        pattern = f"{before}{name}"
        if isinstance(rule, Mapping):
            yield from _flat(rule, f"{pattern}.", where)
        elif isinstance(rule, str) and "\n" not in rule:
            yield pattern, rule
        elif isinstance(rule, Sequence) and not isinstance(rule, str):
            try:
                yield pattern, json.dumps(list(rule), ensure_ascii=False)
            except (TypeError, ValueError):
                raise UserError(
                    f"{where}: {pattern}: admissible values must be JSON values, not {rule!r}"
                ) from None
        else:
            named = getattr(rule, "__name__", None)
            hint = f': name it as "module:{named}"' if callable(rule) and named else ""
            raise UserError(
                f"{where}: {pattern} must be a rule by its name, or a list of admissible values, "
                f"not {rule!r}{hint}"
            )


def table_rules(path: Path) -> list[str]:
    """Return the rules of the table ``[tool.dstfuzz.arguments]`` as lines of the option."""
    return rule_lines(read_table(path, ARGUMENTS_TABLE), f"{path}: {ARGUMENTS_TABLE}")


CALL_OPTIONS: tuple[Option, ...] = (
    _call(
        "call_order",
        Value(choice("order of calls", CALL_ORDERS), "ORDER"),
        "whether the order counts in which an assistant calls tools: any (default) or exact",
    ),
    _call(
        "arguments",
        Value(argument_rules, "ARGUMENT=RULE", str, "\n"),
        "when two values of a tool's argument, or of a slot of a belief state, are the same, such "
        "as book_table.people=number, '*.id=ignore' or restaurant-time=instant; may be repeated, "
        "the last that fits counts. Rules: auto (default), exact, ignore, number, case, instant, "
        "subset, superset, unordered, text, a JSON list of admissible values, or module:function, "
        "a function of yours of two values",
    ),
)
