"""The policies of searches that were trained: how they came to be, and what that took."""

from __future__ import annotations

from pytest_dstfuzz.agents.checkpoint import SavedPolicy
from pytest_dstfuzz.search.policy import is_agent, named_policy


def saved_policy(search: str) -> SavedPolicy | None:
    """Return the policy of a search as the option ``search`` names it; ``None`` where it has none.

    Experiments ask here alone which searches were trained.
    """
    return named_policy(search) if is_agent(search) else None


def training_calls(search: str) -> int:
    """Return how many contexts the tracker was asked for to train a search, 0 without training."""
    saved = saved_policy(search)
    return 0 if saved is None else saved.about.calls
