"""A trained policy, in numpy: it runs where torch is not installed.

The mathematics is that of Multi-PDQN, see `multi_pdqn`: the parameter network says the
parameters of every transformation, a pass of the Q network a transformation says what it
is worth with its parameters, and the ``k`` best are associated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.features import STATE_SIZE, Floats, Trace, TurnView
from pytest_dstfuzz.perturb.action import GRID, ActionSpace
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SPACE: Final = ActionSpace()
COUNT: Final = len(TRANSFORMATIONS)
#: Transformation -> its coordinates in the action vector, without the importance.
BLOCKS: Final = tuple(SPACE.block(name) for name in TRANSFORMATIONS)
#: Places of the importances in the action vector.
IMPORTANCES: Final = tuple(block.start - 1 for block in BLOCKS)
#: Input of a pass: the state, and the parameters of one transformation in their places.
PASS_SIZE: Final = STATE_SIZE + SPACE.dimension


class PolicyChoice(NamedTuple):
    """An action, and what the critic thought of it."""

    state: Floats  #: [STATE_SIZE], in which it was chosen.
    action: Action  #: The point of the action space.
    vector: Floats  #: [D], the same as an array.
    chosen: npt.NDArray[np.bool_]  #: [6], the associated transformations.
    values: Floats  #: [6], Q-values.


@dataclass(frozen=True, slots=True)
class Exploration:
    """How far from the best action to go."""

    epsilon: float = 0.0  #: Probability of a uniform action.
    spread: float = 0.0  #: Standard deviation of the noise around the parameters.
    #: That of the noise on the Q-values, as a multiple of their own standard deviation.
    temperature: float = 0.0


#: The first attempt at a turn takes what the agent thinks best.
FIRST: Final = Exploration()
#: Later ones, and what is drawn again, would be the same once more.
LATER: Final = Exploration(spread=0.2, temperature=0.5)


class Policy:
    """Chooses actions with the weights of two networks.

    Those are ``parameters.N.weight`` and ``.bias``, ``critic.N.weight`` and ``.bias``: the layers
    of two perceptrons, ReLU between them.
    """

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self._actor = _layers(weights, "parameters")
        self._critic = _layers(weights, "critic")

    def parameters(self, state: Floats) -> Floats:
        """Return the parameters of every transformation: [D]."""
        found: Floats = np.clip(_forward(self._actor, state[None, :])[0], 0.0, 1.0)
        return found

    def values(self, state: Floats, vector: Floats) -> Floats:
        """Return the Q-value of every transformation with its parameters: [6], a pass each."""
        passes = np.zeros((COUNT, PASS_SIZE), np.float32)
        passes[:, :STATE_SIZE] = state
        for number, block in enumerate(BLOCKS):
            passes[number, STATE_SIZE + block.start : STATE_SIZE + block.stop] = vector[block]
        # Of the output of a pass only that for its transformation counts.
        found: Floats = _forward(self._critic, passes).diagonal().copy()
        return found

    def choose(
        self,
        view: TurnView,
        trace: Trace,
        k: int,
        rng: np.random.Generator,
        explore: Exploration,
    ) -> PolicyChoice:
        """Choose ``k`` transformations and their parameters."""
        state = view.state(trace, k)
        uniform = rng.random(SPACE.dimension).astype(np.float32)
        if rng.random() < explore.epsilon:
            vector, ranking = snap(uniform), uniform[list(IMPORTANCES)]
            values = self.values(state, vector)
        else:
            vector = snap(_around(self.parameters(state), rng, explore.spread))
            values = self.values(state, vector)
            noise = rng.normal(size=COUNT).astype(np.float32)
            ranking = values + explore.temperature * values.std() * noise
        ranking = np.where(view.available, ranking, -np.inf)
        vector[list(IMPORTANCES)] = importances(ranking)
        vector = snap(vector)
        chosen = np.zeros(COUNT, bool)
        chosen[np.argsort(-vector[list(IMPORTANCES)], kind="stable")[:k]] = True
        chosen &= view.available
        action = Action(tuple(vector.astype(float).tolist()), k)
        return PolicyChoice(state, action, vector, chosen, values)


def importances(values: Floats) -> Floats:
    """Return Q-values scaled min-max to [0, 1]; those that are -inf get 0."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(len(values), np.float32)
    low, high = values[finite].min(), values[finite].max()
    scaled = (values - low) / (high - low) if high > low else np.ones(len(values), np.float32)
    # The least that is available still comes before what is not: one step of the grid.
    return np.where(finite, np.maximum(scaled, 1 / GRID), 0.0).astype(np.float32)


def snap(values: Floats) -> Floats:
    """Bring coordinates into [0, 1] and onto the grid."""
    return (np.rint(np.clip(values, 0.0, 1.0) * GRID) / GRID).astype(np.float32)


def _around(vector: Floats, rng: np.random.Generator, spread: float) -> Floats:
    """Add noise to parameters; what would leave [0, 1] is turned back at the border.

    Cut off there instead, half of the draws around a parameter at the border would equal it.
    """
    moved = vector + spread * rng.standard_normal(len(vector), np.float32)
    return (1.0 - np.abs(1.0 - np.abs(moved))).astype(np.float32)


def _layers(
    weights: Mapping[str, npt.NDArray[np.float32]], name: str
) -> list[tuple[Floats, Floats]]:
    layers: list[tuple[Floats, Floats]] = []
    while f"{name}.{len(layers)}.weight" in weights:
        prefix = f"{name}.{len(layers)}"
        weight = weights[f"{prefix}.weight"].astype(np.float32)
        layers.append((weight, weights[f"{prefix}.bias"].astype(np.float32)))
    return layers


def _forward(layers: list[tuple[Floats, Floats]], rows: Floats) -> Floats:
    for index, (weight, bias) in enumerate(layers):
        rows = rows @ weight.T + bias
        if index + 1 < len(layers):
            rows = np.maximum(rows, 0.0)
    return rows
