"""Politeness, indirect questions, synonyms, register, fillers, notations: what is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome, Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import UNCHANGED, Inapplicable, Rewrite, Scene, Scenes, begin
from pytest_dstfuzz.relations.sources import find_broken_lock
from pytest_dstfuzz.relations.synonyms import (
    CLASSES,
    Synonyms,
    WordTable,
    line_pairs,
    table_lines,
)

if TYPE_CHECKING:
    from conftest import AskedBot

NAMES = (
    *("politeness", "indirect-question", "stated-need", "filler-sentences", "synonyms"),
    *("long-message", "contrast", "register"),
    *("number-format", "letter-case", "phrase-order"),
)


#: The locks that a relation may break: a number in words, a contracted or reworded negation, and
#: words such as `any chance`.
ALLOWED = {
    "number-format": ("value",),
    "register": ("negation",),
    "synonyms": ("negation",),
    "politeness": ("negation", "dontcare"),
    "contrast": ("value", "negation"),
    "long-message": ("value", "reference", "negation", "dontcare"),
}


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
        (
            "indirect-question",
            "How much does the tour cost?",
            "Can you tell me how much the tour costs?",
        ),
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
        ("synonyms", "My bike is old.", "My bicycle is old."),
        ("synonyms", "Is there an elevator?", "Is there a lift?"),
        ("synonyms", "I need an apartment.", "I need a flat."),
        ("synonyms", "I need a flat near the station.", "I need an apartment near the station."),
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
        ("number-format", "I need a dozen rolls.", "I need 12 rolls."),
        ("number-format", "I need two towels.", "I need a couple of towels."),
        ("number-format", "I print 30 pages.", "I print thirty pages."),
        ("number-format", "Is it on the 2nd floor?", "Is it on the second floor?"),
        ("number-format", "Come at 7:50 pm.", "Come at ten to eight in the evening."),
        ("number-format", "Come at ten to eight in the evening.", "Come at 7:50 pm."),
        ("number-format", "Come at ten to eight in the evening.", "Come at 19:50."),
        ("number-format", "Come at 7:20 pm", "Come at 7:20 p.m."),
        ("number-format", "We come on December 5th.", "We come on 5 Dec."),
        ("number-format", "We come on December 5th.", "We come on the fifth of December."),
        ("number-format", "We come on 25 December.", "We come on 25/12."),
        ("number-format", "A bus for 25 pupils.", "A bus for twenty-five pupils."),
        ("number-format", "It costs £20.", "It costs 20 quid."),
        ("number-format", "We come on December 25.", "We come on 12/25."),
        ("number-format", "We come on 25/12.", "We come on December 25."),
        ("number-format", "We come on 5 May 2026.", "We come on 2026-05-05."),
        ("number-format", "We come on 2026-05-05.", "We come on May 5, 2026."),
        ("number-format", "It takes 20 minutes.", "It takes 20 mins."),
        ("politeness", "Find me a map.", "I was wondering if you could find me a map."),
        ("politeness", "Where is my order?", "Excuse me, where is my order?"),
        ("politeness", "My order has not arrived.", "Hello! My order has not arrived."),
        ("indirect-question", "Is the pool open?", "I'd like to know if the pool is open."),
        ("indirect-question", "Who wrote it?", "Can you tell me who wrote it?"),
        ("synonyms", "I don't eat meat.", "I never eat meat."),
        ("synonyms", "Do you have a cheap room?", "Do you have an inexpensive room?"),
        ("synonyms", "Where is the swimming pool?", "Where is the pool?"),
        ("synonyms", "I want a refund.", "I want my money back."),
        ("synonyms", "Do you sell umbrellas?", "Do you have umbrellas for sale?"),
        ("synonyms", "Switch the lamp on.", "Switch on the lamp."),
        ("synonyms", "Postpone my visit.", "Put off my visit."),
        ("synonyms", "Is there anything but fish?", "Is there anything except fish?"),
        ("synonyms", "Are you open every day?", "Are you open daily?"),
        ("register", "I want to return a jacket.", "I wish to return a jacket."),
        ("register", "Do you have any soup?", "Do you guys have any soup?"),
        ("politeness", "Find me a lawyer.", "Would you mind finding me a lawyer?"),
        ("politeness", "Find me a lawyer.", "Could I trouble you to find me a lawyer?"),
        ("politeness", "Cancel my order.", "Any chance you could cancel my order?"),
        ("politeness", "Would you mind cancelling my order?", "Cancel my order."),
        ("politeness", "Add milk to my list.", "Do you think you could add milk to my list?"),
        ("politeness", "Turn off the lamp.", "Would you mind turning off the lamp?"),
        ("politeness", "Could you turn off the lamp?", "Turn off the lamp."),
        ("politeness", "Remind me to eat.", "Could I trouble you to remind me to eat?"),
        ("politeness", "Do you think you could cancel my order?", "Cancel my order."),
        ("politeness", "I need a room for two nights.", "Could I have a room for two nights?"),
        ("politeness", "Can I have a towel?", "I would like a towel."),
        ("politeness", "Can I book a tour?", "I'd like to book a tour."),
        ("politeness", "I want to return a jacket.", "I was hoping to return a jacket."),
        ("indirect-question", "When do you open?", "Would you mind telling me when you open?"),
        ("indirect-question", "Could I ask when you open?", "When do you open?"),
        ("synonyms", "I lost my bank card.", "I've lost my bank card."),
        ("register", "I don't want olives.", "I dont want olives."),
        ("register", "Find me a map, please.", "Find me a map, pls."),
        ("phrase-order", "I need a room on Friday.", "On Friday, I need a room."),
        ("phrase-order", "I need two tents for 3 days.", "For 3 days, I need two tents."),
        ("phrase-order", "Order 3 bags of cement.", "Order cement, 3 bags."),
        ("phrase-order", "A tent for 2 today under Ely.", "A tent today for 2 under Ely."),
        ("phrase-order", "Move cash from box to shop.", "Move cash to shop from box."),
        ("phrase-order", "On Friday, I need a room.", "I need a room on Friday."),
        ("phrase-order", "A room for two on Friday.", "A room on Friday for two."),
        ("phrase-order", "Is there a bus from Rome to Pisa?", "Is there a bus to Pisa from Rome?"),
        ("phrase-order", "A tea and a cake please.", "A cake and a tea please."),
        ("phrase-order", "Can I cancel if it rains?", "If it rains, can I cancel?"),
        ("phrase-order", "If it rains, can I cancel?", "Can I cancel if it rains?"),
        ("phrase-order", "I lost my card. What can I do?", "What can I do? I lost my card."),
        ("phrase-order", "A table on Friday at 7 pm.", "A table at 7 pm on Friday."),
        ("phrase-order", "A hotel in Leeds for two.", "A hotel for two in Leeds."),
        ("phrase-order", "Do you sell tents and ropes?", "Do you sell ropes and tents?"),
        ("phrase-order", "Do you have tea, soup and cake?", "Do you have soup, tea and cake?"),
        (
            "phrase-order",
            "When do you open and what is the price?",
            "What is the price and when do you open?",
        ),
        ("phrase-order", "Book a tent and order a taxi.", "Order a taxi and book a tent."),
        (
            "phrase-order",
            "Is parking free? When do you open?",
            "When do you open? Is parking free?",
        ),
        ("synonyms", "Please cancel my lesson.", "I no longer need my lesson."),
        ("synonyms", "Please reserve a map for me.", "Please set a map aside for me."),
        ("stated-need", "Please cancel my lesson.", "I need my lesson cancelled."),
        ("stated-need", "Can you fix my boots today?", "My boots need fixing today."),
        ("stated-need", "Can you fix my clock?", "My clock needs fixing."),
        ("stated-need", "Order 3 bags of cement.", "I need 3 bags of cement."),
        ("stated-need", "Please book a tent for two.", "I need to book a tent for two."),
        ("stated-need", "Is there a pool?", "I need a pool."),
        ("stated-need", "I am looking for a vet.", "I need a vet."),
        ("stated-need", "I need a vet in Oslo.", "I'm looking for a vet in Oslo."),
        ("stated-need", "Can you find me a vet?", "I need a vet."),
        ("stated-need", "Do you sell ladders?", "I'm looking for ladders."),
        ("stated-need", "Where is the cloakroom?", "I need to find the cloakroom."),
        ("stated-need", "How much is a tent?", "I need the price of a tent."),
        ("stated-need", "What is the address?", "I need the address."),
        (
            "long-message",
            "When do you open?",
            "It has been a long week. I keep forgetting things. When do you open?",
        ),
        (
            "long-message",
            "Book a tent.",
            "Book a tent. I am in a bit of a hurry. My break ends soon.",
        ),
        ("contrast", "Fix my clock on Friday.", "Fix my clock on Friday, not Saturday."),
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
        ("number-format", "We come on 5/12."),
        ("number-format", "The first time was better."),
        ("number-format", "A couple of friends come."),
        ("phrase-order", "Do you have bed and breakfast?"),
        ("phrase-order", "Can you tell me when you open and what it costs?"),
        ("phrase-order", "I need more for three in the afternoon."),
        ("stated-need", "Is there a cloakroom fee?"),
        ("stated-need", "Where is my parcel?"),
        ("stated-need", "Is there no lift?"),
        ("stated-need", "Are there still tickets?"),
        ("stated-need", "Have a nice day."),
        ("stated-need", "Is there an error on my bill?"),
        ("stated-need", "Where is the mistake?"),
        ("stated-need", "Add two lemons to my basket."),
        ("stated-need", "Please add £40."),
        ("stated-need", "Is there anything else?"),
        ("long-message", "I have a cat."),
        ("long-message", "I lost my card. When do you open?"),
        ("long-message", "When did Ann die?"),
        ("contrast", "Find me a cheap price range."),
        ("contrast", "We open on Friday."),
        ("contrast", "Please"),
        ("contrast", "?! ..."),
        ("contrast", "Fix my clock, not my watch, on Friday."),
        ("filler-sentences", "In the north."),
        ("letter-case", "Mail to https://a.example/Xy"),
        ("indirect-question", "Do you happen to know the way?"),
        ("indirect-question", "Why are the amplifiers important?"),
        ("phrase-order", "Are you open on Fridays?"),
    ],
)
def test_a_turn_without_a_fitting_place_stays(asked: AskedBot, name: str, user: str):
    found = {text for text in asked(name, user) if name != "letter-case" or "Xy" not in text}
    assert found == set()


@pytest.mark.parametrize(
    ("name", "user", "other"),
    [
        ("synonyms", "Please cancel my membership.", "call off"),
        ("synonyms", "Can I hire a bike?", "borrow"),
        ("synonyms", "Can I reserve Emma?", "book"),
        ("synonyms", "Where can I return books?", "send"),
        ("synonyms", "Is there a lift?", "ride"),
        ("register", "I would like to book a class.", "get"),
        ("stated-need", "Can I hire a bike?", "need a bike"),
        ("number-format", "We come on 25 December.", "12/25"),
    ],
)
def test_some_words_mean_something_else_there(asked: AskedBot, name: str, user: str, other: str):
    assert not any(other in text for text in asked(name, user))


@pytest.mark.parametrize("system", ["On which day?", "When will you travel?", "Tell me what day."])
def test_an_answer_keeps_the_time_at_its_end(asked: AskedBot, system: str):
    assert asked("phrase-order", "I want to go on March 9th.", system=system) == set()
    assert asked("phrase-order", "I want to go on March 9th.", system="Anything else?") != set()


def test_a_message_has_one_register(asked: AskedBot):
    found = asked("register", "Please make sure you book my table.")
    assert any("indly" in text for text in found)
    assert not any("indly" in text and " u " in text for text in found)


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


@pytest.mark.parametrize(
    "user",
    [
        *(f"I have a flat {noun}." for noun in ("tyre", "battery", "rate", "screen", "fee")),
        "I have a flat.",
        "I ordered these flat shoes.",
        "I ordered these flats.",
    ],
)
def test_only_a_home_is_an_apartment(asked: AskedBot, user: str):
    assert not [text for text in asked("synonyms", user) if "apartment" in text]


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
                assert name == "letter-case" or lock in {"", *ALLOWED.get(name, ())}
    assert applies > 2


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


def called(
    name: str, user: str, calls: Mapping[str, object], schema: Mapping[str, object] | None = None
) -> set[str]:
    """Return the texts that a relation makes of a message, which the assistant answers by calls."""
    tools = (Tool("book", "", canonical({"properties": schema or {}})),)
    talk = Dialogue(
        "d", (Turn(0, "", user, calls=calls_outcome([ToolCall("book", calls)])),), tools
    )
    data, words = DialogueSet("bot", "test", (talk,)), load_lexicon()
    scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="tool-calls"))
    begun = begin(relation_by_name(name), scenes.labelled(name, talk, 0))
    return set() if isinstance(begun, Inapplicable) else {one.seen.user for one in begun}


def test_the_answer_says_which_number_of_a_date_is_the_month():
    found = called("number-format", "A tent for 5/12.", {"day": "2026-12-05"})
    assert "A tent for 5 December." in found
    found = called("number-format", "A tent for 5/12.", {"day": "2026-05-12"})
    assert "A tent for 12 May." in found
    assert called("number-format", "A tent for 5/12.", {"day": "5/12"}) == set()


def test_a_time_that_a_call_copies_keeps_its_notation():
    user, said = "A tent for 19:30.", "A tent for half past seven in the evening."
    assert said in called("number-format", user, {"time": "19:30"})
    assert said not in called("number-format", "A tent for 7:30 pm.", {"time": "7:30 pm"})


def test_a_value_from_a_list_of_the_schema_gets_a_synonym():
    user = "I need a cheap tent."
    listed = {"price": {"type": "string", "enum": ["cheap", "dear"]}}
    free = {"price": {"type": "string"}}
    assert "I need an inexpensive tent." in called("synonyms", user, {"price": "cheap"}, listed)
    assert all("cheap" in text for text in called("synonyms", user, {"price": "cheap"}, free))


def test_a_few_rewrites_reach_most_of_many_changes(questions: Callable[..., Scene]):
    user = "Can you fix my bike by Friday? Where can I get a refund for the broken lamp?"
    relation, scene = relation_by_name("synonyms"), questions(user, "synonyms")
    assert isinstance(relation, Synonyms)
    changes = list(relation.changes(scene))
    begun = begin(relation, scene)
    assert isinstance(begun, list)
    reached = {word for one in begun for word in one.seen.user.split()} - {*user.split()}
    possible = {word for one in changes for word in one[0].after.split()} - {*user.split()}
    assert len(begun) < len(changes)
    assert len(reached & possible) > len(possible) / 2


def test_a_class_of_words_keeps_the_words_of_the_user():
    table = WordTable.of([("do you sell @more $", "do you have @more for sale $")])
    assert [row.words for row in table.rows["sell"]] == [("have", "@more", "for", "sale")]
    lost = [("sell @more $", "sell things $"), ("@more and @det", "@det and @more")]
    assert WordTable.of(lost).rows == {}


def test_another_kind_of_thing_comes_from_the_data():
    said = ("Please lock my blue box.", "Find my red box.", "Two small lamps.", "Two lamps.")
    talks = tuple(Dialogue(f"d{n}", (Turn(0, "", user),)) for n, user in enumerate(said))
    data, words = DialogueSet("bot", "test", talks), load_lexicon()
    scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="reply"))
    scene = scenes.of("contrast", talks[0], 0, [Outcome({"reply": "Done."})])
    (found,) = begin(relation_by_name("contrast"), scene)
    assert found.seen.user == "Please lock my blue box, not the red box."
