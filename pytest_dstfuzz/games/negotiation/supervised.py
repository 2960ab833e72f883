"""Trains the supervised negotiator on human talks and selections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pytest_dstfuzz.games.negotiation.corpus import (
    NegotiationRow,
    load_negotiations,
    vocabulary_of,
)
from pytest_dstfuzz.games.negotiation.network import (
    PAD,
    RESERVED,
    UNKNOWN,
    NegotiatorNetwork,
    NegotiatorShape,
    of_counts,
    save_network,
)
from pytest_dstfuzz.models.neural import by_length, learning_rate, pad
from pytest_dstfuzz.models.runs import (
    Progress,
    SavedRun,
    check_output,
    describe_run,
    locks_output,
    moments,
    write_run,
)
from pytest_dstfuzz.seeding import derive, stream

MODEL_FILE: Final = "negotiator.safetensors"
_RUN: Final = "dstfuzz.negotiator"
#: Settings that a resumed run may change; the learning rate depends on the number of epochs.
_CHANGEABLE: Final = ("resume", "output", "epochs")
#: Weight of the selection in the loss, as in the published training.
_SELECTION: Final = 0.5


@dataclass(frozen=True)
class SupervisedConfig:
    """The settings for training the supervised negotiator."""

    data: Path
    output: Path
    epochs: int = 12
    batch_size: int = 24  #: Rows in a step.
    learning_rate: float = 3e-3
    gradient_clip: float = 1.0
    dropout: float = 0.2
    least: int = 20  #: Minimum count in the training rows for a word in the vocabulary.
    seed: int = 0
    resume: bool = False  #: Whether to continue after the last epoch in the output folder.


@dataclass(frozen=True)
class NegotiatorEpoch:
    """The results of one epoch, measured on the validation rows."""

    epoch: int
    loss: float  #: Mean over the steps.
    perplexity: float
    selected: float  #: Share of agreed rows in which all amounts match those of the person.


class NegotiationBatch:
    """A batch of rows as tensors."""

    def __init__(self, rows: Sequence[NegotiationRow], numbers: Mapping[str, int]) -> None:
        coded = [np.array([numbers.get(word, UNKNOWN) for word in row.words]) for row in rows]
        self.words = torch.from_numpy(pad(coded, PAD))
        self.lengths = torch.tensor([len(row.words) for row in rows])
        self.goal = torch.tensor([(*row.counts, *row.values) for row in rows])
        self.counts = self.goal[:, :3]
        self.agreed = torch.tensor([row.chosen is not None for row in rows])
        self.chosen = torch.tensor([row.chosen or (0, 0, 0) for row in rows])


def _losses(network: NegotiatorNetwork, rows: NegotiationBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Return the total losses of words and of selections, and the logits of the amounts."""
    embedded, goal = network.embedding(rows.words), network.encode_goal(rows.goal)
    outputs = network.read(embedded, goal).outputs
    said = nn.functional.cross_entropy(
        network.next_words(outputs[:, :-1]).flatten(0, 1),
        rows.words[:, 1:].flatten(),
        ignore_index=PAD,
        reduction="sum",
    )
    amounts = network.amounts_of(embedded, outputs, goal, rows.lengths)
    logits = of_counts(amounts, rows.counts)
    chosen = nn.functional.cross_entropy(
        logits[rows.agreed].flatten(0, 1), rows.chosen[rows.agreed].flatten(), reduction="sum"
    )
    return said, chosen, logits


def row_loss(network: NegotiatorNetwork, rows: Sequence[NegotiationRow]) -> Tensor:
    """Return the training loss: mean word loss plus weighted mean selection loss."""
    batch = NegotiationBatch(rows, network.numbers)
    said, selected, _ = _losses(network, batch)
    count, words = max(int(batch.agreed.sum()), 1), int((batch.lengths - 1).sum())
    loss: Tensor = said / words + _SELECTION * selected / count
    return loss


class NegotiatorFit(NamedTuple):
    """How well a negotiator predicts human talks and selections.

    All unknown words count as the same word, as in the published figures.
    """

    perplexity: float  #: Over all words except the first of a row, which is not predicted.
    published: float  #: The same, divided by all words, as in the published figures.
    selected: float  #: Share of correct selections in agreed rows, 0 to 1.


