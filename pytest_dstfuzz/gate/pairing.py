"""What two builds share: turns with the same words before them, and identical variants of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantOutcome
from pytest_dstfuzz.dialogue.dialogues import domains_of_slots
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    ComparedVariant,
    Contents,
    Groups,
    TurnOutcomes,
    TurnPosition,
    failures_of,
    kept_state,
)
from pytest_dstfuzz.gate.drift import CleanPair
from pytest_dstfuzz.gate.limits import Part
from pytest_dstfuzz.json_data import to_json

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
    before: ComparedVariant
    after: ComparedVariant
    #: Its transformations, and slots and domains at stake in either build: of the clean
    #: prediction, or changed by the variant.
    parts: frozenset[Part]

    @property
    def place(self) -> tuple[str, int]:
        """Turn id and number of the variant."""
        return self.turn_id, self.index

    @property
    def moved(self) -> int:
        """1 where the variant is a violation in the run alone, -1 in the baseline alone, else 0."""
        return self.violates(self.after, None) - self.violates(self.before, None)

    def violates(self, outcome: ComparedVariant, part: Part | None) -> bool:
        """Whether a build's outcome is a violation, in the part where one is given."""
        if outcome.outcome != "violation" or part is None:
            return outcome.outcome == "violation"
        if part.kind == "transformation":
            return outcome.cause in _OWN
        return part in _parts_of(outcome.changed)


class Tally(NamedTuple):
    """Variants compared of some dialogue or part, and violations among them in each build."""

    variants: int = 0
    before: int = 0
    after: int = 0

    def plus(self, pair: Pair, part: Part | None) -> Tally:
        """Return the tally with one more variant, in the part where one is given."""
        before, after = (pair.violates(build, part) for build in (pair.before, pair.after))
        return Tally(self.variants + 1, self.before + before, self.after + after)


class Failing(NamedTuple):
    """Turns of some dialogue that failures are expected of, and those failures in each build."""

    turns: int = 0
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two builds have in common."""

    pairs: tuple[Pair, ...]
    #: Clean answers of both builds.
    clean: tuple[CleanPair, ...]
    matching: Matching
    #: Variants that either build ran at the turns that both have.
    possible: int
    #: Turns that both have, and those of one alone.
    turns: int
    only_baseline: int
    only_run: int
    #: Dialogues of the turns that both have, and all that the run tested.
    dialogues: int
    tested: int
    #: Turns that the baseline has an answer to, and at which the tracker failed now.
    silenced: int = 0
    #: Turn id and number of variants that are a violation in one build alone.
    new: tuple[tuple[str, int], ...] = ()
    gone: tuple[tuple[str, int], ...] = ()
    #: Of the turns that failures are expected of in both builds, by dialogue, sorted.
    failing: Mapping[str, Failing] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Share of the possible variants that were identical and answered in both builds."""
        return len(self.pairs) / self.possible if self.possible else None

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        found: dict[str, Tally] = {}
        for pair in self.pairs:
            if part is None or part in pair.parts:
                found[pair.dialogue] = found.get(pair.dialogue, Tally()).plus(pair, part)
        return dict(sorted(found.items()))

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        found: dict[Part, Tally] = {}
        for pair in self.pairs:
            for part in pair.parts:
                found[part] = found.get(part, Tally()).plus(pair, part)
        return dict(sorted(found.items()))


def pair_up(baseline: Baseline, groups: Groups, contents: Contents) -> Pairing:
    """Return the turns and the variants that a baseline and a run share."""
    new = {
        TurnPosition(name, turn.dialogue_id, turn.turn_index): turn
        for name, turns in _named(baseline, groups)
        for turn in turns
        if turn.outcome != "skipped"
    }
    tested = {place.dialogue for place in new}
    every = chain.from_iterable(baseline.groups.values())
    matching = match_dialogues(every, contents, tested)
    old = {
        TurnPosition(name, matching.known.get(turn.dialogue, turn.dialogue), turn.turn): turn
        for name, turns in baseline.groups.items()
        for turn in turns
        if turn.dialogue in matching.known
    }
    both = {
        place: (old[place], turn)
        for place, turn in new.items()
        if place in old and old[place].key == contents[place.dialogue][place.turn]
    }
    # Variants are drawn by the name of a dialogue: one of another name has others.
    renamed = {new_name for _, new_name in matching.renamed}
    pairs = list(
        chain.from_iterable(
            _pairs(*each) for place, each in both.items() if place.dialogue not in renamed
        )
    )
    pairs.sort(key=lambda pair: (pair.dialogue, pair.turn_id, pair.index))
    clean = [pair for each in both.values() if (pair := _clean(*each, baseline.hidden))]
    return Pairing(
        pairs=tuple(pairs),
        clean=tuple(sorted(clean, key=lambda pair: (pair.dialogue, pair.turn_id))),
        matching=matching,
        possible=sum(
            _possible(*each) for place, each in both.items() if place.dialogue not in renamed
        ),
        turns=len(both),
        silenced=sum(
            old.state is not None and turn.clean_state is None and turn.outcome == "error"
            for old, turn in both.values()
        ),
        only_baseline=sum(map(len, baseline.groups.values())) - len(both),
        only_run=len(new) - len(both),
        dialogues=len({place.dialogue for place in both}),
        tested=len(tested),
        new=tuple(pair.place for pair in pairs if pair.moved > 0),
        gone=tuple(pair.place for pair in pairs if pair.moved < 0),
        failing=_failing(both.values()),
    )


