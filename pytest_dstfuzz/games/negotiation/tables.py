"""Plays many negotiations in one batch.

A table is one talk between two networks. Each step adds one word at each table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pytest_dstfuzz.games.deal import ITEMS, DealGame
from pytest_dstfuzz.games.game import Goal, Scenario
from pytest_dstfuzz.games.negotiation.corpus import END, SELECT, THEM, YOU
from pytest_dstfuzz.games.negotiation.network import (
    MOST_WORDS,
    PAD,
    NegotiatorNetwork,
    goal_numbers,
    list_forbidden,
    of_counts,
)


@dataclass(frozen=True)
class TableTalk:
    """The talks at all tables, seen from one side, and their results."""

    goals: Tensor  #: ``[tables, 6]``: counts and values of this side.
    words: Tensor  #: ``[tables, words]``: padded word numbers.
    lengths: Tensor  #: ``[tables]``: the numbers of words.
    said: Tensor  #: ``[tables, words]``: whether this side drew the word.
    #: ``[tables]``: scores of this side and of the other, 0 without an agreement.
    own: Tensor
    other: Tensor
    agreed: Tensor


class TableSide:
    """One side of all tables, with the state of its network."""

    def __init__(self, network: NegotiatorNetwork, goals: Sequence[Goal]) -> None:
        self.network = network.eval()
        known = network.numbers
        self.goals = torch.tensor([goal_numbers(goal) for goal in goals])
        self._goal = network.encode_goal(self.goals)
        self._state = torch.zeros(1, len(goals), network.shape.hidden)
        self.end, self.select = known[END], known[SELECT]
        self.you, self.them = known[YOU], known[THEM]
        #: For each table: pairs of a word number, and whether this side drew the word.
        self.heard: list[list[tuple[int, bool]]] = [[] for _ in goals]

    def take(self, words: Tensor, rows: Tensor, *, drawn: bool = False) -> None:
        """Let the network read one word at each table. ``rows`` has the numbers of the tables."""
        embedded = self.network.embedding(words[:, None])
        reading = self.network.read(embedded, self._goal[rows], self._state[:, rows])
        self._state[:, rows] = reading.state
        for table, word in zip(rows.tolist(), words.tolist(), strict=True):
            self.heard[table].append((word, drawn))

    def draw(
        self, rows: Tensor, *, first: bool, temperature: float, generator: torch.Generator
    ) -> Tensor:
        """Draw the next word at some tables.

        Only the first word of an utterance may end the talk.
        """
        logits = self.network.next_words(self._state[0, rows]) / temperature
        logits[:, list_forbidden(self.network, first=first)] = -torch.inf
        drawn: Tensor = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        return drawn

    def sequences(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the words of each table, their number, and a mask of this side's words."""
        lengths = torch.tensor([len(row) for row in self.heard])
        words = torch.full((len(self.heard), int(lengths.max())), PAD)
        drawn = torch.zeros(words.shape, dtype=torch.bool)
        for table, row in enumerate(self.heard):
            words[table, : len(row)] = torch.tensor([word for word, _ in row])
            drawn[table, : len(row)] = torch.tensor([by_me for _, by_me in row])
        return words, lengths, drawn

    def selections(self) -> Tensor:
        """Return the most likely amounts of each item at each table, ``[tables, items]``."""
        network = self.network
        words, lengths, _ = self.sequences()
        embedded = network.embedding(words)
        outputs = network.read(embedded, self._goal).outputs
        amounts = network.amounts_of(embedded, outputs, self._goal, lengths)
        best: Tensor = of_counts(amounts, self.goals[:, : len(ITEMS)]).argmax(-1)
        return best


def talk(
    scenarios: Sequence[Scenario],
    side: NegotiatorNetwork,
    other: NegotiatorNetwork,
    generator: torch.Generator,
    *,
    temperature: float = 0.5,
    complement: int | None = None,
) -> TableTalk:
    """Let two networks negotiate in several scenarios. Return the first network's view.

    ``side`` has the adversary's goal, ``other`` the target's. Both must have equal vocabularies. At
    the end, each side selects separately. If the amounts do not add up, both score 0.
    ``complement`` (0 or 1) is the number of a side that makes no selection and gets the remaining
    items.
    """
    if side.words != other.words:
        raise ValueError("the two negotiators have different vocabularies")
    sides = (
        TableSide(side, [one.adversary for one in scenarios]),
        TableSide(other, [one.target for one in scenarios]),
    )
    target_first = torch.tensor([one.target_first for one in scenarios])
    playing = torch.ones(len(scenarios), dtype=torch.bool)
    with torch.no_grad():
        for line in range(DealGame.most_turns):
            for speaker in (0, 1):
                begins = ~target_first if speaker == 0 else target_first
                rows = (playing & (begins if line % 2 == 0 else ~begins)).nonzero()[:, 0]
                if len(rows):
                    pair = sides[speaker], sides[1 - speaker]
                    playing[_utterance(*pair, rows, temperature, generator)] = False
        # If no side has ended the talk, tell both that it is over.
        rows = playing.nonzero()[:, 0]
        if len(rows):
            for one in sides:
                one.take(torch.full((len(rows),), one.them), rows)
                one.take(torch.full((len(rows),), one.select), rows)
        chosen = [one.selections() for one in sides]
    counts = sides[0].goals[:, : len(ITEMS)]
    if complement is not None:
        chosen[complement] = counts - chosen[1 - complement]
    agreed = (chosen[0] + chosen[1] == counts).all(-1)
    scores = [
        (amounts * one.goals[:, len(ITEMS) :]).sum(-1) * agreed
        for amounts, one in zip(chosen, sides, strict=True)
    ]
    words, lengths, said = sides[0].sequences()
    return TableTalk(
        sides[0].goals, words, lengths, said, scores[0].float(), scores[1].float(), agreed
    )


def _utterance(
    speaker: TableSide,
    hearer: TableSide,
    rows: Tensor,
    temperature: float,
    generator: torch.Generator,
) -> Tensor:
    """Let one side speak at some tables. Return the tables where it ended the talk."""
    speaker.take(torch.full((len(rows),), speaker.you), rows)
    hearer.take(torch.full((len(rows),), hearer.them), rows)
    ended = [rows[:0]]
    for place in range(MOST_WORDS + 1):
        words = speaker.draw(rows, first=place == 0, temperature=temperature, generator=generator)
        if place == MOST_WORDS:
            words = torch.full((len(rows),), speaker.end)
        # The forced end after too many words was not drawn.
        speaker.take(words, rows, drawn=place < MOST_WORDS)
        hearer.take(words, rows)
        ended.append(rows[words == speaker.select])
        rows = rows[(words != speaker.end) & (words != speaker.select)]
        if not len(rows):
            break
    return torch.cat(ended)
