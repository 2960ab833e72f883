"""SimpleTOD's texts (arXiv 2005.00796): a context, continued by the belief state.

``<|endoftext|> <|context|> <|user|> ... <|system|> ... <|endofcontext|> <|belief|> hotel area
north , hotel stars 4 <|endofbelief|>``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.models.tokenise import tokenise

START, CONTEXT, END_OF_CONTEXT = "<|endoftext|>", "<|context|>", "<|endofcontext|>"
USER, SYSTEM = "<|user|>", "<|system|>"
BELIEF, END_OF_BELIEF = "<|belief|>", "<|endofbelief|>"
#: Every mark, in a fixed order: a vocabulary begins with them.
MARKS = (START, CONTEXT, END_OF_CONTEXT, USER, SYSTEM, BELIEF, END_OF_BELIEF)
#: Between two slots of a belief. It is in no value.
SEPARATOR = ","
#: What opens a context, before its first utterance.
OPENING = (START, CONTEXT)
#: What comes between a context and the first slot of its belief.
TURNOVER = (END_OF_CONTEXT, BELIEF)


def utterance_words(text: str, *, common: bool) -> tuple[str, ...]:
    """Return the words of an utterance, in the ``common`` form in which TRADE reads too.

    Otherwise it is lower-cased only, as SimpleTOD's published models read it.
    """
    return tokenise(text) if common else tuple(text.lower().split())


def context_words(context: Context, *, common: bool) -> Iterator[str]:
    """Yield all utterances, each after its speaker's mark, oldest first."""
    for system, user in context.exchanges:
        if system:
            yield SYSTEM
            yield from utterance_words(system, common=common)
        yield USER
        yield from utterance_words(user, common=common)


def value_words(value: str) -> tuple[str, ...]:
    """Return the words by which a belief writes a value."""
    return tuple(word for word in tokenise(value) if word != SEPARATOR)


def slot_words(slot: str) -> tuple[str, ...]:
    """Return the words by which a belief writes a slot: ``hotel-book day`` is three."""
    return tuple(slot.replace("-", " ", 1).split())


def belief_words(state: Mapping[str, str]) -> Iterator[str]:
    """Yield a belief, slots in the order of their names, the closing mark included."""
    for number, slot in enumerate(sorted(state)):
        if number:
            yield SEPARATOR
        yield from slot_words(slot)
        yield from value_words(state[slot])
    yield END_OF_BELIEF


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a generated belief says."""

    values: Mapping[str, str]  #: Slot -> words of its value joined by blanks.
    #: Slot -> place of the part that says it, among the parts between separators.
    parts: Mapping[str, int]
    #: Parts that say nothing that can be understood, as generated. They change no slot.
    malformed: tuple[str, ...]


class BeliefParser:
    """Reads beliefs over known slots."""

    def __init__(self, slots: Sequence[str]) -> None:
        self._slots = {slot_words(slot): slot for slot in slots}
        self._longest = max((len(words) for words in self._slots), default=0)

    def parse(self, parts: Sequence[Sequence[str]], *, ended: bool) -> Parsed:
        """Read a generated belief, given as the words between separators, marks left out.

        A part that names no known slot, has no value, or names a slot that an earlier
        part has named with another value is malformed; nothing is guessed from it. Where the
        closing mark did not come the last part may be cut short, and is not believed.
        """
        values: dict[str, str] = {}
        places: dict[str, int] = {}
        malformed: list[str] = []
        for place, part in enumerate(parts):
            whole = ended or place < len(parts) - 1
            slot, value = self._read(part)
            if whole and value and values.setdefault(slot, value) == value:
                places.setdefault(slot, place)
            else:
                malformed.append(" ".join(part))
        return Parsed(values, places, tuple(malformed))

    def _read(self, part: Sequence[str]) -> tuple[str, str]:
        """Return the longest known slot that the part begins with, and its value; ``""`` = none."""
        for length in range(min(self._longest, len(part)), 0, -1):
            slot = self._slots.get(tuple(part[:length]))
            if slot is not None:
                return slot, " ".join(part[length:])
        return "", ""
