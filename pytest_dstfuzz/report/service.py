"""What is said of a tracker that is a service: what it cost, whether it agrees with itself."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.campaign.noise import Noise
from pytest_dstfuzz.campaign.repeats import Repeats
from pytest_dstfuzz.trackers.tracker import VOTE, Disagreement, Usage

#: Share of the violations that may be noise before more votes are advised.
_MUCH: Final = 0.1


def usage_text(usage: Usage) -> str:
    """Return what answers took, in a line."""
    text = (
        f"{usage.tokens:,} for {usage.answers:,} answers: {usage.prompt_tokens:,} of prompts, "
        f"{usage.completion_tokens:,} of answers"
    )
    if usage.uncounted:
        text += f" ({usage.uncounted:,} answers came without counts)"
    return text if usage.cost is None else f"{text}; {usage.cost:,.4f} by the prices"


def disagreement_text(measured: Disagreement, votes: int) -> str:
    """Return how often a tracker disagreed with itself, and what is done about it.

    Args:
        measured: before the run.
        votes: answers of a vote.
    """
    text = (
        f"{measured.differed} of {measured.contexts} contexts, asked {measured.answers} times "
        "each before the run, got different answers"
    )
    if votes == 1:
        return f"{text}: nothing is asked again (--dst-votes=1), and violations may be noise"
    return f"{text}: a violation has to win a vote of {votes} answers or more on both sides"


def wobble_text(noise: Noise) -> str:
    """Return how often the clean answers of a run disagreed."""
    bounds, share = noise.disagreement_interval, 100 * noise.disagreement
    between = (
        "" if bounds is None else f" (95 % interval {100 * bounds[0]:.1f} to {100 * bounds[1]:.1f})"
    )
    return (
        f"{noise.differed:,} of {noise.turns:,} clean turns, asked {noise.answers} times each, got "
        f"different answers; two answers to one turn differ in {share:.1f} % of all cases{between}"
    )


def noise_text(noise: Noise, violations: int) -> str:
    """Return how many violations are noise, and how many real ones there are."""
    low, high = noise.real_violations
    text = (
        f"of {violations:,} violations about {noise.expected_noise:.1f} are noise, and about "
        f"{noise.expected_missed:.1f} were missed: {low:,} to {high:,} are real (95 % interval); "
        f"{noise.outvoted:,} more were outvoted"
    )
    if noise.expected_noise > max(1.0, _MUCH * violations):
        return f"{text}. Causes and smallest edits may be noise too; more votes (--dst-votes) help"
    return text


def repeats_text(repeats: Repeats) -> str:
    """Return what came of asking again, where some answers were others than before; else ``""``."""
    if not repeats.changed:
        return ""
    return (
        f"asked once more, {repeats.violations_changed} of {repeats.violations} violations and "
        f"{repeats.held_changed} of {repeats.held} variants that had held got other answers than "
        "before: the tracker does not repeat itself, and violations may be noise. Switch off what "
        f"is random, and keep nothing from one dialogue to the next; or {VOTE}"
    )
