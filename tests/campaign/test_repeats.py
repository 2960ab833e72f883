"""A tracker that must repeat itself is asked for a few contexts once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from toybots import Play, WordBot, talk

from pytest_dstfuzz.campaign.deciding import Repeats
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue
from pytest_dstfuzz.trackers.tracker import Prediction

MANY = 40
TEXTS = {f"north {n}": [f"nroth {n}", f"north please {n}"] for n in range(MANY)}


def dialogues() -> tuple[Dialogue, ...]:
    return tuple(talk(f"d{number}", f"north {number}", "cheap") for number in range(MANY))


@dataclass
class Late(WordBot):
    """Repeats itself until it has answered so often; then it leaks: it forgets every fifth area."""

    after: int = 10**9
    count: int = field(default=0)

    def answer(self, context: Context) -> Prediction:
        self.count += 1
        state = self.state(context)
        if self.count > self.after and self.count % 5 == 0:
            state.pop("hotel-area", None)
        return Prediction(BeliefState(state))


def run(play: Play, bot: WordBot, **given: object) -> list[TurnResult]:
    door = Predictor(bot, repeats=True, **given)  # type: ignore[arg-type]
    campaign = play(dialogues(), TEXTS, tracker=door, variants=2, shrink=False).campaign
    return list(campaign.run())


def test_some_violations_and_fewer_others_are_asked_again(play: Play) -> None:
    bot = WordBot()
    results = run(play, bot)
    found = summarise(results).repeats
    assert found is not None
    # A half of the broken turns, an eighth of those with a variant that held.
    assert MANY / 4 < found.violations < MANY * 3 / 4
    assert 0 < found.held < MANY / 3
    assert found.changed == 0
    extra = sum(turn.repeat_calls for turn in results)
    assert extra <= 2 * (found.violations + found.held)
    assert len(bot.asked) == extra + sum(turn.calls for turn in results)


def test_they_change_nothing_else(play: Play) -> None:
    plain = list(play(dialogues(), TEXTS, variants=2, shrink=False).campaign.run())
    assert [turn.calls for turn in run(play, WordBot())] == [turn.calls for turn in plain]
    assert [[item.outcome for item in turn.variants] for turn in run(play, WordBot())] == [
        [item.outcome for item in turn.variants] for turn in plain
    ]


def test_what_leaks_later_on_is_seen(play: Play) -> None:
    results = run(play, Late(after=60), batch_size=8)
    found = summarise(results).repeats
    assert found is not None
    assert found.violations_changed > 0
    marked = [v for turn in results for v in turn.variants if v.repeated is False]
    assert len(marked) == found.changed


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_the_choice_does_not_depend_on_how_it_is_run(play: Play, batch_size: int) -> None:
    assert run(play, WordBot(), batch_size=batch_size) == run(play, WordBot())


def test_the_choice_is_of_the_turn_alone(play: Play) -> None:
    whole = {turn.id: turn for turn in run(play, WordBot())}
    door = Predictor(WordBot(), repeats=True)
    alone = play(dialogues()[3:9], TEXTS, tracker=door, variants=2, shrink=False).campaign
    assert [whole[turn.id] for turn in alone.run()] == list(alone.run())


def test_a_budget_that_ends_before_loses_no_result(play: Play) -> None:
    calls = sum(turn.calls for turn in run(play, WordBot()))
    results = run(play, WordBot(), budget=Budget(BudgetSettings(max_calls=calls)))
    outcomes = [turn.outcome for turn in results]
    assert outcomes.count("skipped") < len(outcomes)
    assert all(turn.repeat_calls >= 0 for turn in results)


def test_a_report_keeps_them(play: Play) -> None:
    results = run(play, WordBot())
    again = [TurnResult.from_json(turn.to_json()) for turn in results]
    assert again == results
    assert summarise(again).repeats == summarise(results).repeats


def test_without_any_there_is_nothing_to_say(play: Play) -> None:
    plain: Sequence[TurnResult] = list(play(talk("d", "north"), TEXTS).campaign.run())
    assert summarise(plain).repeats is None
    assert Repeats(3, 0, 4, 0).changed == 0
