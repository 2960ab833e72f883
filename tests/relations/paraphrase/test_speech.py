"""Speech and disfluency: what is heard, what is said twice, and what is put right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.relations.paraphrase import Disfluency, Speech
from pytest_dstfuzz.relations.relation import Inapplicable, Rewrite, Scene, Scenes

if TYPE_CHECKING:
    from conftest import SceneOf


def said(scene: Scene, relation: Speech | Disfluency) -> set[tuple[str, str]]:
    """Kind and text of what one edit makes of a turn."""
    found = relation.places(scene)
    user = scene.turn.user
    assert not isinstance(found, str)
    return {(r.operator, user[: r.start] + r.after + user[r.end :]) for r in found.replacements}


def test_words_are_heard_as_others_or_not_at_all(scene_of: SceneOf):
    assert said(scene_of("We need the menu, please."), Speech()) == {
        ("homophone", "Wee need the menu, please."),
        ("homophone", "We knead the menu, please."),
        ("homophone", "We need the menu, pleas."),
        ("not_heard", "We need menu, please."),
    }
    # `four` and `two` are numbers, `there` points: they neither go nor come.
    assert Speech().places(scene_of("four of two")) == Speech.reasons[0]


def test_people_hesitate_and_begin_again(scene_of: SceneOf):
    found = said(scene_of("We need a map."), Disfluency())
    assert ("restart", "We need, we need a map.") in found
    assert ("restart", "We, we need a map.") in found
    fillers = {text for kind, text in found if kind == "filler"}
    assert len(fillers) == 4
    assert all(text.replace(",", "").split()[-1] == "map." for text in fillers)


def test_a_cue_and_its_value_are_not_parted(scene_of: SceneOf):
    found = said(scene_of("Please walk to north"), Disfluency())
    assert found
    assert not any("to" in text and "to north" not in text for _, text in found)


def test_a_name_is_not_parted(scene_of: SceneOf):
    scene = scene_of("I like Golden Wok", {"restaurant-name": "golden wok"})
    assert not any(
        "Golden " in text and "Golden Wok" not in text for _, text in said(scene, Disfluency())
    )


def test_another_value_is_taken_back_at_once(sample: DialogueSet, scenes: Scenes):
    found: list[tuple[Scene, Rewrite]] = []
    for dialogue in sample.dialogues[:20]:
        for turn in dialogue.turns:
            scene = scenes.labelled("disfluency", dialogue, turn.index)
            begun = Disfluency().begin(scene)
            if isinstance(begun, Inapplicable):
                continue
            rewrites: list[Rewrite] = list(begun)  # type: ignore[arg-type]  # it gives nothing else
            found += [(scene, one) for one in rewrites if one.edits[0].operator == "repair"]
    assert len(found) > 10
    for scene, rewrite in found:
        (edit,) = rewrite.edits
        other, _, rest = edit.after.partition(", no, ")
        assert rest == edit.before == ""
        assert other.lower() not in scene.turn.user.lower()
        assert rewrite.about.startswith(f"{other}, no, ")
        # The value that counts is the last one.
        value = rewrite.about.removeprefix(f"{other}, no, ")
        assert rewrite.seen.user[edit.start + len(edit.after) :].startswith(value)
