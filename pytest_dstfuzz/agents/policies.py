"""Trained policies in numpy: their input features, decisions and files."""

from __future__ import annotations

import hashlib
import math
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz import __version__
from pytest_dstfuzz.config import VALIDITIES
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.models.weights import WeightsFile, check_shapes, read_weights, write_weights
from pytest_dstfuzz.perturb.draft import FREE, KEPT, TYPO, Source
from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.engine import GRID, ORDERS, ActionSpace
from pytest_dstfuzz.perturb.operators import Candidates
from pytest_dstfuzz.perturb.words import Action, Variant
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.transformations import TRANSFORMATIONS

Floats = npt.NDArray[np.float32]

#: Hash buckets of slot names.
SLOT_BUCKETS: Final = 16
#: Scale of impurity differences. As means over slots, they are only about a thousandth.
IMPURITY_SCALE: Final = 30.0

#: Features of a turn and of the earlier attempts at it.
STATE_SIZE: Final = 16 + len(TRANSFORMATIONS) + SLOT_BUCKETS


class Trace:
    """Summarises the results of earlier attempts at a turn, as input for a policy."""

    __slots__ = ("attempts", "changed", "impurities", "touched")

    def __init__(self, words: int) -> None:
        #: [words], whether an answered attempt edited the word.
        self.touched = np.zeros(words, bool)
        #: Scaled impurity differences of all answered attempts, in order.
        self.impurities: list[float] = []
        self.attempts = 0
        #: Number of attempts that changed a slot.
        self.changed = 0

    def add(
        self, source: Source, variant: Variant, impurity: float, *, answered: bool, changes: int
    ) -> None:
        """Record the result of one more attempt."""
        self.attempts += 1
        if not answered:
            return
        scaled = max(-1.0, min(impurity * IMPURITY_SCALE, 1.0))
        self.impurities.append(scaled)
        self.changed += changes > 0
        self.touched[list(find_edited_words(source, variant))] = True


def find_edited_words(source: Source, variant: Variant) -> tuple[int, ...]:
    """Return the sorted indices of the words of the clean utterance that a variant edits."""
    starts = source.parts.starts
    found: set[int] = set()
    if not starts:
        return ()
    for start, end in source_spans(variant.edits):
        first = max(bisect_right(starts, start) - 1, 0)
        found.update(range(first, max(bisect_right(starts, max(end - 1, start)) - 1, first) + 1))
    return tuple(sorted(found))


class TurnView:
    """Computes the features of one turn for many attempts.

    ``menus`` comes from `Perturber.menus`.
    """

    def __init__(
        self,
        source: Source,
        menus: dict[str, Candidates],
        clean: Prediction | None,
        system: str,
        turn_index: int,
    ) -> None:
        self.source = source
        # Transformations that the run does not use have no menu.
        found = (menus.get(name, Candidates((), ())) for name in TRANSFORMATIONS)
        self._counts = [sum(len(words) for words in menu.words) for menu in found]
        #: [6], transformations with at least one applicable position.
        self.available = np.array([bool(count) for count in self._counts])
        self._static = self._turn_features(clean, system, turn_index)

    def _turn_features(self, clean: Prediction | None, system: str, turn_index: int) -> list[float]:
        tokens = self.source.draft.tokens
        count = max(len(tokens), 1)
        state = clean.state if clean else {}
        impurities = list((clean.impurities or {}).values()) if clean else []
        slots = Counter(bucket(slot, SLOT_BUCKETS) for slot in state)
        return [
            len(tokens) / 20,
            self.source.draft.quota / 5,
            sum(token.distance == 0 for token in tokens) / count,
            sum(token.role == TYPO for token in tokens) / count,
            sum(token.role in (FREE, KEPT) for token in tokens) / count,
            min(turn_index / 10, 1.0),
            float(not system),
            len(state) / 10,
            IMPURITY_SCALE * sum(impurities) / len(impurities) if impurities else 0.0,
            max(impurities, default=0.0),
            *(math.log1p(number) / 6 for number in self._counts),
            *(slots[number] for number in range(SLOT_BUCKETS)),
        ]

    def state(self, trace: Trace, k: int) -> Floats:
        """Return the features of a turn before the next attempt, of shape [STATE_SIZE]."""
        known = trace.impurities
        moving = [
            k / len(TRANSFORMATIONS),
            math.log1p(trace.attempts) / math.log(33),
            min(trace.changed, 4) / 4,
            max(known, default=0.0),
            sum(known) / len(known) if known else 0.0,
            float(trace.touched.mean()) if len(trace.touched) else 0.0,
        ]
        return np.array([*moving, *self._static], np.float32)


