"""METAL's four perturbations."""

from __future__ import annotations

import re

import pytest

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.checks import check_laws
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import Inapplicable, Rewrite, Scenes, begin

LEXICON = load_lexicon()
QUESTIONS = (
    "When does the ferry to Lerwick leave in the morning?",
    "How many cabins of the ferry are free on Sunday night?",
)
DIALOGUE = Dialogue("d", tuple(Turn(n, "", text) for n, text in enumerate(QUESTIONS)))
DATA = DialogueSet("ferries", "test", (DIALOGUE,))


def made(name: str, variants: int = 6, data: DialogueSet = DATA) -> list[Rewrite] | Inapplicable:
    guards, reply = Locks(LEXICON, None, ()), ReplySettings(outcome="reply")
    scenes = Scenes(data, LEXICON, guards, 0, reply, variants)
    answers = [reply_outcome("At nine.")] * len(data.dialogues[0].turns)
    last = len(answers) - 1
    found = begin(relation_by_name(name), scenes.of(name, data.dialogues[0], last, answers))
    assert isinstance(found, list | Inapplicable)
    return found


@pytest.mark.parametrize("name", ["metal-synonyms", "metal-word", "metal-typos", "metal-leet"])
def test_each_changes_some_words_of_the_question_alone(name: str):
    check_laws(relation_by_name(name), DATA, LEXICON, 0).assert_passed()
    found = made(name)
    assert isinstance(found, list)
    assert 4 <= len(found) <= 6
    assert found == made(name)
    for one in found:
        assert one.case == name
        assert one.expected.stays
        assert one.seen.exchanges[:-1] == one.reference.exchanges[:-1]
        assert 1 <= len(one.edits) <= 2
        assert one.seen.user != QUESTIONS[1]


def test_their_edits():
    for one in made("metal-leet"):
        assert re.fullmatch(r"[^aeiost\s]+", one.edits[0].after, re.IGNORECASE)
    known = {word for text in QUESTIONS for word in word_list(text)}
    for one in made("metal-word"):
        added = one.edits[0].after.split()[0]
        assert added in known
    for one in made("metal-typos"):
        assert abs(len(one.edits[0].after) - len(one.edits[0].before)) <= 1


def test_why_they_say_nothing():
    short = DialogueSet("short", "test", (Dialogue("s", (Turn(0, "", "Zzz 3"),)),))
    assert made("metal-leet", data=short) == Inapplicable(
        "no word of the question has one of the letters a, e, i, o, s and t"
    )
    assert made("metal-synonyms", data=short) == Inapplicable(
        "no word of the question has a synonym"
    )
