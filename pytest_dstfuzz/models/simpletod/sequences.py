"""A whole dialogue as one sequence: its context once, and a belief branching off at each turn.

In SimpleTOD every turn is a text of its own, and the texts of a dialogue repeat all that was
said before. Here what was said stands once; the belief of a turn sees what was said up to
that turn and itself, and nothing sees a belief but itself. Positions are those that the
texts would have, so a model learns exactly what it would learn from them, several times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from pytest_dstfuzz.models.neural import TensorBatch, by_length, pad
from pytest_dstfuzz.models.simpletod.augment import Spoken
from pytest_dstfuzz.models.simpletod.texts import (
    OPENING,
    SYSTEM,
    TURNOVER,
    USER,
    belief_words,
)

#: No loss is taken where the next token has this number.
IGNORED = -100


@dataclass(frozen=True)
class TreeSequence:
    """One dialogue; all arrays ``[T]``, int64."""

    tokens: np.ndarray  #: The context, then the belief of each turn.
    positions: np.ndarray  #: As in a text of that turn alone.
    branches: np.ndarray  #: 0 in the context, 1 + number of the turn in a belief.
    reach: np.ndarray  #: Number of tokens of the context that each token sees.
    targets: np.ndarray  #: The next token, or `IGNORED`.


class Encoder:
    """Makes sequences of dialogues; a turn whose text has more ``positions`` is left out."""

    def __init__(self, tokeniser: PreTrainedTokenizerBase, positions: int) -> None:
        self._tokeniser = tokeniser
        self._positions = positions
        self._known: dict[str, list[int]] = {}

    def encode(self, dialogue: Spoken) -> TreeSequence:
        """Return the sequence of a labelled dialogue."""
        context = self._tokens(OPENING)
        beliefs: list[tuple[int, list[int]]] = []
        for system, user, state in dialogue.turns:
            if system:
                context += self._tokens((SYSTEM, *system))
            context += self._tokens((USER, *user))
            texts = {slot: " ".join(words) for slot, words in state.items()}
            belief = self._tokens((*TURNOVER, *belief_words(texts)))
            if len(context) + len(belief) <= self._positions:
                beliefs.append((len(context), belief))
        return _sequence(context[: self._positions], beliefs, len(TURNOVER))

    def _tokens(self, words: Sequence[str]) -> list[int]:
        """Return tokens word by word, which is quicker than text by text and comes to the same."""
        result: list[int] = []
        for word in words:
            known = self._known.get(word)
            if known is None:
                known = self._tokeniser.encode(f" {word}", add_special_tokens=False)
                self._known[word] = known
            result += known
        return result


def _sequence(
    context: list[int], beliefs: Sequence[tuple[int, list[int]]], given: int
) -> TreeSequence:
    """Lay out one context and the beliefs that branch off after so many of its tokens."""
    size = len(context)
    tokens, targets = list(context), [*context[1:], IGNORED]
    positions, reach = list(range(size)), list(range(1, size + 1))
    branches = [0] * size
    for number, (start, belief) in enumerate(beliefs, start=1):
        tokens += belief
        # What stands before the first slot is given, not predicted.
        targets += [IGNORED] * (given - 1) + belief[given:] + [IGNORED]
        positions += range(start, start + len(belief))
        reach += [start] * len(belief)
        branches += [number] * len(belief)
    return TreeSequence(*(np.array(row) for row in (tokens, positions, branches, reach, targets)))


@dataclass(frozen=True)
class SequenceBatch(TensorBatch):
    """Sequences padded on the right.

    ``tokens``, ``positions``, ``targets``, ``branches`` ``[B, T]``; ``mask [B, 1, T, T]``, whether
    the token of a row sees that of a column.
    """

    tokens: Tensor
    positions: Tensor
    targets: Tensor
    branches: Tensor
    mask: Tensor


def collate(sequences: Sequence[TreeSequence]) -> SequenceBatch:
    """Make one batch of sequences."""

    def padded(name: str, fill: int) -> Tensor:
        return torch.from_numpy(pad([getattr(item, name) for item in sequences], fill))

    branches, reach = padded("branches", -1), padded("reach", 1)
    places = torch.arange(branches.shape[1])
    earlier = places[None, :, None] >= places[None, None, :]
    in_context = (branches == 0)[:, None, :] & (places[None, None, :] < reach[:, :, None])
    in_belief = (branches[:, :, None] == branches[:, None, :]) & earlier
    return SequenceBatch(
        tokens=padded("tokens", 0),
        positions=padded("positions", 0),
        targets=padded("targets", IGNORED),
        branches=branches,
        mask=(in_context | (in_belief & (branches != 0)[:, None, :]))[:, None],
    )


def batches(
    sequences: Sequence[TreeSequence], tokens: int, rng: np.random.Generator | None
) -> list[list[int]]:
    """Group sequences of similar length, so that no batch has more than ``tokens`` with padding.

    A longer one is a batch of its own. With an ``rng`` those of about equal length and the batches
    are shuffled, otherwise sorted.
    """
    lengths = [len(sequence.tokens) for sequence in sequences]
    result: list[list[int]] = [[]]
    longest = 0
    for number in by_length(lengths, rng).tolist():
        longest = max(longest, lengths[number])
        if result[-1] and longest * (len(result[-1]) + 1) > tokens:
            result.append([])
            longest = lengths[number]
        result[-1].append(number)
    if rng is not None:
        order = rng.permutation(len(result))
        result = [result[place] for place in order]
    return result
