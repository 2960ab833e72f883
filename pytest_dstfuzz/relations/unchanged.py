"""Relations with edits from the search. The answer must stay the same."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import diff_states
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import BySearch, Inapplicable, Relation, Scene, Verdict


@register_relation
class Metamorphic(Relation):
    """Expects equal answers to a variant and to the clean turn.

    The verdict is ``improved`` if each changed slot was wrong by the label and becomes right. This
    is no failure, although the answer changed.
    """

    name = "metamorphic"

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Return the verdict ``held``, ``violation`` or ``improved``, and the changed slots."""
        changes = diff_states(clean, perturbed)
        if not changes:
            return Verdict("held")
        if label is not None and all(one.after == label.get(one.slot) for one in changes):
            return Verdict("improved", changes)
        return Verdict("violation", changes)


@register_relation
class Gold(Relation):
    """Expects the right answer to a variant, if the clean answer is right."""

    name = "gold"
    needs_labels = True
    reasons = ("the turn has no label", "the clean prediction is wrong by the label")

    def begin(self, scene: Scene) -> BySearch | Inapplicable:
        """Let the search edit the turn if the clean prediction equals the label."""
        label = scene.label
        if self.applies(scene.now, label):
            return BySearch(self.judge)
        return Inapplicable(self.reasons[0 if label is None else 1])

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:
        """Return whether the turn has a label and the clean prediction equals it."""
        return label is not None and clean == label

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Return ``inapplicable``, ``held`` or ``violation`` as verdict, and the changed slots."""
        changes = diff_states(clean, perturbed)
        if not self.applies(clean, label):
            return Verdict("inapplicable", changes)
        return Verdict("violation" if changes else "held", changes)
