"""Two builds on identical variants: which they share, and what each did to them, by dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantOutcome
from pytest_dstfuzz.gate.baseline import Baseline, Groups, Outcome, TurnOutcomes
from pytest_dstfuzz.gate.limits import Part

#: Outcomes that say what the tracker makes of a variant; an error says nothing about it.
_ANSWERED: tuple[VariantOutcome, ...] = tuple(name for name in RUN_OUTCOMES if name != "error")
#: Causes for which a variant's own edits, and so their transformations, are to blame.
_OWN = ("turn", "both")


@dataclass(frozen=True, slots=True)
class Pair:
    """One variant that both builds were asked about."""

    turn_id: str
    dialogue: str
    index: int
    before: Outcome
    after: Outcome
    #: Slots at stake in either build: of the clean prediction, or changed by the variant.
    slots: frozenset[str]
    transformations: frozenset[str]

    @property
    def place(self) -> tuple[str, int]:
        """Turn id and number of the variant."""
        return self.turn_id, self.index

    @property
    def moved(self) -> int:
        """1 where the variant is a violation in the run alone, -1 in the baseline alone, else 0."""
        return self.violates(self.after, None) - self.violates(self.before, None)

    def violates(self, outcome: Outcome, part: Part | None) -> bool:
        """Whether a build's outcome is a violation, in the part where one is given."""
        if outcome.outcome != "violation":
            return False
        if part is None:
            return True
        if part.kind == "transformation":
            return outcome.cause in _OWN
        return any(_touches(slot, part) for slot in outcome.changed)

    def belongs(self, part: Part | None) -> bool:
        """Whether the variant counts in a part."""
        if part is None:
            return True
        if part.kind == "transformation":
            return part.name in self.transformations
        return any(_touches(slot, part) for slot in self.slots)

    def parts(self) -> Iterator[Part]:
        """Yield every part in which the variant counts."""
        yield from (Part("domain", slot.partition("-")[0]) for slot in self.slots if "-" in slot)
        yield from (Part("slot", slot) for slot in self.slots)
        yield from (Part("transformation", name) for name in self.transformations)


class Tally(NamedTuple):
    """Variants compared of some dialogue or part, and violations among them in each build."""

    variants: int = 0
    before: int = 0
    after: int = 0

    def plus(self, before: bool, after: bool) -> Tally:
        """Return the tally with one more variant."""
        return Tally(self.variants + 1, self.before + before, self.after + after)


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two builds have in common."""

    pairs: tuple[Pair, ...]
    #: Variants that either build ran at the turns that both have.
    possible: int
    #: Turns that both have, and those of one alone.
    turns: int
    only_baseline: int
    only_run: int
    #: Turn id and number of variants that are a violation in one build alone.
    new: tuple[tuple[str, int], ...] = ()
    gone: tuple[tuple[str, int], ...] = ()

    @property
    def share(self) -> float | None:
        """Share of the possible variants that were identical and answered in both builds."""
        return len(self.pairs) / self.possible if self.possible else None

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        found: dict[str, Tally] = {}
        for pair in self.pairs:
            if pair.belongs(part):
                both = (pair.violates(pair.before, part), pair.violates(pair.after, part))
                found[pair.dialogue] = found.get(pair.dialogue, Tally()).plus(*both)
        return dict(sorted(found.items()))

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        found: dict[Part, Tally] = {}
        for pair in self.pairs:
            for part in set(pair.parts()):
                both = (pair.violates(pair.before, part), pair.violates(pair.after, part))
                found[part] = found.get(part, Tally()).plus(*both)
        return dict(sorted(found.items()))


def pair_up(baseline: Baseline, groups: Groups) -> Pairing:
    """Return the variants that a baseline and a run share.

    Args:
        baseline: of the earlier build.
        groups: the results of this one.
    """
    old = {(name, turn.id): turn for name, turns in baseline.groups.items() for turn in turns}
    new = {
        (name, turn.id): turn for name, turns in _named(baseline, groups) for turn in _run(turns)
    }
    both = [key for key in new if key in old]
    pairs = list(chain.from_iterable(_pairs(old[key], new[key]) for key in both))
    pairs.sort(key=lambda pair: (pair.dialogue, pair.turn_id, pair.index))
    return Pairing(
        pairs=tuple(pairs),
        possible=sum(_possible(old[key], TurnOutcomes.of(new[key])) for key in both),
        turns=len(both),
        only_baseline=len(old.keys() - new.keys()),
        only_run=len(new.keys() - old.keys()),
        new=tuple(pair.place for pair in pairs if pair.moved > 0),
        gone=tuple(pair.place for pair in pairs if pair.moved < 0),
    )


def _named(baseline: Baseline, groups: Groups) -> Iterable[tuple[str, Sequence[TurnResult]]]:
    """Return the groups of a run under the names that the baseline has for them.

    Where each has but one it is the same, whatever became of the names of tests.
    """
    if len(baseline.groups) == len(groups) == 1:
        return zip(baseline.groups, groups.values(), strict=True)
    return groups.items()


def _run(turns: Iterable[TurnResult]) -> Iterator[TurnResult]:
    """Leave out the turns that the budget left out."""
    return (turn for turn in turns if turn.outcome != "skipped")


def _pairs(old: TurnOutcomes, turn: TurnResult) -> Iterator[Pair]:
    new = TurnOutcomes.of(turn)
    for variant in turn.variants:
        before, after = old.variants.get(variant.index), new.variants[variant.index]
        if before is None or before.digest != after.digest:
            continue
        if before.outcome in _ANSWERED and after.outcome in _ANSWERED:
            changed = (*before.changed, *before.carried, *after.changed, *after.carried)
            yield Pair(
                turn_id=turn.id,
                dialogue=turn.dialogue_id,
                index=variant.index,
                before=before,
                after=after,
                slots=frozenset((*old.slots, *new.slots, *changed)),
                transformations=frozenset(edit.transformation for edit in variant.edits),
            )


def _possible(old: TurnOutcomes, new: TurnOutcomes) -> int:
    """Count the variants that either build ran, those under one number but once."""
    return len({index for turn in (old, new) for index in _ran(turn.variants)})


def _ran(variants: Mapping[int, Outcome]) -> Iterator[int]:
    return (index for index, outcome in variants.items() if outcome.outcome in RUN_OUTCOMES)


def _touches(slot: str, part: Part) -> bool:
    return slot == part.name if part.kind == "slot" else slot.startswith(f"{part.name}-")
