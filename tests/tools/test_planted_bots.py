"""The bots with planted faults, and the calls until a search has found them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from tools.weaknesses import planted_calls
from tools.weaknesses.planted import Found, look, rounds
from tools.weaknesses.planted_bots import Bot, bots

BY_NAME = {bot.name: bot for bot in bots()}


def context(*users: str) -> Context:
    return Context(tuple(Exchange("", user) for user in users))


def test_each_bot_has_five_faults_of_different_kinds() -> None:
    assert Counter(bot.use for bot in bots()) == {"choices": 5, "report": 10}
    for use in ("choices", "report"):
        chosen = [bot for bot in bots() if bot.use == use]
        assert {bot.answers for bot in chosen} == {"states", "calls", "replies"}
        assert {bot.reader for bot in chosen} == {"letters", "trigrams", "words"}
    for bot in bots():
        assert len({*bot.faults.values()}) == len(bot.faults) == 5


@pytest.mark.parametrize("bot", bots(), ids=lambda bot: bot.name)
def test_clean_turns_are_understood_and_each_fault_is_said(bot: Bot) -> None:
    said: set[str] = set()
    for dialogue in bot.dialogues(12).dialogues:
        state: dict[str, str] = {}
        for turn in dialogue.turns:
            users = [one.user for one in dialogue.turns[: turn.index + 1]]
            found = bot.results(users, bot.faults)
            state |= found
            assert state == dict(turn.state or {})
            assert bot.causes(context(*users)) == ()
        said |= state.keys()
    assert said >= bot.faults.keys()


@pytest.mark.parametrize(
    ("name", "said", "topic"),
    [
        ("library", "I would like to borow a copy of Emma this week.", "title"),
        ("library", "Id pick it up in Hilltop on my way home.", "branch"),
        ("library", "We need it for abuot two weeks because of the holidays.", "weeks"),
        ("library", "My mother prefers the the audio edition because of her eyes.", "format"),
        ("library", "Send the reminder by email a day before it is due", "reminder"),
        ("garage", "Change the wheels to wintr tyres before my trip, please.", "tyres"),
        ("garage", "paint the scratched part in silver again.", "colour"),
        ("garage", "We will settle it by cash whenthe work is done.", "payment"),
        ("recipes", "How much rice should I biol for six hungry people?", "amount"),
        ("gym", "Put us on yearly plan, as my brother has it.", "plan"),
        ("gym", "Someone told us that linen towwels are provided downstairs.", "towel"),
        ("florist", "For my desk, a fern wuold look nice too.", ""),
        ("florist", "Fir my desk, a fern would look nice too.", "plant"),
        ("florist", "She would be hapy about a glass vase as wel.", "vase"),
        ("courier", "Our customer in oslo is waiting for the box.", "city"),
    ],
)
def test_each_kind_of_fault_has_a_slip_of_its_own(name: str, said: str, topic: str) -> None:
    assert BY_NAME[name].causes(context(said)) == ((topic,) if topic else ())


@pytest.mark.parametrize("search", ["random", "adaptive"])
@pytest.mark.parametrize("name", ["library", "garage", "recipes"])
def test_calls_are_those_of_the_engine(name: str, search: str) -> None:
    bot = BY_NAME[name]
    settings = Settings.of(validity="natural", search=search, variants=2, turns=None)
    data = bot.dialogues(4)
    results = tuple(bot.campaign(data, settings))
    groups = rounds(results, data, settings)
    assert [len({turn.dialogue_id for turn in group}) for group in groups] == (
        [4] if search == "random" else [2, 2]
    )
    found = look(groups, data, bot.causes)
    assert found.total == sum(turn.calls for turn in results)
    assert found.calls.keys() <= bot.faults.keys()
    assert all(call <= found.total for call in found.calls.values())


def test_a_fault_that_was_not_found_counts_as_all_calls_of_the_longer_campaign() -> None:
    bot = BY_NAME["library"]
    one = Found(dict.fromkeys(bot.faults, 10) | {"title": 30}, 50, Counter())
    two = Found(dict.fromkeys(bot.faults, 20) | {"title": 60}, 80, Counter())
    few = Found({"title": 5}, 40, Counter())
    first, _ = planted_calls.pair([(one, two), (few, two)], planted_calls.until_first)
    every, count = planted_calls.pair([(one, two), (few, two)], planted_calls.until_all(bot))
    assert first.mine.tolist() == [10, 5]
    assert every.mine.tolist() == [30, 80]
    assert every.others.tolist() == [60, 60]
    assert count == (1, 2)
    assert every.ratio() == 55 / 60
    assert every.ratio(np.array([0, 0])) == 0.5
