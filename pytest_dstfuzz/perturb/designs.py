"""Attack designs: which earlier user utterances a variant is seen with."""

from __future__ import annotations

from pytest_dstfuzz.config import ATTACKS
from pytest_dstfuzz.errors import unknown_name
from pytest_dstfuzz.seeding import derive


def replaces(attack: str, seed: int, dialogue_id: str, variant: int, turn: int) -> bool:
    """Say whether an earlier turn is seen as its variant and not clean.

    Args:
        attack: ``non-cumulative`` (never), ``cumulative`` (always) or ``hybrid``: one fair
            coin for each (dialogue, variant, turn), the same for every later turn.
        seed: seed of the campaign.
        dialogue_id: the dialogue.
        variant: index of the variant, 0 and up.
        turn: index of the earlier turn.

    Raises:
        UserError: unknown attack design.
    """
    if attack == "hybrid":
        return derive(seed, "design", dialogue_id, variant, turn) % 2 == 1
    if attack not in ATTACKS:
        raise unknown_name("attack design", attack, ATTACKS)
    return attack == "cumulative"
