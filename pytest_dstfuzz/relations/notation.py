"""Relations that change the notation of numbers, times and dates, or the case of letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from pytest_dstfuzz.dialogue.calls import Outcome, text_of, value_of
from pytest_dstfuzz.dialogue.dates import MONTH, MONTHS, hour_of_day, month_number
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.words import match_case, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Inapplicable, Replacement, Scene, TurnStart
from pytest_dstfuzz.relations.values import article_before, inflections
from pytest_dstfuzz.relations.wording import Change, Sentence, Wording, raised, sentences

_NO_NUMBER: Final = "the turn has no number, time or date with another usual notation"
_OTHER_VALUE: Final = "a value in the other notation would count as another value"
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
#: Numbers from two on, which people write both in words and in digits.
_IN_WORDS: Final = {word: str(number) for number, word in enumerate(NUMBER_WORDS[2:], 2)} | {
    word: str(10 * number) for number, word in enumerate(_TENS, 2)
}
_IN_WORDS.update(
    (f"{ten}-{one}", str(10 * number + unit))
    for number, ten in enumerate(_TENS, 2)
    for unit, one in enumerate(NUMBER_WORDS[1:10], 1)
)
_IN_DIGITS: Final = {digits: word for word, digits in _IN_WORDS.items()}
_SINGULAR: Final = word_set("night person ticket day room adult guest seat week hour pizza")
#: Words before a number that make it a name: `room 4`.
_LABELS: Final = word_set(
    "number no room order platform gate flight ticket seat code id version section step terminal"
)
_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
_FULL_MONTH: Final = "|".join(MONTHS)
_LONG_MONTH: Final = "|".join(name for name in MONTHS if len(name) > 4)
_DAY_FIRST: Final = re.compile(
    rf"\b(?:(the) )?(\d{{1,2}})(st|nd|rd|th)?( of)? ({_FULL_MONTH})\b(?!,? \d{{2,4}}\b)",
    re.IGNORECASE,
)
_MONTH_FIRST: Final = re.compile(
    rf"\b({_FULL_MONTH}) (?:the )?(\d{{1,2}})(st|nd|rd|th)?\b(?!,? \d{{4}}\b|[:.]\d|\d)",
    re.IGNORECASE,
)
_NTH: Final = re.compile(
    rf"\bthe (\d{{1,2}})(?:st|nd|rd|th)\b(?!(?: of)? (?:{_FULL_MONTH}))", re.IGNORECASE
)
#: Months beside a day, which may be written as `Jan`.
_SHORT_MONTH: Final = re.compile(
    rf"(?:(?<=\d )|(?<=\dth )|(?<=\dth of ))(?:{_LONG_MONTH})\b|\b(?:{_LONG_MONTH})\b(?= \d)",
    re.IGNORECASE,
)
_ORDINAL_WORD: Final = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}) of (?:{_FULL_MONTH})\b", re.IGNORECASE
)
_HALVED: Final = re.compile(
    r"(?<![\d:.,£$€])(\d{1,2})(?::([0-5]\d))?( ?)(am|pm|a\.m\.|p\.m\.)(?!\w)", re.IGNORECASE
)
_WHOLE: Final = re.compile(
    r"(?<![\d:.,/£$€-])([01]\d|2[0-3]):([0-5]\d)(?![\d:]|,\d|\.\d|[ -]*[ap]\.?m\b|/)", re.IGNORECASE
)
_NOON: Final = 12


@register_relation
class NumberFormat(Wording):
    """Writes numbers, times and dates in another notation. The answer must stay the same.

    Source: own.
    """

    name = "number-format"
    source = "rules of this package (MIT)"
    reasons = (_NO_NUMBER, _OTHER_VALUE)
    checks_locks = False  # The edits change only numbers, times and dates.

    def begin(self, scene: Scene) -> TurnStart:
        """Return rewrites in other notations, or the reason why the relation cannot apply."""
        return super().begin(scene) if any(_notations(scene)) else Inapplicable(_NO_NUMBER)

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the numbers, times and dates of the turn in other notations."""
        for found in _notations(scene):
            if _same_value(scene, scene.turn.user[found.start : found.end], found.after):
                yield (found,)


