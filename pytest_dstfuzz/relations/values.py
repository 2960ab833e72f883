"""Finds values and clauses in a turn, and writes other values in their form."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import combinations
from typing import Final, Literal, NamedTuple

from pytest_dstfuzz.dialogue.calls import Outcome, members_of
from pytest_dstfuzz.dialogue.dates import CLOCK, CLOCK_TIME, WEEKDAYS, clock_like, hour_of_day
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, DialogueSet
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.dialogue.quantities import COUNTED
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.values import content, spell_compared
from pytest_dstfuzz.perturb.words import Parts, take_apart, word_list, word_set


@dataclass(frozen=True, slots=True)
class Inflections:
    """The inflected forms and base forms of words."""

    plurals: Mapping[str, str]
    singulars: Mapping[str, str]
    infinitives: Mapping[str, str]

    def plural(self, word: str) -> str | None:
        """Return the plural of a singular noun, or ``None`` for any other word."""
        return self.plurals.get(word.lower())

    def singular(self, word: str) -> str | None:
        """Return the singular of a plural noun, or ``None`` for any other word."""
        return self.singulars.get(word.lower())

    def infinitive(self, word: str) -> str | None:
        """Return the infinitive of an inflected verb, or ``None`` for any other word."""
        return self.infinitives.get(word.lower())


@cache
def inflections() -> Inflections:
    """Return the shipped table of word forms. It is read once per process."""
    shipped = resources.files("pytest_dstfuzz") / "resources" / "relations" / "inflections.json"
    tables: Mapping[str, Mapping[str, str]] = json.loads(shipped.read_text(encoding="utf-8"))
    plurals = dict(_pairs(tables["plurals"]))
    return Inflections(
        plurals,
        {form: base for base, form in plurals.items()},
        {form: base for base, form in _pairs(tables["verb_forms"])},
    )


def _pairs(table: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the base forms and inflected forms of a table that maps ``old>new`` to base forms."""
    for ending, bases in table.items():
        old, _, new = ending.partition(">")
        for base in bases.split(" "):
            yield base, base.removesuffix(old) + new


_SENTENCE_END: Final = re.compile(r"[!?\n]|\.(?=\s|$)")
_CLAUSE_END: Final = re.compile(r"[,;:]|\s[-–—]+\s")
_JOINTS: Final = word_set("and but then so because since")
_SUBJECTS: Final = word_set("i i'm i'd i'll we we'd we'll it it's he she they that this there you")
#: Verbs that begin a request. Before `and`, they show that another clause ends.
_REQUESTS: Final = word_set("please book find make can could would need want leave arrive reserve")
#: Words that negate, compare or weaken a value next to them. The locks know other negations.
DOUBTS: Final = word_set(
    """or either neither nor whether instead rather than unless except besides versus vs
    without exclude excluding other another different change changed switch wrong sorry oops
    actually correction meant mean mistake maybe perhaps possibly prefer preferably ideally
    otherwise alternatively alternative another else isn't aren't"""
)


def sentence_of(parts: Parts, index: int) -> range:
    """Return the indices of the words in the sentence that contains a word."""
    return _around(parts, index, lambda gap, _: bool(_SENTENCE_END.search(gap)))


def clause_of(parts: Parts, index: int) -> range:
    """Return the indices of the words in the clause that contains a word.

    A clause ends at punctuation, and before `and`, `but` or `then` if a subject or a request
    follows.
    """
    return _around(parts, index, _ends_clause(parts))


def _ends_clause(parts: Parts) -> Callable[[str, int], bool]:
    words = parts.words

    def ends(gap: str, place: int) -> bool:
        if _SENTENCE_END.search(gap) or _CLAUSE_END.search(gap):
            return True
        if words[place].lower not in _JOINTS or place + 1 == len(words):
            return False
        following = words[place + 1].lower.replace("’", "'")
        return following in _SUBJECTS or following in _REQUESTS

    return ends


def _around(parts: Parts, index: int, ends: Callable[[str, int], bool]) -> range:
    first, last = index, index
    while first and not ends(parts.gaps[first], first):
        first -= 1
    while last + 1 < len(parts.words) and not ends(parts.gaps[last + 1], last + 1):
        last += 1
    return range(first, last + 1)


