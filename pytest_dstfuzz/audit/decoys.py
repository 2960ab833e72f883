"""Decoys: variants whose meaning was changed on purpose. They test the attention of a judge."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import stream

# Punctuation inside a time or a number does not end a clause.
_CLAUSE = re.compile(r"(?:[^.,;:!?]|[.,;:!?](?=\S))*")
_YES_NO = ("yes", "no", "true", "false")


@dataclass(frozen=True, slots=True)
class Mention:
    """A slot that a turn filled, with the position of its value. The value occurs once."""

    slot: str
    value: str
    start: int
    end: int


class KnownTurns:
    """Facts about the turns of one report that are needed to make decoys.

    Attributes:
        values: slot -> its values, except yes, no, ``dontcare``, single characters and integers.
        numbers: slot -> its values that contain a digit.
        features: words from the names of yes/no slots, such as ``internet``.
        domains: first parts of the slot names.
    """

    def __init__(self, turns: Sequence[TurnResult]) -> None:
        """Collect the values of every slot, and the state after every turn."""
        self.values: dict[str, set[str]] = {}
        self.numbers: dict[str, set[str]] = {}
        self.features: set[str] = set()
        self.domains: set[str] = set()
        self._earlier: dict[tuple[str, int], Mapping[str, str]] = {}
        self._said: dict[tuple[str, int], str] = {}
        self._seen: Counter[tuple[str, str]] = Counter()
        for turn in turns:
            state = state_of(turn)
            self._earlier[turn.dialogue_id, turn.turn_index] = state
            self._said[turn.dialogue_id, turn.turn_index] = f"{turn.system}\n{turn.user}"
            self._seen.update(state.items())
            for slot, value in state.items():
                self.domains.add(domain_of(slot).casefold())
                if value.casefold() in _YES_NO:
                    self.features.update(re.findall(r"\w{4,}", slot.partition("-")[2].casefold()))
                    continue
                if value != DONTCARE and len(value) > 1 and not value.isdigit():
                    self.values.setdefault(slot, set()).add(value)
                if any(map(str.isdigit, value)):
                    self.numbers.setdefault(slot, set()).add(value)

    def seen(self, slot: str, value: str) -> int:
        """Return in how many turns a slot has a value. Rare values may be labelling errors."""
        return self._seen[slot, value]

    def has_counterpart(self, slot: str) -> bool:
        """Return whether another slot of the domain has at least two values of this slot."""
        values = self.values.get(slot, set())
        return any(
            other != slot
            and domain_of(other) == domain_of(slot)
            and len(values & self.values[other]) > 1
            for other in self.values
        )

    def said_before(self, turn: TurnResult) -> str:
        """Return the text of the dialogue before a user utterance, in lower case."""
        earlier = (self._said.get((turn.dialogue_id, i), "") for i in range(turn.turn_index))
        return "\n".join((*earlier, turn.system)).casefold()

    def bears(self, turn: TurnResult, text: str, start: int) -> bool:
        """Return whether the clause from ``start`` has a value of the turn or a feature."""
        clause = _CLAUSE.match(text.casefold(), start)
        words = f" {clause.group() if clause else ''} "
        names = [value.casefold() for value in state_of(turn).values() if len(value) > 2]
        return any(re.search(rf"(?<!\w){re.escape(name)}", words) for name in names) or any(
            word in self.features for word in words.split()
        )

    def mentions(self, turn: TurnResult, text: str) -> Iterator[Mention]:
        """Yield this turn's new slots with a known value that occurs once in the text."""
        return self._found(turn, text, self.values)

    def mentioned_numbers(self, turn: TurnResult, text: str) -> Iterator[Mention]:
        """Yield this turn's new slots with a numeric value that occurs once in the text."""
        return self._found(turn, text, self.numbers)

    def _found(
        self, turn: TurnResult, text: str, values: Mapping[str, set[str]]
    ) -> Iterator[Mention]:
        earlier = self._earlier.get((turn.dialogue_id, turn.turn_index - 1))
        before = {} if turn.turn_index == 0 else earlier
        if before is None:
            return
        state = state_of(turn)
        for slot, value in state.items():
            if before.get(slot) == value or value not in values.get(slot, ()):
                continue
            if sum(value == other for other in state.values()) > 1:
                continue
            found = list(re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE))
            if len(found) == 1 and value.casefold() in turn.user.casefold():
                yield Mention(slot, value, found[0].start(), found[0].end())


