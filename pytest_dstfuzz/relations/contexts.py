"""Relations over earlier questions, and checks that a context is equivalent."""

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
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Exchange, answer_of
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Parts, take_apart, word_set
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    OTHER_REPLY,
    UNCHANGED,
    Begun,
    Expected,
    Inapplicable,
    Move,
    Relation,
    Rewrite,
    Scene,
)
from pytest_dstfuzz.relations.rounds import ordered
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
    "round_of",
    "sequences",
    "stands_alone",
    "without_opening",
]


class QuestionRound(NamedTuple):
    """A question, and the answer that was recorded to it; ``""`` where there is none."""

    question: str
    answer: str


def opening_of(dialogue: Dialogue) -> str:
    """Return what the system says before the first question: a title, a story, a greeting."""
    return dialogue.turns[0].system


def round_of(dialogue: Dialogue, index: int) -> QuestionRound:
    """Return a round, counted from 0."""
    return QuestionRound(dialogue.turns[index].user, answer_of(dialogue, index) or "")


def _said_after(dialogue: Dialogue, index: int) -> str:
    """Return what the system said after a question; also that it knows no answer."""
    following = dialogue.turns[index + 1 : index + 2]
    return following[0].system if following else answer_of(dialogue, index) or ""


def asked(dialogue: Dialogue, order: Sequence[int]) -> Context:
    """Return questions in an order, each with its recorded answer after it.

    The opening stays the first that the system says. The last of the questions is the newest
    utterance of the user.

    Args:
        dialogue: whose rounds they are.
        order: rounds of it, counted from 0, of which one may come several times; at least one.
    """
    said = [opening_of(dialogue), *(_said_after(dialogue, index) for index in order[:-1])]
    users = (dialogue.turns[index].user for index in order)
    return Context(tuple(map(Exchange, said, users)))


