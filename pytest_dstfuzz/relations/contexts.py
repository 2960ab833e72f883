"""Relations that ask a question after other rounds than in the original dialogue.

Checks decide whether the other rounds are equivalent: whether they have all the information that
the question needs.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise, product
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.config import JUDGE
from pytest_dstfuzz.dialogue.dialogues import (
    Context,
    ContextJudge,
    Dialogue,
    DialogueSet,
    Exchange,
    answer_of,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Parts, take_apart, word_set
from pytest_dstfuzz.registry import Registry, blame_errors
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    OTHER_REPLY,
    UNCHANGED,
    Expectation,
    Inapplicable,
    Move,
    Relation,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.rounds import order_rounds
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.seeding import stream

if TYPE_CHECKING:
    import numpy as np

    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.relations.relation import Scene

__all__ = [
    "DEMONSTRATIVES",
    "PERSONS",
    "THINGS",
    "AskedQuestion",
    "ContextCheck",
    "ContextsAgree",
    "ContextsDiffer",
    "LostContext",
    "NeededContext",
    "SameContext",
    "context_checks_named",
    "equivalent",
    "opening_of",
    "read",
    "register_context_check",
    "register_perturbation",
    "round_of",
    "sequences",
    "stands_alone",
    "without_opening",
]


class QuestionRound(NamedTuple):
    """A round: a question and its recorded answer. ``""`` if no answer is recorded."""

    question: str
    answer: str


def opening_of(dialogue: Dialogue) -> str:
    """Return the system's text before the first question: a title, a story or a greeting."""
    return dialogue.turns[0].system


def round_of(dialogue: Dialogue, index: int) -> QuestionRound:
    """Return the round with an index, counted from 0."""
    return QuestionRound(dialogue.turns[index].user, answer_of(dialogue, index) or "")


def _said_after(dialogue: Dialogue, index: int) -> str:
    """Return the system's text after a question, even if the system has no answer."""
    following = dialogue.turns[index + 1 : index + 2]
    return following[0].system if following else answer_of(dialogue, index) or ""


def list_asked(dialogue: Dialogue, order: Sequence[int]) -> Context:
    """Return a context that asks questions in some order, each with its recorded answer.

    The opening remains the first system text. The last question in the order becomes the latest
    user utterance.

    Args:
        dialogue: the dialogue with the rounds.
        order: indices of rounds from 0, at least one; a round may occur several times.
    """
    said = [opening_of(dialogue), *(_said_after(dialogue, index) for index in order[:-1])]
    users = (dialogue.turns[index].user for index in order)
    return Context(tuple(map(Exchange, said, users)))


