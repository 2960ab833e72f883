"""Budgets and interrupts end a run in order, with what was tested and what was not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from toybots import Play, WordBot, data_of, talk

from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import BudgetReached, CampaignFinished
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import BudgetSettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.trackers.tracker import Prediction

TALKS = tuple(
    talk(f"d{i:02}", f"a cheap place number {i}", f"in the north {i}", f"bye then {i}")
    for i in range(20)
)
DATA = data_of(*TALKS)
PLAN = [(dialogue, 2) for dialogue in TALKS]
SETTINGS = Settings.of(shrink=False, validity="edit-rate", variants=3)


def test_calls_are_spent_on_whole_turns(lexicon: Lexicon) -> None:
    full = list(CampaignEngine(SETTINGS, DATA, WordBot(), lexicon, plan=PLAN).run())
    for limit in (1, 20, 100, 150, 10_000):
        bot, events = WordBot(), []
        settings = Settings.of(shrink=False, validity="edit-rate", variants=3, max_calls=limit)
        campaign = CampaignEngine(settings, DATA, bot, lexicon, plan=PLAN, listener=events.append)
        results = list(campaign.run())
        assert len(bot.asked) <= limit
        tested = [result for result in results if result.outcome != "skipped"]
        skipped = [result for result in results if result.outcome == "skipped"]
        assert len(results) == len(full)
        # The tested turns equal those of an unlimited run, except for open causes.
        whole = {result.id: result for result in full}
        for result in tested:
            outcomes = [variant.outcome for variant in result.variants]
            assert outcomes == [variant.outcome for variant in whole[result.id].variants]
        assert all(not result.variants and result.clean_state is None for result in skipped)
        assert all("calls ended before this turn" in result.reason for result in skipped)
        if skipped:
            assert [type(event) for event in events].count(BudgetReached) == 1
            assert events[-1] == CampaignFinished(60, len(skipped), len(bot.asked))
        assert summarise(results).turns == len(tested)
        assert summarise(results).calls == len(bot.asked)
        # Little is spent on dialogues that cannot be finished.
        assert len(tested) >= min(60, limit / (1 + 3 * 3) - 6)


def test_a_turn_is_tested_only_after_those_before_it(lexicon: Lexicon) -> None:
    for limit in range(5, 40):
        settings = Settings.of(shrink=False, validity="edit-rate", variants=3, max_calls=limit)
        campaign = CampaignEngine(settings, DATA, WordBot(), lexicon, plan=PLAN[:1])
        skipped = [result.outcome == "skipped" for result in campaign.run()]
        assert skipped == sorted(skipped)


def test_a_violation_keeps_its_outcome_when_its_second_pass_is_not_paid_for(play: Play) -> None:
    dialogue = talk("d", "cheap", "north")
    texts = {"cheap": ["cheap !"], "north": ["nroth"]}
    # Two clean turns and two variants; nothing is left for the two halves.
    run = play(dialogue, texts, WordBot(), max_calls=4)
    results = list(run.campaign.run())
    assert [result.outcome for result in results] == ["held", "violation"]
    assert results[1].variants[0].cause is None
    assert [result.calls for result in results] == [2, 2]


def test_seconds_end_a_run_within_a_batch(lexicon: Lexicon) -> None:
    now = [0.0]

    class Slow(WordBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += 0.01 * len(contexts)
            return super().predict(contexts)

    door = Predictor(
        Slow(), 8, budget=Budget(BudgetSettings(max_seconds=1.0), clock=lambda: now[0])
    )
    campaign = CampaignEngine(SETTINGS, DATA, door, lexicon, plan=PLAN)
    results = list(campaign.run())
    assert now[0] <= 1.0 + 0.01 * 8
    outcomes = [result.outcome for result in results]
    assert 5 <= sum(outcome != "skipped" for outcome in outcomes) < 60
    assert "the budget of 1 seconds ended before" in results[-1].reason


def test_turns_before_the_one_asked_for_are_skipped_too(lexicon: Lexicon) -> None:
    settings = Settings.of(shrink=False, validity="edit-rate", variants=3, max_calls=1)
    campaign = CampaignEngine(settings, DATA, WordBot(), lexicon, plan=PLAN)
    assert campaign.result("d10", 1).outcome == "skipped"
    assert campaign.result("d00", 0).outcome == "skipped"
    assert len(campaign.finished()) == 60


@pytest.mark.parametrize("stop", [KeyboardInterrupt, pytest.fail.Exception])
def test_an_interrupt_loses_no_finished_dialogue(
    lexicon: Lexicon, stop: type[BaseException]
) -> None:
    class Stops(WordBot):
        armed = True

        def answer(self, context: Context) -> Prediction:
            if self.armed and context.user.endswith(" 7"):
                self.armed = False
                raise stop
            return super().answer(context)

    full = list(CampaignEngine(SETTINGS, DATA, WordBot(), lexicon, plan=PLAN).run())
    campaign = CampaignEngine(SETTINGS, DATA, Stops(), lexicon, plan=PLAN, window=30)
    with pytest.raises(stop):
        list(campaign.run())
    kept = campaign.finished()
    assert 0 < len(kept) < 60
    assert [result for result in full if result in kept] == list(kept)
    # And it may be taken up again.
    assert list(campaign.run()) == full


@pytest.mark.parametrize("stop", [KeyboardInterrupt, pytest.exit.Exception])
def test_an_interrupt_keeps_the_dialogues_of_its_window_that_are_complete(
    play: Play, stop: type[BaseException]
) -> None:
    class Stops(WordBot):
        def answer(self, context: Context) -> Prediction:
            if "a very long" in context.user:
                raise stop
            return super().answer(context)

    short, long = talk("short", "cheap"), talk("long", "north")
    texts = {"cheap": ["chaep"], "north": ["north in a very long utterance"]}
    run = play((short, long), texts, Stops(), batch_size=1)
    with pytest.raises(stop):
        run.campaign.result("short", 0)
    assert [result.id for result in run.campaign.finished()] == ["toy-test-short-t0"]


def test_seconds_are_spread_over_as_many_turns_as_the_checks_say(lexicon: Lexicon) -> None:
    """A tenth of a second each: 5 s pay for 50 contexts, and for no variant of all 60 turns."""
    now = [0.0]

    class Slow(WordBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += 0.1 * len(contexts)
            return super().predict(contexts)

    bot = Slow()
    budget = Budget(BudgetSettings(max_seconds=5.0), clock=lambda: now[0])
    budget.deadline.start()
    checked = [dialogue.context(0) for dialogue in TALKS[:8]]
    with budget.besides(len(checked)):
        bot.predict(checked)
    assert budget.guess() == pytest.approx(42)
    predictor = Predictor(bot, 4, budget=budget)
    campaign = CampaignEngine(SETTINGS, DATA, predictor, lexicon, plan=PLAN, spread=True)
    tested = [result for result in campaign.run() if result.outcome != "skipped"]
    assert 15 <= len(tested) <= 21


@pytest.mark.parametrize("slower", [0.5, 1.0, 1.2])
def test_every_turn_gets_its_first_variant_before_any_gets_its_second(
    lexicon: Lexicon, slower: float
) -> None:
    """The speed of the first answers does not matter."""
    now = [0.0]

    class Slow(WordBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += slower * len(contexts)
            return super().predict(contexts)

    budget = Budget(BudgetSettings(max_seconds=200 * slower), clock=lambda: now[0])
    with budget.besides(8):
        now[0] += 8.0
    predictor = Predictor(Slow(), 4, budget=budget)
    campaign = CampaignEngine(SETTINGS, DATA, predictor, lexicon, plan=PLAN, spread=True)
    results = list(campaign.run())
    counts = {len(result.variants) for result in results}
    assert min(counts) >= 1
    assert max(counts) <= min(counts) + 1


def test_a_scarce_budget_is_not_spent_on_the_first_turns(lexicon: Lexicon) -> None:
    """By the first answers, it is enough for all variants. But then the bot becomes slower."""
    now = [0.0]

    class Slow(WordBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += 3.2 * len(contexts)
            return super().predict(contexts)

    budget = Budget(BudgetSettings(max_seconds=400.0), clock=lambda: now[0])
    with budget.besides(8):
        now[0] += 8.0
    predictor = Predictor(Slow(), 4, budget=budget)
    campaign = CampaignEngine(SETTINGS, DATA, predictor, lexicon, plan=PLAN, spread=True)
    assert min(len(result.variants) for result in campaign.run()) >= 1


def test_a_part_of_the_turns_is_a_smaller_sample(lexicon: Lexicon) -> None:
    settings = Settings.of(shrink=False, validity="edit-rate", variants=3, max_calls=60)
    campaign = CampaignEngine(settings, DATA, WordBot(), lexicon, plan=PLAN, spread=True)
    tested = {turn.dialogue_id for turn in campaign.run() if turn.outcome != "skipped"}
    seed = settings.variant.seed
    drawn = sample_turns(DATA, 3 * len(tested), seed)
    assert tested == {dialogue.id for dialogue, _ in drawn}
    assert 5 <= len(tested) < 20