def without_opening(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue whose title, story or greeting is withheld."""
    first, *others = dialogue.turns
    return replace(dialogue, turns=(replace(first, system=""), *others))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a sequence.

    ``order`` is the whole sequence, rounds of the dialogue counted from 0, and ``place`` where the
    question stands in it.
    """

    dialogue: Dialogue
    order: tuple[int, ...]
    place: int
    lexicon: Lexicon

    @property
    def turn(self) -> int:
        """The round of the clean dialogue that the question is."""
        return self.order[self.place]

    @property
    def question(self) -> str:
        """What is asked."""
        return self.dialogue.turns[self.turn].user

    @property
    def opening(self) -> str:
        """What the system says before all."""
        return opening_of(self.dialogue)

    @property
    def before(self) -> tuple[int, ...]:
        """The rounds before it in the sequence, in their order."""
        return self.order[: self.place]

    @property
    def clean(self) -> tuple[int, ...]:
        """The rounds before it in the clean dialogue."""
        return tuple(range(self.turn))

    def round(self, index: int) -> QuestionRound:
        """Return a round of the clean dialogue."""
        return round_of(self.dialogue, index)

    def context(self) -> Context:
        """Return the sequence up to the question, as a system sees it."""
        return asked(self.dialogue, self.order[: self.place + 1])


PERSONS: Final = word_set("he him his himself she her hers herself")
THINGS: Final = word_set("it its itself they them their theirs themselves")
DEMONSTRATIVES: Final = word_set("this that these those")
#: Words that ask, help, or mean next to nothing alone; beside the lexicon's stop words.
_LIGHT: Final = word_set(
    "get got have has had do does did done be been make made go went gone happen happened become"
    " became know tell say said give gave also else ever any anything something anyone someone"
    " interesting interest aspect article information thing way time lot kind sort type first"
    " other another would could much many cannot i'm don't didn't wasn't isn't"
)
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_SENTENCE_END: Final = re.compile(r"[.!?…]")
#: ``that`` after one of these is no pointer: it begins a clause.
_NOUN_LIKE: Final = word_set("anything something everything nothing all one ones someone anyone")


@dataclass(frozen=True, slots=True)
class ReadText:
    """What stands in a text."""

    #: Words in lower case, in reading order, without a possessive ending.
    lowers: tuple[str, ...]
    #: Those that are names, by place.
    names: frozenset[int]
    #: Those that are nouns, by place.
    nouns: frozenset[int]
    #: Base forms of names, nouns and verbs, and numbers.
    units: frozenset[str]
    #: Base forms of all words but stop words.
    content: frozenset[str]
    #: Of the units the names and what has a digit.
    entities: frozenset[str]
    #: Places of pronouns, possessives and demonstratives that point out of the text.
    unresolved: tuple[int, ...] = ()

    def pointers(self) -> frozenset[str]:
        """Return the pronouns, possessives and demonstratives that point out of the text."""
        return frozenset(self.lowers[place] for place in self.unresolved)


@lru_cache(maxsize=65_536)
def read(text: str, lexicon: Lexicon) -> ReadText:
    """Take a text apart; kept, as the questions of a sequence come again and again."""
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
    """Return the singular or the infinitive of a word; names stay."""
    if name:
        return lower
    forms = inflections()
    return forms.singular(lower) or forms.infinitive(lower) or lower


def _names(parts: Parts, lowers: tuple[str, ...], lexicon: Lexicon) -> set[int]:
    """Return the words written with a capital that no start of a sentence asks for."""
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
    """Whether the next word has a capital, too."""
    return place + 1 < len(parts.words) and parts.words[place + 1].text[0].isupper()


def _points_out(found: ReadText, place: int, lexicon: Lexicon) -> bool:
    """Whether a word points to something that does not stand before it in the text."""
    lower = found.lowers[place]
    after = found.lowers[place + 1] if place + 1 < len(found.lowers) else ""
    before = found.lowers[place - 1] if place else ""
    earlier = range(place)
    if lower in PERSONS or lower in THINGS:
        # A noun is what is asked for more often than what a pronoun stands for: `what songs did
        # they sing`.
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


#: A question of fewer words says too little to stand alone, whatever it names.
_FEWEST_WORDS: Final = 3
#: Words that lean on what was said, though they are no pronouns.
_LEANING: Final = word_set(
    "other others another else more next then also too here there again same such later before"
    " after afterwards second third fourth fifth last both either neither latter former one ones"
    " so instead besides however still"
)
#: A question for what was *not yet* said: its answer hangs on all rounds before it.
_NOT_YET: Final = word_set("else other others another more besides also again further additional")
#: Words that begin a question of which a part is left out.
_ELLIPSES: Final = (("and",), ("or",), ("but",), ("then",))
_POINTING: Final = DEMONSTRATIVES | {"there"}
#: Words from which on a question that names nobody may stand alone.
_ALONE: Final = 4


@dataclass(frozen=True, slots=True)
class NeededContext:
    """Whether what a question needs stands before it.

    True: it needs nothing; or its last clean rounds stand before it, the nearest of them right
    before it. False: the question itself points back (a pronoun, a demonstrative, an ellipsis), no
    earlier round stands before it, and the recorded answer takes up a name or a number that the
    user brought in an earlier round, or an answer of a person or of one thing of a kind (``that
    ship``), and that is nowhere to be seen. A noun or a verb that the
    answer shares with earlier rounds is no context: a bot that knows one subject speaks of it
    whatever was said. Else it cannot tell. A question for what was not yet said is equivalent only
    after exactly the same rounds.

    The three numbers lie between those that each half of CANARD's development split chooses, and
    the research pages have the figures on the other half.
    """

    #: Words from which on a question that names nobody may stand alone.
    alone: int = _ALONE
    #: Clean rounds right before the question that must stand before it, too.
    nearest: int = 2
    #: Names and numbers of the user's that its answer takes up and that are nowhere to be seen:
    #: from so many on the context is lost.
    lost: int = 1

    @property
    def name(self) -> str:
        """What the option ``context-checks`` takes."""
        return "needed"

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Say whether the context is equivalent; ``None`` = it cannot tell."""
        reading = read(asked.question, asked.lexicon)
        before, clean = set(asked.before), set(asked.clean)
        if not _NOT_YET.isdisjoint(reading.lowers):
            if before == clean:
                return True
        elif stands_alone(reading, self.alone) or not clean or self._nearest(asked):
            return True
        return None if before & clean or not self._lost(asked, reading) else False

    def _nearest(self, asked: AskedQuestion) -> bool:
        """Whether the last clean rounds stand before it, the nearest of them right before it."""
        last = asked.clean[-self.nearest :]
        return bool(last) and set(last) <= set(asked.before) and asked.before[-1] == last[-1]

    def _lost(self, asked: AskedQuestion, reading: ReadText) -> bool:
        """Whether it points back to a name or a number that is nowhere to be seen."""
        if not asked.clean or stands_alone(reading, self.alone) or not _points_back(reading):
            return False
        if asked.opening and _POINTING.isdisjoint(reading.lowers):
            return False  # ``he`` and ``it`` are mostly what a title is about.
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
    """Whether a question needs nothing: it points nowhere, and says what it is about.

    ``fewest``: words from which on it may do so without a name; ``the album`` is none.
    """
    if len(reading.lowers) < _FEWEST_WORDS or reading.unresolved:
        return False
    if not _LEANING.isdisjoint(reading.lowers):
        return False
    plain = len(reading.lowers) >= fewest and bool(reading.nouns) and not _definite(reading)
    return bool(reading.names) or plain


def _points_back(reading: ReadText) -> bool:
    """Whether the words of a question themselves say that something was said before."""
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
    """Whether a question points to a person, or to one thing of a kind: ``he``, ``that ship``.

    ``it`` and ``that`` alone stand for the one subject of a bot as well, whose name its answers
    say again and again.
    """
    return any(
        reading.lowers[place] in PERSONS
        or (reading.lowers[place] in DEMONSTRATIVES and place + 1 in reading.nouns)
        for place in reading.unresolved
    )


def _definite(reading: ReadText) -> bool:
    """Whether a thing is spoken of as known: ``the album``, but not ``the name of ...``."""
    for place, lower in enumerate(reading.lowers):
        if lower == "the":
            noun = next((one for one in sorted(reading.nouns) if one > place), None)
            if noun is not None and reading.lowers[noun + 1 : noun + 2] != ("of",):
                return True
    return False


CHECKS_GROUP: Final = "pytest_dstfuzz.context_checks"
#: Stands for MORTAR's three.
MORTAR: Final = "mortar"
THEIRS: Final = ("semantic", "ontology", "story")
#: The check of a run that names none.
DEFAULT: Final = ("needed",)


class ContextCheck(Protocol):
    """Says whether the rounds before a question give it what its clean context gives it.

    Its answers must depend on the question alone: neither on the system nor on the order in which
    it is asked.
    """

    @property
    def name(self) -> str:
        """What the option ``context-checks`` takes."""

    def equivalent(self, asked: AskedQuestion) -> bool | None:
        """Return whether the context is equivalent; ``None`` = it cannot tell."""


class SemanticCheck:
    """The question stands alone: no pronoun in it points out of it, and it is not too short."""

    name = "semantic"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether the question needs no context, whatever stands before it."""
        reading = read(asked.question, asked.lexicon)
        return len(reading.lowers) >= _FEWEST_WORDS and not reading.unresolved


class OntologyCheck:
    """What question and answer take from earlier rounds was brought by the rounds before.

    Units of a round are names, nouns and verbs of its question and recorded answer, in the place of
    a graph of entities and relations. A round whose own context is not equivalent brings those of
    its question alone.
    """

    name = "ontology"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether all units that the question needs stand before it."""
        brought: set[str] = set()
        for index in asked.before:
            brought |= self._brings(asked, index, complete=self._needs(asked, index) <= brought)
        return self._needs(asked, asked.turn) <= brought

    def _needs(self, asked: AskedQuestion, index: int) -> frozenset[str]:
        """Return what a round takes from those before it in the clean dialogue."""
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
    """What the pronouns of the question stand for is in the opening: a title, a story.

    The antecedents are taken to be the names that question and answer share with earlier clean
    rounds; without any, the nouns. A question without an open pronoun is left to `semantic`.
    """

    name = "story"

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Say whether the opening tells what the question points to."""
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


CONTEXT_CHECKS: Final[Registry[ContextCheck]] = Registry(
    "context check",
    CHECKS_GROUP,
    {
        check.name: check
        for check in (NeededContext(), SemanticCheck(), OntologyCheck(), StoryCheck())
    },
    families=(MORTAR,),
)


def register_context_check(check: ContextCheck) -> ContextCheck:
    """Make a check of contexts known by its name, such as in a ``conftest.py``.

    Raises:
        UserError: it is a class, has no name or no ``equivalent(asked)``, or one that ships has
            its name.
    """
    if isinstance(check, type):
        raise UserError(
            f"register_context_check(): {check.__name__} is a class: register one of it, "
            f"{check.__name__}()"
        )
    CONTEXT_CHECKS.check_shape(
        check, "register_context_check()", "equivalent(asked)", "True, False or None"
    )
    CONTEXT_CHECKS.register(check.name, check)
    return check


def context_checks_named(names: Sequence[str]) -> tuple[ContextCheck, ...]:
    """Return the checks of some names; ``mortar`` stands for three.

    Raises:
        UserError: there is no such check, the nearest name is said; or none is named.
    """
    if not names:
        raise UserError("no context check is named: 'needed' is the one of a run that names none")
    single = [one for name in names for one in (THEIRS if name == MORTAR else (name,))]
    return tuple(CONTEXT_CHECKS.find(name) for name in dict.fromkeys(single))


def equivalent(checks: Sequence[ContextCheck], asked: AskedQuestion) -> bool | None:
    """Say what checks say together: any True is True, else any ``None`` is ``None``, else False."""
    unsure = False
    for check in checks:
        with blamed(f"the context check {check.name!r}"):
            said = check.equivalent(asked)
        if said:
            return True
        unsure |= said is None
    return None if unsure else False


#: ``(rounds, rng)`` -> rounds counted from 0, of which one may come several times.
Perturbation = Callable[[int, "np.random.Generator"], "tuple[int, ...] | None"]

PERTURBATIONS_GROUP: Final = "pytest_dstfuzz.perturbations"
#: Share of the rounds that is left out, and that is said twice.
_REDUCED: Final = 0.3
_DUPLICATED: Final = 0.2
#: Rounds that must be there for one to be left out.
_FEWEST_TO_REDUCE: Final = 3


def shuffled(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRS: all rounds in another order than theirs, drawn uniformly."""
    return _other_order(tuple(range(rounds)), rng)


def reduced(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRR: 30 % of the rounds are left out, one at least."""
    if rounds < _FEWEST_TO_REDUCE:
        return None
    dropped = rng.choice(rounds, size=max(1, round(_REDUCED * rounds)), replace=False)
    return tuple(index for index in range(rounds) if index not in set(dropped.tolist()))


def duplicated(rounds: int, rng: np.random.Generator) -> tuple[int, ...] | None:
    """DRD: 20 % of the rounds, one at least, are asked once more, at drawn places."""
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
    """Return another order than the given one, drawn uniformly; ``None`` = there is none."""
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
        "DRS": shuffled,
        "DRR": reduced,
        "DRD": duplicated,
        "DSR": partial(_then_shuffled, reduced),
        "DSD": partial(_then_shuffled, duplicated),
    },
)


