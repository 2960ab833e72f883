"""Whether two belief states say the same, where rules of slots say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from pytest_dstfuzz.comparisons.argument_rules import TEXT, UNKNOWN, Rule, same_members
from pytest_dstfuzz.comparisons.argument_table import ArgumentTable
from pytest_dstfuzz.comparisons.comparison import Compared, Comparison, TextPair
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.values import members_of

#: Begins the name, which reports and remembered violations hold.
STATES: Final = "states"


class SlotComparison(Comparison):
    """Each slot that has a rule is compared by it, all others as they are."""

    def __init__(self, table: ArgumentTable, texts: Callable[[], Comparison] | None = None) -> None:
        """Take the rules of slots, and what makes the comparison of free texts."""
        self._table = table
        self._make_texts = texts

    @property
    def name(self) -> str:
        """The rules."""
        return STATES + "".join(f",{slot}={rule.name}" for slot, rule in self._table.rules)

    @property
    def identity(self) -> str:
        """The name, the functions of the user's, and what compares free texts."""
        own = "".join(f"|{rule.identity}" for _, rule in self._table.rules if rule.identity)
        texts = "" if self._texts is None else f"|{self._texts.identity}"
        return f"{self.name}{own}{texts}"

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return what was found, with the values of ``before`` that say the same by a rule."""
        values = dict(found)
        for slot in {**before, **found}:
            one, other = before.get(slot), found.get(slot)
            rule = self._table.named(slot)
            if one == other or rule is None or rule is TEXT or not _same(rule, one, other):
                continue
            if one is None:
                del values[slot]
            else:
                values[slot] = one
        return found if values == found else Outcome(values)

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Let the comparison of free texts get ready."""
        texts = [pair for pair in pairs if self._table.named(pair.path) is TEXT]
        if texts and self._texts is not None:
            self._texts.prepare(texts)

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether two values of one slot say the same."""
        rule = self._table.named(path)
        if rule is TEXT and self._texts is not None:
            return self._texts.compare(path, before, found, asked)
        return Compared(before == found or (rule is not None and _same(rule, before, found)))

    @cached_property
    def _texts(self) -> Comparison | None:
        """Return what compares free texts, where any slot holds one."""
        if self._make_texts is None or all(rule is not TEXT for _, rule in self._table.rules):
            return None
        return self._make_texts()


def rules_of_slots(compared: str) -> str:
    """Return the name of the comparison of states among names of comparisons; ``""`` = none.

    >>> rules_of_slots("numbers; or states,hotel-time=instant")
    'states,hotel-time=instant'
    """
    names = compared.split("; or ")
    return next((name for name in names if name.startswith(f"{STATES},")), "")


def _same(rule: Rule, before: str | None, found: str | None) -> bool:
    """Return whether two values say the same; a list has the same members in any order."""
    if rule.ignores:
        return True
    one, other = _value(before), _value(found)
    if rule.whole:
        return rule.same(one, other, UNKNOWN)
    if before is None or found is None:
        return False
    return same_members(members_of(before), members_of(found), rule)


def _value(text: str | None) -> object:
    """Return a value as a rule takes it: a list, a text, or ``None`` where the slot is absent."""
    if text is None:
        return None
    members = members_of(text)
    return list(members) if len(members) > 1 else members[0]
