"""An answer held against another one by a comparison: what says the same is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.trackers.calls.evaluate import CallJudge


def as_before(comparison: Comparison, asked: Context, before: Outcome, found: Outcome) -> Outcome:
    """Return what was found with the paths and texts of ``before`` where it says the same."""
    aligned = comparison.align(before, found)

    def told(path: str, text: str) -> str:
        known = before.get(path)
        if known is None:
            return text
        return known if _same(comparison, path, known, text, asked) else text

    return Outcome({path: told(path, text) for path, text in aligned.items()})


def as_admitted(
    comparison: Comparison,
    asked: Context,
    admitted: Mapping[str, Sequence[str]],
    found: Outcome,
) -> Outcome:
    """Return what was found in the words of the first admitted text that says the same, if any."""

    def told(path: str, text: str) -> str:
        wanted = admitted.get(path, ())
        return next((one for one in wanted if _same(comparison, path, one, text, asked)), text)

    return Outcome({path: told(path, text) for path, text in found.items()})


def _same(comparison: Comparison, path: str, one: str, other: str, asked: Context) -> bool:
    return one == other or comparison.compare(path, one, other, asked).same


def call_judge(comparison: Comparison) -> CallJudge:
    """Return who says by a comparison which calls are the recorded ones."""
    return CallJudge(
        comparison.name,
        lambda asked, recorded, found: as_before(comparison, asked, recorded, found),
    )
