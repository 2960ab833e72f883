"""The steps from which the sample dialogues are made."""

from __future__ import annotations

from typing import Any, NamedTuple


class Said(NamedTuple):
    """A step in which someone speaks; each wording is used once."""

    who: str
    wordings: tuple[str, ...]


class Called(NamedTuple):
    """A step in which the assistant calls a tool."""

    tool: str
    arguments: dict[str, str]
    result: Any


Step = Said | Called


def user(*wordings: str) -> Said:
    """Return a step in which the user says one of some wordings."""
    return Said("user", wordings)


def assistant(*wordings: str) -> Said:
    """Return a step in which the assistant says one of some wordings."""
    return Said("assistant", wordings)


class Scenario(NamedTuple):
    """One kind of dialogue."""

    name: str
    #: Whose tools are shown.
    domains: tuple[str, ...]
    steps: tuple[Step, ...]
