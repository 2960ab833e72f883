"""What a metamorphic relation is, the two that ship, and how others are found by name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final, Literal, Protocol, get_args

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet, SlotChange, diff_states
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.relations.rewrite import (
    Begun,
    BySearch,
    Inapplicable,
    Side,
    Unit,
    Verdict,
    VerdictKind,
)
from pytest_dstfuzz.relations.scene import Scene

_KINDS: Final = get_args(VerdictKind)


class Relation(Protocol):
    """What must hold between the predictions on a clean turn and on a rewrite of it.

    A class that inherits from it writes ``name`` and either ``judge``, where the search is to edit
    the turns, or ``begin``, where it edits them itself (``edits = "own"``); and the rest where it
    is to be otherwise. Its answers must depend on the arguments alone, and it never asks the
    tracker. Provisional, as `Verdict` is.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the option ``relation`` takes, and that reports show."""

    @property
    def expects(self) -> str:
        """What it expects, in one sentence for people: ``the slot takes the new value``."""
        return "the state stays as it is"

    @property
    def source(self) -> str:
        """Where its word lists come from, and their licence; empty where it has none."""
        return ""

    @property
    def edits(self) -> Literal["search", "own"]:
        """Whether the search edits the turns, or the relation itself."""
        return "search"

    @property
    def side(self) -> Side:
        """Whether the state is to stay or to follow."""
        return "should-not-change"

    @property
    def unit(self) -> Unit:
        """Whether it edits turns or whole dialogues."""
        return "turn"

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what its earlier rewrites of a turn showed."""
        return False

    @property
    def needs_labels(self) -> bool:
        """Whether it can say nothing about data without labels."""
        return False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it says nothing about a turn, in the order in which it looks.

        Where several slots are looked at, the turn is counted with the last of their reasons.
        """
        return (self.inapplicable,)

    @property
    def inapplicable(self) -> str:
        """Why it says nothing about a turn to which it does not apply, for reports."""
        return "the relation says nothing about this turn"

    def impossible(self, data: DialogueSet) -> str:  # noqa: ARG002 - for others
        """Say why no turn of the data can satisfy it, whatever the tracker; ``""`` = some may."""
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn.

        By default the search edits the turn, where `applies` says so, and `judge` judges.
        """
        if not self.applies(scene.now, scene.turn.state):
            return Inapplicable(self.inapplicable)
        return BySearch(self.judge)

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:  # noqa: ARG002 - for others
        """Whether it says anything about a turn with this clean prediction."""
        return True

    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Compare the prediction on a variant with that on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the context it is seen in.
            label: the right belief state; ``None`` where the data has none.
        """
        raise NotImplementedError(f"the relation {self.name!r} edits by itself")


class Metamorphic(Relation):
    """The prediction on a variant equals the prediction on the clean turn.

    Where the clean prediction is wrong by the label and the variant makes it right,
    the verdict is ``improved``: the tracker moved, but nobody would call that a failure.
    """

    name = "metamorphic"

    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Return ``held``, ``violation`` or ``improved`` with the slots that differ."""
        changes = diff_states(clean, perturbed)
        if not changes:
            return Verdict("held")
        if label is not None and perturbed == label:
            return Verdict("improved", changes)
        return Verdict("violation", changes)


class Gold(Relation):
    """Where the clean prediction is right by the label, that on a variant is right too."""

    name = "gold"
    needs_labels = True
    inapplicable = "the clean prediction is wrong by the label, or the turn has none"

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:
        """Whether the turn has a label and the clean prediction equals it."""
        return label is not None and clean == label

    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Return ``inapplicable``, ``held`` or ``violation`` with the slots that differ."""
        changes = diff_states(clean, perturbed)
        if not self.applies(clean, label):
            return Verdict("inapplicable", changes)
        return Verdict("violation" if changes else "held", changes)


#: A package brings a relation by an entry point of this group that names an object, or a class
#: that is made without arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.relations"
RELATIONS: Final[Registry[object]] = Registry(
    "relation", ENTRY_POINT_GROUP, {one.name: one for one in (Metamorphic(), Gold())}
)


def register_relation(relation: object) -> None:
    """Make a relation known by its name, such as in a ``conftest.py``.

    Args:
        relation: a `Relation`, or a class of one that is made without arguments.

    Raises:
        UserError: it is none, or one that ships has its name.
    """
    found = as_relation(relation, "register_relation()")
    RELATIONS.register(found.name, found)


def relation_by_name(name: str) -> Relation:
    """Return the relation called ``name``."""
    found = as_relation(RELATIONS.find(name), f"the relation {name!r}")
    if found.name != name:
        raise UserError(f"the relation {name!r} says that its name is {found.name!r}")
    return found


def relation_for(given: str | Relation, data: DialogueSet) -> Relation:
    """Return a relation after checking that ``data`` has the labels that it needs."""
    relation = relation_by_name(given) if isinstance(given, str) else given
    if relation.needs_labels and not any(
        turn.state is not None for dialogue in data.dialogues for turn in dialogue.turns
    ):
        raise UserError(
            f"the relation {relation.name!r} compares with belief state labels, and no turn of the "
            f"data {data.name!r} (split {data.split}) has one. Use data with labels, or "
            f"the relation 'metamorphic', which needs none."
        )
    return relation


def as_relation(given: object, where: str) -> Relation:
    """Return a relation that is safe to ask: somebody else's is checked whenever it answers.

    A class of one is made without arguments. Messages begin with ``where`` it comes from.
    """
    if isinstance(given, CheckedRelation) or type(given) in (Metamorphic, Gold):
        return given  # type: ignore[return-value]  # both are relations
    if isinstance(given, type):
        with blamed(f"{where}: {given.__name__}()"):
            given = given()
    return CheckedRelation(given, where)


class CheckedRelation(Relation):
    """Somebody else's relation; its shape is checked, and what it answers."""

    name = inapplicable = ""
    needs_labels = False

    def __init__(self, relation: Any, where: str) -> None:
        RELATIONS.check_shape(relation, where, "judge(clean, perturbed, label)", "a Verdict")
        self.wrapped = relation
        self.name = str(relation.name)
        self.needs_labels = bool(getattr(relation, "needs_labels", super().needs_labels))
        self.inapplicable = str(getattr(relation, "inapplicable", super().inapplicable))

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:
        """Whether it applies; to every turn where it does not say."""
        ask = getattr(self.wrapped, "applies", super().applies)
        with blamed(f"applies() of the relation {self.name!r}"):
            return bool(ask(clean, label))

    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Return its verdict, if that is a sound one."""
        with blamed(f"judge() of the relation {self.name!r}"):
            verdict: object = self.wrapped.judge(clean, perturbed, label)
        if isinstance(verdict, Verdict) and verdict.kind in _KINDS:
            slots = all(isinstance(change, SlotChange) for change in verdict.changes)
            if slots and (verdict.changes or verdict.kind != "violation"):
                return verdict
        raise UserError(
            f"judge() of the relation {self.name!r} returned {verdict!r}: it must return "
            f"Verdict(kind, changes) with one of the kinds {', '.join(_KINDS)}, and "
            "with the slots that changed (diff_states says them) where it is a violation"
        )