def register_perturbation(name: str, perturbation: Perturbation) -> None:
    """Make a perturbation of sequences known by a name.

    Args:
        name: what the option ``perturbations`` takes, and what reports show.
        perturbation: gets the number of rounds and a generator, from which alone it draws; returns
            rounds counted from 0, or ``None``.

    Raises:
        UserError: one that ships has the name.
    """
    PERTURBATIONS.register(name, perturbation)


class QuestionOrder(NamedTuple):
    """The rounds of a dialogue as one perturbation orders them."""

    perturbation: str
    #: 0, 1, ...: which drawing of this perturbation.
    draw: int
    order: tuple[int, ...]

    @property
    def case(self) -> str:
        """What the test case is called: ``DRS-0``."""
        return f"{self.perturbation}-{self.draw}"


def sequences(
    dialogue: Dialogue, names: tuple[str, ...], draws: int, seed: int
) -> Iterator[QuestionOrder]:
    """Yield the sequences of a dialogue, all perturbations of a draw before the next draw.

    They are the dialogue's, whichever of its questions is looked at and whichever relation looks:
    a system is asked each of their beginnings once.

    Raises:
        UserError: there is no such perturbation, or it returns rounds that are not there.
    """
    rounds = len(dialogue.turns)
    for draw in range(draws):
        for name in names:
            rng = stream(seed, "sequence", dialogue.id, name, draw)
            with blamed(f"the perturbation {name!r}"):
                order = PERTURBATIONS.find(name)(rounds, rng)
            if order is None:
                continue
            if not order or not all(0 <= index < rounds for index in order):
                raise UserError(
                    f"the perturbation {name!r} returned {order!r} for {rounds} rounds: it must "
                    f"return at least one of 0 to {rounds - 1}"
                )
            yield QuestionOrder(name, draw, tuple(map(int, order)))


