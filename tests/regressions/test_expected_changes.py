"""Remembered violations of relations that expect a change, and of those that move rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.results import SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import (
    Admissible,
    BeliefState,
    Context,
    Dialogue,
    Exchange,
    Turn,
)
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.regressions.promote import write_promoted
from pytest_dstfuzz.regressions.regression import Regression, is_kept
from pytest_dstfuzz.relations.relation import Delta, Expectation, Move, Relation
from pytest_dstfuzz.trackers.tracker import Prediction

TALK = Dialogue(
    "d1",
    (
        Turn(0, "", "a train on friday"),
        Turn(1, "From where?", "from ely"),
        Turn(2, "OK.", "thanks"),
    ),
)
CLEAN = BeliefState({"train-day": "friday"})
NEW = (Delta("train-day", "friday", Admissible(("sunday",))),)


def variant(state: Mapping[str, str], deltas: tuple[Delta, ...] = NEW) -> VariantResult:
    verdict = Expectation(deltas).judge(CLEAN, BeliefState(state))
    wanted = {delta.slot: delta.after for delta in deltas}
    return VariantResult(
        index=0,
        text="a train on sunday",
        context=(),
        edits=(Edit("value-swap", "value", 11, 17, "friday", "sunday"),),
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        state=BeliefState(state),
        changed_slots=tuple(replace(one, expected=wanted.get(one.slot)) for one in verdict.changes),
        cause="turn",
        outcome="violation",
        failure=verdict.failure,
        expected=deltas,
    )


def turn(one: VariantResult, relation: str, index: int = 0) -> TurnResult:
    said = TALK.turns[index]
    return TurnResult(
        id=f"t{index}",
        dialogue_id="d1",
        turn_index=index,
        system=said.system,
        user=said.user,
        clean_state=CLEAN,
        outcome="violation",
        relation=relation,
        side="should-change" if one.expected else "should-not-change",
        variants=(one,),
    )


def stuck() -> Regression:
    one = variant(CLEAN)
    return Regression.of(turn(one, "value-swap"), one, TALK, "value-swap")


def moved(kind: str, *rounds: Exchange, at: int = 2, **given: object) -> Regression:
    """Return a violation in which these rounds were seen."""
    one = replace(
        variant({}, ()),
        edits=(),
        text=rounds[-1].user,
        context=tuple(said.user for said in rounds[:-1]),
        exchanges=tuple(SeenRound(*said) for said in rounds),
        moves=(Move(kind, 0, 0),),  # type: ignore[arg-type]  # one of its names
        **given,  # type: ignore[arg-type]  # fields of its own
    )
    return Regression.of(turn(one, "shuffle", at), one, TALK, "shuffle")


def answers(
    one: Regression, before: Mapping[str, str], after: Mapping[str, str]
) -> dict[Context, Prediction | TrackerFailure]:
    return {
        one.clean: Prediction(BeliefState(before)),
        one.seen: Prediction(BeliefState(after)),
    }


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("friday", "friday", "broken"),
        ("friday", "monday", "broken"),
        ("friday", None, "broken"),
        ("friday", "sunday", "fixed"),
        # What was to change is gone: nobody knows whether it would be followed.
        (None, None, "unclear"),
        ("sunday", "sunday", "unclear"),
    ],
)
def test_a_replay_judges_by_what_was_expected(
    before: str | None, after: str | None, outcome: str
) -> None:
    def state(value: str | None) -> dict[str, str]:
        return {"train-day": value} if value else {}

    one = stuck()
    assert one.replayed(answers(one, state(before), state(after)))[0] == outcome


def test_another_slot_that_moves_now_does_not_break_it() -> None:
    one = stuck()
    after = {"train-day": "sunday", "train-people": "2"}
    assert one.replayed(answers(one, CLEAN, after))[0] == "fixed"


def test_what_is_expected_is_told_and_kept_in_the_line() -> None:
    one = stuck()
    (change,) = one.changed
    assert one.text_of(change) == "train-day stayed friday, expected sunday"
    assert one.text_of(change, lambda _: "x") == "train-day stayed x, expected x"
    line = one.to_json()
    assert line["expected"] == [
        {
            "slot": "train-day",
            "before": "friday",
            "after": {"values": ["sunday"], "anything_but": False, "or_no_call": False},
        }
    ]
    assert "seen" not in line
    assert Regression.from_json(line) == one
    # Without what was expected, a slot that did not move is no violation.
    with pytest.raises(ValueError, match="did not"):
        Regression.from_json({**line, "expected": []})
    after = {"values": ["friday"]}
    with pytest.raises(ValueError, match="expects no change"):
        Regression.from_json({**line, "expected": [{**line["expected"][0], "after": after}]})


class _Own(Relation):
    """A relation that edits by itself, and has no judgement of its own."""

    name = "shuffle"
    edits = "own"


OWN = _Own()
ONE, TWO, THREE = (Exchange(said.system, said.user) for said in TALK.turns)


@pytest.mark.parametrize(
    ("make", "clean"),
    [
        (lambda: moved("move", TWO, ONE, THREE), (ONE, TWO, THREE)),
        (lambda: moved("drop", ONE, THREE), (ONE, TWO, THREE)),
        (lambda: moved("add", ONE, Exchange("Okay.", "sunday"), at=0), (ONE,)),
        # A round said twice is compared with the same round said once, wherever the dialogue ends.
        (lambda: moved("repeat", ONE, ONE), (ONE,)),
    ],
)
def test_rounds_that_moved_are_kept_with_the_dialogue_that_they_are_compared_with(
    make: Callable[[], Regression], clean: tuple[Exchange, ...]
) -> None:
    one = make()
    assert one.clean.exchanges == clean
    assert one.seen != one.clean
    assert Regression.from_json(one.to_json()) == one
    assert one.replayed(answers(one, CLEAN, CLEAN), OWN)[0] == "fixed"
    assert one.replayed(answers(one, CLEAN, {}), OWN)[0] == "broken"
    assert [who for who, _ in one.told][-1] == f"seen {len(one.seen.exchanges)}"


def test_the_id_is_of_what_was_seen() -> None:
    first, second = moved("move", TWO, ONE, THREE), moved("move", ONE, THREE, TWO)
    assert first.id != second.id
    assert moved("move", TWO, ONE, THREE).id == first.id


def test_the_same_words_asked_again_are_not_remembered() -> None:
    again = replace(variant({}, ()), moves=(Move("again", 0),))
    assert not is_kept(again)
    assert is_kept(variant(CLEAN))


def test_what_was_done_is_told_where_nothing_was_edited() -> None:
    assert moved("move", TWO, ONE, THREE).done == "shuffle"
    assert stuck().done == "value-swap/value"


def test_a_promoted_test_needs_public_names_alone() -> None:
    imports = [line for line in write_promoted(stuck()).splitlines() if line.startswith("from ")]
    assert imports == [
        "from pytest_dstfuzz import Admissible, Delta",
        "from pytest_dstfuzz import Context, Exchange",
        "from pytest_dstfuzz.testing import assert_follows",
    ]


def test_a_promoted_test_asks_for_the_change() -> None:
    text = write_promoted(stuck())
    space: dict[str, Callable[[object], None]] = {}
    exec(compile(text, "promoted", "exec"), space)  # noqa: S102 - it is the test's own
    (test,) = (value for name, value in space.items() if name.startswith("test_"))
    assert test.__name__.startswith("test_belief_state_follows_")

    def follows(context: Context) -> dict[str, str]:
        return {"train-day": context.user.split()[-1]}

    test(follows)
    assert '"""Turn t0: after value-swap/value train-day stayed friday, expected sunday."""' in text
    with pytest.raises(AssertionError, match="train-day stayed friday, expected sunday"):
        test(lambda context: CLEAN)  # noqa: ARG005 - it looks at nothing
