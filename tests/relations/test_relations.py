"""The two relations: what they hold against a tracker, and what not."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Difference, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.registry import RELATIONS, as_relation, relation_by_name, relation_for
from pytest_dstfuzz.relations.relation import Relation, Replacement, Rewrite, Scene
from tests.relations.scenes import labelled_talk, scene_of

NORTH, SOUTH, EMPTY = BeliefState({"a": "north"}), BeliefState({"a": "south"}), BeliefState()
CHANGE = (Difference("a", "north", "south"),)


@pytest.mark.parametrize(
    ("relation", "clean", "perturbed", "label", "kind"),
    [
        ("metamorphic", NORTH, NORTH, None, "held"),
        ("metamorphic", NORTH, SOUTH, None, "violation"),
        ("metamorphic", NORTH, SOUTH, NORTH, "violation"),
        ("metamorphic", NORTH, SOUTH, SOUTH, "improved"),
        ("metamorphic", NORTH, SOUTH, EMPTY, "violation"),
        ("metamorphic", NORTH, NORTH, SOUTH, "held"),
        ("gold", NORTH, NORTH, NORTH, "held"),
        ("gold", NORTH, SOUTH, NORTH, "violation"),
        ("gold", NORTH, SOUTH, SOUTH, "inapplicable"),
        ("gold", NORTH, NORTH, SOUTH, "inapplicable"),
        ("gold", NORTH, SOUTH, None, "inapplicable"),
    ],
)
def test_verdicts(
    relation: str, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None, kind: str
) -> None:
    found = relation_by_name(relation)
    verdict = found.judge(clean, perturbed, label)
    assert verdict.kind == kind
    assert verdict.changes == (() if clean == perturbed else CHANGE)
    assert found.applies(clean, label) == (kind != "inapplicable")


def test_dontcare_is_a_value_and_absence_is_none() -> None:
    verdict = relation_by_name("metamorphic").judge(BeliefState({"a": "dontcare"}), EMPTY, None)
    assert [str(change) for change in verdict.changes] == ["a: dontcare -> none"]


def test_names_are_those_of_the_option() -> None:
    assert {relation_by_name(name).name for name in RELATIONS.shipped} == set(RELATIONS.shipped)
    with pytest.raises(UserError, match=r"unknown relation 'golden'. Did you mean 'gold'"):
        relation_by_name("golden")


def test_gold_needs_a_label_somewhere() -> None:
    bare = Dialogue("d", (Turn(0, "", "hello"),))
    labelled = Dialogue("e", (Turn(0, "", "hello"), Turn(1, "", "hi", EMPTY)))
    with pytest.raises(UserError, match=r"'gold' does not apply to .*: it needs labels"):
        relation_for("gold", DialogueSet("bot", "test", (bare,)))
    assert relation_for("gold", DialogueSet("bot", "test", (bare, labelled))).name == "gold"
    assert relation_for("metamorphic", DialogueSet("bot", "test", (bare,))).name == "metamorphic"


class Beyond(Relation):
    """Of somebody else: it edits what is not there."""

    name = "beyond"
    edits = "own"
    side = "should-change"

    def begin(self, scene: Scene) -> list[Rewrite]:
        """Return an edit behind the end."""
        return [scene.rewrite([Replacement(0, 999, "", "any")])]


def test_a_mistake_of_a_relation_is_told_with_its_own_line() -> None:
    own = as_relation(Beyond, "here")
    scene = scene_of(labelled_talk(("a cheap hotel", {"hotel-price": "cheap"})))
    with pytest.raises(UserError, match=r"outside the utterance \(.*test_relations\.py:\d+\)"):
        own.begin(scene)


def test_one_of_the_other_side_that_says_nothing_does_not_expect_the_state_to_stay() -> None:
    assert as_relation(Beyond, "here").expects == "{changes} as the rewrite expects"