@dataclass(frozen=True, slots=True)
class Version:
    """A question in one sequence, and what the checks say of its context there."""

    sequence: QuestionOrder
    asked: AskedQuestion
    #: ``None`` = they cannot tell.
    equivalent: bool | None

    @property
    def seen(self) -> Context:
        """The sequence up to the question, as a system sees it."""
        return self.asked.context()

    @property
    def about(self) -> str:
        """Where it stands, for people: ``DRS-0, after rounds 3, 1``; rounds count from 1."""
        before = [str(index + 1) for index in self.asked.before]
        after = f"after round{'s' * (len(before) > 1)} {', '.join(before)}" if before else "first"
        return f"{self.sequence.case}, asked {after}"

    def moves(self) -> tuple[Move, ...]:
        """Return what was done to the rounds before the question, and to it."""
        turn, before = self.asked.turn, self.asked.before
        kept = [index for index in dict.fromkeys(before) if index != turn]
        dropped = (Move("drop", index) for index in range(turn) if index not in kept)
        twice = (Move("repeat", index, index) for index in repeated((*before, turn)))
        return (*dropped, *ordered([*kept, turn]), *twice)


def repeated(order: Iterable[int]) -> Iterator[int]:
    """Yield the rounds that came before, each time that they come again."""
    seen: set[int] = set()
    for index in order:
        if index in seen:
            yield index
        seen.add(index)


