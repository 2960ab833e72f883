"""Restart: the same dialogue once more."""

from __future__ import annotations

from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Move, Rewrite
from pytest_dstfuzz.relations.scene import Scene


@register_relation
class Restart(Relation):
    """The states stay when the dialogue is held once more, from its beginning.

    As many rounds are held again as a turn has variants. Nothing is edited: a tracker that
    keeps something of an earlier dialogue gives another answer.

    Source: method, section 14.
    """

    name = "restart"
    expects = "the same dialogue, held once more, gives the same {answers}"
    on = ("state", "reply")
    edits = "own"
    unit = "dialogue"
    reasons = ()

    def begin(self, scene: Scene) -> Begun:
        """Return each context of the dialogue, to be asked for again."""
        return (_rewrite(scene, index) for index in range(scene.index + 1))


def _rewrite(scene: Scene, index: int) -> Rewrite:
    context = scene.dialogue.context(index)
    about = f"round {index + 1} of the dialogue held again"
    return Rewrite(context, context, moves=(Move("again", index),), about=about)
