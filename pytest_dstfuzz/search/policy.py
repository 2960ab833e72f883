"""The search ``agent``: a trained Multi-PDQN policy."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.agents.features import Trace, TurnView
from pytest_dstfuzz.agents.policy import Exploration, Policy
from pytest_dstfuzz.search.protocol import Feedback, Proposal, SearchTask
from pytest_dstfuzz.seeding import stream

#: The first attempt takes what the agent thinks best.
FIRST = Exploration(candidates=64)
#: Later ones are drawn, each among other candidates, so that they differ.
LATER = Exploration(candidates=32, temperature=0.3)


class AgentSearch:
    """Lets a policy choose.

    Args:
        policy: what was trained.
        seed: seed of the campaign.
        k: number of transformations that one variant associates, 1 to 6.
        order: what the policy's position parameters count through.
    """

    name = "agent"
    adaptive = True

    def __init__(self, policy: Policy, seed: int, k: int, order: str = "distance") -> None:
        self.policy = policy
        self.seed = seed
        self.k = k
        self.order = order

    def context_variant(self, number: int) -> int:
        """Return ``number``: every variant stands for itself."""
        return number

    def turn(self, task: SearchTask) -> AgentTurn:
        """Begin a turn."""
        return AgentTurn(self, task)


class AgentTurn:
    """The attempts of an `AgentSearch` at one turn."""

    def __init__(self, search: AgentSearch, task: SearchTask) -> None:
        self._search = search
        self._task = task
        system = task.dialogue.turns[task.turn_index].system
        menus = task.perturber.menus(task.source)
        self._view = TurnView(task.source, menus, task.clean, system, task.turn_index)
        self._trace = Trace(len(task.source.words))
        self._taken = 0

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what the policy chooses after what the attempts so far have shown."""
        if number < self._taken:  # Campaigns ask in order; anyone else begins again.
            self._trace, self._taken = Trace(len(self._task.source.words)), 0
        for earlier in seen[self._taken : number]:
            self._trace.add(
                self._task.source,
                earlier.proposal.variant,
                earlier.impurity,
                answered=earlier.answered,
                changes=earlier.changes,
            )
        self._taken = max(self._taken, min(number, len(seen)))
        names = ("search", self._search.name, self._task.dialogue.id, self._task.turn_index)
        rng = stream(self._search.seed, *names, number, draw)
        explore = LATER if number or draw else FIRST
        policy = self._search.policy
        choice = policy.choose(self._view, self._trace, self._search.k, rng, explore)
        action = policy.settled(choice)
        return Proposal(self._task.perturber.apply(self._task.source, action), action)
