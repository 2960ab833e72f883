"""The weaknesses of a run: its violations grouped by key, worst first, with advice."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from pytest_dstfuzz.campaign.figures import (
    TURNS,
    DistinctCount,
    ExactSum,
    ExpectedFailures,
    ExpectedTally,
    has_expectation,
    tallied,
    weight_of,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, not_corrected
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.values import Mentions
from pytest_dstfuzz.perturb.words import Edit, word_list
from pytest_dstfuzz.weaknesses.mechanisms import (
    CALLS,
    FAILURES,
    IGNORED,
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


#: The names of all mechanisms.
ALL: Final = (*MECHANISMS, *FAILURES, *REPLIES, *CALLS, OTHER)
_DIGITS: Final = 6


class Key(NamedTuple):
    """The common properties of the violations of one weakness."""

    mechanism: str  #: A name in `ALL`.
    at: str = ""  #: For tool calls, the affected tool, or tool and argument.

    @property
    def id(self) -> str:
        """A readable id that is one shell word and depends only on the key.

        >>> Key("cue-word").id, Key("no-call", "block_card").id
        ('cue-word-41bf47', 'no-call-block_card-da9ec1')
        """
        parts = [part for part in self if part]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return "-".join([*(quote(part, safe="") for part in parts), digest[:_DIGITS]])


class Reading(NamedTuple):
    """The properties of one violation."""

    key: Key
    words: tuple[str, ...]  #: Clean words that were edited, in lower case.
    slot: str  #: The most significant changed slot; for a tool call, the tool or its argument.


def read(turn: TurnResult, variant: VariantResult) -> Reading:
    """Return key, words and slot of a violation; they depend on nothing else."""
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
    """Return key, words and slot for the known facts of a violation."""
    # A corrected slot only hints at the destination of a value.
    about = not_corrected(scene.changed)
    name, number = mechanism_of([traits_of(change, scene) for change in about])
    slot = about[number].slot if about else ""
    return Reading(Key(name), scene.edited.words, slot)


def key_of_id(name: str) -> Key | None:
    """Return the key with this id, or ``None`` if this version cannot produce the id.

    >>> key_of_id("cue-word-41bf47")
    Key(mechanism='cue-word', at='')
    """
    found = (
        Key(mechanism, unquote(name[len(mechanism) + 1 : -1 - _DIGITS]))
        for mechanism in ALL
        if name.startswith(f"{mechanism}-")
    )
    # Earlier versions had neither tool nor argument in the key of calls.
    return next((key for key in found if key.id == name and (key.at or key[0] not in CALLS)), None)


#: Minimum length, in words, of a value that may contain the name of a slot.
_LONG: Final = 3


class Heard(NamedTuple):
    """One exchange: the texts of system and user, and the user text that the tracker saw."""

    system: str
    user: str
    seen: str


def weakness_of(edits: int, said: Sequence[Heard], changed: Sequence[Difference]) -> str:
    """Return the id of the weakness of a stored violation, or ``""`` if it is not determined.

    It is determined only for one edit and one slot, and only if the state of the clean turn, which
    is not stored, does not matter.
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
    """Yield states that differ in the other slots.

    They vary in three ways: whether slots of the same domain have the values, whether slots of
    another domain have them, and whether slots are named by the edited words.
    """
    domain = domain_of(change.slot)
    for here, there, named in product((False, True), repeat=3):
        state = {f"{domain}- {number}": value for number, value in enumerate(values) if here}
        state |= {f" - {number}": value for number, value in enumerate(values) if there}
        # A value that no slot of one or two words has.
        yield state | {f"{domain}-{word}": "a b c" for word in words if named}


def _edits(clean: str, seen: str) -> Iterator[Edit]:
    """Yield the edits between two texts, without their common ends.

    There are two if the position is ambiguous, for example if one of two equal words is new.
    """
    shorter = min(len(clean), len(seen))
    first = next((i for i in range(shorter) if clean[i] != seen[i]), shorter)
    last = next((i for i in range(shorter) if clean[-1 - i] != seen[-1 - i]), shorter)
    for start, tail in ((first, min(last, shorter - first)), (min(first, shorter - last), last)):
        end = len(clean) - tail
        yield Edit("", "", start, end, clean[start:end], seen[start : len(seen) - tail])


class _Words(NamedTuple):
    does: str
    to_try: str


