"""The tokeniser of TRADE and SimpleTOD, for training and prediction.

The TRADE layout of MultiWOZ is lower-cased, with spelled-out contractions, times as ``HH:MM``,
numbers as digits and some endings split off (``place -s``). The tokeniser joins the endings, and
applies the other changes to any text. Original texts and the TRADE layout then have the same form,
so that a network trained on one understands the other. Any text is accepted. If a word has an
unknown character, the word is an unknown word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"

#: Words with one usual long form, matched as whole words after quotes are removed.
_WORDS = {
    **{word: str(number) for number, word in enumerate(_NUMBERS.split())},
    "&": "and",
    "cannot": "can not",
    "cant": "can not",
    "dont": "do not",
    "doesnt": "does not",
    "didnt": "did not",
    "isnt": "is not",
    "wont": "will not",
    "wouldnt": "would not",
    "im": "i am",
    "ive": "i have",
    "id": "i would",
    "youre": "you are",
    "center": "centre",
    "centers": "centres",
    "theater": "theatre",
    "theaters": "theatres",
    "pricerange": "price range",
}

#: After these words, a number up to 24 is an hour, unless one of the units follows.
_TIME_CUES = "at|by|after|before|around|until"
_UNITS = "people|persons?|guests?|adults?|nights?|days?|stars?|pounds?|minutes?|of|or"


def _afternoon(match: re.Match[str]) -> str:
    """Write a time of the afternoon or morning in 24 hours: ``5:30 pm`` -> ``17:30``."""
    hour, minute = int(match[1]), match[2] or "00"
    if match[3] == "p" and hour < 12:
        hour += 12
    elif match[3] == "a" and hour == 12:
        hour = 0
    return f"{hour:02d}:{minute}"


def _full_hour(match: re.Match[str]) -> str:
    """Write a full hour as a time: ``at 5`` -> ``at 05:00``."""
    return f"{match[1]} {int(match[2]):02d}:00"


# Applied in order, to text with single spaces. They keep text that is already normalised.
_RULES: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"[\u2018\u2019\u02bc`\u00b4]", "'"),
    (r"[\u2010-\u2015]", "-"),
    # Contractions, joined (don't) or split as in MultiWOZ (do n't).
    (
        r"\b(ca|wo|sha) ?n't\b",
        lambda m: {"ca": "can", "wo": "will", "sha": "shall"}[m[1]] + " not",
    ),
    (r" ?n't\b", " not"),
    (r"(?<=\w) ?'m\b", " am"),
    (r"(?<=\w) ?'re\b", " are"),
    (r"(?<=\w) ?'ve\b", " have"),
    (r"(?<=\w) ?'ll\b", " will"),
    (r"(?<=\w) ?'d\b", " would"),
    # Join genitives, as in the normalised names of the labels (christs college).
    (r"(?<=\w) ?'s\b|(?<=[^\W\d]) s\b", "s"),
    (r"'", ""),
    (r"\b(i) (m|ve)\b", r"\1\2"),
    # Endings and words that the TRADE layout splits.
    (r"(?<=\w) -(?=(?:s|es|ly|er|est|ing|ed)\b)", ""),
    (r"\bguest ?-? ?houses?\b", lambda m: "guesthouse" + ("s" if m[0].endswith("s") else "")),
    (r"\bwi ?- ?fi\b|\bwi fi\b", "wifi"),
    (r"(?<=\w) ?- ?(?=[^\W\d])", " "),
    (r"\bany where\b", "anywhere"),
    (r"\bbed (?:and|&) breakfast\b", "b and b"),
    (r"\bgood bye\b", "goodbye"),
    # Times and decimals.
    (r"(?<![\d:.])(\d{1,2})(?:[:.]| ?: ?)(\d\d) ?([ap]) ?(?:m\b|\. ?m\b\.?)", _afternoon),
    (r"(?<![\d:.])(\d{1,2})()(?: oclock)? ?([ap]) ?(?:m\b|\. ?m\b\.?)", _afternoon),
    (r"(?<=\d)[.](?=\d\d\b)", ":"),
    (r"(?<![\d:])(\d):(?=\d\d(?![\d:]))", r"0\1:"),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    # Punctuation: sentence marks become words, other characters become spaces.
    (rf"\b({_TIME_CUES}) ([1-9]|1\d|2[0-4])(?= (?!(?:{_UNITS})\b)|$)", _full_hour),
    (r"(?<![\d:])(\d{1,2}) oclock\b", lambda m: f"{int(m[1]):02d}:00"),
    (r"(?<=\d\d:\d\d) oclock\b", ""),
    (r"(?<!\d):|:(?!\d)", " "),
    (r"[()\[\]\"/;*_]", " "),
    (r"([.,?!])[.,?!\s]*", r" \1 "),
    (r"(?<!\w)-|-(?!\w)", " "),
    (r"([&#$\u00a3\u20ac+=@<>])", r" \1 "),
]


_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]


def _apply(text: str) -> str:
    text = unicodedata.normalize("NFC", text.lower())
    text = " ".join(text.split())
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
        text = " ".join(text.split())
    return " ".join(_WORDS.get(word, word) for word in text.split())


@lru_cache(maxsize=65536)
def tokenise(text: str) -> tuple[str, ...]:
    """Return the normalised words of ``text``, or ``()`` if no word is left.

    Applied to its own result (joined by spaces), the function returns that result. The original
    text and the TRADE layout nearly always give the same words.
    """
    before, after = text, _apply(text)
    # Repeat, because a rule may apply to the result of a later one (``four o'clock``). The limit
    # prevents infinite loops on unusual input.
    for _ in range(4):
        if after == before:
            break
        before, after = after, _apply(after)
    return tuple(after.split())


def usual_spellings(
    values: Mapping[str, int], words: Callable[[str], Iterable[str]] = tokenise
) -> dict[str, str]:
    """Return the most frequent spelling of each value, if it differs from its joined words.

    ``values`` maps each value to the number of its labels. The result maps the words of a value,
    joined by spaces, to the spelling.
    """
    found: dict[str, Counter[str]] = {}
    for value, count in values.items():
        found.setdefault(" ".join(words(value)), Counter())[value] += count
    usual = {joined: max(sorted(of), key=of.__getitem__) for joined, of in sorted(found.items())}
    return {joined: value for joined, value in usual.items() if joined != value}
