"""Carried, cause and improved, worked by hand on scripted variants."""

from __future__ import annotations

import pytest
from toybots import FussyBot, PairBot, Play, WordBot, talk

from pytest_dstfuzz.campaign.attempts import replaces
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import Context, Difference
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.tracker import Prediction

THREE = talk("d", "a cheap hotel", "in the north please", "for two people")
#: The first turn loses its price, the others are harmless.
LOSES_PRICE = {
    "a cheap hotel": ["a chaep hotel"],
    "in the north please": ["in the north pls"],
    "for two people": ["for two ppl"],
}
PRICE_LOST = Difference("hotel-price", "cheap", None)


def outcomes(results: list[TurnResult]) -> list[list[str]]:
    return [[variant.outcome for variant in result.variants] for result in results]


def test_a_slot_lost_at_the_first_turn_is_carried_by_the_later_ones(play: Play) -> None:
    results = list(play(THREE, LOSES_PRICE).campaign.run())
    assert outcomes(results) == [["violation"], ["carried"], ["carried"]]
    first, second, third = (result.variants[0] for result in results)
    assert first.changed_slots == (PRICE_LOST,)
    assert first.cause == "turn"
    assert second.changed_slots == (Difference("hotel-price", "cheap", None, carried=True),)
    assert second.cause is None
    assert third.context == ("a chaep hotel", "in the north pls")
    assert [entry.turn_index for entry in third.context_edits] == [0, 1]
    assert [result.outcome for result in results] == ["violation", "held", "held"]


def test_in_the_clean_context_nothing_is_carried(play: Play) -> None:
    results = list(play(THREE, LOSES_PRICE, attack="non-cumulative").campaign.run())
    assert outcomes(results) == [["violation"], ["held"], ["held"]]
    assert results[2].variants[0].context == ("a cheap hotel", "in the north please")
    assert results[2].variants[0].context_edits == ()


def test_the_same_slot_lost_at_every_turn_of_a_clean_context_counts_each_time(play: Play) -> None:
    dialogue = talk("d", "cheap", "cheap again")
    bot = WordBot()
    # Both variants put another area in; each is the doing of its own turn.
    texts = {"cheap": ["cheap north"], "cheap again": ["cheap again north"]}
    results = list(play(dialogue, texts, bot, attack="non-cumulative").campaign.run())
    assert outcomes(results) == [["violation"], ["violation"]]
    assert [result.variants[0].cause for result in results] == ["turn", "turn"]
    assert len(bot.asked) == 4


def test_hybrid_replaces_the_turns_that_the_design_draws(play: Play) -> None:
    texts = {user: [f"{user} {i}" for i in range(12)] for user in LOSES_PRICE}
    results = list(play(THREE, texts, attack="hybrid", variants=12).campaign.run())
    seen = set()
    for variant in results[2].variants:
        drawn = [replaces("hybrid", 0, "d", variant.index, turn) for turn in range(2)]
        users = ("a cheap hotel", "in the north please")
        expected = tuple(
            f"{user} {variant.index}" if yes else user
            for user, yes in zip(users, drawn, strict=True)
        )
        assert variant.context == expected
        seen.add(tuple(drawn))
    assert len(seen) > 2


def test_a_new_change_beside_a_carried_one_is_a_violation_of_the_turn(play: Play) -> None:
    texts = {**LOSES_PRICE, "in the north please": ["in the nroth please"]}
    second = list(play(THREE, texts).campaign.run())[1].variants[0]
    assert second.outcome == "violation"
    assert second.changed_slots == (
        Difference("hotel-area", "north", None),
        Difference("hotel-price", "cheap", None, carried=True),
    )
    # The context alone loses only what was carried.
    assert second.cause == "turn"


def test_another_value_of_a_lost_slot_is_not_carried(play: Play) -> None:
    dialogue = talk("d", "north", "well")
    texts = {"north": ["nroth"], "well": ["well south"]}
    second = list(play(dialogue, texts).campaign.run())[1].variants[0]
    assert second.outcome == "violation"
    assert second.changed_slots == (Difference("hotel-area", "north", "south"),)


def test_a_variant_that_breaks_only_with_its_context_has_cause_both(play: Play) -> None:
    dialogue = talk("d", "cheap", "two nights", "and a taxi")
    texts = {"cheap": ["cheap !"], "two nights": ["two nights !"], "and a taxi": ["and a taxi ?"]}
    bot = PairBot()
    results = list(play(dialogue, texts, bot).campaign.run())
    assert outcomes(results) == [["held"], ["violation"], ["carried"]]
    assert results[1].variants[0].cause == "both"
    assert {("cheap", "two nights !"), ("cheap !", "two nights")} <= {
        context.user_utterances for context in bot.asked
    }
    # Clean, variant, and the two halves of the second pass.
    assert [result.calls for result in results] == [2, 4, 2]


def test_a_context_that_breaks_a_later_turn_on_its_own_is_the_cause(play: Play) -> None:
    class Late(WordBot):
        """Understands the first turn, and misreads it once it is two turns old."""

        def state(self, context: Context) -> dict[str, str]:
            state = super().state(context)
            if len(context.exchanges) > 2 and "!" in context.user_utterances[0]:
                state["hotel-area"] = "south"
            return state

    dialogue = talk("d", "north", "two nights", "and a taxi")
    texts = {"north": ["north !"], "two nights": ["two nites"], "and a taxi": ["and a cab"]}
    results = list(play(dialogue, texts, Late()).campaign.run())
    assert outcomes(results) == [["held"], ["held"], ["violation"]]
    assert results[2].variants[0].cause == "context"


