"""The weaknesses of a run: its violations by their keys, worst first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeVar

from pytest_dstfuzz.campaign.expected import (
    TURNS,
    counted,
    distinct_chances,
    expected_failures,
    failing_mass,
    weight_of,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.weaknesses.keys import Key, Reading, read
from pytest_dstfuzz.weaknesses.triage import description, to_try

#: What weaknesses are ranked by: failures expected of 1,000 user turns, or of a search without a
#: density how many of them are typed as what was found, or without a noise model turns broken.
Ranking = Literal["expected failures", "failing mass", "turns"]
#: Expected failures of a weakness and how many of 1,000 user turns are typed as it; either or none.
Figures = tuple[float | None, float | None]
_T = TypeVar("_T")
#: Words and slots that are named.
_MOST: Final = 5


class Member(NamedTuple):
    """One violation of a weakness."""

    turn: TurnResult
    variant: VariantResult
    reading: Reading

    @property
    def id(self) -> str:
        """Name of the violation."""
        return member_id(self.turn, self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Violations with one key.

    Attributes:
        key: what they have in common.
        members: the violations, by turn and variant.
        expected: of 1,000 user turns, how many are expected to fail by it; ``None`` where the
            run gives no such figure for all of them.
        mass: of 1,000 user turns, how many people type as one of the violations: a lower bound.
            ``None`` where there are expected failures, or no noise model.
        accepted: why it may stay, where somebody accepted it; ``""`` otherwise.
    """

    key: Key
    members: tuple[Member, ...]
    expected: float | None = None
    mass: float | None = None
    accepted: str = ""

    @property
    def id(self) -> str:
        """Readable, and the same in every run that finds it."""
        return self.key.id

    @property
    def description(self) -> str:
        """What the violations have in common, in words."""
        return description(self.key, self.members[0].turn.outcome_kind)

    @property
    def to_try(self) -> str:
        """What may help."""
        return to_try(self.key, self.members[0].turn.outcome_kind)

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
        """The plainest of them: least edits, own ones before those of earlier turns, short.

        Where labels know, one whose clean answer is right goes before that: nobody minds that a
        wrong answer changes.
        """
        return min(self.members, key=_plainness)


def member_id(turn: TurnResult, variant: VariantResult) -> str:
    """Return the name of a violation: its turn, the relation if not the default, its variant."""
    relation = "" if turn.relation == "metamorphic" else f"-{turn.relation}"
    return f"{turn.id}{relation}-v{variant.index}"


def find_weaknesses(results: Iterable[TurnResult]) -> tuple[Weakness, ...]:
    """Return what a run found, worst first; the order of the results does not matter.

    Those of which the run does not know how often people meet them come last, see `ranked`.
    """
    turns = list(results)
    groups: dict[Key, list[Member]] = {}
    for turn in turns:
        for variant in turn.violations:
            member = Member(turn, variant, read(turn, variant))
            groups.setdefault(member.reading.key, []).append(member)
    weigh = _scale(turns)
    found = [weigh(key, tuple(sorted(members, key=_place))) for key, members in groups.items()]
    return tuple(sorted(found, key=_rank))


def figures_of(weakness: Weakness) -> Figures:
    """Return what a weakness is ranked by, as far as the run knows it."""
    return weakness.expected, weakness.mass


def ranked(
    found: Sequence[_T], figures: Callable[[_T], Figures]
) -> tuple[tuple[Ranking, tuple[_T, ...]], ...]:
    """Return the lists of weaknesses, as `find_weaknesses` orders them, and what ranks each.

    There are two where relations make edits of which nobody knows how often people make them,
    beside those of a noise model: no figure says which of these and which of those is worse.
    """
    known = tuple(one for one in found if figures(one) != (None, None))
    rest = tuple(one for one in found if figures(one) == (None, None))
    how: Ranking = "failing mass"
    if any(figures(one)[0] is not None for one in known):
        how = "expected failures"
    lists: list[tuple[Ranking, tuple[_T, ...]]] = [(how, known), ("turns", rest)]
    return tuple(one for one in lists if one[1])


def _scale(turns: Sequence[TurnResult]) -> Callable[[Key, tuple[Member, ...]], Weakness]:
    """Return what makes a weakness of members: with the figure that the run gives, if any."""
    figure, mass = expected_failures(turns), failing_mass(turns)

    def weigh(key: Key, members: tuple[Member, ...]) -> Weakness:
        if all(one.turn.noise is None for one in members):
            # Nobody knows how often people make such an edit: of relations with edits of their own.
            return Weakness(key=key, members=members)
        known = [one for one in members if counted(one.turn)]
        if figure is not None and figure.per_1000 is not None:
            weight = math.fsum(weight_of(one.turn, one.variant) for one in known)
            return Weakness(key=key, members=members, expected=TURNS * weight / figure.turns)
        if mass is not None:
            chances = math.fsum(distinct_chances(one.variant for one in known))
            return Weakness(key=key, members=members, mass=TURNS * chances / mass.turns)
        return Weakness(key=key, members=members)

    return weigh


def _rank(weakness: Weakness) -> tuple[bool, float, int, str]:
    figure = weakness.mass if weakness.expected is None else weakness.expected
    return (figure is None, -(figure or 0.0), -weakness.turns, weakness.id)


def _place(member: Member) -> tuple[str, int, int, str]:
    return (member.turn.dialogue_id, member.turn.turn_index, member.variant.index, member.id)


def _plainness(member: Member) -> tuple[bool, int, bool, int, tuple[str, int, int, str]]:
    plain, cause, label = member.variant.plain, member.variant.cause, member.turn.label
    wrong = label is not None and any(
        label.get(change.slot) != change.before
        for change in plain.changed_slots
        if not change.carried
    )
    return (wrong, plain.size, cause != "turn", len(plain.text), _place(member))


def _most_frequent(names: Iterable[str]) -> tuple[str, ...]:
    counted = sorted(Counter(filter(None, names)).items(), key=lambda item: (-item[1], item[0]))
    return tuple(name for name, _ in counted[:_MOST])