_WORDS: Final = {
    "value-runs-on": _Words(
        "a value runs on into the name and the value of another {slot}",
        "let a name be no longer than one that is known, or end where the next {slot} begins",
    ),
    "domain-confused": _Words(
        "a value that the user said for one domain goes to another domain",
        "train with slips in the words that say which domain is meant; let a slip leave what is "
        "talked about as it was",
    ),
    "cue-word": _Words(
        "the word for a value is damaged, and the value is lost or goes to a sibling {slot}",
        "train with slips in these words, or correct spelling in the input",
    ),
    "any-value": _Words(
        "a {slot} for which any value will do is filled one time and left open the other",
        "train with more ways to say that it does not matter, and with slips in them; keep such an "
        "answer until the user names a value",
    ),
    "yes-no-confused": _Words(
        "the word for a yes or no, or for another {slot} beside it, is damaged, and a yes or no "
        "comes, goes or turns",
        "train with slips in these words, or correct spelling in the input; fill such a {slot} "
        "only where its own word stands",
    ),
    "slip-copied": _Words(
        "a slip is taken for a value, letter by letter",
        "let only known values, or words of a sort that the {slot} takes, be copied; train with "
        "slips in words that are no value",
    ),
    "ends-confused": _Words(
        "the two ends of a journey are mixed up, or one of them is another place",
        "train with journeys whose ends are said in turns of their own; let one end never be the "
        "other",
    ),
    "shared-value": _Words(
        "a value that another domain has too (the same area, the booked day) is lost or another",
        "train with more ways to point to another domain, or fill such {slots} by a rule",
    ),
    "number-changed": _Words(
        "a time or a number becomes another",
        "copy times and numbers from the dialogue and do not generate them; keep one until the user"
        " says another",
    ),
    "name-changed": _Words(
        "a name becomes another, or one that nobody said is made up",
        "let only names that were said or are known be written",
    ),
    "choice-changed": _Words(
        "one value becomes another of the {slot}",
        "train with turns that name several values, or take one back",
    ),
    "value-spread": _Words(
        "a value that was said for one {slot} is put into another one too",
        "train with turns of one domain that say nothing of others; look at how sure the {system} "
        "is when it fills the second {slot}",
    ),
    "stated-lost": _Words(
        "a value that the user said is lost, although the words for it stand as they were",
        "train with slips in words that say nothing of the {slot}",
    ),
    "number-made-up": _Words(
        "a time or a number that nobody said is there one time and not the other",
        "write no time and no number that the dialogue does not say",
    ),
    "made-up": _Words(
        "a value that nobody said is there one time and not the other",
        "train without labels that the dialogue does not tell; look at how sure the {system} is "
        "when it fills the {slot}",
    ),
    "offer-wavers": _Words(
        "a value that the system offered, or that was only asked about, is taken one time and not "
        "the other",
        "settle which offers count as taken, and label them alike; train with slips in turns that "
        "ask or thank",
    ),
    "new-value-ignored": _Words(
        "the user says another value, and the {slot} stays as it was",
        "see whether the {system} knows the new value at all; train with other values in the same "
        "sentences",
    ),
    "correction-ignored": _Words(
        "the user corrects a value, and the first one stays",
        "train with turns that take a value back; let the last value said for a {slot} win",
    ),
    "negation-ignored": _Words(
        "a wish is negated, and taken as if it were not",
        "see whether words such as `not` and `without` reach the {system}; train with refusals",
    ),
    "removal-ignored": _Words(
        "the words for a value are left out, and the value is there all the same",
        "see what else gives the value away; train without labels that the dialogue does not tell",
    ),
    "roles-ignored": _Words(
        "two values trade places (from and to, leave and arrive), and the {slots} stay as they "
        "were",
        "train with both orders of such phrases and with the same values in either place",
    ),
    "noise-believed": _Words(
        "words that say nothing are answered as if a value stood among them",
        "train with turns that say nothing; fill a {slot} only where something speaks for its "
        "value",
    ),
    "drop-ignored": _Words(
        "a round is left out, and its values are there all the same",
        "see what else gives the values away: words of the system, or a state kept outside of the "
        "dialogue",
    ),
    IGNORED: _Words(
        "the user asks for something else, and {stayed}",
        "see what the relation edits, and whether it reaches the {system}",
    ),
    "half-followed": _Words(
        "of several {slots} that should change, some do and some do not",
        "train with turns that change several {slots} at once",
    ),
    "wrong-slot": _Words(
        "the new value goes to another {slot}",
        "train with each value in the phrases of each {slot} that takes it",
    ),
    "wrong-value": _Words(
        "a {slot} that should change does, but to a value that is not the new one",
        "let only values that were said or are known be written; see how the new one is spelled",
    ),
    "bystander-changed": _Words(
        "the {slot} follows, and another one changes with it",
        "train with turns that differ in one value alone, their other labels as they are",
    ),
    "said-twice": _Words(
        "a round that is repeated changes the state",
        "train with repeated rounds; let no value be added up or taken back for being said again",
    ),
    "order-matters": _Words(
        "rounds that do not depend on each other come in another order, and the state is another",
        "train with rounds in other orders; see whether a {slot} is only read once another is "
        "there",
    ),
    "restart-differs": _Words(
        "the same dialogue asked from its start once more gets another answer",
        "see what is kept between two dialogues, and whether chance is in the answers",
    ),
    "no-answer": _Words(
        "the bot says that it does not know, or did not understand, in place of an answer",
        "correct spelling in what comes in; let one word that is not known not decide",
    ),
    "last-answer-again": _Words(
        "the bot says once more what it said before, in place of an answer",
        "see what it does with a question that it does not understand",
    ),
    "answers-anyway": _Words(
        "what a question is about is gone, or another, and the reply is the same",
        "see where the bot has it from: what it keeps of earlier conversations, or a guess",
    ),
    "disagrees": _Words(
        "the same question after other rounds that tell as much gets another reply",
        "see how many rounds the bot looks back, and whether their order matters",
    ),
    "other-number": _Words(
        "a number, a time, a date or an amount in the reply becomes another",
        "take such figures from one place, such as a table, and do not generate them",
    ),
    "other-polarity": _Words(
        "a yes becomes a no, or what the reply affirms is denied",
        "see which words of the question decide; ask back where they are not understood",
    ),
    "other-name": _Words(
        "a name in the reply becomes another",
        "let only names be said that the question or your own data have",
    ),
    "asks-back": _Words(
        "the bot asks back in place of an answer",
        "see which words it looks for, and what it takes from earlier rounds; correct spelling in "
        "what comes in",
    ),
    "other-answer": _Words(
        "the reply says something else",
        "see whether it answers another question: which words decide what is asked for",
    ),
    "unknown-tool": _Words(
        "a tool is called that there is not",
        "refuse a call whose name is not in the list, and ask the model again",
    ),
    "other-tool": _Words(
        "another tool is called",
        "see which words the choice hangs on; say in the descriptions of both tools when to call "
        "which",
    ),
    "no-call": _Words(
        "nothing is called: the answer is a text",
        "see what it says instead; say in the prompt when a tool is to be called at once, or set "
        "tool_choice",
    ),
    "call-left-out": _Words(
        "of several calls one is not made",
        "see whether parallel calls are allowed, and whether each part of the request is read",
    ),
    "needless-call": _Words(
        "a tool is called that was not to be called",
        "say in its description what it takes before it may be called",
    ),
    "calls-reordered": _Words(
        "the same calls are made in another order",
        "where their order does not matter, leave it out of the comparison: --dst-call-order=any",
    ),
    "slip-in-argument": _Words(
        "a slip of the user is copied into an argument",
        "let only known values be passed: an enum in the schema, or a look-up before the call; "
        "correct spelling in what comes in",
    ),
    "arguments-mixed-up": _Words(
        "an argument gets the value of another one",
        "describe each argument by the words that people use for it",
    ),
    "number-in-argument": _Words(
        "a number, a time or a date in an argument becomes another",
        "give its format in the schema, and read such values from the words rather than generate "
        "them",
    ),
    "number-left-out": _Words(
        "a number, a time or a date is not passed on",
        "make the argument required where the call means little without it; see which word beside "
        "it was read",
    ),
    "argument-left-out": _Words(
        "a value is not passed on",
        "make the argument required where the call means little without it, or give an enum",
    ),
    "argument-cut": _Words(
        "an argument has some words more, or fewer",
        "where that does not matter, compare it so: --dst-arguments 'TOOL.ARGUMENT=text'; else "
        "say in its description where it ends",
    ),
    "argument-retyped": _Words(
        "an argument is of another JSON type, with the same text",
        "give its type in the schema and check it before the call",
    ),
    "argument-changed": _Words(
        "an argument gets another value",
        "give an enum, or examples, in the schema; see which words of the user decide",
    ),
    "argument-added": _Words(
        "an argument is passed that nobody asked for",
        "say in its description that it is left out where the user does not say it",
    ),
    OTHER: _Words("the {system} answers otherwise", "see what the relation asks for"),
}


