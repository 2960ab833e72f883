"""The weaknesses of a run. A weakness groups violations by key. The worst come first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from pytest_dstfuzz.campaign.figures import (
    TURNS,
    DistinctCount,
    EstimatedFailures,
    ExactSum,
    ExpectedTally,
    has_expectation,
    tally_results,
    weight_of,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, not_corrected
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.perturb.values import Mentions
from pytest_dstfuzz.perturb.words import Edit, word_list
from pytest_dstfuzz.weaknesses.advice import Mending, is_altered, is_mended, to_try
from pytest_dstfuzz.weaknesses.mechanisms import (
    CALLS,
    FAILURES,
    MECHANISMS,
    OTHER,
    REPLIES,
    BrokenScene,
    Edited,
    blamed,
    call_failure,
    domain_of,
    failure_of,
    mechanism_of,
    reply_failure,
    traits_of,
)

__all__ = ["find_weaknesses", "read"]


#: The names of all mechanisms, in plain words.
ALL: Final = tuple(dict.fromkeys((*MECHANISMS, *FAILURES, *REPLIES, *CALLS, OTHER)))


def _slug(mechanism: str) -> str:
    """Return the name of a mechanism as one word: `call-dropped`."""
    return re.sub(r"[^a-z]+", "-", mechanism)


_OF_SLUGS: Final = {_slug(name): name for name in ALL}


class Key(NamedTuple):
    """The common properties of all violations of one weakness."""

    mechanism: str  #: A name in `ALL`.
    at: str = ""  #: For tool calls, the affected tool, or tool and argument.

    @property
    def id(self) -> str:
        """The id of the weakness, one word in a shell. It depends only on the key.

        >>> Key("slip in key word, value wrong").id, Key("call dropped", "block_card").id
        ('slip-in-key-word-value-wrong', 'call-dropped:block_card')
        """
        return ":".join([_slug(self.mechanism), *([quote(self.at, safe="")] if self.at else [])])

    @property
    def description(self) -> str:
        """The short name of the weakness.

        >>> Key("number or time changed").description
        'number or time changed'
        >>> Key("call dropped", "book_taxi").description
        'call dropped: book_taxi'
        """
        return f"{self.mechanism}: {self.at}" if self.at else self.mechanism


class Reading(NamedTuple):
    """The weakness of a violation, with the words and the slot that show it."""

    key: Key
    words: tuple[str, ...]  #: Clean words that were edited, in lower case.
    slot: str  #: The most significant changed slot; for a tool call, the tool or its argument.


def read(turn: TurnResult, variant: VariantResult) -> Reading:
    """Return the weakness of a violation, with the words and the slot that show it."""
    if not turn.kind.words.values:
        return Reading(Key(reply_failure(turn, variant)), blamed(turn, variant).reached, REPLY)
    if turn.kind.has_tools:
        mechanism, at = call_failure(turn, variant)
        return Reading(Key(mechanism, at), blamed(turn, variant).words, at)
    changes = not_corrected(variant.plain.changed_slots)
    name, number = failure_of(turn, variant, changes)
    if name:
        slot = changes[number].slot if number >= 0 else ""
        # Words next to an added sentence are unrelated to it.
        return Reading(Key(name), blamed(turn, variant).reached, slot)
    return read_scene(BrokenScene.of(turn, variant))


def read_scene(scene: BrokenScene) -> Reading:
    """Return the weakness for the known facts of a violation. See `read`."""
    # A change to the right value only shows where the value of another slot went.
    about = not_corrected(scene.changed)
    name, number = mechanism_of([traits_of(change, scene) for change in about])
    slot = about[number].slot if about else ""
    return Reading(Key(name), scene.edited.words, slot)


def key_of_id(name: str) -> Key | None:
    """Return the key with this id, or ``None`` if this version cannot produce the id.

    >>> key_of_id("call-dropped:block_card")
    Key(mechanism='call dropped', at='block_card')
    """
    slug, _, at = name.partition(":")
    found = Key(_OF_SLUGS.get(slug, ""), unquote(at))
    return found if found.mechanism and found.id == name else None


#: Minimum length, in words, of a value that may contain the name of a slot.
_LONG: Final = 3


class Heard(NamedTuple):
    """One exchange: the texts of system and user, and the user's text as the tracker saw it."""

    system: str
    user: str
    seen: str


