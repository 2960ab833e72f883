"""Dialogues with other values than those that were said, to learn copying from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Dialogue
from pytest_dstfuzz.models.simpletod.texts import utterance_words, value_words

Words = tuple[str, ...]
#: Values that are seldom said as they are written.
_UNSAID = frozenset({DONTCARE, "yes", "no"})


@dataclass(frozen=True, slots=True)
class Spoken:
    """A labelled dialogue as words: for each turn system, user and slot -> words of its value."""

    turns: tuple[tuple[Words, Words, Mapping[str, Words]], ...]


def spoken(dialogue: Dialogue) -> Spoken:
    """Return the words of a labelled dialogue."""
    return Spoken(
        tuple(
            (
                utterance_words(turn.system, common=True),
                utterance_words(turn.user, common=True),
                {slot: value_words(value) for slot, value in (turn.state or {}).items()},
            )
            for turn in dialogue.turns
        )
    )


class SlotValueAugmenter:
    """Exchanges values of a dialogue for others that their slots have in the training data.

    A model that has seen few names remembers them; where any name may stand in the place
    of another, it has to read. A value is exchanged everywhere in a dialogue, in the
    utterances and in the states of all its slots at once, and only where nothing else in
    the dialogue is written alike: the slots that have it are of one name (``hotel-area``,
    ``restaurant-area``), and none of its words is part of another value. The new value is one
    of the first of these slots. A ``share`` of the dialogues is changed.
    """

    def __init__(self, dialogues: Sequence[Spoken], share: float) -> None:
        found: defaultdict[str, set[Words]] = defaultdict(set)
        for dialogue in dialogues:
            for _, _, state in dialogue.turns:
                for slot, value in state.items():
                    found[slot].add(value)
        self._values = {slot: sorted(values) for slot, values in sorted(found.items())}
        self._share = share

    def __call__(self, dialogue: Spoken, rng: np.random.Generator) -> Spoken:
        """Return the dialogue, or one with other values."""
        if rng.random() >= self._share:
            return dialogue
        swaps = {
            value: self._values[slot][rng.integers(len(self._values[slot]))]
            for value, slot in _exchangeable(dialogue).items()
            if rng.random() < 0.5
        }
        if not swaps:
            return dialogue
        return Spoken(
            tuple(
                (
                    _replaced(system, swaps),
                    _replaced(user, swaps),
                    {slot: swaps.get(value, value) for slot, value in state.items()},
                )
                for system, user, state in dialogue.turns
            )
        )


def _exchangeable(dialogue: Spoken) -> dict[Words, str]:
    """Return the values of a dialogue that may be exchanged, with the first of their slots."""
    slots: dict[Words, set[str]] = {}
    for _, _, state in dialogue.turns:
        for slot, value in state.items():
            slots.setdefault(value, set()).add(slot)
    said = [words for system, user, _ in dialogue.turns for words in (system, user)]
    return {
        value: min(of)
        for value, of in slots.items()
        if len({slot.partition("-")[2] for slot in of}) == 1
        and " ".join(value) not in _UNSAID
        and not any(set(value) & set(other) for other in slots if other != value)
        and any(value == part for words in said for part in _parts(words, len(value)))
    }


def _parts(words: Words, size: int) -> Iterator[Words]:
    return (words[place : place + size] for place in range(len(words) - size + 1))


def _replaced(words: Words, swaps: Mapping[Words, Words]) -> Words:
    """Return ``words`` with every value of ``swaps`` exchanged; values do not overlap."""
    firsts = {value[0]: value for value in swaps if value}
    result: list[str] = []
    place = 0
    while place < len(words):
        value = firsts.get(words[place])
        if value and words[place : place + len(value)] == value:
            result += swaps[value]
            place += len(value)
        else:
            result.append(words[place])
            place += 1
    return tuple(result)
