"""What ``strict`` lets pass and what it vetoes: known cases, and attacks on real turns."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import Edit

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


def by_hand(text: str, start: int, before: str, after: str) -> tuple[str, Edit]:
    """Return the text with one edit made, and the edit."""
    end = start + len(before)
    return text[:start] + after + text[end:], Edit(
        "char_replace", "hand", start, end, before, after
    )


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{c['utterance'][:25]}-{c['before']}-{c['after']}" for c in CASES]
)
def test_known_cases(case: dict[str, str], strict: Perturber) -> None:
    """``lock`` is the one that vetoes the edit, empty where it passes."""
    utterance, before = case["utterance"], case["before"]
    text, edit = by_hand(utterance, utterance.index(before), before, case["after"])
    status, reason = strict.check(strict.prepare(utterance), text, [edit])
    assert (status, reason) == (("vetoed", case["lock"]) if case["lock"] else ("valid", ""))


def test_values_of_the_state_are_locked_without_an_ontology(lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="strict")
    source = perturber.prepare("a large hawaii with thin crust", ["hawaii", "thin crust"])
    assert source.mask.reasons == ("", "value", "value", "cue", "value", "value")


def test_names_of_the_system_utterance_are_locked(strict: Perturber) -> None:
    source = strict.prepare(
        "the missing sock sounds nice", system="Would The Missing Sock suit you both ?"
    )
    assert source.mask.reasons[1:3] == ("name", "name")


def test_the_users_locks(lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="strict", locks=["quiet room", r"/\bref\w+/"])
    source = perturber.prepare("a Quiet room and the refund , a quiet thing")
    assert [i for i, reason in enumerate(source.mask.reasons) if reason == "user"] == [1, 2, 5]
    assert not source.mask.open[2]
    text, edit = by_hand(source.text, source.text.index("refund"), "refund", "refnud")
    assert perturber.check(source, text, [edit]) == ("vetoed", "user")


@pytest.mark.parametrize(("lock", "message"), [("/(/", "regular expression"), (" ? ", "no word")])
@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_a_broken_lock_is_a_users_mistake(
    lock: str, message: str, validity: str, lexicon: Lexicon
) -> None:
    with pytest.raises(UserError, match=message):
        Perturber(lexicon, locks=[lock], validity=validity)


@pytest.mark.parametrize(
    "options", [{"validity": "strikt"}, {"max_edit_rate": 1.5}, {"edits": ["char_dorp"]}]
)
def test_bad_settings_are_a_users_mistake(options: dict[str, object], lexicon: Lexicon) -> None:
    with pytest.raises(UserError):
        Perturber(lexicon, **{"validity": "strict", **options})


def test_edits_that_do_not_lead_to_the_text_are_vetoed(strict: Perturber) -> None:
    source = strict.prepare("I need help")
    _, edit = by_hand(source.text, 7, "help", "hlep")
    assert strict.check(source, "I need hlpe", [edit]) == ("vetoed", "edits")
    assert strict.check(source, "x", [Edit("char_drop", "any", 0, 1, "x", "")])[1] == "edits"


@pytest.fixture(scope="module")
def real(real_turns: DialogueSet, lexicon: Lexicon) -> tuple[Perturber, list[Turn]]:
    perturber = Perturber(
        lexicon,
        validity="strict",
        ontology=real_turns.ontology,
        cue_words=real_turns.cue_words,
        max_edit_rate=1.0,
    )
    turns = [turn for dialogue in real_turns.dialogues for turn in dialogue.turns]
    return perturber, random.Random(0).sample(turns, 3000)


def mentions(turn: Turn) -> Iterator[tuple[str, int]]:
    """Yield the values of the state that the utterance says to the letter, with offsets."""
    for value in dict.fromkeys((turn.state or {}).values()):
        for match in re.finditer(rf"\b{re.escape(value)}\b", turn.user.lower()):
            if len(turn.user) == len(turn.user.lower()):
                yield value, match.start()


def passes(perturber: Perturber, turn: Turn, edits: list[tuple[int, str, str]]) -> bool:
    """Say whether edits (from the last to the first, offsets of the utterance) pass."""
    text, made = turn.user, []
    for start, before, after in sorted(edits, reverse=True):
        text, edit = by_hand(text, start, before, after)
        made.append(edit)
    source = perturber.prepare(turn.user, (turn.state or {}).values(), turn.system)
    return text != turn.user and perturber.check(source, text, made)[0] == "valid"


@pytest.mark.shared_data
def test_no_swapped_value_passes(real: tuple[Perturber, list[Turn]]) -> None:
    perturber, turns = real
    pool = sorted({value for turn in turns for value in (turn.state or {}).values()})
    rng, tried = random.Random(1), 0
    for turn in turns:
        for value, start in mentions(turn):
            before = turn.user[start : start + len(value)]
            tried += 1
            assert not passes(perturber, turn, [(start, before, rng.choice(pool))]), turn.user
    assert tried > 1000


@pytest.mark.shared_data
def test_no_swap_of_two_values_passes(real: tuple[Perturber, list[Turn]]) -> None:
    perturber, turns = real
    tried = 0
    for turn in turns:
        found = list(mentions(turn))
        for (one, start), (other, at) in pairwise(found):
            if one == other or not (start + len(one) <= at or at + len(other) <= start):
                continue
            first = turn.user[start : start + len(one)]
            second = turn.user[at : at + len(other)]
            tried += 1
            assert not passes(perturber, turn, [(start, first, second), (at, second, first)])
    assert tried > 100


@pytest.mark.shared_data
@pytest.mark.parametrize("negation", ["not", "do not", "do n't", "no", "never", "n't"])
def test_no_inserted_negation_passes(negation: str, real: tuple[Perturber, list[Turn]]) -> None:
    perturber, turns = real
    rng = random.Random(2)
    for turn in turns[:1000]:
        place = rng.choice([0, *(m.end() for m in re.finditer(r"\s", turn.user))])
        assert not passes(perturber, turn, [(place, "", negation + " ")]), (turn.user, place)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "pattern",
    [
        r"\b(?:not|n't|no|never|without)\b ?",
        r"\b(?:from|to|at|by|after|before|for|in|on)\b ?",
        r"\b(?:leave|leaving|arrive|arriving|depart|departing|called|restaurant|hotel|stars)\b ?",
        r"\b(?:any|anything|whatever|care|matter|preference)\b ?",
        r"\b(?:yes|same|there|one|two|\d+)\b ?",
    ],
    ids=["negation", "short cue", "long cue", "dontcare", "answer or reference"],
)
def test_nothing_that_carries_a_slot_is_dropped(
    pattern: str, real: tuple[Perturber, list[Turn]]
) -> None:
    perturber, turns = real
    tried = 0
    for turn in turns:
        for match in re.finditer(pattern, turn.user):
            tried += 1
            assert not passes(perturber, turn, [(match.start(), match[0], "")]), turn.user
    assert tried > 30
