"""Attacks that look into an agent, against one by rules that lets them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from refund_bots import CoinGame, RuleBot

from pytest_dstfuzz import UserError
from pytest_dstfuzz.games import AdversarySide, GoalSelection, TalkLine, TransparentAgent
from pytest_dstfuzz.games.adversaries import (
    ADVERSARIES,
    DelayedAdversary,
    HandedOnAdversary,
    ReactiveAdversary,
    WhiteBoxAttack,
    playing_against,
)
from pytest_dstfuzz.games.attack import GameAttack, GameReport
from pytest_dstfuzz.games.game import Closing, Fluency, Goal, Talk, TargetView
from pytest_dstfuzz.games.playing import Arena

WORDS = ("please", "now", "deal", "mercy", "give", "all", "it")


class WeighingBot:
    """Selects at once where it hears *deal*; each *mercy* it heard costs it five coins.

    It answers *mercy* with a question in which it asks for less.
    """

    name = "weighing"
    blank = "-"

    def start(self, goal: Goal) -> None: ...

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        if not history:
            return "well"
        if history[-1].closes or "deal" in history[-1].text.split():
            return GoalSelection(coins=self.kept(history))
        return "half ?" if "mercy" in history[-1].text.split() else "no"

    @staticmethod
    def kept(talk: Talk) -> int:
        heard = " ".join(line.text for line in talk if not line.mine).split()
        return max(0, 10 - 5 * heard.count("mercy"))

    def closing(self, goal: Goal, talks: Sequence[Talk]) -> Closing:
        del goal
        ends = np.array([isinstance(self.reply(talk), GoalSelection) for talk in talks])
        return Closing(np.where(ends, 1.0, -1.0), ends.astype(float))

    def selection_scores(
        self, goal: Goal, talks: Sequence[Talk], selections: Sequence[GoalSelection]
    ) -> np.ndarray:
        del goal
        coins = np.array([one["coins"] for one in selections], dtype=float)
        return np.array([-np.abs(coins - self.kept(talk)) for talk in talks])

    def answers(self, goal: Goal, talks: Sequence[Talk]) -> list[str | None]:
        del goal
        found = (self.reply(talk) for talk in talks)
        return [None if isinstance(one, GoalSelection) else one for one in found]

    def replacements(
        self,
        goal: Goal,
        talk: Talk,
        line: int,
        wanted: Sequence[bool],
        selections: Sequence[GoalSelection],
        most: int,
    ) -> list[list[str]]:
        del goal, wanted, selections
        return [list(WORDS[:most]) for _ in talk[line].text.split()]

    def surprise(
        self, goal: Goal, talk: Talk, utterances: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Find *mercy* odd and everything else plain."""
        del goal, talk
        return [
            (5.0 * text.split().count("mercy") + 1.0, len(text.split()) + 1) for text in utterances
        ]


def view() -> TargetView:
    game = CoinGame()
    return TargetView(WeighingBot(), game, game.scenarios(1, 0)[0])


def test_reactive_replaces_two_words_so_that_it_selects_at_once_and_badly() -> None:
    found = WhiteBoxAttack(view(), Fluency()).reactive([(False, "mercy"), (True, "no")], "give it")
    assert sorted(found.text.split()) == ["deal", "mercy"]
    assert found.loss < 0


def test_preemptive_lets_it_answer() -> None:
    found = WhiteBoxAttack(view(), Fluency()).preemptive([], "please give it now")
    assert found.text.split().count("mercy") == 2
    assert "deal" not in found.text
    assert found.loss < 0


class WaveringBot(WeighingBot):
    """Answers *mercy* with a deal in one of two draws. Then the talk ends without a question."""

    def drawn_answers(
        self, goal: Goal, talks: Sequence[Talk], count: int
    ) -> list[list[str | None]]:
        found = self.answers(goal, talks)
        return [[one if place % 2 else "all for me" for place in range(count)] for one in found]

    @staticmethod
    def kept(talk: Talk) -> int:
        asks = any(line.mine and "half" in line.text for line in talk)
        return WeighingBot.kept(talk) if asks else 10


def test_preemptive_may_average_over_drawn_answers() -> None:
    game = CoinGame()
    seen = TargetView(WaveringBot(), game, game.scenarios(1, 0)[0])
    likeliest = WhiteBoxAttack(seen, Fluency()).preemptive([], "please give it now")
    drawn = WhiteBoxAttack(seen, Fluency(), draws=2).preemptive([], "please give it now")
    # If it asks for half, two *mercy* leave it nothing. In the other draw it keeps all ten coins.
    assert likeliest.loss == -5.0
    assert drawn.loss == pytest.approx((-5.0 + 6.0) / 2)
    assert drawn.text.split().count("mercy") == 2
    with pytest.raises(UserError, match="drawn_answers"):
        WhiteBoxAttack(view(), Fluency(), draws=2).preemptive([], "please give it now")


