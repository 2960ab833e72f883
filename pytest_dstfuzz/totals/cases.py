"""Figures of test cases as in MORTAR. A test case is a dialogue with one perturbation.

These figures exist only if a relation assigns its variants to test cases. RETC, BPTC, Rate+, CV and
L1 to L3 follow Guo et al., MORTAR, section IV-G. If its text and its tables disagree, the figures
follow the tables: bugs are divided by test cases, not by test seeds, and CV uses only L1 and L2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Final

from pytest_dstfuzz.campaign.figures import DialogueNumbers, DialogueSums, DistinctCount, ratio
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult

__all__ = ["CaseFigures", "CasesTally"]

#: Name of the row over all relations.
TOGETHER: Final = "together"


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The figures of the test cases, of one relation or of all relations together."""

    name: str
    #: Number of test cases: dialogue, perturbation and draw. Cases without a check count, too.
    cases: int
    effective: int  #: Test cases with a bug.
    #: Checks: variants with an answer. For relations between two variants: questions.
    detections: int
    bugs: int  #: Checks that break the relation.
    #: Bugs by level. L1: the clean reply is wrong, too. L2: the clean reply is right, but another
    #: clean reply of the dialogue is wrong. L3: no clean reply of the dialogue is wrong. ``None``
    #: if no answers are recorded.
    levels: tuple[int, int, int] | None
    #: Perturbation -> bugs in its cases. A bug between two perturbations counts for both.
    perturbations: dict[str, int]

    @property
    def retc(self) -> float | None:
        """Share of test cases that reveal a bug."""
        return ratio(self.effective, self.cases)

    @property
    def bptc(self) -> float | None:
        """Bugs per test case."""
        return ratio(self.bugs, self.cases)

    @property
    def rate(self) -> float | None:
        """Rate+: share of the checks that are bugs."""
        return ratio(self.bugs, self.detections)

    @property
    def variation(self) -> float | None:
        """CV: standard deviation of the numbers of L1 and L2, divided by their mean.

        CV is low if the numbers are similar. It uses the standard deviation of a sample. The text
        of MORTAR defines CV over three levels, but all twelve values of its table IV leave out L3.
        """
        if self.levels is None or not any(self.levels[:2]):
            return None
        return stdev(self.levels[:2]) / fmean(self.levels[:2])

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "relation": self.name,
            "cases": self.cases,
            "effective": self.effective,
            "detections": self.detections,
            "bugs": self.bugs,
            "retc": self.retc,
            "bptc": self.bptc,
            "rate": self.rate,
            "levels": None if self.levels is None else list(self.levels),
            "cv": self.variation,
            "perturbations": dict(self.perturbations),
        }


class CasesTally:
    """Counts the test cases of each relation that has test cases."""

    def __init__(self) -> None:
        self._found: dict[str, _CaseSums] = {}
        self._together = _CaseSums(TOGETHER)
        #: Turns of each dialogue with a recorded answer and a reply, and those with a wrong reply.
        self._numbers = DialogueNumbers()
        self._replies = DialogueSums(2, self._numbers)

    def add(self, turn: TurnResult) -> None:
        """Count the test cases of a turn."""
        if turn.label is not None and turn.clean_state is not None:
            self._replies.add(turn.dialogue_id, 1, not turn.is_right)
        if turn.cases or any(one.case for one in turn.variants):
            number = self._numbers[turn.dialogue_id]
            self._found.setdefault(turn.relation, _CaseSums(turn.relation)).add(turn, number)
            self._together.add(turn, number)

    @property
    def figures(self) -> list[CaseFigures]:
        """The figures of each relation with test cases, then of all relations together.

        They are empty if no relation has test cases.
        """
        rows = self._replies.rows(0, 1)
        wrong = {number for number, (_, wrong) in enumerate(rows) if wrong}
        known = wrong if any(known for known, _ in rows) else None
        found = [one.figures(known) for one in self._found.values()]
        return [*found, self._together.figures(known)] if len(found) > 1 else found


class _CaseSums:
    """The sums for the test cases of one relation, or of all relations together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._cases, self._effective = DistinctCount(), DistinctCount()
        self._detections = self._bugs = 0
        #: Bugs at turns with a wrong clean reply.
        self._wrong = 0
        #: Number of a dialogue -> bugs at its turns with a right clean reply.
        self._right: Counter[int] = Counter()
        self._perturbations: Counter[str] = Counter()

    def add(self, turn: TurnResult, dialogue: int) -> None:
        for part in turn.cases:
            self._cases.add(f"{dialogue} {part}")
        for check in _checks(turn):
            self._detections += 1
            for part in {part for one in check for part in one.case.split()}:
                self._cases.add(f"{dialogue} {part}")
            broken = [one for one in check if one.outcome == "violation"]
            if not broken:
                continue
            self._bugs += 1
            blamed = {part for one in broken for part in one.case.split()}
            for part in blamed:
                self._effective.add(f"{dialogue} {part}")
            self._perturbations.update({part.partition("-")[0] for part in blamed})
            if turn.label is not None and turn.is_right:
                self._right[dialogue] += 1
            elif turn.label is not None:
                self._wrong += 1

    def figures(self, wrong: set[int] | None) -> CaseFigures:
        """Return the figures. ``wrong`` are the dialogues with a wrong clean reply, if known."""
        levels = None
        if wrong is not None:
            second = sum(bugs for dialogue, bugs in self._right.items() if dialogue in wrong)
            levels = (self._wrong, second, self._right.total() - second)
        return CaseFigures(
            name=self._name,
            cases=self._cases.value,
            effective=self._effective.value,
            detections=self._detections,
            bugs=self._bugs,
            levels=levels,
            perturbations=dict(sorted(self._perturbations.items())),
        )


def _checks(turn: TurnResult) -> Iterator[tuple[VariantResult, ...]]:
    """Yield the checks. A check is a single variant, or all pairs of versions of the question."""
    run = [one for one in turn.variants if one.case and one.valid and one.state is not None]
    pairs = tuple(one for one in run if " " in one.case)
    yield from ((one,) for one in run if " " not in one.case)
    if pairs:
        yield pairs
