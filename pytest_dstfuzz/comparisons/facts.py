"""Comparisons of facts in a text: numbers, names, entities, cited ids."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache, partial
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult
from pytest_dstfuzz.comparisons.polarity import stem
from pytest_dstfuzz.dialogue.dates import MONTHS, WEEKDAYS
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS, with_digits
from pytest_dstfuzz.dialogue.quantities import Quantity, quantities
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Word, match_case, take_apart, word_list, word_set
from pytest_dstfuzz.printable import format_list

_HALF_A_DAY: Final = 12 * 60
#: A number up to this one may be hours with minutes, such as 8.30. Larger numbers may be too large
#: to convert.
_MOST_HOURS: Final = 25
#: Maximum number of digits in a reference that may be a number. Python parses at most 4,300.
_LONGEST: Final = 300
#: Maximum number of quantities of each text in a report.
_SHOWN: Final = 3


class SameNumbers(Comparison):
    """Checks that two texts have the same numbers, amounts, times, dates and references.

    Spelling and repetition do not matter: ``two`` is ``2``, and ``half past 8`` is ``8:30``. A
    unit, a year or `p.m.` may be missing in one text.
    """

    name = "numbers"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether each text has all quantities of the other."""
        del path, asked
        return _compare_numbers(before, found)


@lru_cache(maxsize=1 << 14)
def _compare_numbers(before: str, found: str) -> ComparisonResult:
    first, second = quantities(before), quantities(found)
    left, right = _missing(first, second), _missing(second, first)
    if left or right:
        return ComparisonResult(same=False, why=f"{_told(left)} / {_told(right)}")
    why = _exchanged_numbers(before, found)
    return ComparisonResult(same=not why, why=why)


def _exchanged_numbers(before: str, found: str) -> str:
    """Return which numbers two texts give to other things, or write in another way, or ``""``.

    Further details cannot explain such a difference.
    """
    for told in (_unsaid(_VERSION, before, found), _swapped_counts(before, found)):
        if all(told):
            return " / ".join(format_list(side, _SHOWN) for side in told)
    return ""


#: A number whose last zero counts: ``version 3.10``.
_VERSION: Final = re.compile(
    r"\b(?:version|release|firmware|section|chapter|clause|article|v) ?(\d{1,9}(?:\.\d{1,9})+)",
    re.IGNORECASE,
)
#: A number of things: ``3 adults``.
_COUNT: Final = re.compile(r"(?<![\w.,:/-])(\d{1,9}) ([a-z]{3,30})\b")


def _swapped_counts(before: str, found: str) -> tuple[list[str], list[str]]:
    """Return the counts of each text if at least two things have other numbers in the other.

    >>> _swapped_counts("3 adults and two children", "2 adults and 3 children")
    (['3 adult', '2 children'], ['2 adult', '3 children'])
    """
    no_things = _NO_THINGS.union(load_lexicon().stop_words)
    sides: list[dict[str, set[str]]] = []
    for text in (before, found):
        numbers: dict[str, set[str]] = {}
        for number, thing in _COUNT.findall(with_digits(text).lower()):
            if thing not in no_things:
                numbers.setdefault(stem(thing), set()).add(number)
        sides.append(numbers)
    one, other = sides
    moved = [thing for thing in one if thing in other and one[thing].isdisjoint(other[thing])]
    if len(moved) < _FEWEST_MOVED:
        return [], []
    first, second = (
        [f"{number} {thing}" for thing in moved for number in sorted(side[thing])] for side in sides
    )
    return first, second


_FEWEST_MOVED: Final = 2
#: Words after a number that tell no things, besides the stop words.
_NO_THINGS: Final = (
    word_set("today tonight tomorrow yesterday daily sharp am pm o'clock each every per plus via")
    | {*WEEKDAYS}
    | {*MONTHS}
)


