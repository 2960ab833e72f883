"""The action vector: one point of the unit cube that says what to do to an utterance.

Layout, per transformation in the order of `SHIPPED`: its importance, then for each of ``m``
repetitions a trigger and its parameters (position, operator and, except for the two drops,
choice). With ``m = 2`` that is 9, 9, 7, 9, 9, 7: 50 dimensions. Transformations of others that a
run uses come after those, sorted by name: what is drawn for the six is the same without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.selection import Selection, select
from pytest_dstfuzz.transformations import SHIPPED

__all__ = ["GRID", "ActionSpace", "inertia"]

#: Every coordinate is a multiple of ``1 / GRID``.
GRID: Final = 1024
#: From this trigger on, a further repetition is active.
TRIGGER: Final = 0.5
#: Share of the words of an utterance that bounds the repetitions of a transformation.
WORD_SHARE: Final = 0.25
#: Of a coordinate without effect: the mean of uniform draws, so that it adds nothing to the spread
#: of one that has an effect at times.
_NEUTRAL: Final = 0.5


class ActionStep(NamedTuple):
    """One chosen transformation."""

    transformation: str  #: Its name.
    importance: float  #: In [0, 1].
    #: Parameters of the active repetitions, at least one: ``(position, operator, choice)`` each,
    #: without the choice for the drops.
    repetitions: tuple[tuple[float, ...], ...]
    slots: int  #: The number ``m`` of repetitions that the action space has.

    def active(self, words: int) -> tuple[tuple[float, ...], ...]:
        """Return the repetitions to run on an utterance of ``words`` words.

        At most ``max(1, round(importance * min(m, cap)))``, where ``cap`` is a quarter
        of the words and at least one (method of the thesis).
        """
        if len(self.repetitions) == 1:
            return self.repetitions
        cap = max(1, math.floor(words * WORD_SHARE))
        return self.repetitions[: max(1, round(self.importance * min(self.slots, cap)))]


class ActionSpace:
    """The unit cube of actions with ``repetitions`` (m) repetitions a transformation.

    Attributes:
        dimension: of the cube.
        most: highest ``k``: the number of transformations that the cube has.
    """

    __slots__ = ("_offsets", "_widths", "dimension", "most", "repetitions", "selection")

    def __init__(self, selection: Selection | None = None, repetitions: int = 2) -> None:
        """Lay the cube out.

        Args:
            selection: what a run uses: the transformations that `decode` chooses among, the six
                by default. The cube has a place for each of the six, used or not.
            repetitions: of a transformation in one action.

        Raises:
            ValueError: ``repetitions`` is below 1.
        """
        if repetitions < 1:
            raise ValueError(f"repetitions must be at least 1, not {repetitions}")
        self.selection = selection or select()
        self.repetitions = repetitions
        self._offsets: dict[str, int] = {}
        self._widths: dict[str, int] = {}
        self.dimension = 0
        others = [item for item in self.selection.transformations if item not in SHIPPED]
        for item in (*SHIPPED, *sorted(others, key=lambda item: item.name)):
            self._offsets[item.name] = self.dimension
            self._widths[item.name] = 1 + len(item.parameters)
            self.dimension += 1 + repetitions * self._widths[item.name]
        self.most = len(self._offsets)

    def sample(self, rng: np.random.Generator, k: int) -> Action:
        """Draw a uniform point, snapped to the grid, that associates ``k`` transformations."""
        self._check_k(k)
        grid = np.rint(rng.random(self.dimension) * GRID) / GRID
        return Action(tuple(grid.tolist()), k)

    def block(self, transformation: str) -> slice:
        """Return where the triggers and parameters of a transformation are in the vector.

        Its importance is right before them.
        """
        start = self._offsets[transformation] + 1
        return slice(start, start + self.repetitions * self._widths[transformation])

    def parameters(self, transformation: str) -> int:
        """Return how many parameters each repetition of a transformation has."""
        return self._widths[transformation] - 1

    def single(self, action: Action, transformation: str) -> Action:
        """Return the action that carries one transformation out once, with its parameters."""
        start = self._offsets[transformation]
        width = self._widths[transformation]
        parameters = action.vector[start + 2 : start + 1 + width]
        return self.encode([ActionStep(transformation, 1.0, (parameters,), self.repetitions)])

    def decode(self, action: Action) -> tuple[ActionStep, ...]:
        """Return the ``k`` most important transformations, word level first.

        Args:
            action: coordinates between grid points are snapped to the nearest one. Where fewer
                than ``k`` transformations are in use, all are taken; of equal importances the
                earlier in the order of application wins.

        Raises:
            ValueError: wrong dimension, a coordinate outside [0, 1] or not a number.
            UserError: ``k`` is not from 1 to `most`.
        """
        self._check_k(action.k)
        vector = action.vector
        if len(vector) != self.dimension:
            raise ValueError(f"an action has {self.dimension} coordinates, not {len(vector)}")
        # NaN compares as it likes in min and max, but no sum with it equals itself.
        total = sum(vector)
        if not (min(vector) >= 0.0 and max(vector) <= 1.0 and total == total):  # noqa: PLR0124
            raise ValueError("every coordinate of an action must be a number in [0, 1]")
        names = self.selection.names
        snapped = [_snap(vector[self._offsets[name]]) for name in names]
        chosen: Sequence[int] = range(len(names))
        if action.k < len(names):
            chosen = sorted(sorted(chosen, key=lambda index: -snapped[index])[: action.k])
        steps = []
        for index in chosen:
            parameters = self._parameters(names[index], vector)
            steps.append(ActionStep(names[index], snapped[index], parameters, self.repetitions))
        return tuple(steps)

    def _parameters(self, name: str, vector: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
        width = self._widths[name]
        start = self._offsets[name] + 1
        active = []
        for at in range(start, start + self.repetitions * width, width):
            if at == start or _snap(vector[at]) >= TRIGGER:
                parameters = vector[at + 1 : at + width]
                active.append(tuple([round(value * GRID) / GRID for value in parameters]))
        return tuple(active)

    def effective(self, action: Action) -> Action:
        """Return an action that does the same, with every coordinate without effect at one half.

        Those are the parameters of transformations that are not associated and of repetitions
        that are not triggered, the trigger of the first repetition, which is always active, and
        all that is for transformations not in use. What a search has there is chance.
        """
        vector = [_NEUTRAL] * self.dimension
        for name in self.selection.names:
            vector[self._offsets[name]] = action.vector[self._offsets[name]]
        for step in self.decode(action):
            width, start = self._widths[step.transformation], self.block(step.transformation).start
            for at in range(start, start + self.repetitions * width, width):
                if at > start:
                    vector[at] = action.vector[at]
                if at == start or _snap(vector[at]) >= TRIGGER:
                    vector[at + 1 : at + width] = action.vector[at + 1 : at + width]
        return Action(tuple(vector), action.k)

    def uniform_inertia(self, k: int) -> float:
        """Return the `inertia` of uniform draws that associate ``k`` transformations.

        Every importance counts; parameters do as often as they have an effect. For the six and
        ``m = 2`` that is (6 + 5 k) / 12, of D / 12 for whole vectors.
        """
        self._check_k(k)
        names = self.selection.names
        further = self.repetitions - 1
        effective = sum(
            self.parameters(name) + further * (1 + self.parameters(name) * (1 - TRIGGER))
            for name in names
        )
        return (len(names) + effective * min(k / len(names), 1.0)) / 12

    def encode(self, steps: Sequence[ActionStep]) -> Action:
        """Return an action that `decode` turns into ``steps`` again.

        Transformations left out get importance 0 and zeros, active repetitions trigger 1.

        Raises:
            ValueError: no or repeated steps, wrong number of parameters or repetitions,
                or importances that would let a left-out transformation go first.
        """
        vector = [0.0] * self.dimension
        for step in steps:
            start = self._offsets[step.transformation]
            width = self._widths[step.transformation]
            if not 1 <= len(step.repetitions) <= self.repetitions:
                raise ValueError(f"{step.transformation} takes 1 to {self.repetitions} repetitions")
            vector[start] = step.importance
            for index, parameters in enumerate(step.repetitions):
                if len(parameters) != width - 1:
                    raise ValueError(f"{step.transformation} takes {width - 1} parameters")
                at = start + 1 + index * width
                vector[at : at + width] = [1.0, *parameters]
        action = Action(tuple(vector), len(steps))
        if self.decode(action) != tuple(steps):
            raise ValueError("these steps are not what any action decodes to")
        return action

    def _check_k(self, k: int) -> None:
        if not 1 <= k <= self.most:
            raise UserError(
                f"k, the number of associated transformations, must be from 1 to {self.most}, "
                f"not {k}"
            )


def inertia(space: ActionSpace, actions: Sequence[Action]) -> float:
    """Return the sum over dimensions of the variance of actions (0 for none).

    Coordinates without effect are set alike for every search, see `ActionSpace.effective`;
    variants whose edits were drawn one by one have no action.
    """
    vectors = [space.effective(action).vector for action in actions if action.vector]
    return float(np.var(np.array(vectors), axis=0).sum()) if vectors else 0.0


def _snap(value: float) -> float:
    return round(value * GRID) / GRID
