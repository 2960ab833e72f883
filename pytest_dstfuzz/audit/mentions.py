"""What the turns of a report say of their slots: their values, and where a text names them.

Only the report is needed: values are those that its states hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import DONTCARE

# Punctuation inside a time or a number ends no clause.
_CLAUSE = re.compile(r"(?:[^.,;:!?]|[.,;:!?](?=\S))*")
_YES_NO = ("yes", "no", "true", "false")


@dataclass(frozen=True, slots=True)
class Mention:
    """A slot that a turn filled, with a value that a text says once."""

    slot: str
    value: str
    start: int
    end: int


class KnownTurns:
    """The turns of one report.

    Attributes:
        values: slot -> its values that are words; numbers of one digit or more are in ``numbers``.
        numbers: slot -> its values with a digit.
        features: words of slots that one has or has not: those are named by their slot.
        domains: first parts of the names of slots.
    """

    def __init__(self, turns: Sequence[TurnResult]) -> None:
        """Collect the values of every slot, and the state before every turn."""
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
        """Return in how many turns a slot has a value: a slip of who labelled has it in few."""
        return self._seen[slot, value]

    def has_counterpart(self, slot: str) -> bool:
        """Whether another slot of the domain has values of this one: the two ends of a journey."""
        values = self.values.get(slot, set())
        return any(
            other != slot
            and domain_of(other) == domain_of(slot)
            and len(values & self.values[other]) > 1
            for other in self.values
        )

    def said_before(self, turn: TurnResult) -> str:
        """Return what was said before a turn of the user, in lower case."""
        earlier = (self._said.get((turn.dialogue_id, i), "") for i in range(turn.turn_index))
        return "\n".join((*earlier, turn.system)).casefold()

    def bears(self, turn: TurnResult, text: str, start: int) -> bool:
        """Whether the clause from ``start`` on names a value of the turn, or a feature."""
        clause = _CLAUSE.match(text.casefold(), start)
        words = f" {clause.group() if clause else ''} "
        names = [value.casefold() for value in state_of(turn).values() if len(value) > 2]
        return any(re.search(rf"(?<!\w){re.escape(name)}", words) for name in names) or any(
            word in self.features for word in words.split()
        )

    def mentions(self, turn: TurnResult, text: str) -> Iterator[Mention]:
        """Yield the slots filled at this turn whose value, in words, the text says exactly once."""
        return self._found(turn, text, self.values)

    def mentioned_numbers(self, turn: TurnResult, text: str) -> Iterator[Mention]:
        """Yield the slots filled at this turn whose value, a number, the text says exactly once."""
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
    """Return the label where there is one: it knows better than the tracker."""
    if turn.label is not None:
        return turn.label
    return turn.clean_state if turn.clean_state is not None else {}


def domain_of(slot: str) -> str:
    """Return the first part of the name of a slot."""
    return slot.split("-", 1)[0]


def alike(one: str, two: str) -> bool:
    """Whether two values may be spellings of one."""
    first, second = one.casefold().split(), two.casefold().split()
    return bool(set(first) & set(second)) or one[:4].casefold() == two[:4].casefold()


def spread(text: str, count: int) -> int:
    """Return one of ``count`` numbers from 0 on: it depends on a text alone."""
    return sum(map(ord, text)) % count