def versions(scene: Scene, draws: int | None = None) -> list[Version]:
    """Return the versions of the question of a scene, in the order of their sequences.

    Of those that ask the same the first one stays. So many sequences are drawn that there is
    about one for each variant of the campaign, where ``draws`` does not say how many of each
    perturbation there are.

    Raises:
        UserError: there is no such perturbation or check.
    """
    names = scene.reply.perturbations
    draws = ceil(scene.variants / len(names)) if draws is None else draws
    checks = context_checks_named(scene.reply.context_checks)
    found: dict[tuple[int, ...], Version] = {}
    for sequence in _kept_sequences(scene, names, draws):
        for place, turn in enumerate(sequence.order):
            before = sequence.order[:place]
            if turn == scene.index and before not in found:
                asked = AskedQuestion(scene.dialogue, sequence.order, place, scene.lexicon)
                found[before] = Version(sequence, asked, equivalent(checks, asked))
    return [*found.values()]


def _kept_sequences(scene: Scene, names: tuple[str, ...], draws: int) -> tuple[QuestionOrder, ...]:
    """Return the sequences of a dialogue, which are drawn once a run."""
    key = "sequences", scene.dialogue.id, names, draws
    if key not in scene.kept:
        scene.kept[key] = tuple(sequences(scene.dialogue, names, draws, scene.seed))
    found = scene.kept[key]
    assert isinstance(found, tuple)  # noqa: S101 - nobody else keeps anything under this key
    return found


_SHORT: Final = "the dialogue has fewer than two rounds"
_UNANSWERABLE: Final = "the data says that the question has no answer"
_NO_ANSWER: Final = "no answer to the question is recorded"
_NO_SEQUENCE: Final = "no sequence asks the question in another context"
_UNSURE: Final = "the checks cannot tell whether a context is equivalent"
_NOT_CLEAN: Final = "not even the clean context passes the checks"
_NO_EQUIVALENT: Final = "no sequence asks the question in an equivalent context"
_NO_LOST: Final = "no sequence asks the question where its context is lost"
_FALLBACK: Final = "the clean reply gives no answer: nothing would have to happen"
_FEWER_THAN_TWO: Final = "fewer than two sequences ask the question in an equivalent context"
_NOT_BOTH: Final = "no two sequences ask the question, one in an equivalent context and one not"


