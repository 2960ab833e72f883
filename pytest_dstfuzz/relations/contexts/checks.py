"""Whether a question in a sequence has a context as good as its clean one: MORTAR's three checks.

They carry the idea of the published ones, which need spaCy's Coreferee and a language model: rules
and the shipped lexicon stand in their places. None of them asks the system or sees its replies.

Source: Guo et al., MORTAR, section III-E.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.relations.contexts.needed import NeededContext
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion
from pytest_dstfuzz.relations.contexts.texts import read

__all__ = ["ContextCheck", "context_checks_named", "equivalent"]

ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.context_checks"
#: Stands for MORTAR's three.
MORTAR: Final = "mortar"
THEIRS: Final = ("semantic", "ontology", "story")
#: The check of a run that names none.
DEFAULT: Final = ("needed",)
#: A question of fewer words says too little to stand alone.
_FEWEST_WORDS: Final = 3


class ContextCheck(Protocol):
    """Says whether the rounds before a question give it what its clean context gives it.

    Its answers must depend on the question alone: neither on the system nor on the order in which
    it is asked.
    """

    @property
    def name(self) -> str:
        """What the option ``context-checks`` takes."""

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Return whether the context is equivalent; ``None`` = it cannot tell."""


class SemanticCheck:
    """The question stands alone: no pronoun in it points out of it, and it is not too short."""

    name = "semantic"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether the question needs no context, whatever stands before it."""
        reading = read(asked.question, asked.lexicon)
        return len(reading.lowers) >= _FEWEST_WORDS and not reading.unresolved


class OntologyCheck:
    """What question and answer take from earlier rounds was brought by the rounds before.

    Units of a round are names, nouns and verbs of its question and recorded answer, in the place of
    a graph of entities and relations. A round whose own context is not equivalent brings those of
    its question alone.
    """

    name = "ontology"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether all units that the question needs stand before it."""
        brought: set[str] = set()
        for index in asked.before:
            brought |= self._brings(asked, index, complete=self._needs(asked, index) <= brought)
        return self._needs(asked, asked.turn) <= brought

    def _needs(self, asked: AskedQuestion, index: int) -> frozenset[str]:
        """Return what a round takes from those before it in the clean dialogue."""
        earlier: set[str] = set()
        for one in range(index):
            earlier |= self._brings(asked, one, complete=True)
        question = read(asked.round(index).question, asked.lexicon).units
        return frozenset((self._brings(asked, index, complete=True) & earlier) - question)

    def _brings(self, asked: AskedQuestion, index: int, *, complete: bool) -> frozenset[str]:
        question, answer = asked.round(index)
        units = read(question, asked.lexicon).units
        return units | read(answer, asked.lexicon).units if complete else units


class StoryCheck:
    """What the pronouns of the question stand for is in the opening: a title, a story.

    The antecedents are taken to be the names that question and answer share with earlier clean
    rounds; without any, the nouns. A question without an open pronoun is left to `semantic`.
    """

    name = "story"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether the opening tells what the question points to."""
        reading = read(asked.question, asked.lexicon)
        if not asked.opening or not reading.unresolved:
            return False
        story = read(asked.opening, asked.lexicon)
        earlier: set[str] = set()
        for index in asked.clean:
            for text in asked.round(index):
                earlier |= read(text, asked.lexicon).units
        stands_for = (
            read(asked.round(asked.turn).answer, asked.lexicon).units | reading.units
        ) & earlier
        return stands_for - reading.units <= story.units


CONTEXT_CHECKS: Final[Registry[ContextCheck]] = Registry(
    "context check",
    ENTRY_POINT_GROUP,
    {
        check.name: check
        for check in (NeededContext(), SemanticCheck(), OntologyCheck(), StoryCheck())
    },
    families=(MORTAR,),
)


def register_context_check(check: ContextCheck) -> ContextCheck:
    """Make a check of contexts known by its name, such as in a ``conftest.py``.

    Raises:
        UserError: it is a class, has no name or no ``equivalent(asked)``, or one that ships has
            its name.
    """
    if isinstance(check, type):
        raise UserError(
            f"register_context_check(): {check.__name__} is a class: register one of it, "
            f"{check.__name__}()"
        )
    CONTEXT_CHECKS.check_shape(
        check, "register_context_check()", "equivalent(asked)", "True, False or None"
    )
    CONTEXT_CHECKS.register(check.name, check)
    return check


def context_checks_named(names: Sequence[str]) -> tuple[ContextCheck, ...]:
    """Return the checks of some names; ``mortar`` stands for three.

    Raises:
        UserError: there is no such check, the nearest name is said; or none is named.
    """
    if not names:
        raise UserError("no context check is named: 'needed' is the one of a run that names none")
    single = [one for name in names for one in (THEIRS if name == MORTAR else (name,))]
    return tuple(CONTEXT_CHECKS.find(name) for name in dict.fromkeys(single))


def equivalent(checks: Sequence[ContextCheck], asked: AskedQuestion) -> bool | None:
    """Say what checks say together: any True is True, else any ``None`` is ``None``, else False."""
    unsure = False
    for check in checks:
        with blamed(f"the context check {check.name!r}"):
            said = check.equivalent(asked)
        if said:
            return True
        unsure |= said is None
    return None if unsure else False
