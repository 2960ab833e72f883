"""What a metamorphic relation is, the two that ship, and how others are found by name."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet, SlotChange, diff_states
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import Registry, blamed

#: ``improved`` = the clean prediction was wrong by the label and the perturbed one is right;
#: ``inapplicable`` = the relation says nothing about this turn.
VerdictKind = Literal["held", "violation", "improved", "inapplicable"]
_KINDS: Final = get_args(VerdictKind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a relation says about a pair of predictions.

    Provisional: a relation between richer answers than belief states may say more.
    """

    kind: VerdictKind
    #: Slots that differ between the two predictions, sorted; also of an improvement. A violation
    #: has at least one.
    changes: tuple[SlotChange, ...] = ()


class Relation(Protocol):
    """What must hold between the predictions on a clean turn and on a variant of it.

    A class that inherits from it writes ``name`` and ``judge``, and the rest where it is to be
    otherwise. Its answers must depend on the arguments alone. Provisional, as `Verdict` is.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the option ``relation`` takes, and that reports show."""

    @property
    def needs_labels(self) -> bool:
        """Whether it can say nothing about data without labels."""
        return False

    @property
    def inapplicable(self) -> str:
        """Why it says nothing about a turn to which it does not apply, for reports."""
        return "the relation says nothing about this turn"

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:  # noqa: ARG002 - for others
        """Whether it says anything about a turn with this clean prediction."""
        return True

    @abstractmethod
    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Compare the prediction on a variant with that on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the context it is seen in.
            label: the right belief state; ``None`` where the data has none.
        """


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
