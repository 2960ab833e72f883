"""A travel tracker by rules with five planted faults, and the dialogues that it understands.

Each slot has values of its own, so a tracker without faults needs only the value, which it
recognises in spite of slips. Five of the rules look at more than the value, as a person might have
written them. One kind of slip breaks each of these rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction


class Slot(NamedTuple):
    """A slot as the tracker knows it."""

    name: str
    values: tuple[str, ...]
    #: What users say; the braces stand for the value.
    wordings: tuple[str, ...]
    #: What is wrong with the rule, ``""`` where nothing is.
    fault: str = ""
    #: The rule with the fault; its group is the value.
    rule: str = ""


SLOTS: Final = (
    Slot("train-departure", ("leeds", "york"), ("I need a train that leaves from {}, please.",)),
    Slot("train-day", ("friday", "monday"), ("I want to travel on {} with my older brother.",)),
    Slot(
        "hotel-area",
        ("north", "west"),
        ("The hotel should stand somewhere in the {} of the town.",),
    ),
    Slot(
        "train-arriveby",
        ("10:15", "12:30", "17:45"),
        (
            "It would be great to arrive by {}, as I have a meeting.",
            "We would like to arrive by {} because dinner starts then.",
        ),
        "a cue word must be spelt right",
        r"\barrive by (\d\d:\d\d)\b",
    ),
    Slot(
        "train-people",
        ("5", "6", "7"),
        (
            "It's for {} people, and all of them are adults.",
            "I think it's for {} people, unless somebody falls ill.",
        ),
        "the apostrophe must be there",
        r"\bit's for (\d)\b",
    ),
    Slot(
        "taxi-destination",
        ("castle museum", "county stadium"),
        (
            "The last stop is the {} and we meet my sister there.",
            "My favourite stop is the {} since I enjoy walking around there.",
        ),
        "a word said twice shifts the value",
        # The two words after these; where they are not there, the places that it knows.
        r"\bis the (\w+ \w+)|\b(castle museum|county stadium)\b",
    ),
    Slot(
        "hotel-name",
        ("worth house", "alpha lodge"),
        (
            "Could you reserve something for us in a hotel called {}.",
            "My friend always recommends a hotel called {}.",
        ),
        "the full stop at the end must be there",
        r"\b(worth house|alpha lodge)\.",
    ),
    Slot(
        "hotel-stay",
        ("2", "3", "4"),
        (
            "Our holiday will be {} nights long this time.",
            "I guess that will be {} nights, but let me ask my wife.",
        ),
        "the words before the number must stand apart",
        # Two short words, however they are spelt, and the number.
        r"\b[a-z]{1,5} [a-z]{1,4} (2|3|4)\b",
    ),
)
#: The faults, by slot.
FAULTS: Final = {slot.name: slot.fault for slot in SLOTS if slot.fault}
ONTOLOGY: Final = Ontology({slot.name: slot.values for slot in SLOTS})
_VALUE_WORDS: Final = tuple(
    dict.fromkeys(
        word
        for slot in SLOTS
        for value in slot.values
        for word in word_list(value)
        if word.isalpha()
    )
)
#: Maximum number of slips in a word that the tracker recognises.
_MOST_SLIPS: Final = 2
_ANSWER: Final = "Certainly, I have noted that down."
_ENDINGS: Final = (
    "Thank you very much, that is all I wanted to know.",
    "Thanks, you have been a great help today.",
)
#: Words that stand beside each other in what users say. They tell `north` from `worth` in `otrh`.
_PAIRS: Final = frozenset(
    pair
    for slot in SLOTS
    for wording in slot.wordings
    for value in slot.values
    for pair in pairwise(word_list(wording.format(value)))
)
_OTHER_WORDS: Final = tuple(
    dict.fromkeys(
        word
        for text in (*_ENDINGS, *(wording for slot in SLOTS for wording in slot.wordings))
        for word in word_list(text)
    )
)


def track(context: Context, faults: Collection[str]) -> dict[str, str]:
    """Return the slots that the user has filled so far.

    The rules of the slots in ``faults`` err.
    """
    state: dict[str, str] = {}
    for said in map(_correct_values, context.user_utterances):
        for slot in SLOTS:
            values = "|".join(slot.values)
            rule = slot.rule if slot.name in faults else rf"(?<![\w:])({values})(?![\w:])"
            if found := re.search(rule, said):
                state[slot.name] = found[found.lastindex or 0]
    return state


@lru_cache(maxsize=1 << 12)
def _correct_values(text: str) -> str:
    """Return a text in lower case with its mistyped values corrected, and nothing else."""
    text = text.lower()
    for word in (*_VALUE_WORDS, *filter(str.isalpha, _OTHER_WORDS)):
        text = re.sub(rf"\b{' ?'.join(word)}\b", word, text)

    def correct(found: re.Match[str]) -> str:
        typed = found[0]
        before, after = (
            next(iter(re.findall(end, part)), "")
            for end, part in (
                (r"[a-z]+(?= ?$)", text[: found.start()]),
                (r"^ ?([a-z]+)", text[found.end() :]),
            )
        )
        fits = {word for pair in _PAIRS for word in pair if pair in ((before, word), (word, after))}
        nearest = min(
            (*_VALUE_WORDS, *_OTHER_WORDS),
            key=lambda word: (OSA.distance(typed, word), word not in fits),
        )
        near = nearest in _VALUE_WORDS and OSA.distance(typed, nearest) <= _MOST_SLIPS
        return nearest if near else typed

    return re.sub(r"[a-z][a-z']{2,}", correct, text)


class PlantedBot:
    """`track` with all faults, as a tracker that answers in batches."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return one answer for each context."""
        return [Prediction(BeliefState(track(context, FAULTS))) for context in contexts]


def causes(context: Context) -> tuple[str, ...]:
    """Return the faults that each alone explain the bot's mistake in a context.

    If any one of them is mended, and none of the others, the answer is right.
    """
    right = track(context, ())
    if track(context, FAULTS) == right:
        return ()
    return tuple(one for one in FAULTS if track(context, {*FAULTS} - {one}) == right)


def dialogues(count: int) -> DialogueSet:
    """Return dialogues of five turns. The last turn says nothing new."""
    made = []
    for number in range(count):
        rng = stream(0, "planted", number)
        state: dict[str, str] = {}
        turns = [Turn(0, "", _say(SLOTS[0], rng, state), BeliefState(state))]
        for place in 1 + rng.permutation(len(SLOTS) - 1)[:3]:
            user = _say(SLOTS[place], rng, state)
            turns.append(Turn(len(turns), _ANSWER, user, BeliefState(state)))
        ending = str(rng.choice(_ENDINGS))
        turns.append(Turn(len(turns), _ANSWER, ending, BeliefState(state)))
        made.append(Dialogue(f"trip{number:02d}", tuple(turns)))
    return DialogueSet("planted", "test", tuple(made), ONTOLOGY)


def _say(slot: Slot, rng: np.random.Generator, state: dict[str, str]) -> str:
    """Return how a user fills a slot, and store the value in ``state``."""
    value = state[slot.name] = str(rng.choice(slot.values))
    return str(rng.choice(slot.wordings)).format(value.title())
