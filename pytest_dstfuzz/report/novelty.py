"""Which violations of a run are new since the baseline, and which the baseline knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.sums import tallied
from pytest_dstfuzz.report.edits import MARGIN, mark_edits, needed_context, shorten
from pytest_dstfuzz.report.explain import change_lines
from pytest_dstfuzz.report.plainest import PlainestTally
from pytest_dstfuzz.report.rounds import move_texts
from pytest_dstfuzz.weaknesses.groups import member_id

#: The note on a violation that the baseline has, too.
KNOWN: Final = "known: the baseline has it"


@dataclass(frozen=True, slots=True)
class Novelty:
    """The violations of a run by their names, see `member_id`; the others were not compared."""

    #: Variants that held in the baseline and break now, though the clean answer is the same.
    new: frozenset[str] = frozenset()
    #: Violations of both builds.
    known: frozenset[str] = frozenset()

    @classmethod
    def of(cls, comparison: Mapping[str, Any] | None) -> Self:
        """Read the comparison of a report; those of earlier versions do not tell."""
        found = (comparison or {}).get("violations", {})
        return cls(frozenset(found.get("new", ())), frozenset(found.get("known", ())))

    def note(self, turn: TurnResult, variant: VariantResult) -> str:
        """Return what is said of a violation, ``""`` of one that was not compared."""
        name = member_id(turn, variant)
        return "new" if name in self.new else KNOWN if name in self.known else ""

    def only_new(self, results: Iterable[TurnResult]) -> Iterator[TurnResult]:
        """Yield the turns with a new violation, without their other variants."""
        yield from self._chosen(results, lambda name: name in self.new)

    def not_compared(self, results: Iterable[TurnResult]) -> Iterator[TurnResult]:
        """Yield the turns with a violation that is neither new nor known, likewise."""
        yield from self._chosen(results, lambda name: name not in self.new | self.known)

    def plainest_new(
        self, results: Iterable[TurnResult], most: int
    ) -> list[tuple[TurnResult, VariantResult]]:
        """Return the new violations that are easiest to follow."""
        if not self.new:
            return []
        return tallied(PlainestTally(most, each="variant"), self.only_new(results)).pairs

    def _chosen(
        self, results: Iterable[TurnResult], wanted: Callable[[str], bool]
    ) -> Iterator[TurnResult]:
        for turn in results:
            chosen = tuple(one for one in turn.violations if wanted(member_id(turn, one)))
            if chosen:
                yield replace(turn, variants=chosen)


def violation_lines(turn: TurnResult, variant: VariantResult) -> list[str]:
    """Return what was said in a violation, its edits marked, and what changed."""
    shown = variant.plain
    return [
        *(
            f"turn {index}: {mark_edits(source, edits, margin=MARGIN)}"
            for index, source, edits in needed_context(variant)
        ),
        *(
            move_texts(variant)
            if variant.moves
            else [f"user: {mark_edits(turn.user, shown.edits, margin=MARGIN)}"]
        ),
        *(shorten(line) for line in change_lines(shown.changed_slots, turn)),
    ]
