"""The share of violations that a spelling corrector before the bot would mend."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.results import ContextEdits, TurnResult
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.totals.totals import Totals

SAID = "please book a table at Wetherfield for friday"
LOST = {"table-day": ("friday", None)}


def broken(operator: str, before: str, after: str, number: int = 0, **more: object) -> TurnResult:
    one = violation(SAID, [edit(SAID, operator, before, after)], LOST)
    found = turn(SAID, {"table-day": "friday"}, one, dialogue=f"d{number}")
    return replace(found, **more)  # type: ignore[arg-type]  # fields of a result


def totals(*results: TurnResult, words: tuple[str, ...] = ("wetherfield",)) -> Totals:
    found = Totals(words=" ".join(words))
    for one in results:
        found.add(one)
    return found


def test_a_slip_is_mended_if_the_clean_text_comes_back() -> None:
    slip, other = ("char_replace/swap", "table", "talbe"), ("char_drop/any", "Wether", "Wethr")
    dropped = ("word_drop/any", "please ", "")
    results = [broken(*one, n) for n, one in enumerate((slip, other, dropped))]
    found = totals(*results).mending
    assert found == (2, 3, 0, 3)
    assert found.pays
    # Without such a value in the ontology, the corrector takes the right name for a slip.
    assert totals(*results, words=()).mending == (0, 3, 3, 3)


def test_a_system_word_is_known() -> None:
    slip = broken("char_drop/any", "Wether", "Wethr", system="Wetherfield has a table.")
    found = totals(slip, words=()).mending
    assert found is not None
    assert found.mended == 1


def test_a_slip_of_an_earlier_turn_must_come_back_too() -> None:
    earlier = edit(SAID, "char_replace/swap", "table", "talbe")
    one = violation(
        "thank you",
        [],
        LOST,
        context=(SAID.replace("table", "talbe"),),
        context_edits=(ContextEdits(0, (earlier,)),),
        cause="context",
    )
    result = turn("thank you", {"table-day": "friday"}, one)
    assert totals(result).mending == (1, 1, 0, 1)
    lost = replace(one, context=("please book it",), context_edits=(ContextEdits(0, ()),))
    found = totals(replace(result, variants=(lost,))).mending
    assert found is not None
    assert not found.mended


def test_a_change_of_meaning_is_not_mended() -> None:
    slip = broken("char_replace/swap", "table", "talbe")
    found = totals(replace(slip, side="should-change", relation="value-swap")).mending
    assert found is not None
    assert not found.mended
    assert not found.pays


def test_the_advice_has_the_figure_of_each_weakness() -> None:
    slip, drop = ("char_replace/swap", "table", "talbe"), ("word_drop/any", "please ", "")
    found = totals(broken(*slip), broken(*drop, 1))
    mended, other = sorted(found.weaknesses, key=lambda one: -(one.mended or 0))
    assert (mended.mended, other.mended) == (1, 0)
    assert mended.to_try.endswith("spelling corrector: restores 1 of 1 texts")
    assert "spelling corrector" not in other.to_try
    assert Totals.of([broken(*slip)]).mending is None


@pytest.mark.parametrize("text", ["", " ", "plese ", "a tabel \n", "hotl" * 5_000, "xq " * 3_000])
def test_any_text_can_be_corrected_in_time(text: str) -> None:
    start = time.process_time()
    corrected = SpellingCorrector().correct(text)
    assert time.process_time() - start < 5
    assert corrected.count("\n") == text.count("\n")
    assert corrected.endswith(" ") == text.endswith(" ")