def measure(network: NegotiatorNetwork, rows: Sequence[NegotiationRow]) -> NegotiatorFit:
    """Measure how well a negotiator predicts some rows."""
    network.eval()
    total, words, right, agreed = 0.0, 0, 0, 0
    with torch.no_grad():
        for start in range(0, len(rows), 64):
            batch = NegotiationBatch(rows[start : start + 64], network.numbers)
            said, _, logits = _losses(network, batch)
            total += float(said)
            words += int((batch.lengths - 1).sum())
            same = (logits.argmax(-1) == batch.chosen).all(-1)
            right += int((same & batch.agreed).sum())
            agreed += int(batch.agreed.sum())
    spread = math.exp(total / (words + len(rows)))
    return NegotiatorFit(math.exp(total / words), spread, right / max(agreed, 1))


def _tensors(network: NegotiatorNetwork, adam: torch.optim.Adam) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in network.named_parameters():
        state = moments(adam, parameter)
        yield f"weight.{name}", parameter
        yield f"first.{name}", state["exp_avg"]
        yield f"second.{name}", state["exp_avg_sq"]
        yield f"step.{name}", state["step"]


@locks_output
def train_supervised(config: SupervisedConfig, progress: Progress) -> tuple[NegotiatorEpoch, ...]:
    """Train on ``data.txt``. Keep the network of the best epoch on ``val.txt``.

    Rows of ``val.txt`` and ``test.txt`` are not trained on. The state is written after each epoch,
    so a resumed run gives the same result as an uninterrupted one.
    """
    check_output(config.output, resume=config.resume)
    splits = load_negotiations(config.data)
    words = (*RESERVED, *vocabulary_of(splits.train, config.least))
    progress(f"{len(splits.train):,} rows, {splits.left_out:,} excluded, {len(words)} words")
    generator = torch.Generator().manual_seed(derive(config.seed, "weights") % 2**63)
    network = NegotiatorNetwork(words, NegotiatorShape(), config.dropout)
    _start(network, generator)
    adam = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
    history: list[NegotiatorEpoch] = []
    identity = describe_run(config, _CHANGEABLE)
    if config.resume:
        saved = SavedRun.resumed(config.output, _RUN, identity, _tensors(network, adam))
        history = saved.history(NegotiatorEpoch)
        progress(f"resumed after epoch {len(history)}")
    while len(history) < config.epochs:
        loss = _epoch(network, adam, splits.train, config, len(history))
        fit = measure(network, splits.val)
        figures = NegotiatorEpoch(len(history) + 1, loss, fit.perplexity, fit.selected)
        history.append(figures)
        progress(
            f"epoch {figures.epoch}/{config.epochs}: loss {loss:.3f}, perplexity "
            f"{figures.perplexity:.3f}, correct selections {figures.selected:.3f} (val)"
        )
        about = {"identity": identity, "history": [asdict(item) for item in history]}
        if min(history, key=lambda item: item.perplexity) is figures:
            save_network(config.output / MODEL_FILE, network, about)
        write_run(config.output, _RUN, about, _tensors(network, adam))
    return tuple(history)


def _start(network: NegotiatorNetwork, generator: torch.Generator) -> None:
    """Initialise the weights with a separate random generator."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 1:
                parameter.zero_()
            elif "embedding" in name or name.startswith(("counts", "values")):
                parameter.normal_(0.0, 0.1, generator=generator)
            else:
                bound = 1 / math.sqrt(parameter.shape[1])
                parameter.uniform_(-bound, bound, generator=generator)
        network.embedding.weight[PAD].zero_()


def _epoch(
    network: NegotiatorNetwork,
    adam: torch.optim.Adam,
    rows: Sequence[NegotiationRow],
    config: SupervisedConfig,
    number: int,
) -> float:
    """Train one epoch, and return the mean loss per word."""
    network.train()
    rng = stream(config.seed, "epoch", number)
    order = by_length([len(row.words) for row in rows], rng)
    batches = [order[at : at + config.batch_size] for at in range(0, len(order), config.batch_size)]
    rng.shuffle(batches)
    losses = []
    with torch.random.fork_rng():
        # Set the seed in each epoch, so that a resumed run equals an uninterrupted one.
        torch.manual_seed(derive(config.seed, "noise", number) % 2**63)
        for done, chosen in enumerate(batches):
            batch = NegotiationBatch([rows[place] for place in chosen.tolist()], network.numbers)
            said, selected, _ = _losses(network, batch)
            count = max(int(batch.agreed.sum()), 1)
            words = int((batch.lengths - 1).sum())
            loss = said / words + _SELECTION * selected / count
            adam.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no type here
            nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip)
            step, total = number * len(batches) + done, config.epochs * len(batches)
            for group in adam.param_groups:
                group["lr"] = learning_rate(step, total, config.learning_rate, 100)
            adam.step()
            losses.append(float(said.detach()) / words)
    return sum(losses) / len(losses)
