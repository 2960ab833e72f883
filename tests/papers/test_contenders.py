"""Which campaigns stand for a search, and what they say together."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.campaign.figures import Counts
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers.comparison import (
    Against,
    CampaignFigures,
    Contender,
    MeanFigures,
    TurnFigures,
    Violation,
    Weaknesses,
    list_broken_alone,
    parse_contenders,
    subject_of,
    weaknesses_of,
)
from pytest_dstfuzz.papers.formatting import Rate, Resamples

READ = (1, "slip-in-unrelated-word-value-lost", "train-day", 0.0, ())
LOST = Violation("turn", (("train-day", None),), False, True, *READ)
MOVED = Violation("context", (("train-day", "friday"),), True, True, *READ)
BOTH = Violation("both", (("hotel-area", None), ("train-day", None)), False, False, *READ)


def turn(dialogue: str, index: int, *violations: Violation, calls: int = 5) -> TurnFigures:
    counts = Counts(vacuous=1, held=4 - len(violations), violations=len(violations), carried=1)
    broken = 1 if violations else None
    after = (1, calls)
    return TurnFigures(dialogue, index, calls, after, broken, counts, 8, 0.5, 0.25, violations)


def run(*turns: TurnFigures) -> CampaignFigures:
    return CampaignFigures(turns, inertia=2.0, seconds=1.0)


A = run(turn("a", 0, LOST, MOVED), turn("a", 1, LOST), turn("b", 0, BOTH), turn("b", 1))
B = run(turn("a", 0, LOST), turn("a", 1), turn("b", 0), turn("b", 1, BOTH))
TWO = Resamples(["a", "b"], seed=0)


def test_labels_and_what_stands_for_one() -> None:
    assert parse_contenders("random, greedy,own=random,own=near-value,random") == (
        Contender("random", ("random", "random")),
        Contender("greedy", ("greedy",), associates=False),
        Contender("own", ("random", "near-value")),
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("random,gredy", UserError, "unknown search 'gredy'.*Did you mean 'greedy'"),
        ("x=", UserError, "unknown search ''"),
        (" , ", ValueError, "must name at least one search"),
    ],
)
def test_searches_that_are_none(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_contenders(text)


def test_every_policy_and_every_seed_has_a_run() -> None:
    three = Contender("agent", ("agent:A", "agent:B", "agent:C"))
    assert three.runs([7]) == [("agent:A", 7), ("agent:B", 7), ("agent:C", 7)]
    assert three.runs([0, 1]) == [("agent:A", 0), ("agent:B", 1), ("agent:C", 0)]
    assert Contender("random", ("random",)).runs([0, 1]) == [("random", 0), ("random", 1)]


def test_some_searches_have_no_number_of_transformations() -> None:
    named = parse_contenders("greedy,dialtest,noise,bandit,random,near-value,agent")
    assert [one.label for one in named if one.ks((2, 3)) == (2,)] == [
        *("greedy", "dialtest", "noise", "bandit")
    ]
    assert all(one.ks((2, 3)) == (2, 3) for one in named if one.associates)


def test_the_agent_is_compared_or_else_the_last() -> None:
    agent, one, other = (Contender(name, (name,)) for name in ("agent", "one", "other"))
    assert subject_of([one, agent, other]) == agent
    assert subject_of([one, other]) == other


def test_turns_broken_for_every_call() -> None:
    # 3 of 20 calls and 2 of 20; of dialogue a 2 and 1, of dialogue b 1 and 1.
    assert MeanFigures.of(TWO, [A]).rates["broken_per_call"].value == pytest.approx(3 / 20)
    value, interval = Against.of(TWO, [A], [B]).ratio
    assert value == pytest.approx(1.5)
    assert interval == pytest.approx((1.0, 2.0))
    # Both runs of the first: (3 + 2) / 2 turns.
    assert Against.of(TWO, [A, B], [B]).ratio.value == pytest.approx(1.25)


def test_turns_that_the_other_did_not_break() -> None:
    # Of a's two turns the first is broken by both; b's turn 0 is broken by A alone.
    assert list_broken_alone(TWO, [A], [B]) == Rate(pytest.approx(2 / 3), (0.5, 1.0))
    assert list_broken_alone(TWO, [A], [A]).value == 0.0
    # The second run has another one to be held against, and then the first again.
    assert list_broken_alone(TWO, [A, A, A], [B, A]).value == pytest.approx((2 / 3 + 0 + 2 / 3) / 3)
    assert list_broken_alone(TWO, [run(turn("a", 0))], [A]) == Rate(None)


def test_the_other_rates() -> None:
    rates = MeanFigures.of(TWO, [A]).rates
    # Each turn: 6 variants, one of them vacuous, in 8 draws.
    assert rates["valid_rate"].value == pytest.approx(5 / 6)
    assert rates["valid_rate_per_draw"].value == pytest.approx(20 / 32)
    assert rates["failure_rate"].value == pytest.approx(4 / 20)
    assert rates["thesis_failure_rate"].value == pytest.approx(8 / 20)
    assert rates["yield"].value == pytest.approx(4 / 24)
    assert rates["edit_w"].value == pytest.approx(0.1)
    assert rates["edit_c"].value == pytest.approx(0.05)
    assert [rates[f"cause_{name}"].value for name in ("turn", "context", "both")] == [
        0.5,
        0.25,
        0.25,
    ]
    assert rates["strict_vetoes"].value == pytest.approx(0.25)
    assert rates["strict_vetoes_with_context"].value == pytest.approx(0.75)


def test_weaknesses() -> None:
    assert weaknesses_of([A]) == Weaknesses(3.0, 0.5, "train-day -> none")
    assert weaknesses_of([B, A]).number == 2.5
    assert weaknesses_of([B]) == Weaknesses(2.0, 0.5, "hotel-area -> none, train-day -> none")
    assert weaknesses_of([run(turn("a", 0))]) == Weaknesses(0.0, None, "")
