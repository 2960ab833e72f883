"""A tracker without any learning but counting: it looks values up, and words beside them.

It knows the values of the ontology, and for each slot the words that stood beside its values in
labelled dialogues. It names no slot and no domain, so that any labelled data will do.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_dstfuzz import BeliefState, Context, DialogueSet, Prediction, load_dialogues

_WORD = re.compile(r"[a-z0-9:']+")
_NUMBERS = {
    name: str(number)
    for number, name in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
}
_NEGATIONS = frozenset({"no", "not", "n't", "without", "dont", "don't"})
_ANYTHING = ("do n't care", "don't care", "doesn't matter", "does n't matter", "any is fine")
_YES_NO = frozenset({"yes", "no"})
#: Words before and after a value that may say which slot it is for.
_BEFORE, _AFTER = 4, 2
#: Longest value that is looked up, in words.
_LONGEST = 6

Words = tuple[str, ...]


def words(text: str) -> Words:
    """Return the words of a text in lower case, numbers as digits."""
    found = _WORD.findall(text.lower().replace("n't", " n't "))
    return tuple(_NUMBERS.get(word, word) for word in found)


class RuleTracker:
    """Looks values up, and takes the slot whose usual neighbours stand beside the value."""

    def __init__(self, data: str, split: str = "train") -> None:
        """Count in the labelled dialogues of ``data``, a path as ``--dst-data`` takes it."""
        known = load_dialogues(data, split)
        self._slots: dict[Words, list[str]] = defaultdict(list)
        self._value: dict[tuple[str, Words], str] = {}
        self._names: dict[str, frozenset[str]] = {}
        for slot, values in (known.ontology.values if known.ontology else {}).items():
            if set(values) <= {*_YES_NO, "dontcare", "free"}:
                self._names[slot] = frozenset(words(slot.partition("-")[2])) or {slot}
                continue
            for value in values:
                if value != "dontcare" and (key := words(value)):
                    self._slots[key].append(slot)
                    self._value[slot, key] = value
        self._beside: dict[str, Counter[str]] = defaultdict(Counter)
        self._asked: dict[str, Counter[str]] = defaultdict(Counter)
        self._times: Counter[str] = Counter()
        self._count(known)

    def _count(self, known: DialogueSet) -> None:
        for dialogue in known.dialogues:
            before: Mapping[str, str] = {}
            for turn in dialogue.turns:
                now = turn.state or {}
                said = words(turn.user)
                for start, end, key in self._mentions(said):
                    for slot in self._slots[key]:
                        value = self._value[slot, key]
                        if now.get(slot) == value != before.get(slot):
                            self._times[slot] += 1
                            self._beside[slot].update(set(_around(said, start, end)))
                            self._asked[slot].update(set(words(turn.system)[-8:]))
                before = now

    def _mentions(self, said: Words) -> list[tuple[int, int, Words]]:
        """Return the values in a text, the longest first where they overlap."""
        found, start = [], 0
        while start < len(said):
            for length in range(_LONGEST, 0, -1):
                key = said[start : start + length]
                if len(key) == length and key in self._slots:
                    found.append((start, start + length, key))
                    start += length - 1
                    break
            start += 1
        return found

    def _score(self, slot: str, beside: Iterable[str], asked: Iterable[str], topic: str) -> float:
        times = self._times[slot] + 5
        usual = sum(self._beside[slot][word] / times for word in sorted(set(beside)))
        question = sum(self._asked[slot][word] / times for word in sorted(set(asked)))
        return usual + 0.3 * question + (0.8 if slot.partition("-")[0] == topic else 0.0)

    def _read(self, state: dict[str, str], system: str, user: str, topic: str) -> str:
        """Put what one round says into the state, and return what it is about."""
        said, asked = words(user), words(system)
        topics = {slot.partition("-")[0] for slot in self._times}
        topic = next((word for word in reversed(asked + said) if word in topics), topic)
        for start, end, key in self._mentions(said):
            beside = _around(said, start, end)
            best = max(
                self._slots[key],
                key=lambda slot: (self._score(slot, beside, asked[-8:], topic), slot),
            )
            if len(key[0]) > 1 or self._score(best, beside, asked[-8:], topic) > 1:
                state[best] = self._value[best, key]
                topic = best.partition("-")[0]
        for slot, names in self._names.items():
            if slot.partition("-")[0] == topic and (place := _first(said, names)) >= 0:
                denied = not _NEGATIONS.isdisjoint(said[max(place - 5, 0) : place])
                state[slot] = "no" if denied else "yes"
        if any(phrase in user.lower() for phrase in _ANYTHING):
            for slot in sorted(self._times):
                domain, _, name = slot.partition("-")
                if domain == topic and not set(asked).isdisjoint(words(name)):
                    state[slot] = "dontcare"
        return topic

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Read each context round by round."""
        answers = []
        for context in contexts:
            state: dict[str, str] = {}
            topic = ""
            for round_ in context.exchanges:
                topic = self._read(state, round_.system, round_.user, topic)
            answers.append(Prediction(BeliefState(state)))
        return answers


class CountedRules(RuleTracker):
    """For commands that read no conftest.py: ``rule_tracker:CountedRules``."""

    def __init__(self) -> None:
        """Count in the data that the environment variable ``RULES_DATA`` names."""
        super().__init__(os.environ["RULES_DATA"])


def _around(said: Words, start: int, end: int) -> Words:
    return said[max(start - _BEFORE, 0) : start] + said[end : end + _AFTER]


def _first(said: Words, wanted: Iterable[str]) -> int:
    return next((n for n, word in enumerate(said) if word in set(wanted)), -1)
