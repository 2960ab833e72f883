"""How far a bot's own replies lie apart: what it says differently by itself is no violation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.page import Style
from pytest_dstfuzz.totals.tallies import UNKNOWN

#: Of the turns, ordered by how far their replies lie apart.
_MOST_TURNS: Final = 0.95
#: The threshold in the name of a comparison.
_THRESHOLD: Final = re.compile(r"<=([\d.]+)")


def spread_texts(turns: Sequence[tuple[float, ...]], compared: str) -> Iterator[tuple[str, Style]]:
    """Yield sentences about how a bot's replies to one and the same turn differ.

    Args:
        turns: as `SpreadTally.rows` returns them.
        compared: the names of the comparisons, with their thresholds.
    """
    spreads = [row for row in turns if row[2] != UNKNOWN]
    if not turns:
        return
    if not spreads:
        if any(replied for replied, *_ in turns):
            why = "by --dst-error-rate=no, or since the bot says that it repeats itself"
            yield f"not measured: each clean turn was asked once, {why}", "plain"
        return
    unstable = int(sum(row[1] for row in turns))
    one = sum(kinds <= 1 for *_, kinds, _ in spreads)
    least = min(answers for _, _, answers, *_ in spreads)
    text = (
        f"{counted(len(spreads), 'clean turn')}, each asked {least:.0f} times or more: replies "
        f"of one kind to {one:,}, of several to {len(spreads) - one - unstable:,}"
    )
    if unstable:
        text += (
            f"; {unstable:,} not tested, as the replies to them agree too seldom: "
            "--dst-compare says when two say the same"
        )
    yield f"{text}. What it says to the clean turn is no violation", "plain"
    if distances := sorted(largest for *_, largest in spreads if largest != UNKNOWN):
        yield from _distances(distances, _THRESHOLD.search(compared))


def _distances(
    distances: Sequence[float], allowed: re.Match[str] | None
) -> Iterator[tuple[str, Style]]:
    """Yield how far replies to one turn lie apart, and where that is farther than is allowed."""
    most = distances[math.ceil(_MOST_TURNS * len(distances)) - 1]
    text = (
        f"the farthest two replies to a turn: median {median(distances):.2f}, in 95 % of the turns "
        f"at most {most:.2f}"
    )
    if allowed is None:
        yield text, "plain"
        return
    threshold = float(allowed[1])
    yield f"{text} ({threshold:g} allowed)", "plain"
    beyond = sum(distance > threshold for distance in distances)
    if most > threshold:
        wide = math.ceil(100 * most) / 100
        text = (
            f"its own replies lie further apart than the threshold {threshold:g} in "
            f"{percent(beyond / len(distances))} of the turns: threshold={wide:g} keeps "
            "95 % of them together"
        )
        yield text, "warning"