def _named(baseline: Baseline, groups: Groups) -> Iterable[tuple[str, Sequence[TurnResult]]]:
    """Return the groups of a run under the names that the baseline has for them.

    Where each has but one that the other does not know it is the same, whatever became of the
    names of tests and parameters: a tracker that drifts does not hide behind another name.
    """
    gone = [name for name in baseline.groups if name not in groups]
    new = [name for name in groups if name not in baseline.groups]
    names = dict(zip(new, gone, strict=True)) if len(gone) == len(new) == 1 else {}
    return [(names.get(name, name), turns) for name, turns in groups.items()]


def _pairs(old: TurnOutcomes, turn: TurnResult) -> Iterator[Pair]:
    known = {item.number: item for item in old.variants}
    for variant in turn.variants:
        before, after = known.get(variant.index), ComparedVariant.of(turn, variant)
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
                parts=frozenset(
                    _parts_of((*(old.state or ()), *(turn.clean_state or ()), *changed))
                    | {Part("transformation", edit.transformation) for edit in variant.edits}
                ),
            )


def _failing(both: Iterable[tuple[TurnOutcomes, TurnResult]]) -> dict[str, Failing]:
    """Add up the expected failures of each dialogue; other variants estimate the same."""
    found: dict[str, Failing] = {}
    for old, turn in sorted(both, key=lambda each: (each[1].dialogue_id, each[1].turn_index)):
        now = failures_of(turn)
        if old.failures is not None and now is not None:
            turns, before, after = found.get(turn.dialogue_id, Failing())
            found[turn.dialogue_id] = Failing(turns + 1, before + old.failures, after + now)
    return found


def _clean(old: TurnOutcomes, turn: TurnResult, hidden: bool) -> CleanPair | None:
    """Return the clean answers to one turn, where both builds had one."""
    if old.state is None or turn.clean_state is None:
        return None
    return CleanPair(
        turn_id=turn.id,
        dialogue=turn.dialogue_id,
        before=old.state,
        after=kept_state(turn.clean_state, hidden),
        label=None if turn.label is None else kept_state(turn.label, hidden),
    )


def _possible(old: TurnOutcomes, turn: TurnResult) -> int:
    """Count the variants that either build ran, those under one number but once."""
    ran = {variant.index for variant in turn.variants if variant.outcome in RUN_OUTCOMES}
    return len(ran | {item.number for item in old.variants if item.outcome in RUN_OUTCOMES})


def _parts_of(slots: Iterable[str]) -> set[Part]:
    return {
        *(Part("domain", domain) for domain in domains_of_slots(slots)),
        *(Part("slot", slot) for slot in slots),
    }


@dataclass(frozen=True, slots=True)
class Matching:
    """The dialogues of two builds, each by its id.

    A dialogue that both have may have been renamed. One that was changed is still compared up
    to the turn before the change.
    """

    #: Baseline's id -> run's id of what is the same, or changed.
    known: Mapping[str, str]
    #: Ids of this run, and those of the baseline that the data does not have any more.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Baseline's id and run's id.
    renamed: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object ``suite`` of the JSON report's comparison."""
        plain: dict[str, Any] = to_json(self)
        return {name: plain[name] for name in ("added", "removed", "changed", "renamed")}


def match_dialogues(
    old: Iterable[TurnOutcomes], contents: Contents, tested: Collection[str]
) -> Matching:
    """Find the dialogues of a baseline in the data of a run that ``tested`` some of them."""
    #: Place and key of the last turn that the baseline has of a dialogue.
    lasts: dict[str, tuple[int, str]] = {}
    for turn in old:
        lasts[turn.dialogue] = max(lasts.get(turn.dialogue, (-1, "")), (turn.turn, turn.key))
    holders: dict[tuple[int, str], list[str]] = {}
    for name, keys in contents.items():
        for place in enumerate(keys):
            holders.setdefault(place, []).append(name)
    known = {name: name for name, last in lasts.items() if name in holders.get(last, ())}
    taken = set(known)
    renamed = []
    for name, last in lasts.items():
        free = [other for other in holders.get(last, ()) if other not in taken]
        if name not in known and free:
            known[name] = free[0]
            taken.add(free[0])
            renamed.append((name, free[0]))
    left = contents.keys() - taken
    changed = [name for name in lasts if name not in known and name in left]
    known |= {name: name for name in changed}
    return Matching(
        known=known,
        added=tuple(sorted(set(tested) - set(known.values()))),
        removed=tuple(sorted(lasts.keys() - known.keys())),
        changed=tuple(sorted(changed)),
        renamed=tuple(sorted(renamed)),
    )
