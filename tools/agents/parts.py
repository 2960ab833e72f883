"""Measures how much each half of a trained agent helps, by replacing the other half by chance.

``python -m tools.agents.parts A B C -- --model trade --data PATH ...`` runs ``dstfuzz experiment
rq3`` with the options after the dashes, and compares ``agent`` (the policies A, B and C) with

- ``random``: without either half;
- ``critic``: parameters are drawn uniformly, the Q network ranks the transformations with them;
- ``parameters``: the parameter network chooses the parameters, and the ranking of the
  transformations is random.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from pytest_dstfuzz.agents.policies import (
    COUNT,
    Exploration,
    Floats,
    Policy,
    PolicyChoice,
    SavedPolicy,
    Trace,
    TurnView,
)
from pytest_dstfuzz.agents.searches import AgentSearch, find_policy
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.papers.rq3 import main as rq3
from pytest_dstfuzz.search.registry import register_search

#: Name of the search -> what is drawn in it.
_HALVES: Final = {"critic": "parameters", "parameters": "ranking"}


class HalfPolicy(Policy):
    """A policy with one half that is drawn anew at every attempt."""

    def __init__(self, whole: Policy, drawn: str) -> None:
        self._whole, self._drawn = whole, drawn
        self._coin = np.random.default_rng(0)  # Replaced before it is used.

    def parameters(self, state: Floats) -> Floats:
        """Return the parameters of the network, or uniform random ones."""
        found = self._whole.parameters(state)
        if self._drawn != "parameters":
            return found
        return self._coin.random(len(found), np.float32)

    def values(self, state: Floats, vector: Floats) -> Floats:
        """Return the Q-values of the network, or uniform random ones."""
        if self._drawn != "ranking":
            return self._whole.values(state, vector)
        return self._coin.random(COUNT, np.float32)

    def choose(
        self,
        view: TurnView,
        trace: Trace,
        k: int,
        rng: np.random.Generator,
        explore: Exploration,
    ) -> PolicyChoice:
        """Choose as the whole policy does, but with one half from the attempt's random stream."""
        (self._coin,) = rng.spawn(1)
        # A uniform draw needs no noise around it.
        spread = 0.0 if self._drawn == "parameters" else explore.spread
        return super().choose(view, trace, k, rng, replace(explore, spread=spread))


class HalfAgent(AgentSearch):
    """An agent whose policy has one random half."""

    name = "half"

    def __init__(self, saved: SavedPolicy, name: str, seed: int, k: int) -> None:
        policy = HalfPolicy(saved.policy, _HALVES[name.partition("-")[0]])
        super().__init__(policy, seed, k, saved.about.order)
        self.name = name


def main(arguments: Sequence[str]) -> int:
    """Run the command with its arguments."""
    dashes = arguments.index("--") if "--" in arguments else len(arguments)
    paths, options = arguments[:dashes], arguments[dashes + 1 :]
    if not paths or not options:
        sys.stderr.write(__doc__ or "")
        return 4
    searches = ["random", *(f"agent:{path}" for path in paths)]
    try:
        for number, path in enumerate(paths):
            saved = find_policy(f"agent:{path}")
            for half in _HALVES:
                name = f"{half}-{number}"
                register_search(name, partial(HalfAgent, saved, name))
                searches.append(f"{half}={name}")
        return rq3([*options, "--searches", ",".join(searches)])
    except DstFuzzError as error:
        sys.stderr.write(f"{error}\n")
        return 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
