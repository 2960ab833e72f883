"""The texts of SimpleTOD (arXiv 2005.00796): a context followed by the belief state.

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
#: All marks in a fixed order. A vocabulary begins with them.
MARKS = (START, CONTEXT, END_OF_CONTEXT, USER, SYSTEM, BELIEF, END_OF_BELIEF)
#: Separates the slots of a belief. No value contains it.
SEPARATOR = ","
#: Tokens before the first utterance of a context.
OPENING = (START, CONTEXT)
#: Tokens between a context and the first slot of its belief.
TURNOVER = (END_OF_CONTEXT, BELIEF)


def utterance_words(text: str, *, common: bool) -> tuple[str, ...]:
    """Return the words of an utterance.

    If ``common`` is true, the words are in the normalised form of TRADE. Otherwise they are only
    lower-cased, as in the published models of SimpleTOD.
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
    """Return the words of a value as a belief spells them."""
    return tuple(word for word in tokenise(value) if word != SEPARATOR)


def slot_words(slot: str) -> tuple[str, ...]:
    """Return the words of a slot as a belief spells them: ``hotel-book day`` has three."""
    return tuple(slot.replace("-", " ", 1).split())


def belief_words(state: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of a belief: the slots in alphabetical order, then the end mark."""
    for number, slot in enumerate(sorted(state)):
        if number:
            yield SEPARATOR
        yield from slot_words(slot)
        yield from value_words(state[slot])
    yield END_OF_BELIEF


@dataclass(frozen=True, slots=True)
class BeliefText:
    """The slots and values of a generated belief, and its malformed parts."""

    values: Mapping[str, str]  #: Slot -> words of its value joined by spaces.
    #: Slot -> index of its part among the parts between separators.
    parts: Mapping[str, int]
    #: Generated parts that could not be parsed. They change no slot.
    malformed: tuple[str, ...]


class BeliefParser:
    """Parses generated beliefs. The slots are known."""

    def __init__(self, slots: Sequence[str]) -> None:
        self._slots = {slot_words(slot): slot for slot in slots}
        self._longest = max((len(words) for words in self._slots), default=0)

    def parse(self, parts: Sequence[Sequence[str]], *, ended: bool) -> BeliefText:
        """Parse a generated belief. ``parts`` are the words between its separators, without marks.

        A part is malformed if it names no known slot, has no value, or repeats an earlier slot with
        another value. If the end mark is missing, the last part may be incomplete, and counts as
        malformed too.
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
        return BeliefText(values, places, tuple(malformed))

    def _read(self, part: Sequence[str]) -> tuple[str, str]:
        """Return the longest known slot at the start of a part, and the value after it.

        If no known slot is there, both are empty.
        """
        for length in range(min(self._longest, len(part)), 0, -1):
            slot = self._slots.get(tuple(part[:length]))
            if slot is not None:
                return slot, " ".join(part[length:])
        return "", ""