@lru_cache(maxsize=1 << 15)
def bucket(name: str, buckets: int) -> int:
    """Hash a name to a number from 0 to ``buckets - 1``. It is equal in every process."""
    return zlib.crc32(name.encode()) % buckets


SPACE: Final = ActionSpace()
COUNT: Final = len(TRANSFORMATIONS)
#: Transformation -> its coordinates in the action vector, without the importance.
BLOCKS: Final = tuple(SPACE.block(name) for name in TRANSFORMATIONS)
#: Positions of the importances in the action vector.
IMPORTANCES: Final = tuple(block.start - 1 for block in BLOCKS)
#: Input size of a pass: the state, and a vector with the parameters of one transformation.
PASS_SIZE: Final = STATE_SIZE + SPACE.dimension


class PolicyChoice(NamedTuple):
    """An action that a policy chose, with the values that the critic network gives."""

    state: Floats  #: [STATE_SIZE], state before the action.
    action: Action  #: Point of the action space.
    vector: Floats  #: [D], the action as an array.
    chosen: npt.NDArray[np.bool_]  #: [6], the chosen transformations.
    values: Floats  #: [6], Q-values.


@dataclass(frozen=True, slots=True)
class Exploration:
    """The strength of the random noise that a policy adds to the best action to explore."""

    epsilon: float = 0.0  #: Probability of a uniform action.
    spread: float = 0.0  #: Standard deviation of the noise on the parameters.
    #: Standard deviation of the noise on the Q-values, relative to that of the Q-values.
    temperature: float = 0.0


#: The first attempt at a turn exploits the policy.
FIRST: Final = Exploration()
#: Later attempts and redraws need noise, or they would repeat the first one.
LATER: Final = Exploration(spread=0.2, temperature=0.5)


class Policy:
    """Chooses actions with the weights of two networks, a parameter network and a critic.

    Both networks are perceptrons with ReLU between the layers. Their weights are named
    ``parameters.N.weight`` and ``.bias``, ``critic.N.weight`` and ``.bias``.
    """

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self._actor = _layers(weights, "parameters")
        self._critic = _layers(weights, "critic")

    def parameters(self, state: Floats) -> Floats:
        """Return the parameters that the network gives to all transformations, of shape [D]."""
        found: Floats = np.clip(_forward(self._actor, state[None, :])[0], 0.0, 1.0)
        return found

    def values(self, state: Floats, vector: Floats) -> Floats:
        """Return the Q-value of every transformation, of shape [6].

        Each value needs a separate pass of the network.
        """
        passes = np.zeros((COUNT, PASS_SIZE), np.float32)
        passes[:, :STATE_SIZE] = state
        for number, block in enumerate(BLOCKS):
            passes[number, STATE_SIZE + block.start : STATE_SIZE + block.stop] = vector[block]
        # Only output ``n`` of pass ``n`` is used.
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
        """Choose ``k`` transformations and the parameters of their edits."""
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
    """Return Q-values scaled to [0, 1] by min-max. Values of -inf become 0."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(len(values), np.float32)
    low, high = values[finite].min(), values[finite].max()
    scaled = (values - low) / (high - low) if high > low else np.ones(len(values), np.float32)
    # At least one grid step, so that every available transformation ranks above the others.
    return np.where(finite, np.maximum(scaled, 1 / GRID), 0.0).astype(np.float32)


def snap(values: Floats) -> Floats:
    """Clip coordinates to [0, 1] and round them to the grid."""
    return (np.rint(np.clip(values, 0.0, 1.0) * GRID) / GRID).astype(np.float32)


def _around(vector: Floats, rng: np.random.Generator, spread: float) -> Floats:
    """Add noise to parameters. Reflect values that leave [0, 1].

    Clipping would move half of the draws around a border parameter onto the border.
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


#: Increase when the file or the meaning of a feature changes. Version 1 scored sampled candidates.
FORMAT_VERSION: Final = 2
#: File name of a policy in its training folder.
POLICY_FILE: Final = "agent.safetensors"

