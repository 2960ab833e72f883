"""Requests, and what a noise model makes of them."""

from __future__ import annotations

import random

from pytest_dstfuzz.noise.evidence import Text
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.seeding import stream

_HEADS = (
    "I need a",
    "Can you find me a",
    "I would like to book a",
    "Please look for a",
    "Is there a",
)
_KINDS = (
    "cheap",
    "moderate",
    "different",
    "beautiful",
    "quiet",
    "comfortable",
    "popular",
    "modern",
)
_THINGS = ("restaurant", "hotel", "museum", "theatre", "apartment", "guesthouse", "swimming pool")
_ENDS = (
    "in the centre.",
    "for tomorrow evening.",
    "with free parking please.",
    "that serves breakfast.",
    "near the station for the weekend.",
    "and I don't mind the price.",
    "because my friends are coming.",
)


def clean_turns(count: int) -> list[str]:
    """Return sentences of requests, always the same ones."""
    chance = random.Random(7)
    parts = (_HEADS, _KINDS, _THINGS, _ENDS)
    return [" ".join(map(chance.choice, parts)) for _ in range(count)]


def noisy_turns(model: NoiseModel, count: int, rate: float) -> list[Text]:
    """Return such sentences as a model makes them."""
    return [
        Text(f"d{number}", apply_edits(text, model.draw(text, stream(3, "log", number), rate)))
        for number, text in enumerate(clean_turns(count))
    ]
