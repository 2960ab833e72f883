"""What each relation says instead, and what it states of the slots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agency import Said, locks, offered, reason, rewrites, scene
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.relations.checks import unsound
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import Rewrite, Scene
from pytest_dstfuzz.relations.should_change.base import Lazily, ShouldChange
from pytest_dstfuzz.relations.should_change.relations import (
    ACKNOWLEDGED,
    COUNTED,
    DENIED,
    GIVES_NOTHING,
    NEEDED,
    NO_CUE,
    NO_ROLE,
    NO_RULE,
    NO_TWIN,
    NO_VERB,
    NOT_ALONE,
    NOTHING_LEFT,
    OTHER_HELD,
    POINTED_AT,
    SAME,
    TOO_LONG,
    Antonym,
    ConfusingEntity,
    Negation,
    RandomInput,
    Removal,
    Repair,
    RoleSwap,
    TurnBack,
    ValueSwap,
)
from pytest_dstfuzz.relations.should_change.sites import MISLABELLED, NO_MENTION

PAGES = Path(__file__).parents[3] / "docs" / "relations"
RELATIONS = [
    *(ValueSwap(), TurnBack(), Removal(), RoleSwap(), ConfusingEntity()),
    *(Negation(), Antonym(), Repair(), RandomInput()),
]

#: Turns of which some relation makes something.
TURNS: list[Said] = [
    (
        "",
        "Find me a cheap room in the north of town",
        {"hotel-price": "cheap", "hotel-area": "north"},
    ),
    ("", "My aunt needs it for 3 nights from FRIDAY", {"hotel-nights": "3", "hotel-day": "friday"}),
    ("", "A coach from Ely to Oslo", {"train-departure": "ely", "train-destination": "oslo"}),
    ("", "She leaves after 09:00 on sunday", {"train-leaveat": "09:00", "train-day": "sunday"}),
    ("", "Does the Old Mill have beds?", {"hotel-name": "old mill"}),
]

#: The examples of the pages.
EXAMPLES: Mapping[str, list[Said]] = {
    "value-swap": TURNS[:1],
    "turn-back": [("", "In the north of town.", {"hotel-area": "north"})],
    "removal": [("", "Find a room in the north part of town, now", {"hotel-area": "north"})],
    "role-swap": TURNS[3:4],
    "negation": [("", "My sister says that we want cheap rooms", {"hotel-price": "cheap"})],
    "antonym": [("", "My aunt likes rooms with free parking", {"hotel-parking": "yes"})],
    "repair": [("", "My aunt travels on friday", {"train-day": "friday"})],
    "confusing-entity": [
        ("", "A room for sunday", {"hotel-day": "sunday"}),
        ("", "A coach on friday", {"hotel-day": "sunday", "train-day": "friday"}),
    ],
}


def said(relation: ShouldChange, *turns: Said) -> dict[str, str]:
    """Return what the user says in each rewrite, and what is said of it for people."""
    return {one.seen.user: one.about for one in rewrites(relation, *turns)}


def test_a_value_is_swapped_in_its_form() -> None:
    found = said(ValueSwap(), TURNS[0])
    assert found["Find me an expensive room in the north of town"] == (
        "hotel-price: cheap -> expensive"
    )
    assert found["Find me a cheap room in the south of town"] == "hotel-area: north -> south"
    assert len(found) == 2 + 4
    capitals = said(ValueSwap(), TURNS[1])
    assert "My aunt needs it for 3 nights from SUNDAY" in capitals
    assert "My aunt needs it for 4 nights from FRIDAY" in capitals
    assert not any("1 nights" in user for user in capitals)
    names = said(ValueSwap(), TURNS[4])
    # The value holds the article that stands there already, and a third is longer by two words.
    assert set(names) == {"Does the River House have beds?", "Does the Green Man have beds?"}


def test_only_what_is_asked_for_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = Scene.rewrite

    def counted(*args: Any, **named: Any) -> Rewrite:
        written.append(write(*args, **named))
        return written[-1]

    monkeypatch.setattr(Scene, "rewrite", counted)
    begun = ValueSwap().begin(scene(TURNS[0]))
    assert isinstance(begun, Lazily)
    first, second = begun.propose(0, 0, ()), begun.propose(1, 0, ())
    # Of six, the first of each slot.
    assert written in ([first, second], [second, first])
    assert begun.propose(0, 0, ()) is first
    assert begun.propose(0, 1, ()) is None
    assert len({one.about for one in written}) == len(written) == 2


def test_nobody_turns_back_on_a_list() -> None:
    several = ("", "A room with a cheap bed in the north", {"hotel-area": '["east", "north"]'})
    assert reason(TurnBack(), several) == GIVES_NOTHING


def test_no_value_describes_a_day() -> None:
    today = ("", "My aunt needs one in north today, please", {"hotel-area": "north"})
    assert reason(Removal(), today) == NEEDED


def test_plurals_and_clocks() -> None:
    museums = ("", "Which museums are there?", {"hotel-kind": "museum"})
    assert set(said(ValueSwap(), museums)) == {
        "Which guesthouses are there?",
        "Which swimming pools are there?",
    }
    clock = ("", "My aunt leaves at 5:15 pm", {"train-leaveat": "17:15"})
    assert set(said(ValueSwap(), clock)) == {"My aunt leaves at 12:45 pm"}


def test_a_new_value_was_never_said() -> None:
    turns: list[Said] = [
        ("", "Is the south nice?", {}),
        ("The east is nicer.", "In the north then", {"hotel-area": "north"}),
    ]
    new = {user.split()[2] for user in said(ValueSwap(), *turns)}
    assert new == {"centre", "west"}


def test_nobody_arrives_before_they_leave() -> None:
    state = {"train-leaveat": "09:00", "train-arriveby": "12:45"}
    user = "We leave after 09:00 and arrive by 12:45"
    for one in rewrites(ValueSwap(), ("", user, state)):
        times = [word for word in one.seen.user.split() if ":" in word]
        assert times == sorted(times)


def test_turn_back_in_both_forms() -> None:
    turn = ("", "In the north of town.", {"hotel-area": "north"})
    found = rewrites(TurnBack(), turn)
    south = [one for one in found if "north -> south" in one.about]
    same, own = south
    assert same.seen.user == "In the north of town. Actually, make the area south."
    assert not same.moves
    assert own.seen.exchanges[-1] == (ACKNOWLEDGED, "Actually, make the area south.")
    assert own.seen.exchanges[:-1] == own.reference.exchanges
    assert [(move.kind, move.turn) for move in own.moves] == [("add", 1)]
    both = {"hotel-area": "north", "train-day": "friday"}
    found = rewrites(TurnBack(), ("", "In the north, on friday", both))
    assert any(one.seen.user.endswith("make the hotel area south.") for one in found)
    assert reason(TurnBack(), ("", "With parking", {"hotel-parking": "yes"})) == GIVES_NOTHING


def test_turn_back_says_a_number_as_people_do() -> None:
    found = rewrites(TurnBack(), ("", "A room for 4 people", {"hotel-people": "4"}))
    assert found
    assert all("Actually, make the number of people " in one.seen.user for one in found)


@pytest.mark.parametrize(
    ("user", "slot", "value", "left"),
    [
        ("I want a cheap room with a bath", "hotel-price", "cheap", "I want a room with a bath"),
        ("I want an expensive room, please", "hotel-price", "expensive", "I want a room, please"),
        ("Find a room in the north part of town, now", "hotel-area", "north", "Find a room, now"),
        ("She likes trains leaving after 09:00.", "train-leaveat", "09:00", NOTHING_LEFT),
        ("She likes any trains that leave after 09:00", "train-leaveat", "09:00",
         "She likes any trains"),
        ("My aunt takes the train departing from ely", "train-departure", "ely",
         "My aunt takes the train"),
        ("Book it for 3 people and 4 nights", "hotel-people", "3", "Book it for 4 nights"),
        ("Book it for my aunt, for 3 nights", "hotel-nights", "3", NEEDED),
        ("My aunt and me arrive by 09:00", "train-arriveby", "09:00", NEEDED),
        ("A cheap room", "hotel-price", "cheap", NOTHING_LEFT),
        ("Find me a room in the north, is it nice there?", "hotel-area", "north", POINTED_AT),
    ],
)  # fmt: skip
def test_a_phrase_is_left_out(user: str, slot: str, value: str, left: str) -> None:
    turn = ("", user, {slot: value})
    if left in Removal.reasons:
        assert reason(Removal(), turn) == left
        return
    (one,) = rewrites(Removal(), turn)
    assert one.seen.user == left
    assert [(delta.slot, delta.after.values) for delta in one.expected.deltas] == [(slot, (None,))]


def test_what_is_removed_may_be_as_before() -> None:
    turns: list[Said] = [
        ("", "Hello", {"hotel-price": "expensive"}),
        ("", "I want a cheap room with a bath", {"hotel-price": "cheap"}),
    ]
    (one,) = rewrites(Removal(), *turns)
    (delta,) = one.expected.deltas
    assert delta.after.values == ("expensive", None)


def test_ends_are_exchanged() -> None:
    (one,) = rewrites(RoleSwap(), TURNS[2])
    assert one.seen.user == "A coach from Oslo to Ely"
    assert one.about == "train-departure: ely -> oslo, train-destination: oslo -> ely"


def test_a_time_moves_to_the_other_role() -> None:
    (one,) = rewrites(RoleSwap(), TURNS[3])
    assert one.seen.user == "She arrives by 09:00 on sunday"
    assert one.about == "train-arriveby: none -> 09:00, train-leaveat: 09:00 -> none"
    back = ("", "Arriving before 09:00 would be great", {"train-arriveby": "09:00"})
    (one,) = rewrites(RoleSwap(), back)
    assert one.seen.user == "Leaving after 09:00 would be great"


def test_roles_that_are_not_swapped() -> None:
    times = {"train-leaveat": "09:00", "train-arriveby": "12:45"}
    held = ("", "We leave after 09:00 and arrive by 12:45", times)
    assert reason(RoleSwap(), held) == OTHER_HELD
    after = ("", "She leaves after 09:00, any right after that?", {"train-leaveat": "09:00"})
    assert reason(RoleSwap(), after) == NO_CUE
    assert reason(RoleSwap(), ("", "On sunday", {"train-day": "sunday"})) == NO_ROLE


def test_the_value_of_another_slot() -> None:
    before: Said = ("", "A room for sunday", {"hotel-day": "sunday"})
    now: Said = ("", "A coach on friday", {"hotel-day": "sunday", "train-day": "friday"})
    (one,) = rewrites(ConfusingEntity(), before, now)
    assert one.seen.user == "A coach on sunday"
    assert one.about == "train-day: friday -> sunday, the value of hotel-day"
    assert reason(ConfusingEntity(), now) == NO_TWIN
    same = ("", "The same hotel, and a coach on friday", now[2])
    assert reason(ConfusingEntity(), before, same) == SAME


@pytest.mark.parametrize(
    ("user", "state", "expected"),
    [
        ("My aunt says it should be cheap", {"hotel-price": "cheap"},
         "My aunt says it should not be cheap"),
        ("I'm looking for cheap rooms", {"hotel-price": "cheap"},
         "I'm looking for rooms that are not cheap"),
        ("I'm looking for a cheap room, please", {"hotel-price": "cheap"},
         "I'm looking for a room that is not cheap, please"),
        ("My aunt says we need parking", {"hotel-parking": "yes"},
         "My aunt says we do not need parking"),
        ("My aunt says we will need free parking", {"hotel-parking": "yes"},
         "My aunt says we will not need free parking"),
        ("My aunt says it should include wifi", {"hotel-web": "yes"},
         "My aunt says it does not need to include wifi"),
        ("My aunt says we need a garden", {"hotel-garden": "true"},
         "My aunt says we do not need a garden"),
        ("My aunt says it needs to be cheap", {"hotel-price": "cheap"}, NO_VERB),
        ("Please book it for friday", {"hotel-day": "friday"}, DENIED),
        ("We want a room for 3 nights", {"hotel-nights": "3"}, COUNTED),
        ("We want cheap rooms in the north", {"hotel-price": "cheap", "hotel-area": "north"},
         "We want cheap rooms that are not in the north"),
        ("Is there a room in the north?", {"hotel-area": "north"},
         "Is there a room that is not in the north?"),
        ("We want cheap rooms with beds in the north",
         {"hotel-price": "cheap", "hotel-area": "north"},
         "We want rooms that are not cheap, with beds in the north"),
        ("It should be cheap, do they have parking?", {"hotel-price": "cheap"}, NOT_ALONE),
        ("We need the address of a museum", {"hotel-kind": "museum"}, NO_VERB),
        ("Do we want it cheap?", {"hotel-price": "cheap"}, NO_VERB),
        ("We also need parking", {"hotel-parking": "yes"}, "We do not need parking"),
        ("We need parking, too.", {"hotel-parking": "yes"}, "We do not need parking."),
        ("We need parking as well please", {"hotel-parking": "yes"}, NO_VERB),
        ("I must have free parking", {"hotel-parking": "yes"},
         "I do not need to have free parking"),
        ("My mum comes, too. She would like parking", {"hotel-parking": "yes"},
         "My mum comes, too. She would not like parking"),
        ("I want the St. Osyth please", {"hotel-name": "st osyth"}, NO_VERB),
        ("I want a museum", {"hotel-kind": "museum"}, DENIED),
        ("We want a hotel with parking", {"hotel-parking": "yes"}, DENIED),
        ("I am looking for something in the north, thanks", {"hotel-area": "north"},
         "I am looking for something that is not in the north, thanks"),
        ("I want something cheap", {"hotel-price": "cheap"}, DENIED),
        ("Help me. I want something cheap", {"hotel-price": "cheap"},
         "Help me. I do not want something cheap"),
        ("We want a cheap room with beds", {"hotel-price": "cheap"},
         "We want a room that is not cheap, with beds"),
        ("Show me the weather in the north", {"hotel-area": "north"}, NO_VERB),
        ("Find a museum", {"hotel-kind": "museum"}, DENIED),
        ("I am going back to Ely", {"train-destination": "ely"}, DENIED),
        ("I want the Old Mill", {"hotel-name": "old mill"}, DENIED),
        ("I am attending a lecture in Ely", {"train-destination": "ely"}, DENIED),
        ("I'd like it cheap", {"hotel-price": "cheap"}, "I do not want it cheap"),
        ("It has a pool and I want it cheap", {"hotel-price": "cheap"}, DENIED),
        ("A hotel in the north part of town", {"hotel-area": "north"},
         "A hotel that is not in the north part of town"),
        ("Is there a hotel in Oslo?", {"hotel-area": "oslo"}, DENIED),
        ("Yes, we need parking", {"hotel-parking": "yes"}, DENIED),
        ("It is late but we need parking", {"hotel-parking": "yes"}, DENIED),
    ],
)  # fmt: skip
def test_a_clause_is_negated_at_its_verb(
    user: str, state: Mapping[str, str], expected: str
) -> None:
    if expected in Negation.reasons:
        assert reason(Negation(), ("", user, state)) == expected
    else:
        (one,) = rewrites(Negation(), ("", user, state))
        assert one.seen.user == expected


def test_no_denial_of_the_weather_or_of_a_thought() -> None:
    for wish in ("looking for the weather in the north", "thinking of the north"):
        turn = ("Which area?", f"I am {wish}", {"hotel-area": "north"})
        assert reason(Negation(), turn) == DENIED


@pytest.mark.parametrize("question", ["What kind of place should it be, then?", "Which one."])
def test_no_answer_only_refuses_one_value(question: str) -> None:
    turn = ("", "I want it cheap", {"hotel-price": "cheap"})
    (one,) = rewrites(Negation(), turn)
    assert one.seen.user == "I do not want it cheap"
    assert reason(Negation(), (question, *turn[1:])) == DENIED


WEB = {"hotel-web": "yes"}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("My aunt likes rooms with free wi-fi", "My aunt likes rooms without free wi-fi"),
        ("It should have Wi Fi, please", "It should lack Wi Fi, please"),
        ("One that also offers wifi", "One that also lacks wifi"),
        ("Does it include wifi?", NO_RULE),
        ("My aunt wants to know if it has wifi", NO_RULE),
        ("We have wifi ourselves", NO_RULE),
        ("Rooms with wifi and beds", NO_RULE),
        ("Rooms with wifi, parking, beds", NO_RULE),
        ("Rooms with internet", NO_MENTION),
    ],
)
def test_what_people_call_a_slot_says_the_data(user: str, expected: str) -> None:
    state = WEB | ({"hotel-parking": "yes"} if "parking" in user else {})
    if expected in Antonym.reasons:
        assert reason(Antonym(), ("", user, state)) == expected
    else:
        (one,) = rewrites(Antonym(), ("", user, state))
        assert one.seen.user == expected
        assert one.about == "hotel-web: yes -> no or dontcare or none"


def test_data_may_write_true_and_false_for_yes_and_no() -> None:
    garden = ("", "My aunt likes rooms with a garden", {"hotel-garden": "true"})
    (one,) = rewrites(Antonym(), garden)
    assert one.seen.user == "My aunt likes rooms without a garden"
    assert one.about == "hotel-garden: true -> false or dontcare or none"
    assert rewrites(RandomInput(), garden)
    assert reason(Antonym(), (*garden[:2], {"hotel-garden": "false"})) == NO_MENTION
    assert reason(Antonym(), garden, label={"hotel-garden": "false"}) == MISLABELLED


def test_what_has_no_opposite_and_what_is_too_long() -> None:
    parking = {"hotel-parking": "yes"}
    assert reason(Antonym(), ("", "My aunt likes parking", parking)) == NO_RULE
    name = ("", "Is the Old Mill open?", {"hotel-name": "old mill"})
    assert reason(Repair(), name) == TOO_LONG


def test_random_words_say_nothing() -> None:
    for one in rewrites(RandomInput(), TURNS[0]):
        words = one.seen.user.split()
        assert len(words) == len(str(TURNS[0][1]).split())
        assert not any(locks().guard_of(word) for word in words)
        assert not {"hotel", "train", "area", "parking", "people"} & set(words)
        assert [delta.after.values for delta in one.expected.deltas] == [(None,), (None,)]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_it_is_registered_and_says_when_it_is_impossible(relation: ShouldChange) -> None:
    assert relation_by_name(relation.name).name == relation.name
    assert relation.side == "should-change"
    assert relation.impossible(scene(TURNS[0]).data) == ""
    if relation.name not in {"removal", "negation", "random-input"}:
        assert relation.impossible(DialogueSet("empty", "test", ()))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@given(numbers=st.lists(st.sampled_from(range(len(TURNS))), min_size=1, max_size=3, unique=True))
def test_rewrites_are_sound_and_the_same_again(relation: ShouldChange, numbers: list[int]) -> None:
    states: dict[str, str] = {}
    talk: list[Said] = []
    for number in numbers:
        system, user, state = TURNS[number]
        states = states | dict(state)
        talk.append((system, user, states))
    made = [offered(relation, *talk) for _ in range(2)]
    assert made[0] == made[1]
    for one in made[0]:
        here = scene(*talk)
        assert not unsound(one, here)
        assert apply_edits(here.turn.user, one.edits) == (
            here.turn.user if one.moves else one.seen.user
        )
        expected: Mapping[str, str | None] = {
            delta.slot: None if delta.after.anything_but else delta.after.values[0]
            for delta in one.expected.deltas
        }
        found = BeliefState(
            {slot: value for slot, value in ({**here.now} | dict(expected)).items() if value}
        )
        assert one.expected.judge(here.now, found).kind == "held"
        assert one.expected.judge(here.now, here.now).failure == "stuck"


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_its_page_says_what_it_does(relation: ShouldChange) -> None:
    text = (PAGES / f"{relation.name}.md").read_text(encoding="utf-8")
    opening = "The bot's answer should change. The relation tests single turns."
    assert f"# {relation.name}\n\n{opening}" in text
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["Edits", "Expects", "Does not apply", "Example", "Words"]
    assert [reason for reason in relation.reasons if f"- {reason}" not in text] == []
    if relation.name not in EXAMPLES:
        return
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", text, re.MULTILINE))
    turns = EXAMPLES[relation.name]
    assert (rows["before"], rows.get("earlier", turns[0][1])) == (turns[-1][1], turns[0][1])
    assert said(relation, *turns)[rows["after"]].startswith(rows["expected"].strip("`"))
