"""Decoys: variants whose meaning did change, to find out whether a judge is awake.

Each is made from a variant that passed the campaign's validity profile, so it carries
typos and fillers as every other variant does; on top of these, one change is made that
must change what the slots mean. Only the report is needed: values are those that its
states hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.types import DONTCARE

#: Kinds of decoys, in the order in which they take turns.
KINDS = ("value", "exchange", "negation_added", "negation_removed", "dropped")
_WISH = re.compile(
    r"\b(i|we)( would|'d)? (want|need|like|prefer|am looking for|are looking for)\b", re.IGNORECASE
)
_NEGATIONS = re.compile(
    r"(?<=\bdo)( not\b|n'?t\b)|(?<=\bdoes)( not\b|n'?t\b)|(?<=\bwould)( not\b|n'?t\b)"
    r"|(?<=\bshould)( not\b|n'?t\b)|\bnot (?=\w)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(care|matter|mind|know|sure|need (?:anything|any|it|to)|worry|have (?:a|any)|too|yet|only"
    r"|quite|really|a problem|ye?t)\b",
    re.IGNORECASE,
)
_CUES = re.compile(
    r"(?:\b(?:the|a|an|in|on|at|by|from|to|for|of|after|before|until|around|about|called|named"
    r"|near|with|leaving|leave|leaves|departing|depart|going|arriving|arrive|arrives|is"
    r"|please)\s+)*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decoy:
    """A variant with a change of meaning put into it."""

    kind: str
    turn: TurnResult
    variant: VariantResult
    #: The variant's text with the change.
    text: str
    #: What was done, for the key.
    what: str


@dataclass(frozen=True, slots=True)
class _Mention:
    """A slot that this turn filled, with a value that its utterance says once."""

    slot: str
    value: str
    start: int
    end: int


class DecoyMaker:
    """Makes decoys out of the turns of one report."""

    def __init__(self, turns: Sequence[TurnResult]) -> None:
        """Collect the values of every slot, and the state before every turn."""
        self._values: dict[str, set[str]] = {}
        self._earlier: dict[tuple[str, int], Mapping[str, str]] = {}
        for turn in turns:
            state = _state(turn)
            self._earlier[turn.dialogue_id, turn.turn_index] = state
            for slot, value in state.items():
                if value != DONTCARE and len(value) > 1 and not value.isdigit():
                    self._values.setdefault(slot, set()).add(value)

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of this kind, or ``None`` where the text gives no occasion."""
        makers = {
            "value": self._another_value,
            "exchange": self._exchanged,
            "negation_added": _negated,
            "negation_removed": _affirmed,
            "dropped": self._dropped,
        }
        made = next(iter(makers[kind](turn, variant.text)), None)
        if made is None or made[0] == variant.text:
            return None
        return Decoy(kind, turn, variant, *made)

    def _another_value(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Name another value of a slot."""
        for mention in self._mentions(turn, text):
            taken = {value.casefold() for value in _state(turn).values()}
            others = sorted(
                value
                for value in self._values.get(mention.slot, ())
                if value.casefold() not in taken
                and not _alike(value, mention.value)
                and value.casefold() not in text.casefold()
            )
            if others:
                # The pick depends on the text alone, and is spread over the values.
                other = others[sum(map(ord, text)) % len(others)]
                other = other.title() if text[mention.start].isupper() else other
                yield (
                    text[: mention.start] + other + text[mention.end :],
                    f"{mention.slot}: {mention.value} -> {other}",
                )

    def _exchanged(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Let two slots of one kind trade their values, such as departure and destination."""
        mentions = list(self._mentions(turn, text))
        for index, one in enumerate(mentions):
            for two in mentions[index + 1 :]:
                shared = self._values.get(one.slot, set()) & self._values.get(two.slot, set())
                apart = one.end < two.start or two.end < one.start
                if not apart or len(shared) < 2 or _domain(one.slot) != _domain(two.slot):
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
        """Leave out a value together with the words that say what it is for."""
        for mention in self._mentions(turn, text):
            if mention.value.casefold() in turn.system.casefold():
                continue  # A bare "yes" would still say it.
            cue = _CUES.search(text[: mention.start])
            start = cue.start() if cue else mention.start
            rest = f"{text[:start].rstrip()} {text[mention.end :].lstrip()}".strip()
            if len(rest.split()) >= 3:
                yield rest, f"{mention.slot}: {text[start : mention.end]!r} left out"

    def _mentions(self, turn: TurnResult, text: str) -> Iterator[_Mention]:
        """Yield the slots filled at this turn whose value the text says exactly once."""
        before = self._before(turn)
        if before is None:
            return
        state = _state(turn)
        for slot, value in state.items():
            if before.get(slot) == value or value not in self._values.get(slot, ()):
                continue
            if sum(value == other for other in state.values()) > 1:
                continue
            found = list(re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE))
            if len(found) == 1 and value.casefold() in turn.user.casefold():
                yield _Mention(slot, value, found[0].start(), found[0].end())

    def _before(self, turn: TurnResult) -> Mapping[str, str] | None:
        if turn.turn_index == 0:
            return {}
        return self._earlier.get((turn.dialogue_id, turn.turn_index - 1))


def _negated(turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
    """Turn a wish into its refusal."""
    for match in _WISH.finditer(text):
        who, modal, verb = match.groups()
        if not _news(turn) or re.search(r"\bn[o']t\b", text[match.end() : match.end() + 12]):
            continue
        if verb.lower().startswith(("am ", "are ")):
            be, rest = verb.split(" ", 1)
            said = f"{who} {be} not {rest}"
        elif modal:
            said = f"{who} would not {verb}"
        else:
            said = f"{who} do not {verb}"
        yield text[: match.start()] + said + text[match.end() :], f"{match.group()!r} -> {said!r}"


def _affirmed(turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
    """Take a negation out, where a slot hangs on it."""
    if not _news(turn) or DONTCARE in _state(turn).values():
        return
    for match in _NEGATIONS.finditer(text):
        after = text[match.end() : match.end() + 25]
        if _HARMLESS.match(after.lstrip()) or _HARMLESS.search(after[:12]):
            continue
        yield text[: match.start()] + text[match.end() :], f"{match.group().strip()!r} left out"


def _news(turn: TurnResult) -> bool:
    """Whether the utterance names a value: a negation then bears on a slot."""
    said = turn.user.casefold()
    return any(len(value) > 2 and value.casefold() in said for value in _state(turn).values())


def _state(turn: TurnResult) -> Mapping[str, str]:
    """Return the label where there is one: it knows better than the tracker."""
    if turn.label is not None:
        return turn.label
    return turn.clean_state if turn.clean_state is not None else {}


def _domain(slot: str) -> str:
    return slot.split("-", 1)[0]


def _alike(one: str, two: str) -> bool:
    """Whether two values may be spellings of one."""
    first, second = one.casefold().split(), two.casefold().split()
    return bool(set(first) & set(second)) or one[:4].casefold() == two[:4].casefold()
