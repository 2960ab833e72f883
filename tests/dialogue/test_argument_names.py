"""Names of arguments as the tools know them, for limits of a session."""

from __future__ import annotations

import json

import pytest

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.ontology import arguments_of, is_argument

SCHEMA = {"type": "object", "properties": {"people": {}, "guest": {"type": "object"}}}
TOOLS = (Tool("bank.pay"), Tool("book", parameters=json.dumps(SCHEMA)))


def test_each_tool_and_argument_has_a_name() -> None:
    assert arguments_of(TOOLS) == ("bank.pay", "book", "book.people", "book.guest")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("book", True),
        ("book.people", True),
        ("book.guest.name", True),
        ("book.guest[0].name", True),
        ("bank.pay.amount", True),  # Its schema names no arguments.
        ("book.peple", False),
        ("bok.people", False),
        ("bank", False),
    ],
)
def test_a_typing_error_is_no_argument(name: str, known: bool) -> None:
    assert is_argument(name, TOOLS) == known
