"""An answer held against another one by a comparison: what says the same is the same."""

from __future__ import annotations

from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.trackers.calls.evaluate import CallJudge


def as_before(comparison: Comparison, asked: Context, before: Outcome, found: Outcome) -> Outcome:
    """Return what was found with the paths and texts of ``before`` where it says the same."""
    aligned = comparison.align(before, found)

    def told(path: str, text: str) -> str:
        known = before.get(path)
        if known is None or known == text:
            return text
        return known if comparison.compare(path, known, text, asked).same else text

    return Outcome({path: told(path, text) for path, text in aligned.items()})


def call_judge(comparison: Comparison) -> CallJudge:
    """Return who says by a comparison which calls are the recorded ones."""
    return CallJudge(
        comparison.name,
        lambda asked, recorded, found: as_before(comparison, asked, recorded, found),
    )
