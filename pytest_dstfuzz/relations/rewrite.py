"""What a relation makes of a turn, and what it expects of the answer: the words of all relations.

A relation writes `Rewrite`s: a context to ask, a clean context to compare with, and what is to
become of the slots. A campaign asks, and `Expected.judge` says what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple, Protocol

from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import Context, SlotChange
from pytest_dstfuzz.dialogue.outcome import REPLY, Outcome
from pytest_dstfuzz.dialogue.values import shown_value
from pytest_dstfuzz.perturb.types import Edit

__all__ = ["Begun", "BySearch", "Inapplicable", "Rewrite"]

#: Whether the state is to stay (over-sensitive trackers fail) or to follow (over-stable ones do).
Side = Literal["should-not-change", "should-change"]
#: What is edited. A relation of dialogues has one result for each of them, at its last turn.
Unit = Literal["turn", "dialogue"]
#: How a rewrite fails. ``changed``: a state that was to stay did not. Where something was to
#: change: ``stuck`` = nothing did, ``partial`` = some of it did and all else is as it was,
#: ``other`` = something else happened.
Failure = Literal["changed", "stuck", "partial", "other"]
#: ``improved`` = the clean prediction was wrong by the label and the perturbed one is right;
#: ``inapplicable`` = the relation says nothing about this turn.
VerdictKind = Literal["held", "violation", "improved", "inapplicable"]

#: Why a turn is not edited whose words the locks do not know.
OTHER_LANGUAGE: Final = "the utterance is not in English, or not all of it"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a relation says about a pair of predictions.

    Provisional: a relation between richer answers than belief states may say more.
    """

    kind: VerdictKind
    #: Slots that are not as expected, sorted; also of an improvement. A violation has at least one.
    #: Of a slot that was to change and did not, ``before`` equals ``after``.
    changes: tuple[SlotChange, ...] = ()
    #: Of a violation: how it failed; ``None`` = ``changed``.
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Admissible:
    """The values of which a slot is to have one; ``None`` = absent."""

    values: tuple[str | None, ...]
    #: All others are admissible, and these are not.
    anything_but: bool = False
    #: Of an argument of a tool call: it is right, too, not to make the call at all.
    or_no_call: bool = False

    def __contains__(self, value: str | None) -> bool:
        return (value in self.values) != self.anything_but

    def __str__(self) -> str:
        return self.told()

    def told(self, show: Callable[[str | None], str] = shown_value) -> str:
        """Say which values are admissible, each as ``show`` makes it.

        >>> Admissible(("north",), anything_but=True, or_no_call=True).told()
        'anything but north, or no call'
        """
        listed = " or ".join(map(show, self.values))
        no_call = ", or no call" if self.or_no_call else ""
        return f"{'anything but ' if self.anything_but else ''}{listed}{no_call}"