#: ``exact``: as in the state, except for capitals. ``number``: in words instead of digits, or the
#: other way round. ``time``: a clock time in another style. ``other``: plural, joined, with an
#: apostrophe, or in another spelling.
Spelling = Literal["exact", "number", "time", "other"]

_CLOCK: Final = re.compile(rf"(?<![\d:.]){CLOCK}(?![\d:a-z])", re.IGNORECASE)
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class ValueMention(NamedTuple):
    """A place that mentions a value: ``text[start:end]``, the words ``first`` to ``last``."""

    start: int
    end: int
    first: int
    last: int
    spelled: Spelling


@lru_cache(maxsize=1 << 16)
def _wanted(value: str) -> str:
    """Return the letters that a mention of a value must contain, in this order."""
    return "".join(content(value))


class SpokenText(NamedTuple):
    """A text split into words, in the form for comparing values."""

    text: str
    parts: Parts
    forms: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> SpokenText:
        """Split a text into words."""
        parts = take_apart(text)
        return cls(text, parts, tuple([spell_compared(word.lower) for word in parts.words]))

    def mentions(self, value: str) -> tuple[ValueMention, ...]:
        """Return the places that mention ``value``, in order. Stop words in between are ignored.

        >>> [tuple(m) for m in SpokenText.of("two nights at the Night Club").mentions("nightclub")]
        [(18, 28, 4, 5, 'other')]
        >>> [m.spelled for m in SpokenText.of("two at 5:15 pm, or 5.15").mentions("17:15")]
        ['time']
        """
        if _TIME.fullmatch(value):
            return tuple(self._times(value))
        wanted = _wanted(value)
        if not wanted:
            return ()
        found: list[ValueMention] = []
        for first, form in enumerate(self.forms):
            if form[:1] != wanted[0] or (found and first <= found[-1].last):
                continue
            if wanted.startswith(form):
                last = self._end(first, wanted)
                if last is not None:
                    found.append(self._mention(first, last, value))
        return tuple(found)

    def _end(self, first: int, wanted: str) -> int | None:
        """Return the last word of a mention that begins at word ``first``, or ``None``."""
        said = ""
        for place in range(first, len(self.forms)):
            form = self.forms[place]
            if wanted.startswith(said + form):
                said += form
                if len(said) == len(wanted):
                    return place
            elif content(self.parts.words[place].lower):
                return None
        return None

    def _mention(self, first: int, last: int, value: str) -> ValueMention:
        words = self.parts.words
        if self.text[words[first].start : words[last].end].lower() != value:
            while first and words[first - 1].lower == "the" and value.startswith("the "):
                first -= 1
        start, end = words[first].start, words[last].end
        surface = self.text[start:end].lower()
        spelling: Spelling = "exact" if surface == value else "other"
        if spelling == "other" and value.isdigit():
            spelling = "number"
        return ValueMention(start, end, first, last, spelling)

    def _times(self, value: str) -> Iterator[ValueMention]:
        """Yield the places that mention a clock time, given as ``HH:MM``."""
        hour, _, minute = value.partition(":")
        words = self.parts.words
        for match in _CLOCK.finditer(self.text):
            half = (match[5] or "")[:1].lower()
            if not match[3] and not half:
                continue
            said = hour_of_day(int(match[1]), half) if half else int(match[1])
            if said != int(hour) or (match[3] or "00") != minute:
                continue
            end = match.end(5) if half else match.end(3)
            inside = [i for i, word in enumerate(words) if match.start() <= word.start < end]
            if inside:
                exact = self.text[match.start() : end] == value
                place = (match.start(), end, inside[0], inside[-1])
                yield ValueMention(*place, "exact" if exact else "time")


SlotKind = Literal["yes-no", "number", "time", "day", "end", "name", "choice"]

#: The value of a yes/no slot for a wanted feature -> for an unwanted one.
REFUSED: Final[Mapping[str, str]] = {"yes": "no", "true": "false"}
#: Values that nobody says; users say the name of the slot instead.
FLAG_VALUES: Final = frozenset({*REFUSED, *REFUSED.values()})
#: Values that an utterance does not contain literally.
UNSPOKEN: Final = FLAG_VALUES | {DONTCARE}

