"""The scorer: its chances are chances, they add up as noisy-or, and torch has the same network."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scorers import random_weights
from utterances import TURNS, perturber, source_of

from pytest_dstfuzz.agents.policies import Floats
from pytest_dstfuzz.agents.scorers import (
    ScoredAttempt,
    Scorer,
    SlotView,
    chance_of_any,
    chance_of_variant,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.search.candidates import candidates_of, together
from pytest_dstfuzz.trackers.tracker import Prediction

CHANCES = st.tuples(st.integers(1, 5), st.integers(1, 12)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(0, 255 / 256, width=32))
)


@cache
def view(number: int) -> SlotView:
    turn = TURNS[number]
    state = BeliefState(turn.state or {})
    source = source_of((turn.user, tuple(sorted(state.values())), turn.system))
    candidates = candidates_of(perturber("natural"), source, np.random.default_rng(0))
    return SlotView(source, candidates, Prediction(state), turn.system, turn.index)


def attempts_at(one: SlotView) -> list[ScoredAttempt]:
    """Return two attempts at a turn: one that took everything away, one without an answer."""
    made = [together(perturber("natural"), one._source, [item]) for item in one.candidates[:2]]
    answers = (Prediction(BeliefState()), None)
    return [ScoredAttempt(variant, answer) for variant, answer in zip(made, answers, strict=False)]


@given(CHANCES, st.data())
def test_more_edits_never_lower_the_chance(chances: Floats, data: st.DataObject) -> None:
    single = chance_of_any(chances)
    assert single.shape == chances.shape[1:]
    assert ((single >= 0) & (single <= 1)).all()
    # Any slot is likelier than each.
    assert (single >= chances.max(axis=0) - 1e-6).all()
    places = data.draw(st.permutations(range(len(single))))
    rising = [chance_of_variant(single, places[:count]) for count in range(len(places) + 1)]
    assert rising[0] == 0
    assert all(0 <= one <= 1 for one in rising)
    assert all(before <= after for before, after in pairwise(rising))


@given(CHANCES)
def test_a_slot_that_broke_earns_nothing(chances: Floats) -> None:
    without = np.delete(chances, 0, axis=0)
    chances[0] = 0.0
    expected = chance_of_any(without) if len(without) else np.zeros(chances.shape[1])
    assert chance_of_any(chances) == pytest.approx(expected, abs=1e-6)


def test_noisy_or_by_hand() -> None:
    single = chance_of_any(np.array([[0.5, 0.0], [0.5, 0.2]], np.float32))
    assert single == pytest.approx([0.75, 0.2])
    assert chance_of_variant(single, [0, 1]) == pytest.approx(0.8)


@pytest.mark.parametrize("spread", [0.0, 0.3, 100.0])
def test_chances_are_never_certain(spread: float) -> None:
    """However large the weights are: at the largest spread logits are in the thousands."""
    for number in range(5):
        one = view(number)
        chances = Scorer(random_weights(number, spread)).chances(one, attempts_at(one))
        assert chances.shape == (len(one.slots), len(one.candidates))
        assert ((chances >= 0) & (chances < 1)).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), number=st.integers(0, len(TURNS) - 1))
def test_torch_has_the_same_network(seed: int, number: int) -> None:
    torch = pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training.memory import Batch  # noqa: PLC0415
    from pytest_dstfuzz.agents.training.train_bandit import FitConfig, Network  # noqa: PLC0415

    generator = torch.Generator().manual_seed(seed)
    network = Network(FitConfig(wide=8, narrow=4), generator)
    with torch.no_grad():
        # As after some training: no bias is 0.
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    one = view(number)
    if not one.candidates:
        return
    attempts = attempts_at(one)
    slots, edits = len(one.slots), len(one.candidates)
    batch = Batch(
        slots=torch.from_numpy(np.repeat(one.of_slots, edits, axis=0)),
        edits=torch.from_numpy(np.tile(one.of_edits, (slots, 1))),
        pairs=torch.from_numpy(one.pairs(attempts).reshape(slots * edits, -1)),
        group=torch.arange(slots * edits),
        changed=torch.zeros(slots * edits),
        attempts=1,
    )
    with torch.no_grad():
        expected = torch.sigmoid(network(batch)).numpy().reshape(slots, edits)
    found = Scorer(network.weights()).chances(one, attempts)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_a_network_begins_with_few_changes() -> None:
    torch = pytest.importorskip("torch")
    from pytest_dstfuzz.agents.training.train_bandit import FitConfig, Network  # noqa: PLC0415

    network = Network(FitConfig(), torch.Generator().manual_seed(0))
    chances = Scorer(network.weights()).chances(view(0), [])
    assert 0.001 < chances.mean() < 0.1
