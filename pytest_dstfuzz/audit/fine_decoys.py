"""Fine decoys: changes of meaning as small as a slip, such as a lock might have missed.

Where a coarse decoy names another value or refuses a wish, one of these changes a cue into
another cue, a digit, one word of a name, a value into one that is spelled nearly so, a negation
into another word, or what a negation negates. They are made on top of real variants, which have
harmless slips of their own. That the request is another one follows from the labels: what is
changed is a value, the cue of one, or a negated wish for a thing that slots are about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.audit.decoys import Decoy, instead
from pytest_dstfuzz.audit.mentions import (
    KnownTurns,
    Mention,
    alike,
    spread,
    state_of,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult

#: Kinds of fine decoys, in the order in which they take turns.
FINE_KINDS: Final = ("cue", "degree", "digit", "name", "value_typo", "negation")
#: What a journey is called right before the cue of one of its ends.
_FROM: Final = re.compile(
    r"\b(?:leave|leaving|depart|departing|train|taxi|bus|flight|car|cab|ride|tickets?|trip)"
    r" (from) $",
    re.IGNORECASE,
)
_TO: Final = re.compile(
    r"\b(?:go|going|get|getting|travel|travell?ing|train|taxi|bus|flight|ride|headed|heading|over"
    r"|trip) (to) $",
    re.IGNORECASE,
)
#: What says the other end of a journey, so that the cue would be taken for a slip.
_ORIGIN: Final = re.compile(r"\bfrom\b", re.IGNORECASE)
_GOAL: Final = re.compile(
    r"\b(?:to(?! (?:get|go|leave|arrive|depart|find|book|be|travel|have|take|make|know|stay|see"
    r"|visit|help|ride|catch|buy)\b)|for|into|towards?)\b",
    re.IGNORECASE,
)
_WITH: Final = re.compile(r"\b(with) (?:(?:a|free|some|the) )*(\w+)", re.IGNORECASE)
_WITHOUT: Final = re.compile(r"\b(without) (?:(?:a|any|free|the) )*(\w+)", re.IGNORECASE)
_DO_NOT: Final = r"\b(?:do|does|did)(?: not| ?n['’]?t)"
_BE_NOT: Final = r"(?:\b(?:am|is|are)(?: not| ?n['’]?t)|['’](?:m|s|re) not)"
#: A negated wish for what begins right after it: group 1 or 2 is the negation.
_REFUSED: Final = re.compile(
    rf"(?:({_DO_NOT}) (?:need|want|require|have(?= to))|({_BE_NOT}) (?:looking for|interested in))"
    r"(?: to (?:book|have|include|reserve|find|get|be))?"
    r"(?: (?:a|an|the|free|in|my|this|that|for))* (?=\w)",
    re.IGNORECASE,
)
_LIMITED: Final = re.compile(
    rf"(?:{_DO_NOT}|{_BE_NOT}|\bnot) ((?:just|only|merely|simply|solely) )\w", re.IGNORECASE
)
_NOW: Final = re.compile(r"(?:\b(?:am|are|would)|['’](?:m|re|d)) (now) \w", re.IGNORECASE)
_CONTRACTED: Final = re.compile(r" ?n['’]?t$", re.IGNORECASE)
#: Other names of things that slots are about.
_THINGS: Final = frozenset(
    ("booking", "reservation", "room", "table", "ticket", "place", "lodging", "cab")
)
_NAME_WORD: Final = 4
#: Letters in which values differ that are taken for each other, at most; the least they have.
_NEAR, _SHORTEST = 2, 4
#: In so many turns a value is no slip of who labelled.
_SEEN: Final = 3


class FineDecoyMaker:
    """Makes fine decoys out of the turns of one report."""

    def __init__(self, known: KnownTurns) -> None:
        """Take the turns whose variants decoys are made of."""
        self._known = known
        things = _THINGS | known.domains
        self._things = things | {f"{name}s" for name in things}

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of this kind, or ``None`` where the text gives no occasion."""
        makers = {
            "cue": self._another_cue,
            "degree": self._other_reach,
            "digit": self._another_digit,
            "name": self._another_name,
            "value_typo": self._another_value,
            "negation": self._lost_negation,
        }
        made = next(iter(makers[kind](turn, variant.text)), None)
        return None if made is None else Decoy(kind, turn, variant, *made)

    def _another_cue(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Let a journey begin where it was to end, or a thing lack what it was to have."""
        for mention in self._known.mentions(turn, text):
            before, after = text[: mention.start], text[mention.end :]
            if not self._known.has_counterpart(mention.slot):
                continue
            for pattern, new, other in ((_FROM, "for", _GOAL), (_TO, "from", _ORIGIN)):
                cue = pattern.search(before)
                if cue and not other.search(f"{before[: cue.start(1)]}{after}"):
                    yield _put(text, *cue.span(1), new)
        for pattern, new in ((_WITH, "without"), (_WITHOUT, "with")):
            for match in pattern.finditer(text):
                if match[2].casefold() in self._known.features:
                    yield _put(text, *match.span(1), new)

    def _other_reach(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Refuse all of what was refused in part, or in part what was refused."""
        for match in _LIMITED.finditer(text):
            if self._known.bears(turn, text, match.end(1)):
                yield _put(text, *match.span(1), "")
        for _, end in self._refused(turn, text):
            yield _put(text, end, end, (" just", " only")[spread(text, 2)])

    def _lost_negation(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Mistype a negation into another word, or another word into a negation."""
        for match in _NOW.finditer(text):
            if self._known.bears(turn, text, match.end(1)):
                yield _put(text, *match.span(1), "not")
        for start, end in self._refused(turn, text):
            contracted = _CONTRACTED.search(text[start:end])
            if contracted:
                yield _put(text, start + contracted.start(), end, "")
            else:
                yield _put(text, end - len("not"), end, "now")

    def _another_digit(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Change one digit of a number or a time, into one that the slot is known to have."""
        for mention in self._known.mentioned_numbers(turn, text):
            others = [
                other
                for other in self._others(turn, mention, self._known.numbers)
                if len(other) == len(mention.value)
                and sum(one != two for one, two in zip(other, mention.value, strict=True)) == 1
                and other not in text
            ]
            yield from instead(text, mention, others)

    def _another_name(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Leave out the word that tells a name from others, or put another one's in its place."""
        for mention in self._known.mentions(turn, text):
            words = mention.value.casefold().split()
            if len(words) < 2 or any(map(str.isdigit, mention.value)):
                continue
            names = self._others(turn, mention, self._known.values)
            rest = " ".join(words[1:])
            bare = len(words[0]) >= _NAME_WORD and sum(
                name.casefold().endswith(f" {rest}") for name in names
            )
            if bare and bare > 1 and words[0] not in self._known.said_before(turn):
                first = re.match(r"\S+\s+", text[mention.start : mention.end])
                if first:
                    yield _put(text, mention.start, mention.start + first.end(), "")
            near = [name for name in names if _one_word_apart(words, name.casefold().split())]
            yield from instead(text, mention, near)

    def _another_value(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Mistype a value into another one of its slot."""
        for mention in self._known.mentions(turn, text):
            if len(mention.value) < _SHORTEST or any(map(str.isdigit, mention.value)):
                continue
            near = [
                other
                for other in self._others(turn, mention, self._known.values)
                if not alike(other, mention.value)
                and len(other) >= _SHORTEST
                and _distance(other.casefold(), mention.value.casefold()) <= _NEAR
            ]
            yield from instead(text, mention, near)

    def _others(self, turn: TurnResult, mention: Mention, values: dict[str, set[str]]) -> list[str]:
        """Return other values of a slot, which the turn has not."""
        taken = {value.casefold() for value in state_of(turn).values()}
        return sorted(
            value
            for value in values.get(mention.slot, ())
            if value.casefold() not in taken and self._known.seen(mention.slot, value) >= _SEEN
        )

    def _refused(self, turn: TurnResult, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a wish for what slots are about is negated."""
        values = [value.casefold() for value in state_of(turn).values() if len(value) > 2]
        for match in _REFUSED.finditer(text):
            words = re.match(r"\w+", text[match.end() :])
            wanted = text[match.end() :].casefold()
            named = words and words[0].casefold() in self._things | self._known.features
            if named or wanted.startswith(tuple(values)):
                yield match.span(1 if match[1] else 2)


def _put(text: str, start: int, end: int, new: str) -> tuple[str, str]:
    """Return a text with something else in a place, in its case, and what was done."""
    old = text[start:end]
    new = new.capitalize() if old[:1].isupper() else new
    return text[:start] + new + text[end:], f"{old.strip()!r} -> {new.strip()!r}"


def _one_word_apart(one: list[str], two: list[str]) -> bool:
    """Whether names differ in one word, and not in its spelling or in an article alone."""
    if len(one) != len(two):
        return False
    apart = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    return len(apart) == 1 and all(
        min(len(a), len(b)) >= _NAME_WORD and a[:2] != b[:2] for a, b in apart
    )


def _distance(one: str, two: str) -> int:
    """Return in how many letters two words differ (Levenshtein)."""
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, start=1):
        above, row[0] = row[0], i
        for j, other in enumerate(two, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (letter != other))
    return row[-1]