def _notations(scene: Scene) -> Iterator[Replacement]:
    user = scene.turn.user
    # A tracker may write a spoken time as the value of a slot.
    spoken = () if scene.kind.name == "state" else _spoken_times(user)
    found_in = (
        *(_numbers(scene), _several(scene), _ordinals(user), _times(user), spoken),
        *(_dates(user), _dates_with_year(user), _dates_with_slash(scene), _units(user)),
    )
    for found in chain(*found_in, _grammatical_numbers(scene)):
        if not breaks_exact(scene.guarded.exact, [found]):
            yield found


def _numbers(scene: Scene) -> Iterator[Replacement]:
    """Yield numbers before a noun in words, or in digits."""
    words, gaps, reasons = scene.parts.words, scene.parts.gaps, scene.guarded.reasons
    for index, word in enumerate(words):
        other = _IN_WORDS.get(word.lower) or _IN_DIGITS.get(word.text)
        if other is None and word.lower in {"one", "1"}:
            other = "1" if word.lower == "one" else "one"
        before = words[index - 1].lower if index else ""
        last = index + 1 == len(words) or bool(gaps[index + 1].strip())
        if other is not None and last and before in _COUNTING and _ends(gaps[index + 1]):
            yield Replacement(word.start, word.end, other, "number")
        if other is None or last or gaps[index + 1] != " ":
            continue
        if before in _LABELS or before.isdigit() or before in NUMBER_WORDS:
            continue
        named = index and words[index - 1].text[0].isupper() and before != "i"
        if gaps[index] == " " and (named or (index and word.text[0].isupper())):
            continue
        counted = words[index + 1].lower
        single = word.lower in {"one", "1"}
        bare = before in _COUNTING and not single and counted in _AFTER_COUNT
        fits = counted in _SINGULAR if single else bare or _is_plural(scene, counted)
        # `Open 24 hours` is a set phrase.
        if not fits or (word.text, counted) == _SET or reasons[index + 1] in {"name", "user"}:
            continue
        # Both words of `5 pages` have an exact lock, because `page 5` is a label.
        labelled = index and reasons[index - 1] == reasons[index] == EXACT
        if labelled or reasons[index] in {"name", "user"} or (index and gaps[index][-1:] in "-/"):
            continue
        if reasons[index] == reasons[index + 1] == "value" and counted not in {"star", "stars"}:
            continue
        text = match_case(word.text, other) if not index else other
        yield Replacement(word.start, word.end, text, "number")


_SET: Final = ("24", "hours")
_SEVERAL: Final = re.compile(
    r"\b(?P<old>half a dozen|a dozen|a couple of|12|twelve|six|6|two|2) (?P<noun>[a-z]+s)\b",
    re.IGNORECASE,
)
#: Numbers with their other names. Of people, `a couple` means something else.
_OTHER_NAMES: Final = {
    "half a dozen": ("six", "6"),
    "a dozen": ("twelve", "12"),
    "a couple of": ("two", "2"),
    "12": ("a dozen",),
    "twelve": ("a dozen",),
    "six": ("half a dozen",),
    "6": ("half a dozen",),
    "two": ("a couple of",),
    "2": ("a couple of",),
}
#: Things that are counted in dozens.
_IN_DOZENS: Final = word_set(
    """eggs rolls bottles bagels muffins roses tulips oysters croissants doughnuts donuts cupcakes
    buns pens envelopes candles beers balloons plates glasses chairs copies boxes flowers pretzels
    cookies biscuits apples lemons stamps"""
)
#: Things of which people want a couple.
_IN_COUPLES: Final = word_set(
    """tickets nights days hours weeks towels pillows chairs beers coffees sandwiches pizzas books
    bottles boxes bags bikes bicycles questions minutes seats"""
)
#: Words after which a couple would be a certain pair, or a part of a number.
_BEFORE_NUMBER: Final = word_set(
    "the my our your these those first last next all other every number no room only exactly just"
)