@dataclass(frozen=True, slots=True)
class Delta:
    """What is to become of one slot.

    Raises:
        ValueError: the value that it has is admissible: nothing would have to happen.
    """

    slot: str
    before: str | None
    after: Admissible

    def __post_init__(self) -> None:
        if self.before in self.after:
            raise ValueError(
                f"nothing would have to happen to {self.slot}: {shown_value(self.before)} is among "
                f"what it is to become ({self.after})"
            )

    def __str__(self) -> str:
        return f"{self.slot}: {shown_value(self.before)} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the answer to a rewrite is to be, seen from that to its reference.

    Slots without a delta stay as they are; without any delta, the state is to stay.

    Raises:
        ValueError: the deltas, or what ``differs``, are not sorted by slot, or one slot is named
            twice.
    """

    deltas: tuple[Delta, ...] = ()
    #: Paths that are to be something else than in the answer to the reference, whatever that is.
    differs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(one.slot >= other.slot for one, other in pairwise(self.deltas)):
            raise ValueError("the deltas must be sorted by slot, and of each slot there is one")
        if any(one >= other for one, other in pairwise(self.differs)):
            raise ValueError("what differs must be sorted, and each path of it named once")
        if twice := next((path for path in self.differs if self.of(path)), None):
            raise ValueError(f"{twice} has a delta, and is among what differs")

    @property
    def stays(self) -> bool:
        """Whether nothing is to change."""
        return not self.deltas and not self.differs

    def against(self, before: Outcome) -> Expected:
        """Return the same with a delta for all that ``differs``, seen from an answer.

        Where the answer lacks the path, anything is another one.

        >>> OTHER_REPLY.against(Outcome({"reply": "At nine."})).deltas[0].after
        Admissible(values=('At nine.',), anything_but=True, or_no_call=False)
        """
        if not self.differs:
            return self
        other = [
            Delta(path, before.get(path), Admissible((before.get(path),), anything_but=True))
            for path in self.differs
        ]
        return Expected(tuple(sorted([*self.deltas, *other], key=lambda delta: delta.slot)))

    def of(self, slot: str) -> Delta | None:
        """Return what is to become of a slot; ``None`` = it is to stay."""
        return next((delta for delta in self.deltas if delta.slot == slot), None)

    def judge(self, before: Outcome, found: Outcome) -> Verdict:
        """Say whether the answer ``found`` is as expected, ``before`` that to the reference."""
        if self.differs:
            return self.against(before).judge(before, found)
        misses = []
        deltas = {delta.slot: delta for delta in self.deltas}
        unmade = {
            call
            for delta in self.deltas
            if delta.after.or_no_call
            and (call := AnswerPath.of(delta.slot).call)
            and str(call) not in found
        }
        for slot in sorted({*before, *found, *deltas}):
            old, new = before.get(slot), found.get(slot)
            if new is None and AnswerPath.of(slot).call in unmade:
                continue
            if new not in deltas[slot].after if slot in deltas else new != old:
                misses.append(SlotChange(slot, old, new))
        if not misses:
            return Verdict("held")
        failure: Failure = "other"
        if not deltas:
            failure = "changed"
        elif before == found:
            failure = "stuck"
        elif len(misses) < len(deltas) and all(miss.slot in deltas for miss in misses):
            failure = "partial"
        return Verdict("violation", tuple(misses), failure)

    def told(self, change: SlotChange, show: Callable[[str], str] = str) -> str:
        """Say what became of a slot, and what should have; values as ``show`` makes them.

        >>> follow = Expected((Delta("area", "north", Admissible(("south",))),))
        >>> follow.told(SlotChange("area", "north", "north"))
        'area stayed north, expected south'
        """

        def shown(value: str | None) -> str:
            return show(shown_value(value)) if value else "none"

        text = f"{change.slot}: {shown(change.before)} -> {shown(change.after)}"
        if change.before == change.after:
            text = f"{change.slot} stayed {shown(change.before)}"
        delta = self.of(change.slot)
        if delta is None:
            return text
        return f"{text}, expected {delta.after.told(shown)}"


UNCHANGED: Final = Expected()
#: Of a reply: it is to be another one, whatever that is.
OTHER_REPLY: Final = Expected(differs=(REPLY,))


@dataclass(frozen=True, slots=True)
class Move:
    """A round repeated, moved, dropped, added or asked again.

    ``turn`` and ``to`` count the rounds of the clean dialogue from 0; ``to`` = the round that it
    then stands before, or that it is put after where it is added or said twice.
    """

    kind: Literal["repeat", "move", "drop", "add", "again"]
    turn: int
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A context to ask the tracker, and what the answer is to be."""

    seen: Context
    #: A clean context of the dialogue, or where ``between`` that of another rewrite: the one whose
    #: answer is the state before.
    reference: Context
    expected: Expected = UNCHANGED
    #: On the utterance of the turn, one after the other; ``transformation`` is the relation's name,
    #: ``operator`` its kind of edit.
    edits: tuple[Edit, ...] = ()
    moves: tuple[Move, ...] = ()
    #: For people: ``restaurant-area: north -> south``, ``round 3 said twice``.
    about: str = ""
    #: Whether any part of its edits is a rewrite of the relation too, so that it may be made
    #: smaller; only where the state of the turn is to stay. Rounds that moved stay so.
    separable: bool = False
    #: The test case that it is a question of, where cases are counted: ``DRS-0``.
    case: str = ""
    #: Whether the reference is what another rewrite shows, which the tracker is asked for as well.
    between: bool = False

    @property
    def asks(self) -> tuple[Context, ...]:
        """What the tracker is asked for, besides clean contexts; of a turn each is tried once."""
        return (self.seen, self.reference) if self.between else (self.seen,)


class Inapplicable(NamedTuple):
    """The relation says nothing about this turn."""

    #: One of the relation's reasons. Turns are counted by it, so there are no values in it.
    reason: str


class BySearch(NamedTuple):
    """The search edits the turn, and the relation judges what comes of it."""

    #: Of the answers to the clean turn and to a variant, and the label if there is one.
    judge: Callable[[Outcome, Outcome, Outcome | None], Verdict]


class Shown(NamedTuple):
    """What an earlier rewrite of the same turn showed."""

    rewrite: Rewrite
    #: The tracker was asked, and answered.
    answered: bool = False
    #: The answer is not as expected.
    broken: bool = False
    #: How much less sure the tracker is of the rewrite than of its reference.
    impurity: float = 0.0


class TurnRelation(Protocol):
    """The rewrites of one turn, by a relation that looks at what earlier ones showed."""

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:
        """Return rewrite ``number`` of the turn; ``None`` = there are no more.

        A function of the arguments and the scene, never of what was asked before.

        Args:
            number: of the rewrite, from 0.
            draw: 0, or how many rewrites for this number were refused, as they were there already.
            seen: what the rewrites ``0`` to ``number - 1`` showed, where the relation is adaptive;
                otherwise only what they were.
        """


#: What a relation makes of a turn.
Begun = Iterable[Rewrite] | TurnRelation | BySearch | Inapplicable
