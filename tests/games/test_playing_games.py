"""A game from the first line to the selection; what is wrong with a bad one, in one message."""

from __future__ import annotations

import math
from typing import Any

import pytest
from refund_bots import CoinGame, RuleBot, SayingBot

from pytest_dstfuzz import UserError
from pytest_dstfuzz.games import (
    AdversarySide,
    GameScores,
    GoalSelection,
    RefundGame,
    Scenario,
    TalkLine,
)
from pytest_dstfuzz.games.adversaries import VoicedAdversary
from pytest_dstfuzz.games.attack import GameAttack, unlike
from pytest_dstfuzz.games.playing import Arena, play_against, play_game

FEW = GameAttack(games=2, budget=4)


def scenario_of(game: CoinGame) -> Scenario:
    return game.scenarios(1, 0)[0]


def test_a_talk_alternates_until_it_is_closed() -> None:
    game, bot = CoinGame(), SayingBot("well")
    played = play_game(game, scenario_of(game), bot, ("please",))
    assert played.lines == ((False, "please"), (True, "well"))
    assert bot.seen[-1] == [
        TalkLine(mine=False, text="please"),
        TalkLine(mine=True, text="well"),
        TalkLine(mine=False, text="", closes=True),
    ]
    assert (played.scores, played.advantage) == (GameScores(10.0, 0.0), 10.0)


def test_the_target_may_speak_first_and_select_at_any_time() -> None:
    game = CoinGame(target_first=True)
    bot = SayingBot("well")
    played = play_game(game, scenario_of(game), bot, ("please", "now", "now"))
    assert [target for target, _ in played.lines] == [True, False, True, False]
    assert bot.seen[0] == []
    at_once = SayingBot(GoalSelection(coins=4))
    assert play_game(game, scenario_of(game), at_once, ("please",)).lines == ()


def test_one_who_hears_the_agent_plays_the_game_of_its_script() -> None:
    game, bot = CoinGame(target_first=True), SayingBot("well")
    heard = []

    def speak(said: object) -> str | None:
        heard.append(said)
        return "please" if len(heard) < 3 else None

    played = play_against(game, scenario_of(game), bot, speak)
    assert heard[1] == ((True, "well"), (False, "please"), (True, "well"))
    assert played == play_game(game, scenario_of(game), bot, ("please", "please"))


def test_a_selection_is_what_it_holds() -> None:
    assert GoalSelection({"b": 1, "a": 2}) == GoalSelection(a=2, b=1)
    assert len({GoalSelection(a=1), GoalSelection({"a": 1})}) == 1
    assert (GoalSelection(a=1)["a"], GoalSelection(a=1)["b"]) == (1, 0)
    assert str(GoalSelection(b=1, a=2)) == "a 2, b 1"


@pytest.mark.parametrize(
    ("bot", "game", "message"),
    [
        (SayingBot("x"), CoinGame(most=-1), "selections\\(\\) has no legal selection"),
        (
            SayingBot("x", "no"),
            CoinGame(),
            "'saying'.* never selects: .* after 2 lines",
        ),
        (SayingBot("  "), CoinGame(), "'saying'.* returned an empty utterance"),
        (
            SayingBot("x" * 10_000),
            CoinGame(),
            "an utterance of 10,000 characters, but .* at most 4,000",
        ),
        (SayingBot(7), CoinGame(), "returned int: it must be a text, or a GoalSelection"),
        (SayingBot("x", GoalSelection(coins=11)), CoinGame(), "coins 11, which is not legal"),
        (SayingBot("x"), CoinGame(most_score=5.0), "a score of 10 .* from 0 to most_score, 5"),
        (SayingBot("x"), CoinGame(said=()), "has no line for an adversary"),
        (SayingBot("x"), CoinGame(said=("a", "")), "lines\\(\\) returned an empty utterance"),
        (SayingBot("x"), CoinGame(most_turns=1), "least 2 turns"),
        (SayingBot("x"), CoinGame(most_turns=math.nan), "least 2 turns"),  # type: ignore[arg-type]  # on purpose
        (object(), CoinGame(), "is not an agent: it must be an object with start"),
        (SayingBot, CoinGame(), "is not an agent: it must be an object with start"),
        (SayingBot("x"), object(), "is not a game: it must have name"),
    ],
)
def test_a_bad_game_is_told_in_one_message(bot: Any, game: CoinGame, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        FEW.run(bot, game)
    assert "\n" not in str(raised.value)


def test_scenarios_are_as_many_as_asked_for_with_ids_of_their_own() -> None:
    class Same(CoinGame):
        def scenarios(self, count: int, seed: int) -> list[Scenario]:
            return [Scenario("c", {"seed": seed}, {})] * count

    with pytest.raises(UserError, match="returned 22 scenarios with 1 different id;"):
        FEW.run(SayingBot("x"), Same())


def test_lines_are_as_many_in_each_scenario() -> None:
    class Uneven(CoinGame):
        def lines(self, scenario: Scenario) -> list[str]:
            return ["a"] * (1 + (scenario.id == "c1"))

    with pytest.raises(UserError, match="1 lines in scenario 'c0' and 2 in 'c1'"):
        FEW.run(SayingBot("x"), Uneven())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"games": 0}, "games must be at least 1, not 0"),
        ({"budget": -1}, "budget must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"adversaries": ()}, "no adversary was named: choose from plain, transfer"),
    ],
)
def test_wrong_settings_are_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        GameAttack(**how)


