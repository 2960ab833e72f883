"""Dialogues about a bakery, and two trackers with one planted weakness each.

They take a bread for the other one: the first where the word `WEAK` is not there as it should
be, so that a typing error in it is enough; the second where one of the three words before the
bread or after it is not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

WEAK = "counter"
SLOT = "bread-kind"
OTHER = {"rye": "spelt", "spelt": "rye"}

_OPENINGS = (
    "good morning my friend told me about your lovely little bakery",
    "hello there we were walking past and noticed the smell",
    "hi again last week your people were really helpful",
    "well today turned into quite a long afternoon for everyone",
)
_MIDDLES = (
    "so would you kindly keep a fresh loaf of {} behind the counter",
    "could you maybe put one loaf of {} beside the counter",
    "so please leave some {} under the counter",
    "we hope a warm loaf of {} is still lying near the counter",
)
_ENDINGS = (
    "because my neighbour always enjoys breakfast outside with her family",
    "since visitors will arrive later and everybody loves a decent sandwich",
    "as yesterday evening nothing remained and the children were sad",
    "while our kitchen gets painted and cooking remains difficult",
)


def dialogues(count: int, name: str = "bakery", turns: int = 1) -> tuple[Dialogue, ...]:
    """Return dialogues of long utterances, each of which names a bread and the weak word."""
    made = []
    for number in range(count):
        rng = stream(0, "bakery", name, number)
        bread = sorted(OTHER)[number % 2]
        state = BeliefState({SLOT: bread})
        parts = [
            Turn(index, "anything else ?" if index else "", _utterance(rng, bread), state)
            for index in range(turns)
        ]
        made.append(Dialogue(f"{name}{number:03d}", tuple(parts)))
    return tuple(made)


def _utterance(rng: np.random.Generator, bread: str) -> str:
    opening, middle, ending = (str(rng.choice(part)) for part in (_OPENINGS, _MIDDLES, _ENDINGS))
    return f"{opening} {middle.format(bread)} {ending}"


def data_of(parts: Sequence[Dialogue]) -> DialogueSet:
    """Return dialogues as a data set with an ontology."""
    ontology = Ontology({SLOT: tuple(sorted(OTHER))})
    return DialogueSet("bakery", "test", tuple(parts), ontology)


def write_folder(folder: Path, count: int = 10, turns: int = 2) -> Path:
    """Write labelled dialogues as the splits val and test, in JSON Lines."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("val", "test"):
        lines = []
        for dialogue in dialogues(count, split, turns):
            spoken = [
                {"system": turn.system, "user": turn.user, "state": dict(turn.state or {})}
                for turn in dialogue.turns
            ]
            lines.append(json.dumps({"dialogue_id": dialogue.id, "turns": spoken}))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def track(context: Context) -> dict[str, str]:
    """Return the bread that was named last, or the other one."""
    words = context.user.split()
    bread = next((word for word in reversed(words) if word in OTHER), "rye")
    return {SLOT: bread if WEAK in words else OTHER[bread]}


class PlantedBot:
    """`track` as a tracker that answers in batches."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState(track(context))) for context in contexts]


def _beside(words: Sequence[str]) -> tuple[str, ...]:
    """Return the three words before the bread that was named last, and the three after it."""
    place = max((at for at, word in enumerate(words) if word in OTHER), default=0)
    return (*words[max(0, place - 3) : place], *words[place + 1 : place + 4])


class NearsightedBot:
    """A tracker that knows a bread by the words beside it alone."""

    def __init__(self) -> None:
        self._known = {_beside(middle.format("rye").split()) for middle in _MIDDLES}

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState({SLOT: self._bread(item.user)})) for item in contexts]

    def _bread(self, user: str) -> str:
        words = user.split()
        bread = next((word for word in reversed(words) if word in OTHER), "rye")
        return bread if _beside(words) in self._known else OTHER[bread]