def _several(scene: Scene) -> Iterator[Replacement]:
    """Yield `12 eggs` for `a dozen eggs`, `a couple of days` for `two days`, and vice versa."""
    user = scene.turn.user
    for found in _SEVERAL.finditer(user):
        old, noun = found["old"].lower(), found["noun"].lower()
        before = user[: found.start()].rsplit(None, 1)[-1:]
        word = before[0].lower().strip(",.") if before else ""
        if word in _BEFORE_NUMBER or word[-1:].isdigit() or word in NUMBER_WORDS:
            continue
        counted = _IN_COUPLES if "two" in (old, *_OTHER_NAMES[old]) or old == "2" else _IN_DOZENS
        if noun not in counted or user[found.start("old") - 1 : found.start("old")] in {"-", "/"}:
            continue
        for new in _OTHER_NAMES[old]:
            after = match_case(found["old"], new) if not found.start() else new
            yield Replacement(found.start("old"), found.end("old"), after, "number")


_RANKED: Final = (
    r"(?= (?:floor|row|class|week|day|grade|year|edition|birthday|round"
    r"|lesson|course)\b)"
)
_WORD_RANK: Final = re.compile(rf"\b({'|'.join(_ORDINALS)}){_RANKED}", re.IGNORECASE)
_DIGIT_RANK: Final = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th){_RANKED}", re.IGNORECASE)


def _ordinals(user: str) -> Iterator[Replacement]:
    """Yield `the 2nd floor` for `the second floor`, and vice versa."""
    for found in _WORD_RANK.finditer(user):
        number = _ORDINALS.index(found[1].lower()) + 1
        yield Replacement(found.start(), found.end(), _nth(number), "number")
    for found in _DIGIT_RANK.finditer(user):
        if 1 <= int(found[1]) <= len(_ORDINALS):
            word = _ORDINALS[int(found[1]) - 1]
            yield Replacement(found.start(), found.end(), word, "number")


#: Words before a number of people without a noun: `a table for two`.
_COUNTING: Final = word_set("for of us")
_AFTER_COUNT: Final = word_set("at on in tonight tomorrow today please this next by near of")


def _ends(gap: str) -> bool:
    """Return whether a sentence or a part of it ends in a gap."""
    return gap.strip() in {"", ".", "?", "!", ","}


def _is_plural(scene: Scene, word: str) -> bool:
    """Return whether a word is a plural, so that a number may precede it."""
    if word == "people" or inflections().singular(word) is not None:
        return True
    regular = word.endswith("s") and not word.endswith("ss")
    return regular and scene.lexicon.majority_pos(word[:-1]) == "noun"


def _times(user: str) -> Iterator[Replacement]:
    """Yield clock times in the other clock (12 or 24 hours), or in another style."""
    for found in _HALVED.finditer(user):
        hour, minutes, half = int(found[1]), found[2] or "00", found[4][0].lower()
        if not 1 <= hour <= _NOON:
            continue
        yield Replacement(
            found.start(), found.end(), f"{hour_of_day(hour, half):02}:{minutes}", "time"
        )
        blank = "" if found[3] else " "
        same = f"{hour}:{minutes}" if found[2] else str(hour)
        yield Replacement(found.start(), found.end(), f"{same}{blank}{half}m", "time")
        stop = "" if user[found.end() : found.end() + 1] == "." else "."
        yield Replacement(found.start(), found.end(), f"{same} {half}.m{stop}", "time")
        if found[2] and minutes != "00":
            yield Replacement(found.start(), found.end(), f"{hour}.{minutes} {half}m", "time")
        if not found[2]:
            yield Replacement(found.start(), found.end(), f"{hour}:00 {half}m", "time")
        elif minutes == "00":
            yield Replacement(found.start(), found.end(), f"{hour} {half}m", "time")
    for found in _WHOLE.finditer(user):
        hour, minutes = int(found[1]), found[2]
        # A time up to half past twelve may be in either half of the day.
        if hour > _NOON or (found[1][0] == "0" and hour):
            half = "pm" if hour > _NOON else "am"
            text = f"{(hour - 1) % _NOON + 1}:{minutes} {half}"
            yield Replacement(found.start(), found.end(), text, "time")
            if minutes == "00":
                text = f"{(hour - 1) % _NOON + 1} {half}"
                yield Replacement(found.start(), found.end(), text, "time")


