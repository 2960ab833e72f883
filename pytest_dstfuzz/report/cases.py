"""Figures of test cases: dialogues as one perturbation makes them, counted as MORTAR counts.

Only where a relation says which case each of its variants is a question of. RETC, BPTC, Rate+ and
L1 to L3 are those of Guo et al., MORTAR, section IV-G, with one reading of ours: bugs are divided
by test cases, as their tables do, where their text says test seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Final

from pytest_dstfuzz.campaign.ledger import ratio
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.report.page import TerminalPage

#: Name of the row over all relations.
TOGETHER: Final = "together"


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """What the test cases of a relation, or of several together, revealed."""

    name: str
    #: (dialogue, perturbation and draw).
    cases: int
    effective: int  #: Those with a bug.
    #: Checks: variants that were answered; of relations between two of them, questions.
    detections: int
    bugs: int  #: Those that broke the relation.
    #: L1: the clean reply was wrong, too; L2: right, in a dialogue with a wrong one; L3: in a
    #: dialogue without any. ``None`` where no answers are recorded.
    levels: tuple[int, int, int] | None
    #: Perturbation -> bugs in its cases; a bug between two counts for both.
    perturbations: dict[str, int]

    @property
    def retc(self) -> float | None:
        """Share of the test cases that reveal a bug."""
        return ratio(self.effective, self.cases)

    @property
    def bptc(self) -> float | None:
        """Bugs for each test case."""
        return ratio(self.bugs, self.cases)

    @property
    def rate(self) -> float | None:
        """Rate+: share of the checks that are bugs."""
        return ratio(self.bugs, self.detections)

    @property
    def variation(self) -> float | None:
        """CV: standard deviation of the three levels over their mean; the lower, the more even."""
        if self.levels is None or not any(self.levels):
            return None
        return pstdev(self.levels) / fmean(self.levels)

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


def case_figures(results: Sequence[TurnResult]) -> list[CaseFigures]:
    """Return the figures of each relation that counts cases, in their order, and of all together.

    None where no relation does.
    """
    counted = [turn for turn in results if any(one.case for one in turn.variants)]
    names = dict.fromkeys(turn.relation for turn in counted)
    wrong = _wrong_dialogues(results)
    found = [
        _figures(name, [turn for turn in counted if turn.relation == name], wrong) for name in names
    ]
    return [*found, _figures(TOGETHER, counted, wrong)] if len(found) > 1 else found


def show_cases(page: TerminalPage, results: Sequence[TurnResult]) -> None:
    """Add a table of test cases, where a relation counts them."""
    found = case_figures(results)
    if not found:
        return
    page.gap()
    page.line("test cases: dialogues under one perturbation each", "heading")
    rows = [["relation", "cases", "checks", "bugs", "RETC", "BPTC", "Rate+", "L1", "L2", "L3"]]
    for one in found:
        counts = (f"{count:,}" for count in (one.cases, one.detections, one.bugs))
        bptc = "-" if one.bptc is None else f"{one.bptc:.2f}"
        levels = ["-"] * 3 if one.levels is None else [f"{count:,}" for count in one.levels]
        rows.append([one.name, *counts, percent(one.retc), bptc, percent(one.rate), *levels])
    page.table(rows)
    blamed: Counter[str] = Counter()
    for one in found:
        if one.name != TOGETHER:
            blamed.update(one.perturbations)
    told = ", ".join(f"{name} {count:,}" for name, count in sorted(blamed.items()))
    page.field("  bugs by perturbation: ", told or "none")
    if all(one.levels is None for one in found):
        page.line("  no recorded answers: L1 to L3 are not known", "dim")


def _wrong_dialogues(results: Iterable[TurnResult]) -> set[str] | None:
    """Return the dialogues with a clean reply that is wrong; ``None`` = nothing is recorded."""
    known = [turn for turn in results if turn.label is not None and turn.clean_state is not None]
    return {turn.dialogue_id for turn in known if not turn.is_right} if known else None


def _figures(name: str, turns: Sequence[TurnResult], wrong: set[str] | None) -> CaseFigures:
    cases, effective = set(), set()
    detections = bugs = 0
    levels = [0, 0, 0]
    perturbations: Counter[str] = Counter()
    for turn in turns:
        for check in _checks(turn):
            parts = {part for one in check for part in one.case.split()}
            broken = [one for one in check if one.outcome == "violation"]
            detections += 1
            cases |= {(turn.dialogue_id, part) for part in parts}
            if not broken:
                continue
            bugs += 1
            blamed = {part for one in broken for part in one.case.split()}
            effective |= {(turn.dialogue_id, part) for part in blamed}
            perturbations.update({part.partition("-")[0] for part in blamed})
            if wrong is not None and turn.label is not None:
                levels[_level(turn, wrong)] += 1
    return CaseFigures(
        name=name,
        cases=len(cases),
        effective=len(effective),
        detections=detections,
        bugs=bugs,
        levels=None if wrong is None else (levels[0], levels[1], levels[2]),
        perturbations=dict(sorted(perturbations.items())),
    )


def _level(turn: TurnResult, wrong: set[str]) -> int:
    """Return 0 to 2 for L1 to L3."""
    if not turn.is_right:
        return 0
    return 1 if turn.dialogue_id in wrong else 2


def _checks(turn: TurnResult) -> Iterator[tuple[VariantResult, ...]]:
    """Yield what is one check: a variant, or all pairs of versions of the question."""
    run = [one for one in turn.variants if one.case and one.valid and one.state is not None]
    pairs = tuple(one for one in run if " " in one.case)
    yield from ((one,) for one in run if " " not in one.case)
    if pairs:
        yield pairs
