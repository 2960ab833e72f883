"""A policy chooses: importances, grid, exploration, and the search that it makes."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from chatterbots import ONTOLOGY, KeywordBot, data_of, talks
from hypothesis import given
from hypothesis import settings as laws
from hypothesis import strategies as st

from pytest_dstfuzz.agents.policies import (
    BLOCKS,
    COUNT,
    FIRST,
    IMPORTANCES,
    LATER,
    PASS_SIZE,
    SPACE,
    STATE_SIZE,
    Exploration,
    Policy,
    Trace,
    TurnView,
    importances,
    snap,
)
from pytest_dstfuzz.agents.searches import AgentSearch
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.engine import GRID, ActionSpace, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.search.protocol import Feedback, SearchTask
from pytest_dstfuzz.selection import select
from pytest_dstfuzz.transformations import TRANSFORMATIONS

TEXT = "could you please find me a lovely chinese place in the north of town"
DIALOGUE = talks(1)[0]


@lru_cache
def perturber_of(only: tuple[str, ...] = ()) -> Perturber:
    return Perturber(
        load_lexicon(), validity="strict", ontology=ONTOLOGY, order="distance", edits=only
    )


def policy_of(seed: int = 0, hidden: int = 24, *, middling: bool = False) -> Policy:
    """Return a policy of random weights; middling parameters are all 0.5, others at the border."""
    rng = np.random.default_rng(seed)
    sizes = {
        "parameters": (STATE_SIZE, hidden, SPACE.dimension),
        "critic": (PASS_SIZE, hidden, hidden // 2, COUNT),
    }
    weights = {}
    for name, wide in sizes.items():
        for layer, (before, after) in enumerate(pairwise(wide)):
            weights[f"{name}.{layer}.weight"] = rng.normal(0, 0.3, (after, before))
            weights[f"{name}.{layer}.bias"] = rng.normal(0, 0.3, after)
    if middling:
        weights["parameters.1.weight"].fill(0.0)
        weights["parameters.1.bias"].fill(0.5)
    return Policy(weights)


def view_of(text: str = TEXT, only: tuple[str, ...] = ()) -> TurnView:
    perturber = perturber_of(only)
    source = perturber.prepare(text)
    return TurnView(source, perturber.menus(source), None, "", 0)


@laws(max_examples=60, deadline=None)
@given(
    st.integers(0, 999),
    st.integers(1, 6),
    st.sampled_from([TEXT, "", "ok", "thank you very much"]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.2, 3.0]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([(), ("char_drop",), ("word_insert", "char_insert")]),
)
def test_a_choice_is_a_point_of_the_space(
    seed: int,
    k: int,
    text: str,
    epsilon: float,
    spread: float,
    temperature: float,
    only: tuple[str, ...],
) -> None:
    policy, view = policy_of(seed % 3), view_of(text, only)
    trace = Trace(len(view.source.words))
    explore = Exploration(epsilon, spread, temperature)
    choice = policy.choose(view, trace, k, np.random.default_rng(seed), explore)
    assert choice.action.k == k
    assert choice.action.vector == tuple(choice.vector.astype(float).tolist())
    assert all((value * GRID).is_integer() for value in choice.action.vector)
    # What was remembered as chosen is what the perturber carries out.
    steps = {step.transformation for step in ActionSpace(select(only)).decode(choice.action)}
    chosen = {name for name, yes in zip(TRANSFORMATIONS, choice.chosen, strict=True) if yes}
    there = {name for name, yes in zip(TRANSFORMATIONS, view.available, strict=True) if yes}
    assert chosen == steps & there
    assert len(chosen) == min(k, len(there))
    again = policy.choose(view, trace, k, np.random.default_rng(seed), explore)
    assert again.action == choice.action
    assert (choice.values == policy.values(choice.state, choice.vector)).all()


def test_without_exploring_the_best_k_are_taken() -> None:
    """The thesis' form: what the parameter network says, the k of the largest Q-values."""
    policy, view = policy_of(), view_of()
    trace = Trace(len(view.source.words))
    for k in range(1, 7):
        choice = policy.choose(view, trace, k, np.random.default_rng(0), FIRST)
        state = view.state(trace, k)
        expected = snap(policy.parameters(state))
        for block in BLOCKS:
            assert (choice.vector[block] == expected[block]).all()
        values = policy.values(state, expected)
        assert (choice.vector[list(IMPORTANCES)] == snap(importances(values))).all()
        order = np.argsort(-values, kind="stable")
        assert set(np.flatnonzero(choice.chosen)) == set(order[:k])
        other = policy.choose(view, trace, k, np.random.default_rng(1), FIRST)
        assert other.action == choice.action


def test_later_attempts_lie_around_the_first() -> None:
    policy, view = policy_of(middling=True), view_of()
    trace = Trace(len(view.source.words))
    first = policy.choose(view, trace, 2, np.random.default_rng(0), FIRST)
    later = [policy.choose(view, trace, 2, np.random.default_rng(s), LATER) for s in range(300)]
    assert len({choice.action for choice in later}) == 300
    inside = [i for block in BLOCKS for i in range(block.start, block.stop)]
    found = np.array([choice.vector[inside] for choice in later])
    assert np.abs(found.mean(axis=0) - 0.5).max() < 0.05
    assert np.abs(found.std(axis=0) - LATER.spread).max() < 0.04
    # Others come too, but the best are the most frequent.
    taken = np.mean([choice.chosen for choice in later], axis=0)
    assert (taken > 0).sum() > 2
    assert taken[first.chosen].min() > np.delete(taken, np.flatnonzero(first.chosen)).max()


