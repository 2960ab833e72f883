"""Selects violations to show: the simplest ones and the new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Self

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.weaknesses.groups import member_id

#: Maximum number of violations on a page, and number for each weakness that come first.
MOST_ON_PAGE: Final = 2_000
_MOST_OF_WEAKNESS: Final = 50
#: The notes on a violation that is new since the baseline, and on one that the baseline has, too.
NEW: Final = "new"
KNOWN: Final = "known: also in the baseline"
#: Sort key of violations: simplicity, dialogue, turn, and order of appearance.
PlainKey = tuple[tuple[int, int, float, int], str, int, int]


class PlainestTally:
    """Selects the simplest violations, at most one for each dialogue, turn or variant.

    Violations caused by the turn's own edits come first. They are ordered by number of edits, then
    by edit rate. The tally holds at most twice the requested number in memory.
    """

    def __init__(
        self, most: int, *, each: Literal["dialogue", "turn", "variant"] = "dialogue"
    ) -> None:
        self._most: Final = most
        self._each: Final = each
        self._seen = 0
        self._best: dict[str, tuple[PlainKey, TurnResult, VariantResult]] = {}

    def add(self, turn: TurnResult) -> None:
        """Consider the violations of a turn."""
        for variant in turn.violations:
            name = turn.dialogue_id if self._each == "dialogue" else turn.id
            name = member_id(turn, variant) if self._each == "variant" else name
            self._seen += 1
            key = (simplicity(variant), turn.dialogue_id, turn.turn_index, self._seen)
            if name not in self._best or key < self._best[name][0]:
                self._best[name] = (key, turn, variant)
        if len(self._best) > 2 * self._most:
            # A dropped violation is never needed again, because the others only become simpler.
            self._best = dict(self._ranked())

    @property
    def pairs(self) -> list[tuple[TurnResult, VariantResult]]:
        """The violations, the simplest first."""
        return [(turn, variant) for _, (_, turn, variant) in self._ranked()]

    def _ranked(self) -> list[tuple[str, tuple[PlainKey, TurnResult, VariantResult]]]:
        return sorted(self._best.items(), key=lambda item: item[1][0])[: self._most]


@dataclass(frozen=True, slots=True)
class Novelty:
    """The violations that a baseline comparison covers, by name (see `member_id`)."""

    #: Variants that held in the baseline and break now, although the clean answer is the same.
    new: frozenset[str] = frozenset()
    #: Violations in both builds.
    known: frozenset[str] = frozenset()

    @classmethod
    def of(cls, comparison: Mapping[str, Any] | None) -> Self:
        """Read the comparison of a report. Earlier versions of reports have none."""
        found = (comparison or {}).get("violations", {})
        return cls(frozenset(found.get("new", ())), frozenset(found.get("known", ())))

    def note(self, turn: TurnResult, variant: VariantResult) -> str:
        """Return the note on a violation, or ``""`` if it was not compared."""
        name = member_id(turn, variant)
        return NEW if name in self.new else KNOWN if name in self.known else ""

    def only_new(self, results: Iterable[TurnResult]) -> Iterator[TurnResult]:
        """Yield the turns with a new violation, without their other variants."""
        yield from self._chosen(results, lambda name: name in self.new)

    def not_compared(self, results: Iterable[TurnResult]) -> Iterator[TurnResult]:
        """Yield the turns with violations that were not compared, without their other variants."""
        yield from self._chosen(results, lambda name: name not in self.new | self.known)

    def plainest_new(
        self, results: Iterable[TurnResult], most: int
    ) -> list[tuple[TurnResult, VariantResult]]:
        """Return the simplest new violations."""
        if not self.new:
            return []
        return tally_results(PlainestTally(most, each="variant"), self.only_new(results)).pairs

    def _chosen(
        self, results: Iterable[TurnResult], wanted: Callable[[str], bool]
    ) -> Iterator[TurnResult]:
        for turn in results:
            chosen = tuple(one for one in turn.violations if wanted(member_id(turn, one)))
            if chosen:
                yield replace(turn, variants=chosen)


class OnPage(NamedTuple):
    """The violations on a page."""

    #: Their numbers, from 0 in the order of the results.
    numbers: frozenset[int]
    #: Their dialogues.
    dialogues: frozenset[str]
    #: Number of all violations.
    total: int
    #: Whether there are several relations.
    several: bool


class OnPageTally:
    """Selects the violations of a page.

    If there are at most `MOST_ON_PAGE` violations, it selects all. Otherwise it first selects the
    simplest violations of each weakness, the worst weakness first. Then it adds the simplest of the
    remaining violations.
    """

    def __init__(self, weaknesses: Iterable[Sequence[str]] = ()) -> None:
        """Create an empty tally. ``weaknesses`` has the names of each weakness's violations."""
        self._groups = {name: group for group, members in enumerate(weaknesses) for name in members}
        self._total = 0
        self._all: list[PlainKey] = []
        self._of_group: dict[int, list[PlainKey]] = {}
        self._relations: set[str] = set()

    def add(self, turn: TurnResult) -> None:
        """Consider the violations of a turn."""
        self._relations.add(turn.relation)
        for variant in turn.violations:
            key = (simplicity(variant), turn.dialogue_id, turn.turn_index, self._total)
            self._total += 1
            _keep(self._all, key, MOST_ON_PAGE)
            if (group := self._groups.get(member_id(turn, variant))) is not None:
                _keep(self._of_group.setdefault(group, []), key, _MOST_OF_WEAKNESS)

    @property
    def chosen(self) -> OnPage:
        """The violations to show."""
        found: dict[PlainKey, None] = {}
        if self._total > MOST_ON_PAGE:
            for _, keys in sorted(self._of_group.items()):
                found |= dict.fromkeys(sorted(keys)[:_MOST_OF_WEAKNESS])
        found |= dict.fromkeys(sorted(self._all))
        keys = list(found)[:MOST_ON_PAGE]
        return OnPage(
            frozenset(number for *_, number in keys),
            frozenset(dialogue for _, dialogue, *_ in keys),
            self._total,
            len(self._relations) > 1,
        )


def _keep(keys: list[PlainKey], key: PlainKey, most: int) -> None:
    """Add a key. If the list is twice as long as allowed, keep only the ``most`` smallest keys."""
    keys.append(key)
    if len(keys) >= 2 * most:
        keys.sort()
        del keys[most:]


def simplicity(variant: VariantResult) -> tuple[int, int, float, int]:
    """Return a key that sorts violations from the simplest to the most contrived."""
    own_doing = {"turn": 0, "both": 1}.get(variant.cause or "", 2)
    rates = variant.edit_w + variant.edit_c
    return (own_doing, variant.plain.size, round(rates, 6), variant.index)
