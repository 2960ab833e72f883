"""Rounds of question and answer, and the same questions asked in another order.

In a `Context` an exchange is what the system said and the user's answer to it. A round of MORTAR is
a question and the answer *after* it, so that a question which moves takes its answer along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Exchange, answer_of

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon

__all__ = ["AskedQuestion", "opening_of", "round_of", "without_opening"]


class QuestionRound(NamedTuple):
    """A question, and the answer that was recorded to it; ``""`` where there is none."""

    question: str
    answer: str


def opening_of(dialogue: Dialogue) -> str:
    """Return what the system says before the first question: a title, a story, a greeting."""
    return dialogue.turns[0].system


def round_of(dialogue: Dialogue, index: int) -> QuestionRound:
    """Return a round, counted from 0."""
    return QuestionRound(dialogue.turns[index].user, answer_of(dialogue, index) or "")


def _said_after(dialogue: Dialogue, index: int) -> str:
    """Return what the system said after a question; also that it knows no answer."""
    following = dialogue.turns[index + 1 : index + 2]
    return following[0].system if following else answer_of(dialogue, index) or ""


def asked(dialogue: Dialogue, order: Sequence[int]) -> Context:
    """Return questions in an order, each with its recorded answer after it.

    The opening stays the first that the system says. The last of the questions is the newest
    utterance of the user.

    Args:
        dialogue: whose rounds they are.
        order: rounds of it, counted from 0, of which one may come several times; at least one.
    """
    said = [opening_of(dialogue), *(_said_after(dialogue, index) for index in order[:-1])]
    users = (dialogue.turns[index].user for index in order)
    return Context(tuple(map(Exchange, said, users)))


def without_opening(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue whose title, story or greeting is withheld."""
    first, *others = dialogue.turns
    return replace(dialogue, turns=(replace(first, system=""), *others))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a sequence.

    ``order`` is the whole sequence, rounds of the dialogue counted from 0, and ``place`` where the
    question stands in it.
    """

    dialogue: Dialogue
    order: tuple[int, ...]
    place: int
    lexicon: Lexicon

    @property
    def turn(self) -> int:
        """The round of the clean dialogue that the question is."""
        return self.order[self.place]

    @property
    def question(self) -> str:
        """What is asked."""
        return self.dialogue.turns[self.turn].user

    @property
    def opening(self) -> str:
        """What the system says before all."""
        return opening_of(self.dialogue)

    @property
    def before(self) -> tuple[int, ...]:
        """The rounds before it in the sequence, in their order."""
        return self.order[: self.place]

    @property
    def clean(self) -> tuple[int, ...]:
        """The rounds before it in the clean dialogue."""
        return tuple(range(self.turn))

    def round(self, index: int) -> QuestionRound:
        """Return a round of the clean dialogue."""
        return round_of(self.dialogue, index)

    def context(self) -> Context:
        """Return the sequence up to the question, as a system sees it."""
        return asked(self.dialogue, self.order[: self.place + 1])
