"""Frequencies of slips: tables of errors in letters and phrases."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.errors import DataError, did_you_mean
from pytest_dstfuzz.files import read_versioned
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.perturb.words import equal_ends, match_case

#: Kind -> transformation and operator in records of edits.
LETTER_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "keyboard": ("char_replace", "keyboard"),
    "confusion": ("char_replace", "confusion"),
    "repeat": ("char_insert", "repeat"),
    "keyboard_insert": ("char_insert", "keyboard_insert"),
    "inserted": ("char_insert", "letter"),
    "split": ("char_insert", "blank"),
    "missing": ("char_drop", "any"),
    "swap": ("char_replace", "swap"),
}
#: The kind of two slips of letters in one word, and that of its known misspellings. The weights of
#: both depend on those of the word's slips of letters.
TWO: Final = "two"
MISSPELLING: Final = "misspelling"

#: Maximum length of a word. Longer ones are addresses and tokens, not typed by hand.
LONGEST: Final = 40
#: Minimum length of a word that people split by a blank.
_SPLIT: Final = 4
_VOWELS: Final = frozenset("aeiou")
_LOW: Final = string.ascii_lowercase
#: The neighbour before the first and after the last letter.
_EDGE: Final = "^"

#: Letter or digit -> the keys around it.
Keyboard = Mapping[str, str]


class LetterSlip(NamedTuple):
    """A slip: ``word[start:end]`` becomes ``after``, in the case of the word."""

    kind: str
    start: int
    end: int
    after: str
    #: Features from coarse to fine.
    features: tuple[str, ...]

    def put_into(self, word: str) -> str:
        """Return the word with the slip."""
        return word[: self.start] + self.after + word[self.end :]


def letter_slips(word: str, keyboard: Keyboard) -> Iterator[LetterSlip]:
    """Yield the slips of letters in a word as typed. Each slip gives a different text.

    In a word of one letter, the letter is never replaced or dropped, because the result would be
    another word. It can only be repeated, or get a neighbouring key as a second letter. Characters
    other than letters and digits stay.

    Args:
        word: the word as typed.
        keyboard: the keys around each letter or digit.
    """
    low = word.lower()
    if len(low) != len(word) or len(low) > LONGEST:
        return
    if len(low) > 1:
        yield from _changed(word, low, keyboard)
    capitals = len(word) > 1 and word.isupper()
    for place in range(len(low) + 1):
        for new in _insertable(low, place, keyboard):
            yield _inserted(word, low, place, new, keyboard, capitals=capitals)
    if len(low) >= _SPLIT and low.isalpha():
        for place in range(1, len(low)):
            yield _split(low, place)


def _changed(word: str, low: str, keyboard: Keyboard) -> Iterator[LetterSlip]:
    """Yield the missing, swapped and replaced letters of a word."""
    places = range(len(low))
    for place in places:
        # In a run of equal letters, it is unknown which one is missing. Drop only the first.
        if low[place].isalnum() and not (place and low[place - 1] == low[place]):
            yield _missing(low, place)
    for place in places[:-1]:
        one, other = low[place], low[place + 1]
        if one != other and one.isalnum() and other.isalnum():
            yield _swap(word, low, place)
    for place in places:
        near, letter = keyboard.get(low[place], ""), low[place]
        for new in dict.fromkeys(near + _LOW if letter in _LOW else near):
            if new != letter:
                yield _replaced(word, low, place, new, keyboard)


def slip_between(word: str, typed: str, keyboard: Keyboard) -> LetterSlip | None:
    """Return the letter slip between two lower-case texts, if there is one.

    >>> keyboard = {"o": "ip", "p": "o", "e": "wr", "n": "bm"}
    >>> found = slip_between("open", "opne", keyboard)
    >>> found.kind, found.start, found.after
    ('swap', 2, 'ne')
    >>> slip_between("open", "oven", keyboard).kind, slip_between("open", "pone", keyboard)
    ('confusion', None)
    """
    head, tail = equal_ends(word, typed)
    old, new = word[head : len(word) - tail], typed[head : len(typed) - tail]
    if len(word) > LONGEST or len(word) < 2 or not old + new:
        return None
    found: LetterSlip | None = None
    match len(old), len(new):
        case 1, 0 if old.isalnum():
            while head and word[head - 1] == old:
                head -= 1
            found = _missing(word, head)
        case 0, 1 if new == " " and len(word) >= _SPLIT and word.isalpha() and head < len(word):
            found = _split(word, head) if head else None
        case 0, 1 if _may_insert(word, head, new, keyboard):
            found = _inserted(word, word, head, new, keyboard, capitals=False)
        case 1, 1 if new in keyboard.get(old, "") or (old in _LOW and new in _LOW):
            found = _replaced(word, word, head, new, keyboard)
        case 2, 2 if old == new[::-1] and old.isalnum():
            found = _swap(word, word, head)
    return found


def _missing(low: str, place: int) -> LetterSlip:
    letter = low[place]
    before = low[place - 1] if place else _EDGE
    twice = low[place + 1 : place + 2] == letter
    features = (
        _size(len(low)),
        _place(place, len(low) - 1 - twice),
        "of two" if twice else "alone",
        f"class {_class(letter)}",
        f"letter {letter}",
        f"pair {before}{letter}",
    )
    return LetterSlip("missing", place, place + 1, "", features)


def _swap(word: str, low: str, place: int) -> LetterSlip:
    one, other = low[place], low[place + 1]
    # Upper case stays in place: `Hte` for `The`.
    swapped = word[place + 1] + word[place]
    if word[place].isupper() and word[place + 1].islower():
        swapped = match_case(word[place : place + 2], swapped.lower())
    classes = f"class {_class(one)}{_class(other)}"
    features = (_size(len(low)), _place(place, len(low) - 2), classes, f"pair {one}{other}")
    return LetterSlip("swap", place, place + 2, swapped, features)


def _replaced(word: str, low: str, place: int, new: str, keyboard: Keyboard) -> LetterSlip:
    letter = low[place]
    kind = "keyboard" if new in keyboard.get(letter, "") else "confusion"
    where = _place(place, len(low) - 1)
    classes = f"class {_class(letter)}{_class(new)}"
    echo = _echo(low[max(place - 1, 0) : place + 2], new, low)
    size = _size(len(low))
    features = (size, where, echo, classes, f"letter {letter}", f"pair {letter}{new}")
    after = new.upper() if word[place].isupper() else new
    return LetterSlip(kind, place, place + 1, after, features)


def _insertable(low: str, place: int, keyboard: Keyboard) -> Iterable[str]:
    """Return the letters that a slip can insert at a place, in a fixed order."""
    left, right = low[place - 1 : place], low[place : place + 1]
    found = keyboard.get(left, "") + keyboard.get(right, "")
    if any(side in _LOW for side in (left, right) if side):
        found += _LOW
    # In a run of equal letters, it is unknown which one is repeated. Repeat only the last.
    again = left if left.isalnum() and left != right else ""
    return [*again, *(new for new in dict.fromkeys(found) if new not in (left, right))]


def _may_insert(low: str, place: int, new: str, keyboard: Keyboard) -> bool:
    """Return whether a letter is one of `_insertable`."""
    left, right = low[place - 1 : place], low[place : place + 1]
    if new in (left, right):
        return new == left != right and new.isalnum()
    if new in keyboard.get(left, "") or new in keyboard.get(right, ""):
        return True
    return new in _LOW and any(side in _LOW for side in (left, right) if side)


def _inserted(
    word: str, low: str, place: int, new: str, keyboard: Keyboard, *, capitals: bool
) -> LetterSlip:
    left = low[place - 1] if place else _EDGE
    right = low[place] if place < len(low) else _EDGE
    size, where = _size(len(low)), _place(place, len(low))
    if new == left:
        twice = "of two" if low[place - 2 : place - 1] == left else "alone"
        again = (size, where, twice, f"class {_class(left)}", f"letter {left}")
        return LetterSlip("repeat", place, place, word[place - 1], again)
    after = new.upper() if capitals else new
    if new in keyboard.get(left, "") or new in keyboard.get(right, ""):
        beside = left if new in keyboard.get(left, "") else right
        near = (size, where, f"letter {new}", f"pair {beside}{new}")
        return LetterSlip("keyboard_insert", place, place, after, near)
    echo = _echo(low[max(place - 2, 0) : place + 2], new, low)
    features = (size, where, echo, f"class {_class(new)}", f"letter {new}", f"pair {left}{new}")
    return LetterSlip("inserted", place, place, after, features)


def _split(low: str, place: int) -> LetterSlip:
    where = "first" if place == 1 else "last" if place == len(low) - 1 else "inside"
    return LetterSlip("split", place, place, " ", (_size(len(low)), where))


def _echo(around: str, new: str, low: str) -> str:
    """Return whether a new letter repeats a neighbour, or another letter of the word."""
    return "letter around" if new in around else "letter of word" if new in low else "new letter"


def _size(length: int) -> str:
    """Return the name for the length of a word. Long words share one name."""
    if length < 5:
        return f"length {length}"
    return "length 5 to 6" if length < 7 else "length 7 to 8" if length < 9 else "length 9"


def _place(place: int, last: int) -> str:
    """Return the name for a place in a word: first, last, second, or inside."""
    if place == 0:
        return "first"
    return "last" if place >= last else "second" if place == 1 else "inside"


def _class(letter: str) -> str:
    return "v" if letter in _VOWELS else "c" if letter in _LOW else "d"


#: Version of the file; increased with every change of its layout.
FORMAT: Final = 2
WHAT: Final = "noise model"

#: Kinds of slips in words and in the gaps between them -> transformation and operator.
WORD_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "blank": ("char_drop", "blank"),
    MISSPELLING: ("word_replace", "misspelling"),
    TWO: ("word_replace", "misspelling"),
    "apostrophe": ("char_drop", "apostrophe"),
    "lower_i": ("char_replace", "case"),
    "lower_first": ("char_replace", "case"),
    "lower_name": ("char_replace", "case"),
    "full_stop": ("char_drop", "full_stop"),
    "texting": ("word_replace", "texting"),
    "contraction": ("word_replace", "contraction"),
    "doubled": ("word_insert", "repeat"),
    "dropped": ("word_drop", "stop_word"),
    "emoji": ("word_insert", "emoji"),
    "homophone": ("word_replace", "homophone"),
    "filler": ("word_insert", "filler"),
    "restart": ("word_insert", "repeat"),
}
#: All kinds -> transformation and operator in records of edits.
SLIP_KINDS: Final[Mapping[str, tuple[str, str]]] = {**LETTER_KINDS, **WORD_KINDS}


@dataclass(frozen=True, slots=True)
class NoiseKind:
    """One kind of slips and its share."""

    name: str
    #: Share of all slips, in [0, 1]; the shares of a model have the sum 1.
    share: float
    #: Sum of the table values of a word's slips, as the mean over the words of the fitted texts.
    per_word: float

    @property
    def scale(self) -> float:
        """The factor from a table value to slips per word, at slip rate 1."""
        return self.share / self.per_word if self.per_word else 0.0


@dataclass(frozen=True, slots=True)
class Tables:
    """The lookup tables of all kinds."""

    #: Letter or digit -> adjacent keys.
    keyboard: Mapping[str, str] = field(default_factory=dict)
    #: Kind of letter slips, or `blank` -> feature -> factor; 1 if missing.
    factors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Kind of word slips -> one or two words in lower case -> written form -> value. The value of a
    #: misspelling is its share of the slips of the word.
    words: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The content of a model file."""

    format: int
    name: str
    #: Expected slips per word, if a run sets no other rate.
    slip_rate: float
    #: Names of the texts and lists behind the model, for people.
    sources: tuple[str, ...]
    kinds: tuple[NoiseKind, ...]
    tables: Tables


