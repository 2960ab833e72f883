"""Belief states whose values are lists, or are compared by rules of their slots."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import pytest
from toybots import data_of, talk

from pytest_dstfuzz import Campaign, Context, DialogueSet, Settings, TurnResult, UserError
from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.comparisons.arguments import rules_of_slots
from pytest_dstfuzz.comparisons.calls import comparison_of_calls, comparison_of_states
from pytest_dstfuzz.comparisons.comparison import EXACT
from pytest_dstfuzz.dialogue.calls import ToolCall
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Exchange, Ontology
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.regressions.promote import write_promoted
from pytest_dstfuzz.regressions.regression import Regression
from pytest_dstfuzz.relations.relation import UNCHANGED, Delta, Expectation
from pytest_dstfuzz.testing import assert_follows
from pytest_dstfuzz.trackers.tracker import Prediction

ROOM = talk(
    "room",
    "could you please find something with a window and wifi at seven",
    labels=[{"room-extras": '["wifi", "window"]', "room-time": "19:00"}],
)
SLOTS = Ontology({"room-extras": ("wifi", "window"), "room-time": ()})
DATA = data_of(ROOM, ontology=SLOTS)
ASKED = ROOM.context(0)


def track(context: Context) -> dict[str, Any]:
    """Hear one member alone and write the time otherwise, if a polite word is misspelled."""
    polite = {"could", "please", "something"} <= set(context.user.lower().split())
    if polite:
        return {"room-extras": ["window", "wifi"], "room-time": "19:00"}
    return {"room-extras": ["window"], "room-time": "7pm"}


def run(tracker: Any = track, **options: Any) -> TurnResult:
    settings = Settings.of(validity="edit-rate", variants=12, turns=None, **options)
    (result,) = Campaign(tracker, DATA, settings)
    return result


def changes(result: TurnResult) -> set[str]:
    return {str(one) for variant in result.violations for one in variant.changed_slots}


def test_a_member_that_is_lost_is_a_violation() -> None:
    found = run()
    assert changes(found) == {"room-extras: wifi, window -> window", "room-time: 19:00 -> 7pm"}
    assert found.is_right


def test_values_that_say_the_same_by_a_rule_are_one() -> None:
    found = run(arguments={"room-time": "instant"})
    assert changes(found) == {"room-extras: wifi, window -> window"}
    both = run(arguments={"Room-Time": "instant", "*-extras": "subset"})
    assert not both.violations
    assert both.is_right


def test_a_label_counts_in_other_words_too() -> None:
    def early(context: Context) -> dict[str, Any]:
        return track(context) | {"room-time": "7pm"}

    assert not run(early).is_right
    assert run(early, arguments={"room-time": "instant"}).is_right


def test_another_value_is_a_violation_by_a_rule_too() -> None:
    def early(context: Context) -> dict[str, Any]:
        found = track(context)
        return found | {"room-time": "7am"} if found["room-time"] == "7pm" else found

    assert "room-time: 19:00 -> 7am" in changes(run(early, arguments={"room-time": "instant"}))


def same(rule: Any, before: dict[str, Any], found: dict[str, Any]) -> bool:
    settings = Settings.of(arguments={"x": rule}).reply
    folding = Folding(comparison_of_states(DialogueSet("d", "test", ()), settings))
    one, other = (BeliefState(normalise_state(state, "plain")) for state in (before, found))
    return folding.agree(one, other, ASKED)


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        ("instant", "7pm", "19:00"),
        ("number", "two", "2"),
        ("number", "1,200", "1200.0"),
        ("number", ["two", "3"], [3, 2]),
        ("auto", "The Ritz.", "the ritz"),
        ("ignore", "a", "b"),
        ("ignore", "a", None),
        ("ignore", None, "a"),
        ("subset", ["a", "b"], "b"),
        ("subset", ["a", "b"], None),
        ("superset", "b", ["a", "b"]),
        ("unordered", ["a", "b"], ["b", "a"]),
        (["nyc", "new york"], "NYC", "New York"),
        ("operator:eq", "a", "a"),
    ],
)
def test_rules_of_arguments_serve_slots(rule: Any, one: Any, other: Any) -> None:
    assert same(rule, {"x": one, "y": "1"}, {"x": other, "y": "1"})
    assert not same(rule, {"x": one, "y": "1"}, {"x": other, "y": "2"})
    assert not same(rule, {"x": one}, {"x": other, "y": "2"})


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        ("instant", "7pm", "7am"),
        ("instant", "19:00", "7:00"),
        ("instant", "7pm", None),
        ("number", "-5", "5"),
        ("number", "1,5", "15"),
        ("number", "10", "1.0"),
        ("number", ["2", "2"], "2"),
        ("auto", "café", "cafe"),
        ("subset", "b", ["a", "b"]),
        ("superset", ["a", "b"], "b"),
        ("unordered", ["a", "a", "b"], ["a", "b"]),
        (["nyc", "new york"], "NYC", "Boston"),
        ("operator:eq", "a", "b"),
    ],
)
def test_other_values_stay_other_values(rule: Any, one: Any, other: Any) -> None:
    assert not same(rule, {"x": one}, {"x": other})


def test_what_is_expected_may_be_said_in_other_words() -> None:
    settings = Settings.of(arguments={"room-time": "instant"}).reply
    folding = Folding(comparison_of_states(DATA, settings))
    clean = Prediction(BeliefState({"room-time": "19:00"}))
    said = Prediction(BeliefState({"room-time": "8pm"}))
    delta = Delta("room-time", "19:00", Admissible(("20:00",)))
    for wanted, told in ((Expectation((delta,)), "20:00"), (UNCHANGED, "8pm")):
        (found,) = folding.to_clean([said], [clean], clean.state, ASKED, wanted)
        assert found.state == {"room-time": told}


def test_without_rules_states_are_equal_or_not() -> None:
    assert comparison_of_states(DATA, Settings().reply) is EXACT


def test_one_table_serves_states_and_tool_calls() -> None:
    table = ["book_room.at=instant", "room-time=instant"]
    named = comparison_of_states(DATA, Settings().reply, table=table).name
    assert named == "states,room-time=instant"
    assert rules_of_slots(f"calls:any; or {named}") == named
    calls = comparison_of_calls(DATA, Settings.of(outcome="tool-calls").reply, table=table)
    assert calls.name.startswith("calls:any")


def test_a_rule_for_no_slot_names_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'room-time'"):
        comparison_of_states(DATA, Settings.of(arguments={"room-tme": "instant"}).reply)


def test_a_promoted_test_keeps_the_rules() -> None:
    result = run(arguments={"room-time": "instant"})
    compared = "states,room-time=instant"
    kept = Regression.of(result, result.violations[0], ROOM, "metamorphic", compare=compared)
    assert "arguments=['room-time=instant']" in write_promoted(kept)
    seen = Context((Exchange("", "a window at seven"),))
    with pytest.raises(AssertionError, match="room-time: 19:00 -> 7pm"):
        assert_follows(track, ASKED, seen, slots=["room-time"])
    assert_follows(track, ASKED, seen, slots=["room-time"], arguments={"room-time": "instant"})


@pytest.mark.parametrize("slots", ["room-time", ["Room-Time"], ["room-time"]])
def test_a_named_slot_counts_in_any_spelling(slots: str | list[str]) -> None:
    seen = Context((Exchange("", "a window at seven"),))
    with pytest.raises(AssertionError, match="room-time"):
        assert_follows(track, ASKED, seen, slots=slots)


def test_no_slot_or_an_unknown_kind_of_answer_is_refused() -> None:
    with pytest.raises(UserError, match="names no slot"):
        assert_follows(track, ASKED, ASKED, slots=[])
    with pytest.raises(UserError, match="Did you mean 'state'"):
        assert_follows(track, ASKED, ASKED, outcome="states")  # type: ignore[arg-type]  # a mistake


def test_an_expected_change_that_does_not_count_is_refused() -> None:
    later = Delta("room-time", "19:00", Admissible(("18:00",)))
    with pytest.raises(UserError, match="'room-time'"):
        assert_follows(track, ASKED, ASKED, later, slots=["room-extras"])
    with pytest.raises(AssertionError, match="room-time"):
        assert_follows(track, ASKED, ASKED, later, slots=["room-time"])


@pytest.mark.parametrize("slots", ["", [" "], ["room-time", ""]])
@pytest.mark.parametrize("outcome", ["state", "tool-calls"])
def test_a_blank_name_of_a_slot_is_refused(
    slots: str | list[str], outcome: Literal["state", "tool-calls"]
) -> None:
    with pytest.raises(UserError, match="blank"):
        assert_follows(track, ASKED, ASKED, slots=slots, outcome=outcome)


def rail(context: Context) -> dict[str, str]:
    """Lose the day after an edit, and give the other values."""
    day = {"train-day": "friday"} if context.user == ASKED.user else {}
    return {**day, "train-leaveat": "18:00", "hotel-area": "centre", "hotel-book day": "monday"}


EDITED = Context((Exchange("", "an edit"),))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("train-*", "train-day"),
        ("day", "train-day"),
        ("book day", "hotel-book day"),
        ("train", "train-leaveat"),
        ("train_day", "train-day"),
        ("train.day", "train-day"),
        ("train-dya", "train-day"),
        ("trian-day", "train-day"),
        ("train-days", "train-day"),
        ("hotel-bookday", "hotel-book day"),
    ],
)
def test_a_name_that_means_a_slot_but_is_none_is_refused(name: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"{re.escape(repr(name))}.*{meant}"):
        assert_follows(rail, ASKED, EDITED, slots=[name])
    with pytest.raises(UserError, match=f"{re.escape(repr(name))}.*{meant}"):
        assert_follows(rail, ASKED, EDITED, Delta(name, "friday", Admissible(("sunday",))))


@pytest.mark.parametrize("name", ["train-arriveby", "hotel-book stay", "taxi-day", "hotel-name"])
def test_a_slot_that_only_an_earlier_build_filled_still_counts(name: str) -> None:
    assert_follows(rail, ASKED, EDITED, slots=[name])
    with pytest.raises(AssertionError, match=name):
        assert_follows(rail, ASKED, ASKED, Delta(name, None, Admissible(("two",))))


@pytest.mark.parametrize(
    ("slot", "after", "rules"),
    [
        ("Hotel-Area", Admissible(("  Centre",)), {}),
        ("hotel-area", Admissible(("Town Centre",)), {"normalisation": "multiwoz"}),
        ("train-leaveat", Admissible(("6 pm",)), {"normalisation": "multiwoz"}),
        ("train-leaveat", Admissible(("6:00 PM",)), {}),
        ("train-leaveat", Admissible(("6 pm",)), {"arguments": {"train-leaveat": "instant"}}),
        ("train-day", Admissible(("not mentioned",)), {"normalisation": "multiwoz"}),
    ],
)
def test_expected_values_are_normalised_like_answers(
    slot: str, after: Admissible, rules: dict[str, Any]
) -> None:
    delta = Delta(slot, "another value", after)
    assert_follows(rail, ASKED, EDITED, delta, slots=[slot], **rules)
    but = Delta(slot, after.values[0], replace(after, anything_but=True))
    with pytest.raises(AssertionError, match=slot.lower()):
        assert_follows(rail, ASKED, EDITED, but, slots=[slot], **rules)
    other = Delta(slot, None, Admissible(("another value",)))
    with pytest.raises(AssertionError, match=slot.lower()):
        assert_follows(rail, ASKED, EDITED, other, slots=[slot], **rules)


def test_one_expected_value_may_be_given_as_text() -> None:
    text: Any = "18:00"
    leaving = Delta("train-leaveat", "9:00", Admissible(text))
    assert_follows(rail, ASKED, EDITED, leaving, slots=["train-leaveat"])
    part: Any = "18:0"
    with pytest.raises(AssertionError, match="train-leaveat"):
        assert_follows(
            rail,
            ASKED,
            EDITED,
            Delta("train-leaveat", "9:00", Admissible(part)),
            slots=["train-leaveat"],
        )


def test_expected_changes_that_expect_nothing_or_too_much_are_refused() -> None:
    same = Delta("hotel-area", "Centre", Admissible(("centre",)))
    with pytest.raises(UserError, match="same value"):
        assert_follows(rail, ASKED, EDITED, same)
    twice = [Delta(name, "east", Admissible(("west",))) for name in ("hotel-area", "Hotel-Area")]
    with pytest.raises(UserError, match="two changes"):
        assert_follows(rail, ASKED, EDITED, *twice)


def seats(messages: list[dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall("book", {"people": 2, "town": "Ely"})] if messages else []


@pytest.mark.parametrize(
    "name", ["people", "book.poeple", "book[0].poeple", "book_people", "book.*"]
)
def test_a_name_that_is_no_argument_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"book\.people"):
        assert_follows(seats, ASKED, EDITED, slots=[name], outcome="tool-calls")


def test_arguments_count_by_their_names() -> None:
    for name in ("book", "book.people", "book[0].people", "book.when", "book[1].people"):
        assert_follows(seats, ASKED, EDITED, slots=[name], outcome="tool-calls")
    two: Any = 2
    here = Delta("book[0].people", "3", Admissible((two,)))
    assert_follows(seats, ASKED, EDITED, here, outcome="tool-calls")
    with pytest.raises(UserError, match=r"book\[0\].people"):
        assert_follows(
            seats, ASKED, EDITED, replace(here, slot="book.people"), outcome="tool-calls"
        )


def test_a_reply_has_one_name() -> None:
    def answer(messages: list[dict[str, Any]]) -> str:
        return messages[-1]["content"] and "We have 2 rooms."

    assert_follows(answer, ASKED, EDITED, slots=["reply"], outcome="reply")
    with pytest.raises(UserError, match="'reply'"):
        assert_follows(answer, ASKED, EDITED, slots=["answer"], outcome="reply")
    other = Delta("answer", "We have 2 rooms.", Admissible(("We have 9 rooms.",)))
    with pytest.raises(UserError, match="'reply'"):
        assert_follows(answer, ASKED, EDITED, other, outcome="reply")
