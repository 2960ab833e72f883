"""Nothing that reads what users and bots say takes more than linear time, whatever they say."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import pytest_dstfuzz
from pytest_dstfuzz.comparisons.embedding import (
    SameMeaning,
    distance,
    load_shipped_vectors,
    meaning_shift,
)
from pytest_dstfuzz.comparisons.facts import SameEntities, SameNames, SameNumbers, without_slips
from pytest_dstfuzz.comparisons.polarity import SamePolarity, is_fallback, polarity
from pytest_dstfuzz.dialogue.dates import instant_of
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.number_words import with_digits
from pytest_dstfuzz.dialogue.quantities import quantities, without_quantities
from pytest_dstfuzz.dialogue.readers.conversion import chat_form
from pytest_dstfuzz.dialogue.readers.source import Oddities
from pytest_dstfuzz.errors import UserError, mask_credentials
from pytest_dstfuzz.perturb.edits import without
from pytest_dstfuzz.perturb.words import Edit, take_apart
from pytest_dstfuzz.testing import check_relation

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGVTALRM"), reason="no clock interrupts a regular expression here"
)
#: Rooms of the package whose regular expressions meet texts of users and bots.
ROOMS: Final = ("dialogue", "comparisons", "perturb", "relations", "kinds", "weaknesses")
LENGTH: Final = 100_000
#: Seconds of the processor for one text. Linear code takes less than a tenth, and code of the
#: square takes minutes.
LIMIT: Final = 3.0
PIECES: Final = (
    *("a", "a ", "a-", "A", "Ada ", "1", "1 ", "1,", "1.5 ", "@", "a@", "a@b.", ".", "? ", "?a"),
    *("Sorry, ", "sorry, but ", "no, ", "not ", "closed ", "if a ", "one hundred ", "second "),
    *("May ", "may 5 ", "half past ", "1:30 ", "Monday to ", "\n", " ", '"', "(", "[", "/a", "#1 "),
    *("<tool_call>{", "www.", "http://", "//.", "$", "don't ", "é", "_"),
)


class TooSlow(BaseException):
    """Not caught by anything that handles errors."""


@contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def text_of(piece: str, end: str = "") -> str:
    return (piece * (LENGTH // len(piece) + 1))[: LENGTH - len(end)] + end


def slow_pieces(read: Callable[[str], object]) -> list[str]:
    found = []
    for piece in PIECES:
        for end in ("", "+!"):
            try:
                with limited():
                    read(text_of(piece, end))
            except TooSlow:
                found.append(piece + end)
    return found


def patterns_in(thing: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(thing, re.Pattern):
        yield thing
    elif isinstance(thing, dict):
        yield from patterns_in([*thing, *thing.values()])
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from patterns_in(part)


def all_patterns() -> dict[str, re.Pattern[str]]:
    """Return the name of each regular expression of the rooms -> the expression."""
    found: dict[str, re.Pattern[str]] = {}
    for room in ROOMS:
        package = importlib.import_module(f"{pytest_dstfuzz.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.ispkg and "word_sources" not in module.name:
                for name, value in vars(importlib.import_module(module.name)).items():
                    if name.startswith("__"):
                        continue
                    for number, pattern in enumerate(patterns_in(value)):
                        if isinstance(pattern.pattern, str) and pattern not in found.values():
                            found[f"{module.name.partition('.')[2]}.{name}[{number}]"] = pattern
    return found


PATTERNS: Final = all_patterns()


def uses_of(name: str) -> set[str]:
    """Return the methods of an expression that its module calls; all if it is within others."""
    module, _, called = name.partition("[")[0].rpartition(".")
    source = inspect.getsource(importlib.import_module(f"{pytest_dstfuzz.__name__}.{module}"))
    return {*re.findall(rf"\b{called}\.(\w+)\(", source)} - {"groups", "pattern"} or {"finditer"}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PATTERNS)
def test_every_expression_is_linear(name: str) -> None:
    uses, pattern = uses_of(name), PATTERNS[name]
    anchored = uses <= {"match", "fullmatch"}

    def read(text: str) -> None:
        if anchored:
            pattern.match(text)
            pattern.fullmatch(text)
        else:
            for _ in pattern.finditer(text):
                pass

    assert slow_pieces(read) == []


def compared(comparison: Any) -> Callable[[str], object]:
    asked = Context((Exchange("", "Are you open?"),))
    return lambda text: comparison.compare("reply", text, text[:-7] + " or so", asked)


def slips(text: str) -> str:
    one, other = (Context((Exchange("", said),)) for said in (text, text[:-7] + " or so"))
    return without_slips(text, one, other)


def calls_in(text: str) -> object:
    said = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": f"Ah. {text}"}]
    return chat_form(said, "here", Oddities())


READERS: Final[dict[str, Callable[[str], object]]] = {
    "is_fallback": is_fallback,
    "polarity": polarity,
    "quantities": quantities,
    "without_quantities": lambda text: without_quantities(text, "#"),
    "with_digits": with_digits,
    "instant": instant_of,
    "take_apart": take_apart,
    "numbers": compared(SameNumbers()),
    "names": compared(SameNames()),
    "entities": compared(SameEntities()),
    "same polarity": compared(SamePolarity()),
    "slips": slips,
    "message": lambda text: str(UserError(text)),
    "address": mask_credentials,
    "calls in a text": calls_in,
}


def words_of(size: int, start: int) -> str:
    """Return a text of many different words."""
    letters = "abcdefghijklmnopqrst"
    words = (
        "".join(letters[n // 20**digit % 20] for digit in range(4))
        for n in range(start, start + size)
    )
    return " ".join(words)


BETWEEN_TEXTS: Final[dict[str, Callable[[str, str], object]]] = {
    "distance": distance,
    "shift": meaning_shift,
    **{
        type(one).__name__: lambda before, found, one=one: one.compare(
            "reply", before, found, Context((Exchange("", "Are you open?"),))
        )
        for one in (SameNumbers(), SameNames(), SameEntities(), SamePolarity(), SameMeaning())
    },
}


@pytest.mark.parametrize("name", BETWEEN_TEXTS)
@pytest.mark.parametrize("size", [3500, 20_000])
def test_two_texts_of_many_different_words_take_linear_time(name: str, size: int) -> None:
    load_shipped_vectors()
    with limited(2 * LIMIT):
        BETWEEN_TEXTS[name](words_of(size, 0), words_of(size, 50_000))


@pytest.mark.parametrize("read", [distance, meaning_shift])
def test_two_texts_of_many_different_words_take_little_memory(
    read: Callable[[str, str], float],
) -> None:
    load_shipped_vectors()
    tracemalloc.start()
    try:
        read(words_of(3900, 7), words_of(3900, 50_007))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The matrices of all pairs of words take 180 MB.
    assert peak < 60 * 2**20


#: Each took more than a minute.
WORST: Final = (
    *(("is_fallback", "Sorry, "), ("quantities", "@"), ("quantities", "a-"), ("polarity", "a")),
    *(("slips", "a a "), ("with_digits", "second "), ("quantities", "May "), ("names", "Ada ")),
)


@pytest.mark.parametrize(("name", "piece"), WORST)
def test_the_worst_texts_take_linear_time(name: str, piece: str) -> None:
    with limited():
        READERS[name](text_of(piece))


@pytest.mark.nightly
@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_linear(name: str) -> None:
    assert slow_pieces(READERS[name]) == []


def test_the_clock_interrupts() -> None:
    with pytest.raises(TooSlow), limited():
        re.fullmatch(r"(a|a)*", "a" * 40 + "b")
    assert sys.exc_info() == (None, None, None)


def test_a_long_turn_with_many_questions_is_rewritten_in_time(tmp_path: Path) -> None:
    # More than 40 seconds when each of some 6,000 changes read the whole text.
    asked = "I want it in the north, please. " + "what is it? " * 825
    turn = {"user": asked, "state": {"hotel-area": "north"}}
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"dialogue_id": "long", "turns": [turn]}), encoding="utf-8")
    with limited(20.0):
        assert check_relation("indirect-question", path).rewrites


def test_an_edit_of_thousands_is_dropped_in_time() -> None:
    edits = [Edit("swap", "words", 4 * place, 4 * place + 2, "ab", "ba") for place in range(2_400)]
    with limited():
        assert without(edits, [7]) == (*edits[:7], *edits[8:])
