"""A planted weakness is found, shrunk to its sentence and replayed; a robust bot passes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from refund_bots import CoinGame, RuleBot, SayingBot

from pytest_dstfuzz import DataError, UserError
from pytest_dstfuzz.games import GameReport, GoalSelection, RefundGame, TalkLine
from pytest_dstfuzz.games.adversaries import SCRIPTED
from pytest_dstfuzz.games.attack import GameAttack, replay
from pytest_dstfuzz.games.game import Goal

HOW = GameAttack(games=20, budget=400)


def report_of(bot: RuleBot, how: GameAttack = HOW) -> GameReport:
    return GameReport(bot.name, "refund", how, how.run(bot, RefundGame()))


@pytest.fixture(scope="module")
def tired() -> GameReport:
    return report_of(RuleBot(patience=3))


@pytest.fixture(scope="module")
def robust() -> GameReport:
    return report_of(RuleBot())


def test_insisting_three_times_is_found_and_shrunk_to_the_sentence(tired: GameReport) -> None:
    assert tired.results[-1].name == "climb"
    assert tired.results[-1].figures.advantage.value == 10.0
    assert tired.worst.figures.advantage.value == 10.0
    (turned,) = tired.plainest()
    assert (turned.sentence, turned.times, turned.stays) == ("all of my", 3, True)
    assert (turned.played.advantage, turned.without) == (10.0, -10.0)
    assert turned.played.script == ("all of my",) * 3
    text = str(tired)
    assert "decided by 'all of my', said 3 times: the advantage is 10, and -10 without it" in text
    with pytest.raises(AssertionError, match=r"is not below 0: .*climb 10\.00 \[10\.00, 10\.00\]"):
        tired.assert_advantage_below(0)


def test_a_robust_bot_passes(robust: GameReport) -> None:
    robust.assert_advantage_below(0)
    with pytest.raises(UserError, match="nan"):
        robust.assert_advantage_below(float("nan"))
    assert [one.name for one in robust.results] == list(SCRIPTED)
    for one in robust.results:
        assert (one.figures.advantage.high, one.turned) == (-10.0, ())


def test_no_adversary_plays_more_than_its_budget(robust: GameReport, tired: GameReport) -> None:
    asked = {one.name: one.asked for report in (robust, tired) for one in report.results}
    assert max(asked.values()) <= HOW.budget
    assert asked["plain"] == 0


def test_the_same_seed_gives_the_same_and_another_other_games(tired: GameReport) -> None:
    again = report_of(RuleBot(patience=3))
    assert json.dumps(again.to_json()) == json.dumps(tired.to_json())
    other = report_of(RuleBot(patience=3), GameAttack(games=20, budget=400, seed=1))
    assert other.results[0].played != tired.results[0].played


def test_an_adversary_does_not_hang_on_the_others(tired: GameReport) -> None:
    how = GameAttack(games=20, budget=400, adversaries=("climb",))
    (alone,) = report_of(RuleBot(patience=3), how).results
    assert alone == tired.results[-1]


def test_without_a_budget_nothing_is_asked() -> None:
    report = report_of(RuleBot(patience=3), GameAttack(games=5, budget=0))
    assert {one.asked for one in report.results} == {0}


def test_few_games_give_no_bound() -> None:
    report = report_of(RuleBot(), GameAttack(games=5, budget=0))
    with pytest.raises(UserError, match="5 games give no interval"):
        report.assert_advantage_below(0)


def test_words_that_win_are_found_by_replacing() -> None:
    class Polite:
        """Gives half of it to who says please, and all of it to who begs as well."""

        name = "polite"

        def start(self, goal: Goal) -> None: ...

        def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
            said = {word for line in history for word in line.text.split()}
            if history[-1].closes:
                return GoalSelection(coins=10 - 5 * ("please" in said) - 5 * ("beg" in said))
            return "well"

    game = CoinGame(said=("give it", "please wait", "i beg"))
    how = GameAttack(games=20, budget=1600, adversaries=("plain", "replace"))
    plain, replaced = how.run(Polite(), game)
    assert replaced.figures.advantage.low > plain.figures.advantage.high
    assert replaced.figures.advantage.value == 10.0


def test_transferred_and_learned_lines_win_more_than_plain_ones() -> None:
    class Last:
        """Gives everything to who ends with a word of power."""

        name = "last"

        def start(self, goal: Goal) -> None: ...

        def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
            if not history[-1].closes:
                return "well"
            said = ["", *(line.text for line in history[:-1] if not line.mine)]
            return GoalSelection(coins=0 if said[-1] == "abracadabra" else 10)

    lines = tuple(f"word {number}" for number in range(9))
    game = CoinGame(said=(*lines, "abracadabra"))
    how = GameAttack(games=40, budget=800, adversaries=("plain", "transfer", "learned"))
    plain, transfer, learned = how.run(Last(), game)
    assert plain.figures.positive.value < 0.3
    assert transfer.figures.positive.value > 0.3
    assert learned.figures.positive.low > plain.figures.positive.high


def test_what_wins_without_a_word_is_said_so() -> None:
    how = GameAttack(games=20, budget=0, adversaries=("plain",))
    bot = SayingBot(GoalSelection(coins=2), GoalSelection(coins=2))
    report = GameReport(bot.name, "coins", how, how.run(bot, CoinGame(target_first=True)))
    assert "the adversary scores 6 more although it says nothing" in str(report)


def test_an_agent_that_does_not_repeat_itself_is_told() -> None:
    class Moody(SayingBot):
        def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
            super().reply(history)
            return GoalSelection(coins=len(self.seen) % 2) if history[-1].closes else "well"

    how = GameAttack(games=3, budget=0, adversaries=("plain",))
    bot = Moody("well")
    report = GameReport(bot.name, "coins", how, how.run(bot, CoinGame()))
    assert "ended differently when played again" in str(report)


def test_won_games_are_remembered_and_replayed(tired: GameReport, tmp_path: Path) -> None:
    path = tmp_path / "games.json"
    assert tired.remember(path) > 0
    content = path.read_bytes()
    assert tired.remember(path) == 0
    assert path.read_bytes() == content
    game = RefundGame()
    found = replay(RuleBot(patience=3), game, path)
    assert all(one.still_won and one.now == one.before == 10.0 for one in found)
    mended = RuleBot()
    mended.name = tired.agent
    assert not any(one.still_won for one in replay(mended, game, path))
    with pytest.raises(UserError, match="contains no game of the agent 'patience 0' in 'refund'"):
        replay(RuleBot(), game, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "it has no 'games_version'"),
        ('{"games_version": 2}', "this package reads 1"),
        ('{"games_version": 1, "games": 3}', "'games' must be a list of objects"),
        (
            '{"games_version": 1, "games": [{"game": "refund", "agent": "patience 0"}]}',
            "game 1 is damaged",
        ),
    ],
)
def test_a_damaged_file_is_one_message(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "games.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        replay(RuleBot(), RefundGame(), path)
