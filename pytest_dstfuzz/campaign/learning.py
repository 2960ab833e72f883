"""The dialogues that a search learns from during a run, in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pytest_dstfuzz.campaign.attempts import prepare_task
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.dialogue.sampling import rank_in_draw
from pytest_dstfuzz.search.protocol import Lesson, Search, TriedVariant
from pytest_dstfuzz.trackers.tracker import Prediction

#: The number of dialogues in the first round. Each later round has as many as all before it.
FIRST_ROUND: Final = 2

#: A dialogue of the plan and the index of its last turn.
_Planned = tuple[Dialogue, int]


def rounds_of(search: Search, seed: int, sample: Sequence[_Planned]) -> list[list[_Planned]]:
    """Return the dialogues that the search learns from, round by round.

    They are the first drawn dialogues, so a larger sample begins with the same rounds.
    """
    drawn = iter(sorted(sample, key=lambda planned: rank_in_draw(seed, planned[0].id)))
    left, size, rounds = search.lessons, FIRST_ROUND, list[list[_Planned]]()
    while left > 0 and (found := list(islice(drawn, min(size, left)))):
        rounds.append(found)
        left -= len(found)
        size = sum(map(len, rounds))
    return rounds


def lessons_of(
    rules: CampaignSpec, dialogue: Dialogue, results: Sequence[TurnResult]
) -> Iterator[Lesson]:
    """Yield the lessons of a dialogue's results for a search."""
    for result in results:
        tried = tuple(_tried(one) for one in result.variants if _is_answered(one))
        if result.clean_state is None or not tried:
            continue
        clean = Prediction(result.clean_state)
        yield Lesson(prepare_task(rules, dialogue, result.turn_index, clean), tried)


def _is_answered(variant: VariantResult) -> bool:
    return variant.outcome in ("held", "violation", "improved")


def _tried(variant: VariantResult) -> TriedVariant:
    broken = variant.outcome == "violation" and variant.cause != "context"
    needed = variant.minimal.edits if broken and variant.minimal is not None else ()
    return TriedVariant(variant.edits, broken, needed)
