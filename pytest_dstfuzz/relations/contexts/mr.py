"""MORTAR's four relations between the replies to one question in several contexts.

MR1 and MR2 compare a version of a question with its clean context, MR3 and MR4 two versions with
each other. Versions whose context is not known to be equivalent, or lost, are left out.

Source: Guo et al., MORTAR, section III-D. There the reference is the recorded answer, which
``--dst-relation=mortar:reference=answer`` takes; here it is what the system itself replies to the
clean dialogue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import Final

from pytest_dstfuzz.comparisons.fallbacks import is_fallback
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, answer_of
from pytest_dstfuzz.relations.contexts.checks import context_checks_named, equivalent
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion
from pytest_dstfuzz.relations.contexts.versions import Version, versions
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import (
    OTHER_REPLY,
    UNCHANGED,
    Begun,
    Expected,
    Inapplicable,
    Rewrite,
)
from pytest_dstfuzz.relations.scene import Scene

__all__ = ["ContextsAgree", "ContextsDiffer", "LostContext", "SameContext"]

_SHORT: Final = "the dialogue has fewer than two rounds"
_UNANSWERABLE: Final = "the data says that the question has no answer"
_NO_ANSWER: Final = "no answer to the question is recorded"
_NO_SEQUENCE: Final = "no sequence asks the question in another context"
_UNSURE: Final = "the checks cannot tell whether a context is equivalent"
_NOT_CLEAN: Final = "not even the clean context passes the checks"
_NO_EQUIVALENT: Final = "no sequence asks the question in an equivalent context"
_NO_LOST: Final = "no sequence asks the question where its context is lost"
_FALLBACK: Final = "the clean reply gives no answer: nothing would have to happen"
_FEWER_THAN_TWO: Final = "fewer than two sequences ask the question in an equivalent context"
_NOT_BOTH: Final = "no two sequences ask the question, one in an equivalent context and one not"


class ContextRelation(Relation):
    """What is expected of the replies to a question, over its versions.

    A class that inherits from it writes ``name`` and `rewrites`.

    Args:
        draws: how many sequences of each perturbation there are; ``None`` = as many as give about
            one for each variant.
    """

    on = ("reply",)
    edits = "own"
    #: What `reason` may say beside those of all.
    none: tuple[str, ...] = ()
    #: Whether it expects of a clean reply that it is one.
    wants_answer = False

    def __init__(self, draws: int | None = None) -> None:
        self._draws = draws

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it says nothing about a question, in the order in which it looks."""
        fallback = (_FALLBACK,) if self.wants_answer else ()
        whole = (_SHORT, _UNANSWERABLE, _NO_ANSWER, *fallback, _NO_SEQUENCE, _UNSURE)
        return (*whole, *self.none)

    def impossible(self, data: DialogueSet) -> str:
        """Say that rounds can be asked in another order nowhere; ``""`` = somewhere they can."""
        if all(len(dialogue.turns) < 2 for dialogue in data.dialogues):
            return "it asks the questions of a dialogue in another order, and none has two rounds"
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return the versions of a question that it expects something of."""
        if reason := self._silent(scene):
            return Inapplicable(reason)
        found = versions(scene, self._draws)
        if all(one.asked.before == one.asked.clean for one in found):
            return Inapplicable(_NO_SEQUENCE)
        if all(one.equivalent is None for one in found):
            return Inapplicable(_UNSURE)
        return list(self.rewrites(scene, found)) or Inapplicable(self.lacks(scene))

    def _silent(self, scene: Scene) -> str:
        """Return why nothing is expected of the replies, whatever the sequences; ``""`` = it is."""
        answer = answer_of(scene.dialogue, scene.index)
        if len(scene.dialogue.turns) < 2:
            return _SHORT
        if answer == "":
            return _UNANSWERABLE
        if scene.reply.reference == "answer" and answer is None:
            return _NO_ANSWER
        fallback = is_fallback(scene.kind.text(scene.now), scene.reply.fallback)
        return _FALLBACK if self.wants_answer and fallback else ""

    def lacks(self, scene: Scene) -> str:
        """Return why none of the versions is one that it expects something of."""
        del scene
        return self.none[-1]

    @abstractmethod
    def rewrites(self, scene: Scene, found: list[Version]) -> Iterable[Rewrite]:
        """Return what is asked, and what is expected of the replies."""


@register_relation
class SameContext(ContextRelation):
    """MR1: in an equivalent context the reply says the same as in the clean one."""

    name = "same-context"
    expects = "the reply stays as it is where other rounds stand before the question"
    none = (_NOT_CLEAN, _NO_EQUIVALENT)

    def lacks(self, scene: Scene) -> str:
        """Return why there is no equivalent context, or none that counts as one."""
        checks = context_checks_named(scene.reply.context_checks)
        clean = tuple(range(len(scene.dialogue.turns)))
        asked = AskedQuestion(scene.dialogue, clean, scene.index, scene.lexicon)
        return _NO_EQUIVALENT if equivalent(checks, asked) else _NOT_CLEAN

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions in equivalent contexts, each against the clean one."""
        return (
            _against_clean(scene, one, UNCHANGED)
            for one in found
            if one.equivalent and one.asked.before != one.asked.clean
        )


@register_relation
class LostContext(ContextRelation):
    """MR2: where the context is lost, the reply of the clean one cannot come."""

    name = "lost-context"
    side = "should-change"
    expects = "the reply becomes another one where what the question needs is gone"
    none = (_NO_LOST,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions whose context is lost, each against the clean one."""
        return (_against_clean(scene, one, OTHER_REPLY) for one in found if one.equivalent is False)


@register_relation
class ContextsAgree(ContextRelation):
    """MR3: the replies in equivalent contexts say the same as each other.

    Each version is held against the one before it, the first against the last, and of two that
    differ the one counts that is not the reply to the clean context either; the published relation
    takes the largest distance of all pairs.
    """

    name = "contexts-agree"
    expects = "the replies to a question are alike in all contexts that give it what it needs"
    none = (_FEWER_THAN_TWO,)

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of versions in equivalent contexts."""
        del scene
        alike = [one for one in found if one.equivalent]
        around = pairwise([alike[-1], *alike]) if len(alike) > 1 else ()
        return (_between(one, other, UNCHANGED) for one, other in around)


@register_relation
class ContextsDiffer(ContextRelation):
    """MR4: the reply where the context is lost is none of those in equivalent contexts."""

    name = "contexts-differ"
    side = "should-change"
    expects = "the reply where the context is lost is another one than where it is not"
    none = (_NOT_BOTH,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of a version in an equivalent context and one whose context is lost."""
        del scene
        alike = [one for one in found if one.equivalent]
        lost = [one for one in found if one.equivalent is False]
        return (_between(one, other, OTHER_REPLY) for one, other in product(alike, lost))


def _against_clean(scene: Scene, version: Version, expected: Expected) -> Rewrite:
    return Rewrite(
        seen=version.seen,
        reference=scene.context,
        expected=expected,
        moves=version.moves(),
        about=version.about,
        case=version.sequence.case,
    )


def _between(one: Version, other: Version, expected: Expected) -> Rewrite:
    return Rewrite(
        seen=other.seen,
        reference=one.seen,
        expected=expected,
        moves=other.moves(),
        about=f"{other.about}; compared with {one.about}",
        case=f"{one.sequence.case} {other.sequence.case}",
        between=True,
    )
