"""Somebody else's comparison, a function or an object, checked whenever it answers."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison, TextPair
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.registry import blamed

#: The farthest that two texts are apart.
FARTHEST: Final = 2.0
#: Arguments of a function that is given the context, too.
_WITH_CONTEXT: Final = 3


class OwnFunction(Comparison):
    """A function of a suite: ``same(before, found)``, or ``same(before, found, asked)``.

    It returns whether both texts say the same, how far apart they are (from 0 to 2, held against
    the threshold), or a `Compared`.
    """

    def __init__(
        self, function: Callable[..., object], called: str, threshold: float | None
    ) -> None:
        self._function = function
        self._called = called
        self._threshold = threshold
        self._takes = _arguments(function, called)

    @property
    def name(self) -> str:
        """What the user called it, with the threshold."""
        held = "" if self._threshold is None else f"<={self._threshold:g}"
        return f"{self._called}{held}"

    @property
    def identity(self) -> str:
        """The name, and a digest of the function as it is written."""
        return f"{self.name}#{digest_of(self._function)}"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return what the function says."""
        del path
        arguments = (before, found, asked)[: self._takes]
        with blamed(f"the comparison {self._called!r}"):
            answer = self._function(*arguments)
        return self._taken(answer)

    def _taken(self, answer: object) -> Compared:
        if type(answer).__module__ == "numpy" and hasattr(answer, "item"):
            answer = answer.item()
        if isinstance(answer, bool):
            return Compared(answer)
        if isinstance(answer, Compared):
            return checked(answer, self._called)
        if not isinstance(answer, Real):
            raise UserError(
                f"the comparison {self._called!r} returned {_shown(answer)}: it must return True "
                f"or False, a distance from 0 to {FARTHEST:g}, or a Compared"
            )
        distance = float(answer)
        if self._threshold is None:
            raise UserError(
                f"the comparison {self._called!r} returned {distance:g}, a distance: say up to "
                "which one two replies are the same, such as NAME:threshold=0.5"
            )
        allowed = f"{distance:.2f} apart, {self._threshold:g} allowed"
        same = distance <= self._threshold
        return checked(Compared(same, distance, "" if same else allowed), self._called)


class CheckedComparison(Comparison):
    """Somebody else's object with a name and ``compare``."""

    def __init__(self, comparison: Any, where: str) -> None:
        self._wrapped = comparison
        self._name = str(comparison.name)
        if any(mark in self._name for mark in ", '\"\n"):
            raise UserError(
                f"{where}: the name {self._name!r} has a blank, a comma or a quote: a list of "
                "comparisons needs one without"
            )

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def identity(self) -> str:
        """What it says itself, else its name and a digest of its class."""
        own = getattr(self._wrapped, "identity", self._name)
        return str(own) if own != self._name else f"{own}#{digest_of(type(self._wrapped))}"

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return what it makes of the paths, where it says something about them."""
        own = getattr(self._wrapped, "align", None)
        if own is None:
            return found
        with blamed(f"align() of the comparison {self._name!r}"):
            aligned = own(before, found)
        if not isinstance(aligned, Outcome):
            raise UserError(
                f"align() of the comparison {self._name!r} returned {_shown(aligned)}: "
                "it must return an Outcome"
            )
        return aligned

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Let it get ready, where it does."""
        own = getattr(self._wrapped, "prepare", None)
        if own is not None:
            with blamed(f"prepare() of the comparison {self._name!r}"):
                own(pairs)

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return what it says."""
        with blamed(f"compare() of the comparison {self._name!r}"):
            answer = self._wrapped.compare(path, before, found, asked)
        if not isinstance(answer, Compared):
            raise UserError(
                f"compare() of the comparison {self._name!r} returned {_shown(answer)}: "
                "it must return a Compared"
            )
        return checked(answer, self._name)


def checked(answer: Compared, called: str) -> Compared:
    """Return an answer with a distance that can be one."""
    distance = answer.distance
    if distance is not None and not (math.isfinite(distance) and 0 <= distance <= FARTHEST):
        raise UserError(
            f"the comparison {called!r} returned the distance {distance:g}: it must be from 0 "
            f"(the same) to {FARTHEST:g}"
        )
    return answer


def _arguments(function: Callable[..., object], called: str) -> int:
    """Return how many arguments a function is given: both texts, and the context if it takes it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 2  # A builtin that says nothing about itself.
    for count in (_WITH_CONTEXT, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        required = [p for p in signature.parameters.values() if p.default is p.empty]
        return count if len(required) == count or count == 2 else 2
    raise UserError(
        f"the comparison {called!r} cannot be called with two texts: write "
        "def same(before, found), or def same(before, found, asked)"
    )


def digest_of(thing: object) -> str:
    """Return 12 hexadecimal digits of how something is written; of its name, where unknown."""
    try:
        text = inspect.getsource(thing)  # type: ignore[arg-type]  # it raises where it cannot
    except (OSError, TypeError):
        text = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _shown(answer: object) -> str:
    return "nothing" if answer is None else f"{shortened(repr(answer), 60)}"