def weakness_of(edits: int, said: Sequence[Heard], changed: Sequence[Difference]) -> str:
    """Return the id of the weakness of a stored violation, or ``""`` if it cannot be determined.

    It can be determined only if the violation has exactly one edit and one changed slot. The state
    of the clean turn is not stored, so all possible states must lead to the same weakness.
    """
    touched = [one for one in said if one.user != one.seen]
    if (edits, len(touched), len(changed)) != (1, 1, 1):
        return ""
    (one,), ((_, clean, seen),) = changed, touched
    values = [value for value in (one.before, one.after) if value is not None]
    if any(len(word_list(value)) >= _LONG for value in values):
        return ""
    user, system = (Mentions([each[place] for each in said]) for place in (1, 0))
    found = {
        read_scene(
            BrokenScene(
                Edited(clean, seen, (edit,)),
                Mentions([clean]),
                user,
                system,
                state,
                tuple(changed),
                said[-1].user,
            )
        ).key.id
        for edit in _edits(clean, seen)
        for state in _states(one, values, Edited(clean, seen, (edit,)).words)
    }
    return found.pop() if len(found) == 1 else ""


def _states(
    change: Difference, values: Sequence[str], words: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Yield possible states of the clean turn. They agree in the changed slot.

    The states differ in three ways. Other slots of the same domain may have the values. Slots of
    another domain may have the values. The edited words may name slots.
    """
    domain = domain_of(change.slot)
    for here, there, named in product((False, True), repeat=3):
        state = {f"{domain}- {number}": value for number, value in enumerate(values) if here}
        state |= {f" - {number}": value for number, value in enumerate(values) if there}
        # Use a value of three words, so that it differs from the values in question.
        yield state | {f"{domain}-{word}": "a b c" for word in words if named}


def _edits(clean: str, seen: str) -> Iterator[Edit]:
    """Yield the possible edits between two texts, without the equal text at both ends.

    There are two if the position is ambiguous, for example if one of two equal words is new.
    """
    shorter = min(len(clean), len(seen))
    first = next((i for i in range(shorter) if clean[i] != seen[i]), shorter)
    last = next((i for i in range(shorter) if clean[-1 - i] != seen[-1 - i]), shorter)
    for start, tail in ((first, min(last, shorter - first)), (min(first, shorter - last), last)):
        end = len(clean) - tail
        yield Edit("", "", start, end, clean[start:end], seen[start : len(seen) - tail])


#: The figures that rank weaknesses: estimated failures together with broken turns. If a run has no
#: sample of a noise model, there is no estimate, and only broken turns count. See `worst_first`.
Ranking = Literal["estimated failures", "turns"]
_T = TypeVar("_T")
#: Maximum number of words and slots in a report.
_MOST: Final = 5
#: Maximum number of violations that are listed for a weakness. Its figures cover all violations.
MOST_MEMBERS: Final = 5_000
#: The dialogue, turn and variant number of a violation, and its name.
_Place = tuple[str, int, int, str]


class Member(NamedTuple):
    """One violation of a weakness."""

    turn: TurnResult
    variant: VariantResult
    reading: Reading

    @property
    def id(self) -> str:
        """The name of the violation."""
        return member_id(self.turn, self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Violations with one key.

    Attributes:
        key: their common properties.
        count: the number of violations.
        turns: the number of broken turns.
        words: the words that are edited most often, in lower case.
        slots: the slots that change most often.
        example: the plainest violation. It has the fewest edits. Among violations with equally many
            edits, those with edits of this turn come first, and then those with the shortest text.
            If there are labels, violations with a right clean answer come before all others,
            because a changed wrong answer matters less.
        members: the names of the violations, by turn and variant, at most `MOST_MEMBERS`.
        expected: estimated failures per 1,000 user turns because of this weakness; 0 if the search
            found it but no sampled variant shows it; ``None`` if the run has no estimate.
        accepted: the reason if the weakness was accepted, or ``""``.
        mended: the number of violations whose clean texts a spelling corrector restores; ``None``
            if no corrector was in use.
    """

    key: Key
    count: int
    turns: int
    words: tuple[str, ...]
    slots: tuple[str, ...]
    example: Member
    members: tuple[str, ...]
    expected: float | None = None
    accepted: str = ""
    mended: int | None = None

    @property
    def id(self) -> str:
        """A readable id that is equal in every run."""
        return self.key.id

    @property
    def description(self) -> str:
        """The common property of the violations, in words."""
        return self.key.description

    @property
    def to_try(self) -> str:
        """Advice against the weakness."""
        advice = to_try(self.key.mechanism, self.example.turn.kind)
        if not self.mended:
            return advice
        return f"{advice}; spelling corrector: restores {self.mended} of {self.count} texts"


def member_id(turn: TurnResult, variant: VariantResult) -> str:
    """Return the name of a violation: turn, relation (except ``metamorphic``), and variant."""
    relation = "" if turn.relation == "metamorphic" else f"-{turn.relation}"
    return f"{turn.id}{relation}-v{variant.index}"


class WeaknessTally:
    """Groups the violations of a run by key, one turn after the other.

    For each key, it stores counts, the plainest violation, and at most `MOST_MEMBERS` names.
    """

    def __init__(self, corrector: SpellingCorrector | None = None) -> None:
        """Create an empty tally. It also counts the violations that ``corrector`` would prevent."""
        self._corrector = corrector
        self._clean, self._altered = DistinctCount(), DistinctCount()
        self._groups: dict[Key, _Group] = {}
        self._expected = ExpectedTally()
        self._shrunk: set[bool] = set()

    def add(self, turn: TurnResult) -> None:
        """Record the violations of a turn."""
        self._expected.add(turn)
        if self._corrector is not None and turn.tested:
            self._clean.add(turn.id)
            if is_altered(self._corrector, turn):
                self._altered.add(turn.id)
        for variant in turn.violations:
            member = Member(turn, variant, read(turn, variant))
            key = member.reading.key
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(member)
            corrector = self._corrector
            group.add(member, None if corrector is None else is_mended(corrector, turn, variant))
            self._shrunk.add(variant.minimal is not None)

    @property
    def shrunk(self) -> bool | None:
        """Whether the run minimised its violations, which affects their weaknesses.

        The value is ``None`` if there is no violation.
        """
        return any(self._shrunk) if self._shrunk else None

    @property
    def mending(self) -> Mending | None:
        """The effect of the spelling corrector; ``None`` if there is none."""
        if self._corrector is None:
            return None
        mended = sum(group.mended or 0 for group in self._groups.values())
        violations = sum(group.count for group in self._groups.values())
        return Mending(mended, violations, self._altered.value, self._clean.value)

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """The weaknesses, worst first, see `worst_first`."""
        figure = self._expected.expected
        return worst_first(
            [(group.weakness(key, figure), group.own_turns) for key, group in self._groups.items()]
        )


def find_weaknesses(results: Iterable[TurnResult]) -> tuple[Weakness, ...]:
    """Return the weaknesses of a run, worst first. The order of the results does not matter."""
    return tally_results(WeaknessTally(), results).weaknesses


def worst_first(found: Sequence[tuple[Weakness, int]]) -> tuple[Weakness, ...]:
    """Return the weaknesses, worst first. Weaknesses without an estimate come last.

    A weakness has a share in the estimated failures, and a share in the broken turns, of all
    weaknesses. The mean of the two shares decides the order. The estimate alone depends on the few
    failing variants of the sample. The broken turns alone depend on the search, which may find rare
    failures easily. If there is no estimate, only the broken turns count.

    Args:
        found: each weakness with the number of turns that it breaks. A turn that breaks only
            because of an edit in an earlier turn does not count, as in the estimate.
    """
    known = [one for one in found if one[0].expected is not None]
    failures = math.fsum(one.expected or 0.0 for one, _ in known) or 1.0
    broken = sum(turns for _, turns in known) or 1

    def place(one: tuple[Weakness, int]) -> tuple[bool, float, int, str]:
        weakness, turns = one
        if weakness.expected is None:
            return True, -float(turns), -weakness.turns, weakness.id
        return False, -weakness.expected / failures - turns / broken, -weakness.turns, weakness.id

    return tuple(weakness for weakness, _ in sorted(found, key=place))


def ranked(
    found: Sequence[_T], expected: Callable[[_T], float | None]
) -> tuple[tuple[Ranking, tuple[_T, ...]], ...]:
    """Return one or two lists of weaknesses in the given order, each with its ranking.

    If there is a noise model and relations also make their own edits, there are two lists. One list
    is impossible, because it is unknown how often users type the edits of relations.
    """
    known = tuple(one for one in found if expected(one) is not None)
    rest = tuple(one for one in found if expected(one) is None)
    lists: list[tuple[Ranking, tuple[_T, ...]]] = [("estimated failures", known), ("turns", rest)]
    return tuple(one for one in lists if one[1])


class _Group:
    """The violations with one key."""

    def __init__(self, first: Member) -> None:
        self._example, self._plainness = first, _plainness(first)
        self.count = 0
        #: Number of violations that a spelling corrector prevents; ``None`` without a corrector.
        self.mended: int | None = None
        self._turns = DistinctCount()
        #: The turns with a violation that their own edits cause or help to cause.
        self._own_turns = DistinctCount()
        self._words: Counter[str] = Counter()
        self._slots: Counter[str] = Counter()
        self._places: list[_Place] = []
        #: Whether a noise model gives the frequency of the edits.
        self._known = False
        self._weights = ExactSum()

    def add(self, member: Member, mended: bool | None) -> None:
        turn, variant, reading = member
        if mended is not None:
            self.mended = (self.mended or 0) + mended
        if (plainness := _plainness(member)) < self._plainness:
            self._example, self._plainness = member, plainness
        self.count += 1
        self._turns.add(turn.id)
        if variant.cause != "context":
            self._own_turns.add(turn.id)
        self._words.update(filter(None, reading.words))
        if reading.slot:
            self._slots[reading.slot] += 1
        self._places.append(_place(member))
        if len(self._places) > 2 * MOST_MEMBERS:
            self._drop_places()
        # It is unknown how often users type the edits of relations.
        self._known = self._known or turn.noise is not None
        if has_expectation(turn):
            self._weights.add(weight_of(turn, variant))

    @property
    def own_turns(self) -> int:
        """The number of turns with a violation that the turn's own edits cause or help to cause."""
        return self._own_turns.value

    def weakness(self, key: Key, figure: EstimatedFailures | None) -> Weakness:
        """Return the weakness of these violations.

        ``figure`` is its estimate of failures, if any.
        """
        self._drop_places()
        found = Weakness(
            key=key,
            count=self.count,
            turns=self._turns.value,
            words=_most_frequent(self._words),
            slots=_most_frequent(self._slots),
            example=self._example,
            members=tuple(name for *_, name in self._places),
            mended=self.mended,
        )
        if not self._known or figure is None or figure.per_1000 is None:
            return found
        return replace(found, expected=TURNS * self._weights.value / figure.turns)

    def _drop_places(self) -> None:
        self._places.sort()
        del self._places[MOST_MEMBERS:]


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
