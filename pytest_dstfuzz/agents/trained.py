"""The searches of this wing, as they are registered: trained agents and bandits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from pytest_dstfuzz.agents.agent_search import AGENTS, AgentSearch, named_policy
from pytest_dstfuzz.agents.bandit_search import BANDITS, BanditSearch, named_scorer
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.search.protocol import Search, SearchFamily, Trained
from pytest_dstfuzz.search.registry import trained


class AgentFamily(SearchFamily):
    """``agent`` and ``agent:PATH``."""

    forms = AGENTS

    def make(self, name: str, *, seed: int, k: int) -> Search:
        """Build the search of a policy."""
        saved = named_policy(name)
        return AgentSearch(saved.policy, seed, k, saved.about.order)

    def trained(self, name: str) -> Trained:
        """Return how a policy came to be."""
        policy = named_policy(name)
        about = policy.about
        origin = about.tracker, about.data, about.held_out
        rest = about.validity, about.seed, about.calls
        return Trained("policy", policy.fingerprint, *origin, *rest, code=_code())


class BanditFamily(SearchFamily):
    """``bandit`` and ``bandit:PATH``."""

    forms = BANDITS

    def make(self, name: str, *, seed: int, k: int) -> Search:  # noqa: ARG002 - see below
        """Build the search of a scorer; it makes as many edits as it may, whatever ``k``."""
        return BanditSearch(named_scorer(name).scorer, seed)

    def trained(self, name: str) -> Trained:
        """Return how a scorer came to be."""
        scorer = named_scorer(name)
        of = scorer.about
        rest = of.validity, of.seed, of.calls
        return Trained("scorer", scorer.fingerprint, of.tracker, of.data, (), *rest, code=_code())


AGENT: Final = AgentFamily()
BANDIT: Final = BanditFamily()


def training_calls(name: str) -> int:
    """Return how many contexts the tracker was asked for to train a search, 0 without training."""
    found = trained(name)
    return found.calls if found else 0


@cache
def _code() -> str:
    """Return what tells the code of this wing from any other; ``""`` if it cannot be read."""
    try:
        return digest_of(sorted(Path(__file__).parent.rglob("*.py")))
    except OSError:
        return ""
