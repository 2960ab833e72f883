"""What two builds were both asked: sums by dialogue of identical variants, and what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pytest_dstfuzz.campaign.sums import DialogueNumbers, DialogueSums
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.gate.baseline import ComparedVariant
from pytest_dstfuzz.gate.limits import Part

#: Causes for which a variant's own edits, and so their transformations, are to blame.
_OWN = ("turn", "both")
#: Outcomes of a variant at which nothing broke. One that is ``carried`` had broken before.
_HELD = ("held", "improved")


#: Where a variant is, and its name.
_Place = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """One variant that both builds were asked about."""

    turn_id: str
    dialogue: str
    index: int
    before: ComparedVariant
    after: ComparedVariant
    #: See `member_id`.
    name: str
    #: Whether both builds gave the same answer to the clean turn.
    same_answer: bool
    #: Its transformations, and slots and domains at stake in either build: of the clean
    #: prediction, or changed by the variant.
    parts: frozenset[Part]

    @property
    def moved(self) -> int:
        """1 where the variant is a violation in the run alone, -1 in the baseline alone, else 0."""
        return self.violates(self.after, None) - self.violates(self.before, None)

    @property
    def broke(self) -> bool:
        """Whether it held in the baseline and breaks now, with the clean answer as it was."""
        held = self.before.outcome in _HELD
        return self.same_answer and held and self.after.outcome == "violation"

    @property
    def known(self) -> bool:
        """Whether it is a violation in both builds."""
        return self.before.outcome == self.after.outcome == "violation"

    def violates(self, outcome: ComparedVariant, part: Part | None) -> bool:
        """Whether a build's outcome is a violation, in the part where one is given."""
        if outcome.outcome != "violation" or part is None:
            return outcome.outcome == "violation"
        if part.kind == "transformation":
            return outcome.cause in _OWN
        return part in parts_of(outcome.changed)


class Tally(NamedTuple):
    """Variants compared of some dialogue or part, and violations among them in each build."""

    variants: int = 0
    before: int = 0
    after: int = 0


class Failing(NamedTuple):
    """Turns of some dialogue that failures are expected of, and those failures in each build."""

    turns: int = 0
    before: float = 0.0
    after: float = 0.0


class Asked:
    """What two builds were both asked: sums by dialogue, and the variants whose outcome moved."""

    def __init__(self) -> None:
        #: Variants that either build ran at the turns that both have, and of them those that were
        #: identical and answered in both.
        self.possible = self.variants = 0
        #: Ids of the weaknesses of variants that are a violation in one build and not in the other.
        self.weaknesses: set[str] = set()
        #: Id of a weakness -> its violations in the baseline, and in the run, that are violations
        #: in the other build too, of whatever weakness.
        self.old_before: Counter[str] = Counter()
        self.old_after: Counter[str] = Counter()
        self._numbers = DialogueNumbers()
        #: Part, or ``None`` = all -> variants, violations before and after of each dialogue.
        self._sums: dict[Part | None, DialogueSums] = {None: DialogueSums(3, self._numbers)}
        #: Dialogue, turn id, number, and whether it is a violation in the run alone, or before.
        self._moved: list[tuple[str, str, int, int]] = []
        #: Dialogue, turn id, number and name of the variants that broke, and of known violations.
        self._broke: list[_Place] = []
        self._known: list[_Place] = []

    def add(self, pair: Pair) -> None:
        """Take in a variant."""
        self.variants += 1
        if pair.violates(pair.before, None) and pair.violates(pair.after, None):
            self.old_before[pair.before.weakness] += 1
            self.old_after[pair.after.weakness] += 1
        if pair.moved:
            self.weaknesses.add(pair.before.weakness or pair.after.weakness)
            self._moved.append((pair.dialogue, pair.turn_id, pair.index, pair.moved))
        place = (pair.dialogue, pair.turn_id, pair.index, pair.name)
        if pair.broke:
            self._broke.append(place)
        if pair.known:
            self._known.append(place)
        for part in (None, *pair.parts):
            if part not in self._sums:
                self._sums[part] = DialogueSums(3, self._numbers)
            before, after = (pair.violates(build, part) for build in (pair.before, pair.after))
            self._sums[part].add(pair.dialogue, 1, before, after)

    def moved(self, sign: int) -> tuple[tuple[str, int], ...]:
        """Return turn id and number of the variants that moved one way, by dialogue and turn."""
        return tuple((turn, index) for _, turn, index, way in sorted(self._moved) if way == sign)

    @property
    def broke(self) -> tuple[str, ...]:
        """Names of the variants that held and break now, see `Pair.broke`."""
        return tuple(name for *_, name in sorted(self._broke))

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the violations that both builds have."""
        return tuple(name for *_, name in sorted(self._known))

    def take(self, other: Asked) -> None:
        """Add what was asked under another relation."""
        self.possible += other.possible
        self.variants += other.variants
        self.weaknesses |= other.weaknesses
        self.old_before.update(other.old_before)
        self.old_after.update(other.old_after)
        self._moved += other._moved
        self._broke += other._broke
        self._known += other._known
        for part, sums in other._sums.items():
            if part not in self._sums:
                self._sums[part] = DialogueSums(3, self._numbers)
            for dialogue, row in zip(other._numbers, sums.rows(0, 1, 2), strict=False):
                self._sums[part].add(dialogue, *row)

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        sums = self._sums.get(part)
        rows = [] if sums is None else sums.rows(0, 1, 2)
        found = {name: Tally(*row) for name, row in zip(self._numbers, rows, strict=False)}
        return {name: tally for name, tally in sorted(found.items()) if tally.variants}

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        found = {
            part: Tally(*map(sum, zip(*sums.rows(0, 1, 2), strict=True)))
            for part, sums in self._sums.items()
            if part is not None
        }
        return dict(sorted(found.items()))


def parts_of(paths: Iterable[str]) -> set[Part]:
    """Return the domains and slots of paths."""
    parts = {AnswerPath.of(path).part for path in paths}
    return {
        *(Part("domain", domain) for domain, _ in parts if domain),
        *(Part("slot", slot) for _, slot in parts),
    }
