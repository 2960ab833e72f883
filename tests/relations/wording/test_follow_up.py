"""Short questions after another question, whole questions, and questions after their topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import UNCHANGED, Inapplicable, Rewrite, Scenes, begin


def _turns(*said: str) -> tuple[Turn, ...]:
    return tuple(Turn(index, "Yes." if index else "", user) for index, user in enumerate(said))


def rewrites(*said: str, others: tuple[str, ...] = ()) -> list[Rewrite]:
    """Return the rewrites of the last turn. The data has other dialogues, too."""
    turns = _turns(*said)
    talks = [Dialogue("d", turns)]
    talks += [Dialogue(f"o{n}", _turns(user, "Thanks.")) for n, user in enumerate(others)]
    data, words = DialogueSet("bot", "test", tuple(talks)), load_lexicon()
    scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="reply"))
    replies = [Outcome({"reply": "We open at nine."})] * len(turns)
    scene = scenes.of("follow-up", talks[0], len(turns) - 1, replies)
    begun = begin(relation_by_name("follow-up"), scene)
    if isinstance(begun, Inapplicable):
        assert begun.reason in relation_by_name("follow-up").reasons
        return []
    assert isinstance(begun, list)
    return begun


def texts(*said: str) -> set[str]:
    """Return the texts of rewrites without another turn."""
    found = [one.seen for one in rewrites(*said) if len(one.seen.exchanges) == len(said)]
    return {one.user for one in found}


def rounds(*said: str, others: tuple[str, ...] = ("Hello.",)) -> set[tuple[str, ...]]:
    """Return the newest two messages of the user in rewrites with another turn."""
    found = [one.seen.exchanges for one in rewrites(*said, others=others)]
    return {(last[-2].user, last[-1].user) for last in found if len(last) > len(said)}


@pytest.mark.parametrize(
    ("first", "short", "whole"),
    [
        ("Are you open on Fridays?", "And on Sundays?", "Are you open on Sundays?"),
        ("Are you open on Fridays?", "What about Sundays?", "Are you open on Sundays?"),
        ("Do you deliver to Leeds?", "What about York?", "Do you deliver to York?"),
        ("How much is a ticket for adults?", "And children?", "How much is a ticket for children?"),
        ("Do you have phones?", "Android phones?", ""),
        ("When do you open?", "On Sundays?", "When do you open on Sundays?"),
        ("Do you sell tents?", "What about ropes?", "Do you sell ropes?"),
        ("Is there a pool?", "And a gym?", "Is there a gym?"),
        (
            "How much is a museum ticket?",
            "And for children?",
            "How much is a museum ticket for children?",
        ),
        ("Do you deliver to Leeds?", "And to York?", "Do you deliver to York?"),
        ("I need a tent.", "And ropes?", ""),
        ("Who are you?", "And why?", ""),
    ],
)
def test_a_short_question_becomes_a_whole_one(first: str, short: str, whole: str):
    found = texts(first, short)
    assert (whole in found) if whole else found == set()


def test_a_short_question_has_other_words():
    found = texts("Are you open on Fridays?", "And on Sundays?")
    assert {"What about Sundays?", "How about Sundays?"} <= found


@pytest.mark.parametrize(
    ("first", "whole", "short"),
    [
        ("Are you open on Fridays?", "Are you open on Sundays?", "And on Sundays?"),
        ("Do you sell tents?", "Do you sell ropes?", "What about ropes?"),
        ("Is there a pool?", "Is there a gym?", "And a gym?"),
        ("Do you deliver to Leeds?", "Do you deliver to York?", "What about York?"),
        ("Do you sell tents?", "Are you open on Sundays?", ""),
    ],
)
def test_a_whole_question_becomes_a_short_one(first: str, whole: str, short: str):
    found = texts(first, whole)
    assert (short in found) if short else found == set()


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        ("Are you open on Sundays?", "And on Sundays?"),
        ("Do you deliver to York?", "And to York?"),
        ("How much is a ticket for children?", "And for children?"),
        ("Can I pay by card?", "And by card?"),
    ],
)
def test_a_question_may_follow_another_one(whole: str, short: str):
    found = {first for first, then in rounds(whole) if then[:3] == short[:3]}
    assert found
    assert whole not in found


def test_no_round_is_added_to_data_of_single_questions():
    assert rewrites("Are you open on Sundays?") == []
    assert rewrites("When does the museum open?") == []


def test_the_other_question_may_come_from_the_data():
    found = rounds("Do you sell tents?", others=("Do you sell ropes?",))
    assert "Do you sell ropes?" in {first for first, _ in found}


@pytest.mark.parametrize(
    ("user", "topic", "then"),
    [
        ("When does the museum open?", "the museum", "When does it open?"),
        ("Is the pool heated?", "the pool", "Is it heated?"),
        ("Are your rooms quiet?", "your rooms", "Are they quiet?"),
        ("Cancel my order.", "my order", "Cancel it."),
        ("Please cancel my order.", "my order", "Please cancel it."),
    ],
)
def test_a_topic_may_come_first(user: str, topic: str, then: str):
    found = rounds(user)
    assert then in {last for _, last in found}
    assert all(topic in first for first, last in found if last == then)


@pytest.mark.parametrize(
    "user",
    [
        "When does the doctor come?",
        "What is your address?",
        "I need a tent.",
        "Is it open? Is it far?",
        "Mail it to a@b.example, is that fine?",
    ],
)
def test_some_turns_stay(user: str):
    assert rewrites(user, others=("Hello.",)) == []


def test_the_answer_must_stay():
    found = rewrites("Are you open on Fridays?", "Are you open on Sundays?")
    assert {one.expected for one in found} == {UNCHANGED}
    assert {len(one.seen.exchanges) for one in found} == {2, 3}


def test_a_state_gets_no_question_with_another_value(rewritten: Callable[..., list[Rewrite]]):
    found = rewritten("follow-up", "Is there a pool?", {})
    assert all(len(one.seen.exchanges) == len(one.reference.exchanges) for one in found)
