"""Ledger, summary and yields: the numbers add up, whatever a tracker does."""

from __future__ import annotations

import json
import random
from dataclasses import fields
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toybots import Play, talk

from pytest_dstfuzz.campaign.figures import Counts, count, ledger, tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantOutcome, VariantResult
from pytest_dstfuzz.campaign.summary import Summary, YieldsTally, summarise
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.perturb.words import Edit

OUTCOMES = get_args(VariantOutcome)
KEYS = [
    "turns",
    "generated",
    "vacuous",
    "duplicate",
    "vetoed",
    "over_rate",
    "valid",
    "held",
    "violations",
    "carried",
    "improved",
    "errors",
    "valid_rate",
    "failure_rate",
    "failure_rate_interval",
    "yield",
    "calls",
    "minimiser_calls",
    "conversation_calls",
    "turns_broken",
    "turns_tested",
    "dialogues_tested",
    "turn_failure_rate",
    "turn_failure_rate_interval",
    "clean_answered",
    "clean_empty",
    "clean_empty_share",
    "failure_rate_not_empty",
    "clean_labelled",
    "clean_right",
    "clean_accuracy",
    "noise",
    "repeats",
    "estimated_failures",
    "reach",
    "unstable",
    "malformed",
]


def variant(
    outcome: Any, *edits: tuple[str, str], cause: Any = None, changed: Any = (), index: int = 0
) -> VariantResult:
    made = tuple(
        Edit(transformation, operator, 0, 1, "a", "b") for transformation, operator in edits
    )
    run = outcome in ("held", "violation", "carried", "improved", "error")
    slots = tuple(Difference(*change) for change in changed)
    return VariantResult(
        index=index, text="x", context=(), edits=made, edit_w=0.1, edit_c=0.1, valid=run,
        reason="", outcome=outcome, changed_slots=slots, cause=cause,
    )  # fmt: skip


def turn(
    *variants: VariantResult,
    dialogue: Any = "d",
    index: int = 0,
    state: Any = None,
    outcome: Any = "held",
    calls: int = 1,
) -> TurnResult:
    clean = None if state is None else BeliefState(state)
    return TurnResult(
        id=f"toy-test-{dialogue}-t{index}", dialogue_id=dialogue, turn_index=index, system="",
        user="u", clean_state=clean, outcome=outcome, variants=variants, calls=calls,
    )  # fmt: skip


TYPO, SWAP, DROP = ("char_replace", "keyboard"), ("char_replace", "swap"), ("word_drop", "stop")

variants = st.builds(
    lambda outcome, edits, cause: variant(
        outcome, *edits, cause=cause if outcome == "violation" else None
    ),
    st.sampled_from(OUTCOMES),
    st.lists(st.sampled_from([TYPO, SWAP, DROP]), max_size=3),
    st.sampled_from(["turn", "context", "both", None]),
)
turns = st.builds(
    lambda made, dialogue: turn(*made, dialogue=dialogue),
    st.lists(variants, max_size=6),
    st.sampled_from("abc"),
)


def adds_up(counts: Counts) -> bool:
    not_run = counts.vacuous + counts.duplicate + counts.vetoed + counts.over_rate
    return (
        counts.generated == not_run + counts.unstable + counts.valid
        and counts.valid
        == counts.held
        + counts.violations
        + counts.uncredited
        + counts.carried
        + counts.improved
        + counts.errors
    )


@given(st.lists(turns, max_size=8))
def test_every_row_adds_up_to_the_variants_that_it_counts(results: list[TurnResult]) -> None:
    book = ledger(results)
    made = [item for result in results for item in result.variants]
    assert adds_up(book.total)
    assert book.total.generated == len(made)
    assert book.total.uncredited == 0
    for name, row in book.transformations.items():
        assert adds_up(row)
        assert row.generated == sum(any(e.transformation == name for e in v.edits) for v in made)
    for (name, operator), row in book.operators.items():
        assert adds_up(row)
        assert row.generated == sum(
            any((e.transformation, e.operator) == (name, operator) for e in v.edits) for v in made
        )
    summary = summarise(results)
    for item in fields(Counts):
        if item.name != "uncredited":
            assert getattr(summary, item.name) == getattr(book.total, item.name)


