"""What tells one turn from another, whatever its dialogue, its file and its data set are called."""

from __future__ import annotations

import hashlib
import json

from pytest_dstfuzz.dialogue.dialogues import Dialogue


def turn_keys(dialogue: Dialogue) -> tuple[str, ...]:
    """Return 16 hexadecimal digits for each turn: of all that a tracker sees at it.

    That is what system and user said up to it. Neither ids nor labels are in them, nor what
    comes later: a dialogue that goes on keeps the keys of its first turns.
    """
    digest = hashlib.sha256()
    keys = []
    for turn in dialogue.turns:
        # ASCII, as an utterance may hold half of a surrogate pair.
        digest.update(json.dumps([turn.system, turn.user]).encode("ascii"))
        keys.append(digest.hexdigest()[:16])
    return tuple(keys)