def without_opening(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue without its opening (a title, a story or a greeting)."""
    first, *others = dialogue.turns
    return replace(dialogue, turns=(replace(first, system=""), *others))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a sequence. A sequence has the rounds of a dialogue in another order.

    ``order`` is the whole sequence, with the rounds of the dialogue counted from 0. ``place`` is
    the index of the question in the sequence.
    """

    dialogue: Dialogue
    order: tuple[int, ...]
    place: int
    lexicon: Lexicon

    @property
    def turn(self) -> int:
        """The index of the question in the clean dialogue."""
        return self.order[self.place]

    @property
    def question(self) -> str:
        """The text of the question."""
        return self.dialogue.turns[self.turn].user

    @property
    def opening(self) -> str:
        """The system's text before the first question."""
        return opening_of(self.dialogue)

    @property
    def before(self) -> tuple[int, ...]:
        """The rounds before the question in the sequence, in their order."""
        return self.order[: self.place]

    @property
    def clean(self) -> tuple[int, ...]:
        """The rounds before the question in the clean dialogue."""
        return tuple(range(self.turn))

    def round(self, index: int) -> QuestionRound:
        """Return the round of the clean dialogue with an index."""
        return round_of(self.dialogue, index)

    def context(self) -> Context:
        """Return the sequence up to the question, as the tested system reads it."""
        return list_asked(self.dialogue, self.order[: self.place + 1])


PERSONS: Final = word_set("he him his himself she her hers herself")
THINGS: Final = word_set("it its itself they them their theirs themselves")
DEMONSTRATIVES: Final = word_set("this that these those")
#: Words that ask, help, or carry little meaning, in addition to the lexicon's stop words.
_LIGHT: Final = word_set(
    "get got have has had do does did done be been make made go went gone happen happened become"
    " became know tell say said give gave also else ever any anything something anyone someone"
    " interesting interest aspect article information thing way time lot kind sort type first"
    " other another would could much many cannot i'm don't didn't wasn't isn't"
)
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_SENTENCE_END: Final = re.compile(r"[.!?…]")
#: After these words, ``that`` begins a clause and is not a pronoun.
_NOUN_LIKE: Final = word_set("anything something everything nothing all one ones someone anyone")


@dataclass(frozen=True, slots=True)
class ReadText:
    """The words of a text, by their roles."""

    #: Words in lower case, in reading order, without possessive endings.
    lowers: tuple[str, ...]
    #: Indices of names.
    names: frozenset[int]
    #: Indices of nouns.
    nouns: frozenset[int]
    #: Base forms of names, nouns and verbs, and numbers.
    units: frozenset[str]
    #: Base forms of all words except stop words.
    content: frozenset[str]
    #: The units that are names or contain a digit.
    entities: frozenset[str]
    #: Indices of pronouns, possessives and demonstratives without an antecedent in the text.
    unresolved: tuple[int, ...] = ()

    def pointers(self) -> frozenset[str]:
        """Return the pronouns and possessives without an antecedent in the text itself."""
        return frozenset(self.lowers[place] for place in self.unresolved)


@lru_cache(maxsize=65_536)
def read(text: str, lexicon: Lexicon) -> ReadText:
    """Find the roles of a text's words. The result is cached, because questions recur."""
    parts = take_apart(text)
    lowers = tuple(_POSSESSIVE.sub("", word.lower) for word in parts.words)
    names = _names(parts, lowers, lexicon)
    nouns, units, content = set(), set(), set()
    for place, lower in enumerate(lowers):
        pos = lexicon.majority_pos(lower)
        number = lower[:1].isdigit()
        if place not in names and not number and (_is_stop(lower, lexicon) or pos == "function"):
            continue
        base = _base(lower, name=place in names)
        content.add(base)
        if pos == "noun" or (pos is None and place not in names and not number):
            nouns.add(place)
        if place in names or number or pos in {"noun", "verb", None}:
            units.add(base)
    entities = {_base(lowers[place], name=True) for place in names}
    entities |= {lower for lower in lowers if any(map(str.isdigit, lower))} & units
    reading = ReadText(
        lowers,
        frozenset(names),
        frozenset(nouns),
        frozenset(units),
        frozenset(content),
        frozenset(entities),
    )
    places = range(len(lowers))
    return replace(
        reading, unresolved=tuple(one for one in places if _points_out(reading, one, lexicon))
    )


def _is_stop(lower: str, lexicon: Lexicon) -> bool:
    return lower in _stops(lexicon) or lower in _LIGHT


@lru_cache(maxsize=4)
def _stops(lexicon: Lexicon) -> frozenset[str]:
    return frozenset(lexicon.stop_words)


def _base(lower: str, *, name: bool) -> str:
    """Return the singular or the infinitive of a word. Names do not change."""
    if name:
        return lower
    forms = inflections()
    return forms.singular(lower) or forms.infinitive(lower) or lower


def _names(parts: Parts, lowers: tuple[str, ...], lexicon: Lexicon) -> set[int]:
    """Return the indices of capitalised words. Skip words that only begin a sentence."""
    found = set()
    for place, word in enumerate(parts.words):
        if not word.text[0].isupper() or word.lower in {"i", "i'm", "i'd", "i've", "i'll"}:
            continue
        starts = not place or _SENTENCE_END.search(parts.gaps[place]) is not None
        known = lexicon.is_word(lowers[place])
        if starts and known and (_is_stop(lowers[place], lexicon) or not _next(parts, place)):
            continue
        found.add(place)
    return found


def _next(parts: Parts, place: int) -> bool:
    """Return whether the next word is also capitalised."""
    return place + 1 < len(parts.words) and parts.words[place + 1].text[0].isupper()


def _points_out(found: ReadText, place: int, lexicon: Lexicon) -> bool:
    """Return whether a word refers to something outside the text, or later in it."""
    lower = found.lowers[place]
    after = found.lowers[place + 1] if place + 1 < len(found.lowers) else ""
    before = found.lowers[place - 1] if place else ""
    earlier = range(place)
    if lower in PERSONS or lower in THINGS:
        # A noun before the pronoun is rarely its antecedent. More often the question asks for the
        # noun: `what songs did they sing`.
        return not any(one in found.names for one in earlier)
    if lower not in DEMONSTRATIVES:
        return False
    if lower == "that":
        clause = place - 1 in found.nouns or place - 1 in found.names or before in _NOUN_LIKE
        said = before and lexicon.majority_pos(before) == "verb" and after
        if clause or (said and place + 1 not in found.nouns):
            return False
    if place + 1 in found.nouns:
        return _base(after, name=False) not in {
            _base(found.lowers[one], name=False) for one in earlier
        }
    return True


#: Minimum number of words in a question that stands alone.
_FEWEST_WORDS: Final = 3
#: Words other than pronouns that depend on earlier rounds.
_LEANING: Final = word_set(
    "other others another else more next then also too here there again same such later before"
    " after afterwards second third fourth fifth last both either neither latter former one ones"
    " so instead besides however still"
)
#: Words that ask for something *not yet* said. The answer depends on all rounds before.
_NOT_YET: Final = word_set("else other others another more besides also again further additional")
#: Words that begin an elliptical question.
_ELLIPSES: Final = (("and",), ("or",), ("but",), ("then",))
_POINTING: Final = DEMONSTRATIVES | {"there"}
#: Minimum number of words in a question that stands alone without a name.
_ALONE: Final = 4


@dataclass(frozen=True, slots=True)
class NeededContext:
    """Checks whether the rounds before a question give all the context that the question needs.

    The result is true if the question needs no context. It is also true if the last rounds before
    the question in the clean dialogue precede it here too, the nearest one directly.

    The result is false if three conditions hold. First, the question points back by a pronoun, a
    demonstrative or an ellipsis. Second, no earlier round of the dialogue stands before the
    question. Third, the recorded answer repeats a name or number that the sequence has not
    mentioned. This name or number must come from the user's earlier questions. If the question
    points to a person or to one thing of a kind (``that ship``), it may also come from an earlier
    answer. Nouns and verbs of earlier rounds do not count, because a bot with one subject mentions
    them in any context.

    Otherwise the result is ``None``: undecided. If a question asks for something not yet said, only
    exactly the same rounds give an equivalent context.

    Each of the three numbers is a compromise between the best values on the two halves of CANARD's
    development split. The research pages report the results on the other half.
    """

    #: Minimum number of words in a question that stands alone without a name.
    alone: int = _ALONE
    #: Number of rounds directly before the question in the clean dialogue. They must also stand
    #: before it in the sequence.
    nearest: int = 2
    #: The context is lost if the answer repeats at least this number of earlier names and numbers
    #: that the sequence has not mentioned.
    lost: int = 1

    @property
    def name(self) -> str:
        """The name for the option ``context-checks``."""
        return "needed"

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Return whether the context is equivalent, or ``None`` if the check cannot decide."""
        reading = read(asked.question, asked.lexicon)
        before, clean = set(asked.before), set(asked.clean)
        if not _NOT_YET.isdisjoint(reading.lowers):
            if before == clean:
                return True
        elif stands_alone(reading, self.alone) or not clean or self._nearest(asked):
            return True
        return None if before & clean or not self._lost(asked, reading) else False

    def _nearest(self, asked: AskedQuestion) -> bool:
        """Return whether the last rounds of the clean dialogue precede the question here, too."""
        last = asked.clean[-self.nearest :]
        return bool(last) and set(last) <= set(asked.before) and asked.before[-1] == last[-1]

    def _lost(self, asked: AskedQuestion, reading: ReadText) -> bool:
        """Return whether the question points back to a name or number that was not mentioned."""
        if not asked.clean or stands_alone(reading, self.alone) or not _points_back(reading):
            return False
        if asked.opening and _POINTING.isdisjoint(reading.lowers):
            return False  # ``he`` and ``it`` usually refer to the title.
        earlier: set[str] = set()
        for index in asked.clean:
            question, said = (read(text, asked.lexicon) for text in asked.round(index))
            earlier |= question.entities
            if _one_of_many(reading):
                earlier |= said.entities
        seen = reading.units | read(asked.opening, asked.lexicon).units
        for index in asked.before:
            for text in asked.round(index):
                seen |= read(text, asked.lexicon).units
        answer = read(asked.round(asked.turn).answer, asked.lexicon).units
        return len((answer & earlier) - seen) >= self.lost


def stands_alone(reading: ReadText, fewest: int = _ALONE) -> bool:
    """Return whether a question needs no context. It names its subject and points to nothing.

    A question without a name needs at least ``fewest`` words. ``the album`` is not a name.
    """
    if len(reading.lowers) < _FEWEST_WORDS or reading.unresolved:
        return False
    if not _LEANING.isdisjoint(reading.lowers):
        return False
    plain = len(reading.lowers) >= fewest and bool(reading.nouns) and not _definite(reading)
    return bool(reading.names) or plain


def _points_back(reading: ReadText) -> bool:
    """Return whether a question itself points to earlier rounds."""
    return (
        bool(reading.unresolved)
        or reading.lowers[:1] in _ELLIPSES
        or reading.lowers[:2]
        in (
            ("what", "about"),
            ("how", "about"),
        )
    )


def _one_of_many(reading: ReadText) -> bool:
    """Return whether a question refers to a person or one thing of a kind: ``that ship``.

    ``it`` and ``that`` alone may also refer to a bot's only subject. The name of this subject
    recurs in all answers.
    """
    return any(
        reading.lowers[place] in PERSONS
        or (reading.lowers[place] in DEMONSTRATIVES and place + 1 in reading.nouns)
        for place in reading.unresolved
    )


def _definite(reading: ReadText) -> bool:
    """Return whether a question treats a thing as known: ``the album``, unlike ``the name of``."""
    for place, lower in enumerate(reading.lowers):
        if lower == "the":
            noun = next((one for one in sorted(reading.nouns) if one > place), None)
            if noun is not None and reading.lowers[noun + 1 : noun + 2] != ("of",):
                return True
    return False


CHECKS_GROUP: Final = "pytest_dstfuzz.context_checks"
#: Stands for MORTAR's three checks.
MORTAR: Final = "mortar"
THEIRS: Final = ("semantic", "ontology", "story")
#: The default checks of a run.
DEFAULT: Final = ("needed",)


class ContextCheck(Protocol):
    """Checks whether the rounds before a question are equivalent to the clean context.

    The result must depend only on the question. It must not depend on the tested system or the
    order of calls.
    """

    @property
    def name(self) -> str:
        """The name for the option ``context-checks``."""

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Return whether the context is equivalent, or ``None`` if the check cannot decide."""


class SemanticCheck:
    """Checks that the question is complete: long enough, without references to earlier rounds."""

    name = "semantic"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Return whether the question needs no context. The rounds before it do not matter."""
        reading = read(asked.question, asked.lexicon)
        return len(reading.lowers) >= _FEWEST_WORDS and not reading.unresolved


class OntologyCheck:
    """Checks that earlier rounds have all words that the question and its answer reuse.

    The units of a round are the names, nouns and verbs in its question and recorded answer. MORTAR
    uses a graph of entities and relations instead. If the context of a round is not equivalent,
    only the units of its question count.
    """

    name = "ontology"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Return whether the rounds before the question have all units that it needs."""
        brought: set[str] = set()
        for index in asked.before:
            brought |= self._brings(asked, index, complete=self._needs(asked, index) <= brought)
        return self._needs(asked, asked.turn) <= brought

    def _needs(self, asked: AskedQuestion, index: int) -> frozenset[str]:
        """Return the units that a round takes from earlier rounds of the clean dialogue."""
        earlier: set[str] = set()
        for one in range(index):
            earlier |= self._brings(asked, one, complete=True)
        question = read(asked.round(index).question, asked.lexicon).units
        return frozenset((self._brings(asked, index, complete=True) & earlier) - question)

    def _brings(self, asked: AskedQuestion, index: int, *, complete: bool) -> frozenset[str]:
        question, answer = asked.round(index)
        units = read(question, asked.lexicon).units
        return units | read(answer, asked.lexicon).units if complete else units


class StoryCheck:
    """Checks that the opening (a title, a story) has the nouns for the question's pronouns.

    These nouns are among the units (names, nouns, verbs) that question and answer share with
    earlier rounds of the clean dialogue. If the question has no pronoun that points back, the check
    `semantic` decides.
    """

    name = "story"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Return whether the opening has the nouns for the question's pronouns."""
        reading = read(asked.question, asked.lexicon)
        if not asked.opening or not reading.unresolved:
            return False
        story = read(asked.opening, asked.lexicon)
        earlier: set[str] = set()
        for index in asked.clean:
            for text in asked.round(index):
                earlier |= read(text, asked.lexicon).units
        stands_for = (
            read(asked.round(asked.turn).answer, asked.lexicon).units | reading.units
        ) & earlier
        return stands_for - reading.units <= story.units


@dataclass(frozen=True, slots=True)
class JudgedContext:
    """Lets the chat model of ``--dst-compare=judge:ADDRESS`` decide.

    The model sees the recorded dialogue up to the question, and the changed sequence. Before a run
    asks it, for example to count the questions, the check `NeededContext` stands in for it.
    """

    judge: ContextJudge | None = None

    @property
    def name(self) -> str:
        """The name for the option ``context-checks``."""
        return JUDGE

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Return whether the context is equivalent, or ``None`` if there is no verdict."""
        if asked.before == asked.clean:
            return True
        if self.judge is None:
            return NeededContext().equivalent(asked)
        clean = list_asked(asked.dialogue, (*asked.clean, asked.turn))
        return self.judge.keeps_context(clean, asked.context())


CONTEXT_CHECKS: Final[Registry[ContextCheck]] = Registry(
    "context check",
    CHECKS_GROUP,
    {
        check.name: check
        for check in (
            NeededContext(),
            SemanticCheck(),
            OntologyCheck(),
            StoryCheck(),
            JudgedContext(),
        )
    },
    families=(MORTAR,),
    expects="an object with equivalent()",
    fits=lambda found: callable(getattr(found, "equivalent", None)),
)


def register_context_check(check: ContextCheck) -> ContextCheck:
    """Register a context check under its name, for example in a ``conftest.py``.

    Raises:
        UserError: the check is a class, has no name or no ``equivalent(asked)``, or a shipped
            check has the same name.
    """
    if isinstance(check, type):
        raise UserError(
            f"register_context_check(): {check.__name__} is a class: register an instance, "
            f"{check.__name__}()"
        )
    CONTEXT_CHECKS.check_shape(
        check, "register_context_check()", "equivalent(asked)", "True, False or None"
    )
    CONTEXT_CHECKS.register(check.name, check)
    return check


def context_checks_named(
    names: Sequence[str], judge: ContextJudge | None = None
) -> tuple[ContextCheck, ...]:
    """Return the checks with the given names. ``mortar`` stands for three checks.

    ``judge`` is the language model for the check of this name.

    Raises:
        UserError: a check does not exist (the message suggests the nearest name), or no name is
            given.
    """
    if not names:
        raise UserError("no context check is given: name at least one, such as 'needed'")
    single = [one for name in names for one in (THEIRS if name == MORTAR else (name,))]
    return tuple(
        JudgedContext(judge) if name == JUDGE else CONTEXT_CHECKS.find(name)
        for name in dict.fromkeys(single)
    )


def equivalent(checks: Sequence[ContextCheck], asked: AskedQuestion) -> bool | None:
    """Combine checks. Any true wins, then any undecided. Otherwise the result is false."""
    unsure = False
    for check in checks:
        with blame_errors(f"the context check {check.name!r}"):
            said = check.equivalent(asked)
        if said:
            return True
        unsure |= said is None
    return None if unsure else False


#: A function of the number of rounds and a random generator. It returns indices of rounds from 0,
#: which may repeat.
Perturbation = Callable[[int, "np.random.Generator"], "tuple[int, ...] | None"]

PERTURBATIONS_GROUP: Final = "pytest_dstfuzz.perturbations"
#: Shares of the rounds to drop and to repeat.
_REDUCED: Final = 0.3
_DUPLICATED: Final = 0.2
#: Minimum number of rounds in a dialogue that may lose one.
_FEWEST_TO_REDUCE: Final = 3


def shuffle_rounds(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRS: shuffle all rounds into another order."""
    return _other_order(tuple(range(rounds)), rng)


def reduce_rounds(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRR: drop 30 % of the rounds, but at least one.

    According to its published counts, MORTAR rounds this number down. Here it is rounded to the
    nearest integer. Otherwise many short dialogues would lose no round.
    """
    if rounds < _FEWEST_TO_REDUCE:
        return None
    dropped = rng.choice(rounds, size=max(1, round(_REDUCED * rounds)), replace=False)
    return tuple(index for index in range(rounds) if index not in set(dropped.tolist()))


def duplicate_rounds(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRD: repeat 20 % of the rounds, but at least one, at random positions.

    The number is rounded as in `reduce_rounds`.
    """
    order = list(range(rounds))
    for again in rng.choice(rounds, size=max(1, round(_DUPLICATED * rounds)), replace=False):
        order.insert(int(rng.integers(len(order) + 1)), int(again))
    return tuple(order)


def _then_shuffled(
    first: Perturbation, rounds: int, rng: np.random.Generator
) -> tuple[int, ...] | None:
    order = first(rounds, rng)
    return None if order is None else _other_order(order, rng)


def _other_order(order: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...] | None:
    """Return another order of some rounds, drawn uniformly, or ``None`` without another order."""
    if len(set(order)) < 2:
        return None
    while True:
        found = tuple(order[place] for place in rng.permutation(len(order)))
        if found != order:
            return found


PERTURBATIONS: Final[Registry[Perturbation]] = Registry(
    "perturbation",
    PERTURBATIONS_GROUP,
    {
        "DRS": shuffle_rounds,
        "DRR": reduce_rounds,
        "DRD": duplicate_rounds,
        "DSR": partial(_then_shuffled, reduce_rounds),
        "DSD": partial(_then_shuffled, duplicate_rounds),
    },
    expects="a function",
    fits=callable,
)


def register_perturbation(name: str, perturbation: Perturbation) -> None:
    """Register a perturbation, which puts the rounds of a dialogue into another order.

    Args:
        name: the name for the option ``perturbations`` and for reports.
        perturbation: a function of the number of rounds and a random generator. It returns
            indices of rounds from 0, or ``None``, and uses no other source of randomness.

    Raises:
        UserError: a shipped perturbation has the same name.
    """
    PERTURBATIONS.register(name, perturbation)


class QuestionOrder(NamedTuple):
    """The rounds of a dialogue in the order of one perturbation."""

    perturbation: str
    #: Index of the draw of this perturbation, from 0.
    draw: int
    order: tuple[int, ...]

    @property
    def case(self) -> str:
        """The name of the test case: ``DRS-0``."""
        return f"{self.perturbation}-{self.draw}"


def sequences(
    dialogue: Dialogue, names: tuple[str, ...], draws: int, seed: int
) -> Iterator[QuestionOrder]:
    """Yield the sequences of a dialogue, one from each perturbation in turn.

    Sequences do not depend on the question or the relation. So the tested system answers each
    prefix of a sequence only once.

    Raises:
        UserError: a perturbation does not exist, or it returns rounds that do not exist.
    """
    rounds = len(dialogue.turns)
    for draw in range(draws):
        for name in names:
            rng = stream(seed, "sequence", dialogue.id, name, draw)
            with blame_errors(f"the perturbation {name!r}"):
                order = PERTURBATIONS.find(name)(rounds, rng)
            if order is None:
                continue
            if not order or not all(0 <= index < rounds for index in order):
                raise UserError(
                    f"the perturbation {name!r} returned {order!r} for {rounds} rounds: it must "
                    f"return at least one number from 0 to {rounds - 1}, and no other number"
                )
            yield QuestionOrder(name, draw, tuple(map(int, order)))


@dataclass(frozen=True, slots=True)
class Version:
    """A question in one sequence, and the verdict of the checks on its context."""

    sequence: QuestionOrder
    asked: AskedQuestion
    #: Whether the context is equivalent; ``None`` if the checks cannot decide.
    equivalent: bool | None

    @property
    def seen(self) -> Context:
        """The sequence up to the question, as the tested system reads it."""
        return self.asked.context()

    @property
    def about(self) -> str:
        """The place of the question, with rounds counted from 1: ``DRS-0, asked after round 3``."""
        before = [str(index + 1) for index in self.asked.before]
        after = f"after round{'s' * (len(before) > 1)} {', '.join(before)}" if before else "first"
        return f"{self.sequence.case}, asked {after}"

    def moves(self) -> tuple[Move, ...]:
        """Return the moves of the question and of the rounds before it."""
        turn, before = self.asked.turn, self.asked.before
        kept = [index for index in dict.fromkeys(before) if index != turn]
        dropped = (Move("drop", index) for index in range(turn) if index not in kept)
        twice = (Move("repeat", index, index) for index in list_repeated((*before, turn)))
        return (*dropped, *order_rounds([*kept, turn]), *twice)


def list_repeated(order: Iterable[int]) -> Iterator[int]:
    """Yield each repeated round, once for each repetition."""
    seen: set[int] = set()
    for index in order:
        if index in seen:
            yield index
        seen.add(index)


def versions(scene: Scene, draws: int | None = None) -> list[Version]:
    """Return the versions of the turn's question, in the order of their sequences.

    If versions are equal, only the first is kept. ``draws`` is the number of sequences for each
    perturbation. By default, there is about one sequence for each variant of the campaign.

    Raises:
        UserError: a perturbation or check does not exist.
    """
    checks = context_checks_named(scene.reply.context_checks, scene.judge)
    found: dict[tuple[int, ...], Version] = {}
    for sequence in _kept_sequences(scene, draws):
        for place, turn in enumerate(sequence.order):
            before = sequence.order[:place]
            if turn == scene.index and before not in found:
                asked = AskedQuestion(scene.dialogue, sequence.order, place, scene.lexicon)
                found[before] = Version(sequence, asked, equivalent(checks, asked))
    return [*found.values()]


def _kept_sequences(scene: Scene, draws: int | None) -> tuple[QuestionOrder, ...]:
    """Return the sequences of a dialogue. A run draws them only once."""
    names = scene.reply.perturbations
    draws = ceil(scene.variants / len(names)) if draws is None else draws
    key = "sequences", scene.dialogue.id, names, draws
    if key not in scene.kept:
        scene.kept[key] = tuple(sequences(scene.dialogue, names, draws, scene.seed))
    found = scene.kept[key]
    assert isinstance(found, tuple)  # noqa: S101 - nobody else keeps anything under this key
    return found


_SHORT: Final = "the dialogue has fewer than two rounds"
_UNANSWERABLE: Final = "the data says that the question has no answer"
_NO_ANSWER: Final = "no answer to the question is recorded"
_NO_SEQUENCE: Final = "no other order of the questions gives the question another context"
_UNSURE: Final = "the checks cannot tell whether a context is equivalent"
_NOT_CLEAN: Final = "the clean context itself fails the checks"
_NO_EQUIVALENT: Final = "no other order of the questions gives the question an equivalent context"
_NO_LOST: Final = "no sequence has a lost context"
_FALLBACK: Final = "the clean reply is a fallback reply, which need not change"
_FEWER_THAN_TWO: Final = "fewer than two sequences ask the question in an equivalent context"
_NOT_BOTH: Final = "no sequence has an equivalent context, or no sequence has a lost context"


class ContextRelation(Relation):
    """Compares the replies to the same question in different sequences.

    A subclass defines ``name`` and `rewrites`.

    Args:
        draws: number of sequences per perturbation. ``None`` gives about one sequence per variant.
    """

    on = ("reply",)
    edits = "own"
    #: Reasons of the subclass, in addition to the common reasons.
    none: tuple[str, ...] = ()
    #: Whether the clean reply must be an answer rather than a fallback.
    wants_answer = False

    def __init__(self, draws: int | None = None) -> None:
        self._draws = draws

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the relation may not apply to a question, in the order of its checks."""
        fallback = (_FALLBACK,) if self.wants_answer else ()
        whole = (_SHORT, _UNANSWERABLE, _NO_ANSWER, *fallback, _NO_SEQUENCE, _UNSURE)
        return (*whole, *self.none)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no dialogue has two rounds, else ``""``."""
        if all(len(dialogue.turns) < 2 for dialogue in data.dialogues):
            return "it asks the questions in another order, so it needs a dialogue with two rounds"
        return ""

    def cases(self, scene: Scene) -> tuple[str, ...]:
        """Return the names of all sequences of a dialogue with two rounds or more."""
        if len(scene.dialogue.turns) < 2:
            return ()
        return tuple(one.case for one in _kept_sequences(scene, self._draws))

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a question, or the reason why the relation cannot apply."""
        if reason := self._silent(scene):
            return Inapplicable(reason)
        found = versions(scene, self._draws)
        if all(one.asked.before == one.asked.clean for one in found):
            return Inapplicable(_NO_SEQUENCE)
        if rewrites := list(self.rewrites(scene, found)):
            return rewrites
        unsure = any(one.equivalent is None for one in found)
        return Inapplicable(_UNSURE if unsure else self.lacks(scene))

    def _silent(self, scene: Scene) -> str:
        """Return why the relation cannot apply in any sequence, or ``""`` if it can apply."""
        answer = answer_of(scene.dialogue, scene.index)
        if len(scene.dialogue.turns) < 2:
            return _SHORT
        if answer == "":
            return _UNANSWERABLE
        if scene.reply.reference == "answer" and answer is None:
            return _NO_ANSWER
        fallback = is_fallback(scene.kind.text(scene.now), scene.reply.fallback)
        return _FALLBACK if self.wants_answer and fallback else ""

    def lacks(self, scene: Scene) -> str:
        """Return the reason why no version of the question is usable."""
        del scene
        return self.none[-1]

    @abstractmethod
    def rewrites(self, scene: Scene, found: list[Version]) -> Iterable[Rewrite]:
        """Return the rewrites, each with the reply that is expected."""


@register_relation
class SameContext(ContextRelation):
    """MR1: if the context is equivalent, the reply means the same as in the clean dialogue."""

    name = "same-context"
    expects = "the reply means the same although other rounds come before the question"
    none = (_NOT_CLEAN, _NO_EQUIVALENT)

    def lacks(self, scene: Scene) -> str:
        """Return the reason: no context is equivalent, or the clean context fails its own check."""
        checks = context_checks_named(scene.reply.context_checks, scene.judge)
        clean = tuple(range(len(scene.dialogue.turns)))
        asked = AskedQuestion(scene.dialogue, clean, scene.index, scene.lexicon)
        return _NO_EQUIVALENT if equivalent(checks, asked) else _NOT_CLEAN

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions with equivalent contexts. The reference is the clean context."""
        return (
            _against_clean(scene, one, UNCHANGED)
            for one in found
            if one.equivalent and one.asked.before != one.asked.clean
        )


@register_relation
class LostContext(ContextRelation):
    """MR2: if the context is lost, the reply must differ from the reply in the clean dialogue."""

    name = "lost-context"
    side = "should-change"
    expects = "the reply changes if the context that the question needs is missing"
    none = (_NO_LOST,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions with a lost context. The reference is the clean context."""
        return (_against_clean(scene, one, OTHER_REPLY) for one in found if one.equivalent is False)


@register_relation
class ContextsAgree(ContextRelation):
    """MR3: the replies in all equivalent contexts must mean the same.

    Each version is compared with the version before it, and the first one with the last. If two
    replies differ, the violation belongs to the reply that also differs from the clean reply. The
    published relation uses the largest distance of all pairs.
    """

    name = "contexts-agree"
    expects = "the replies to a question say the same in all contexts with the needed information"
    none = (_FEWER_THAN_TWO,)

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of versions with equivalent contexts."""
        del scene
        alike = [one for one in found if one.equivalent]
        around = pairwise([alike[-1], *alike]) if len(alike) > 1 else ()
        return (_between(one, other, UNCHANGED) for one, other in around)


@register_relation
class ContextsDiffer(ContextRelation):
    """MR4: a reply in a lost context must differ from the replies in equivalent contexts."""

    name = "contexts-differ"
    side = "should-change"
    expects = "the reply without the needed context differs from the replies with it"
    none = (_NOT_BOTH,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of versions: one with an equivalent context, one with a lost context."""
        del scene
        alike = [one for one in found if one.equivalent]
        lost = [one for one in found if one.equivalent is False]
        return (_between(one, other, OTHER_REPLY) for one, other in product(alike, lost))


def _against_clean(scene: Scene, version: Version, expected: Expectation) -> Rewrite:
    return Rewrite(
        seen=version.seen,
        reference=scene.context,
        expected=expected,
        moves=version.moves(),
        about=version.about,
        case=version.sequence.case,
    )


def _between(one: Version, other: Version, expected: Expectation) -> Rewrite:
    return Rewrite(
        seen=other.seen,
        reference=one.seen,
        expected=expected,
        moves=other.moves(),
        about=f"{other.about}; compared with {one.about}",
        case=f"{one.sequence.case} {other.sequence.case}",
        between=True,
    )
