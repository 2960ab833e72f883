"""Violations as GitHub's workflow commands, which it shows beside the checks of a commit.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import GateSettings
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.edits import MARGIN, mark_edits, needed_context, shorten
from pytest_dstfuzz.report.explain import change_lines
from pytest_dstfuzz.report.page import encodable
from pytest_dstfuzz.report.tally import plainest

#: What GitHub shows of one kind for one step.
MOST: Final = 10
_DATA: Final[dict[str, str | int | None]] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final[dict[str, str | int | None]] = {**_DATA, ":": "%3A", ",": "%2C"}


def violation_commands(
    results: Sequence[TurnResult],
    settings: GateSettings,
    encoding: str,
    places: Mapping[str, tuple[str, int]] | None = None,
) -> list[str]:
    """Return a command for each of the turns whose violations are the plainest, ten at most.

    Args:
        results: every turn.
        settings: those of the session; violations that fail no test are warnings.
        encoding: of the output; what it does not have is written by number.
        places: id of a turn -> file and line of its test, where it is one of the suite's own.
    """
    level = "error" if settings.fail_on == "violation" else "warning"
    commands = []
    for turn, variant in plainest(results, MOST, each="turn"):
        shown = variant.plain
        lines = [
            *(
                f"turn {index}: {mark_edits(source, edits, margin=MARGIN)}"
                for index, source, edits in needed_context(variant)
            ),
            f"user: {mark_edits(turn.user, shown.edits, margin=MARGIN)}",
            *(shorten(line) for line in change_lines(shown.changed_slots)),
        ]
        title = f"{shorten(turn.id)}, variant {variant.index}"
        place = (places or {}).get(turn.id)
        commands.append(encodable(command(level, title, "\n".join(lines), place), encoding))
    return commands


def command(level: str, title: str, message: str, place: tuple[str, int] | None = None) -> str:
    r"""Return a workflow command, on one line.

    Args:
        level: error or warning.
        title: of the annotation.
        message: its text.
        place: the file, seen from the root of the repository, and the line that it is about.

    >>> command("error", "a: b", "50 %\nmore")
    '::error title=a%3A b::50 %25%0Amore'
    """
    given = {"title": title}
    if place is not None:
        given = {"file": place[0], "line": str(place[1]), **given}
    escaped = ",".join(
        f"{name}={printable(text).translate(str.maketrans(_PROPERTY))}"
        for name, text in given.items()
    )
    return f"::{level} {escaped}::{printable(message).translate(str.maketrans(_DATA))}"
