"""The network of the assistant in numpy.

Every turn is computed separately, so that an answer does not depend on other requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from io import BytesIO
from typing import Final

import numpy as np

from pytest_dstfuzz.models.assistant.features import (
    Array,
    SlotsAsked,
    ToolsAsked,
    TurnText,
    ValuesAsked,
)

_HEADS: Final = 4
_LAYERS: Final = 2
#: Number of fixed answers before those for values and candidates: keep, any value, a span.
FIXED: Final = 3
_LOWEST: Final = np.float32(-9)


@dataclass(frozen=True)
class Weights:
    """The network's weights by name, as ``tools.assistant.train`` writes them."""

    by_name: Mapping[str, Array]
    common: Mapping[str, int]
    #: First 12 hexadecimal digits of the file's SHA-256.
    digest: str

    @classmethod
    def read(cls, content: bytes) -> Weights:
        """Read the weights from the content of a file."""
        with np.load(BytesIO(content), allow_pickle=False) as file:
            words = bytes(file["common_words"]).decode("utf-8").split("\n")
            named = {
                name: file[name].astype(np.float32) for name in file.files if name != "common_words"
            }
        places = {word: place for place, word in enumerate(filter(None, words), 1)}
        return cls(named, places, hashlib.sha256(content).hexdigest()[:12])


@cache
def load_shipped_weights() -> Weights:
    """Return the shipped weights."""
    file = resources.files("pytest_dstfuzz.models") / "resources" / "assistant" / "assistant.npz"
    return Weights.read(file.read_bytes())


@dataclass(frozen=True)
class SlotScores:
    """Scores of one slot's possible answers, ``[FIXED + values + candidates]``."""

    answers: Array
    #: Scores of the first and the last token of a span ``[tokens, 2]``.
    ends: Array


