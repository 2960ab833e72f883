"""One setting as the user sees it: its names, how its text is read, what help says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as the user sees it.

    ``name`` is the field of `Settings`; pytest spells it ``--dst-<name>`` and
    ``dst_<name>`` (ini), the ``dstfuzz`` command ``--<name>``, a marker ``<name>``,
    with dashes or underscores as is usual there.
    """

    name: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    #: Whether a marker may set it for one test.
    per_test: bool = False
    #: What parts several values in one text; ``""`` = it takes one value.
    separator: str = ""
    #: What it says when the command line gives it without a value; ``""`` = it takes one there.
    alone: str = ""

    @property
    def flag(self) -> str:
        """The name with dashes."""
        return self.name.replace("_", "-")
