"""Bots that are right and word each answer in several ways: what the default makes of them.

``python tests/wordings/test_right_bots.py`` prints the table for all bots and faults.
"""

from __future__ import annotations

from functools import cache

import pytest
from wording_bots import FAULTS, Orders, Wordings

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings, Settings
from pytest_dstfuzz.dialogue.calls import REPLY, Outcome
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.trackers.tracker import Prediction

BOTS = ("museum", "telephone", "library")
#: Share of the variants with a fault that must be found. Without figures and names two answers of
#: one company may share most of what they say.
LEAST = {"wrong_fact": 0.98, "wrong_intent": 0.9, "fallback": 1.0, "refusal": 1.0}
CONTEXTS = ("same-context", "lost-context", "contexts-agree", "contexts-differ")


def run(bot: Wordings | Orders, **options: object) -> list[TurnResult]:
    settings = Settings().replace_options(outcome="reply", turns="all", **options)
    return list(Campaign(bot, bot.data(), settings))


@cache
def right(name: str) -> list[TurnResult]:
    return run(Wordings(name))


def false_alarms(name: str) -> tuple[int, int]:
    """Return how many variants of a right bot are violations, and how many there are."""
    valid = [one for turn in right(name) for one in turn.variants if one.valid]
    return sum(one.outcome == "violation" for one in valid), len(valid)


def found(name: str, fault: str) -> tuple[int, int]:
    """Return how many variants with a fault are told apart, and at how many it showed."""
    clean, broken = Wordings(name), Wordings(name, FAULTS[fault])
    folding = Folding(comparison_by_name(None, ReplySettings()))
    told = showed = 0
    for turn in right(name):
        asked = Wordings(name).data().dialogue(turn.dialogue_id).context(turn.turn_index)
        before = Outcome({REPLY: clean.reply(asked)})
        for variant in turn.variants:
            seen = asked.saying(variant.text)
            if not variant.valid or broken.reply(seen) == clean.reply(seen):
                continue
            showed += 1
            given = [Prediction(Outcome({REPLY: broken.reply(seen)}))]
            (counted,) = folding.to_clean(given, (), before, asked, seen=seen)
            told += counted.state != before
    return told, showed


@pytest.mark.parametrize("name", BOTS)
def test_a_right_bot_that_words_its_answers_anew_is_right(name: str) -> None:
    false, variants = false_alarms(name)
    assert variants > 100
    assert false <= 0.03 * variants


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", BOTS)
def test_planted_faults_are_found_in_whatever_words(name: str, fault: str) -> None:
    told, showed = found(name, fault)
    assert showed > 10
    assert told >= LEAST[fault] * showed


@pytest.mark.parametrize("relation", CONTEXTS)
@pytest.mark.parametrize("bot", [Wordings("library"), Orders()], ids=["library", "orders"])
def test_relations_on_contexts_blame_no_right_bot(bot: Wordings | Orders, relation: str) -> None:
    assert not any(turn.violations for turn in run(bot, relation=relation))


@pytest.mark.parametrize("relation", ["lost-context", "contexts-differ"])
def test_a_bot_that_makes_up_what_was_never_said_is_found(relation: str) -> None:
    for bot in (Orders(forgets=True, guesses=True), Orders(guesses=True)):
        assert any(turn.violations for turn in run(bot, relation=relation))


def test_of_two_contexts_the_one_counts_that_changed_the_reply() -> None:
    class Confused(Orders):
        def reply(self, context: Context) -> str:
            if len(context.exchanges) > 1 and context.exchanges[0].user.startswith("How much"):
                return "Order Z0000 is gone."
            return super().reply(context)

    clean = {turn.id: turn.clean_state for turn in run(Confused(), relation="contexts-agree")}
    broken = [
        (turn, one)
        for turn in run(Confused(), relation="contexts-agree")
        for one in turn.violations
    ]
    assert broken
    for turn, variant in broken:
        assert variant.state != clean[turn.id]


if __name__ == "__main__":
    for bot_name in BOTS:
        false_, all_ = false_alarms(bot_name)
        print(f"{bot_name:<10} right         {false_} of {all_} are violations")
        for fault_name in FAULTS:
            told_, showed_ = found(bot_name, fault_name)
            print(f"{bot_name:<10} {fault_name:<13} {told_} of {showed_} found")
