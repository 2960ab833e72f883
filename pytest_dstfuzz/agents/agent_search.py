"""The search ``agent``: a trained Multi-PDQN policy, one that ships or one in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_dstfuzz.agents.checkpoint import SavedPolicy, load_policy
from pytest_dstfuzz.agents.features import Trace, TurnView
from pytest_dstfuzz.agents.policy import COUNT, FIRST, LATER, Policy
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask

#: Where the policies lie that ship with the package.
SHIPPED: Final = Path(__file__).parent / "resources" / "agents"
#: The trackers that they were trained on, those that ship. ``agent`` is that of the first.
SHIPPED_FOR: Final = ("trade", "simpletod")
_NAME: Final = "agent"
_PREFIX: Final = f"{_NAME}:"
#: What may be written for an agent, as messages list it.
AGENTS: Final[tuple[str, ...]] = (
    _NAME,
    *(f"{_PREFIX}{tracker}" for tracker in SHIPPED_FOR),
    f"{_PREFIX}PATH",
)


class AgentSearch(Search):
    """Lets a policy choose among the shipped transformations and operators in use.

    At a turn's first attempt that is what it thinks best, later with noise: see `LATER`.
    """

    name = _NAME
    adaptive = True
    order = "distance"

    def __init__(self, policy: Policy, seed: int, k: int, order: str = "distance") -> None:
        self.policy = policy
        self.seed = seed
        self.k = min(k, COUNT)
        self.order = order

    def turn(self, task: SearchTask) -> AgentTurn:
        """Begin a turn."""
        return AgentTurn(self, task)


class AgentTurn:
    """The attempts of an `AgentSearch` at one turn."""

    def __init__(self, search: AgentSearch, task: SearchTask) -> None:
        self._search = search
        # It knows no others; a run may use some under another search.
        self._task = task = task._replace(perturber=task.perturber.shipped)
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
        rng = self._task.stream(self._search.name, self._search.seed, number, draw)
        explore = LATER if number or draw else FIRST
        policy = self._search.policy
        choice = policy.choose(self._view, self._trace, self._search.k, rng, explore)
        return self._task.proposal(choice.action)


def named_policy(name: str) -> SavedPolicy:
    """Return the policy of the search called ``agent``, ``agent:TRACKER`` or ``agent:PATH``."""
    wanted = SHIPPED_FOR[0] if name == _NAME else name.removeprefix(_PREFIX)
    if not wanted:
        raise UserError("the search 'agent:' names no file: write agent:PATH, or agent")
    if wanted not in SHIPPED_FOR:
        return load_policy(wanted)
    path = SHIPPED / f"{wanted}.safetensors"
    if not path.is_file():
        raise UserError(
            "this installation ships no trained agent: train one with 'dstfuzz train-agent', and "
            "name its file with agent:PATH"
        )
    return load_policy(path)