def test_an_unknown_adversary_costs_no_game() -> None:
    bot = SayingBot("x")
    with pytest.raises(UserError, match=r"unknown adversary 'climbing'\. Did you mean 'climb'"):
        GameAttack(adversaries=("plain", "climbing")).run(bot, CoinGame())
    assert bot.seen == []


def test_a_game_is_not_played_twice() -> None:
    game = CoinGame()
    arena = Arena(game, RuleBotOfCoins(), 0)
    first = arena.play(scenario_of(game), ("please",))
    assert arena.play(scenario_of(game), ("please",)) is first
    assert arena.games == 1


class RuleBotOfCoins(RuleBot):
    def start(self, goal: Any) -> None:
        super().start({"price": 10, "state": "late", **goal})

    def reply(self, history: Any) -> str | GoalSelection:
        found = super().reply(history)
        return GoalSelection(coins=5) if isinstance(found, GoalSelection) else found


def test_an_agent_that_raises_is_told_with_the_place() -> None:
    class Broken(SayingBot):
        def reply(self, history: Any) -> str:
            raise KeyError(f"boom {len(history)}")

    told = r"in scenario 'c0', after 1 line, raised KeyError: 'boom 1' \(.*games\.py, line"
    with pytest.raises(UserError, match=told):
        FEW.run(Broken("x"), CoinGame())


def test_what_a_voice_says_is_checked() -> None:
    how = GameAttack(games=2, budget=4, adversaries=("voice",))
    silent = AdversarySide(voice=SayingBot(""))
    with pytest.raises(UserError, match="the voice 'saying', in scenario 'c0', returned an empty"):
        how.run(SayingBot("x"), CoinGame(), silent)
    with pytest.raises(UserError, match="'voice' needs a voice"):
        how.run(SayingBot("x"), CoinGame())


def test_learning_is_never_in_scenarios_that_are_reported() -> None:
    game = RefundGame()
    every = game.scenarios(70, 0)
    left = unlike(every[50:], every[:50])
    assert 0 < len(left) < 20
    assert not any(one.target == other.target for one in left for other in every[:50])


def test_an_agent_that_changes_its_goal_changes_no_game() -> None:
    class GreedyBot(SayingBot):
        def start(self, goal: Any) -> None:
            goal["price"] = 0
            goal["history"].append("changed")

    scenario = Scenario("one", {"price": 10, "history": []}, {"price": 3, "history": []})
    play_game(CoinGame(), scenario, GreedyBot("well"), ("please",))
    assert scenario.target == {"price": 10, "history": []}
    arena = Arena(CoinGame(), SayingBot("well"), 0, AdversarySide(voice=GreedyBot("now")))
    arena.hear(scenario, VoicedAdversary(arena).speaker(scenario))
    assert scenario.adversary == {"price": 3, "history": []}