def _missing(mine: tuple[Quantity, ...], others: tuple[Quantity, ...]) -> list[Quantity]:
    """Return the quantities of one text that the other text lacks."""
    # Compare only quantities with a common key, so that the time for long lists of numbers grows
    # in proportion to their length.
    known: dict[object, dict[Quantity, None]] = {}
    for other in others:
        for key in _keys(other):
            # The separators of a date may tell its order.
            said = _separators(other.said) if other.kind == "date" else ""
            known.setdefault(key, {})[other._replace(said=said)] = None
    units = {other.unit for other in others if other.kind == "number" and other.unit}
    days = {day for other in others if other.kind == "day" for day in other.unit.split()}
    return [
        one
        for one in mine
        if (
            (days or not one.spare) and not days.issuperset(one.unit.split())
            if one.kind == "day"
            else not (one.spare and one.unit not in units)
            and not any(_agree(one, other) for key in _keys(one) for other in known.get(key, ()))
        )
    ]


def _keys(one: Quantity) -> Iterator[object]:
    """Yield keys for a quantity. Two quantities that agree share a key."""
    if one.kind == "number":
        yield from (("number", one.bare), ("amount", one.value), ("year or day", one.value))
        if 0 <= one.value < _MOST_HOURS:
            hours, minutes = divmod(round(100 * one.value), 100)
            yield "time", (60 * hours + minutes) % _HALF_A_DAY
    elif one.kind == "time":
        yield "time", one.value % _HALF_A_DAY
    elif one.kind == "date":
        year, month, day = one.date
        yield from (("month", month), ("month", day))
        yield from (("year or day", float(year)), ("year or day", float(day)))
    elif one.kind == "code":
        digits = "".join(filter(str.isdigit, one.unit))
        yield "code", one.unit
        if 0 < len(digits) <= _LONGEST:
            yield "amount", float(int(digits))


def _told(missing: list[Quantity]) -> str:
    shown = list(dict.fromkeys(one.said for one in missing))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) + more) or "-"


def _agree(one: Quantity, other: Quantity) -> bool:
    if one.kind > other.kind:
        one, other = other, one
    return _RULES[one.kind, other.kind](one, other)


def _numbers(one: Quantity, other: Quantity) -> bool:
    if one.unit and other.unit:
        return one.value == other.value and one.unit == other.unit
    return one.bare == other.bare


def _times(one: Quantity, other: Quantity) -> bool:
    if one.value == other.value:
        return True
    either = not (one.sure and other.sure)
    return either and one.value % _HALF_A_DAY == other.value % _HALF_A_DAY


def _number_and_time(number: Quantity, time: Quantity) -> bool:
    """Return whether a number may be a time: `8` matches `8 pm`, and `8.30` matches `8:30`."""
    if number.unit or not 0 <= number.value < _MOST_HOURS:
        return False
    hours, minutes = divmod(round(100 * number.value), 100)
    if hours > 24 or minutes > 59:
        return False
    return (60 * hours + minutes) % _HALF_A_DAY == time.value % _HALF_A_DAY


def _dates(one: Quantity, other: Quantity) -> bool:
    (year, month, day), (year_too, month_too, day_too) = one.date, other.date
    if year and year_too and year != year_too:
        return False
    orders = [(month_too, day_too)]
    # One bot writes days and months in one order, if it separates them alike.
    alike = _separators(one.said) == _separators(other.said)
    if not (one.sure and other.sure) and (one.sure or other.sure or not alike):
        orders.append((day_too, month_too))
    return any(month == m and (not day or not d or day == d) for m, d in orders)


def _separators(date: str) -> str:
    return "".join(character for character in date if not character.isalnum())


def _date_and_number(date: Quantity, number: Quantity) -> bool:
    """Return whether a number is the day or the year of a date: `the 12th` matches `12 May`."""
    return (number.unit in ("", "th")) and number.value in (date.date[0], date.date[2])


def _code_and_number(code: Quantity, number: Quantity) -> bool:
    digits = "".join(filter(str.isdigit, code.unit))
    return 0 < len(digits) <= _LONGEST and int(digits) == number.value