def test_parameters_at_the_border_move_inwards() -> None:
    policy, view = policy_of(), view_of()
    trace = Trace(len(view.source.words))
    state = view.state(trace, 1)
    border = [i for block in BLOCKS for i in range(block.start, block.stop)]
    border = [i for i in border if policy.parameters(state)[i] in (0.0, 1.0)]
    assert border
    draws = [policy.choose(view, trace, 1, np.random.default_rng(s), LATER) for s in range(50)]
    moved = np.array([choice.vector[border] for choice in draws])
    assert ((moved > 0) & (moved < 1)).mean() > 0.95


def test_epsilon_is_the_share_of_uniform_actions() -> None:
    view = view_of()
    trace = Trace(len(view.source.words))
    rng = np.random.default_rng(2)
    one, other = policy_of(0), policy_of(1)

    def blocks(policy: Policy, seed: int, epsilon: float) -> tuple[float, ...]:
        explore = Exploration(epsilon)
        vector = policy.choose(view, trace, 3, np.random.default_rng(seed), explore).action.vector
        return tuple(value for i, value in enumerate(vector) if i not in IMPORTANCES)

    seeds = rng.integers(0, 10**6, 250).tolist()
    # A uniform action is the same for every policy.
    share = np.mean([blocks(one, seed, 0.3) == blocks(other, seed, 0.3) for seed in seeds])
    assert 0.22 < share < 0.38
    uniform = np.array([blocks(one, seed, 1.0) for seed in seeds])
    assert np.abs(uniform.mean(axis=0) - 0.5).max() < 0.08
    assert np.abs(uniform.var(axis=0) - 1 / 12).max() < 0.025


@given(st.lists(st.floats(-1e3, 1e3, width=32) | st.just(-np.inf), min_size=6, max_size=6))
def test_importances_rank_like_values(values: list[float]) -> None:
    given_ = np.array(values, np.float32)
    found = importances(given_)
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    finite = np.isfinite(given_)
    assert (found[~finite] == 0).all()
    assert (found[finite] >= 1 / GRID).all()
    if finite.any():
        assert found[finite][given_[finite].argmax()] == pytest.approx(1.0)
        ranked = given_[finite].argsort(kind="stable")
        assert (np.diff(found[finite][ranked]) >= -1e-6).all()


@given(st.lists(st.floats(-2, 3, width=32), min_size=1, max_size=20))
def test_snapping_is_on_the_grid_and_changes_nothing_twice(values: list[float]) -> None:
    once = snap(np.array(values, np.float32))
    assert ((once >= 0) & (once <= 1)).all()
    assert (snap(once) == once).all()
    assert (np.abs(once - np.clip(values, 0, 1)) <= 0.5 / GRID + 1e-6).all()
    assert (once * GRID == np.rint(once * GRID)).all()


def task_of(text: str = TEXT) -> SearchTask:
    perturber = perturber_of()
    return SearchTask(DIALOGUE, 0, None, perturber, perturber.prepare(text))


def test_a_search_learns_from_its_attempts_and_from_nothing_else() -> None:
    search, task = AgentSearch(policy_of(), 0, 2), task_of()
    turn = search.turn(task)
    seen: list[Feedback] = []
    for number in range(6):
        proposal = turn.propose(number, 0, seen)
        assert task.perturber.apply(task.source, proposal.action) == proposal.variant
        assert turn.propose(number, 0, seen) == proposal
        assert turn.propose(number, 1, seen) != proposal
        # A turn that begins anew, as in another process.
        assert search.turn(task).propose(number, 0, seen) == proposal
        seen.append(Feedback(proposal, answered=True, changes=number % 2, impurity=0.02 * number))
    cold = [replaced._replace(impurity=-0.05, changes=0) for replaced in seen]
    assert search.turn(task).propose(6, 0, cold) != search.turn(task).propose(6, 0, seen)
    assert AgentSearch(policy_of(), 1, 2).turn(task).propose(3, 0, seen[:3]) != seen[3].proposal


def test_attempts_are_no_copies() -> None:
    turn, seen = AgentSearch(policy_of(), 0, 3).turn(task_of()), []
    for number in range(12):
        seen.append(Feedback(turn.propose(number, 0, seen), answered=True))
    assert len({item.proposal.action.vector for item in seen}) == 12


def test_campaigns_of_an_agent_do_not_depend_on_windows_and_workers() -> None:
    dialogues = talks(8, seed=3)
    data = data_of(dialogues)
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in dialogues]
    settings = Settings.of(variants=4, validity="edit-rate", redraws=2, stop_at_first=True)

    def run(plan: list, **given: int) -> dict:
        search = AgentSearch(policy_of(), 0, 2)
        campaign = CampaignEngine(
            settings, data, KeywordBot(), load_lexicon(), plan=plan, search=search, **given
        )
        return {result.id: result for result in campaign.run()}

    whole = run(plan)
    assert run(plan, window=1) == whole
    assert {**run(plan[::2]), **run(plan[1::2])} == whole
    assert any(result.outcome == "violation" for result in whole.values())
