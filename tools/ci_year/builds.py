"""The builds of one bot: a name, a person's label for it, and the class of the bot."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

#: A harmless build answers every text as before. A changed one answers recorded turns otherwise.
#: A brittle one answers recorded turns as before, and some of their misspelt variants otherwise.
Label = Literal["harmless", "changed", "brittle"]
VARIABLE: Final = "CI_YEAR_BUILD"

B = TypeVar("B")


@dataclass(frozen=True)
class Build(Generic[B]):
    """One build: ``name``, its ``label`` and the class of the bot."""

    name: str
    label: Label
    bot: type[B]


BuildTable = tuple[Build[B], ...]


def current(builds: BuildTable[B], trusted: type[B]) -> B:
    """Return the bot of the build that ``CI_YEAR_BUILD`` names; the trusted one if it is unset.

    Raises:
        KeyError: If no build has that name.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return trusted()
    return {build.name: build.bot for build in builds}[name]()
