"""The negotiator's networks: a language model that knows its goal, and one that selects.

After Lewis et al. (2017): a recurrent language model of the whole dialogue is given the goal with
each word; what is selected is read from the dialogue in both directions, with attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.models.weights import check_shapes, read_weights, write_weights

PAD: Final = 0
UNKNOWN: Final = 1
ITEMS: Final = 3
#: The highest count and the highest value that a goal may hold.
MOST: Final = 10
#: Words that stand before those of the data.
RESERVED: Final = ("<pad>", "<unk>")
_FORM: Final = "dstfuzz negotiator"
_VERSION: Final = 1
_EMPTY: Final = -1e9


@dataclass(frozen=True)
class NegotiatorShape:
    """Widths of the layers."""

    embedding: int = 96
    hidden: int = 128
    goal: int = 64
    selecting: int = 48


class DialogueReading(NamedTuple):
    """What the language model makes of some words."""

    outputs: Tensor  #: ``[batch, words, hidden]``.
    state: Tensor  #: ``[1, batch, hidden]``, after the last word.


class NegotiatorNetwork(nn.Module):
    """Speaks and selects; ``words`` are all that it knows, `RESERVED` first.

    A goal is ``[batch, 6]``: counts of the three items, and the value of one of each.
    """

    def __init__(
        self, words: tuple[str, ...], shape: NegotiatorShape, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.shape = words, shape
        self.numbers = {word: number for number, word in enumerate(words)}
        self.embedding = nn.Embedding(len(words), shape.embedding, padding_idx=PAD)
        self.counts = nn.Embedding(MOST + 1, 16)
        self.values = nn.Embedding(MOST + 1, 16)
        self.goal = nn.Linear(ITEMS * 32, shape.goal)
        self.speaker = nn.GRU(shape.embedding + shape.goal, shape.hidden, batch_first=True)
        self.to_word = nn.Linear(shape.hidden, shape.embedding)
        self.word_bias = nn.Parameter(torch.zeros(len(words)))
        self.reader = nn.GRU(
            shape.embedding + shape.hidden, shape.selecting, batch_first=True, bidirectional=True
        )
        self.attention = nn.Sequential(
            nn.Linear(2 * shape.selecting + shape.goal, 64), nn.Tanh(), nn.Linear(64, 1)
        )
        self.selecting = nn.Sequential(
            nn.Linear(2 * shape.selecting + shape.goal, 128), nn.Tanh(), nn.Dropout(dropout)
        )
        self.amounts = nn.Linear(128, ITEMS * (MOST + 1))
        self.dropout = nn.Dropout(dropout)

    def encode_goal(self, goal: Tensor) -> Tensor:
        """Return ``[batch, shape.goal]``."""
        counts, values = self.counts(goal[:, :ITEMS]), self.values(goal[:, ITEMS:])
        return torch.tanh(self.goal(torch.cat([counts, values], -1).flatten(1)))

    def read(self, embedded: Tensor, goal: Tensor, state: Tensor | None = None) -> DialogueReading:
        """Read words, as vectors ``[batch, words, embedding]``, for an encoded goal."""
        steps = goal[:, None].expand(-1, embedded.shape[1], -1)
        outputs, state = self.speaker(torch.cat([self.dropout(embedded), steps], -1), state)
        return DialogueReading(outputs, state)

    def next_words(self, outputs: Tensor) -> Tensor:
        """Return logits of the words that follow, ``[..., vocabulary]``."""
        vectors = self.to_word(self.dropout(outputs))
        return torch.nn.functional.linear(vectors, self.embedding.weight, self.word_bias)

    def amounts_of(
        self, embedded: Tensor, outputs: Tensor, goal: Tensor, lengths: Tensor
    ) -> Tensor:
        """Return logits of how much of each item to take, ``[batch, items, MOST + 1]``."""
        read = torch.cat([self.dropout(embedded), self.dropout(outputs)], -1)
        packed = pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False)
        both, _ = pad_packed_sequence(
            self.reader(packed)[0], batch_first=True, total_length=read.shape[1]
        )
        steps = goal[:, None].expand(-1, both.shape[1], -1)
        weights = self.attention(torch.cat([both, steps], -1)).squeeze(-1)
        place = torch.arange(both.shape[1], device=both.device)
        weights = weights.masked_fill(place[None] >= lengths[:, None], _EMPTY).softmax(-1)
        seen = (weights[..., None] * both).sum(1)
        chosen: Tensor = self.amounts(self.selecting(torch.cat([seen, goal], -1)))
        return chosen.view(-1, ITEMS, MOST + 1)


def of_counts(amounts: Tensor, counts: Tensor) -> Tensor:
    """Return the logits of amounts with those that no item has so much of left out."""
    most = torch.arange(MOST + 1, device=amounts.device)
    return amounts.masked_fill(most[None, None] > counts[:, :, None], _EMPTY)


def save_network(path: Path, network: NegotiatorNetwork, about: Mapping[str, object]) -> None:
    """Write a network as one safetensors file, with its words and what is said about it."""
    tensors = {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}
    described = {
        "format": _FORM,
        "version": _VERSION,
        "shape": vars(network.shape),
        "words": list(network.words[len(RESERVED) :]),
        "about": dict(about),
    }
    write_weights(path, tensors, described)


def load_network(path: Path) -> NegotiatorNetwork:
    """Read a network that `save_network` wrote, ready to be used.

    Raises:
        UserError: there is none, or it is something else.
    """
    command = "python -m pytest_dstfuzz.games.negotiation supervised"
    file = read_weights("negotiator", path, _FORM, _VERSION, command)
    try:
        shape = NegotiatorShape(**file.described["shape"])
        words = (*RESERVED, *file.described["words"])
        network = NegotiatorNetwork(words, shape)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is no negotiator: it does not say its shape ({error})") from None
    check_shapes(file, {name: tuple(part.shape) for name, part in network.state_dict().items()})
    network.load_state_dict({name: torch.tensor(part) for name, part in file.tensors.items()})
    return network.eval()
