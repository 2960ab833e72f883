"""Decoys: variants whose meaning did change, to find out whether a judge is awake.

Each is made from a variant that passed the campaign's validity profile, so it carries
typos and fillers as every other variant does; on top of these, one change is made that
must change what the slots mean. Those of `fine_decoys` look like a slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.audit.mentions import KnownTurns, Mention, alike, domain_of, spread, state_of
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
    #: What is stated to become of the slots, of a relation that expects a change.
    stated: tuple[str, ...] = ()


class DecoyMaker:
    """Makes decoys out of the turns of one report."""

    def __init__(self, known: KnownTurns) -> None:
        """Take the turns whose variants decoys are made of."""
        self._known = known

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
        """Let two slots of one kind trade their values, such as departure and destination."""
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
        """Leave out a value together with the words that say what it is for."""
        for mention in self._known.mentions(turn, text):
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
        """Take out a negation that stands before a value or a feature."""
        if DONTCARE in state_of(turn).values():
            return
        for match in _NEGATIONS.finditer(text):
            if self._known.bears(turn, text, match.end()):
                rest = text[: match.start()] + text[match.end() :]
                yield rest, f"{match.group().strip()!r} left out"


def instead(text: str, mention: Mention, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a text that has one of some other values of a slot, where there are any; and why."""
    if others:
        # The pick depends on the text alone, and is spread over the values.
        other = others[spread(text, len(others))]
        other = other.title() if text[mention.start].isupper() else other
        yield (
            text[: mention.start] + other + text[mention.end :],
            f"{mention.slot}: {mention.value} -> {other}",
        )
