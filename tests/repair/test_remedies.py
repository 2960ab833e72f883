"""Remedies rewrite the messages of the user, and only those."""

from __future__ import annotations

from pytest_dstfuzz import Context, Exchange, TurnResult
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.repair.remedies import REMEDIES, Correctors, SaidWords

VOCABULARY, SPELLING, FORM, BOTH = REMEDIES
CORRECTORS = Correctors(SpellingCorrector(), SpellingCorrector(["table"], only_own=True))


def turn(dialogue: str, user: str, system: str = "") -> TurnResult:
    return TurnResult(
        id=f"x-test-{dialogue}-t0",
        dialogue_id=dialogue,
        turn_index=0,
        system=system,
        user=user,
        clean_state=None,
        outcome="held",
        variants=(),
    )


def test_each_remedy_changes_its_own_part() -> None:
    asked = Context((Exchange("Helo!", "A tabel, plese"), Exchange("When?", "“AT NINE”")))
    users = {one.name: one.applied(asked, CORRECTORS).user_utterances for one in REMEDIES}
    assert users == {
        "vocabulary": ("A table, plese", "“AT NINE”"),
        "spelling": ("A table, please", "“AT NINE”"),
        "form": ("a tabel, plese", '"at nine"'),
        "form+vocabulary": ("a table, plese", '"at nine"'),
    }
    assert SPELLING.applied(asked, CORRECTORS).exchanges[0].system == "Helo!"


def test_a_context_without_errors_is_the_same_object() -> None:
    asked = Context((Exchange("", "a table"),))
    assert all(one.applied(asked, CORRECTORS) is asked for one in REMEDIES)


def test_words_of_the_system_are_known_once_it_has_said_them() -> None:
    asked = Context((Exchange("", "at the quilliarf"), Exchange("The quilliarf?", "quilliarf")))
    correctors = CORRECTORS._replace(spelling=SpellingCorrector(["quilliard"]))
    first, second = SPELLING.applied(asked, correctors).user_utterances
    assert (first, second) == ("at the quilliard", "quilliarf")


def test_a_word_is_learned_from_two_other_dialogues() -> None:
    turns = [turn(name, "at the zlorbine please") for name in "abc"]
    said = SaidWords([*turns, turn("a", "zlorbine and prunkel"), turn("d", "prunkel 17")])
    assert said.learned() == {"at", "the", "please", "zlorbine", "prunkel"}
    assert said.learned(besides="a") == {"at", "the", "please", "zlorbine"}
    assert SaidWords(turns[:2]).learned(besides="a") == frozenset()