_PARTS_OF_HOUR: Final = {"half past": "30", "quarter past": "15", "quarter to": "45"}
#: Minutes, and how people say them before the hour or the next hour.
_SAID_MINUTES: Final = {
    "05": "five past",
    "10": "ten past",
    "15": "quarter past",
    "20": "twenty past",
    "25": "twenty-five past",
    "30": "half past",
    "35": "twenty-five to",
    "40": "twenty to",
    "45": "quarter to",
    "50": "ten to",
    "55": "five to",
}
_AT_MINUTES: Final = re.compile(
    r"(?<![\d:.,/-])(?P<hour>\d{1,2})[:.](?P<minutes>[0-5][05])(?P<half> ?(?:[ap]m\b|[ap]\.m\.))?"
    r"(?!\d|[:.]\d)",
    re.IGNORECASE,
)
_SAID_PAST: Final = re.compile(
    r"\b(?P<minutes>five|ten|twenty|twenty-five|a quarter|quarter|half)(?: minutes)? "
    r"(?P<side>past|to) "
    rf"(?P<hour>1[0-2]|[1-9]|{'|'.join(NUMBER_WORDS[1:13])})\b"
    r"(?! (?:people|persons|guests|adults|minutes|hours|nights|days))"
    r"(?P<part> in the (?:morning|afternoon|evening)| (?:at night|tonight)| ?[ap]m\b)?",
    re.IGNORECASE,
)
_COUNT_OF: Final = {
    "five": 5,
    "ten": 10,
    "quarter": 15,
    "twenty": 20,
    "twenty-five": 25,
    "half": 30,
}


def _part_of_day(hour: int) -> str:
    """Return the words for the part of the day of an hour from 0 to 23, or ``""``."""
    if 5 <= hour < _NOON:
        return " in the morning"
    if _NOON < hour <= _NOON + _LAST_AFTERNOON:
        return " in the afternoon"
    return " in the evening" if _NOON + _LAST_AFTERNOON < hour < 22 else ""


def _said_minutes(user: str) -> Iterator[Replacement]:
    """Yield `ten to eight in the evening` for `7:50 pm`, and vice versa."""
    for found in _AT_MINUTES.finditer(user):
        hour, minutes, half = int(found["hour"]), found["minutes"], found["half"]
        said = _SAID_MINUTES.get(minutes, "")
        whole = hour_of_day(hour, half.strip()) if half else hour
        known = half or hour > _NOON or found["hour"][0] == "0"
        part = _part_of_day(whole) if known else ""
        if (half and not 1 <= hour <= _NOON) or whole >= 24 or (known and not part):
            continue
        if "." in found[0][:3] and not half:
            continue  # It may be a price or a size.
        hour = (whole + said.endswith("to") - 1) % _NOON + 1
        text = f"{said} {NUMBER_WORDS[hour]}{part}"
        if minutes == "00":
            text = f"{NUMBER_WORDS[hour]} o'clock{part}"
        if not known and minutes == "00":
            continue
        if known or user[: found.start()].lower().endswith("at "):
            yield Replacement(found.start(), found.end(), text, "time")
    yield from _written_minutes(user)


def _written_minutes(user: str) -> Iterator[Replacement]:
    """Yield `7:50 pm` for `ten to eight in the evening`."""
    for found in _SAID_PAST.finditer(user):
        hour, before = _hour(found["hour"]), found["side"].lower() == "to"
        count = _COUNT_OF[found["minutes"].lower().removeprefix("a ")]
        if count == 30 and before:
            continue
        hour = (hour - 2) % _NOON + 1 if before else hour
        part = (found["part"] or "").strip().lower()
        half = "" if not part else "am" if part in {"am", "in the morning"} else "pm"
        text = f"{hour}:{60 - count if before else count:02}"
        if half:
            yield Replacement(found.start(), found.end(), f"{text} {half}", "time")
            if hour_of_day(hour, half) > _NOON:
                other = f"{hour_of_day(hour, half)}{text[-3:]}"
                yield Replacement(found.start(), found.end(), other, "time")
        elif found["part"] is None:
            yield Replacement(found.start(), found.end(), text, "time")


