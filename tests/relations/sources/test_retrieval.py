"""Retrieval: who says the same, whose words are taken, and how the values are put in."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import Inapplicable, Scene, Scenes, begin
from pytest_dstfuzz.relations.sources import Retrieval, candidate_rows, pool_source
from pytest_dstfuzz.testing import check_relation

ONTOLOGY = Ontology(
    {
        "train-day": ("friday", "sunday"),
        "train-destination": ("ely", "norwich"),
        "hotel-price": ("cheap", "expensive"),
        "train-leave": ("08:15", "17:45"),
    }
)
Said = tuple[str, str, dict[str, str]]
MINE: Said = (
    "",
    "I need a train to Ely on friday.",
    {"train-day": "friday", "train-destination": "ely"},
)


def data(*said: Said) -> DialogueSet:
    """Return dialogues of one turn each."""
    dialogues = [
        Dialogue(f"d{number}", (Turn(0, system, user, BeliefState(state)),))
        for number, (system, user, state) in enumerate(said)
    ]
    return DialogueSet("toy", "test", tuple(dialogues), ONTOLOGY)


def scene(found: DialogueSet) -> Scene:
    lexicon = load_lexicon()
    scenes = Scenes(found, lexicon, Locks(lexicon, found.ontology), 0)
    return scenes.labelled("retrieval", found.dialogues[0], 0)


def others(*said: Said) -> list[str] | str:
    """Return what the first turn becomes, or why nothing comes of it."""
    begun = begin(Retrieval(), scene(data(*said)))
    if isinstance(begun, Inapplicable):
        return begun.reason
    return [rewrite.seen.user for rewrite in begun]  # type: ignore[union-attr]  # rewrites


def other(user: str, system: str = "", **more: str) -> Said:
    return (system, user, {"train-day": "sunday", "train-destination": "norwich", **more})


def test_somebody_elses_words_get_the_values_of_the_turn() -> None:
    assert others(MINE, other("On Sunday a train has to bring me to Norwich.")) == [
        "On Friday a train has to bring me to Ely."
    ]


def test_the_article_and_the_style_of_times_fit_the_new_value() -> None:
    cheap: Said = ("", "A cheap hotel, please.", {"hotel-price": "cheap"})
    dear: Said = ("", "I want an expensive hotel.", {"hotel-price": "expensive"})
    assert others(cheap, dear) == ["I want a cheap hotel."]
    assert others(dear, cheap) == ["An expensive hotel, please."]
    early: Said = ("", "A train that leaves at 8:15.", {"train-leave": "08:15"})
    late: Said = ("", "The train at 17:45.", {"train-leave": "17:45"})
    assert others(late, early) == ["A train that leaves at 17:45."]
    # No half of the day is added.
    evening: Said = ("", "The train at 5:45 pm.", {"train-leave": "17:45"})
    assert others(early, evening) == Retrieval.reasons[3]


@pytest.mark.parametrize(
    "said",
    [
        other("Is there a train to Norwich on sunday?"),
        other("To Norwich on sunday."),
        other("A train to Norwich on sunday.", "Which town is it to be, and when?"),
        other("No, a train to Norwich on sunday."),
        other("A train to Norwich on sunday, and at 17:45."),
        other("A train to Norwich on sunday for Zorbo."),
        other("A train to Norwich on sunday, to Norwich."),
        other("A train to Norwich on sunday.", hotel="cheap"),
        ("", "A train on sunday.", {"train-day": "sunday"}),
        MINE,
    ],
)
def test_words_that_do_not_fit_are_not_taken(said: Said) -> None:
    assert others(MINE, said) == Retrieval.reasons[3]


def test_turns_that_do_not_say_what_they_give_stay() -> None:
    assert others(("", "Hello.", {}), MINE) == Retrieval.reasons[0]
    assert others(("", "Yes, that one.", {"train-day": "friday"}), MINE) == Retrieval.reasons[1]


def test_a_disagreeing_label_forbids_it() -> None:
    found = data(MINE, other("A train to Norwich on sunday."))
    clean = scene(found)
    wrong = BeliefState({"train-day": "friday"})
    lexicon = load_lexicon()
    scenes = Scenes(found, lexicon, Locks(lexicon, found.ontology), 0)
    asked = scenes.of("retrieval", clean.dialogue, 0, [wrong])
    assert begin(Retrieval(), asked) == Inapplicable(Retrieval.reasons[2])


def test_it_needs_labels_and_keeps_the_laws() -> None:
    assert Retrieval().impossible(data(MINE))
    found = data(MINE, other("On Sunday a train to Norwich."))
    assert Retrieval().impossible(found) == ""
    check_relation("retrieval", found).assert_passed()


def test_a_pool_gives_its_words_too() -> None:
    found = data(MINE)
    source = pool_source(data(("", "Hi.", {}), other("On Sunday a train to Norwich.")))
    turns = [(found.dialogues[0], 0)]
    (row,) = candidate_rows(source, found, turns, each=3, seed=0)
    assert (row.text, row.lock, row.source) == ("On Friday a train to Ely.", "", "retrieval")
