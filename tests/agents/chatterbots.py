"""Small trackers and talks to step through: what they do can be told from the words."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.trackers.tracker import Prediction

ONTOLOGY = Ontology({"hotel-area": ("north", "south"), "food-kind": ("chinese", "italian")})
WORDS = {value: (slot, value) for slot, values in ONTOLOGY.values.items() for value in values}
SOME = (*WORDS, "could", "you", "please", "tell", "my", "friend", "another", "lovely", "place")


def talks(count: int, seed: int = 0) -> tuple[Dialogue, ...]:
    rng = random.Random(seed)
    return tuple(
        Dialogue(
            f"talk{number}",
            tuple(
                Turn(i, "where ?" if i else "", " ".join(rng.choices(SOME, k=rng.randint(4, 11))))
                for i in range(rng.randint(1, 5))
            ),
        )
        for number in range(count)
    )


def data_of(dialogues: Sequence[Dialogue]) -> DialogueSet:
    return DialogueSet("toy", "test", tuple(dialogues), ONTOLOGY)


@dataclass
class KeywordBot:
    """Fills a slot when its value is said; fails on the share 1 / ``fails`` of utterances."""

    fails: int = 0
    sure: bool = False
    batches: list[int] = field(default_factory=list)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.batches.append(len(contexts))
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> Prediction:
        if self.fails and zlib.crc32(context.user.encode()) % self.fails == 0:
            raise ValueError("no")
        said = [word for text in context.user_utterances for word in text.split()]
        state = BeliefState(dict(WORDS[word] for word in said if word in WORDS))
        if self.sure:
            return Prediction(state)
        doubt = zlib.crc32("|".join(context.user_utterances).encode()) % 64 / 100
        return Prediction(state, {"hotel-area": doubt})

    def ask(self, contexts: Sequence[Context]) -> dict[Context, Answer]:
        """Answer as the environment asks."""
        self.batches.append(len(contexts))
        found: dict[Context, Answer] = {}
        for context in contexts:
            try:
                found[context] = self.answer(context)
            except ValueError:
                found[context] = TrackerFailure("no")
        return found