@given(st.lists(turns, max_size=8), st.randoms())
def test_the_order_of_results_does_not_matter(
    results: list[TurnResult], rng: random.Random
) -> None:
    shuffled = list(results)
    rng.shuffle(shuffled)
    assert summarise(shuffled) == summarise(results)
    assert ledger(shuffled) == ledger(results)


def test_rows_credit_violations_that_their_edits_caused() -> None:
    book = ledger(
        [
            turn(
                variant("violation", TYPO, TYPO, cause="turn"),
                variant("violation", TYPO, DROP, cause="both"),
                variant("violation", TYPO, cause="context"),
                variant("violation", SWAP),
                variant("carried", SWAP),
            )
        ]
    )
    assert book.total == Counts(violations=4, carried=1)
    assert book.transformations == {
        "char_replace": Counts(violations=2, uncredited=2, carried=1),
        "word_drop": Counts(violations=1),
    }
    assert book.operators == {
        TYPO: Counts(violations=2, uncredited=1),
        SWAP: Counts(uncredited=1, carried=1),
        DROP: Counts(violations=1),
    }
    assert book.transformations["char_replace"].failure_rate == 2 / 5
    data = json.loads(json.dumps(book.to_json()))
    assert data["total"]["generated"] == data["total"]["valid"] == 5
    assert data["operators"][0]["operator"] == "keyboard"
    assert data["transformations"]["word_drop"]["yield"] == 1.0


def test_counts_of_nothing_have_no_rates() -> None:
    empty = count([])
    assert empty.generated == 0
    assert empty.valid_rate is empty.failure_rate is empty.yield_rate is None
    assert Counts(held=1) + Counts(held=2, vetoed=1) == Counts(held=3, vetoed=1)


def test_the_summary_has_the_keys_of_the_report() -> None:
    summary = summarise([])
    assert list(summary.to_json()) == KEYS
    assert summary.failure_rate is None
    assert summary.failure_rate_interval is None
    assert summary.broken_per_1000_calls is None


def test_the_figures_of_a_small_campaign() -> None:
    results = [
        turn(
            variant("violation", TYPO, cause="turn"), variant("held"), calls=4, outcome="violation"
        ),
        turn(variant("vetoed"), variant("duplicate"), dialogue="e", outcome="untested"),
        turn(variant("held"), variant("improved"), dialogue="e", index=1, calls=3),
        turn(dialogue="e", index=2, outcome="skipped", calls=0),
    ]
    summary = summarise(results)
    assert summary.turns == 3
    assert (summary.generated, summary.valid, summary.violations) == (6, 4, 1)
    assert summary.valid_rate == 4 / 6
    assert summary.failure_rate == 1 / 4
    assert summary.yield_rate == 1 / 6
    assert (summary.calls, summary.turns_broken) == (8, 1)
    assert summary.broken_per_1000_calls == 125
    # Of dialogue e one turn was tested, and it held; another had no valid variant.
    assert (summary.turns_tested, summary.turn_failure_rate) == (2, 1 / 2)
    assert summary.dialogues_tested == 2
    assert json.loads(json.dumps(summary.to_json()))["failure_rate_interval"] is None
    assert isinstance(summary, Summary)


def test_fewer_than_six_dialogues_give_no_interval() -> None:
    held = [turn(variant("held"), variant("violation"), dialogue=d) for d in "abcde"]
    few = [*held, turn(variant("vetoed"), dialogue="no valid variant, so no unit")]
    assert summarise(few).failure_rate_interval is None
    assert summarise(few).turn_failure_rate_interval is None
    enough = [*held, turn(variant("held"), dialogue="f")]
    assert summarise(enough).failure_rate_interval is not None
    assert summarise(enough).turn_failure_rate_interval is not None


def test_a_turn_counts_once_however_often_it_is_broken() -> None:
    often = [
        turn(*[variant("violation") for _ in range(9)], dialogue=f"{d}", outcome="violation")
        for d in range(6)
    ]
    held = [turn(variant("held"), dialogue=f"{d}", index=1) for d in range(6)]
    summary = summarise([*often, *held])
    assert (summary.failure_rate, summary.turn_failure_rate) == (54 / 60, 1 / 2)
    # Dialogues that are all alike are no certainty either.
    low, high = summary.turn_failure_rate_interval or (1.0, 0.0)
    assert low + high == pytest.approx(1.0)
    assert low < 0.3


