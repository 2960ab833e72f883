"""Duplicate: a round that is said twice."""

from __future__ import annotations

import re
from typing import Final

from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Move, Rewrite
from pytest_dstfuzz.relations.rounds.moves import context_after
from pytest_dstfuzz.relations.scene import Scene

_MORE: Final = "each round asks for another one, for more, or for something else than before"
#: Words of a request that means something else when it is made again.
_COUNTED: Final = re.compile(
    r"\b(?:another|again|more|extra|additional|further|later|earlier|else|other|different|instead"
    r"|next|less|fewer|cheaper|nearer|closer|larger|bigger|smaller|undo|previous|first|second|third"
    r"|last|both|neither|swap|switch|reverse|double|half|change|add|plus|as well)\b",
    re.IGNORECASE,
)


@register_relation
class Duplicate(Relation):
    """The state stays when a round is said twice.

    What the system said and the user's answer come once more right after themselves. The answer to
    the round said twice is compared with that to the round said once.

    Source: method, section 14.
    """

    name = "duplicate"
    expects = "{stays} after the round that is said twice"
    on = ("state",)
    edits = "own"
    unit = "dialogue"
    reasons = (_MORE,)

    def begin(self, scene: Scene) -> Begun:
        """Return the beginning of the dialogue up to each round, with that round twice."""
        turns = scene.dialogue.turns[: scene.index + 1]
        rounds = [turn.index for turn in turns if not _COUNTED.search(turn.user)]
        if not rounds:
            return Inapplicable(_MORE)
        return (_rewrite(scene, index) for index in rounds)


def _rewrite(scene: Scene, index: int) -> Rewrite:
    moves = (Move("repeat", index, index),)
    seen = context_after(scene.dialogue, index + 1, moves)
    reference = scene.dialogue.context(index)
    return Rewrite(seen, reference, moves=moves, about=f"round {index + 1} said twice")