def state_of(turn: TurnResult) -> Mapping[str, str]:
    """Return the label of a turn, or the clean prediction if the turn has no label."""
    if turn.label is not None:
        return turn.label
    return turn.clean_state if turn.clean_state is not None else {}


def domain_of(slot: str) -> str:
    """Return the domain of a slot, the first part of its name."""
    return slot.split("-", 1)[0]


def alike(one: str, two: str) -> bool:
    """Return whether two values may be spellings of the same value."""
    first, second = one.casefold().split(), two.casefold().split()
    return bool(set(first) & set(second)) or one[:4].casefold() == two[:4].casefold()


def spread(text: str, count: int) -> int:
    """Return a number from 0 to ``count - 1`` that depends only on the text. It varies choices."""
    return sum(map(ord, text)) % count


#: Kinds of decoys, in the order in which they alternate.
KINDS = ("value", "exchange", "negation_added", "negation_removed", "dropped")
_WISH = re.compile(
    r"\b(i|we)( would|'d)? (want|need|like|prefer|am looking for|are looking for)\b", re.IGNORECASE
)
_NEGATIONS = re.compile(
    r"(?<=\bdo)( not\b|n'?t\b)|(?<=\bdoes)( not\b|n'?t\b)|(?<=\bwould)( not\b|n'?t\b)"
    r"|(?<=\bshould)( not\b|n'?t\b)|\bnot (?=\w)",
    re.IGNORECASE,
)
_CUES = re.compile(
    r"(?:\b(?:the|a|an|in|on|at|by|from|to|for|of|after|before|until|around|about|called|named"
    r"|near|with)\s+)*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decoy:
    """A variant whose meaning was changed on purpose."""

    kind: str
    turn: TurnResult
    variant: VariantResult
    #: Text of the variant with the change.
    text: str
    #: Description of the change, for the key.
    what: str
    #: Stated slot changes, if the relation expects a change.
    stated: tuple[str, ...] = ()


class DecoyMaker:
    """Makes decoys with a plain change of meaning from the turns of one report."""

    def __init__(self, known: KnownTurns) -> None:
        """Store the turns of the report."""
        self._known = known

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of a kind, or ``None`` if the text does not allow one."""
        makers = {
            "value": self._another_value,
            "exchange": self._exchanged,
            "negation_added": self._negated,
            "negation_removed": self._affirmed,
            "dropped": self._dropped,
        }
        made = next(iter(makers[kind](turn, variant.text)), None)
        if made is None or made[0] == variant.text:
            return None
        return Decoy(kind, turn, variant, *made)

    def _another_value(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text with a value replaced by another value of its slot."""
        for mention in self._known.mentions(turn, text):
            taken = {value.casefold() for value in state_of(turn).values()}
            others = sorted(
                value
                for value in self._known.values.get(mention.slot, ())
                if value.casefold() not in taken
                and not alike(value, mention.value)
                and value.casefold() not in text.casefold()
            )
            yield from instead(text, mention, others)

    def _exchanged(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text with the values of two slots swapped, such as both ends of a trip."""
        mentions = list(self._known.mentions(turn, text))
        for index, one in enumerate(mentions):
            for two in mentions[index + 1 :]:
                shared = self._known.values.get(one.slot, set()) & self._known.values.get(
                    two.slot, set()
                )
                apart = one.end < two.start or two.end < one.start
                if not apart or len(shared) < 2 or domain_of(one.slot) != domain_of(two.slot):
                    continue
                left, right = sorted((one, two), key=lambda mention: mention.start)
                yield (
                    text[: left.start]
                    + text[right.start : right.end]
                    + text[left.end : right.start]
                    + text[left.start : left.end]
                    + text[right.end :],
                    f"{one.slot} <-> {two.slot}",
                )

    def _dropped(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text without a value and the preposition and article before it."""
        for mention in self._known.mentions(turn, text):
            if mention.value.casefold() in turn.system.casefold():
                continue  # A bare "yes" would still confirm the value.
            cue = _CUES.search(text[: mention.start])
            start = cue.start() if cue else mention.start
            rest = f"{text[:start].rstrip()} {text[mention.end :].lstrip()}".strip()
            if len(rest.split()) >= 3:
                yield rest, f"{mention.slot}: {text[start : mention.end]!r} left out"

    def _negated(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text with a wish changed to a refusal of the value."""
        for match in _WISH.finditer(text):
            who, modal, verb = match.groups()
            refused = re.match(r"\W+not\b", text[match.end() :], re.IGNORECASE)
            if refused or not self._known.bears(turn, text, match.end()):
                continue
            if verb.lower().startswith(("am ", "are ")):
                be, rest = verb.split(" ", 1)
                said = f"{who} {be} not {rest}"
            elif modal:
                said = f"{who} would not {verb}"
            else:
                said = f"{who} do not {verb}"
            yield (
                text[: match.start()] + said + text[match.end() :],
                f"{match.group()!r} -> {said!r}",
            )

    def _affirmed(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text without a negation before a value or a feature."""
        if DONTCARE in state_of(turn).values():
            return
        for match in _NEGATIONS.finditer(text):
            if self._known.bears(turn, text, match.end()):
                rest = text[: match.start()] + text[match.end() :]
                yield rest, f"{match.group().strip()!r} left out"


def instead(text: str, mention: Mention, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text with another value in place of the mention, and a description."""
    if others:
        # The choice depends only on the text, and varies over the values.
        other = others[spread(text, len(others))]
        other = other.title() if text[mention.start].isupper() else other
        yield (
            text[: mention.start] + other + text[mention.end :],
            f"{mention.slot}: {mention.value} -> {other}",
        )


#: Kinds of fine decoys, in the order in which they alternate.
FINE_KINDS: Final = ("cue", "degree", "digit", "name", "value_typo", "negation")
#: Words for a journey, directly before the preposition of its start or its end.
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
#: The other end of a journey. If a text names it, a wrong preposition looks like a typo.
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
#: A negated wish for the thing that follows. Group 1 or 2 is the negation.
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
#: Generic names of things that slots describe.
_THINGS: Final = frozenset(
    ("booking", "reservation", "room", "table", "ticket", "place", "lodging", "cab")
)
_NAME_WORD: Final = 4
#: Maximum edit distance of two values that can be confused, and their minimum length.
_NEAR, _SHORTEST = 2, 4
#: A value in at least this many turns is not a labelling error.
_SEEN: Final = 3


class FineDecoyMaker:
    """Makes fine decoys, which change the meaning by an edit as small as a slip."""

    def __init__(self, known: KnownTurns) -> None:
        """Store the turns of the report, and the words for things that users ask for."""
        self._known = known
        things = _THINGS | known.domains
        self._things = things | {f"{name}s" for name in things}

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of a kind, or ``None`` if the text does not allow one."""
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
        """Yield the text with "from" and "to" swapped, or with "without" instead of "with"."""
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
        """Yield the text with "not" changed to "not just", or vice versa."""
        for match in _LIMITED.finditer(text):
            if self._known.bears(turn, text, match.end(1)):
                yield _put(text, *match.span(1), "")
        for _, end in self._refused(turn, text):
            yield _put(text, end, end, (" just", " only")[spread(text, 2)])

    def _lost_negation(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Yield the text with "not" mistyped as another word, or vice versa."""
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
        """Yield the text with one changed digit, which gives another known value."""
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
        """Yield the text with one word of a name deleted or replaced, which gives another name."""
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
        """Yield the text with a value mistyped as another value of its slot."""
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
        """Return other values of the slot that enough labels confirm."""
        taken = {value.casefold() for value in state_of(turn).values()}
        return sorted(
            value
            for value in values.get(mention.slot, ())
            if value.casefold() not in taken and self._known.seen(mention.slot, value) >= _SEEN
        )

    def _refused(self, turn: TurnResult, text: str) -> Iterator[tuple[int, int]]:
        """Yield the span of each negation that refuses a value, a feature or a topic."""
        values = [value.casefold() for value in state_of(turn).values() if len(value) > 2]
        for match in _REFUSED.finditer(text):
            words = re.match(r"\w+", text[match.end() :])
            wanted = text[match.end() :].casefold()
            named = words and words[0].casefold() in self._things | self._known.features
            if named or wanted.startswith(tuple(values)):
                yield match.span(1 if match[1] else 2)


def _put(text: str, start: int, end: int, new: str) -> tuple[str, str]:
    """Return the text with a span replaced in the same case, and a description of the change."""
    old = text[start:end]
    new = new.capitalize() if old[:1].isupper() else new
    return text[:start] + new + text[end:], f"{old.strip()!r} -> {new.strip()!r}"


def _one_word_apart(one: list[str], two: list[str]) -> bool:
    """Return whether two names differ in one word, and not only in spelling or an article."""
    if len(one) != len(two):
        return False
    apart = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    return len(apart) == 1 and all(
        min(len(a), len(b)) >= _NAME_WORD and a[:2] != b[:2] for a, b in apart
    )


def _distance(one: str, two: str) -> int:
    """Return the Levenshtein distance of two words."""
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, start=1):
        above, row[0] = row[0], i
        for j, other in enumerate(two, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (letter != other))
    return row[-1]


#: Kinds of decoys for stated changes, in the order in which they alternate.
STATED_KINDS = ("stated_value", "stated_slot", "stated_nothing", "stated_elsewhere")
NOTHING = "no slot changes"


class StatedDecoyMaker:
    """Makes decoys for relations that expect a change. Each decoy states a wrong change."""

    def __init__(self, known: KnownTurns, turns: Sequence[TurnResult]) -> None:
        """Store the facts of the report, and the expected changes of all rewrites."""
        self._known = known
        self._others = [variant.expected for turn in turns for variant in turn.variants]

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of a kind, or ``None`` if no wrong statement of this kind is possible."""
        makers = {
            "stated_value": self._value,
            "stated_slot": self._slot,
            "stated_nothing": self._nothing,
            "stated_elsewhere": self._elsewhere,
        }
        found = next(iter(makers[kind](turn, variant)), None)
        if found is None:
            return None
        stated = tuple(found) or (NOTHING,)
        what = f"stated: {'; '.join(stated)}"
        return Decoy(kind, turn, variant, variant.text, what, stated)

    def _value(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:
        """Yield the expected changes with one value replaced by a value not in the texts."""
        for number, delta in enumerate(variant.expected):
            said = f"{turn.system} {turn.user} {variant.text}".casefold()
            others = sorted(
                value
                for value in self._known.values.get(delta.slot, ())
                if value != delta.before
                and value not in delta.after.values
                and value.casefold() not in said
            )
            if others:
                value = others[spread(variant.text, len(others))]
                after = replace(delta.after, values=(value,), anything_but=False)
                stated = list(map(str, variant.expected))
                stated[number] = str(replace(delta, after=after))
                yield stated

    def _slot(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:
        """Yield an expected change with the new value in another slot."""
        stated = {delta.slot for delta in variant.expected}
        state = turn.clean_state or state_of(turn)
        for delta in variant.expected:
            wanted = set(delta.after.values)

            def fits(slot: str, wanted: set[str | None] = wanted) -> bool:
                return bool(wanted & self._known.values.get(slot, set()))

            # Prefer a slot that is known to have such a value.
            for slot, value in sorted(state.items(), key=lambda item: (not fits(item[0]), item)):
                if slot not in stated and value not in delta.after:
                    yield (str(replace(delta, slot=slot, before=value)),)

    def _nothing(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:  # noqa: ARG002 - as the others
        """Yield the statement that nothing changes."""
        if variant.expected:
            yield ()

    def _elsewhere(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:  # noqa: ARG002 - as the others
        """Yield the expected changes of a rewrite of another turn."""
        slots = {delta.slot for delta in variant.expected}
        others = [
            deltas for deltas in self._others if deltas and not slots & {one.slot for one in deltas}
        ]
        if others:
            yield list(map(str, others[spread(variant.text, len(others))]))


#: Kinds of all decoys, in the order of the statistics.
ALL_KINDS = (*KINDS, *FINE_KINDS, *STATED_KINDS)
Pair = tuple[TurnResult, VariantResult]


def draw_decoys(
    turns: Sequence[TurnResult], drawn: Sequence[Pair], coarse: int, fine: int, seed: int
) -> list[Decoy]:
    """Make decoys from the turns of a report, at most one per turn.

    Dialogues without a violation in ``drawn`` are preferred. A decoy has about as many edits as a
    violation drawn at random. In a fine decoy, the change of meaning counts as one of the edits.

    Args:
        turns: the turns of the report.
        drawn: the violations to judge, with their turns.
        coarse: number of decoys with a plain change of meaning.
        fine: number of decoys with a change as small as a slip.
        seed: seed of all choices.
    """
    known = KnownTurns(turns)
    bases = [
        (turn, variant)
        for turn in turns
        for variant in turn.variants
        if variant.outcome in RUN_OUTCOMES and (variant.edits or variant.expected)
    ]
    made: list[Decoy] = []
    coarse_kinds: Sequence[str] = KINDS
    make_coarse = DecoyMaker(known).make
    if any(variant.expected for _, variant in drawn):
        if fine:
            raise UserError(
                "there are no fine decoys for a relation that expects a change, because no small "
                "edit makes the stated change wrong: use --decoys"
            )
        coarse_kinds, make_coarse = STATED_KINDS, StatedDecoyMaker(known, turns).make
        bases = [(turn, variant) for turn, variant in bases if variant.expected]
    for name, count, kinds, make, own in (
        ("decoys", coarse, coarse_kinds, make_coarse, 0),
        ("fine decoys", fine, FINE_KINDS, FineDecoyMaker(known).make, 1),
    ):
        random = stream(seed, "precision", name)
        order = [bases[int(index)] for index in random.permutation(len(bases))]
        # For each decoy, the number of edits of a violation drawn anew.
        edits = (
            len(drawn[int(random.integers(len(drawn)))][1].edits) - own for _ in itertools.count()
        )
        taken = {decoy.turn.id for decoy in made}
        some = _Maker(make, order, taken, edits).make(kinds, count, drawn)
        if len(some) < count:
            raise UserError(
                f"the report allows only {len(some)} of {count} {name}: test more turns, or ask "
                "for fewer"
            )
        made += some
    return made


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes decoys of several kinds in turn."""

    one: Callable[[TurnResult, VariantResult, str], Decoy | None]
    bases: Sequence[Pair]
    #: Ids of the turns that already gave a decoy.
    taken: set[str]
    #: Preferred numbers of edits of the next decoys, before the change of meaning.
    edits: Iterator[int]

    def make(self, kinds: Sequence[str], count: int, drawn: Sequence[Pair]) -> list[Decoy]:
        """Return ``count`` decoys, or fewer if the turns do not allow more."""
        used = {turn.dialogue_id for turn, _ in drawn}
        fresh = [base for base in self.bases if base[0].dialogue_id not in used]
        # If every dialogue has a violation, use their other turns.
        spare = [base for base in self.bases if base[0].dialogue_id in used]
        made: list[Decoy] = []
        exhausted: set[str] = set()
        # Kinds alternate. When one is exhausted, the others fill its places.
        for kind in itertools.cycle(kinds):
            if len(made) == count or len(exhausted) == len(kinds):
                break
            if kind in exhausted:
                continue
            edits = next(self.edits)
            decoy = self._first(fresh, kind, edits) or self._first(spare, kind, edits)
            if decoy is None:
                exhausted.add(kind)
            else:
                made.append(decoy)
                self.taken.add(decoy.turn.id)
        return made

    def _first(self, bases: Sequence[Pair], kind: str, edits: int) -> Decoy | None:
        """Return a decoy from an unused turn. Its number of edits is nearest to ``edits``."""
        for turn, variant in sorted(bases, key=lambda base: abs(len(base[1].edits) - edits)):
            if turn.id not in self.taken:
                decoy = self.one(turn, variant, kind)
                if decoy is not None:
                    return decoy
        return None