def test_a_half_that_fails_is_not_to_blame(play: Play) -> None:
    class Picky(FussyBot):
        def answer(self, context: Context) -> Prediction:
            if context.user_utterances == ("cheap", "bye south"):
                raise ValueError("no")
            return super().answer(context)

    texts = {"cheap": ["cheap !"], "bye": ["bye south"]}
    results = list(play(talk("d", "cheap", "bye"), texts, Picky()).campaign.run())
    assert results[1].variants[0].outcome == "violation"
    assert results[1].variants[0].cause == "both"


@pytest.mark.parametrize("label", [{"hotel-area": "north"}, None])
def test_a_variant_that_repairs_the_clean_prediction_is_improved(
    play: Play, label: dict[str, str] | None
) -> None:
    dialogue = talk("d", "in the nroth", labels=[label])
    results = list(play(dialogue, {"in the nroth": ["in the north"]}).campaign.run())
    assert outcomes(results) == [["improved" if label else "violation"]]
    (change,) = results[0].variants[0].changed_slots
    said = "corrected" if label else None
    assert change == Difference("hotel-area", None, "north", by_label=said)


def test_gold_tests_only_turns_that_the_tracker_gets_right(play: Play) -> None:
    dialogue = talk(
        "d",
        "north",
        "cheap",
        "bye",
        labels=[{"hotel-area": "south"}, {"hotel-area": "north", "hotel-price": "cheap"}, None],
    )
    texts = {"north": ["nroth"], "cheap": ["chaep"], "bye": ["by"]}
    bot = WordBot()
    results = list(play(dialogue, texts, bot, relation="gold").campaign.run())
    assert [result.outcome for result in results] == ["inapplicable", "violation", "inapplicable"]
    assert [len(result.variants) for result in results] == [0, 1, 0]
    # The variant of the first turn was not tested, and is part of the second's context.
    assert results[1].variants[0].context == ("nroth",)
    assert {str(change) for change in results[1].variants[0].changed_slots} == {
        "hotel-area: north -> none",
        "hotel-price: cheap -> none",
    }
    assert [result.calls for result in results] == [1, 4, 1]
    assert "wrong by the label" in results[0].reason


def test_invalid_and_vacuous_variants_never_propagate(play: Play) -> None:
    dialogue = talk("d", "cheap", "north", "two", "bye")
    texts = {
        "cheap": ["VETO chaep"],
        "north": ["OVER nroth"],
        "bye": ["bye bye"],
    }
    results = list(play(dialogue, texts).campaign.run())
    assert outcomes(results) == [["vetoed"], ["over_rate"], ["vacuous"], ["held"]]
    assert results[3].variants[0].context == ("cheap", "north", "two")
    assert [r.variants[0].reason for r in results] == ["veto", "over", "nothing was changed", ""]
    assert [r.outcome for r in results] == ["untested", "untested", "untested", "held"]


def test_duplicates_are_run_once_and_still_propagate(play: Play) -> None:
    dialogue = talk("d", "cheap", "bye")
    texts = {"cheap": ["chaep", "chaep"], "bye": ["by", "byee"]}
    bot = WordBot()
    results = list(play(dialogue, texts, bot, variants=2).campaign.run())
    # The duplicate stands for the other: what it changed is carried by its later turns.
    assert outcomes(results) == [["violation", "duplicate"], ["carried", "carried"]]
    assert results[0].variants[1].reason == "same text as variant 0"
    assert not results[0].variants[1].valid
    assert results[0].variants[1].state is None
    assert results[1].variants[1].context == ("chaep",)
    assert results[0].calls == 2


def test_a_tracker_that_fails_on_the_clean_turn_leaves_the_others_alone(play: Play) -> None:
    dialogue = talk("d", "cheap boom", "north")
    texts = {"cheap boom": ["chaep boom", "chaep boom"], "north": ["nroth", "nort"]}
    results = list(play(dialogue, texts, FussyBot(), variants=2).campaign.run())
    assert [result.outcome for result in results] == ["error", "violation"]
    assert results[0].reason.startswith("ValueError: cannot read 'cheap boom' (toybots.py:")
    assert outcomes(results)[0] == ["error", "duplicate"]
    assert "failed on the clean turn" in results[0].variants[0].reason
    assert results[0].clean_state is None
    assert results[0].calls == 1
    assert results[1].variants[0].context == ("cheap boom",)


def test_an_error_on_a_variant_is_an_outcome(play: Play) -> None:
    texts = {"cheap": ["cheap boom", "cheep"]}
    run = play(talk("d", "cheap"), texts, FussyBot(), variants=2)
    (result,) = run.campaign.run()
    assert [variant.outcome for variant in result.variants] == ["error", "violation"]
    assert result.variants[0].reason.startswith("ValueError: cannot read 'cheap boom' (toybots.py:")
    assert result.variants[0].state is None
    assert result.outcome == "error"
    assert TurnResult.from_json(result.to_json()) == result


def test_designs() -> None:
    coins = [replaces("hybrid", 1, f"d{n}", 2, 3) for n in range(2000)]
    assert 900 < sum(coins) < 1100
    assert coins == [replaces("hybrid", 1, f"d{n}", 2, 3) for n in range(2000)]
    assert replaces("cumulative", 1, "d", 2, 3)
    assert not replaces("non-cumulative", 1, "d", 2, 3)
    with pytest.raises(UserError, match="unknown attack design"):
        replaces("hibrid", 0, "d", 0, 0)