_YES_NO: Final = FLAG_VALUES | word_set("y n")
_DAYS: Final = frozenset({*WEEKDAYS, "today", "tomorrow"})
#: Prefixes of slot-name words for the two ends of a journey.
_STARTS: Final = ("depart", "origin", "source", "pickup", "from", "start")
_GOALS: Final = ("destin", "dropoff", "to")
_LEAVES: Final = ("leav", "depart", "start", "outbound", "pickup")
_ARRIVES: Final = ("arriv", "return", "inbound")
#: Minimum share of values of a kind; ontologies contain annotation errors.
_MOST: Final = 0.6
#: Maximum number of values of a choice. Names have more values or longer ones.
_FEW: Final = 40


def name_words(slot: str) -> list[str]:
    """Return the words of a slot name without its domain.

    >>> name_words("hotel-book stay"), name_words("Flights_1-departureTime")
    (['book', 'stay'], ['departure', 'time'])
    """
    return list(_name_words(slot))


@lru_cache(maxsize=4096)
def _name_words(slot: str) -> tuple[str, ...]:
    name = slot.partition("-")[2] or slot
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+", name)
    return tuple([word.lower() for word in found]) or (name.lower(),)


def domain_of(slot: str) -> str:
    """Return the domain of a slot, or ``""`` if its name has none.

    >>> domain_of("hotel-area"), domain_of("area")
    ('hotel', '')
    """
    return slot.partition("-")[0] if "-" in slot else ""


def kind_of(slot: str, values: Collection[str]) -> SlotKind:
    """Return the kind of a slot (time, yes-no, ...), by its known values and its name.

    >>> kind_of("hotel-parking", ["no", "yes"]), kind_of("train-leaveat", ["09:15", "10:00"])
    ('yes-no', 'time')
    >>> kind_of("taxi-departure", ["ely"]), kind_of("hotel-area", ["east", "west"])
    ('end', 'choice')
    """

    def mostly(count: int) -> bool:
        return bool(values) and count >= _MOST * len(values)

    if values and _YES_NO.issuperset(values):
        return "yes-no"
    if mostly(sum(bool(CLOCK_TIME.match(value)) for value in values)):
        return "time"
    if mostly(sum(value in _DAYS for value in values)):
        return "day"
    if mostly(sum(spell_compared(value).isdigit() for value in values)):
        return "number"
    if end_of(slot):
        return "end"
    long = sum(len(value.split()) > 1 for value in values)
    few = len(values) <= _FEW and not mostly(long)
    return "choice" if few and "name" not in name_words(slot) else "name"


def end_of(slot: str) -> Literal["from", "to", ""]:
    """Return the end of a journey that a slot describes, or ``""``.

    >>> end_of("taxi-departure"), end_of("train-destination"), end_of("hotel-area")
    ('from', 'to', '')
    """
    words = name_words(slot)
    if "time" in words or "date" in words:
        return ""
    if any(word.startswith(_STARTS) for word in words):
        return "from"
    return "to" if any(w == "to" or w.startswith(_GOALS[:-1]) for w in words) else ""


def moment_of(slot: str) -> Literal["leave", "arrive", ""]:
    """Return whether a time slot is a departure or an arrival, or ``""`` for other slots.

    >>> moment_of("train-leaveat"), moment_of("taxi-arriveby"), moment_of("hotel-book time")
    ('leave', 'arrive', '')
    """
    words = name_words(slot)
    if any(word.startswith(_LEAVES) for word in words):
        return "leave"
    return "arrive" if any(word.startswith(_ARRIVES) for word in words) else ""


def list_counted_nouns(slot: str) -> frozenset[str]:
    """Return the nouns that a number in this slot can count, including the slot's name.

    >>> ["guests" in list_counted_nouns(slot) for slot in ("hotel-book people", "hotel-stars")]
    [True, False]
    """
    words = frozenset(name_words(slot))
    return words.union(*(row for row in COUNTED if row & words))


def alike(one: Iterable[str], other: Iterable[str]) -> bool:
    """Return whether two slots share at least half of the smaller set's values."""
    first, second = set(one), set(other)
    return 2 * len(first & second) >= min(len(first), len(second)) > 0


#: If a slot is labelled in at least `_MANY` dialogues, a value must be labelled in at least this
#: many. Ontologies and labels contain annotation errors.
_SUPPORT: Final = 3
_MANY: Final = 50
#: Kinds whose values keep their meaning anywhere, even inside a name.
_CLOSED: Final = frozenset({"choice", "day", "number", "time"})
#: A leading symbol, a number with or without decimals, and a unit.
_AMOUNT: Final = re.compile(r"([^\w\s]?) ?(\d+)([.,]\d+)? ?([^\W\d]*|\W)")
_SMALL_WORDS: Final = frozenset({"and", "of", "the", "in", "at", "on", "s"})
_VOWEL_SOUND: Final = re.compile(r"(?!eu|uni|one\b|us)[aeiou]|8|11\b|18\b|hour")