class TurnNetwork:
    """Encodes one turn, and scores the tools, the slots and the call."""

    def __init__(self, weights: Weights, turn: TurnText) -> None:
        self._weights, self._turn = weights, turn
        self._user = slice(turn.heard + 1, len(turn.read))
        self._heard = slice(0, turn.heard)

    def _linear(self, name: str, x: Array) -> Array:
        named = self._weights.by_name
        return np.asarray(x @ named[f"{name}.weight"].T + named[f"{name}.bias"], np.float32)

    def _norm(self, name: str, x: Array) -> Array:
        named = self._weights.by_name
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        return np.asarray(
            centred / spread * named[f"{name}.weight"] + named[f"{name}.bias"], np.float32
        )

    @cached_property
    def _states(self) -> Array:
        turn, common = self._turn, self._weights.common
        places = [common.get(token.lower, 0) for token in turn.read]
        rows = self._weights.by_name["common.weight"][places]
        x = self._linear("enter", np.concatenate([turn.vectors, rows, turn.shapes], axis=1))
        for number in range(_LAYERS):
            y = self._linear(f"conv.{number}", _beside(self._norm(f"conv_norm.{number}", x)))
            width = y.shape[1] // 2
            x = x + y[:, :width] * _sigmoid(y[:, width:])
        x = x + self._linear("attended", self._attend(self._norm("attend_norm", x)))
        wide = _gelu(self._linear("widen", self._norm("widen_norm", x)))
        return self._norm("leave_norm", x + self._linear("narrow", wide))

    def _attend(self, x: Array) -> Array:
        count, depth = x.shape
        parts = self._linear("attend", x).reshape(count, 3, _HEADS, -1)
        q, k, v = parts.transpose(1, 2, 0, 3)
        shares = _softmax(q @ k.transpose(0, 2, 1) / np.float32((depth / _HEADS) ** 0.5))
        return np.asarray((shares @ v).transpose(1, 0, 2).reshape(count, depth), np.float32)

    @cached_property
    def _keys(self) -> Array:
        return self._linear("token_tool", self._states)

    def tools(self, asked: ToolsAsked) -> Array:
        """Return the scores ``[1 + tools]``: of calling no tool first, then of each tool."""
        keys = self._keys
        queries = self._linear("tool", asked.vectors.reshape(len(asked.vectors), -1))
        shares = _softmax(queries @ keys.T / np.float32(keys.shape[1] ** 0.5))
        seen = shares @ keys
        inner = np.concatenate([seen * queries, seen, asked.facts], axis=1)
        tools = self._linear("tool_out", _gelu(self._linear("tool_in", inner)))[:, 0]
        none = self._linear("none", _most(keys[self._user]))
        return np.concatenate([none, tools])

    def slots(self, asked: SlotsAsked) -> list[SlotScores]:
        """Return the scores of the possible answers for every slot."""
        if not len(asked.vectors):
            return []
        about = asked.vectors.reshape(len(asked.vectors), -1)
        slots = self._linear("slot", np.concatenate([about, asked.facts], axis=1))
        times = self._linear("slot_times", about)
        states = self._states
        u = self._linear("token_plus", states) + slots[:, None] + self._linear("pair", asked.pairs)
        u = _gelu(u + self._linear("token_times", states) * times[:, None])
        u = u + _gelu(self._linear("mix", _beside(u)))
        shares = _softmax(self._linear("look", u)[..., 0])
        seen = (shares[:, None] @ u)[:, 0]
        user, heard = _most(u[:, self._user]), _most(u[:, self._heard])
        inner = np.concatenate([seen, user, heard, slots, asked.facts], axis=1)
        g = _gelu(self._linear("gather", inner))
        ends = self._linear("ends", _gelu(u + self._linear("back", g)[:, None]))
        fixed = self._linear("fixed", g)
        found = []
        for number, values in enumerate(asked.values):
            answers = [fixed[number]]
            if len(values.vectors):
                answers.append(self._values(u[number], g[number], values))
            facts = asked.candidates[number][1]
            if len(facts):
                wide = np.broadcast_to(g[number], (len(facts), g.shape[1]))
                inner = np.concatenate([wide, facts], axis=1)
                hidden = _gelu(self._linear("candidate_in", inner))
                answers.append(self._linear("candidate_out", hidden)[:, 0])
            found.append(SlotScores(np.concatenate(answers), ends[number]))
        return found

    def _values(self, u: Array, g: Array, asked: ValuesAsked) -> Array:
        values = self._linear("value", asked.vectors)
        met = values @ u.T / np.float32(u.shape[1] ** 0.5)
        by = [
            np.maximum(met[:, part].max(axis=1, initial=_LOWEST), _LOWEST)[:, None]
            for part in (self._user, self._heard)
        ]
        wide = np.broadcast_to(g, values.shape)
        said = [
            asked.hits[:, part] @ u[part] / np.maximum(asked.hits[:, part].sum(1), 1)[:, None]
            for part in (self._user, self._heard)
        ]
        inner = np.concatenate([wide * values, values, wide, asked.facts, *by, *said], axis=1)
        return self._linear("value_out", _gelu(self._linear("value_in", inner)))[:, 0]

    def call(self, tool: Array, facts: Array) -> float:
        """Return the score for calling a tool now.

        Positive means yes. ``tool`` is ``[2, WIDTH]``.
        """
        keys = self._keys
        looks = self._linear("call_look", keys)
        seen = []
        for number, part in enumerate((self._user, self._heard)):
            if len(keys[part]):
                seen.append(_softmax(looks[part, number]) @ keys[part])
            else:
                seen.append(np.zeros(keys.shape[1], np.float32))
        inner = np.concatenate([*seen, self._linear("tool", tool.reshape(-1)), facts])
        return float(self._linear("call_out", _gelu(self._linear("call_in", inner)))[0])


def _gelu(x: Array) -> Array:
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(np.float32(0.5) * x * (1 + np.tanh(inner)), np.float32)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(np.float32(0.5) * x)), np.float32)


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)


def _beside(x: Array) -> Array:
    """Append the features of both neighbours to the features of each token."""
    zero = np.zeros_like(x[..., :1, :])
    before = np.concatenate([zero, x[..., :-1, :]], axis=-2)
    after = np.concatenate([x[..., 1:, :], zero], axis=-2)
    return np.concatenate([before, x, after], axis=-1)


def _most(x: Array) -> Array:
    """Return the maximum over tokens, or 0 if there are no tokens."""
    if not x.shape[-2]:
        return np.zeros((*x.shape[:-2], x.shape[-1]), np.float32)
    return np.asarray(x.max(axis=-2), np.float32)
