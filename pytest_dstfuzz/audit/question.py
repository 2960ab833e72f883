"""What a judge is asked, and may answer: by what a relation expects of the state."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

#: What a judge may say: the perturbed dialogue asks for the same, as far as the slots go, or not;
#: of a relation that expects a change, what it states is right, or not.
Verdict = Literal["keeps", "changes", "right", "wrong"]


class Question(NamedTuple):
    """One question, its two answers, and what figures call them."""

    text: str
    good: Verdict
    bad: Verdict
    #: What a page says below it.
    lead: str
    #: ``12 of 15 violations ...``, and ``judged ...``.
    share: str
    otherwise: str

    @property
    def answers(self) -> dict[str, Verdict]:
        """Key on a keyboard -> verdict."""
        return {verdict[0]: verdict for verdict in (self.good, self.bad)}


KEEPING: Final = Question(
    "Does the user still ask for the same?",
    "keeps",
    "changes",
    "Read the edited utterance in its dialogue, and say whether it asks for the same as the clean "
    "one. Typing errors and fillers do not matter; what is asked for does.",
    "keep the meaning",
    "to change the meaning",
)
STATED: Final = Question(
    "Is the stated change right?",
    "right",
    "wrong",
    "Read the clean and the edited utterance in their dialogue, and say whether the edited one "
    "changes what the user asks for as it is stated, and nothing else.",
    "state the right change",
    "to state a wrong one",
)