@dataclass(frozen=True)
class ValueTable:
    """The slots of a data set, with the kind and the known values of each."""

    kinds: Mapping[str, SlotKind]
    values: Mapping[str, tuple[str, ...]]
    #: All values including rare ones, in the form of `join_value`.
    known: frozenset[str]
    #: Values of closed kinds in the form of `join_value` -> slots with that value.
    closed: Mapping[str, frozenset[str]]
    #: Words in the names of slots and domains.
    titles: frozenset[str]
    normalisation: str
    #: The number of dialogues that must label each value of a slot, if this leaves fewer than two
    #: of its values, else 0.
    needed: int = 0
    #: Cache of `others`.
    _others: dict[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )
    #: Cache of `_is_alike`.
    _alike: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, data: DialogueSet, kind: AnswerKind = BELIEF_STATES) -> ValueTable:
        """Build the table from the labels of a data set, and its ontology or tool schemas."""
        counts, labelled = _label_counts(data, kind)
        listed = {slot: rules.values for slot, rules in kind.slot_rules(data).items()}
        slots = sorted({*listed, *counts})
        everything = {
            slot: sorted({*listed.get(slot, ()), *counts.get(slot, ())}) for slot in slots
        }
        values, kinds = {}, {}
        for slot in slots:
            found = counts.get(slot, Counter())
            needed = _SUPPORT if labelled[slot] >= _MANY else 0
            values[slot] = tuple(
                v for v in everything[slot] if v != DONTCARE and found[v] >= needed
            )
            kinds[slot] = kind_of(slot, values[slot] or everything[slot])
        closed: dict[str, set[str]] = {}
        for slot in slots:
            for value in values[slot] if kinds[slot] in _CLOSED else ():
                closed.setdefault(join_value(value), set()).add(slot)
        titles = {
            spell_compared(w) for slot in slots for w in (*name_words(slot), domain_of(slot)) if w
        }
        return cls(
            kinds,
            values,
            frozenset(join_value(value) for found in everything.values() for value in found),
            {value: frozenset(found) for value, found in closed.items()},
            frozenset(titles),
            data.normalisation if kind.has_slots else "plain",
            _SUPPORT
            if any(len(values[slot]) < 2 <= len(everything[slot]) for slot in slots)
            else 0,
        )

    @cached_property
    def joined_values(self) -> Mapping[str, frozenset[str]]:
        """The values of each slot, normalised by `join_value`."""
        return {slot: frozenset(map(join_value, values)) for slot, values in self.values.items()}

    @cached_property
    def telling(self) -> frozenset[str]:
        """The values of all slots except yes and no, normalised by `join_value`."""
        return frozenset[str]().union(*self.joined_values.values()) - {*FLAG_VALUES, ""}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of slots, domains and values."""
        values = (value for found in self.values.values() for value in found)
        return self.titles.union(*map(content, values))

    def is_title(self, value: str) -> bool:
        """Return whether a value has only words for slots and domains: `hotel`."""
        words = content(value)
        return bool(words) and self.titles.issuperset(words)

    def others(self, slot: str, old: str) -> tuple[str, ...]:
        """Return the values that may replace ``old`` in a slot, sorted.

        A value is left out if one of the two values contains the other, or if it has another unit
        or format (`15 %` and `0.2`). A value is also left out if it contains a value of another
        slot (`museum` in a name) that the old value does not contain. Slots with equal values, such
        as two cities, do not exclude each other's values.
        """
        if (slot, old) not in self._others:
            self._others[slot, old] = tuple(
                value
                for value in self.values.get(slot, ())
                if value != old and self._fits(slot, value, old)
            )
        return self._others[slot, old]

    def _fits(self, slot: str, value: str, old: str) -> bool:
        own, words = set(content(value)), set(content(old))
        if not own or own <= words or words <= own or self.is_title(value):
            return False
        if normalise_value(slot, value, self.normalisation) != value:
            return False
        if _measure(value) != _measure(old):
            return False
        return self.kinds[slot] in _CLOSED or self._inside(slot, value) <= self._inside(slot, old)

    def _inside(self, slot: str, value: str) -> frozenset[str]:
        """Return the values of other slots that a value contains, with their slots."""
        words = word_list(value)
        whole = join_value(value)
        found = set()
        for first, end in combinations(range(len(words) + 1), 2):
            part = join_value(" ".join(words[first:end]))
            others = self.closed.get(part, frozenset()) - {slot}
            if part == whole:
                found |= {other for other in others if not self._is_alike(slot, other)}
            elif others:
                found.add(part)
        return frozenset(found)

    def _is_alike(self, slot: str, other: str) -> bool:
        """Return whether another slot shares half of the values, like both ends of a journey."""
        if (slot, other) not in self._alike:
            own = self.joined_values[slot]
            self._alike[slot, other] = 2 * len(own & self.joined_values[other]) >= len(own)
        return self._alike[slot, other]


def _label_counts(
    data: DialogueSet, kind: AnswerKind
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Count the dialogues that have each labelled value, and each labelled slot."""
    counts: dict[str, Counter[str]] = {}
    labelled: Counter[str] = Counter()
    for dialogue in data.dialogues:
        pairs = dict.fromkeys(
            (slot, member)
            for index in range(len(dialogue.turns))
            for slot, value in kind.slot_values(kind.label(dialogue, index) or Outcome()).items()
            for member in members_of(value)
        )
        for slot, value in pairs:
            counts.setdefault(slot, Counter())[value] += 1
        labelled.update(dict.fromkeys((slot for slot, _ in pairs), 1))
    return counts, labelled