def _spoken_times(user: str) -> Iterator[Replacement]:
    """Yield `7:30` for `half past seven`, `7 o'clock` for `seven o'clock`, `12 pm` for `noon`."""
    yield from _said_minutes(user)
    for found in _OCLOCK.finditer(user):
        hour = _hour(found[1])
        other = NUMBER_WORDS[hour] if found[1].isdigit() else str(hour)
        yield Replacement(found.start(1), found.end(1), other, "time")
    for found in _NOONS.finditer(user):
        other = "noon" if found[0].lower() == "midday" else "midday"
        for text in ("12 pm", "12:00", "12 o'clock", other):
            yield Replacement(found.start(), found.end(), text, "time")
    for found in _ON_THE_HOUR.finditer(user):
        hour, half = _hour(found[1]), found[2][0].lower()
        part = "in the morning" if half == "a" else "in the afternoon"
        part = "in the evening" if half == "p" and hour > _LAST_AFTERNOON else part
        if hour < _NOON and (half == "p" or hour > _NIGHT):
            for said in (found[1], f"{NUMBER_WORDS[hour]} o'clock"):
                yield Replacement(found.start(), found.end(), f"{said} {part}", "time")
        if found[1].isdigit() and 1 <= hour <= _NOON:
            text = f"{NUMBER_WORDS[hour]} {half}m"
            yield Replacement(found.start(), found.end(), text, "time")
    for found in _IN_PART.finditer(user):
        half = "am" if found[2].lower() == "morning" else "pm"
        yield Replacement(found.start(), found.end(), f"{found[1]} {half}", "time")


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else NUMBER_WORDS.index(text.lower())


def _units(user: str) -> Iterator[Replacement]:
    """Yield amounts of money, shares and durations in another notation."""
    for pattern, texts in _UNITS:
        for found in pattern.finditer(user):
            for text in texts:
                after = match_case(found[0], found.expand(text))
                yield Replacement(found.start(), found.end(), after, "unit")


_AN_HOUR: Final = {
    "half an hour": "30 minutes",
    "an hour and a half": "90 minutes",
    "a quarter of an hour": "15 minutes",
    "two weeks": "14 days",
    "a fortnight": "two weeks",
    "one week": "7 days",
    "six months": "half a year",
    "12 months": "one year",
    "45 minutes": "three quarters of an hour",
    "one and a half hours": "an hour and a half",
    "half a kilo": "500 grams",
    "48 hours": "two days",
}
_AMOUNT: Final = r"(\d{1,4}(?:\.\d\d)?)"
#: Patterns, and the texts that may replace a match.
_UNITS: Final = (
    (re.compile(rf"€ ?{_AMOUNT}(?![\d.,]*\d)"), (r"\1 euros", r"\1 EUR")),
    (re.compile(rf"\${_AMOUNT}(?![\d.,]*\d)"), (r"\1 dollars",)),
    (re.compile(rf"£{_AMOUNT}(?![\d.,]*\d)"), (r"\1 pounds", r"\1 quid")),
    (re.compile(rf"(?<![\d.,]){_AMOUNT} euros\b", re.IGNORECASE), (r"€\1", r"\1 EUR")),
    (re.compile(rf"(?<![\d.,]){_AMOUNT} dollars\b", re.IGNORECASE), (r"$\1",)),
    (re.compile(rf"(?<![\d.,]){_AMOUNT} pounds\b(?! of\b)", re.IGNORECASE), (r"£\1",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) minutes\b", re.IGNORECASE), (r"\1 min", r"\1 mins")),
    (re.compile(r"(?<![\d.,])(\d{1,3}) mins?\b", re.IGNORECASE), (r"\1 minutes",)),
    (re.compile(r"(?<![\d.,])([2-9]|1\d) hours\b", re.IGNORECASE), (r"\1 hrs",)),
    (re.compile(r"(?<![\d.,])([2-9]|1\d) hrs\b", re.IGNORECASE), (r"\1 hours",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) ?%"), (r"\1 percent",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) percent\b", re.IGNORECASE), (r"\1%",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) kilometres\b", re.IGNORECASE), (r"\1 km",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) km\b"), (r"\1 kilometres",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) kilos\b", re.IGNORECASE), (r"\1 kg",)),
    (re.compile(r"(?<![\d.,])(\d{1,3}) kg\b"), (r"\1 kilos",)),
    *(
        (re.compile(rf"(?<![\w-])(?<!the ){one}\b(?! and\b)", re.IGNORECASE), (other,))
        for pair in _AN_HOUR.items()
        for one, other in (pair, pair[::-1])
    ),
)
#: Questions about things in the plural, and in the singular. The things come in between.
_FORMS: Final = (
    (("are", "there", "any"), ("is", "there", "a")),
    (("are", "there"), ("is", "there", "a")),
    (("do", "you", "have", "any"), ("do", "you", "have", "a")),
    (("do", "you", "have"), ("do", "you", "have", "a")),
    (("have", "you", "got", "any"), ("have", "you", "got", "a")),
    (("do", "you", "sell"), ("do", "you", "sell", "a")),
    (("how", "much", "are"), ("how", "much", "is", "a")),
    (("where", "can", "i", "buy"), ("where", "can", "i", "buy", "a")),
    (("where", "can", "i", "get"), ("where", "can", "i", "get", "a")),
    (("where", "can", "i", "find"), ("where", "can", "i", "find", "a")),
    (("how", "can", "i", "return"), ("how", "can", "i", "return", "a")),
    (("how", "do", "i", "return"), ("how", "do", "i", "return", "a")),
    (("can", "i", "bring"), ("can", "i", "bring", "a")),
    (("may", "i", "bring"), ("may", "i", "bring", "a")),
    (("can", "i", "rent"), ("can", "i", "rent", "a")),
)
#: Words after the noun, or the end.
_AFTER_NOUN: Final = word_set(
    """in near at on for with to from available here today tomorrow tonight left open please
    around there by"""
)
_MOST_ADJECTIVES: Final = 2


