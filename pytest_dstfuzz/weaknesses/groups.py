"""The weaknesses of a run: its violations by their keys, worst first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.weaknesses.keys import Key, Reading, read
from pytest_dstfuzz.weaknesses.triage import description, to_try

#: What weaknesses are ranked by: how likely people are to type what was found, or where no noise
#: model says that, how many turns are broken.
Ranking = Literal["mass", "turns"]
#: Words and slots that are named.
_MOST: Final = 5


class Member(NamedTuple):
    """One violation of a weakness."""

    turn: TurnResult
    variant: VariantResult
    reading: Reading

    @property
    def id(self) -> str:
        """Name of the violation: its turn and the number of its variant."""
        return f"{self.turn.id}-v{self.variant.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Violations with one key.

    Attributes:
        key: what they have in common.
        members: the violations, by turn and variant.
        mass: of 1,000 user turns such as those tested, how many people would spoil by typing one
            of the very texts that were found: a lower bound. ``None`` where no noise model was
            in use.
    """

    key: Key
    members: tuple[Member, ...]
    mass: float | None

    @property
    def id(self) -> str:
        """Readable, and the same in every run that finds it."""
        return self.key.id

    @property
    def description(self) -> str:
        """What the violations have in common, in words."""
        return description(self.key)

    @property
    def to_try(self) -> str:
        """What may help."""
        return to_try(self.key)

    @property
    def turns(self) -> int:
        """Number of turns that it breaks."""
        return len({member.turn.id for member in self.members})

    @property
    def words(self) -> tuple[str, ...]:
        """The words that are edited most often, in lower case."""
        return _most_frequent(word for member in self.members for word in member.reading.words)

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that change most often."""
        return _most_frequent(member.reading.slot for member in self.members)

    @property
    def example(self) -> Member:
        """The plainest of them: least edits, own ones before those of earlier turns, short."""
        return min(self.members, key=_plainness)


def find_weaknesses(results: Iterable[TurnResult]) -> tuple[Weakness, ...]:
    """Return what a run found, worst first; the order of the results does not matter."""
    turns = list(results)
    groups: dict[Key, list[Member]] = {}
    for turn in turns:
        for variant in turn.violations:
            member = Member(turn, variant, read(turn, variant))
            groups.setdefault(member.reading.key, []).append(member)
    tested = sum(turn.tested for turn in turns)
    found = [
        Weakness(key=key, members=tuple(sorted(members, key=_place)), mass=_mass(members, tested))
        for key, members in groups.items()
    ]
    return tuple(sorted(found, key=_rank))


def ranked_by(weaknesses: Sequence[Weakness]) -> Ranking:
    """Return what `find_weaknesses` ranked by."""
    return "mass" if any(one.mass is not None for one in weaknesses) else "turns"


def _mass(members: Iterable[Member], tested: int) -> float | None:
    """Return 1,000 times the mean, over the turns tested, of the probability of the texts found."""
    texts = {
        (member.turn.id, member.variant.text): member.variant.log_probability
        for member in members
        if member.variant.log_probability is not None
    }
    # In order, as sums of floats depend on it.
    known = [chance for _, chance in sorted(texts.items()) if chance is not None]
    return 1000 * math.fsum(map(math.exp, known)) / tested if known else None


def _rank(weakness: Weakness) -> tuple[float, int, str]:
    return (-(weakness.mass or 0.0), -weakness.turns, weakness.id)


def _place(member: Member) -> tuple[str, int, int, str]:
    return (member.turn.dialogue_id, member.turn.turn_index, member.variant.index, member.id)


def _plainness(member: Member) -> tuple[int, bool, int, tuple[str, int, int, str]]:
    plain, cause = member.variant.plain, member.variant.cause
    return (plain.size, cause != "turn", len(plain.text), _place(member))


def _most_frequent(names: Iterable[str]) -> tuple[str, ...]:
    counted = sorted(Counter(filter(None, names)).items(), key=lambda item: (-item[1], item[0]))
    return tuple(name for name, _ in counted[:_MOST])
