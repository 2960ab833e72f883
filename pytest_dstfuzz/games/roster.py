"""All adversaries by name, and which of them can play against an agent."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.errors import unknown_name
from pytest_dstfuzz.games.adversaries import SCRIPTED, GameAdversary
from pytest_dstfuzz.games.game import GoalAgent
from pytest_dstfuzz.games.hearing import HEARING, LOOKING
from pytest_dstfuzz.games.insight import TransparentAgent
from pytest_dstfuzz.games.lookahead import LookaheadAdversary
from pytest_dstfuzz.games.playing import AdversarySide, Arena

#: Name -> adversary, in the order of reports.
ADVERSARIES: Final[dict[str, type[GameAdversary]]] = {
    **SCRIPTED,
    **HEARING,
    **LOOKING,
    LookaheadAdversary.name: LookaheadAdversary,
}


def playing_against(agent: GoalAgent, side: AdversarySide) -> tuple[str, ...]:
    """Return the names of all adversaries that can play: some need a voice, or to look inside."""
    names = list(SCRIPTED)
    if side.voice is not None:
        names += HEARING
    if isinstance(agent, TransparentAgent):
        names += [*LOOKING, LookaheadAdversary.name]
    return tuple(names)


def adversary_by_name(name: str, arena: Arena) -> GameAdversary:
    """Return an adversary.

    Raises:
        UserError: there is none of that name, or it cannot look into the agent.
    """
    if name not in ADVERSARIES:
        raise unknown_name("adversary", name, ADVERSARIES)
    return ADVERSARIES[name](arena)