def description(key: Key, kind: AnswerKind = BELIEF_STATES) -> str:
    """Describe the common property of violations with a key, in words for a kind of answer.

    >>> description(Key("number-changed"))
    'a time or a number becomes another'
    >>> description(Key("call-left-out", "book_taxi"), TOOL_CALLS).rpartition(": ")[2]
    'book_taxi'
    """
    does = kind.words.fill(_WORDS[key.mechanism].does)
    return f"{does}: {key.at}" if key.at else does


def to_try(key: Key, kind: AnswerKind = BELIEF_STATES) -> str:
    """Return advice, which is a guess from the pattern and not a finding about the cause."""
    return kind.words.fill(_WORDS[key.mechanism].to_try)


#: The figure that ranks weaknesses: expected failures in 1,000 user turns, or, if no sample of a
#: noise model estimates them, turns broken.
Ranking = Literal["expected failures", "turns"]
_T = TypeVar("_T")
#: Maximum number of words and slots in a report.
_MOST: Final = 5
#: Maximum number of violations of a weakness that are listed; its figures cover all.
MOST_MEMBERS: Final = 5_000
#: Dialogue, turn, number of the variant, and name of a violation.
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
        example: the plainest violation: fewest edits, edits of this turn before those of earlier
            turns, shortest text. If there are labels, violations with a right clean answer come
            first, because a changed wrong answer matters less.
        members: the names of the violations, by turn and variant, at most `MOST_MEMBERS`.
        expected: expected failures per 1,000 user turns because of this weakness; 0 if only the
            search found it, and not the sample; ``None`` if the run has no estimate.
        accepted: the reason if the weakness was accepted, else ``""``.
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

    @property
    def id(self) -> str:
        """A readable id that is the same in every run."""
        return self.key.id

    @property
    def description(self) -> str:
        """The common property of the violations, in words."""
        return description(self.key, self.example.turn.kind)

    @property
    def to_try(self) -> str:
        """Advice against the weakness."""
        return to_try(self.key, self.example.turn.kind)


