"""Conversion of number words to digits in running text."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["with_digits"]

#: The numbers from 0 that are a single word.
NUMBER_WORDS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_VALUES: Final = {
    **{word: n for n, word in enumerate(NUMBER_WORDS)},
    **{word: 10 * n for n, word in enumerate(_TENS, 2)},
    "fourty": 40,
}
#: Ordinal -> number.
_ORDINALS: Final = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
    **{f"{word[:-1]}ieth": 10 * n for n, word in enumerate(_TENS, 2)},
    **{f"{word}th": _VALUES[word] for word in ("four", "six", "seven", "ten", "eleven")},
    **{f"{word}th": _VALUES[word] for word in NUMBER_WORDS[13:]},
}
_CARDINAL: Final = "|".join(sorted(_VALUES, key=lambda word: (-len(word), word)))
#: A pattern for numbers of at least two.
SEVERAL: Final = "|".join(word for word, value in _VALUES.items() if value > 1)
_SCALE: Final = "|".join(_SCALES)
_ORDINAL: Final = "|".join(sorted(_ORDINALS, key=lambda word: (-len(word), word)))
_NUMBER: Final = re.compile(
    rf"\b(?:{_CARDINAL})(?:(?:[ -]+|(?<=hundred) and |(?<=thousand) and )"
    rf"(?:{_CARDINAL}|{_SCALE})\b)*(?:-(?:{_ORDINAL})\b)?(?!\w)"
    rf"|\b(?:{_CARDINAL})-(?:{_ORDINAL})\b|\b(?:{_ORDINAL})\b(?!-hand)",
    re.IGNORECASE,
)
_WORDS: Final = frozenset({*_VALUES, *_SCALES, *_ORDINALS, "twice", "thrice"})
_LETTERS: Final = re.compile("[a-z]+")
#: Text before `second` if it is a unit of time: `one second`, `just a second`.
_MOMENT: Final = re.compile(
    r"(?:\d|\b(?:an?|one|per|every|each|just|few|split))[ -]*$", re.IGNORECASE
)
_TIMES: Final = re.compile(r"\b(?:(twice)|thrice)\b", re.IGNORECASE)
#: Most characters before `second` that are looked at, and most words of one number.
_BEFORE: Final = 40
_LONGEST: Final = 40
#: Ranges of hours and minutes, as in `eight thirty`.
_HOURS: Final = range(1, 13)
_MINUTES: Final = range(10, 60)


def digits_up_to(last: int) -> dict[str, str]:
    """Return the words for the numbers from 0 to ``last``, at most 19, with their digits.

    >>> digits_up_to(2)
    {'zero': '0', 'one': '1', 'two': '2'}
    """
    return {word: str(number) for number, word in enumerate(NUMBER_WORDS[: last + 1])}


def with_digits(text: str) -> str:
    """Convert the numbers in a text to digits, including spoken clock times and years.

    >>> with_digits("Twenty-five rooms on the third floor, at eight thirty.")
    '25 rooms on the 3rd floor, at 8:30.'
    >>> with_digits("two hundred and five people since nineteen sixty-nine; one second")
    '205 people since 1969; 1 second'
    """
    if _WORDS.isdisjoint(_LETTERS.findall(text.lower())):
        return text  # By far the most frequent case, and faster than the search below.
    return _NUMBER.sub(
        _digits, _TIMES.sub(lambda found: "2 times" if found[1] else "3 times", text)
    )


def _digits(found: re.Match[str]) -> str:
    words = [word for word in re.split(r"[ -]+", found[0].lower()) if word != "and"]
    ordinal = words[-1] in _ORDINALS
    if len(words) > _LONGEST or (words == ["second"] and _is_a_moment(found)):
        return found[0]
    values = [_ORDINALS.get(w) or _VALUES.get(w, _SCALES.get(w, 0)) for w in words]
    if any(word in _SCALES for word in words):
        text = str(_scaled(words, values))
    else:
        text = _spoken(values)
    return text + (_suffix(int(text)) if ordinal and text.isdigit() else "")


def _is_a_moment(found: re.Match[str]) -> bool:
    after = found.string[found.end() : found.end() + 1]
    before = found.string[max(0, found.start() - _BEFORE) : found.start()]
    return _MOMENT.search(before) is not None or after in ("", ".", ",", "!", "?")


def _scaled(words: list[str], values: list[int]) -> int:
    total = part = 0
    for word, value in zip(words, values, strict=True):
        if word == "hundred":
            part = max(part, 1) * value
        elif word in _SCALES:
            total, part = total + max(part, 1) * value, 0
        else:
            part += value
    return total + part


def _spoken(values: list[int]) -> str:
    """Return consecutive numbers below 100 as a time, a year, or separate numbers."""
    numbers: list[int] = []
    open_tens = False
    for value in values:
        if open_tens and 0 < value < 10:
            numbers[-1] += value
            open_tens = False
        else:
            numbers.append(value)
            open_tens = value >= 20
    if len(numbers) == 2 and numbers[1] in _MINUTES and numbers[0] in _HOURS:
        return f"{numbers[0]}:{numbers[1]}"
    if len(numbers) == 2 and numbers[0] in range(13, 30) and numbers[1] in range(10, 100):
        return str(100 * numbers[0] + numbers[1])
    return " ".join(map(str, numbers))


def _suffix(number: int) -> str:
    if number % 100 in range(11, 14):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
