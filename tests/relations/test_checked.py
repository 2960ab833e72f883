"""What somebody else's relation returns is checked: each mistake is one message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from scenes import labelled_talk, scene_of

from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Context, Difference
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.checks import unsound
from pytest_dstfuzz.relations.registry import as_relation
from pytest_dstfuzz.relations.relation import (
    Delta,
    Expectation,
    Inapplicable,
    Move,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
    Verdict,
)

TALK = labelled_talk(
    ("a hotel please", {}),
    ("in the north please", {"hotel-area": "north"}),
    ontology=None,
)
SCENE = scene_of(TALK, 1)
SOUTH = Admissible(("south",))
SOUND = SCENE.rewrite([Replacement(7, 12, "south", "word")], [Delta("hotel-area", "north", SOUTH)])
FIRST = SCENE.dialogue.context(0)


def other_rounds(context: Context) -> Context:
    """Return a context in which the first round is another one."""
    return Context((("", "something else"), *context.exchanges[1:]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda one: replace(one, reference=other_rounds(one.reference)),
            "not the unmodified dialogue",
        ),
        (lambda one: replace(one, separable=True), "the state of the turn must stay"),
        (
            lambda one: replace(one, separable=True, reference=FIRST, expected=Expectation()),
            "the state of the turn must stay",
        ),
        (lambda one: replace(one, edits=()), "neither edits nor moves"),
        (lambda one: replace(one, edits=(Edit("toy", "x", 90, 91, "a", "b"),)), "do not fit"),
        (lambda one: replace(one, seen=SCENE.context), "edits do not turn the utterance"),
        (lambda one: replace(one, seen=other_rounds(one.seen)), "changes words outside the turn"),
        (
            lambda one: replace(one, expected=Expectation((Delta("hotel-area", "west", SOUTH),))),
            "hotel-area starts from west, but the value is north",
        ),
    ],
)
def test_what_is_wrong_with_a_rewrite_is_named(
    change: Callable[[Rewrite], Rewrite], message: str
) -> None:
    assert unsound(SOUND, SCENE) == ""
    assert message in unsound(change(SOUND), SCENE)


def test_rounds_that_moved_may_be_others() -> None:
    moved = replace(SOUND, seen=other_rounds(SOUND.seen), moves=(Move("repeat", 0),))
    assert unsound(moved, SCENE) == ""


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        ([replace(SOUND, edits=())], "begin() of the relation 'toy' returned"),
        (["south"], "returned south: each rewrite must be a Rewrite"),
        ("south", "it must return rewrites, BySearch or Inapplicable"),
        (3, "it must return rewrites, BySearch or Inapplicable"),
        (Inapplicable("why not"), "'why not': the reason must be one of because, or so"),
        (
            [replace(SOUND, expected=Expectation())],
            "has side = 'should-change'. Give scene.rewrite()",
        ),
    ],
)
def test_what_begin_returns_is_checked(begun: TurnStart, message: str) -> None:
    class Toy(Relation):
        name = "toy"
        expects = "the area follows"
        edits = "own"
        side = "should-change"
        reasons = ("because", "or so")

        def begin(self, scene: Scene) -> TurnStart:  # noqa: ARG002 - the same everywhere
            return begun

    with pytest.raises(UserError) as caught:
        list(as_relation(Toy, "conftest.py").begin(SCENE))  # type: ignore[arg-type]  # rewrites
    assert message in str(caught.value)


def test_a_verdict_fits_the_side_of_its_relation() -> None:
    class Follows(Relation):
        name = "follows"
        side = "should-change"

        def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
            changes = tuple(
                Difference(slot, old, perturbed.get(slot)) for slot, old in clean.items()
            )
            return Verdict("violation" if label else "held", changes)

    judge = as_relation(Follows(), "conftest.py").judge
    north, south = BeliefState({"hotel-area": "north"}), BeliefState({"hotel-area": "south"})
    assert judge(north, south, None).kind == "held"
    assert judge(north, north, north).failure == "stuck"
    with pytest.raises(UserError, match="did not change, but the relation has side"):
        judge(north, north, None)


class Same(Relation):
    name = "same"

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:  # noqa: ARG002 - the same everywhere
        return Verdict("inapplicable")


def test_a_verdict_is_no_place_to_say_that_a_relation_does_not_apply() -> None:
    judge = as_relation(Same(), "conftest.py").judge
    north = BeliefState({"hotel-area": "north"})
    with pytest.raises(
        UserError, match=r"judge\(\) of the relation 'same' returned the verdict inap"
    ):
        judge(north, BeliefState({"hotel-area": "south"}), None)


def test_an_answer_that_stayed_is_a_violation_where_it_must_change() -> None:
    class Better(Relation):
        name = "better"
        side = "should-change"

        def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:  # noqa: ARG002 - the same everywhere
            return Verdict("improved")

    judge = as_relation(Better(), "conftest.py").judge
    north, south = BeliefState({"hotel-area": "north"}), BeliefState({"hotel-area": "south"})
    assert judge(north, south, None).kind == "improved"
    with pytest.raises(UserError, match="did not change, but the relation has side"):
        judge(north, north, None)
