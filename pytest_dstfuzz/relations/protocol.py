"""What a metamorphic relation is: two predictions in, a verdict with the changed slots out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from pytest_dstfuzz.dialogue.dialogues import BeliefState, SlotChange

#: ``improved`` = the clean prediction was wrong by the label and the perturbed one is right;
#: ``inapplicable`` = the relation says nothing about this turn.
VerdictKind = Literal["held", "violation", "improved", "inapplicable"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a relation says about a pair of predictions."""

    kind: VerdictKind
    #: Slots that differ between the two predictions, sorted; also of an improvement.
    changes: tuple[SlotChange, ...] = ()


class Relation(Protocol):
    """What must hold between the predictions on a clean turn and on a variant of it."""

    @property
    def name(self) -> str:
        """The name that the option ``relation`` takes."""
        ...

    @property
    def needs_labels(self) -> bool:
        """Whether the relation can say nothing about data without labels."""
        ...

    def applies(self, clean: BeliefState, label: BeliefState | None) -> bool:
        """Whether the relation says anything about a turn with this clean prediction."""
        ...

    def judge(
        self, clean: BeliefState, perturbed: BeliefState, label: BeliefState | None
    ) -> Verdict:
        """Compare the prediction on a variant with that on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the context it is seen in.
            label: the right belief state; ``None`` where the data has none.
        """
        ...
