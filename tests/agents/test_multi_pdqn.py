"""Multi-PDQN: passes, targets, gradients and copies, each held against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import settings as laws  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from pytest_dstfuzz.agents.policies import (  # noqa: E402
    BLOCKS,
    COUNT,
    PASS_SIZE,
    SPACE,
    STATE_SIZE,
    Policy,
)
from pytest_dstfuzz.agents.training.memory import ReplayBatch  # noqa: E402
from pytest_dstfuzz.agents.training.multi_pdqn import (  # noqa: E402
    LearnerConfig,
    MultiPDQN,
    _sum_of_largest,
    invert_gradients,
)

D = SPACE.dimension
SMALL = LearnerConfig(hidden=32, seed=1)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def stirred(config: LearnerConfig = SMALL) -> MultiPDQN:
    """Return an agent whose weights are all far from 0, the targets apart from the others."""
    learner = MultiPDQN(config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for network in (learner.actor, learner.critic, learner.actor_target, learner.critic_target):
            for weights in network.parameters():
                weights.add_(torch.randn(weights.shape, generator=generator) * 0.1)
    return learner


def batch_of(rows: int, seed: int = 0) -> ReplayBatch:
    rng = np.random.default_rng(seed)
    k = rng.integers(1, COUNT + 1, rows)
    chosen = np.array([rng.permutation(COUNT) < size for size in k])
    return ReplayBatch(
        state=rng.normal(size=(rows, STATE_SIZE)).astype(np.float32),
        vector=rng.random((rows, D)).astype(np.float32),
        available=(rng.random((rows, COUNT)) < 0.8).astype(np.float32),
        chosen=chosen.astype(np.float32),
        k=k,
        reward=rng.normal(size=rows).astype(np.float32),
        next_state=rng.normal(size=(rows, STATE_SIZE)).astype(np.float32),
        next_available=(rng.random((rows, COUNT)) < 0.8).astype(np.float32),
        terminated=(rng.random(rows) < 0.3).astype(np.float32),
    )


def plain(network: nn.Module, state: Tensor, x: Tensor) -> list[list[float]]:
    """Return the Q-values by one pass after the other, each fed with its own parameters only."""
    found = []
    for row in range(len(state)):
        values = []
        for action, block in enumerate(BLOCKS):
            fed = torch.zeros(PASS_SIZE)
            fed[:STATE_SIZE] = state[row]
            fed[STATE_SIZE + block.start : STATE_SIZE + block.stop] = x[row, block]
            with torch.no_grad():
                values.append(float(network(fed[None, :])[0, action]))
        found.append(values)
    return found


def test_the_passes_are_a_loop_over_the_actions() -> None:
    learner, batch = stirred(), batch_of(7)
    state, x = torch.from_numpy(batch.state), torch.from_numpy(batch.vector)
    found = learner.values(learner.critic, state, x)
    assert found.shape == (7, COUNT)
    assert torch.allclose(found, torch.tensor(plain(learner.critic, state, x)), atol=1e-5)
    some = learner.values(learner.critic, state, x, torch.from_numpy(batch.chosen))
    assert torch.allclose(some, found * torch.from_numpy(batch.chosen), atol=1e-6)


def test_a_value_has_no_gradient_by_the_parameters_of_another_action() -> None:
    learner, batch = stirred(), batch_of(5)
    for action, block in enumerate(BLOCKS):
        x = torch.from_numpy(batch.vector).requires_grad_()
        values = learner.values(learner.critic, torch.from_numpy(batch.state), x)
        (slope,) = torch.autograd.grad(values[:, action].sum(), x)
        inside = torch.zeros(D, dtype=torch.bool)
        inside[block] = True
        assert (slope[:, ~inside] == 0).all()
        assert (slope[:, inside] != 0).any()


def test_importances_are_no_parameters_of_a_pass() -> None:
    learner, batch = stirred(), batch_of(5)
    state, x = torch.from_numpy(batch.state), torch.from_numpy(batch.vector)
    other = x.clone()
    other[:, [block.start - 1 for block in BLOCKS]] = 0.5
    values = [learner.values(learner.critic, state, each) for each in (x, other)]
    assert torch.equal(*values)


def test_numpy_has_the_values_of_torch() -> None:
    learner, batch = stirred(), batch_of(9, seed=4)
    policy = Policy(learner.weights())
    state, x = torch.from_numpy(batch.state), torch.from_numpy(batch.vector)
    expected = learner.values(learner.critic, state, x).detach().numpy()
    for row in range(9):
        found = policy.values(batch.state[row], batch.vector[row])
        assert np.abs(found - expected[row]).max() < 1e-5
        proposed = learner.actor(state[row : row + 1]).detach().clamp(0, 1).numpy()[0]
        assert np.abs(policy.parameters(batch.state[row]) - proposed).max() < 1e-5


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 1)), min_size=1, max_size=9))
def test_inverted_gradients_keep_parameters_inside(pairs: list[tuple[float, float]]) -> None:
    slope, x = (torch.tensor(column) for column in zip(*pairs, strict=True))
    found = invert_gradients(slope, x)
    # The direction stays, the length shrinks with the room that is left.
    assert (found * slope >= 0).all()
    assert (found.abs() <= slope.abs()).all()
    room = torch.where(slope < 0, 1 - x, x)
    assert torch.equal(found, slope * room)
    # No step of the length of the room or less leaves it.
    stepped = x - invert_gradients(slope.clamp(-1, 1), x)
    assert (stepped >= -1e-6).all()
    assert (stepped <= 1 + 1e-6).all()


@pytest.mark.parametrize(
    ("slope", "x", "expected"),
    [
        *[(-1, 1, 0), (1, 0, 0), (-1, 0, -1), (1, 1, 1), (-2, 0.75, -0.5), (2, 0.25, 0.5)],
        # Outside, what would go further out is turned back.
        *[(-1, 1.5, 0.5), (1, -0.5, -0.5), (1, 1.5, 1.5)],
    ],
)
def test_inverted_gradients_by_hand(slope: float, x: float, expected: float) -> None:
    found = invert_gradients(torch.tensor([float(slope)]), torch.tensor([float(x)]))
    assert found.item() == pytest.approx(expected)


VALUES = st.lists(st.tuples(st.floats(-9, 9), st.booleans()), min_size=COUNT, max_size=COUNT)


@given(VALUES, st.integers(1, COUNT))
def test_the_sum_of_the_largest_that_are_available(
    values: list[tuple[float, bool]], k: int
) -> None:
    numbers, available = (torch.tensor([column]).float() for column in zip(*values, strict=True))
    found = _sum_of_largest(numbers, available, np.array([k]))
    allowed = sorted((value for value, there in values if there), reverse=True)
    assert found.item() == pytest.approx(sum(allowed[:k]), abs=1e-4)


def test_the_loss_of_the_critic_is_the_formula() -> None:
    learner, batch = stirred(), batch_of(6, seed=2)
    state, x = torch.from_numpy(batch.state), torch.from_numpy(batch.vector)
    following = torch.from_numpy(batch.next_state)
    with torch.no_grad():
        next_x = learner.actor_target(following).clamp(0, 1)
    future = plain(learner.critic_target, following, next_x)
    values = plain(learner.critic, state, x)
    loss = 0.0
    for row in range(6):
        there = [v for v, yes in zip(future[row], batch.next_available[row], strict=True) if yes]
        best = sum(sorted(there, reverse=True)[: batch.k[row]])
        y = batch.reward[row] + SMALL.gamma * (1 - batch.terminated[row]) * best
        taken = sum(v for v, yes in zip(values[row], batch.chosen[row], strict=True) if yes)
        loss += (taken - y) ** 2 / 6
    found, _ = learner.update(batch)
    assert SMALL.gamma == 0.9
    assert found == pytest.approx(loss, rel=1e-4)


def test_the_loss_of_the_actor_leaves_out_what_is_not_available() -> None:
    learner = stirred(LearnerConfig(hidden=32, critic_rate=0.0))
    batch = batch_of(6, seed=2)
    state = torch.from_numpy(batch.state)
    with torch.no_grad():
        x = learner.actor(state).clamp(0, 1)
    values = np.array(plain(learner.critic, state, x))
    _, found = learner.update(batch)
    assert found == pytest.approx(-(values * batch.available).sum(axis=1).mean(), rel=1e-4)


def test_parameters_of_what_is_never_available_are_not_learned() -> None:
    learner = stirred()
    batch = batch_of(16)
    available = np.ones_like(batch.available)
    available[:, 2] = 0.0
    last = learner.actor[-1]
    before = last.weight.detach().clone()
    for _ in range(3):
        learner.update(batch._replace(available=available))
    moved = (last.weight != before).any(dim=1)
    assert not moved[BLOCKS[2]].any()
    assert all(moved[block].any() for number, block in enumerate(BLOCKS) if number != 2)


def test_the_actor_climbs_the_critic() -> None:
    """With a critic that stands still, the values of what is proposed rise."""
    config = LearnerConfig(hidden=32, seed=1, critic_rate=0.0, actor_rate=1e-2)
    learner, batch = stirred(config), batch_of(32)
    losses = [learner.update(batch)[1] for _ in range(60)]
    assert losses[-1] < losses[0] - 0.05
    proposed = learner.actor(torch.from_numpy(batch.state)).detach()
    # States share the network, so that a few parameters are carried over the border.
    assert ((proposed > -0.1) & (proposed < 1.1)).float().mean().item() > 0.9
    with torch.no_grad():
        values = learner.values(
            learner.critic,
            torch.from_numpy(batch.state),
            proposed.clamp(0.0, 1.0),
            torch.from_numpy(batch.available),
        )
    assert values.sum(dim=1).mean().item() > -losses[0]


def test_updates_lower_the_loss_of_the_critic() -> None:
    learner = MultiPDQN(LearnerConfig(gamma=0.0, hidden=32, critic_rate=1e-2))
    batch = batch_of(32)
    losses = [learner.update(batch)[0] for _ in range(80)]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.1 * losses[0]


def test_the_value_of_an_action_that_was_not_taken_does_not_move() -> None:
    learner = stirred(LearnerConfig(hidden=32, gamma=0.0))
    batch = batch_of(16)
    chosen = np.zeros_like(batch.chosen)
    chosen[:, 2] = 1.0
    last = learner.critic[-1]
    before = [weights.detach().clone() for weights in (last.weight, last.bias)]
    learner.update(batch._replace(chosen=chosen))
    for old, new in zip(before, (last.weight, last.bias), strict=True):
        moved = (old != new).reshape(COUNT, -1).any(dim=1)
        assert moved.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("shares", [(0.1, 0.001), (0.0, 1.0), (0.5, 0.25)])
def test_targets_follow_by_their_share(shares: tuple[float, float]) -> None:
    learner = stirred(LearnerConfig(hidden=32, critic_tau=shares[0], actor_tau=shares[1]))
    pairs = (
        (learner.critic_target, learner.critic, shares[0]),
        (learner.actor_target, learner.actor, shares[1]),
    )
    before = [[w.detach().clone() for w in slow.parameters()] for slow, _, _ in pairs]
    learner.update(batch_of(8))
    for olds, (slow, fast, share) in zip(before, pairs, strict=True):
        for old, now, leader in zip(olds, slow.parameters(), fast.parameters(), strict=True):
            assert torch.allclose(now, old + share * (leader - old), atol=1e-6)
            assert share == 0.0 or not torch.equal(now, old)


def test_defaults_of_the_published_implementation() -> None:
    config = LearnerConfig()
    assert config.gamma == 0.9
    assert (config.critic_rate, config.actor_rate) == (1e-3, 1e-4)
    assert (config.critic_tau, config.actor_tau) == (0.1, 0.001)
    assert config.gradient_clip == 10.0


def test_it_begins_in_the_middle_and_with_equal_targets() -> None:
    learner = MultiPDQN(SMALL)
    state = torch.from_numpy(batch_of(20).state)
    assert (learner.actor(state) - 0.5).abs().mean().item() < 0.1
    assert learner.values(learner.critic, state, learner.actor(state)).abs().max().item() < 0.5
    for slow, fast in (
        (learner.actor_target, learner.actor),
        (learner.critic_target, learner.critic),
    ):
        for one, other in zip(slow.parameters(), fast.parameters(), strict=True):
            assert torch.equal(one, other)


def test_the_seed_decides() -> None:
    def learned(seed: int) -> dict[str, np.ndarray]:
        learner = MultiPDQN(LearnerConfig(hidden=16, seed=seed))
        for number in range(5):
            learner.update(batch_of(8, seed=number))
        return learner.weights()

    one, same, other = learned(0), learned(0), learned(1)
    assert set(one) == {
        *(f"parameters.{layer}.{part}" for layer in range(2) for part in ("weight", "bias")),
        *(f"critic.{layer}.{part}" for layer in range(3) for part in ("weight", "bias")),
    }
    assert all((one[name] == same[name]).all() for name in one)
    assert any((one[name] != other[name]).any() for name in one)


@laws(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_a_policy_is_a_copy(seed: int) -> None:
    learner, batch = MultiPDQN(LearnerConfig(hidden=16)), batch_of(4, seed)
    policy = Policy(learner.weights())
    before = policy.parameters(batch.state[0])
    learner.update(batch)
    assert (policy.parameters(batch.state[0]) == before).all()
