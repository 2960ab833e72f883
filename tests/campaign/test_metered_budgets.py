"""Budgets of tokens and money: what they grant, and when they end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toybots import WordBot

from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.tracker import Prediction, Usage


class Paid(WordBot):
    """Takes so many tokens in and out for each answer, and money if there are prices."""

    def __init__(self, tokens: tuple[int, int] = (8, 2), price: float | None = None) -> None:
        super().__init__()
        self._tokens = tokens
        self._price = price
        self.usage = Usage(cost=None if price is None else 0.0)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        count = len(contexts)
        taken = [count * tokens for tokens in self._tokens]
        cost = None if self._price is None else self._price * sum(taken)
        self.usage += Usage(count, 0, *taken, cost)
        return super().predict(contexts)


def asked(bot: Paid, budget: Budget, batch_size: int, wanted: int = 200) -> int:
    """Return how many of some contexts are asked for before the budget ends."""
    budget.watch(bot)
    contexts = [Context((Exchange("", f"word {number}"),)) for number in range(wanted)]
    return len(Predictor(bot, batch_size, budget=budget).predict(contexts))


@given(
    st.integers(1, 3000),
    st.integers(1, 80),
    st.tuples(st.integers(0, 40), st.integers(1, 40)),
)
def test_a_budget_of_tokens_is_kept_to_the_last_answer(
    limit: int, batch_size: int, tokens: tuple[int, int]
) -> None:
    bot = Paid(tokens)
    count = asked(bot, Budget(BudgetSettings(max_tokens=limit)), batch_size)
    each = sum(tokens)
    # The answer that meets the limit may go over it; none is asked for after that.
    assert count == min(200, -(-limit // each))


def test_money_is_limited_by_what_was_paid_so_far() -> None:
    budget = Budget(BudgetSettings(max_cost=1.0))
    assert asked(Paid(price=0.005), budget, 64) == 20
    assert budget.ended == "the budget of 1 (max-cost) ended"


def test_what_a_preflight_took_is_part_of_it() -> None:
    bot = Paid()
    bot.predict([Context((Exchange("", "clean"),))] * 24)
    budget = Budget(BudgetSettings(max_tokens=400))
    assert asked(bot, budget, 64) == 16
    assert budget.ended == "the budget of 400 tokens ended"
    assert budget.forecast() == 0.0


def test_trackers_share_a_budget() -> None:
    budget = Budget(BudgetSettings(max_tokens=300))
    assert asked(Paid(), budget, 7, wanted=10) == 10
    assert asked(Paid(), budget, 7) == 20
    assert budget.usage == Usage(30, 0, 240, 60)


def test_no_look_ahead_beyond_what_can_be_paid() -> None:
    bot, budget = Paid(), Budget(BudgetSettings(max_tokens=1000))
    budget.watch(bot)
    assert budget.limited
    assert budget.forecast() == 1.0  # Nothing is known of its answers yet.
    bot.predict([Context((Exchange("", "clean"),))] * 10)
    assert budget.forecast() == 90.0
    assert (budget.grant(64), budget.grant(200)) == (64, 90)


@pytest.mark.parametrize("limit", [{"max_tokens": 10}, {"max_cost": 1.0}])
def test_a_tracker_that_counts_nothing_cannot_be_limited(limit: dict[str, int]) -> None:
    with pytest.raises(UserError, match="the tracker does not count tokens"):
        Budget(BudgetSettings(**limit)).watch(WordBot())
    uncounted = Paid()
    uncounted.usage = Usage(answers=24, uncounted=24)
    with pytest.raises(UserError, match="the service does not report the tokens"):
        Budget(BudgetSettings(**limit)).watch(uncounted)
    with pytest.raises(
        UserError, match=r"max-cost cannot be enforced: .* --dst-tracker prices=IN,OUT"
    ):
        Budget(BudgetSettings(max_cost=1.0)).watch(Paid())
    Budget().watch(WordBot())
