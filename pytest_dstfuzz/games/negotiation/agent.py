"""The negotiator as an agent with a goal, and two of them at one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from pytest_dstfuzz.games.deal import ITEMS, DealGame
from pytest_dstfuzz.games.game import GameScores, Goal, GoalSelection, Scenario, TalkLine
from pytest_dstfuzz.games.negotiation.corpus import END, SELECT, THEM, YOU
from pytest_dstfuzz.games.negotiation.network import (
    RESERVED,
    UNKNOWN,
    NegotiatorNetwork,
    load_network,
    of_counts,
)
from pytest_dstfuzz.seeding import derive

#: Words of an utterance at most.
_MOST_WORDS: Final = 20


class NegotiatorAgent:
    """A trained negotiator in `DealGame`: it says and selects what its networks make of a talk.

    Words are drawn at a temperature, 0.5 as in the source. The draws hang on the seed, the goal and
    what was said, so that a game that is played again goes as it went.
    """

    def __init__(
        self,
        network: NegotiatorNetwork,
        *,
        seed: int = 0,
        temperature: float = 0.5,
        name: str = "negotiator",
    ) -> None:
        self.network, self.name = network.eval(), name
        self._seed, self._temperature = seed, temperature
        known = network.numbers
        self._never = [known[word] for word in (*RESERVED, YOU, THEM) if word in known]
        self._end, self._select = known[END], known[SELECT]

    @classmethod
    def load(cls, path: Path | str, *, seed: int = 0) -> NegotiatorAgent:
        """Read a negotiator that was trained; its name is that of its folder."""
        return cls(load_network(Path(path)), seed=seed, name=Path(path).parent.name)

    def start(self, goal: Goal) -> None:
        """Take counts and values of the items."""
        pairs = [goal[item] for item in ITEMS]
        self._counts = tuple(int(count) for count, _ in pairs)
        self._goal = (*self._counts, *(int(value) for _, value in pairs))

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        """Say something, or select: where the talk is closed, or where its next word is to."""
        words: list[str] = []
        for line in history:
            text = [SELECT] if line.closes else [*line.text.lower().split(), END]
            words += [YOU if line.mine else THEM, *text]
        if history and history[-1].closes:
            return self._selection(words)
        said = self._drawn(words)
        return self._selection([*words, YOU, SELECT]) if said is None else " ".join(said)

    def _numbers(self, words: Sequence[str]) -> torch.Tensor:
        known = self.network.numbers
        return torch.tensor([[known.get(word, UNKNOWN) for word in words]])

    def _drawn(self, words: Sequence[str]) -> list[str] | None:
        """Draw an utterance of one word at least; ``None`` where it is to select."""
        network = self.network
        draws = torch.Generator().manual_seed(
            derive(self._seed, "negotiator", *self._goal, *words) % 2**63
        )
        said: list[str] = []
        with torch.inference_mode():
            goal = network.encode_goal(torch.tensor([self._goal]))
            reading = network.read(network.embedding(self._numbers([*words, YOU])), goal)
            while len(said) < _MOST_WORDS:
                logits = network.next_words(reading.outputs[0, -1]) / self._temperature
                logits[self._never] = -torch.inf
                logits[self._end if not said else self._select] = -torch.inf
                number = int(torch.multinomial(logits.softmax(-1), 1, generator=draws))
                if number == self._select:
                    return None
                if number == self._end:
                    break
                said.append(network.words[number])
                step = network.embedding(torch.tensor([[number]]))
                reading = network.read(step, goal, reading.state)
        return said

    def _selection(self, words: Sequence[str]) -> GoalSelection:
        """Return the most likely amounts that there are."""
        network = self.network
        with torch.inference_mode():
            numbers = torch.tensor([self._goal])
            goal = network.encode_goal(numbers)
            embedded = network.embedding(self._numbers(words))
            outputs = network.read(embedded, goal).outputs
            amounts = network.amounts_of(embedded, outputs, goal, torch.tensor([len(words)]))
            best = of_counts(amounts, numbers[:, : len(ITEMS)]).argmax(-1)[0].tolist()
        return GoalSelection(dict(zip(ITEMS, best, strict=True)))


def negotiate(
    scenario: Scenario, target: NegotiatorAgent, other: NegotiatorAgent
) -> tuple[GameScores, bool]:
    """Let two negotiators talk and select, each for itself.

    Returns:
        the scores, the other's first, and whether what both take is what there is; where it is
        not, neither has anything.
    """
    game = DealGame()
    target.start(scenario.target)
    other.start(scenario.adversary)
    said: list[tuple[bool, str]] = []
    found: dict[bool, GoalSelection] = {}
    speaks = scenario.target_first

    def seen(by_target: bool) -> list[TalkLine]:
        return [TalkLine(who == by_target, text) for who, text in said]

    while len(said) < game.most_turns and not found:
        answer = (target if speaks else other).reply(seen(speaks))
        if isinstance(answer, GoalSelection):
            found[speaks] = answer
        else:
            said.append((speaks, answer))
        speaks = not speaks
    closing = TalkLine(mine=False, text="", closes=True)
    for who in (True, False):
        if who not in found:
            answer = (target if who else other).reply([*seen(who), closing])
            if isinstance(answer, GoalSelection):
                found[who] = answer
    agreed = all(
        found[True][item] + found[False][item] == scenario.target[item][0] for item in ITEMS
    )
    return (game.scores(scenario, found[True]) if agreed else GameScores(0.0, 0.0)), agreed
