"""Planted faults: the right tracker, wrong in one way.

What a fault remembers are answers to the clean dialogues, made when it is made, so that neither
batches nor workers show.
"""

from __future__ import annotations

from collections.abc import Callable

from domains import Domain

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.relations.kinds import domain_of, end_of

State = dict[str, str]
Bot = Callable[[Context], State]


def never_changes(domain: Domain) -> Bot:
    """Return a tracker that answers by what the system said alone, as in the clean dialogue.

    Of texts that it does not know, the smallest known set that holds them, else the largest known
    set that they hold.
    """
    known: dict[frozenset[str], State] = {}
    for dialogue in domain.data.dialogues:
        for turn in dialogue.turns:
            context = dialogue.context(turn.index)
            known.setdefault(_systems(context), domain.bot(context))

    def answer(context: Context) -> State:
        said = _systems(context)
        if said in known:
            return known[said]
        larger = [texts for texts in known if texts > said]
        smaller = [texts for texts in known if texts < said]
        return known[min(larger, key=len) if larger else max(smaller, key=len)]

    return answer


def ignores_negation(domain: Domain) -> Bot:
    """Return a tracker that reads over `not` and its like."""
    bot = type(domain.bot)(domain.bot.values, domain.bot.topics)
    bot.negations = frozenset()
    return bot


def keeps_ends(domain: Domain) -> Bot:
    """Return a tracker that knows each journey of the clean dialogues in one direction only."""
    clean = [turn.state for one in domain.data.dialogues for turn in one.turns if turn.state]
    pairs = {(start, goal) for state in clean for _, _, start, goal in _ends(dict(state))}

    def answer(context: Context) -> State:
        state = domain.bot(context)
        for start_slot, goal_slot, start, goal in _ends(state):
            if (goal, start) in pairs and (start, goal) not in pairs:
                state |= {start_slot: goal, goal_slot: start}
        return state

    return answer


def _systems(context: Context) -> frozenset[str]:
    return frozenset(exchange.system for exchange in context.exchanges)


def _ends(state: State) -> list[tuple[str, str, str, str]]:
    """Return the journeys of a state: both slots, and both values."""
    starts = [slot for slot in state if end_of(slot) == "from"]
    goals = [slot for slot in state if end_of(slot) == "to"]
    return [
        (start, goal, state[start], state[goal])
        for start in starts
        for goal in goals
        if domain_of(start) == domain_of(goal)
    ]
