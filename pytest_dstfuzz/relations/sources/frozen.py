"""Frozen: the turn in words that a person has read and found to mean the same."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, turn_keys
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.sources.locks import broken_lock, said_otherwise

_NONE: Final = "no frozen variant of the turn"
_LOCKED: Final = "every frozen variant of the turn breaks a lock of this run"


@register_relation
class Frozen(Relation):
    """The state stays when the turn is said in words that were written elsewhere and reviewed.

    The words come from the file of ``--dst-relation=frozen:FILE``, which ``dstfuzz freeze`` writes.
    """

    name = "frozen"
    expects = "{stays}"
    source = "as its file says"
    edits = "own"
    reasons = (_NONE, _LOCKED)

    def impossible(self, data: DialogueSet) -> str:
        """Say why there is nothing to take: no file, or none of its rows is about the data."""
        if data.frozen is None:
            return (
                "it needs a file of reviewed variants (--dst-relation=frozen:FILE; dstfuzz freeze)"
            )
        if not any(key in data.frozen for one in data.dialogues for key in turn_keys(one)):
            return (
                "no turn of the data has a variant in the file of --dst-relation=frozen with the "
                "verdict 'keeps' and no lock"
            )
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return the variants of the turn, in the order of the file."""
        texts = (scene.data.frozen or {}).get(turn_keys(scene.dialogue)[scene.index], ())
        if not texts:
            return Inapplicable(_NONE)
        kept = [text for text in texts if not broken_lock(scene, text)]
        if not kept:
            return Inapplicable(_LOCKED)
        return said_otherwise(scene, kept, "frozen")
