"""Planted faults: the right tracker, wrong in one way.

What a fault remembers are answers to the clean dialogues, made when it is made, so that neither
batches nor workers show.
"""

from __future__ import annotations

from collections.abc import Callable

from domains import Domain

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.relations.values import SpokenText, domain_of, end_of

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


def doubles_duplicates(domain: Domain) -> Bot:
    """Return a tracker that counts twice what the user says twice in the same words."""
    numbers = [slot for slot, kind in domain.bot.kinds.items() if kind == "number"]

    def answer(context: Context) -> State:
        state = domain.bot(context)
        said = context.user_utterances
        twice = [SpokenText.of(text) for text in dict.fromkeys(said) if said.count(text) > 1]
        for slot in numbers:
            if slot in state and any(text.mentions(state[slot]) for text in twice):
                state[slot] = str(2 * int(state[slot]))
        return state

    return answer


#: What is heard only when the other is known: the day of a journey, and the crust of a pizza.
WAITS = {"train-day": "train-destination", "order-crust": "order-size"}


def heeds_order(domain: Domain) -> Bot:
    """Return a tracker that does not hear a slot as long as another one is empty."""

    def answer(context: Context) -> State:
        heard: State = {}
        before: State = {}
        for end in range(1, len(context.exchanges) + 1):
            now = domain.bot(Context(context.exchanges[:end]))
            for slot in [slot for slot in heard if slot not in now]:
                del heard[slot]
            for slot, value in now.items():
                if before.get(slot) != value and WAITS.get(slot, slot) in now:
                    heard[slot] = value
            before = now
        return heard

    return answer


def keeps_drops(domain: Domain) -> Bot:
    """Return a tracker that fills what is missing from its answer in the clean dialogue.

    It knows a dialogue by its greeting, and where it is there by the newest exchange.
    """
    known: dict[tuple[str, Exchange], State] = {}
    for dialogue in domain.data.dialogues:
        for turn in dialogue.turns:
            context = dialogue.context(turn.index)
            known.setdefault(_place(context), domain.bot(context))

    def answer(context: Context) -> State:
        return known.get(_place(context), {}) | domain.bot(context)

    return answer


def _place(context: Context) -> tuple[str, Exchange]:
    return context.exchanges[0].system, context.exchanges[-1]


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
