"""The number of violations that are noise: the stated interval holds the true number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from wobble_table import KINDS, Row, Wobbly, row, rules, run, truth

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, Votes
from pytest_dstfuzz.campaign.summary import Noise, summarise
from pytest_dstfuzz.dialogue.dialogues import Difference

#: A table of 20 seeds is printed by wobble_table.py; these are a few of its runs.
SEEDS, TURNS = range(3), 30


def rows(wobble: float, kind: str) -> list[Row]:
    return [row(seed, TURNS, wobble, kind) for seed in SEEDS]


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("wobble", [0.05, 0.2])
def test_the_interval_holds_the_true_number(wobble: float, kind: str) -> None:
    found = rows(wobble, kind)
    assert all(one.holds for one in found), found
    # Voting leaves little of what one answer each would report.
    assert sum(one.hits for one in found) >= 0.9 * sum(one.reported for one in found)
    assert sum(one.hits for one in found) >= 0.9 * sum(one.true for one in found)


def test_without_noise_every_violation_is_real() -> None:
    for one in rows(0.0, "same"):
        assert one.reported == one.true == one.hits
        assert one.low <= one.true <= one.high <= one.true + 1
        assert one.noise < 0.05


def test_one_answer_each_reports_much_noise_and_claims_nothing() -> None:
    _, summary = run(0, TURNS, Wobbly(rules(), 0.2, "same", 0), votes=1)
    assert summary.noise is None
    assert summary.violations > 2 * len(truth(0, TURNS)[0])


def test_the_order_of_results_changes_nothing() -> None:
    results, summary = run(1, TURNS, Wobbly(rules(), 0.2, "same", 1), votes=3)
    assert summarise(results[::-1]).noise == summary.noise
    again = [TurnResult.from_json(turn.to_json()) for turn in results]
    assert summarise(again).noise == summary.noise


def turn(name: str, kinds: Sequence[int], *variants: VariantResult) -> TurnResult:
    outcome = "violation" if any(item.outcome == "violation" for item in variants) else "held"
    return TurnResult(
        id=f"{name}-t0",
        dialogue_id=name,
        turn_index=0,
        system="",
        user="a room",
        clean_state=None,
        outcome=outcome,  # type: ignore[arg-type]
        variants=variants,
        clean_votes=tuple(kinds),
    )


def variant(outcome: str, votes: Votes | None, index: int = 0) -> VariantResult:
    changes = (Difference("hotel-area", "north", None),) if outcome == "violation" else ()
    return VariantResult(
        index=index,
        text="a romm",
        context=(),
        edits=(),
        edit_w=0.1,
        edit_c=0.1,
        valid=True,
        reason="",
        outcome=outcome,  # type: ignore[arg-type]
        changed_slots=changes,
        votes=votes,
    )


def estimate(*turns: TurnResult) -> Noise:
    found = summarise(turns).noise
    assert found is not None
    return found


HELD = variant("held", None, 1)
CLEAR = turn("d0", [0] * 7, variant("violation", Votes(5, 5, 0, 0, 7, 0)), HELD)
CLOSE = turn("d0", [0, 1, 0, 1, 0], variant("violation", Votes(7, 4, 3, 3, 3, 2)), HELD)
CALM = [turn(f"c{number}", [0, 0, 0], HELD) for number in range(30)]
SHAKY = [turn(f"s{number}", [0, 1, 0, 0, 0], HELD) for number in range(30)]


def test_disagreement_is_counted_in_pairs_of_the_first_answers() -> None:
    found = estimate(CLEAR, turn("d1", [0, 1, 0, 0, 0], HELD), turn("d2", [0, 1, 2], HELD))
    assert (found.turns, found.answers, found.differed) == (3, 3, 2)
    # Of three pairs of answers each: none, two, all three.
    assert found.disagreement == pytest.approx(5 / 9)


def test_a_failure_is_no_answer_of_another_kind_to_the_model() -> None:
    failed = [replace(one, clean_votes=(0, -1, 0, 0)) for one in CALM]
    assert estimate(CLEAR, *failed).wobble < estimate(CLEAR, *SHAKY).wobble


def test_noise_grows_with_the_tracker_s_wobble_and_shrinks_with_the_lead() -> None:
    calm, shaky = estimate(CLEAR, *CALM), estimate(CLEAR, *SHAKY)
    assert calm.wobble < 0.05 < shaky.wobble
    assert calm.expected_noise < 0.02
    assert calm.real_violations[0] == 1
    close = estimate(CLOSE, *SHAKY)
    assert close.expected_noise > 0.3 > shaky.expected_noise
    assert close.real_violations[0] == 0


def test_a_turn_whose_variants_all_change_alike_may_have_the_wrong_clean_answer() -> None:
    votes = Votes(5, 5, 0, 0, 4, 1)
    broken = [variant("violation", votes, number) for number in range(4)]
    kinds = [0, 1, 0, 0, 0]
    held = [replace(HELD, index=number) for number in (1, 2, 3)]
    alone = estimate(turn("d0", kinds, broken[0], *held), *SHAKY)
    together = estimate(turn("d0", kinds, *broken), *SHAKY)
    assert together.expected_noise > 4 * alone.expected_noise
