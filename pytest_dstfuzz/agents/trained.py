"""Searches that were trained, by name: what they are and how they came to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.agents.agent_search import AGENTS, AgentSearch, is_agent, named_policy
from pytest_dstfuzz.agents.bandit_search import BANDITS, BanditSearch, is_bandit, named_scorer
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.trackers.tracker import NAMELESS

#: What may be written for a trained search, as messages list it.
TRAINED: Final[tuple[str, ...]] = (*AGENTS, *BANDITS)


@dataclass(frozen=True, slots=True)
class Trained:
    """How a search came to be."""

    what: str  #: ``policy`` or ``scorer``.
    fingerprint: str  #: Of its file.
    tracker: str  #: The tracker it was trained against, as its user named it.
    data: str  #: Data set and splits of the training dialogues.
    held_out: tuple[str, ...]  #: Ids of the dialogues of the data that it never saw.
    validity: str  #: Validity profile.
    seed: int  #: Of the training.
    calls: int  #: Contexts that the tracker was asked for, clean ones included.


def is_trained(name: str) -> bool:
    """Whether the search called ``name`` was trained: an agent or a bandit."""
    return is_agent(name) or is_bandit(name)


def trained(name: str) -> Trained | None:
    """Return how a search came to be; ``None`` where it was not trained.

    Raises:
        UserError: its file is missing, or broken.
    """
    if is_agent(name):
        policy = named_policy(name)
        about = policy.about
        origin = about.tracker, about.data, about.held_out
        rest = about.validity, about.seed, about.calls
        return Trained("policy", policy.fingerprint, *origin, *rest)
    if is_bandit(name):
        scorer = named_scorer(name)
        of = scorer.about
        return Trained(
            "scorer", scorer.fingerprint, of.tracker, of.data, (), of.validity, of.seed, of.calls
        )
    return None


def training_calls(name: str) -> int:
    """Return how many contexts the tracker was asked for to train a search, 0 without training."""
    found = trained(name)
    return found.calls if found else 0


def trained_search(name: str, seed: int, k: int) -> Search:
    """Build a trained search; a bandit makes as many edits as it may, whatever ``k``."""
    if is_bandit(name):
        return BanditSearch(named_scorer(name).scorer, seed)
    saved = named_policy(name)
    return AgentSearch(saved.policy, seed, k, saved.about.order)


def describe_trained(name: str, model: str | None, checkpoint: str | None) -> tuple[str, str]:
    """Return the fingerprint of a trained search, and a note that says whose it is.

    ``model`` is the tracker under test, as the user named it; ``None`` = a suite's own.
    """
    found = trained(name)
    if found is None:
        raise ValueError(f"the search {name!r} was not trained")
    used = model or NAMELESS
    if checkpoint is not None:
        used += f" with the checkpoint {checkpoint}"
    elsewhere = "" if used == found.tracker else f", and is used on {used}"
    return found.fingerprint, (
        f"the search {name} is a {found.what} (sha256 {found.fingerprint}) that was trained on the "
        f"tracker {found.tracker}, {found.data}, {found.validity} profile{elsewhere}"
    )
