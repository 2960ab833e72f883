"""Multi-PDQN: parameterised deep Q-learning that chooses the ``k`` best transformations.

P-DQN (Xiong et al., arXiv 1810.06394) has a parameter network ``x(s)`` and a Q network. The
multi-pass form (Bester et al., arXiv 1905.04388) scores each discrete action in a separate pass,
which sees only the parameters of that action. Here, ``k`` actions are taken at once, and the value
of a set is the sum of the values of its members::

    Q(s, A, x) = sum of Q_a(s, x_a) over a in A
    y          = r + gamma (1 - terminated) * sum of the k largest Q'_a(s', x'_a(s'))
    critic:      (Q(s, A, x) - y)^2
    actor:       - sum of Q_a(s, x_a(s)) over the available a, gradients inverted at the
                 borders of [0, 1]

``Q'`` and ``x'`` are the target networks.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from pytest_dstfuzz.agents.policies import BLOCKS, COUNT, PASS_SIZE, SPACE, STATE_SIZE
from pytest_dstfuzz.agents.training.memory import ReplayBatch

_D: Final = SPACE.dimension


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """The hyperparameters of the learner."""

    gamma: float = 0.9
    critic_rate: float = 1e-3
    actor_rate: float = 1e-4
    critic_tau: float = 0.1
    actor_tau: float = 0.001
    gradient_clip: float = 10.0
    hidden: int = 128
    seed: int = 0


class MultiPDQN:
    """The actor, the critic, their target networks, and the update of the weights."""

    def __init__(self, config: LearnerConfig, device: str = "cpu") -> None:
        self.config = config
        self.device = device
        generator = torch.Generator().manual_seed(config.seed)
        wide = config.hidden
        self.actor = _perceptron((STATE_SIZE, wide, _D), generator).to(device)
        self.critic = _perceptron((PASS_SIZE, wide, wide // 2, COUNT), generator).to(device)
        # Start in the middle of the cube, and with values of about 0.
        _shrink(self.actor[-1], 0.5)
        _shrink(self.critic[-1], 0.0)
        self.actor_target, self.critic_target = deepcopy(self.actor), deepcopy(self.critic)
        self.actor_optimiser = torch.optim.Adam(
            self.actor.parameters(), config.actor_rate, fused=True
        )
        self.critic_optimiser = torch.optim.Adam(
            self.critic.parameters(), config.critic_rate, fused=True
        )
        mask = torch.zeros(COUNT, _D)
        for number, block in enumerate(BLOCKS):
            mask[number, block] = 1.0
        self._mask = mask.to(device)

    def values(
        self, network: nn.Module, state: Tensor, x: Tensor, wanted: Tensor | None = None
    ) -> Tensor:
        """Return the Q-value of each transformation, from a separate pass of the network: [B, 6].

        ``x`` is [B, D] parameters. Pass ``a`` sees only the parameters of ``a``. ``wanted`` is [B,
        6], with 1 for each pass to make. Values without a pass are 0. If ``wanted`` is ``None``,
        all passes are made.
        """
        made = state.new_ones(len(state), COUNT) if wanted is None else wanted
        row, a = made.nonzero(as_tuple=True)
        passes = torch.cat([state[row], x[row] * self._mask[a]], dim=1)
        # Only output ``a`` of pass ``a`` is used.
        values = network(passes).gather(1, a[:, None])[:, 0]
        return torch.zeros_like(made).index_put((row, a), values)

    def update(self, batch: ReplayBatch) -> tuple[float, float]:
        """Update the networks with a batch, and return the losses of the critic and the actor."""
        state, x = self._tensor(batch.state), self._tensor(batch.vector)
        chosen, available = self._tensor(batch.chosen), self._tensor(batch.available)
        y = self._tensor(batch.reward)
        if self.config.gamma > 0:
            following = self._tensor(batch.next_state)
            goes_on = 1.0 - self._tensor(batch.terminated)
            with torch.no_grad():
                next_x = self.actor_target(following).clamp(0.0, 1.0)
                next_q = self.values(self.critic_target, following, next_x)
                best = _sum_of_largest(next_q, self._tensor(batch.next_available), batch.k)
                y = y + self.config.gamma * goes_on * best

        taken = self.values(self.critic, state, x, chosen).sum(dim=1)
        critic_loss = ((taken - y) ** 2).mean()
        self.critic_optimiser.zero_grad()
        torch.autograd.backward(critic_loss)
        nn.utils.clip_grad_norm_(self.critic.parameters(), self.config.gradient_clip)
        self.critic_optimiser.step()

        proposed = self.actor(state)
        x = proposed.detach().clamp(0.0, 1.0).requires_grad_()
        actor_loss = -self.values(self.critic, state, x, available).sum(dim=1).mean()
        (slope,) = torch.autograd.grad(actor_loss, x)
        self.actor_optimiser.zero_grad()
        torch.autograd.backward(proposed, invert_gradients(slope, proposed.detach()))
        nn.utils.clip_grad_norm_(self.actor.parameters(), self.config.gradient_clip)
        self.actor_optimiser.step()

        _follow(self.critic_target, self.critic, self.config.critic_tau)
        _follow(self.actor_target, self.actor, self.config.actor_tau)
        return critic_loss.item(), actor_loss.item()

    def weights(self) -> dict[str, np.ndarray]:
        """Return the weights of the actor and the critic as numpy arrays, for `Policy`."""
        found: dict[str, np.ndarray] = {}
        for name, network in (("parameters", self.actor), ("critic", self.critic)):
            layers = [layer for layer in network if isinstance(layer, nn.Linear)]
            for index, layer in enumerate(layers):
                found[f"{name}.{index}.weight"] = layer.weight.detach().cpu().numpy().copy()
                found[f"{name}.{index}.bias"] = layer.bias.detach().cpu().numpy().copy()
        return found

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.float32)).to(self.device)


def invert_gradients(slope: Tensor, x: Tensor) -> Tensor:
    """Scale down gradients near the borders of [0, 1], and reverse them outside.

    A descent step goes against ``slope``. If the slope is negative, the parameter rises, and the
    slope is multiplied by the distance to 1. Otherwise the parameter falls, and the slope is
    multiplied by the distance to 0 (Hausknecht and Stone, arXiv 1511.04143).
    """
    return torch.where(slope < 0, slope * (1.0 - x), slope * x)


def _sum_of_largest(values: Tensor, available: Tensor, k: np.ndarray) -> Tensor:
    """Return for each row the sum of the ``k`` largest available values: [B]."""
    ranked, _ = values.masked_fill(available == 0, -1e9).sort(dim=1, descending=True)
    place = torch.arange(values.shape[1], device=values.device)[None, :]
    counted = (place < torch.from_numpy(k).to(values.device)[:, None]) & (ranked > -1e8)
    return (ranked * counted).sum(dim=1)


def _perceptron(sizes: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layer = nn.Linear(before, after)
        with torch.no_grad():
            nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
            nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _shrink(layer: nn.Module, bias: float) -> None:
    assert isinstance(layer, nn.Linear)  # noqa: S101 - the last layer of `_perceptron`
    with torch.no_grad():
        layer.weight.mul_(0.1)
        layer.bias.fill_(bias)


def _follow(copy: nn.Module, network: nn.Module, share: float) -> None:
    with torch.no_grad():
        torch._foreach_lerp_(list(copy.parameters()), list(network.parameters()), share)