def read_model_file(path: Path) -> ModelFile:
    """Read the file of a noise model.

    Raises:
        DataError: the file cannot be read or is not a valid noise model; the message names the
            place.
    """
    content = read_versioned(path, WHAT, "format", FORMAT)
    try:
        found = from_json(ModelFile, content)
        _check(found)
    except ValueError as error:
        raise DataError(f"{path} is not a {WHAT}: {error}") from None
    return found


def _check(file: ModelFile) -> None:
    """Raise a ``ValueError`` for values that a run cannot use."""
    _between("slip_rate", file.slip_rate, 1.0)
    _check_kinds(file)
    for name, factors in file.tables.factors.items():
        for feature, factor in factors.items():
            _between(f"tables.factors: {feature!r} of {name!r}", factor)
    for name, words in file.tables.words.items():
        for word, forms in words.items():
            for form, value in forms.items():
                _between(f"tables.words: {word!r} -> {form!r} of {name!r}", value)


def _check_kinds(file: ModelFile) -> None:
    names = [kind.name for kind in file.kinds]
    for name in names:
        if name not in SLIP_KINDS:
            hint = did_you_mean(name, SLIP_KINDS, inside=True)
            raise ValueError(f"kinds: unknown kind {name!r}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"kinds: {name!r} is there twice")
    for kind in file.kinds:
        _between(f"kinds: share of {kind.name!r}", kind.share, 1.0)
        _between(f"kinds: per_word of {kind.name!r}", kind.per_word)
    total = math.fsum(kind.share for kind in file.kinds)
    if abs(total - 1.0) > 1e-3:
        raise ValueError(f"kinds: the shares add up to {total:.3f}, but must add up to 1")


def _between(what: str, value: float, most: float = 1e9) -> None:
    if not 0.0 <= value <= most:
        upper = f" and at most {most:g}" if most <= 1.0 else ""
        raise ValueError(f"{what} is {value:g}, but must be at least 0{upper}")


def plain(file: ModelFile) -> dict[str, Any]:
    """Return the content as plain JSON values. Numbers have four significant digits."""
    found: dict[str, Any] = _rounded(to_json(file))
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