def _units(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit


def _never(one: Quantity, other: Quantity) -> bool:
    del one, other
    return False


_RULES: Final = {
    **dict.fromkeys(
        [
            *(("code", "date"), ("code", "day"), ("code", "time"), ("date", "day")),
            *(("date", "time"), ("day", "number"), ("day", "time")),
        ],
        _never,
    ),
    ("number", "number"): _numbers,
    ("time", "time"): _times,
    ("number", "time"): _number_and_time,
    ("date", "date"): _dates,
    ("date", "number"): _date_and_number,
    ("code", "number"): _code_and_number,
    ("code", "code"): _units,
}


#: Default pattern of cited ids: ``[3]``, ``#17``, a web address.
CITED: Final = r"\[\d+\]|#\d+|https?://[^\s<>()\[\]]*[^\s<>()\[\].,;:!?\"']"
_QUOTED: Final = re.compile(r"[\"“«]([^\"“”«»\n]{2,80})[\"”»]")
_SENTENCE_END: Final = re.compile(r"[.!?…:\n•*-]\s{0,40}(?:[\"“«'(]\s{0,40})?$")
#: Maximum number of characters to search for the end of a sentence before a word.
_LOOKED_BACK: Final = 40
_LINKS: Final = word_set("of the and de la le du van von der 's ’s & al el at on in")
#: Capitalised words that are neither names nor parts of a name.
_PLAIN: Final = word_set(
    "i i'm i'll i've i'd ok okay hi hello dear yes no thanks mr mrs ms dr sir madam am pm a.m p.m"
).union(WEEKDAYS, MONTHS, (day[:3] for day in WEEKDAYS))
#: If more than this share of the words begins with a capital, capitals do not indicate names.
_HABIT: Final = 0.6


class SameNames(Comparison):
    """Checks that two texts have the same names of people, places and titles, in any order.

    A name is a text in quotes, or a sequence of capitalised words. An English word at the start of
    a sentence is not a name. The first or last word of a name also counts as the name.
    """

    name = "names"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether each text has all names of the other."""
        del path, asked
        return _compare_names(before, found)


class SameIds(Comparison):
    """Checks that two texts cite the same ids, found by a regular expression."""

    def __init__(self, pattern: str | None = None) -> None:
        self._pattern = pattern or CITED
        self._compiled = re.compile(self._pattern)

    name = "ids"

    @property
    def identity(self) -> str:
        """The name, and the pattern if it is not the default."""
        return self.name if self._pattern == CITED else f"{self.name}/{self._pattern}/"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether the ids are the same."""
        del path, asked
        cited = [
            dict.fromkeys(match[0].strip() for match in self._compiled.finditer(text))
            for text in (before, found)
        ]
        if set(cited[0]) == set(cited[1]):
            return ComparisonResult(same=True)
        return ComparisonResult(same=False, why=" / ".join("".join(ids) or "-" for ids in cited))


@lru_cache(maxsize=1 << 14)
def _compare_names(before: str, found: str) -> ComparisonResult:
    left, right = find_missing_names(before, found)
    if not left and not right:
        return ComparisonResult(same=True)
    return ComparisonResult(
        same=False, why=" / ".join(", ".join(side) or "-" for side in (left, right))
    )


def find_missing_names(before: str, found: str) -> tuple[list[str], list[str]]:
    """Return the names in each text that the other text lacks, in reading order.

    >>> find_missing_names("Ada curated it.", "It was curated by Grace Hopper.")
    (['Ada'], ['Grace Hopper'])
    """
    first, second = names(before), names(found)
    return _unsaid_names(first, second, found), _unsaid_names(second, first, before)


def _unsaid_names(
    mine: tuple[tuple[str, ...], ...], others: tuple[tuple[str, ...], ...], text: str
) -> list[str]:
    """Return the names that the other text does not contain, not even in part.

    Two people may share a first name, so a first name matches only if it stands alone. If the other
    text has a name in lower case or at the start of a sentence, it also matches.
    """
    theirs = [_key(other) for other in others]
    parts = {part for key in theirs for part in key}
    lasts = {key[-1] for key in theirs}
    alone, firsts = {key[0] for key in theirs if len(key) == 1}, {key[0] for key in theirs}
    words: set[str] | None = None
    found = []
    for name in mine:
        key = _key(name)
        if key[-1] in parts or not lasts.isdisjoint(key) or key[0] in alone:
            continue
        if len(key) == 1 and key[0] in firsts:
            continue
        if words is None:
            words = {stem(word.lower) for word in take_apart(text).words}
        if not words.issuperset(key):
            found.append(" ".join(name))
    return found


def _key(name: tuple[str, ...]) -> list[str]:
    parts = [stem(word.lower().replace("’", "'")) for word in name if word.lower() not in _LINKS]
    return parts or [name[-1].lower()]


@lru_cache(maxsize=1 << 14)
def names(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the distinct names of a text as tuples of words, in reading order.

    >>> names("The next train to Ely leaves from King's Cross. Read “the long way”.")
    (('Ely',), ("King's", 'Cross'), ('the', 'long', 'way'))
    """
    parts = take_apart(text)
    quoted = [match.span(1) for match in _QUOTED.finditer(text)]
    found: dict[int, tuple[str, ...]] = {}
    starts = [word.start for word in parts.words]
    inside: set[int] = set()
    for start, end in quoted:
        within = range(bisect_left(starts, start), bisect_left(starts, end))
        inside.update(within)
        whole = (parts.words[at] for at in within)
        words = tuple(word.text for word in whole if word.end <= end)
        if words:
            found[start] = words
    free = [word for at, word in enumerate(parts.words) if at not in inside]
    capitals = [word for word in free if word.text[:1].isupper()]
    if len(free) < 3 or len(capitals) <= _HABIT * len(free):
        for run in _runs(text, free):
            found[run[0].start] = tuple(word.text for word in run)
    return tuple(dict.fromkeys(found[place] for place in sorted(found)))


def _runs(text: str, words: list[Word]) -> list[list[Word]]:
    """Return runs of capitalised words, including linking words within them."""
    runs: list[list[Word]] = []
    run: list[Word] = []
    links: list[Word] = []
    for word in words:
        last = (links or run)[-1] if run else None
        broken = last is not None and text[last.end : word.start].strip(" ’'") != ""
        if broken:
            runs.append(run)
            run, links = [], []
        if _may_name(text, word, inside=bool(run)):
            run += [*links, word]
            links = []
        elif run and word.lower in _LINKS:
            links.append(word)
        elif run:
            runs.append(run)
            run, links = [], []
    return [*runs, run] if run else runs


def _may_name(text: str, word: Word, *, inside: bool) -> bool:
    bare = word.lower.replace("’", "'")
    if not word.text[:1].isupper() or bare in _PLAIN:
        return False
    before = text[max(0, word.start - _LOOKED_BACK) : word.start]
    at_start = not before.strip(" \"“«'(") and word.start <= _LOOKED_BACK
    if inside or not (at_start or _SENTENCE_END.search(before)):
        return inside or bare not in load_lexicon().stop_words
    # At the start of a sentence, only words that are not in the dictionary count.
    return len(bare) > 1 and not load_lexicon().is_word(bare.split("'")[0])


#: Web addresses, e-mail addresses and paths, without a full stop at the end.
_ADDRESS: Final = re.compile(
    r"(?:https?://|www\.)[^\s<>()\[\]\"']*[^\s<>()\[\]\"'.,;:!?]"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+|(?<![\w/])/[\w-]+(?:/[\w-]+)*",
    re.IGNORECASE,
)
#: A letter that names a thing: ``platform B``.
_LABEL: Final = re.compile(
    r"\b(?i:platform|gate|zone|option|terminal|hall|room|line|block|section|group|class|category"
    r"|type|level|row|wing|building|door|bay|ward|lane|plan|tariff|stand|entrance|exit|pier|team)"
    r"\s+([A-Z])(?![\w'’-])"
)


class SameEntities(Comparison):
    """Checks that no text replaces an entity of the other by another entity.

    Entities are names of people, places and titles (see `names`), letters such as in `platform B`,
    and web addresses, e-mail addresses and paths. An entity may be missing in one text, because
    bots also write ``it`` instead of a name.
    """

    name = "entities"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether each entity is kept or missing, but never replaced."""
        del path, asked
        return _compare_entities(before, found)


@lru_cache(maxsize=1 << 14)
def _compare_entities(before: str, found: str) -> ComparisonResult:
    told = (
        _unsaid(_ADDRESS, before, found),
        find_missing_names(before, found),
        _unsaid(_LABEL, before, found),
    )
    for left, right in told:
        if left and right:
            return ComparisonResult(
                same=False, why=f"{format_list(left, _SHOWN)} / {format_list(right, _SHOWN)}"
            )
    there, here = (_routes(text) for text in (before, found))
    for start, end in sorted(there - here):
        if (end, start) in here - there:
            return ComparisonResult(same=False, why=f"{start} to {end} / {end} to {start}")
    return ComparisonResult(same=True)


_PLACE: Final = r"[^\W\d][\w'’-]{2,29}"
_ROUTE: Final = re.compile(
    rf"\bfrom (?:the )?({_PLACE})(?: [^\W\d][\w'’-]{{0,29}}){{0,3}}? to (?:the )?({_PLACE})"
)
#: `Open from noon to midnight` is `closed from midnight to noon`, so times are no places.
_TIMES: Final = word_set(
    "noon midnight midday dawn dusk sunrise sunset morning evening night today tomorrow now start"
).union(WEEKDAYS, MONTHS, (day[:3] for day in (*WEEKDAYS, *MONTHS)), NUMBER_WORDS)


def _routes(text: str) -> set[tuple[str, str]]:
    """Return the first words of the two ends of each way: ``from Ely to King's Lynn``."""
    found = {(one[1], one[2]) for one in _ROUTE.finditer(" ".join(text.lower().split()))}
    return {ends for ends in found if _TIMES.isdisjoint(ends)}


def _unsaid(pattern: re.Pattern[str], before: str, found: str) -> tuple[list[str], list[str]]:
    """Return the matches of a pattern in each text that the other text lacks."""
    first, second = (
        dict.fromkeys(match[pattern.groups].lower() for match in pattern.finditer(text))
        for text in (before, found)
    )
    return [one for one in first if one not in second], [one for one in second if one not in first]


#: Stems that a longer reply with the same content may lack.
_LIGHT: Final = frozenset(
    map(stem, ("cost", "price", "open", "available", "come", "currently", "also", "yes", "sure"))
)
_FEWEST_SHARED: Final = 2
_CURRENCIES: Final = frozenset("£$€")


@lru_cache(maxsize=1 << 14)
def adds_detail(before: str, found: str, question: str) -> bool:
    """Return whether one of two replies says everything that the other says, and more.

    Then neither contradicts the other. The shorter one may not lack a number or time of the
    question, because it may be the reply to another question.

    >>> adds_detail("We open at 9.", "We open at 9, and at 10 on Sundays.", "Your hours?")
    True
    >>> adds_detail("Booked for Monday.", "Booked for Monday, 4 people.", "A table for 4 people")
    False
    """
    short, long = sorted((before, found), key=len)
    words = _content(short)
    shared = words & _content(long)
    said, more = quantities(short), quantities(long)
    if len(shared) + len(said) < _FEWEST_SHARED or not shared or not words - shared <= _LIGHT:
        return False
    if any(one.spare for one in said) or _missing(said, more) or _exchanged_numbers(before, found):
        return False
    missing = tuple(_missing(more, said))
    if any(one.unit in _CURRENCIES for one in missing) and not any(
        one.unit in _CURRENCIES for one in said
    ):
        return False  # Only one reply has a price: `Breakfast is included for 12 euros.`
    return len(_missing(missing, quantities(question))) == len(missing)


def _content(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that are neither stop words nor numbers."""
    words = (word.replace("’", "'") for word in word_list(text))
    stop_words = load_lexicon().stop_words
    return frozenset(
        stem(word) for word in words if word not in stop_words and not word[0].isdigit()
    )


#: An utterance may be another one with typing errors only if their words are at least this similar.
_ONE_UTTERANCE: Final = 0.4
#: Words that may stand beside the words of the question if a reply begins by repeating it.
_BESIDE: Final = word_set("about regarding concerning re question asked ask asking wanted know")
#: Words that answer the question. If a reply begins with one, it does not only repeat the question.
_ANSWERS: Final = word_set("yes no not never none nothing nobody neither nor sure ok okay without")
_OPENING: Final = re.compile(r"\A\s*+([^:?!.\n]{1,80})[:?](?=\s)\s*")


def without_slips(reply: str, clean: Context, seen: Context, known: str = "") -> str:
    """Return a reply. Correct each typing error that it copies from the user.

    Args:
        reply: the reply to ``seen``.
        clean: the clean context.
        seen: the context with edits.
        known: a reply to ``clean``; words in it do not count as copied errors.

    >>> from pytest_dstfuzz.dialogue.dialogues import Exchange
    >>> was, is_ = (Context((Exchange("", f"Is the {word} open?"),)) for word in ("pool", "pooool"))
    >>> without_slips("The pooool is open.", was, is_)
    'The pool is open.'
    """
    if clean.user_utterances == seen.user_utterances:
        return reply
    for typed, meant in _slips(clean, seen):
        found = re.compile(rf"(?<!\w){re.escape(typed)}(?!\w)", re.IGNORECASE)
        if found.search(reply) and not found.search(known):
            reply = found.sub(partial(_put_back, meant), reply)
    return reply


def _put_back(meant: str, match: re.Match[str]) -> str:
    return match_case(match[0], meant)


@lru_cache(maxsize=1 << 12)
def _slips(clean: Context, seen: Context) -> tuple[tuple[str, str], ...]:
    """Return pairs (misspelt text, clean text) of all user utterances, the longest first."""
    if len(clean.exchanges) != len(seen.exchanges):
        return ()
    both = zip(clean.user_utterances, seen.user_utterances, strict=True)
    found = {
        typed: meant for pair in both if pair[0] != pair[1] for typed, meant in _changed(*pair)
    }
    return tuple(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def _changed(clean: str, seen: str) -> Iterator[tuple[str, str]]:
    were, are = take_apart(clean).words, take_apart(seen).words
    # If there are 200 words or more, do not align texts by their most frequent words: each pair of
    # equal words would be compared.
    matcher = SequenceMatcher(None, [w.lower for w in were], [w.lower for w in are])
    if matcher.ratio() < _ONE_UTTERANCE:
        return
    said = {word.lower for word in were}
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind != "replace":
            continue
        pairs = zip(were[first:last], are[begin:end], strict=False)
        if last - first == end - begin:
            yield from ((new.lower, old.lower) for old, new in pairs if new.lower not in said)
        elif any(word.lower not in said for word in are[begin:end]):
            yield _spanned(seen, are[begin:end]), _spanned(clean, were[first:last])


def _spanned(text: str, words: tuple[Word, ...]) -> str:
    return text[words[0].start : words[-1].end].lower()


@lru_cache(maxsize=1 << 14)
def without_echo(reply: str, question: str) -> str:
    """Return a reply without an opening that only repeats the question.

    >>> without_echo("Your order? It is on its way.", "Where is my order?")
    'It is on its way.'
    >>> without_echo("Two sizes: small and large.", "Which sizes are there?")
    'Two sizes: small and large.'
    """
    opening = _OPENING.match(reply)
    if opening is None or not reply[opening.end() :].strip():
        return reply
    words = set(word_list(opening[1]))
    repeated = words & set(word_list(question))
    others = words - repeated - _BESIDE - set(load_lexicon().stop_words)
    if repeated and not others and not words & _ANSWERS:
        return reply[opening.end() :]
    return reply
