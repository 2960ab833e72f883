"""The versions of a question: it, after the rounds that each sequence asks before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.relations.contexts.checks import context_checks_named, equivalent
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion
from pytest_dstfuzz.relations.contexts.sequences import QuestionOrder, sequences
from pytest_dstfuzz.relations.rewrite import Move
from pytest_dstfuzz.relations.rounds.moves import ordered

if TYPE_CHECKING:
    from pytest_dstfuzz.relations.scene import Scene


@dataclass(frozen=True, slots=True)
class Version:
    """A question in one sequence, and what the checks say of its context there."""

    sequence: QuestionOrder
    asked: AskedQuestion
    #: ``None`` = they cannot tell.
    equivalent: bool | None

    @property
    def seen(self) -> Context:
        """The sequence up to the question, as a system sees it."""
        return self.asked.context()

    @property
    def about(self) -> str:
        """Where it stands, for people: ``DRS-0, after rounds 3, 1``; rounds count from 1."""
        before = [str(index + 1) for index in self.asked.before]
        after = f"after round{'s' * (len(before) > 1)} {', '.join(before)}" if before else "first"
        return f"{self.sequence.case}, asked {after}"

    def moves(self) -> tuple[Move, ...]:
        """Return what was done to the rounds before the question, and to it."""
        turn, before = self.asked.turn, self.asked.before
        kept = [index for index in dict.fromkeys(before) if index != turn]
        dropped = (Move("drop", index) for index in range(turn) if index not in kept)
        twice = (Move("repeat", index, index) for index in repeated((*before, turn)))
        return (*dropped, *ordered([*kept, turn]), *twice)


def repeated(order: Iterable[int]) -> Iterator[int]:
    """Yield the rounds that came before, each time that they come again."""
    seen: set[int] = set()
    for index in order:
        if index in seen:
            yield index
        seen.add(index)


def versions(scene: Scene, draws: int | None = None) -> list[Version]:
    """Return the versions of the question of a scene, in the order of their sequences.

    Of those that ask the same the first one stays. So many sequences are drawn that there is
    about one for each variant of the campaign, where ``draws`` does not say how many of each
    perturbation there are.

    Raises:
        UserError: there is no such perturbation or check.
    """
    names = scene.reply.perturbations
    draws = ceil(scene.variants / len(names)) if draws is None else draws
    checks = context_checks_named(scene.reply.context_checks)
    found: dict[tuple[int, ...], Version] = {}
    for sequence in _kept_sequences(scene, names, draws):
        for place, turn in enumerate(sequence.order):
            before = sequence.order[:place]
            if turn == scene.index and before not in found:
                asked = AskedQuestion(scene.dialogue, sequence.order, place, scene.lexicon)
                found[before] = Version(sequence, asked, equivalent(checks, asked))
    return [*found.values()]


def _kept_sequences(scene: Scene, names: tuple[str, ...], draws: int) -> tuple[QuestionOrder, ...]:
    """Return the sequences of a dialogue, which are drawn once a run."""
    key = "sequences", scene.dialogue.id, names, draws
    if key not in scene.kept:
        scene.kept[key] = tuple(sequences(scene.dialogue, names, draws, scene.seed))
    found = scene.kept[key]
    assert isinstance(found, tuple)  # noqa: S101 - nobody else keeps anything under this key
    return found
