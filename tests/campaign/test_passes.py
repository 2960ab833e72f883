"""Passes: what a search is told, redraws, turns that are done once broken, companions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as laws
from hypothesis import strategies as st
from test_execution import DATA, PLAN, TALKS
from toybots import FussyBot, Play, SpySearch, UnsureBot, WordBot, talk

from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.search.protocol import Feedback
from pytest_dstfuzz.trackers.tracker import Prediction

HUNT = Settings.of(validity="edit-rate", variants=9, search="greedy", redraws=2, stop_at_first=True)
SEARCHES = ("greedy", "dialtest", "near-value", "random")
#: Each builds two campaigns, lexicon tables and all.
LAWS = laws(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def campaign(
    lexicon: Lexicon, settings: Settings, bot: Any = None, plan: Any = PLAN, **given: Any
) -> CampaignEngine:
    return CampaignEngine(settings, DATA, bot or UnsureBot(), lexicon, plan=plan, **given)


def results_of(lexicon: Lexicon, settings: Settings, **given: Any) -> list[TurnResult]:
    return list(campaign(lexicon, settings, **given).run())


def outcomes(result: TurnResult) -> list[str]:
    return [variant.outcome for variant in result.variants]


class Wavering(FussyBot, UnsureBot):
    """Fails on ``boom``, and is as unsure as `UnsureBot`."""

    def answer(self, context: Context) -> Prediction:
        known = FussyBot.answer(self, context)
        return Prediction(known.state, {"hotel-area": 0.9 if "?" in context.user else 0.5})


def test_an_adaptive_search_is_told_what_its_attempts_showed(play: Play) -> None:
    texts = ["chaep", "cheap", "VETO", "cheap ?", "chaep", "cheap boom", "cheap north", "end"]
    spy = SpySearch()
    run = play(talk("d", "cheap"), {"cheap": texts}, Wavering(), variants=8, redraws=0, by=spy)
    (result,) = run.campaign.run()
    ran = ["violation", "vacuous", "vetoed", "held", "duplicate", "error", "violation", "violation"]
    assert outcomes(result) == ran
    told = spy.told["d", 0, 7, 0]
    assert [item.proposal.variant.text for item in told] == texts[:7]
    assert [item.proposal.action.vector for item in told] == [(float(i),) for i in range(7)]
    showed = [(item.answered, item.broken, item.changes) for item in told]
    nothing = (False, False, 0)
    assert showed == [
        (True, True, 1),
        nothing,
        nothing,
        (True, False, 0),
        nothing,
        nothing,
        (True, True, 1),
    ]
    assert [item.impurity for item in told] == pytest.approx([0, 0, 0, 0.4, 0, 0, 0])
    # Each attempt was told of those before it, and of no more.
    for number in range(8):
        assert spy.told["d", 0, number, 0] == told[:number]


def test_what_was_carried_in_did_not_break_a_turn(play: Play) -> None:
    spy = SpySearch()
    texts = {"cheap": ["chaep", "cheep"], "two": ["too", "tow"]}
    run = play(talk("d", "cheap", "two"), texts, WordBot(), variants=2, by=spy)
    first, second = run.campaign.run()
    assert outcomes(first) == ["violation", "violation"]
    assert outcomes(second) == ["carried", "carried"]
    (seen,) = spy.told["d", 1, 1, 0]
    assert (seen.answered, seen.broken, seen.changes) == (True, False, 1)


@pytest.mark.parametrize("stop_at_first", [False, True])
def test_any_other_search_is_told_what_it_proposed_and_no_more(
    play: Play, stop_at_first: bool
) -> None:
    spy = SpySearch(adaptive=False)
    texts = {"cheap": ["cheap !", "cheap", "cheap ?"], "bye": ["by", "by"]}
    how = {"variants": 3, "redraws": 0, "stop_at_first": stop_at_first}
    run = play(talk("d", "cheap", "bye"), texts, by=spy, **how)
    list(run.campaign.run())
    told = spy.told["d", 0, 2, 0]
    assert [item.proposal.variant.text for item in told] == ["cheap !", "cheap"]
    assert told == tuple(Feedback(item.proposal) for item in told)
    # All variants at once, where it need not be known what the earlier ones did.
    # The second pass of the one has nothing to run.
    assert run.bot.batches == ([2, 2, 1] if stop_at_first else [2, 3])


@pytest.fixture(scope="module")
def hunted(lexicon: Lexicon) -> list[TurnResult]:
    return results_of(lexicon, HUNT)


def test_there_is_something_to_hunt(hunted: list[TurnResult]) -> None:
    found = [outcome for result in hunted for outcome in outcomes(result)]
    assert {"violation", "held", "carried"} <= set(found)
    assert any(variant.draws > 1 for result in hunted for variant in result.variants)
    broken = [len(r.variants) for r in hunted if r.outcome == "violation"]
    assert len(set(broken)) > 2


@pytest.mark.parametrize("window", [1, 60, 10_000])
@pytest.mark.parametrize("batch_size", [1, 7, 512])
def test_passes_do_not_depend_on_windows_and_batches(
    lexicon: Lexicon, hunted: list[TurnResult], window: int, batch_size: int
) -> None:
    settings = HUNT.replace_options(batch_size=batch_size)
    assert results_of(lexicon, settings, window=window) == hunted


def test_passes_do_not_depend_on_order_and_workers(
    lexicon: Lexicon, hunted: list[TurnResult]
) -> None:
    order = [(result.dialogue_id, result.turn_index) for result in hunted]
    random.Random(3).shuffle(order)
    run = campaign(lexicon, HUNT, window=50)
    found = {turn: run.result(*turn) for turn in order}
    assert [found[result.dialogue_id, result.turn_index] for result in hunted] == hunted
    parts = [results_of(lexicon, HUNT, plan=PLAN[worker::3]) for worker in range(3)]
    by_id = {result.id: result for part in parts for result in part}
    assert [by_id[result.id] for result in hunted] == hunted


@pytest.mark.parametrize("stop_at_first", [False, True])
@pytest.mark.parametrize("attack", ["non-cumulative", "hybrid"])
@pytest.mark.parametrize("search", SEARCHES)
def test_one_variant_alone_is_that_of_the_whole_run(
    lexicon: Lexicon, search: str, attack: str, stop_at_first: bool
) -> None:
    settings = HUNT.replace_options(
        variants=6, search=search, attack=attack, stop_at_first=stop_at_first, redraws=1
    )
    together = results_of(lexicon, settings, plan=PLAN[:6])
    passes = stop_at_first or search in ("greedy", "dialtest")
    compared = 0
    for number in (0, 2, 5):
        alone = results_of(lexicon, settings.replace_options(variant=number), plan=PLAN[:6])
        for one, whole in zip(alone, together, strict=True):
            expected = tuple(item for item in whole.variants if item.index == number)
            # Where all go to the tracker at once, the one is run and what it copies is not.
            if passes or any(item.outcome != "duplicate" for item in expected):
                assert one.variants == expected
                compared += 1
    assert compared > 40


def test_what_will_not_be_run_is_drawn_again(play: Play) -> None:
    script = [""] * 50
    script[0:4] = ["cheap", "VETO", "OVER", "cheap a"]
    script[10:14] = ["cheap a", "cheap", "cheap b", "never asked"]
    script[20:24] = ["cheap a", "cheap b", "cheap", "cheap a"]
    script[30:34] = ["cheap c", "never asked", "", ""]
    script[40:44] = ["VETO", "OVER", "cheap b", "VETO again"]
    spy = SpySearch(stride=10)
    run = play(talk("d", "cheap"), {"cheap": script}, variants=5, redraws=3, by=spy)
    (result,) = run.campaign.run()
    assert outcomes(result) == ["held", "held", "duplicate", "held", "vetoed"]
    assert [variant.draws for variant in result.variants] == [4, 3, 4, 1, 4]
    assert [variant.text for variant in result.variants][:4] == [
        "cheap a",
        "cheap b",
        "cheap a",
        "cheap c",
    ]
    assert [draw for *_, number, draw in spy.told if number == 1] == [0, 1, 2]
    assert result.calls == 4
    assert [item["draws"] for item in json.loads(json.dumps(result.to_json()))["variants"]] == [
        4,
        3,
        4,
        1,
        4,
    ]
    assert TurnResult.from_json(result.to_json()) == result


def test_without_redraws_everything_is_drawn_once(lexicon: Lexicon) -> None:
    settings = HUNT.replace_options(redraws=0, search="random", variants=4)
    drawn = [item for result in results_of(lexicon, settings) for item in result.variants]
    assert {item.draws for item in drawn} == {1}
    again = [
        item
        for result in results_of(lexicon, settings.replace_options(redraws=30))
        for item in result.variants
    ]

    def share(items: Sequence[Any]) -> float:
        return sum(item.valid for item in items) / len(items)

    assert share(again) > share(drawn)
    assert share(again) > 0.95


def test_a_broken_turn_gets_no_more_variants_and_is_seen_clean(play: Play) -> None:
    dialogue = talk("d", "a cheap hotel", "in the north please", "for two people")
    texts = {
        "a cheap hotel": ["a cheap hotel !", "a chaep hotel", "never", "never"],
        "in the north please": ["north !", "north ?", "the north", "nroth"],
        "for two people": ["two", "for two !", "2", "22"],
    }
    run = play(dialogue, texts, variants=4, stop_at_first=True)
    first, second, third = run.campaign.run()
    assert outcomes(first) == ["held", "violation"]
    # In the pass that broke it the others have been made with what broke it.
    assert outcomes(second) == ["held", "carried", "held", "violation"]
    assert outcomes(third) == ["held", "carried", "held", "carried"]
    assert [variant.context for variant in third.variants] == [
        ("a cheap hotel !", "north !"),
        ("a chaep hotel", "north ?"),
        ("a cheap hotel", "the north"),
        ("a cheap hotel", "nroth"),
    ]
    assert [len(variant.context_edits) for variant in third.variants] == [2, 2, 1, 1]
    assert not any("never" in context.user for context in run.bot.asked)


USERS = ("a cheap hotel", "in the north please", "chinese food", "bye")
WORDS = st.sampled_from(["a", "hotel", "cheap", "chaep", "north", "south", "food", "chinese", "by"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), min_size=5, max_size=5)


@LAWS
@given(
    scripts=st.tuples(*[TEXTS] * len(USERS)),
    attack=st.sampled_from(["cumulative", "hybrid", "non-cumulative"]),
    adaptive=st.booleans(),
    steps=st.sampled_from([1, 2, 5]),
)
def test_laws_of_turns_that_are_done_once_broken(
    play: Play, scripts: Any, attack: str, adaptive: bool, steps: int
) -> None:
    texts = dict(zip(USERS, scripts, strict=True))
    given_ = {"variants": 5, "attack": attack, "by": SpySearch(adaptive, steps)}
    done = list(play(talk("d", *USERS), texts, stop_at_first=True, **given_).campaign.run())
    whole = list(play(talk("d", *USERS), texts, **given_).campaign.run())
    for place, (result, full) in enumerate(zip(done, whole, strict=True)):
        names = outcomes(result)
        assert "violation" not in names[:-1]
        assert len(names) == (5 if "violation" not in names else names.index("violation") + 1)
        if attack == "non-cumulative" or place == 0:
            assert result.variants == full.variants[: len(names)]
        for variant in result.variants:
            context_variant = variant.index - variant.index % steps
            for past, user in zip(done[:place], variant.context, strict=True):
                if user != past.user:
                    # It is seen as a variant that it had, and the one of that number.
                    assert user == past.variants[context_variant].text
            brought = {
                (change.slot, change.before, change.after)
                for past in done[:place]
                for change in past.variants[context_variant : context_variant + 1]
                for change in change.changed_slots
            }
            changed = {(c.slot, c.before, c.after) for c in variant.changed_slots}
            if variant.outcome == "violation" and variant.context != USERS[:place]:
                assert not changed <= brought
            if variant.outcome == "carried":
                # The variant that a duplicate copies holds its changes.
                everything = {
                    (change.slot, change.before, change.after)
                    for past in done[:place]
                    for item in past.variants
                    for change in item.changed_slots
                }
                assert changed <= everything


def test_steps_of_a_climb_are_seen_with_its_first(play: Play) -> None:
    dialogue = talk("d", "a cheap hotel", "in the north please")
    texts = {
        "a cheap hotel": [f"a cheap hotel {i}" for i in range(6)],
        "in the north please": [f"north {i}" for i in range(6)],
    }
    _, second = play(dialogue, texts, variants=6, by=SpySearch(steps=3)).campaign.run()
    seen = [variant.context for variant in second.variants]
    assert seen == [(f"a cheap hotel {first}",) for first in (0, 0, 0, 3, 3, 3)]


def test_what_the_companion_lost_is_carried_by_all_that_are_seen_with_it(play: Play) -> None:
    dialogue = talk("d", "a cheap hotel", "in the north please")
    texts = {
        "a cheap hotel": ["a chaep hotel", "a cheap hotel !", "a cheap hotel ?"],
        "in the north please": ["north", "the north", "north then"],
    }
    first, second = play(dialogue, texts, variants=3, by=SpySearch(steps=3)).campaign.run()
    assert outcomes(first) == ["violation", "held", "held"]
    assert outcomes(second) == ["carried"] * 3


def test_nothing_is_carried_from_a_later_turn(play: Play) -> None:
    dialogue = talk("d", "a cheap hotel", "in town please", "bye")
    texts = {
        "a cheap hotel": ["a cheap hotel !", "cheap"],
        "in town please": ["town", "in the south"],
        "bye": ["south", "bye bye"],
    }
    results = list(play(dialogue, texts, variants=2, by=SpySearch(steps=2)).campaign.run())
    assert [outcomes(result) for result in results] == [
        ["held", "held"],
        ["held", "violation"],
        ["violation", "held"],
    ]


@pytest.mark.parametrize("search", ["greedy", "near-value"])
def test_a_budget_that_ends_between_passes_loses_no_other_turn(
    lexicon: Lexicon, search: str
) -> None:
    settings = HUNT.replace_options(search=search, variants=5, shrink=False)
    whole = {result.id: result for result in results_of(lexicon, settings)}
    ended = set()
    for limit in (3, 40, 61, 130, 200, 100_000):
        bot = UnsureBot()
        limited = settings.replace_options(max_calls=limit)
        results = results_of(lexicon, limited, bot=bot)
        assert len(bot.asked) <= limit
        assert [result.id for result in results] == list(whole)
        tested = [result for result in results if result.outcome != "skipped"]
        for result in tested:
            full = whole[result.id]
            assert outcomes(result) == outcomes(full)
            # Only second passes may be left out.
            assert [replace(item, cause=None) for item in result.variants] == [
                replace(item, cause=None) for item in full.variants
            ]
        for result in results:
            if result.outcome == "skipped":
                assert (result.variants, result.clean_state) == ((), None)
                assert "calls ended before this turn" in result.reason
        assert sum(result.calls for result in results) >= len(bot.asked)
        ended.add(len(tested))
    assert len(ended) > 3
    assert max(ended) == len(whole)


def test_a_budget_may_end_in_the_middle_of_a_pass(play: Play) -> None:
    texts = {"cheap": [f"cheap {i}" for i in range(4)], "north": [f"north {i}" for i in range(4)]}
    for limit, outcome in ((9, "held"), (10, "held"), (8, "skipped"), (5, "skipped")):
        spy = SpySearch()
        run = play(
            talk("d", "cheap", "north"), texts, variants=4, max_calls=limit, by=spy, batch_size=1
        )
        first, second = run.campaign.run()
        assert len(run.bot.asked) == min(limit, 10)
        assert first.outcome == outcome
        assert second.outcome == ("held" if limit == 10 else "skipped")
        assert first.calls + second.calls == min(limit, 10)


def test_an_interrupt_between_passes_loses_no_finished_dialogue(lexicon: Lexicon) -> None:
    class Stops(UnsureBot):
        left = 120

        def answer(self, context: Context) -> Prediction:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().answer(context)

    settings = HUNT.replace_options(shrink=False)
    full = results_of(lexicon, settings)
    run = campaign(lexicon, settings, Stops(), window=40)
    with pytest.raises(KeyboardInterrupt):
        list(run.run())
    kept = list(run.finished())
    assert 0 < len(kept) < len(full)
    assert kept == [result for result in full if result in kept]
    assert list(run.run()) == full


def test_talks_are_what_they_were() -> None:
    """Figures above depend on them."""
    assert (len(TALKS), sum(len(dialogue.turns) for dialogue in TALKS)) == (14, 45)