@lru_cache(maxsize=1 << 16)
def join_value(value: str) -> str:
    """Return a value in the normalised form for comparisons.

    >>> join_value("the Night Club"), join_value("two")
    ('nightclub', '2')
    """
    return "".join(content(value))


def _measure(value: str) -> tuple[str, bool] | None:
    """Return an amount's unit and whether it has decimals, or ``None`` for other values.

    >>> _measure("15"), _measure("0.2"), _measure("$ 20"), _measure("15%"), _measure("cheap")
    (('', False), ('', True), ('$', False), ('%', False), None)
    """
    found = _AMOUNT.fullmatch(value)
    return None if found is None else (found[1] + found[4], bool(found[3]))


def write_value(kind: SlotKind, value: str, model: str) -> str | None:
    """Write ``value`` in the style of ``model``, the text of the old value.

    Returns ``None`` if the value cannot take this form.

    >>> write_value("time", "17:45", "5:15 pm"), write_value("time", "17:45", "5pm")
    ('5:45 pm', None)
    >>> write_value("number", "3", "Two"), write_value("name", "the old mill", "Green Man")
    ('Three', 'The Old Mill')
    """
    if kind == "time":
        return clock_like(value, model)
    if kind == "number":
        # The counted noun stays as it is, so its number must fit: `1 night`, `2 nights`.
        if not value.isdigit() or (value == "1") != (spell_compared(model.lower()) in {"1", "one"}):
            return None
        text = value if model.isdigit() else _number_word(value)
        return text and _cased(text, model)
    if abs(len(value.split()) - len(model.split())) > 1:
        return None
    return value if "@" in value else _cased(value, model)


def plural_of(value: str) -> str | None:
    """Return the plural of a value that is a noun, or ``None`` if the plural is unknown.

    >>> plural_of("swimming pool"), plural_of("cheap")
    ('swimming pools', None)
    """
    head, blank, noun = value.rpartition(" ")
    form = inflections().plural(noun)
    return form and head + blank + form


def article_before(text: str) -> str:
    """Return the indefinite article (`a` or `an`) before a text.

    >>> [article_before(text) for text in ("expensive", "european", "8 star", "cheap")]
    ['an', 'a', 'an', 'a']
    """
    return "an" if _VOWEL_SOUND.match(text.lower()) else "a"


def _number_word(value: str) -> str | None:
    return next(
        (word for word in load_lexicon().number_words if spell_compared(word) == value), None
    )


def _cased(value: str, model: str) -> str:
    if len(model) > 1 and model.isupper():
        return value.upper()
    words = model.split()
    if not words or not words[-1][:1].isupper():
        return value
    parts = value.split()
    return " ".join(
        part if part in _SMALL_WORDS and place else part[:1].upper() + part[1:]
        for place, part in enumerate(parts)
    )
