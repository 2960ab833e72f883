"""Politeness, indirect questions, synonyms, register, fillers, notations: what is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import UNCHANGED, Inapplicable, Rewrite, Scenes, begin
from pytest_dstfuzz.relations.sources import find_broken_lock
from pytest_dstfuzz.relations.synonyms import CLASSES, WordTable, line_pairs, table_lines

if TYPE_CHECKING:
    from conftest import AskedBot

NAMES = (
    *("politeness", "indirect-question", "filler-sentences", "synonyms", "register"),
    *("number-format", "letter-case", "phrase-order"),
)


#: The lock that a relation may break: a number in words, and a contracted or reworded negation.
ALLOWED = {"number-format": "value", "register": "negation", "synonyms": "negation"}


@pytest.mark.parametrize(
    ("name", "user", "written"),
    [
        ("politeness", "Find me a lawyer.", "Please find me a lawyer."),
        ("politeness", "Find me a lawyer.", "Find me a lawyer, please."),
        ("politeness", "Find me a lawyer.", "Could you find me a lawyer?"),
        ("politeness", "Find me a lawyer.", "Hi! Find me a lawyer."),
        ("politeness", "Find me a lawyer.", "Find me a lawyer. Thank you."),
        ("politeness", "Could you find me a lawyer?", "Find me a lawyer."),
        ("politeness", "Could you find me a lawyer?", "Could you please find me a lawyer?"),
        ("politeness", "Please cancel my appointment.", "Cancel my appointment."),
        ("politeness", "Hello, where is my order?", "Where is my order?"),
        ("politeness", "Hi! Where is my order?", "Where is my order?"),
        ("politeness", "Where is my order? Thank you!", "Where is my order?"),
        ("politeness", "I want a map.", "I would like a map."),
        ("indirect-question", "When do you open?", "I'd like to know when you open."),
        ("indirect-question", "How much does it cost?", "Can you tell me how much it costs?"),
        ("indirect-question", "What is your address?", "Could you tell me what your address is?"),
        ("indirect-question", "Do you have a garden?", "I'd like to know if you have a garden."),
        ("indirect-question", "Is there a pool?", "Can you tell me if there is a pool?"),
        ("indirect-question", "Can I bring my dog?", "I'd like to know if I can bring my dog."),
        (
            "indirect-question",
            "Does the bar close early?",
            "I was wondering if the bar closes early.",
        ),
        ("indirect-question", "I would like to know when you open.", "When do you open?"),
        ("indirect-question", "Can you tell me if there is a pool?", "Is there a pool?"),
        ("synonyms", "Can you fix my bike?", "Can you repair my bike?"),
        ("synonyms", "Can you fix my bike?", "Can you fix my bicycle?"),
        ("synonyms", "Is there an elevator?", "Is there a lift?"),
        ("synonyms", "I want to return my package.", "I want to send back my package."),
        ("register", "I am looking for a map.", "I'm looking for a map."),
        ("register", "I don't want olives.", "I do not want olives."),
        ("register", "What's the price?", "What is the price?"),
        ("number-format", "A table for two people at 7 pm.", "A table for 2 people at 7 pm."),
        ("number-format", "A table for two people at 7 pm.", "A table for two people at 19:00."),
        ("number-format", "I print 5 pages.", "I print five pages."),
        ("number-format", "We come on March 5th.", "We come on the 5th of March."),
        ("number-format", "We come on the 5th of March.", "We come on March 5."),
        ("number-format", "We leave at 17:30.", "We leave at 5:30 pm."),
        ("number-format", "A table for two.", "A table for 2."),
        ("number-format", "We leave at 5:30.", "We leave at half past five."),
        ("number-format", "We leave at half past five.", "We leave at 5:30."),
        ("number-format", "Come at 7 pm.", "Come at 7 in the evening."),
        ("number-format", "It costs $20.", "It costs 20 dollars."),
        ("number-format", "I need it for half an hour.", "I need it for 30 minutes."),
        ("number-format", "We come on January 5th.", "We come on Jan 5th."),
        ("number-format", "Are there any buses to Rome?", "Is there a bus to Rome?"),
        ("number-format", "Is there an indoor pool?", "Are there any indoor pools?"),
        ("number-format", "How much are day tickets?", "How much is a day ticket?"),
        ("politeness", "Find me a map.", "I was wondering if you could find me a map."),
        ("politeness", "Where is my order?", "Excuse me, where is my order?"),
        ("politeness", "My order has not arrived.", "Hello! My order has not arrived."),
        ("indirect-question", "Is the pool open?", "I'd like to know if the pool is open."),
        ("indirect-question", "Who wrote it?", "Can you tell me who wrote it?"),
        ("synonyms", "I don't eat meat.", "I never eat meat."),
        ("synonyms", "Do you have a cheap room?", "Do you have an inexpensive room?"),
        ("synonyms", "Where is the swimming pool?", "Where is the pool?"),
        ("synonyms", "Can I get a refund?", "Can I get my money back?"),
        ("synonyms", "I lost my bank card.", "I've lost my bank card."),
        ("register", "I don't want olives.", "I dont want olives."),
        ("register", "Find me a map, please.", "Find me a map, pls."),
        ("phrase-order", "I need a room on Friday.", "On Friday, I need a room."),
        ("phrase-order", "On Friday, I need a room.", "I need a room on Friday."),
        ("phrase-order", "A room for two on Friday.", "A room on Friday for two."),
        ("phrase-order", "Is there a bus from Rome to Pisa?", "Is there a bus to Pisa from Rome?"),
        ("phrase-order", "A tea and a cake please.", "A cake and a tea please."),
        ("phrase-order", "Can I cancel if it rains?", "If it rains, can I cancel?"),
        ("phrase-order", "If it rains, can I cancel?", "Can I cancel if it rains?"),
        ("phrase-order", "I lost my card. What can I do?", "What can I do? I lost my card."),
        ("letter-case", "Where is Ann?", "WHERE IS ANN?"),
        ("filler-sentences", "When do you open?", "I have a question. When do you open?"),
    ],
)
def test_a_turn_is_worded_otherwise(asked: AskedBot, name: str, user: str, written: str):
    assert written in asked(name, user)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("politeness", "Yes, please."),
        ("politeness", "No, thank you."),
        ("politeness", "Nothing at all."),
        ("indirect-question", "Can you fix my bike?"),
        ("indirect-question", "Are you sure?"),
        ("indirect-question", "How is the weather in Oslo today?"),
        ("indirect-question", "What do you recommend?"),
        ("indirect-question", "Do you know a good bar or is it late?"),
        ("indirect-question", "When does it open and close?"),
        ("synonyms", "The fix was quick."),
        ("synonyms", "I have a book."),
        ("register", "Nothing at all."),
        ("number-format", "Room 4 is cold, and Chapter Two is long."),
        ("number-format", "We leave after 5:30."),
        ("phrase-order", "Cancel my lesson on Friday."),
        ("phrase-order", "Can you book a table on Friday?"),
        ("number-format", "Are you open 24 hours?"),
        ("phrase-order", "We open from Monday to Friday."),
        ("phrase-order", "Please book it for later today."),
        ("phrase-order", "Tell me if it rains."),
        ("phrase-order", "I lost my card. Can you block it?"),
        ("number-format", "One moment."),
        ("filler-sentences", "In the north."),
        ("letter-case", "Mail to https://a.example/Xy"),
        ("indirect-question", "Do you happen to know the way?"),
    ],
)
def test_a_turn_without_a_fitting_place_stays(asked: AskedBot, name: str, user: str):
    found = {text for text in asked(name, user) if name != "letter-case" or "Xy" not in text}
    assert found == set()


def test_greetings_stand_only_before_the_first_turn(asked: AskedBot):
    assert any(text.startswith("Hi!") for text in asked("politeness", "Where is my order?"))
    later = asked("politeness", "Where is my order?", system="Anything else?")
    assert later == {"Where is my order? Thanks!", "Where is my order? Thank you."}


def test_thanks_stand_after_all_marks(asked: AskedBot):
    later = asked("politeness", "Where is my order ? ?", system="Anything else?")
    assert "Where is my order ? ? Thanks!" in later


def test_only_a_bare_answer_gets_please(asked: AskedBot):
    assert "In the garden, please." in asked("politeness", "In the garden.", system="Which seat?")
    assert asked("politeness", "In the garden.", system="Here is your seat.") == set()


def test_own_synonyms_are_used_in_both_directions(asked: AskedBot):
    own = {"mallet": "hammer"}
    assert asked("synonyms", "It is a mallet.") == set()
    assert asked("synonyms", "It is a mallet.", own=own) == {"It is a hammer."}
    assert asked("synonyms", "It is a hammer.", own=own) == {"It is a mallet."}


@pytest.mark.parametrize("name", ["synonyms.tsv", "register.tsv"])
def test_each_line_of_a_table_replaces_words(name: str):
    lines = [line for line in table_lines(name) if line[0] != "#"]
    pairs = [pair for line in lines for pair in line_pairs(line)]
    unused = [pair for pair in pairs if not WordTable.of([pair]).rows]
    assert unused == []
    classes = {word for pair in pairs for side in pair for word in side.split() if word[0] == "@"}
    assert classes <= {*CLASSES, "@more"}


def test_a_value_of_the_answer_gets_no_synonym(rewritten: Callable[..., list[Rewrite]]):
    user = "I need a cheap hotel near the park."
    found = {one.seen.user for one in rewritten("synonyms", user, {"hotel-pricerange": "cheap"})}
    assert found
    assert all("cheap" in text for text in found)


def test_changes_in_one_rewrite_have_words_between_them(asked: AskedBot):
    found = asked("synonyms", "What are your opening hours?")
    assert "What are your business hours?" in found
    assert "What are your business times?" not in found


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_dialogues_keep_their_locked_words(
    sample: DialogueSet, scenes: Scenes, name: str
):
    relation = relation_by_name(name)
    applies = 0
    for dialogue in sample.dialogues[:30]:
        for turn in dialogue.turns:
            scene = scenes.labelled(name, dialogue, turn.index)
            begun = begin(relation, scene)
            if isinstance(begun, Inapplicable):
                assert begun.reason in relation.reasons
                continue
            applies += 1
            assert begun == list(begin(relation, scenes.labelled(name, dialogue, turn.index)))
            for one in begun:
                assert one.expected == UNCHANGED
                assert apply_edits(turn.user, one.edits) == one.seen.user != turn.user
                lock = find_broken_lock(scene, one.seen.user)
                allowed = ALLOWED.get(name, "")
                assert name == "letter-case" or lock in {"", allowed}
    assert applies > 5


def test_a_value_keeps_a_notation_that_counts_as_another(
    rewritten: Callable[..., list[Rewrite]],
):
    user = "A table for two people at 17:30 please"
    state = {"restaurant-book people": "2", "restaurant-book time": "17:30"}
    known = {one.seen.user for one in rewritten("number-format", user, state)}
    assert {user.replace("two", "2"), user.replace("17:30", "5:30 pm")} <= known
    other = {"restaurant-name": "17:30", "restaurant-book people": "2"}
    found = {one.seen.user for one in rewritten("number-format", user, other)}
    assert found == {user.replace("two", "2")}