class ContextRelation(Relation):
    """What is expected of the replies to a question, over its versions.

    A class that inherits from it writes ``name`` and `rewrites`.

    Args:
        draws: how many sequences of each perturbation there are; ``None`` = as many as give about
            one for each variant.
    """

    on = ("reply",)
    edits = "own"
    #: What `reason` may say beside those of all.
    none: tuple[str, ...] = ()
    #: Whether it expects of a clean reply that it is one.
    wants_answer = False

    def __init__(self, draws: int | None = None) -> None:
        self._draws = draws

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it says nothing about a question, in the order in which it looks."""
        fallback = (_FALLBACK,) if self.wants_answer else ()
        whole = (_SHORT, _UNANSWERABLE, _NO_ANSWER, *fallback, _NO_SEQUENCE, _UNSURE)
        return (*whole, *self.none)

    def impossible(self, data: DialogueSet) -> str:
        """Say that rounds can be asked in another order nowhere; ``""`` = somewhere they can."""
        if all(len(dialogue.turns) < 2 for dialogue in data.dialogues):
            return "it asks the questions of a dialogue in another order, and none has two rounds"
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return the versions of a question that it expects something of."""
        if reason := self._silent(scene):
            return Inapplicable(reason)
        found = versions(scene, self._draws)
        if all(one.asked.before == one.asked.clean for one in found):
            return Inapplicable(_NO_SEQUENCE)
        if all(one.equivalent is None for one in found):
            return Inapplicable(_UNSURE)
        return list(self.rewrites(scene, found)) or Inapplicable(self.lacks(scene))

    def _silent(self, scene: Scene) -> str:
        """Return why nothing is expected of the replies, whatever the sequences; ``""`` = it is."""
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
        """Return why none of the versions is one that it expects something of."""
        del scene
        return self.none[-1]

    @abstractmethod
    def rewrites(self, scene: Scene, found: list[Version]) -> Iterable[Rewrite]:
        """Return what is asked, and what is expected of the replies."""


@register_relation
class SameContext(ContextRelation):
    """MR1: in an equivalent context the reply says the same as in the clean one."""

    name = "same-context"
    expects = "the reply stays as it is where other rounds stand before the question"
    none = (_NOT_CLEAN, _NO_EQUIVALENT)

    def lacks(self, scene: Scene) -> str:
        """Return why there is no equivalent context, or none that counts as one."""
        checks = context_checks_named(scene.reply.context_checks)
        clean = tuple(range(len(scene.dialogue.turns)))
        asked = AskedQuestion(scene.dialogue, clean, scene.index, scene.lexicon)
        return _NO_EQUIVALENT if equivalent(checks, asked) else _NOT_CLEAN

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions in equivalent contexts, each against the clean one."""
        return (
            _against_clean(scene, one, UNCHANGED)
            for one in found
            if one.equivalent and one.asked.before != one.asked.clean
        )


@register_relation
class LostContext(ContextRelation):
    """MR2: where the context is lost, the reply of the clean one cannot come."""

    name = "lost-context"
    side = "should-change"
    expects = "the reply becomes another one where what the question needs is gone"
    none = (_NO_LOST,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return the versions whose context is lost, each against the clean one."""
        return (_against_clean(scene, one, OTHER_REPLY) for one in found if one.equivalent is False)


@register_relation
class ContextsAgree(ContextRelation):
    """MR3: the replies in equivalent contexts say the same as each other.

    Each version is held against the one before it, the first against the last, and of two that
    differ the one counts that is not the reply to the clean context either; the published relation
    takes the largest distance of all pairs.
    """

    name = "contexts-agree"
    expects = "the replies to a question are alike in all contexts that give it what it needs"
    none = (_FEWER_THAN_TWO,)

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of versions in equivalent contexts."""
        del scene
        alike = [one for one in found if one.equivalent]
        around = pairwise([alike[-1], *alike]) if len(alike) > 1 else ()
        return (_between(one, other, UNCHANGED) for one, other in around)


@register_relation
class ContextsDiffer(ContextRelation):
    """MR4: the reply where the context is lost is none of those in equivalent contexts."""

    name = "contexts-differ"
    side = "should-change"
    expects = "the reply where the context is lost is another one than where it is not"
    none = (_NOT_BOTH,)
    wants_answer = True

    def rewrites(self, scene: Scene, found: list[Version]) -> Iterator[Rewrite]:
        """Return pairs of a version in an equivalent context and one whose context is lost."""
        del scene
        alike = [one for one in found if one.equivalent]
        lost = [one for one in found if one.equivalent is False]
        return (_between(one, other, OTHER_REPLY) for one, other in product(alike, lost))


def _against_clean(scene: Scene, version: Version, expected: Expected) -> Rewrite:
    return Rewrite(
        seen=version.seen,
        reference=scene.context,
        expected=expected,
        moves=version.moves(),
        about=version.about,
        case=version.sequence.case,
    )


def _between(one: Version, other: Version, expected: Expected) -> Rewrite:
    return Rewrite(
        seen=other.seen,
        reference=one.seen,
        expected=expected,
        moves=other.moves(),
        about=f"{other.about}; compared with {one.about}",
        case=f"{one.sequence.case} {other.sequence.case}",
        between=True,
    )
