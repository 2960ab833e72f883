"""Violations to show, of however many there are: the plainest, and those that are new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Self

from pytest_dstfuzz.campaign.figures import tallied
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.weaknesses.groups import member_id

#: Violations that a page shows, and of each weakness those that are shown before any others.
MOST_ON_PAGE: Final = 2_000
_MOST_OF_WEAKNESS: Final = 50
#: The note on a violation that the baseline has, too.
KNOWN: Final = "known: the baseline has it"
#: What sorts violations: how plain they are, dialogue, turn, and which of equals came first.
PlainKey = tuple[tuple[int, int, float, int], str, int, int]


class PlainestTally:
    """Keeps the violations that are easiest to follow, one of each dialogue or turn, or all.

    Fewest edits first, then the smallest rates; those that the turn's own edits caused before those
    that needed others. No more than twice as many are held as are kept.
    """

    def __init__(
        self, most: int, *, each: Literal["dialogue", "turn", "variant"] = "dialogue"
    ) -> None:
        self._most: Final = most
        self._each: Final = each
        self._seen = 0
        self._best: dict[str, tuple[PlainKey, TurnResult, VariantResult]] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in the violations of a turn."""
        for variant in turn.violations:
            name = turn.dialogue_id if self._each == "dialogue" else turn.id
            name = member_id(turn, variant) if self._each == "variant" else name
            self._seen += 1
            key = (simplicity(variant), turn.dialogue_id, turn.turn_index, self._seen)
            if name not in self._best or key < self._best[name][0]:
                self._best[name] = (key, turn, variant)
        if len(self._best) > 2 * self._most:
            # What is dropped here never comes back: the others only get plainer.
            self._best = dict(self._ranked())

    @property
    def pairs(self) -> list[tuple[TurnResult, VariantResult]]:
        """The violations, the plainest first."""
        return [(turn, variant) for _, (_, turn, variant) in self._ranked()]

    def _ranked(self) -> list[tuple[str, tuple[PlainKey, TurnResult, VariantResult]]]:
        return sorted(self._best.items(), key=lambda item: item[1][0])[: self._most]


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


class OnPage(NamedTuple):
    """Which violations a page shows."""

    #: Their numbers, from 0 in the order of the results.
    numbers: frozenset[int]
    #: Their dialogues.
    dialogues: frozenset[str]
    #: How many there are.
    total: int
    #: Whether there are several relations.
    several: bool


class OnPageTally:
    """Chooses the violations of a page, one turn after the other.

    All, or of more than `MOST_ON_PAGE` the plainest of each weakness, worst weakness first, and
    then the plainest of all.
    """

    def __init__(self, weaknesses: Iterable[Sequence[str]] = ()) -> None:
        """Begin without a turn; ``weaknesses`` are the names of the violations of each."""
        self._groups = {name: group for group, members in enumerate(weaknesses) for name in members}
        self._total = 0
        self._all: list[PlainKey] = []
        self._of_group: dict[int, list[PlainKey]] = {}
        self._relations: set[str] = set()

    def add(self, turn: TurnResult) -> None:
        """Take in the violations of a turn."""
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
    """Add a key to the smallest ones, of which now and then all but ``most`` are dropped."""
    keys.append(key)
    if len(keys) >= 2 * most:
        keys.sort()
        del keys[most:]


def simplicity(variant: VariantResult) -> tuple[int, int, float, int]:
    """Return a key that sorts violations from the plainest to the most contrived."""
    own_doing = {"turn": 0, "both": 1}.get(variant.cause or "", 2)
    rates = variant.edit_w + variant.edit_c
    return (own_doing, variant.plain.size, round(rates, 6), variant.index)