def _grammatical_numbers(scene: Scene) -> Iterator[Replacement]:
    """Yield `Is there a bus?` for `Are there any buses?`, and vice versa."""
    for one in sentences(scene.turn.user):
        for several, single in _FORMS:
            for old, new in ((several, single), (single, several)):
                found = _thing_after(scene, one, old, single=old is single)
                if found is None:
                    continue
                place, noun = found
                between = "".join(
                    one.gaps[at - 1] + one.words[at].text for at in range(len(old), place)
                ).strip()
                thing = f"{between} {noun}".strip()
                words = [*new[:-1], article_before(thing)] if new is single else new
                head = raised(" ".join("I" if word == "i" else word for word in words), one)
                end = one.words[place].end
                yield Replacement(one.start, end, f"{head} {thing}", "grammatical_number")


def _thing_after(
    scene: Scene, one: Sentence, old: tuple[str, ...], *, single: bool
) -> tuple[int, str] | None:
    """Return the index of the noun after the words ``old``, and its other form."""
    said, count = one.said, len(old)
    begins = said[:count]
    if single and begins[-1:] == ("an",):
        begins = (*begins[:-1], "a")
    if begins != old or any(gap.strip() for gap in one.gaps[:count]):
        return None
    for place in range(count, min(count + _MOST_ADJECTIVES + 1, len(said))):
        last = place + 1 == len(said) or bool(one.gaps[place].strip())
        after = "" if last else said[place + 1]
        if not last and after not in _AFTER_NOUN:
            kind = scene.lexicon.majority_pos(said[place])
            if kind not in {"adj", "noun"} or said[place] in {"other", "many", "any"}:
                return None
            continue
        other = inflections().plural(said[place]) if single else inflections().singular(said[place])
        base = said[place] if single else other
        named = (
            scene.guarded.reasons[one.first + place] in {"user", EXACT}
            or one.words[place].text != said[place]
        )
        if other is None or base in _NO_SINGLE or named:
            return None
        return place, other
    return None


#: Nouns whose singular and plural ask for different things here.
_NO_SINGLE: Final = word_set(
    """lot few option thing hour time way day minute card news detail aspect fact review idea
    question other requirement limit"""
)
_OCLOCK: Final = re.compile(
    rf"\b([1-9]|1[0-2]|{'|'.join(NUMBER_WORDS[1:13])})(?= o['’]clock)", re.IGNORECASE
)
_NOONS: Final = re.compile(r"(?<=\bat )(?:noon|midday)\b", re.IGNORECASE)
_ON_THE_HOUR: Final = re.compile(
    rf"(?<![\d:.,£$€])\b(1[0-2]|[1-9]|{'|'.join(NUMBER_WORDS[1:13])}) ?(am|pm)\b", re.IGNORECASE
)
_IN_PART: Final = re.compile(
    rf"(?<=at )(1[0-2]|[1-9]|{'|'.join(NUMBER_WORDS[1:13])}) in the (morning|afternoon|evening)\b",
    re.IGNORECASE,
)
#: The last hour of the afternoon, and of the night.
_LAST_AFTERNOON: Final = 5
_NIGHT: Final = 4


