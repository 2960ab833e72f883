"""What is said of a tracker that is a service: what it cost, whether it agrees with itself."""

from __future__ import annotations

from pytest_dstfuzz.trackers.protocol import Disagreement, Usage


def usage_text(usage: Usage) -> str:
    """Return what answers took, in a line."""
    text = (
        f"{usage.tokens:,} for {usage.answers:,} answers: {usage.prompt_tokens:,} of prompts, "
        f"{usage.completion_tokens:,} of answers"
    )
    if usage.uncounted:
        text += f" ({usage.uncounted:,} answers came without counts)"
    return text if usage.cost is None else f"{text}; {usage.cost:,.4f} by the prices"


def disagreement_text(measured: Disagreement) -> str:
    """Return how often a tracker disagreed with itself, and what was done about it."""
    text = (
        f"{measured.differed} of {measured.contexts} contexts, asked {measured.answers} times "
        "each before the run, got different answers"
    )
    if measured.differed:
        return f"{text}: a violation needs most of {measured.answers} answers to differ"
    return f"{text}: nothing was asked again"
