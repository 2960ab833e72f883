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
from pytest_dstfuzz.dialogue.dialogues import DONTCARE

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
_CUES = re.compile(
    r"(?:\b(?:the|a|an|in|on|at|by|from|to|for|of|after|before|until|around|about|called|named"
    r"|near|with)\s+)*$",
    re.IGNORECASE,
)
# Punctuation inside a time or a number ends no clause.
_CLAUSE = re.compile(r"(?:[^.,;:!?]|[.,;:!?](?=\S))*")
_YES_NO = ("yes", "no", "true", "false")


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
        # Slots that one has or has not are named by their slot, not by a value.
        self._features: set[str] = set()
        self._earlier: dict[tuple[str, int], Mapping[str, str]] = {}
        for turn in turns:
            state = _state(turn)
            self._earlier[turn.dialogue_id, turn.turn_index] = state
            for slot, value in state.items():
                if value.casefold() in _YES_NO:
                    self._features.update(re.findall(r"\w{4,}", slot.partition("-")[2].casefold()))
                elif value != DONTCARE and len(value) > 1 and not value.isdigit():
                    self._values.setdefault(slot, set()).add(value)

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of this kind, or ``None`` where the text gives no occasion."""
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

    def _negated(self, turn: TurnResult, text: str) -> Iterator[tuple[str, str]]:
        """Turn a wish that names a value into its refusal."""
        for match in _WISH.finditer(text):
            who, modal, verb = match.groups()
            refused = re.match(r"\W+not\b", text[match.end() :], re.IGNORECASE)
            if refused or not self._bears(turn, text, match.end()):
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
        """Take out a negation that stands before a value or a feature."""
        if DONTCARE in _state(turn).values():
            return
        for match in _NEGATIONS.finditer(text):
            if self._bears(turn, text, match.end()):
                rest = text[: match.start()] + text[match.end() :]
                yield rest, f"{match.group().strip()!r} left out"

    def _bears(self, turn: TurnResult, text: str, start: int) -> bool:
        """Whether the clause from ``start`` on names a value of the turn, or a feature."""
        clause = _CLAUSE.match(text.casefold(), start)
        words = f" {clause.group() if clause else ''} "
        names = [value.casefold() for value in _state(turn).values() if len(value) > 2]
        return any(re.search(rf"(?<!\w){re.escape(name)}", words) for name in names) or any(
            word in self._features for word in words.split()
        )

    def _mentions(self, turn: TurnResult, text: str) -> Iterator[_Mention]:
        """Yield the slots filled at this turn whose value the text says exactly once."""
        earlier = self._earlier.get((turn.dialogue_id, turn.turn_index - 1))
        before = {} if turn.turn_index == 0 else earlier
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