def _dates(user: str) -> Iterator[Replacement]:
    """Yield dates with the day before the month, or after it."""
    for found in _DAY_FIRST.finditer(user):
        day, month = int(found[2]), _month(found[5])
        if (found[5].islower() and month == "May") or not 1 <= day <= 31:
            continue
        named = found[1] or (found[3] and not found[4])
        for text in (f"{month} {day}", f"{month} {_nth(day)}", *_other_dates(day, month)):
            if text.lower() != found[0].lower() and not (named and text[0] == "t"):
                yield Replacement(found.start(), found.end(), text, "date")
    for found in _MONTH_FIRST.finditer(user):
        day, month = int(found[2]), _month(found[1])
        if (found[1].islower() and month == "May") or not 1 <= day <= 31:
            continue
        for text in (f"the {_nth(day)} of {month}", f"{day} {month}", *_other_dates(day, month)):
            yield Replacement(found.start(), found.end(), text, "date")
        if not found[3]:
            yield Replacement(found.start(), found.end(), f"{month} {_nth(day)}", "date")
    yield from _parts_of_dates(user)


def _parts_of_dates(user: str) -> Iterator[Replacement]:
    """Yield dates with a shorter month, or with the day in words or in digits."""
    for found in _SHORT_MONTH.finditer(user):
        text = found[0][:3].capitalize()
        yield Replacement(found.start(), found.end(), text, "date")
    for found in _ORDINAL_WORD.finditer(user):
        day = _ORDINALS.index(found[1].lower()) + 1
        yield Replacement(found.start(1), found.end(1), _nth(day), "date")
    for found in _NTH.finditer(user):
        if 1 <= int(found[1]) <= len(_ORDINALS):
            word = _ORDINALS[int(found[1]) - 1]
            start = found.start() + len("the ")
            yield Replacement(start, found.end(), word, "date")


def _other_dates(day: int, month: str) -> Iterator[str]:
    """Yield a date with the short name of the month, and with the day as a word."""
    if len(month) > 4:
        yield f"{day} {month[:3]}"
        yield f"{month[:3]} {day}"
    if day <= len(_ORDINALS):
        yield f"the {_ORDINALS[day - 1]} of {month}"


_YEAR: Final = r"(?:,| of)? (?P<year>(?:19|20)\d\d)\b"
_ISO_DATE: Final = re.compile(
    r"(?<![\d/-])(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-2]\d|3[01])(?![\d-])"
)
_WITH_YEAR: Final = (
    _ISO_DATE,
    re.compile(
        rf"\b(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{MONTH}){_YEAR}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<name>{MONTH}) (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}", re.IGNORECASE
    ),
)


def _dates_with_year(user: str) -> Iterator[Replacement]:
    """Yield a date with a year in other notations, such as `2026-12-05`."""
    for pattern in _WITH_YEAR:
        for found in pattern.finditer(user):
            day, year = int(found["day"]), found["year"]
            named = "name" in pattern.groupindex
            number = month_number(found["name"]) if named else int(found["month"])
            month = MONTHS[number - 1].capitalize()
            if not 1 <= day <= 31:
                continue
            for text in (
                f"{year}-{number:02}-{day:02}",
                f"{day} {month} {year}",
                f"{month} {day}, {year}",
                f"{day} {month[:3]} {year}",
                f"the {_nth(day)} of {month} {year}",
            ):
                if text.lower() != found[0].lower():
                    yield Replacement(found.start(), found.end(), text, "date")


_SLASHED: Final = re.compile(
    r"(?<![\d/.-])(?P<one>\d{1,2})/(?P<other>\d{1,2})(?:/(?P<year>(?:20)?\d\d))?(?![\d/%-])"
)
_DATED: Final = re.compile(
    r"(?:\b(?:on|until|till|by|for|from|to|of|before|after|date)|^) ?$", re.IGNORECASE
)


