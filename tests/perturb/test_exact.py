"""Text whose letters carry the meaning stays as it is, in all ways in which a turn is edited."""

from __future__ import annotations

import time

import pytest

from pytest_dstfuzz.perturb.edits import Edit
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.exact import exact_spans
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import take_apart
from tools.exact import LATER, TEXTS, WAYS, ExactText, check, read_texts

ALL = [*read_texts(TEXTS), *read_texts(LATER)]


@pytest.mark.parametrize("way", WAYS)
def test_no_exact_span_is_damaged(way: str) -> None:
    """`python -m tools.exact` draws more; see CONTRIBUTING.md."""
    count, broken = check(ALL, way, 2 * len(ALL))
    assert not broken
    assert count > len(ALL)


def test_relations_that_say_it_otherwise_leave_them() -> None:
    count, broken = check(ALL[::4], "relations", 0)
    assert not broken
    assert count > len(ALL)


def test_the_check_of_this_test_sees_damage() -> None:
    text = ExactText("label", "open file_a and c++ please", ("file_a", "c++"))
    assert not text.damaged("plz open file_a and c++ pleas")
    assert text.damaged("open filea and c++") == "file_a"
    assert text.damaged("open file_a and c+ please") == "c++"
    assert text.damaged("open myfile_a and c++") == "file_a"


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("I read a.b/c here", "a.b", "a .b"),
        ("dear {name} , hello", "{name}", "{ name}"),
        ("we learn c++ now", "c++", "c+"),
        ("put `wake up` there", "wake up", "wake  up"),
    ],
)
def test_the_second_check_vetoes_what_is_put_into_a_span(
    text: str, before: str, after: str, strict: Perturber
) -> None:
    start = text.index(before)
    edit = Edit("word_insert", "hand", start, start + len(before), before, after)
    source = strict.prepare(text)
    status, _ = strict.check(source, text.replace(before, after, 1), [edit])
    assert status == "vetoed"


@pytest.mark.parametrize(
    ("text", "word", "locked"),
    [
        ("a flight to nice please", "nice", True),
        ("i am looking for a nice hotel", "nice", False),
        ("a hotel in nice weather", "nice", False),
        ("a table for will smith", "will", True),
        ("a table that will do for me", "will", False),
        ("is there a train to reading today", "reading", True),
        ("i like reading books at home", "reading", False),
        ("my password is sunshine ok", "sunshine", True),
        ("i hope for sunshine today", "sunshine", False),
        ("i would take option a", "option", True),
        ("that is an option for me", "option", False),
        ("the louis xiv room", "xiv", True),
        ("i mix that up", "mix", False),
        ("run select name from guests", "name", True),
        ("please select a room for me", "select", False),
        ("it costs too much.please help", "help", False),
        ("i didn't like the kids' menu or the parents' room", "menu", False),
        ("this is the option i want", "option", False),
        ("the class i booked was full", "class", False),
        ("this part i do not understand", "part", False),
        ("i have diabetes of type i", "type", True),
        ("can you print the ticket for me", "ticket", False),
        ("can i pay by card or in cash", "card", False),
        ("we would come by tram or on foot", "tram", False),
        ("a room with balcony and sauna", "balcony", False),
        ("we fly to orlando with frontier", "frontier", True),
        ("there is a minor problem in a flat", "minor", False),
        ("i want the audio/video equipment", "video", False),
        ("a typed letter looks better", "letter", False),
        ("the wifi in our room is slow", "wifi", False),
        ("we ate too late", "ate", False),
    ],
)
def test_a_word_is_locked_where_it_is_exact(text: str, word: str, locked: bool) -> None:
    parts = take_apart(text)
    reasons = Locks(load_lexicon()).mask(text, parts).reasons
    index = [one.lower for one in parts.words].index(word)
    assert (reasons[index] in {"exact", "name"}) == locked


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("我不要早餐", True),
        ("Я не хочу завтрак", True),
        ("ich brauche ein zimmer", True),
        ("no quiero desayuno", True),
        ("I want a room, pero no quiero desayuno", True),
        ("the value of π is fine", False),
        ("no", False),
        ("ok thx", False),
        ("que pasa tacos el toro please", False),
        ("I wo n't need it , thanks", False),
        ("a table at la dolce vita for two", False),
        ("gimme a cab 2nite pls", False),
    ],
)
def test_other_languages_are_told_apart(text: str, other: bool) -> None:
    locks = Locks(load_lexicon())
    assert locks.is_other_language(take_apart(text)) == other


@pytest.mark.parametrize("validity", ["natural", "strict"])
def test_nothing_is_edited_in_another_language(validity: str, lexicon: Lexicon) -> None:
    source = Perturber(lexicon, validity=validity).prepare("ich möchte kein frühstück haben.")
    assert set(source.mask.reasons) == {"language"}
    assert not any(source.mask.open)
    assert not any(token.slips for token in source.draft.tokens)


@pytest.mark.parametrize("text", ["[]", "{!}", '"?"', "((…))", "=> <-"])
def test_a_text_without_any_word_has_exact_spans_too(text: str, strict: Perturber) -> None:
    assert strict.prepare(text).text == text


@pytest.mark.parametrize("piece", ["a.", "a_", "/a", "{", "a b ", "'a", "a dot ", "a = ", "x("])
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    start = time.process_time()
    exact_spans((piece * 10_000)[:10_000])
    assert time.process_time() - start < 5
