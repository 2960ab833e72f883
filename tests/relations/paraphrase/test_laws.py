"""What holds of all relations that say a turn in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.relations.checks import veto
from pytest_dstfuzz.relations.paraphrase import (
    Disfluency,
    GrammarErrors,
    MaskedReplacement,
    NeighbourSwap,
    Paraphrase,
    PhraseTableRelation,
    Speech,
    StopWordDropout,
)
from pytest_dstfuzz.relations.relation import UNCHANGED, Inapplicable, Rewrite, Scene, Scenes

if TYPE_CHECKING:
    from conftest import SceneOf

RELATIONS: list[Paraphrase] = [
    Disfluency(),
    GrammarErrors(),
    MaskedReplacement(),
    NeighbourSwap(),
    PhraseTableRelation(),
    Speech(),
    StopWordDropout(),
]
WORDS = st.sampled_from(
    """I 'm I'm looking for a an the cheap hotel hotels in north centre , . ? ! thank you thanks no
    not don't want need to book 2 two people friday 17:15 please and or can could you give me phone
    number is there any it that one leaving after Ely "Golden Wok" the postcode what does cost
    recommend something nice-looking e-mail naïve 日本 🙂 would like do""".split()  # noqa: SIM905
)


def rewrites(relation: Paraphrase, scene: Scene) -> list[Rewrite]:
    begun = relation.begin(scene)
    if isinstance(begun, Inapplicable):
        assert begun.reason in relation.reasons
        return []
    return list(begun)  # type: ignore[arg-type]  # these relations give nothing else


def check(scene: Scene, rewrite: Rewrite) -> None:
    user = scene.turn.user
    # What a repair says and takes back has locks of its own.
    repairs = [edit.after for edit in rewrite.edits if edit.operator == "repair"]
    allowed = {word.lower() for text in repairs for word in text.replace(",", " ").split()}
    assert not (repairs and rewrite.separable)
    assert rewrite.expected == UNCHANGED
    assert rewrite.edits
    assert apply_edits(user, rewrite.edits) == rewrite.seen.user != user
    assert rewrite.reference == scene.context
    assert rewrite.seen.exchanges[:-1] == scene.context.exchanges[:-1]
    assert veto(scene, rewrite.seen.user, rewrite.edits, allowed) == ""
    for index in range(len(rewrite.edits) if rewrite.separable else 0):
        part = without(rewrite.edits, [index])
        assert len(part) == len(rewrite.edits) - 1
        assert veto(scene, apply_edits(user, part), part, allowed) == ""


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@given(st.lists(WORDS, min_size=1, max_size=14))
def test_no_lock_is_touched_in_any_text(scene_of: SceneOf, relation: Paraphrase, words: list[str]):
    scene = scene_of(" ".join(words), {"hotel-area": "north", "hotel-pricerange": "cheap"})
    for rewrite in rewrites(relation, scene):
        check(scene, rewrite)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_the_shipped_dialogues_are_rewritten(
    sample: DialogueSet, scenes: Scenes, relation: Paraphrase
):
    applies = 0
    for dialogue in sample.dialogues:
        for turn in dialogue.turns:
            scene = scenes.labelled(relation.name, dialogue, turn.index)
            found = rewrites(relation, scene)
            again = rewrites(relation, scenes.labelled(relation.name, dialogue, turn.index))
            assert found == again
            texts = [rewrite.seen.user for rewrite in found]
            assert len(set(texts)) >= len(texts) - 1  # two edits may make one text of it
            for rewrite in found[:3]:
                check(scene, rewrite)
            applies += bool(found)
    assert applies > sample.turn_count() / 20