def _dates_with_slash(scene: Scene) -> Iterator[Replacement]:
    """Yield `5 December` for `5/12`, if it is known which number is the month, and vice versa."""
    user = scene.turn.user
    for found in _SLASHED.finditer(user):
        one, other = int(found["one"]), int(found["other"])
        pairs = dict.fromkeys(((one, other), (other, one)))
        dates = [(day, month) for day, month in pairs if 1 <= day <= 31 and 1 <= month <= _NOON]
        if len(dates) > 1:
            dates = [pair for pair in dates if pair in set(_answered_dates(scene))]
        if len(dates) != 1 or not _DATED.search(user[: found.start()]):
            continue
        day, month = dates[0][0], MONTHS[dates[0][1] - 1].capitalize()
        year = found["year"] or ""
        ends = f" 20{year[-2:]}" if year else ""
        for text in (f"{day} {month}{ends}", f"{month} {day}{',' if year else ''}{ends}"):
            yield Replacement(found.start(), found.end(), text, "date")
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        for found in pattern.finditer(user):
            first = pattern is _DAY_FIRST
            day, name = int(found[2]), found[5 if first else 1]
            number = month_number(name)
            # Of a day up to the twelfth, readers do not know which number is the month.
            if _NOON < day <= 31 and _DATED.search(user[: found.start()]):
                # A user who writes the day first in words also writes it first in digits.
                text = f"{day}/{number}" if first else f"{number}/{day}"
                yield Replacement(found.start(), found.end(), text, "date")


def _answered_dates(scene: Scene) -> Iterator[tuple[int, int]]:
    """Yield the day and the month of each date of the answer that is in the form of ISO 8601."""
    for answer in (scene.states[scene.index], scene.label):
        for value in (answer or {}).values():
            for found in _ISO_DATE.finditer(value):
                yield int(found["day"]), int(found["month"])


def _month(name: str) -> str:
    return MONTHS[month_number(name) - 1].capitalize()


def _nth(day: int) -> str:
    ending = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


#: Times and dates as only programs write them.
_OF_MACHINES: Final = re.compile(r"\d\d:\d\d(?::\d\d)?|\d{4}-\d\d-\d\d(?:T\S+)?")


def _same_value(scene: Scene, before: str, after: str) -> bool:
    """Return whether an answer counts as equal if it copies the other notation."""
    if scene.kind.name == "reply":
        return True
    now = scene.states[scene.index] or Outcome()
    if not scene.kind.has_tools:
        rules = scene.table.normalisation
        return all(
            normalise_value(slot, after.lower(), rules) == value
            for slot, value in now.items()
            if value in before.lower() or normalise_value(slot, before.lower(), rules) == value
        )
    for path, text in now.items():
        value = value_of(text)
        # A copy of the user's words is no value here.
        if scene.kind.is_closed(scene.data, path) or (
            isinstance(value, str) and _OF_MACHINES.fullmatch(value)
        ):
            continue
        if isinstance(value, str) and value and value.lower() in before.lower():
            other = Outcome({**now, path: text_of(after)})
            if not scene.agree(now, other, scene.context):
                return False
    return True


_ONE_CASE: Final = "no letter of the turn can change its case"


@register_relation
class LetterCase(Wording):
    """Writes a turn in capitals, or in small letters. The answer must stay the same.

    Source: own.
    """

    name = "letter-case"
    source = "rules of this package (MIT)"
    reasons = (_ONE_CASE,)
    english = False
    most = 1
    checks_locks = False  # Only the case of letters changes.

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the turn in capitals and in small letters, except texts that must stay exact."""
        for convert, operator in ((str.lower, "small_letters"), (str.upper, "capitals")):
            edits = tuple(_converted(scene, convert, operator))
            if edits:
                yield edits


def _converted(scene: Scene, convert: Callable[[str], str], operator: str) -> Iterator[Replacement]:
    for word, reason in zip(scene.parts.words, scene.guarded.reasons, strict=True):
        after = convert(word.text)
        # `ß` has no capital letter of the same length.
        kept = reason in {"user", EXACT} or breaks_exact(scene.guarded.exact, [word])
        if after != word.text and not kept and len(after) == len(word.text):
            yield Replacement(word.start, word.end, after, operator)
