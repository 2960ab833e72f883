"""What all relations share under which the state must change: they edit the turn themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import ClassVar, Final, Literal

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.relations.relation import Relation, begin, proposed
from pytest_dstfuzz.relations.rewrite import (
    Begun,
    BySearch,
    Inapplicable,
    Rewrite,
    Shown,
    Side,
    TurnRelation,
)
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.call_view import CallView
from pytest_dstfuzz.relations.should_change.calls import call_scene, told_of_calls
from pytest_dstfuzz.relations.should_change.sites import ValueSite, sites_of
from pytest_dstfuzz.relations.values import ValueTable

NO_CALL: Final = "the turn calls no tool"
NOT_EXACT: Final = "what becomes of the call would have to be guessed"
#: Why nothing is said of a turn at which tools may be called, of each relation.
OF_CALLS: Final = (NO_CALL, NOT_EXACT)
#: Rewrites of one slot, at least one, or why there are none.
Made = Iterable[Rewrite] | str


class ShouldChange(Relation):
    """A relation that edits what the user says and states what becomes of which slot.

    It writes ``name``, ``expects``, ``reasons`` and `edited`. Of tool calls it is given the
    arguments as slots, see `calls`.
    """

    on: ClassVar[tuple[OutcomeKind, ...]] = ("state", "tool-calls")
    edits: ClassVar[Literal["search", "own"]] = "own"
    side: ClassVar[Side] = "should-change"
    english: ClassVar[bool] = True

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn, of belief states or of tool calls."""
        if not scene.kind.has_tools:
            return self.edited(scene)
        if not scene.now:
            return Inapplicable(NO_CALL)
        return self.of_calls(scene)

    @abstractmethod
    def edited(self, scene: Scene) -> Begun:
        """Return what it makes of a turn with a belief state."""

    def of_calls(self, scene: Scene) -> Begun:
        """Return what it makes of a turn at which tools are called."""
        seen = call_scene(scene)
        begun = begin(self, seen)
        if isinstance(begun, Inapplicable | BySearch):
            return begun
        return list(told_of_calls(scene, seen, proposed(begun))) or Inapplicable(NOT_EXACT)


def from_sites(
    relation: ShouldChange, scene: Scene, make: Callable[[Scene, ValueSite], Made]
) -> Begun:
    """Return the rewrites that ``make`` writes for the sites of a turn."""
    sites = sites_of(scene)
    if not sites.found:
        return Inapplicable(sites.reason)
    return in_turn(relation, scene, [make(scene, site) for site in sites.found])


def in_turn(relation: ShouldChange, scene: Scene, made: Sequence[Made]) -> Begun:
    """Return the rewrites of several slots: the first of each, in a drawn order, then the second.

    Where there are none, the turn is counted with the reason of the slot that got furthest.
    """
    found = [iter(one) for one in made if not isinstance(one, str)]
    if not found:
        return Inapplicable(
            max((r for r in made if isinstance(r, str)), key=relation.reasons.index)
        )
    rows = zip_longest(*[found[place] for place in scene.rng.permutation(len(found))])
    return Lazily(one for row in rows for one in row if one is not None)


def some(rewrites: Iterator[Rewrite]) -> Iterator[Rewrite] | None:
    """Return rewrites of which the first is written already; ``None`` where there is none."""
    first = next(rewrites, None)
    return None if first is None else chain((first,), rewrites)


class Lazily(TurnRelation):
    """Rewrites of a turn that are written when they are asked for, each utterance once.

    A campaign that takes two of a turn does not pay for the others.
    """

    def __init__(self, rewrites: Iterator[Rewrite]) -> None:
        self._rewrites = rewrites
        self._made: list[Rewrite] = []

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:  # noqa: ARG002 - does not look
        """Return rewrite ``number``."""
        while len(self._made) <= number:
            written = next(self._rewrites, None)
            if written is None:
                return None
            if all(written.seen != one.seen for one in self._made):
                self._made.append(written)
        return None if draw else self._made[number]


def needs_values(relation: str, data: DialogueSet) -> str:
    """Say why no turn can satisfy a relation that puts in other values; ``""`` = some may."""
    if any(len(found) > 1 for table in tables_of(data) for found in table.values.values()):
        return ""
    return (
        f"{relation} needs other values of a slot, and the data has neither an ontology nor labels "
        "with two values of one slot"
    )


def tables_of(data: DialogueSet) -> Iterator[ValueTable]:
    """Yield what is known of the slots of data, and of the arguments of its tools."""
    yield ValueTable.of(data)
    if any(turn.calls is not None for one in data.dialogues for turn in one.turns):
        yield ValueTable.of(CallView.of(data).data)
