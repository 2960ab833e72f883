"""The network of the negotiating agent, and the reader that runs it on talks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.games.deal import ITEMS
from pytest_dstfuzz.games.game import Goal, GoalSelection, Talk
from pytest_dstfuzz.games.negotiation.corpus import END, SELECT, THEM, YOU
from pytest_dstfuzz.models.weights import check_shapes, read_weights, write_weights

PAD: Final = 0
UNKNOWN: Final = 1
ITEM_KINDS: Final = 3
#: Maximum count and maximum value in a goal.
MOST: Final = 10
#: Words before those of the data.
RESERVED: Final = ("<pad>", "<unk>")
_FORM: Final = "dstfuzz negotiator"
_VERSION: Final = 1
_EMPTY: Final = -1e9


@dataclass(frozen=True)
class NegotiatorShape:
    """The sizes of the network's layers."""

    embedding: int = 96
    hidden: int = 128
    goal: int = 64
    selecting: int = 48


class DialogueReading(NamedTuple):
    """The output of the language model for a sequence of words."""

    outputs: Tensor  #: ``[batch, words, hidden]``.
    state: Tensor  #: ``[1, batch, hidden]``: the state after the last word.


class NegotiatorNetwork(nn.Module):
    """The network that speaks and selects. Its vocabulary ``words`` begins with `RESERVED`.

    A goal is ``[batch, 6]``: the counts of the three items, then the value of one of each.
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
        self.goal = nn.Linear(ITEM_KINDS * 32, shape.goal)
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
        self.amounts = nn.Linear(128, ITEM_KINDS * (MOST + 1))
        self.dropout = nn.Dropout(dropout)

    def encode_goal(self, goal: Tensor) -> Tensor:
        """Return the encoded goal, ``[batch, shape.goal]``."""
        counts, values = self.counts(goal[:, :ITEM_KINDS]), self.values(goal[:, ITEM_KINDS:])
        return torch.tanh(self.goal(torch.cat([counts, values], -1).flatten(1)))

    def read(self, embedded: Tensor, goal: Tensor, state: Tensor | None = None) -> DialogueReading:
        """Run the language model on embedded words, ``[batch, words, embedding]``, for a goal."""
        steps = goal[:, None].expand(-1, embedded.shape[1], -1)
        outputs, state = self.speaker(torch.cat([self.dropout(embedded), steps], -1), state)
        return DialogueReading(outputs, state)

    def next_words(self, outputs: Tensor) -> Tensor:
        """Return the logits of the next word after each position, ``[..., vocabulary]``."""
        vectors = self.to_word(self.dropout(outputs))
        return torch.nn.functional.linear(vectors, self.embedding.weight, self.word_bias)

    def amounts_of(
        self, embedded: Tensor, outputs: Tensor, goal: Tensor, lengths: Tensor
    ) -> Tensor:
        """Return the logits of the amount of each item, ``[batch, items, MOST + 1]``."""
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
        return chosen.view(-1, ITEM_KINDS, MOST + 1)


def of_counts(amounts: Tensor, counts: Tensor) -> Tensor:
    """Mask the logits of amounts that exceed the counts of the items."""
    most = torch.arange(MOST + 1, device=amounts.device)
    return amounts.masked_fill(most[None, None] > counts[:, :, None], _EMPTY)


def save_network(path: Path, network: NegotiatorNetwork, about: Mapping[str, object]) -> None:
    """Write a network to a safetensors file, with its vocabulary and the facts in ``about``."""
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
    """Load a network that `save_network` wrote, in evaluation mode.

    Raises:
        UserError: the file does not exist, or is not a negotiator.
    """
    command = "python -m pytest_dstfuzz.games.negotiation supervised"
    file = read_weights("negotiator", path, _FORM, _VERSION, command)
    try:
        shape = NegotiatorShape(**file.described["shape"])
        words = (*RESERVED, *file.described["words"])
        network = NegotiatorNetwork(words, shape)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a negotiator: the sizes of its layers are missing ({error})"
        ) from None
    check_shapes(file, {name: tuple(part.shape) for name, part in network.state_dict().items()})
    network.load_state_dict({name: torch.tensor(part) for name, part in file.tensors.items()})
    return network.eval()


#: Maximum number of words in an utterance.
MOST_WORDS: Final = 20
_UNKNOWN_WORDS: Final = 10_000


def goal_numbers(goal: Goal) -> tuple[int, ...]:
    """Return the counts of the items, followed by their values."""
    pairs = [goal[item] for item in ITEMS]
    return (*(int(count) for count, _ in pairs), *(int(value) for _, value in pairs))


def words_of(talk: Talk) -> list[str]:
    """Return a talk, seen from one side, as the words of the training data."""
    words: list[str] = []
    for line in talk:
        text = [SELECT] if line.closes else [*line.text.lower().split(), END]
        words += [YOU if line.mine else THEM, *text]
    return words


def never_said(network: NegotiatorNetwork) -> list[int]:
    """Return the indices of words that never occur in an utterance."""
    known = network.numbers
    return [known[word] for word in (*RESERVED, YOU, THEM) if word in known]


def list_forbidden(network: NegotiatorNetwork, *, first: bool) -> list[int]:
    """Return the indices of words that cannot come next in an utterance.

    An utterance is not empty, and only its first word can end the talk.
    """
    return [*never_said(network), network.numbers[END if first else SELECT]]


@dataclass(frozen=True)
class ReadTalks:
    """Talks that the language model has processed."""

    numbers: Tensor  #: ``[talks, words]``: padded word numbers.
    lengths: Tensor  #: ``[talks]``.
    outputs: Tensor  #: ``[talks, words, hidden]``.
    state: Tensor  #: ``[1, talks, hidden]``: the state after the last word of each.


class TalkReader:
    """Runs the language model of a network on talks, for one goal."""

    def __init__(self, network: NegotiatorNetwork, goal: Goal) -> None:
        self.network = network
        self.goal = torch.tensor([goal_numbers(goal)])
        known = network.numbers
        self.end, self.select, self.you = known[END], known[SELECT], known[YOU]
        self.never = never_said(network)

    def numbers_of(self, words: Sequence[str]) -> list[int]:
        """Return the indices of words in the vocabulary."""
        known = self.network.numbers
        return [known.get(word, UNKNOWN) for word in words]

    def read(self, rows: Sequence[Sequence[int]]) -> ReadTalks:
        """Run the language model on rows of words. Process a common beginning only once."""
        network = self.network
        # Leave at least one word for each row, also if one row is a prefix of the others.
        shared = _common(rows)[: min(len(row) for row in rows) - 1]
        lengths = torch.tensor([len(row) for row in rows])
        numbers = torch.full((len(rows), int(lengths.max())), PAD)
        for place, row in enumerate(rows):
            numbers[place, : len(row)] = torch.tensor(row)
        goal = network.encode_goal(self.goal)
        parts, state = [], None
        if shared:
            first = network.read(network.embedding(torch.tensor([shared])), goal)
            parts.append(first.outputs.expand(len(rows), -1, -1))
            state = first.state.expand(-1, len(rows), -1).contiguous()
        rest = network.embedding(numbers[:, len(shared) :])
        parts.append(network.read(rest, goal.expand(len(rows), -1), state).outputs)
        outputs = torch.cat(parts, 1)
        last = outputs[torch.arange(len(rows)), lengths - 1]
        return ReadTalks(numbers, lengths, outputs, last[None])

    def first_words(self, talks: Sequence[Talk]) -> Tensor:
        """Return the logits of the next utterance's first word after each talk.

        `select` ends a talk.
        """
        rows = [[*self.numbers_of(words_of(talk)), self.you] for talk in talks]
        logits = self.network.next_words(self.read(rows).state[0])
        logits[:, list_forbidden(self.network, first=True)] = -torch.inf
        return logits

    def selection_scores(
        self, talks: Sequence[Talk], selections: Sequence[GoalSelection]
    ) -> Tensor:
        """Return the log probability of each selection after each talk: ``[talks, selections]``."""
        rows = []
        for talk in talks:
            ended = bool(talk) and talk[-1].closes
            rows.append(
                self.numbers_of(words_of(talk)) + ([] if ended else [self.you, self.select])
            )
        read = self.read(rows)
        return self.scores_of(self.network.embedding(read.numbers), read, selections)

    def amounts(self, embedded: Tensor, read: ReadTalks) -> Tensor:
        """Return the logits of the possible amounts of each item, after the talks in ``read``."""
        goal = self.goal.expand(len(read.lengths), -1)
        found = self.network.amounts_of(
            embedded, read.outputs, self.network.encode_goal(goal), read.lengths
        )
        return of_counts(found, goal[:, : len(ITEMS)])

    def scores_of(
        self, embedded: Tensor, read: ReadTalks, selections: Sequence[GoalSelection]
    ) -> Tensor:
        """Return the log probabilities of selections after the talks in ``read``."""
        chances = self.amounts(embedded, read).log_softmax(-1)
        taken = torch.tensor([[one[item] for item in ITEMS] for one in selections])
        parts = [chances[:, place, taken[:, place]] for place in range(len(ITEMS))]
        return torch.stack(parts).sum(0)

    def answers(self, talks: Sequence[Talk]) -> list[str | None]:
        """Return the agent's most likely next line after each talk. ``None`` ends a talk."""
        return self._spoken(talks, 1, lambda logits, _: logits.argmax(-1))

    def drawn_answers(
        self, talks: Sequence[Talk], points: Tensor, temperature: float
    ) -> list[list[str | None]]:
        """Draw several next lines after each talk. ``None`` ends a talk.

        ``points`` are random numbers from 0 to 1, ``[talks, lines, MOST_WORDS]``. Each number
        chooses a word.
        """
        count = points.shape[1]
        flat = points.flatten(0, 1)

        def choose(logits: Tensor, place: int) -> Tensor:
            reach = (logits / temperature).softmax(-1).cumsum(-1)
            words: Tensor = (reach <= flat[:, place, None] * reach[:, -1:]).sum(-1)
            return words

        lines = self._spoken(talks, count, choose)
        return [lines[at : at + count] for at in range(0, len(lines), count)]

    def _spoken(
        self, talks: Sequence[Talk], count: int, choose: Callable[[Tensor, int], Tensor]
    ) -> list[str | None]:
        """Return ``count`` next lines after each talk.

        ``choose`` returns the word of each line, for the logits and the place of the word.
        """
        rows = [[*self.numbers_of(words_of(talk)), self.you] for talk in talks]
        network = self.network
        state = self.read(rows).state.repeat_interleave(count, dim=1)
        goal = network.encode_goal(self.goal).expand(state.shape[1], -1)
        said: list[list[str]] = [[] for _ in range(state.shape[1])]
        selects, speaking = [False] * len(said), [True] * len(said)
        for place in range(MOST_WORDS):
            logits = network.next_words(state[0])
            logits[:, list_forbidden(network, first=place == 0)] = -torch.inf
            words = choose(logits, place)
            for row, number in enumerate(words.tolist()):
                if speaking[row] and number in (self.end, self.select):
                    speaking[row], selects[row] = False, number == self.select
                elif speaking[row]:
                    said[row].append(network.words[number])
            if not any(speaking):
                break
            state = network.read(network.embedding(words[:, None]), goal, state).state
        return [None if done else " ".join(line) for done, line in zip(selects, said, strict=True)]

    def surprise(self, talk: Talk, utterances: Sequence[str]) -> list[tuple[float, int]]:
        """Return the surprise in nats and the number of words of each possible next utterance.

        The end of an utterance counts as a word. The perplexity is ``exp(nats / words)``. An
        unknown word counts as one of `_UNKNOWN_WORDS` equally likely words, since otherwise
        nonsense words would be the most likely.
        """
        before = [*self.numbers_of(words_of(talk)), self.you]
        own = [[*self.numbers_of(text.lower().split()), self.end] for text in utterances]
        rows = [[*before, *row] for row in own]
        read = self.read(rows)
        chances = self.network.next_words(read.outputs[:, len(before) - 1 : -1]).log_softmax(-1)
        said = read.numbers[:, len(before) :]
        nats = -chances.gather(-1, said[..., None])[..., 0]
        inside = (
            torch.arange(said.shape[1])[None] < torch.tensor([len(row) for row in own])[:, None]
        )
        nats = nats + (said == UNKNOWN) * math.log(_UNKNOWN_WORDS)
        totals = (nats * inside).sum(-1).tolist()
        return [(total, len(row)) for total, row in zip(totals, own, strict=True)]

    def replacements(
        self, talk: Talk, line: int, wanted: Sequence[bool], selections: Sequence[GoalSelection]
    ) -> Tensor:
        """Return how much each word would help an attack, for each place of a line.

        The result is ``[words of the line, vocabulary]``: the first-order fall of the loss, from
        its gradient at the word vectors. Higher is better. ``wanted`` marks the selections that the
        attack wants.
        """
        before = len(words_of(talk[:line])) + 1
        count = len(talk[line].text.split())
        ended = talk[-1].closes
        words = self.numbers_of(words_of(talk)) + ([] if ended else [self.you, self.select])
        numbers = torch.tensor([words])
        embedded = self.network.embedding(numbers).detach().requires_grad_()
        goal = self.network.encode_goal(self.goal)
        outputs = self.network.read(embedded, goal).outputs
        read = ReadTalks(numbers, torch.tensor([len(words)]), outputs, outputs[:, -1][None])
        scores = self.scores_of(embedded, read, selections)[0]
        hoped = torch.tensor(wanted)
        loss = scores[~hoped].max() - scores[hoped].max()
        if not ended:
            # It should select at once, so the word after YOU: should be the end of the talk.
            logits = self.network.next_words(outputs[0, -2])
            others = logits.clone()
            others[[*self.never, self.end, self.select]] = -torch.inf
            loss = loss + torch.relu(others.max() - logits[self.select])
        (slope,) = torch.autograd.grad(loss, embedded)
        slope = slope[0, before : before + count]
        weights = self.network.embedding.weight.detach()
        own = weights[numbers[0, before : before + count]]
        gains: Tensor = (own * slope).sum(-1, keepdim=True) - slope @ weights.T
        gains[:, [*self.never, self.end, self.select]] = -torch.inf
        return gains


def _common(rows: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the words at the beginning that all rows share."""
    # It is enough to compare the first and the last row in sorted order.
    first, last = min(map(list, rows)), max(map(list, rows))
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:place]
    return first
