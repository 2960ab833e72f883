"""The two relations, ``metamorphic`` and ``gold``, and how they are found by name."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet, diff_states
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.relations.protocol import Relation, Verdict


class Metamorphic:
    """The prediction on a variant equals the prediction on the clean turn.

    Where the clean prediction is wrong by the label and the variant makes it right,
    the verdict is ``improved``: the tracker moved, but nobody would call that a failure.
    """

    name = "metamorphic"
    needs_labels = False

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:  # noqa: ARG002
        """Return ``True``: the relation needs no label and no right prediction."""
        return True

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


class Gold:
    """Where the clean prediction is right by the label, that on a variant is right too."""

    name = "gold"
    needs_labels = True

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


_RELATIONS: dict[str, Relation] = {relation.name: relation for relation in (Metamorphic(), Gold())}


def relation_by_name(name: str) -> Relation:
    """Return the relation called ``name``.

    Raises:
        UserError: there is no such relation.
    """
    if name not in _RELATIONS:
        raise unknown_name("relation", name, _RELATIONS)
    return _RELATIONS[name]


def relation_for(name: str, data: DialogueSet) -> Relation:
    """Return the relation called ``name`` after checking that ``data`` can serve it.

    Raises:
        UserError: there is no such relation, or it needs labels and no turn has one.
    """
    relation = relation_by_name(name)
    if relation.needs_labels and not any(
        turn.state is not None for dialogue in data.dialogues for turn in dialogue.turns
    ):
        raise UserError(
            f"the relation {name!r} compares with belief state labels, and no turn of the data "
            f"{data.name!r} (split {data.split}) has one. Use data with labels, or "
            f"the relation 'metamorphic', which needs none."
        )
    return relation
