"""A trained policy, in numpy: it runs where torch is not installed.

The mathematics is that of Multi-PDQN, see `multi_pdqn`: the parameter network proposes the
parameters of every transformation, a pass of the Q network a transformation says what it
is worth with its parameters, and the ``k`` best are associated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.features import CHOICE_SIZE, STATE_SIZE, Floats, Trace, TurnView
from pytest_dstfuzz.perturb.action import GRID, TRIGGER, ActionSpace
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SPACE: Final = ActionSpace()
COUNT: Final = len(TRANSFORMATIONS)
#: Transformation -> its coordinates in the action vector, without the importance.
BLOCKS: Final = tuple(SPACE.block(name) for name in TRANSFORMATIONS)
#: Places of the importances in the action vector.
IMPORTANCES: Final = tuple(block.start - 1 for block in BLOCKS)
#: Input of a pass: state, the parameters of one transformation in their places, what they
#: select, whether that is given, and which transformation it is.
PASS_SIZE: Final = STATE_SIZE + SPACE.dimension + CHOICE_SIZE + 1 + COUNT

#: Rows of one product: so few that it is not parted among threads, which would wait for each
#: other longer than they work.
_ROWS: Final = 16


class PolicyChoice(NamedTuple):
    """An action, and what the critic thought of it."""

    state: Floats  #: [STATE_SIZE], in which it was chosen.
    action: Action  #: The point of the action space.
    vector: Floats  #: [D], the same as an array.
    choices: Floats  #: [6, CHOICE_SIZE], what its parameters select.
    chosen: npt.NDArray[np.bool_]  #: [6], the associated transformations.
    values: Floats  #: [6], Q-values.


@dataclass(frozen=True, slots=True)
class Exploration:
    """How far from the best action to go."""

    epsilon: float = 0.0  #: Probability of uniform parameters and transformations.
    #: Parameters drawn for each transformation, from which the critic takes the best; 0 = only what
    #: the parameter network says.
    candidates: int = 32
    #: Standard deviation around the parameter network of half of the candidates; the others are
    #: uniform.
    spread: float = 0.2
    #: Of the noise added to the values before the best is taken, as a multiple of the spread of the
    #: values.
    temperature: float = 0.0


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

    def shared(self, state: Floats) -> Floats:
        """Return what all passes of a state have in common: [hidden], of [STATE_SIZE]."""
        weight, bias = self._critic[0]
        shared: Floats = weight[:, :STATE_SIZE] @ state + bias
        return shared

    def passes(self, shared: Floats, number: int, blocks: Floats, choices: Floats | None) -> Floats:
        """Return the Q-values of transformation ``number`` with some parameters: [candidates].

        For `shared` see there; blocks are [candidates, parameters], choices [candidates,
        CHOICE_SIZE] or not known.
        """
        block, weight = BLOCKS[number], self._critic[0][0]
        start = STATE_SIZE + SPACE.dimension
        columns = weight[:, STATE_SIZE + block.start : STATE_SIZE + block.stop]
        common = shared + weight[:, start + CHOICE_SIZE + 1 + number]
        if choices is not None:
            columns = np.hstack([columns, weight[:, start : start + CHOICE_SIZE]])
            common = common + weight[:, start + CHOICE_SIZE]
            blocks = np.hstack([blocks, choices])
        found = []
        for rows in np.array_split(blocks, -(-len(blocks) // _ROWS)):
            hidden = np.maximum(rows @ columns.T + common, 0.0)
            found.append(_forward(self._critic[1:], hidden)[:, number])
        return np.concatenate(found)

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
        shared = self.shared(state)
        uniform = rng.random(SPACE.dimension).astype(np.float32)
        blind = rng.random() < explore.epsilon
        vector = uniform.copy() if blind else self.parameters(state)
        values = np.zeros(COUNT, np.float32)
        choices = np.zeros((COUNT, CHOICE_SIZE), np.float32)
        for number, block in enumerate(BLOCKS):
            blocks = vector[None, block]
            if explore.candidates and not blind:
                blocks = np.vstack([blocks, _around(blocks[0], rng, explore)])
            blocks = snap(blocks)
            found = view.choices(number, blocks, trace)
            worth = self.passes(shared, number, blocks, found)
            if explore.temperature and not blind:
                noise = rng.gumbel(size=len(worth)).astype(np.float32)
                spread = float(worth.std()) if len(worth) > 1 else 0.0
                worth = worth + explore.temperature * spread * noise
            best = int(worth.argmax())
            vector[block], choices[number], values[number] = blocks[best], found[best], worth[best]
        ranking = values if not blind else uniform[list(IMPORTANCES)]
        ranking = np.where(view.available, ranking, -np.inf)
        vector[list(IMPORTANCES)] = importances(ranking)
        vector = snap(vector)
        chosen = np.zeros(COUNT, bool)
        chosen[np.argsort(-vector[list(IMPORTANCES)], kind="stable")[:k]] = True
        chosen &= view.available
        action = Action(tuple(vector.astype(float).tolist()), k)
        return PolicyChoice(state, action, vector, choices, chosen, values)

    def settled(self, choice: PolicyChoice) -> Action:
        """Return the action of a choice, every coordinate that has no effect as the actor has it.

        Those are the parameters of transformations that are not associated and of repetitions
        that are not triggered, and the trigger of the first repetition, which is always made.
        What a search drew for them is chance and says nothing about the agent.
        """
        vector, proposed = choice.vector.copy(), snap(self.parameters(choice.state))
        for number, block in enumerate(BLOCKS):
            middle = (block.start + block.stop) // 2
            if not choice.chosen[number]:
                vector[block] = proposed[block]
                continue
            vector[block.start] = proposed[block.start]
            if vector[middle] < TRIGGER:
                vector[middle + 1 : block.stop] = proposed[middle + 1 : block.stop]
        return Action(tuple(vector.astype(float).tolist()), choice.action.k)


def importances(values: Floats) -> Floats:
    """Return Q-values scaled min-max to [0, 1]; those that are -inf get 0."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(len(values), np.float32)
    low, high = values[finite].min(), values[finite].max()
    # What is available at all comes before what is not.
    scaled = (values - low) / (high - low) if high > low else np.ones(len(values), np.float32)
    return np.where(finite, 1 / 8 + 7 / 8 * np.where(finite, scaled, 0.0), 0.0).astype(np.float32)


def snap(values: Floats) -> Floats:
    """Bring coordinates into [0, 1] and onto the grid."""
    return (np.rint(np.clip(values, 0.0, 1.0) * GRID) / GRID).astype(np.float32)


def _around(block: Floats, rng: np.random.Generator, explore: Exploration) -> Floats:
    near = explore.candidates // 2
    noise = rng.normal(0.0, explore.spread, (near, len(block)))
    far = rng.random((explore.candidates - near, len(block)))
    return np.vstack([block + noise, far]).astype(np.float32)


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