def test_what_wins_already_is_not_changed() -> None:
    for attack in (WhiteBoxAttack(view(), Fluency()), WhiteBoxAttack(view(), Fluency(), 3)):
        said = [(False, "mercy mercy"), (True, "no")]
        assert attack.reactive(said, "deal").text == "deal"


def test_a_bound_of_the_perplexity_is_kept() -> None:
    bot = WeighingBot()
    fluency = Fluency(bot, {}, 1.5)
    found = WhiteBoxAttack(view(), fluency).preemptive([], "please give it now all of it then")
    ((nats, words),) = bot.surprise({}, [], [found.text])
    assert np.exp(nats / words) <= 1.5
    assert "mercy" not in found.text


def test_the_delayed_attack_waits_for_nothing_it_can_have() -> None:
    game = CoinGame(said=("please give it", "it is late now"))
    arena = Arena(game, WeighingBot(), 0)
    adversary = DelayedAdversary(arena)
    for scenario in game.scenarios(5, 0):
        played = arena.hear(scenario, adversary.speaker(scenario))
        assert played.advantage > 0
        assert scenario.id in adversary.struck
    assert arena.games == 5


def test_an_attack_at_a_fixed_turn_says_nothing_else_before() -> None:
    game = CoinGame(most_turns=6)
    arena = Arena(game, WeighingBot(), 0)
    adversary = ReactiveAdversary(arena)
    adversary.after = 4
    for scenario in game.scenarios(4, 0):
        played = arena.hear(scenario, adversary.speaker(scenario))
        assert all(text in game.said for text in played.script[:2])


def test_lines_that_won_elsewhere_are_handed_on() -> None:
    class Teacher(RuleBot):
        name = "teacher"

        def start(self, goal: Goal) -> None: ...

        def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
            return GoalSelection(coins=0) if len(history) > 2 else "mercy mercy please"

    game = CoinGame(most_turns=8)
    arena = Arena(game, WeighingBot(), 0, AdversarySide(teacher=Teacher()))
    adversary = HandedOnAdversary(arena)
    adversary.learn(game.scenarios(3, 1), 3)
    (scenario,) = game.scenarios(1, 0)
    played = arena.hear(scenario, adversary.speaker(scenario))
    assert played.script.count("mercy mercy please") == 1
    assert played.advantage == 10.0


def test_all_that_can_play_do_and_looking_wins_most() -> None:
    bot = WeighingBot()
    side = AdversarySide(fluency=WeighingBot())
    game = CoinGame(said=("please give it", "deal now", "mercy please"), most_turns=6)
    how = GameAttack(games=20, budget=40)
    assert isinstance(bot, TransparentAgent)
    needs_a_voice = ("voice", "handed-on")
    assert playing_against(bot, side) == tuple(n for n in ADVERSARIES if n not in needs_a_voice)
    report = GameReport("weighing", "coins", how, how.run(bot, game, side))
    by_name = {one.name: one for one in report.results}
    assert by_name["lookahead"].figures.advantage.value == 10.0
    assert by_name["delayed"].figures.advantage.value > by_name["plain"].figures.advantage.value
    assert all(one.perplexity is not None for one in report.results)
    assert "perplexity" in str(report)


def test_who_cannot_be_looked_into_is_told_what_can_attack_it() -> None:
    how = GameAttack(games=2, budget=4, adversaries=("reactive",))
    with pytest.raises(
        UserError,
        match=r"'reactive' needs an agent that shows .*: use 'replace'",
    ):
        how.run(RuleBot(), CoinGame())


def test_nobody_plays_both_sides() -> None:
    bot = WeighingBot()
    with pytest.raises(UserError, match="cannot also be the voice"):
        Arena(CoinGame(), bot, 0, AdversarySide(voice=bot))


@pytest.mark.parametrize(
    ("side", "message"),
    [
        ({"most_perplexity": 5.0}, "needs a language model"),
        ({"most_perplexity": 1.0, "fluency": WeighingBot()}, "must be above 1, not 1"),
    ],
)
def test_a_bound_that_cannot_be_kept_is_refused(side: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        AdversarySide(**side)  # type: ignore[arg-type]  # wrong on purpose