def test_a_campaign_without_violations_has_an_interval_above_zero() -> None:
    results = [turn(variant("held"), variant("vetoed"), dialogue=f"{d}") for d in range(10)]
    results.append(turn(variant("vetoed"), dialogue="no valid variant, so no unit"))
    summary = summarise(results)
    assert summary.failure_rate == 0.0
    assert summary.failure_rate_interval == (0.0, pytest.approx(0.3085, abs=1e-4))


def test_variants_of_one_dialogue_are_not_independent() -> None:
    def campaign(size: int) -> list[TurnResult]:
        # 40 violations in 200 variants, spread over turns or lumped in dialogues.
        return [
            turn(*[variant("violation" if d * size + i < 40 else "held") for i in range(size)],
                 dialogue=f"{d:03}")
            for d in range(200 // size)
        ]  # fmt: skip

    widths = [np.diff(summarise(campaign(size)).failure_rate_interval)[0] for size in (1, 10, 25)]
    assert all(after > before for before, after in pairwise(widths))


def test_yields_by_slot_and_domain() -> None:
    state = {"hotel-area": "north", "hotel-price": "cheap", "size": "large"}
    lost, kept = ("hotel-area", "north", None), ("food-kind", None, "thai", True)
    results = [
        turn(
            variant("violation", changed=[lost, kept], cause="turn"),
            variant("carried", changed=[kept]),
            variant("held"),
            variant("vetoed"),
            variant("improved", changed=[lost]),
            state=state,
        )
    ]
    found = tally_results(YieldsTally(), results)
    slots = found.slots
    assert list(slots) == ["food-kind", "hotel-area", "hotel-price", "size"]
    assert slots["hotel-area"] == Counts(violations=1, held=2, vetoed=1, improved=1)
    assert slots["hotel-price"] == Counts(held=3, vetoed=1, improved=1)
    assert slots["food-kind"] == Counts(carried=2)
    domains = found.domains
    assert domains == {
        "food": Counts(carried=2),
        "hotel": Counts(violations=1, held=2, vetoed=1, improved=1),
    }
    assert tally_results(YieldsTally(), [turn(variant("error"))]).slots == {}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_ledger_of_a_random_campaign_adds_up(play_any: Play, data: st.DataObject) -> None:
    words = st.sampled_from(["cheap", "north", "south", "boom", "bye", "chinese"])
    users = data.draw(st.lists(words, min_size=1, max_size=4, unique=True))
    marks = st.sampled_from(["", "VETO ", "OVER "])
    text = st.builds(lambda mark, word: mark + word, marks, words)
    number = data.draw(st.integers(1, 4))
    texts = {u: data.draw(st.lists(text, min_size=number, max_size=number)) for u in users}
    labels = [data.draw(st.sampled_from([{}, {"hotel-area": "north"}])) for _ in users]
    attack = data.draw(st.sampled_from(["hybrid", "cumulative", "non-cumulative"]))
    relation = data.draw(st.sampled_from(["metamorphic", "gold"]))
    run = play_any(
        talk("d", *users, labels=labels),
        texts,
        variants=number,
        attack=attack,
        relation=relation,
        seed=data.draw(st.integers(0, 5)),
    )
    results = list(run.campaign.run())
    summary = summarise(results)
    tested = [result for result in results if result.outcome != "inapplicable"]
    assert summary.generated == number * len(tested)
    assert adds_up(ledger(results).total)
    for result in results:
        for item in result.variants:
            assert item.valid == (item.outcome not in OUTCOMES[:4])
            assert (item.cause is not None) == (item.outcome == "violation")
            assert not (item.outcome == "violation" and all(c.carried for c in item.changed_slots))
            if attack == "non-cumulative":
                assert item.cause in (None, "turn")
                assert item.outcome != "carried"
        assert TurnResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert summary.calls == len(set(run.bot.asked))
