"""Relations that change the notation of numbers, times and dates, or the case of letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from pytest_dstfuzz.dialogue.calls import Outcome, text_of, value_of
from pytest_dstfuzz.dialogue.dates import MONTHS, hour_of_day, month_number
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.words import match_case, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Inapplicable, Replacement, Scene, TurnStart
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.relations.wording import Change, Wording

_NO_NUMBER: Final = "the turn has no number, time or date with another usual notation"
_OTHER_VALUE: Final = "a value in the other notation would count as another value"
#: Numbers from two to twelve, which people write both in words and in digits.
_IN_WORDS: Final = {word: str(number) for number, word in enumerate(NUMBER_WORDS[2:13], 2)}
_IN_DIGITS: Final = {digits: word for word, digits in _IN_WORDS.items()}
_SINGULAR: Final = word_set("night person ticket day room adult guest seat week hour pizza")
#: Words before a number that make it a name: `room 4`.
_LABELS: Final = word_set(
    "number no room order platform gate flight ticket seat code id version section step terminal"
)
_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth"),
)
_FULL_MONTH: Final = "|".join(MONTHS)
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

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return true, because the edits change only numbers, times and dates."""
        del scene, text
        return True

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
    for found in chain(_numbers(scene), _times(user), _dates(user)):
        if not breaks_exact(scene.guarded.exact, [found]):
            yield found


def _numbers(scene: Scene) -> Iterator[Replacement]:
    """Yield numbers before a noun in words, or in digits."""
    words, gaps, reasons = scene.parts.words, scene.parts.gaps, scene.guarded.reasons
    for index, word in enumerate(words):
        other = _IN_WORDS.get(word.lower) or _IN_DIGITS.get(word.text)
        if other is None and word.lower in {"one", "1"}:
            other = "1" if word.lower == "one" else "one"
        if other is None or index + 1 == len(words) or gaps[index + 1] != " ":
            continue
        before = words[index - 1].lower if index else ""
        if before in _LABELS or before.isdigit() or before in NUMBER_WORDS:
            continue
        named = index and words[index - 1].text[0].isupper() and before != "i"
        if gaps[index] == " " and (named or (index and word.text[0].isupper())):
            continue
        counted = words[index + 1].lower
        single = word.lower in {"one", "1"}
        fits = counted in _SINGULAR if single else _is_plural(scene, counted)
        if not fits or reasons[index + 1] in {"name", "user"}:
            continue
        # Both words of `5 pages` have an exact lock, because `page 5` is a label.
        labelled = index and reasons[index - 1] == reasons[index] == EXACT
        if labelled or reasons[index] in {"name", "user"} or (index and gaps[index][-1:] in "-/"):
            continue
        if reasons[index] == reasons[index + 1] == "value" and counted not in {"star", "stars"}:
            continue
        text = match_case(word.text, other) if not index else other
        yield Replacement(word.start, word.end, text, "number")


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


def _dates(user: str) -> Iterator[Replacement]:
    """Yield dates with the day before the month, or after it."""
    for found in _DAY_FIRST.finditer(user):
        day, month = int(found[2]), _month(found[5])
        if (found[5].islower() and month == "May") or not 1 <= day <= 31:
            continue
        yield Replacement(found.start(), found.end(), f"{month} {day}", "date")
        yield Replacement(found.start(), found.end(), f"{month} {_nth(day)}", "date")
    for found in _MONTH_FIRST.finditer(user):
        day, month = int(found[2]), _month(found[1])
        if (found[1].islower() and month == "May") or not 1 <= day <= 31:
            continue
        yield Replacement(found.start(), found.end(), f"the {_nth(day)} of {month}", "date")
        yield Replacement(found.start(), found.end(), f"{day} {month}", "date")
        if not found[3]:
            yield Replacement(found.start(), found.end(), f"{month} {_nth(day)}", "date")
    for found in _NTH.finditer(user):
        if 1 <= int(found[1]) <= len(_ORDINALS):
            word = _ORDINALS[int(found[1]) - 1]
            start = found.start() + len("the ")
            yield Replacement(start, found.end(), word, "date")


def _month(name: str) -> str:
    return MONTHS[month_number(name) - 1].capitalize()


def _nth(day: int) -> str:
    ending = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


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

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return true, because only the case of letters changes."""
        del scene, text
        return True

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