def member_id(turn: TurnResult, variant: VariantResult) -> str:
    """Return the name of a violation: its turn, its relation if not the default, its variant."""
    relation = "" if turn.relation == "metamorphic" else f"-{turn.relation}"
    return f"{turn.id}{relation}-v{variant.index}"


class WeaknessTally:
    """Group the violations of results by key, one turn after the other.

    For each key, it stores counts, the plainest violation, and at most `MOST_MEMBERS` names.
    """

    def __init__(self) -> None:
        self._groups: dict[Key, _Group] = {}
        self._expected = ExpectedTally()
        self._shrunk: set[bool] = set()

    def add(self, turn: TurnResult) -> None:
        """Add the violations of a turn."""
        self._expected.add(turn)
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
        """Whether violations were minimised, which affects their weaknesses.

        ``None`` if there is no violation.
        """
        return any(self._shrunk) if self._shrunk else None

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """The weaknesses, worst first: by estimated rate, then by the number of broken turns.

        Weaknesses without an estimate come last, see `ranked`.
        """
        figure = self._expected.expected
        found = [group.weakness(key, figure) for key, group in self._groups.items()]
        return tuple(sorted(found, key=_rank))


def find_weaknesses(results: Iterable[TurnResult]) -> tuple[Weakness, ...]:
    """Return the weaknesses of a run, worst first; the order of the results does not matter."""
    return tallied(WeaknessTally(), results).weaknesses


def ranked(
    found: Sequence[_T], expected: Callable[[_T], float | None]
) -> tuple[tuple[Ranking, tuple[_T, ...]], ...]:
    """Return the lists of weaknesses, in the order of `find_weaknesses`, with their ranking.

    If a noise model is in use and relations also make their own edits, there are two lists. The
    frequency of a relation's own edits is unknown, so no figure can rank both together.
    """
    known = tuple(one for one in found if expected(one) is not None)
    rest = tuple(one for one in found if expected(one) is None)
    lists: list[tuple[Ranking, tuple[_T, ...]]] = [("expected failures", known), ("turns", rest)]
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
        #: Whether a noise model knows the frequency of such edits.
        self._known = False
        self._weights = ExactSum()

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
        # The frequency of a relation's own edits is unknown.
        self._known = self._known or turn.noise is not None
        if has_expectation(turn):
            self._weights.add(weight_of(turn, variant))

    def weakness(self, key: Key, figure: ExpectedFailures | None) -> Weakness:
        """Return the weakness, with the figure of the run if there is one."""
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
        if not self._known or figure is None or figure.per_1000 is None:
            return found
        return replace(found, expected=TURNS * self._weights.value / figure.turns)

    def _drop_places(self) -> None:
        self._places.sort()
        del self._places[MOST_MEMBERS:]


def _rank(weakness: Weakness) -> tuple[bool, float, int, str]:
    figure = weakness.expected
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
