"""The weaknesses of a run: its violations by their keys, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeVar

from pytest_dstfuzz.campaign.expected import (
    TURNS,
    ExpectedFailures,
    ExpectedTally,
    FailingMass,
    MassTally,
    counted,
    distinct_chances,
    weight_of,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.sums import DistinctCount, ExactSum, tallied
from pytest_dstfuzz.weaknesses.keys import Key, Reading, read
from pytest_dstfuzz.weaknesses.triage import description, to_try

__all__ = ["find_weaknesses"]

#: What weaknesses are ranked by: failures expected of 1,000 user turns, or of a search without a
#: density how many of them are typed as what was found, or without a noise model turns broken.
Ranking = Literal["expected failures", "failing mass", "turns"]
#: Expected failures of a weakness and how many of 1,000 user turns are typed as it; either or none.
Figures = tuple[float | None, float | None]
_T = TypeVar("_T")
#: Words and slots that are named.
_MOST: Final = 5
#: Violations of a weakness that are named; its figures are of all.
MOST_MEMBERS: Final = 5_000
#: Dialogue, turn, number of the variant and name of a violation.
_Place = tuple[str, int, int, str]


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
        count: how many violations there are.
        turns: how many turns it breaks.
        words: the words that are edited most often, in lower case.
        slots: the slots that change most often.
        example: the plainest of them: least edits, own ones before those of earlier turns, short.
            Where labels know, one whose clean answer is right goes before that: nobody minds that
            a wrong answer changes.
        members: the names of the violations, by turn and variant; of more than `MOST_MEMBERS` the
            first ones.
        expected: of 1,000 user turns, how many are expected to fail by it; ``None`` where the
            run gives no such figure for all of them.
        mass: of 1,000 user turns, how many people type as one of the violations: a lower bound.
            ``None`` where there are expected failures, or no noise model.
        accepted: why it may stay, where somebody accepted it; ``""`` otherwise.
    """

    key: Key
    count: int
    turns: int
    words: tuple[str, ...]
    slots: tuple[str, ...]
    example: Member
    members: tuple[str, ...]
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
        return description(self.key, self.example.turn.kind)

    @property
    def to_try(self) -> str:
        """What may help."""
        return to_try(self.key, self.example.turn.kind)


def member_id(turn: TurnResult, variant: VariantResult) -> str:
    """Return the name of a violation: its turn, the relation if not the default, its variant."""
    relation = "" if turn.relation == "metamorphic" else f"-{turn.relation}"
    return f"{turn.id}{relation}-v{variant.index}"


class WeaknessTally:
    """Groups the violations of results by their keys, one turn after the other.

    Of each key it keeps counts, the plainest violation, and the names of `MOST_MEMBERS` violations.
    """

    def __init__(self) -> None:
        self._groups: dict[Key, _Group] = {}
        self._expected, self._mass = ExpectedTally(), MassTally()
        self._shrunk: set[bool] = set()

    def add(self, turn: TurnResult) -> None:
        """Take in the violations of a turn."""
        self._expected.add(turn)
        self._mass.add(turn)
        for variant in turn.violations:
            member = Member(turn, variant, read(turn, variant))
            key = member.reading.key
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(member)
            group.add(member)
            self._shrunk.add(variant.minimal is not None)

    @property
    def shrunk(self) -> bool | None:
        """Whether smallest versions of violations were looked for: they decide the weakness.

        ``None`` without a violation.
        """
        return any(self._shrunk) if self._shrunk else None

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """What was found, worst first.

        Those of which the run does not know how often people meet them come last, see `ranked`.
        """
        figure, mass = self._expected.expected, self._mass.mass
        found = [group.weakness(key, figure, mass) for key, group in self._groups.items()]
        return tuple(sorted(found, key=_rank))


def find_weaknesses(results: Iterable[TurnResult]) -> tuple[Weakness, ...]:
    """Return what a run found, worst first; the order of the results does not matter."""
    return tallied(WeaknessTally(), results).weaknesses


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


class _Group:
    """The violations with one key."""

    def __init__(self, first: Member) -> None:
        self._example, self._plainness = first, _plainness(first)
        self._count = 0
        self._turns = DistinctCount()
        self._words: Counter[str] = Counter()
        self._slots: Counter[str] = Counter()
        self._places: list[_Place] = []
        #: Whether a noise model knows how often people make such an edit.
        self._known = False
        self._weights, self._chances = ExactSum(), ExactSum()

    def add(self, member: Member) -> None:
        turn, variant, reading = member
        if (plainness := _plainness(member)) < self._plainness:
            self._example, self._plainness = member, plainness
        self._count += 1
        self._turns.add(turn.id)
        self._words.update(filter(None, reading.words))
        if reading.slot:
            self._slots[reading.slot] += 1
        self._places.append(_place(member))
        if len(self._places) > 2 * MOST_MEMBERS:
            self._drop_places()
        # Nobody knows how often people make the edits that relations make by themselves.
        self._known = self._known or turn.noise is not None
        if counted(turn):
            self._weights.add(weight_of(turn, variant))
            for chance in distinct_chances([variant]):
                self._chances.add(chance)

    def weakness(
        self, key: Key, figure: ExpectedFailures | None, mass: FailingMass | None
    ) -> Weakness:
        """Return the weakness, with the figure that the run gives, if any."""
        self._drop_places()
        found = Weakness(
            key=key,
            count=self._count,
            turns=self._turns.value,
            words=_most_frequent(self._words),
            slots=_most_frequent(self._slots),
            example=self._example,
            members=tuple(name for *_, name in self._places),
        )
        if not self._known:
            return found
        if figure is not None and figure.per_1000 is not None:
            return replace(found, expected=TURNS * self._weights.value / figure.turns)
        if mass is not None:
            return replace(found, mass=TURNS * self._chances.value / mass.turns)
        return found

    def _drop_places(self) -> None:
        self._places.sort()
        del self._places[MOST_MEMBERS:]


def _rank(weakness: Weakness) -> tuple[bool, float, int, str]:
    figure = weakness.mass if weakness.expected is None else weakness.expected
    return (figure is None, -(figure or 0.0), -weakness.turns, weakness.id)


def _place(member: Member) -> _Place:
    return (member.turn.dialogue_id, member.turn.turn_index, member.variant.index, member.id)


def _plainness(member: Member) -> tuple[bool, int, bool, int, _Place]:
    plain, cause, label = member.variant.plain, member.variant.cause, member.turn.label
    wrong = label is not None and any(
        label.get(change.slot) != change.before
        for change in plain.changed_slots
        if not change.carried
    )
    return (wrong, plain.size, cause != "turn", len(plain.text), _place(member))


def _most_frequent(names: Counter[str]) -> tuple[str, ...]:
    ranked = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return tuple(name for name, _ in ranked[:_MOST])
