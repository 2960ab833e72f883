"""A relation of one's own: slots that are no free text must stay as they are."""

from pytest_dstfuzz import Outcome, Relation, Verdict, diff_states

FREE_TEXT = ("-name", "-destination", "-departure")


class ClosedSlots(Relation):
    name = "closed-slots"

    def judge(self, clean: Outcome, perturbed: Outcome, label: object) -> Verdict:  # noqa: ARG002 - not used
        found = diff_states(clean, perturbed)
        changes = tuple(change for change in found if not change.slot.endswith(FREE_TEXT))
        return Verdict("violation" if changes else "held", changes)
