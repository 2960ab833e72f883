"""How far a bot's own replies lie apart: what it says differently by itself is no violation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.page import Style

#: Of the turns, ordered by how far their replies lie apart.
_MOST_TURNS: Final = 0.95
#: The threshold in the name of a comparison.
_THRESHOLD: Final = re.compile(r"<=([\d.]+)")


def spread_texts(results: Sequence[TurnResult], compared: str) -> Iterator[tuple[str, Style]]:
    """Yield sentences about how a bot's replies to one and the same turn differ; none of states.

    Each turn counts once, however many relations it is tested under.

    Args:
        results: what was found.
        compared: names of the comparisons, with their thresholds.
    """
    turns = {turn.id: turn for turn in results if turn.outcome_kind == REPLY}
    spreads = [turn.own for turn in turns.values() if turn.own is not None]
    unstable = sum(turn.reason == UNSTABLE for turn in turns.values())
    if not turns:
        return
    if not spreads:
        if any(turn.clean_state is not None for turn in turns.values()):
            why = "by --dst-votes=1, or since the bot says that it repeats itself"
            yield f"not measured: each clean turn was asked once, {why}", "plain"
        return
    one = sum(spread.kinds <= 1 for spread in spreads)
    least = min(spread.answers for spread in spreads)
    text = (
        f"{counted(len(spreads), 'clean turn')}, each asked {least} times or more: replies of one "
        f"kind to {one:,}, of several to {len(spreads) - one - unstable:,}"
    )
    if unstable:
        text += (
            f"; {unstable:,} not tested, as the replies to them agree too seldom: --dst-compare "
            "says when two say the same"
        )
    yield f"{text}. What it says to the clean turn is no violation", "plain"
    distances = sorted(spread.largest for spread in spreads if spread.largest is not None)
    if distances:
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
            f"{percent(beyond / len(distances))} of the turns: --dst-threshold={wide:g} keeps "
            "95 % of them together"
        )
        yield text, "warning"
