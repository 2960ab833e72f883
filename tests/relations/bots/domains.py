"""Two small domains with their right trackers: travel, and the pizzas of the example."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from right import RightBot

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.words import word_set

EXAMPLES = Path(__file__).parents[3] / "examples"
TOPICS = {
    "hotel": "hotel room rooms beds stay night nights sleep area price stars parking breakfast",
    "train": "train trains ticket tickets travel travels",
}
TOPPINGS = word_set(
    """anchovies bacon basil capers cheese chicken ham jalapenos mushrooms olives onions peppers
    pepperoni pineapple spinach sweetcorn tomatoes tuna"""
)
PIZZA = {
    "order-size": ("large", "medium", "small"),
    "order-crust": ("deep pan", "gluten free", "stuffed", "thin"),
    "delivery-time": (
        *("12:30", "18:00", "18:15", "18:45", "19:30", "19:45", "20:00", "21:15", "22:00"),
    ),
    "payment-method": ("card", "cash", "paypal", "voucher"),
    **{f"topping-{name}": ("no", "yes") for name in sorted(TOPPINGS)},
}
#: What each of the ten orders of a pizza comes to: size, crust, time, payment, toppings; `-` = no.
ORDERS = """
large thin 19:30 card mushrooms olives
small deep_pan none cash ham pineapple jalapenos
medium stuffed 18:15 voucher pepperoni cheese
large gluten_free 18:00 card spinach onions
large thin 19:45 cash
small deep_pan 20:00 paypal tuna onions
large stuffed 21:15 card bacon peppers cheese
medium gluten_free 12:30 voucher anchovies capers
small thin 22:00 cash tomatoes basil
large deep_pan 18:45 card chicken -sweetcorn
"""


class Domain(NamedTuple):
    """Labelled dialogues, and a tracker that is right about them."""

    data: DialogueSet
    bot: RightBot


@cache
def travel() -> Domain:
    """Return the travel agency of the example."""
    data = load_dialogues(EXAMPLES / "travel_bot" / "conversations.jsonl", name="travel")
    assert data.ontology is not None
    topics = {word: topic for topic, words in TOPICS.items() for word in words.split()}
    return Domain(data, RightBot(data.ontology.values, topics))


@cache
def pizza() -> Domain:
    """Return the pizza orders of the example with the labels that the right tracker gives.

    What the orders come to is checked against `ORDERS`.
    """
    bot = RightBot(PIZZA, {})
    data = load_dialogues(EXAMPLES / "pizza_bot" / "conversations.jsonl", name="pizza")
    dialogues = tuple(
        replace(
            one,
            turns=tuple(
                replace(turn, state=BeliefState(bot(one.context(turn.index)))) for turn in one.turns
            ),
        )
        for one in data.dialogues
    )
    return Domain(replace(data, dialogues=dialogues, ontology=Ontology(PIZZA)), bot)


def greeted(domain: Domain) -> Domain:
    """Return a domain in which the system opens each dialogue with a number of its own."""
    dialogues = []
    for number, one in enumerate(domain.data.dialogues, start=1):
        first = replace(one.turns[0], system=f"Desk {number} speaking.")
        dialogues.append(replace(one, turns=(first, *one.turns[1:])))
    return Domain(replace(domain.data, dialogues=tuple(dialogues)), domain.bot)


def orders() -> list[dict[str, str]]:
    """Return the final states of the pizza orders, as a person reads them."""
    found = []
    for line in ORDERS.strip().splitlines():
        values = [word.replace("_", " ") for word in line.split()]
        size, crust, time, payment, *toppings = values
        state = {"order-size": size, "order-crust": crust, "payment-method": payment}
        if time != "none":
            state["delivery-time"] = time
        for name in toppings:
            state[f"topping-{name.lstrip('-')}"] = "no" if name.startswith("-") else "yes"
        found.append(state)
    return found
