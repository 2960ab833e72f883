"""Tables of slips: the frequencies of errors in letters and phrases."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.errors import DataError, nearest
from pytest_dstfuzz.files import read_versioned
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.perturb.words import match_case

#: Kind -> transformation and operator in records of edits.
LETTER_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "keyboard": ("char_replace", "keyboard"),
    "confusion": ("char_replace", "confusion"),
    "repeat": ("char_insert", "repeat"),
    "keyboard_insert": ("char_insert", "keyboard_insert"),
    "missing": ("char_drop", "any"),
    "swap": ("char_replace", "swap"),
    # Only for likelihoods: a letter that neither the keyboard nor a habit explains.
    "other": ("char_replace", "any"),
}
OTHER: Final = "other"

#: Maximum length of a word. Longer ones are addresses and tokens, not typed by hand.
LONGEST: Final = 40
_VOWELS: Final = frozenset("aeiou")
_LOW: Final = string.ascii_lowercase
#: The neighbour before the first and after the last letter.
_EDGE: Final = "^"


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


class Habits(NamedTuple):
    """The letters that people type by mistake for each letter."""

    #: Letter or digit -> the keys around it.
    keyboard: Mapping[str, str]
    #: Letter -> letters that people write instead, except adjacent keys.
    confusions: Mapping[str, str]


def letter_slips(word: str, habits: Habits, *, every: bool = False) -> Iterator[LetterSlip]:
    """Yield the slips of letters in a word as typed; no two give the same text.

    In a word of one letter, the letter is never replaced or dropped, since that would make another
    word. It can only be repeated, or get a letter from an adjacent key. Characters that are neither
    letters nor digits stay.

    Args:
        word: the word as typed.
        habits: the letters that people type by mistake for each letter.
        every: also yield all other letters, which neither keyboard nor habits explain.
    """
    low = word.lower()
    if len(low) != len(word) or len(low) > LONGEST:
        return
    size = _size(len(low))
    if len(low) > 1:
        yield from _missing(low, size)
        yield from _swaps(word, low, size)
        yield from _replaced(word, low, size, habits, every=every)
    yield from _inserted(word, low, size, habits, every=every)


def _missing(low: str, size: str) -> Iterator[LetterSlip]:
    for place, letter in enumerate(low):
        # In a run of equal letters, it is unknown which one is missing. Drop only the first.
        if not letter.isalnum() or (place and low[place - 1] == letter):
            continue
        before = low[place - 1] if place else _EDGE
        twice = low[place + 1 : place + 2] == letter
        yield LetterSlip(
            "missing",
            place,
            place + 1,
            "",
            (
                size,
                _place(place, len(low) - 1 - twice),
                "of two" if twice else "alone",
                f"class {_class(letter)}",
                f"letter {letter}",
                f"pair {before}{letter}",
            ),
        )


def _swaps(word: str, low: str, size: str) -> Iterator[LetterSlip]:
    for place in range(len(low) - 1):
        one, other = low[place], low[place + 1]
        if one == other or not (one.isalnum() and other.isalnum()):
            continue
        # Upper case stays in place: `Hte` for `The`.
        swapped = word[place + 1] + word[place]
        if word[place].isupper() and word[place + 1].islower():
            swapped = match_case(word[place : place + 2], swapped.lower())
        where = _place(place, len(low) - 2)
        classes = f"class {_class(one)}{_class(other)}"
        features = (size, where, classes, f"pair {one}{other}")
        yield LetterSlip("swap", place, place + 2, swapped, features)


def _replaced(
    word: str, low: str, size: str, habits: Habits, *, every: bool
) -> Iterator[LetterSlip]:
    for place, letter in enumerate(low):
        where = _place(place, len(low) - 1)
        upper = word[place].isupper()
        near = habits.keyboard.get(letter, "")
        confused = habits.confusions.get(letter, "") if letter in _LOW else ""
        for kind, letters in (("keyboard", near), ("confusion", confused)):
            for new in letters:
                features = (size, where, f"letter {letter}", f"pair {letter}{new}")
                after = new.upper() if upper else new
                yield LetterSlip(kind, place, place + 1, after, features)
        if every and letter in _LOW:
            for new in _LOW:
                if new not in near and new not in confused and new != letter:
                    after = new.upper() if upper else new
                    yield LetterSlip(OTHER, place, place + 1, after, ("replaced", size, where))


def _inserted(
    word: str, low: str, size: str, habits: Habits, *, every: bool
) -> Iterator[LetterSlip]:
    capitals = len(word) > 1 and word.isupper()
    for place in range(len(low) + 1):
        left = low[place - 1] if place else _EDGE
        right = low[place] if place < len(low) else _EDGE
        where = _place(place, len(low))
        # In a run of equal letters, it is unknown which one is repeated. Repeat only the last.
        if place and left.isalnum() and left != right:
            twice = "of two" if low[place - 2 : place - 1] == left else "alone"
            again = (size, where, twice, f"class {_class(left)}", f"letter {left}")
            yield LetterSlip("repeat", place, place, word[place - 1], again)
        near = habits.keyboard.get(left, "") + habits.keyboard.get(right, "")
        for new in dict.fromkeys(near):
            if new in (left, right):
                continue
            beside = left if new in habits.keyboard.get(left, "") else right
            features = (size, where, f"letter {new}", f"pair {beside}{new}")
            after = new.upper() if capitals else new
            yield LetterSlip("keyboard_insert", place, place, after, features)
        if every and (left in _LOW or right in _LOW):
            for new in _LOW:
                if new not in near and new not in (left, right):
                    after = new.upper() if capitals else new
                    yield LetterSlip(OTHER, place, place, after, ("inserted", size, where))


def _size(length: int) -> str:
    """Return the name of a word length; longer lengths are grouped."""
    if length < 5:
        return f"length {length}"
    return "length 5 to 6" if length < 7 else "length 7 to 8" if length < 9 else "length 9"


def _place(place: int, last: int) -> str:
    """Return the name of a place in a word: first, last, second, or inside."""
    if place == 0:
        return "first"
    return "last" if place >= last else "second" if place == 1 else "inside"


def _class(letter: str) -> str:
    return "v" if letter in _VOWELS else "c" if letter in _LOW else "d"


#: Version of the file; increased with every change of its layout.
FORMAT: Final = 1
WHAT: Final = "noise model"

#: Kinds of slips in words and in the gaps between them -> transformation and operator.
WORD_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "blank": ("char_drop", "blank"),
    "misspelling": ("word_replace", "misspelling"),
    "apostrophe": ("char_drop", "apostrophe"),
    "lower_i": ("char_replace", "case"),
    "lower_first": ("char_replace", "case"),
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
    #: Letter -> letters that people write instead.
    confusions: Mapping[str, str] = field(default_factory=dict)
    #: Kind of letter slips, or `blank` -> feature -> factor; 1 if missing.
    factors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Kind of word slips -> one or two words in lower case -> written form -> value.
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
            guess = nearest(name, SLIP_KINDS)
            hint = f"; did you mean {guess!r}?" if guess else ""
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
    """Return the content as plain values for JSON, with numbers of four significant digits."""
    found: dict[str, Any] = _rounded(to_json(file))
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
