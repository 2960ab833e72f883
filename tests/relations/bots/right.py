"""A tracker without a fault for small domains: a lexicon, and rules for what a value is for.

It understands all that the relations say about the dialogues that it is made for. `RightBot` is
given the slots and their values; the rules name none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.perturb.words import word_set
from pytest_dstfuzz.relations.values import (
    SlotKind,
    domain_of,
    end_of,
    kind_of,
    list_counted_nouns,
    moment_of,
    name_words,
)

WORD = re.compile(
    r"\d{1,2}[:.]\d\d(?: ?[ap](?:m\b|\.m\.?))?|\d{1,2} ?[ap](?:m\b|\.m\.?)|\d+"
    r"|[a-z]+(?:'[a-z]+)?|[,.!?;]"
)
TIME = re.compile(r"(\d{1,2})(?:[:.](\d\d))?(?: ?([ap])\.?m\.?)?")
NUMBERS = {
    word: str(n)
    for n, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), start=1
    )
}
NEGATIONS = word_set(
    """not no never without don't dont doesn't doesnt won't wont isn't exclude excluding except
    nor neither out"""
)
LEAVING = ("leav", "depart", "set", "start", "after")
ARRIVING = ("arriv", "by", "before", "reach", "get", "there")
FROM, TO = ("from", "leaving", "departing", "leave"), ("to", "into", "for", "reach")
ARTICLES = frozenset({"a", "an", "the"})
ENDS = frozenset(".!?;")
_BOUNDS = frozenset({"before", "after", "later"})


class Found(NamedTuple):
    """A value, at some words of an utterance."""

    value: str
    first: int
    end: int


class RightBot:
    """Answers with the state of a dialogue, by the values that it is given."""

    #: Words that turn a clause round; a fault may read over them.
    negations = NEGATIONS

    def __init__(self, values: Mapping[str, tuple[str, ...]], topics: Mapping[str, str]) -> None:
        """Take the values of each slot, and words -> the domain that they are of."""
        self.values = values
        self.topics = topics
        self.kinds: dict[str, SlotKind] = {s: kind_of(s, found) for s, found in values.items()}
        self._known: dict[tuple[Exchange, ...], tuple[dict[str, str], str]] = {(): ({}, "")}
        self.longest = max(len(v.split()) for found in values.values() for v in found)
        self._all = {v for found in values.values() for v in found} - {"yes", "no"}
        #: Words -> the yes/no slots that they are the name of.
        self._flags: dict[str, list[str]] = {}
        for slot in (slot for slot, kind in self.kinds.items() if kind == "yes-no"):
            for word in {*name_words(slot), f"{name_words(slot)[-1]}s"}:
                self._flags.setdefault(word, []).append(slot)

    def __call__(self, context: Context) -> dict[str, str]:
        """Return the state after the newest utterance of the user."""
        return dict(self.after(context.exchanges)[0])

    def after(self, exchanges: tuple[Exchange, ...]) -> tuple[dict[str, str], str]:
        """Return state and topic after some exchanges: what was answered once is known."""
        if exchanges not in self._known:
            (system, user), (state, topic) = exchanges[-1], self.after(exchanges[:-1])
            state = dict(state)
            asked = WORD.findall(system.lower())
            topic = self.topic_of(asked, topic)
            topic = self.read(WORD.findall(user.lower().replace("’", "'")), asked, topic, state)
            self._known[exchanges] = state, topic
        return self._known[exchanges]

    def topic_of(self, words: list[str], topic: str) -> str:
        """Return the domain that is last said in some words."""
        said = [self.topics[word] for word in words if word in self.topics]
        return said[-1] if said else topic

    def read(self, words: list[str], asked: list[str], topic: str, state: dict[str, str]) -> str:
        """Put into the state what the user says; return what is talked about."""
        place = clause = 0
        words = self.repaired(words)
        while place < len(words):
            word = words[place]
            if word in {"but", ",", *ENDS}:
                clause = place + 1
            topic = self.topics.get(word, topic)
            named = self.named(words, place, topic)
            if named:
                slot, found = named
                state[slot] = found.value
                place = found.end
                continue
            sentence = next((n for n in range(place, 0, -1) if words[n - 1] in ENDS), 0)
            negated = self.is_negated(words[clause:place])
            found_here = self.value_at(words, place)
            if found_here is not None:
                ahead = self.topic_ahead(words, found_here.end, topic, sentence)
                slots = self.slots_of(found_here, words, sentence, asked, ahead)
                self.give(state, slots, found_here.value, negated)
                place = found_here.end
                continue
            for slot in self._flags.get(word, ()):
                state[slot] = "no" if negated else "yes"
            place += 1
        return topic

    def repaired(self, words: list[str]) -> list[str]:
        """Return the words without a value that is taken back at once: `on friday, no, sunday`."""
        for place in range(len(words)):
            found = self.value_at(words, place)
            if found and words[found.end : found.end + 3] == [",", "no", ","]:
                return self.repaired([*words[:place], *words[found.end + 3 :]])
        return words

    def is_negated(self, clause: list[str]) -> bool:
        """Say whether what follows in a clause is negated: `not before 9:00` is a time."""
        pairs = pairwise([*clause, ""])
        return any(word in self.negations and after not in _BOUNDS for word, after in pairs)

    def give(self, state: dict[str, str], slots: list[str], value: str, negated: bool) -> None:
        """Set a slot, or empty it where its value is not wanted."""
        for slot in slots[:1]:
            if not negated:
                state[slot] = value
            elif state.get(slot) == value:
                del state[slot]

    def named(self, words: list[str], place: int, topic: str) -> tuple[str, Found] | None:
        """Return slot and value of `make the area north`, `make the number of people 4`."""
        if words[place : place + 2] != ["make", "the"]:
            return None
        counted = words[place + 2 : place + 4] == ["number", "of"]
        begin = place + 4 if counted else place + 2
        end = next((n for n in range(place, len(words)) if words[n] in ENDS), len(words))
        for slot in sorted(self.values, key=lambda slot: domain_of(slot) != topic):
            name, domain = " ".join(name_words(slot)), domain_of(slot)
            for called in (f"{name} for the {domain}", f"{domain} {name}", name):
                first = begin + len(called.split())
                found = self.value_at(words, first) if first < end else None
                said = " ".join(words[begin:first]) == called
                if said and found and found.end == end and found.value in self.values[slot]:
                    return slot, found
        return None

    def value_at(self, words: list[str], place: int) -> Found | None:
        """Return the longest value that begins at a word."""
        for length in range(self.longest, 0, -1):
            said = " ".join(words[place : place + length])
            value = _clock(said) if length == 1 else None
            value = value or NUMBERS.get(said, said)
            for one in (value, value.removesuffix("s")):
                if one in self._all:
                    return Found(one, place, place + length)
        return None

    def topic_ahead(self, words: list[str], end: int, topic: str, sentence: int) -> str:
        """Return the topic of a value: that of its sentence so far, else of what follows in it."""
        if any(word in self.topics for word in words[sentence:end]):
            return topic
        following = words[end : next((n for n in range(end, len(words)) if words[n] in ENDS), None)]
        return next((self.topics[word] for word in following if word in self.topics), topic)

    def slots_of(
        self, found: Found, words: list[str], sentence: int, asked: list[str], topic: str
    ) -> list[str]:
        """Return the slot that a value is for, if any."""
        slots = [slot for slot, known in self.values.items() if found.value in known]
        before = [word for word in words[sentence : found.first] if word not in ARTICLES]
        kept = [slot for slot in slots if self.fits(slot, found, words, before, asked)]
        return [slot for slot in kept if domain_of(slot) == topic] or kept

    def fits(
        self, slot: str, found: Found, words: list[str], before: list[str], asked: list[str]
    ) -> bool:
        """Say whether the words around a value are those of a slot."""
        kind = self.kinds[slot]
        if kind == "number":
            nouns = list_counted_nouns(slot)
            near = words[found.end : found.end + 3]
            return not nouns.isdisjoint(near) or (
                bool(nouns & set(asked)) and not any(self.counts(word) for word in near)
            )
        if end := end_of(slot):
            cues = FROM if end == "from" else TO
            others = TO if end == "from" else FROM
            if before and before[-1] in cues + others:
                return before[-1] in cues
            return bool(set(asked) & set(cues))
        if kind == "time" and (moment := moment_of(slot)):
            said = next((w for w in map(_moment, reversed(before)) if w), "")
            return (said or next((w for w in map(_moment, asked) if w), "")) == moment
        return True

    def counts(self, word: str) -> bool:
        """Say whether a noun is counted by some slot."""
        numbers = (slot for slot, kind in self.kinds.items() if kind == "number")
        return any(word in list_counted_nouns(slot) for slot in numbers)


def _moment(word: str) -> str:
    if word.startswith(LEAVING):
        return "leave"
    return "arrive" if word.startswith(ARRIVING) else ""


def _clock(said: str) -> str | None:
    match = TIME.fullmatch(said)
    if match is None or not (match[2] or match[3]):
        return None
    hour = int(match[1])
    if match[3]:
        hour = hour % 12 + 12 * (match[3] == "p")
    return f"{hour:02}:{match[2] or '00'}"