_FORMAT: Final = "dstfuzz-agent"
#: Input and output sizes of the two perceptrons of a policy.
_ENDS: Final = {"parameters": (STATE_SIZE, SPACE.dimension), "critic": (PASS_SIZE, COUNT)}
_KIND: Final = "policy of the agent"

Weights = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class PolicyAbout:
    """Facts about a policy's training: tracker, data and settings."""

    tracker: str  #: Tracker of the training, as named by the user.
    tracker_fingerprint: str  #: Fingerprint of its correct answers on ``data``.
    data: str  #: Data set and splits of the training dialogues.
    held_out: tuple[str, ...]  #: Ids of the dialogues of ``data`` excluded from training.
    order: str  #: Order of the position parameters, ``reading`` or ``distance``.
    validity: str  #: Validity profile.
    attack: str  #: Attack design.
    reward: str  #: Name of the reward.
    ks: tuple[int, ...]  #: Numbers of combined transformations in training.
    attempts: int  #: Attempts per turn in training.
    seed: int  #: Seed of the training.
    calls: int  #: Number of contexts sent to the tracker, including clean ones.
    version: str = __version__  #: Version of the package.


class SavedPolicy(NamedTuple):
    """A policy read from a file."""

    policy: Policy  #: Ready to choose.
    about: PolicyAbout  #: Origin of the policy.
    fingerprint: str  #: First 12 hexadecimal digits of the file's SHA-256.


def save_policy(path: Path, weights: Weights, about: PolicyAbout) -> None:
    """Write a policy atomically.

    The same arguments give the same bytes. Weights (see `Policy`) have 16 or 32 bits.
    """
    described = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "action_space": _action_space(),
        "features": _features(),
        "about": asdict(about),
    }
    write_weights(path, weights, described)


def load_policy(path: str | Path) -> SavedPolicy:
    """Read a policy from its file or its training folder."""
    path = Path(path)
    if path.is_dir():
        path /= POLICY_FILE
    file = read_weights(_KIND, path, _FORMAT, FORMAT_VERSION, "dstfuzz train-agent")
    about = _about(file)
    _check_weights(file)
    policy = Policy({name: weight.astype(np.float32) for name, weight in file.tensors.items()})
    return SavedPolicy(policy, about, hashlib.sha256(file.content).hexdigest()[:12])


def _action_space() -> dict[str, Any]:
    blocks = {name: SPACE.block(name) for name in TRANSFORMATIONS}
    bounds = {name: [block.start, block.stop] for name, block in blocks.items()}
    return {"dimension": SPACE.dimension, "blocks": bounds}


def _features() -> dict[str, int]:
    return {"state": STATE_SIZE, "pass": PASS_SIZE}


def _about(file: WeightsFile) -> PolicyAbout:
    """Check the metadata in a policy's file and return them."""
    described = file.described
    for name, ours in (("action_space", _action_space()), ("features", _features())):
        theirs = described.get(name)
        if theirs == ours:
            continue
        if not isinstance(theirs, dict):
            raise file.bad(f"its metadata lacks {name!r}")
        wrong = next(part for part, value in ours.items() if theirs.get(part) != value)
        place = f"{wrong} of its {name.replace('_', ' ')}"
        if isinstance(ours[wrong], dict):
            raise file.bad(f"{place} differ from those in this release: train it again")
        raise file.bad(
            f"{place} is {theirs.get(wrong)}, but {ours[wrong]} in this release: train it again"
        )
    try:
        about = from_json(PolicyAbout, described.get("about", {}))
    except ValueError as error:
        raise file.bad(f"its metadata is damaged: {error}") from None
    for name, valid in (("order", ORDERS), ("validity", VALIDITIES)):
        if (given := getattr(about, name)) not in valid:
            raise file.bad(f"its {name} is {given!r}, which is not one of {', '.join(valid)}")
    return about


def _check_weights(file: WeightsFile) -> None:
    """Raise an error if the weights are not two perceptrons of the expected sizes."""
    expected: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in _ENDS.items():
        layers, size = 0, inputs
        while not layers or f"{name}.{layers}.weight" in file.tensors:
            matrix, bias = f"{name}.{layers}.weight", f"{name}.{layers}.bias"
            rows = file.rows(matrix)
            expected |= {matrix: (rows, size), bias: (rows,)}
            layers, size = layers + 1, rows
        if size != outputs:
            raise file.bad(f"{name} has {size} outputs, not {outputs}")
    check_shapes(file, expected)
