"""The negotiator as an agent with a goal, and talks between two negotiators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from pytest_dstfuzz.games.deal import ITEMS, DealGame
from pytest_dstfuzz.games.game import (
    Closing,
    GameScores,
    Goal,
    GoalSelection,
    Scenario,
    Talk,
    TalkLine,
)
from pytest_dstfuzz.games.negotiation.corpus import SELECT, YOU
from pytest_dstfuzz.games.negotiation.network import (
    MOST_WORDS,
    PAD,
    RESERVED,
    NegotiatorNetwork,
    TalkReader,
    list_forbidden,
    load_network,
    words_of,
)
from pytest_dstfuzz.seeding import derive


class NegotiatorAgent:
    """A trained negotiator for `DealGame`, which speaks and selects by its network.

    The agent draws its words at a temperature, 0.5 as in the published code. The draws depend only
    on the seed, the goal and the talk so far, so games can be repeated.
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
        self.blank = RESERVED[PAD]

    @classmethod
    def load(cls, path: Path | str, *, seed: int = 0) -> NegotiatorAgent:
        """Load a trained negotiator. Its name is the name of the file's folder."""
        return cls(load_network(Path(path)), seed=seed, name=Path(path).parent.name)

    def start(self, goal: Goal) -> None:
        """Start a game: store the counts and values of the items."""
        self._reader = TalkReader(self.network, goal)

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        """Return an utterance, or a selection if the talk is closed or the agent ends it."""
        words = words_of(history)
        if history and history[-1].closes:
            return self._selection(words)
        said = self._drawn(words)
        return self._selection([*words, YOU, SELECT]) if said is None else " ".join(said)

    def closing(self, goal: Goal, talks: Sequence[Talk]) -> Closing:
        """Return whether the agent would select at once after each talk."""
        with torch.inference_mode():
            reader = TalkReader(self.network, goal)
            logits = reader.first_words(talks)
            chance = (logits / self._temperature).softmax(-1)[:, reader.select]
            own = logits[:, reader.select].clone()
            logits[:, reader.select] = -torch.inf
            return Closing((own - logits.max(-1).values).numpy(), chance.numpy())

    def selection_scores(
        self, goal: Goal, talks: Sequence[Talk], selections: Sequence[GoalSelection]
    ) -> np.ndarray:
        """Return the log probability of each selection after each talk: ``[talks, selections]``."""
        with torch.inference_mode():
            found: np.ndarray = (
                TalkReader(self.network, goal).selection_scores(talks, selections).numpy()
            )
        return found

    def answers(self, goal: Goal, talks: Sequence[Talk]) -> list[str | None]:
        """Return the agent's most likely next line after each talk. ``None`` ends a talk."""
        with torch.inference_mode():
            return TalkReader(self.network, goal).answers(talks)

    def drawn_answers(
        self, goal: Goal, talks: Sequence[Talk], count: int
    ) -> list[list[str | None]]:
        """Draw ``count`` next lines after each talk, as `reply` draws them.

        The draws depend only on the seed, the goal and the talk.
        """
        reader = TalkReader(self.network, goal)
        points = []
        for talk in talks:
            seed = derive(
                self._seed, "negotiator", "answers", *reader.goal[0].tolist(), *words_of(talk)
            )
            draws = torch.Generator().manual_seed(seed % 2**63)
            points.append(torch.rand(count, MOST_WORDS, generator=draws))
        with torch.inference_mode():
            return reader.drawn_answers(talks, torch.stack(points), self._temperature)

    def replacements(
        self,
        goal: Goal,
        talk: Talk,
        line: int,
        wanted: Sequence[bool],
        selections: Sequence[GoalSelection],
        most: int,
    ) -> list[list[str]]:
        """Return for each place of a line the words that help an attack most, by the gradient."""
        gains = TalkReader(self.network, goal).replacements(talk, line, wanted, selections)
        known = min(most, gains.shape[1] - len(RESERVED) - 4)
        best = gains.topk(known, dim=-1).indices.tolist()
        return [[self.network.words[number] for number in row] for row in best]

    def surprise(
        self, goal: Goal, talk: Talk, utterances: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Return the surprise in nats and the number of words of each possible next utterance."""
        with torch.inference_mode():
            return TalkReader(self.network, goal).surprise(talk, utterances)

    def _drawn(self, words: Sequence[str]) -> list[str] | None:
        """Draw an utterance of at least one word. Return ``None`` if the agent selects instead."""
        reader, network = self._reader, self.network
        draws = torch.Generator().manual_seed(
            derive(self._seed, "negotiator", *reader.goal[0].tolist(), *words) % 2**63
        )
        said: list[str] = []
        with torch.inference_mode():
            goal = network.encode_goal(reader.goal)
            state = reader.read([[*reader.numbers_of(words), reader.you]]).state
            while len(said) < MOST_WORDS:
                logits = network.next_words(state[0, 0]) / self._temperature
                logits[list_forbidden(network, first=not said)] = -torch.inf
                number = int(torch.multinomial(logits.softmax(-1), 1, generator=draws))
                if number == reader.select:
                    return None
                if number == reader.end:
                    break
                said.append(network.words[number])
                step = network.embedding(torch.tensor([[number]]))
                state = network.read(step, goal, state).state
        return said

    def _selection(self, words: Sequence[str]) -> GoalSelection:
        """Return the most likely amounts among the possible ones."""
        reader = self._reader
        with torch.inference_mode():
            read = reader.read([reader.numbers_of(words)])
            best = reader.amounts(self.network.embedding(read.numbers), read).argmax(-1)[0].tolist()
        return GoalSelection(dict(zip(ITEMS, best, strict=True)))


def negotiate(
    scenario: Scenario, target: NegotiatorAgent, other: NegotiatorAgent
) -> tuple[GameScores, bool]:
    """Let two negotiators talk. Then let each make a selection separately.

    Returns:
        The scores, and whether the selections add up to the counts. If they do not, both scores
        are 0.
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
