"""The relations in the form of Niu and Bansal's paper."""

from __future__ import annotations

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.checks import check_laws
from pytest_dstfuzz.relations.registry import relation_by_name, relations_named
from pytest_dstfuzz.relations.relation import Inapplicable, Scenes, begin, list_rewrites

LEXICON = load_lexicon()
IN_THE_FORM_OF_A_PAPER = ("first-negation", "first-antonym", "values-only")


def said(name: str, user: str, reply: str = "At nine.") -> list[str] | str:
    """Return the rewritten utterances of a turn, or the reason why there are none."""
    dialogue = Dialogue("d", (Turn(0, "", user),))
    data = DialogueSet("harbour", "test", (dialogue,))
    reply_settings = ReplySettings(outcome="reply")
    scenes = Scenes(data, LEXICON, Locks(LEXICON, None, ()), 0, reply_settings, 8)
    relation = relation_by_name(name)
    begun = begin(relation, scenes.of(name, dialogue, 0, [reply_outcome(reply)]))
    if isinstance(begun, Inapplicable):
        assert begun.reason in relation.reasons
        return begun.reason
    found = list_rewrites(begun)
    assert all(not one.expected.stays for one in found)
    return [one.seen.user for one in found]


@pytest.mark.parametrize(
    ("user", "negated"),
    [
        ("I want some coffee.", "I do not want some coffee."),
        ("Find me a boat", "Do not find me a boat"),
        ("She needs a boat", "She does not need a boat"),
        ("We booked a boat", "We did not book a boat"),
        ("Can you find a boat?", "Can you not find a boat?"),
        ("The boats are big", "The boats are not big"),
        ("I'd like a boat", "I'd not like a boat"),
    ],
)
def test_the_first_verb_is_negated_whatever_it_says(user: str, negated: str):
    assert said("first-negation", user) == [negated]


@pytest.mark.parametrize(
    ("name", "user", "reason"),
    [
        ("first-negation", "The boat", "the turn has no verb"),
        ("first-negation", "I don't want a boat", "the first verb is already negated"),
        ("first-negation", "We are not late", "the first verb is already negated"),
        ("first-antonym", "The boat", "no verb, adjective or adverb of the turn has an antonym"),
    ],
)
def test_why_they_say_nothing(name: str, user: str, reason: str):
    found = said(name, user)
    assert isinstance(found, str)
    assert found.startswith(reason)


@pytest.mark.parametrize("name", ["first-negation", "first-antonym"])
def test_a_fallback_need_not_change(name: str):
    found = said(name, "I want a cheap boat", "Sorry, I do not understand.")
    assert found == "the clean reply is a fallback reply, which need not change"


def test_the_first_word_with_an_antonym_becomes_each_of_them():
    found = said("first-antonym", "Is there a Cheap and early boat?")
    assert isinstance(found, list)
    assert "Is there a Costly and early boat?" in found
    assert len(found) == len(LEXICON.antonyms("cheap"))
    assert all(one.endswith("and early boat?") for one in found)


VALUES = {"hotel-area": ("east", "north"), "hotel-name": ("old mill",), "hotel-parking": ("yes",)}
ROOM = "please find me a room in the north of town"


def hotels(*turns: tuple[str, dict[str, str]]) -> DialogueSet:
    made = (Turn(n, "", user, BeliefState(state)) for n, (user, state) in enumerate(turns))
    return DialogueSet("hotels", "test", (Dialogue("d", tuple(made)),), Ontology(VALUES))


def look_up(context: Context) -> dict[str, str]:
    """Read a value wherever it stands."""
    words = word_list(" ".join(context.user_utterances))
    return {"hotel-area": "north"} if "north" in words else {}


def follow(context: Context) -> dict[str, str]:
    """Read a value only in the words that ask for it."""
    said = " ".join(context.user_utterances)
    return {"hotel-area": "north"} if "in the north" in said else {}


@pytest.mark.parametrize(("tracker", "failures"), [(look_up, {"stuck"}), (follow, set())])
def test_values_only_shows_the_slots_that_survive(tracker: object, failures: set[str]):
    data = hotels((ROOM, {"hotel-area": "north"}))
    (found,) = Campaign(tracker, data, Settings.of(variants=4), relation="values-only")
    assert len(found.variants) == 4
    for one in found.variants:
        words = one.text.split()
        assert words.index("north") == ROOM.split().index("north")
        assert not (set(words) - {"north"}) & set(ROOM.split())
    assert {one.failure for one in found.violations} == failures
    assert {change.slot for one in found.violations for change in one.changed_slots} <= {
        "hotel-area"
    }


@pytest.mark.parametrize(
    ("user", "state", "reason"),
    [
        ("hello there", {}, "the turn changes nothing"),
        ("with parking please", {"hotel-parking": "yes"}, "the turn sets a slot to a value that"),
        ("Old Mill", {"hotel-name": "old mill"}, "the turn has no words besides its values"),
    ],
)
def test_why_values_only_says_nothing(user: str, state: dict[str, str], reason: str):
    answers = BeliefState(state)
    (found,) = Campaign(
        lambda _: answers, hotels((user, state)), Settings.of(), relation="values-only"
    )
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("name", IN_THE_FORM_OF_A_PAPER)
def test_they_are_sound_and_no_part_of_all(name: str):
    data = hotels((ROOM, {"hotel-area": "north"}), ("The Old Mill", {"hotel-area": "north"}))
    check_laws(relation_by_name(name), data, LEXICON, 0).assert_passed()
    assert name not in [one.name for one in relations_named("all")]
