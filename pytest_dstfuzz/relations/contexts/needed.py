"""The check of our own: three-valued, and silent where rules about words cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion
from pytest_dstfuzz.relations.contexts.texts import DEMONSTRATIVES, PERSONS, ReadText, read

__all__ = ["NeededContext", "stands_alone"]

#: A question of fewer words says too little to stand alone, whatever it names.
_FEWEST_WORDS: Final = 3
#: Words that lean on what was said, though they are no pronouns.
_LEANING: Final = listed(
    "other others another else more next then also too here there again same such later before"
    " after afterwards second third fourth fifth last both either neither latter former one ones"
    " so instead besides however still"
)
#: A question for what was *not yet* said: its answer hangs on all rounds before it.
_NOT_YET: Final = listed("else other others another more besides also again further additional")
#: Words that begin a question of which a part is left out.
_ELLIPSES: Final = (("and",), ("or",), ("but",), ("then",))
_POINTING: Final = DEMONSTRATIVES | {"there"}
#: Words from which on a question that names nobody may stand alone.
_ALONE: Final = 4


@dataclass(frozen=True, slots=True)
class NeededContext:
    """Whether what a question needs stands before it.

    True: it needs nothing; or its last clean rounds stand before it, the nearest of them right
    before it. False: the question itself points back (a pronoun, a demonstrative, an ellipsis), no
    earlier round stands before it, and the recorded answer takes up a name or a number that the
    user brought in an earlier round, or an answer of a person or of one thing of a kind (``that
    ship``), and that is nowhere to be seen. A noun or a verb that the
    answer shares with earlier rounds is no context: a bot that knows one subject speaks of it
    whatever was said. Else it cannot tell. A question for what was not yet said is equivalent only
    after exactly the same rounds.

    The three numbers lie between those that each half of CANARD's development split chooses, and
    the research pages have the figures on the other half.
    """

    #: Words from which on a question that names nobody may stand alone.
    alone: int = _ALONE
    #: Clean rounds right before the question that must stand before it, too.
    nearest: int = 2
    #: Names and numbers of the user's that its answer takes up and that are nowhere to be seen:
    #: from so many on the context is lost.
    lost: int = 1

    @property
    def name(self) -> str:
        """What the option ``context-checks`` takes."""
        return "needed"

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Say whether the context is equivalent; ``None`` = it cannot tell."""
        reading = read(asked.question, asked.lexicon)
        before, clean = set(asked.before), set(asked.clean)
        if not _NOT_YET.isdisjoint(reading.lowers):
            if before == clean:
                return True
        elif stands_alone(reading, self.alone) or not clean or self._nearest(asked):
            return True
        return None if before & clean or not self._lost(asked, reading) else False

    def _nearest(self, asked: AskedQuestion) -> bool:
        """Whether the last clean rounds stand before it, the nearest of them right before it."""
        last = asked.clean[-self.nearest :]
        return bool(last) and set(last) <= set(asked.before) and asked.before[-1] == last[-1]

    def _lost(self, asked: AskedQuestion, reading: ReadText) -> bool:
        """Whether it points back to a name or a number that is nowhere to be seen."""
        if not asked.clean or stands_alone(reading, self.alone) or not _points_back(reading):
            return False
        if asked.opening and _POINTING.isdisjoint(reading.lowers):
            return False  # ``he`` and ``it`` are mostly what a title is about.
        earlier: set[str] = set()
        for index in asked.clean:
            question, said = (read(text, asked.lexicon) for text in asked.round(index))
            earlier |= question.entities
            if _one_of_many(reading):
                earlier |= said.entities
        seen = reading.units | read(asked.opening, asked.lexicon).units
        for index in asked.before:
            for text in asked.round(index):
                seen |= read(text, asked.lexicon).units
        answer = read(asked.round(asked.turn).answer, asked.lexicon).units
        return len((answer & earlier) - seen) >= self.lost


def stands_alone(reading: ReadText, fewest: int = _ALONE) -> bool:
    """Whether a question needs nothing: it points nowhere, and says what it is about.

    ``fewest``: words from which on it may do so without a name; ``the album`` is none.
    """
    if len(reading.lowers) < _FEWEST_WORDS or reading.unresolved:
        return False
    if not _LEANING.isdisjoint(reading.lowers):
        return False
    plain = len(reading.lowers) >= fewest and bool(reading.nouns) and not _definite(reading)
    return bool(reading.names) or plain


def _points_back(reading: ReadText) -> bool:
    """Whether the words of a question themselves say that something was said before."""
    return (
        bool(reading.unresolved)
        or reading.lowers[:1] in _ELLIPSES
        or reading.lowers[:2]
        in (
            ("what", "about"),
            ("how", "about"),
        )
    )


def _one_of_many(reading: ReadText) -> bool:
    """Whether a question points to a person, or to one thing of a kind: ``he``, ``that ship``.

    ``it`` and ``that`` alone stand for the one subject of a bot as well, whose name its answers
    say again and again.
    """
    return any(
        reading.lowers[place] in PERSONS
        or (reading.lowers[place] in DEMONSTRATIVES and place + 1 in reading.nouns)
        for place in reading.unresolved
    )


def _definite(reading: ReadText) -> bool:
    """Whether a thing is spoken of as known: ``the album``, but not ``the name of ...``."""
    for place, lower in enumerate(reading.lowers):
        if lower == "the":
            noun = next((one for one in sorted(reading.nouns) if one > place), None)
            if noun is not None and reading.lowers[noun + 1 : noun + 2] != ("of",):
                return True
    return False
