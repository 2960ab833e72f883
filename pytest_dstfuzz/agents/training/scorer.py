"""How a scorer is fitted: by likelihood of which slots each attempt changed.

The probability that an attempt changes a slot is ``1 - product of (1 - p)`` over its edits, with
``p`` the network's for the slot and the edit. Every fit begins anew, from all attempts so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pytest_dstfuzz.agents.features import Floats
from pytest_dstfuzz.agents.slot_view import EDIT_SIZE, PAIR_SIZE, SLOT_SIZE
from pytest_dstfuzz.agents.training.scorer_rows import Batch, TurnRows, batch_of
from pytest_dstfuzz.models.neural import threads

#: Logit of what a slot and an edit begin with: one in ninety.
_BEGIN = -4.5
#: Least logarithm of the probability that nothing changes which is told from 0.
_LEAST = -1e-6


@dataclass(frozen=True, slots=True)
class FitConfig:
    """How to fit."""

    wide: int = 64  #: Size of the first hidden layer.
    narrow: int = 32  #: Size of the second.
    epochs: int = 6  #: Passes over the turns.
    turns: int = 64  #: Of one step.
    rate: float = 2e-3  #: Highest learning rate; it rises and falls once (one cycle).
    weight_decay: float = 1e-4
    gradient_clip: float = 5.0


class Network(nn.Module):
    """The network of `agents.scorer.Scorer`, in torch."""

    def __init__(self, config: FitConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.slot = _linear(SLOT_SIZE, config.wide, generator)
        self.edit = _linear(EDIT_SIZE, config.wide, generator)
        self.pair = _linear(PAIR_SIZE, config.wide, generator)
        self.hidden = _linear(config.wide, config.narrow, generator)
        self.out = _linear(config.narrow, 1, generator)
        with torch.no_grad():
            self.out.bias.fill_(_BEGIN)

    def forward(self, batch: Batch) -> Tensor:
        """Return the logit of each row: [rows]."""
        total = self.slot(batch.slots) + batch.edits @ self.edit.weight.T
        total = torch.relu(total + batch.pairs @ self.pair.weight.T)
        logits: Tensor = self.out(torch.relu(self.hidden(total)))[:, 0]
        return logits

    def weights(self) -> dict[str, Floats]:
        """Return the weights as `agents.scorer.shapes` names them."""
        named = {
            "slot": self.slot.weight,
            "slot.bias": self.slot.bias,
            "edit": self.edit.weight,
            "pair": self.pair.weight,
            "hidden.weight": self.hidden.weight,
            "hidden.bias": self.hidden.bias,
            "out.weight": self.out.weight,
            "out.bias": self.out.bias,
        }
        return {name: value.detach().numpy().copy() for name, value in named.items()}


def loss_of(network: Network, batch: Batch) -> Tensor:
    """Return minus the logarithm of the likelihood, a mean over attempts."""
    unchanged = torch.zeros(len(batch.changed)).index_add_(
        0, batch.group, logsigmoid(-network(batch))
    )
    unchanged = unchanged.clamp(max=_LEAST)
    changed = torch.log1p(-torch.exp(unchanged))
    return -(batch.changed * changed + (1 - batch.changed) * unchanged).sum() / batch.attempts


def fit(
    turns: Sequence[TurnRows], rng: np.random.Generator, config: FitConfig
) -> tuple[Network, float]:
    """Fit a network to some turns; returns it and its mean loss of the last pass."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    network = Network(config, generator)
    steps = -(-len(turns) // config.turns)
    optimiser = torch.optim.AdamW(
        network.parameters(), config.rate, weight_decay=config.weight_decay
    )
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, config.rate, total_steps=steps * config.epochs + 1
    )
    loss = 0.0
    with threads(1):
        for _ in range(config.epochs):
            order, loss = rng.permutation(len(turns)).tolist(), 0.0
            for start in range(0, len(order), config.turns):
                batch = batch_of([turns[at] for at in order[start : start + config.turns]])
                found = loss_of(network, batch)
                optimiser.zero_grad()
                torch.autograd.backward(found)
                nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip)
                optimiser.step()
                cycle.step()
                loss += found.item() / steps
    return network, loss


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
        nn.init.zeros_(layer.bias)
    return layer
