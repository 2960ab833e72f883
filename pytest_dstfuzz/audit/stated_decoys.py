"""Decoys among stated changes: rewrites of which something wrong is stated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_dstfuzz.audit.decoys import Decoy
from pytest_dstfuzz.audit.mentions import KnownTurns, spread, state_of
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult

#: Kinds of such decoys, in the order in which they take turns.
STATED_KINDS = ("stated_value", "stated_slot", "stated_nothing", "stated_elsewhere")
NOTHING = "no slot changes"


class StatedDecoyMaker:
    """Makes decoys out of the rewrites of one relation."""

    def __init__(self, known: KnownTurns, turns: Sequence[TurnResult]) -> None:
        """Take the turns whose rewrites decoys are made of, and borrow from."""
        self._known = known
        self._others = [variant.expected for turn in turns for variant in turn.variants]

    def make(self, turn: TurnResult, variant: VariantResult, kind: str) -> Decoy | None:
        """Return a decoy of this kind, or ``None`` where nothing wrong can be stated so."""
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
        """State another value that nobody says."""
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
        """State the new value for another slot."""
        stated = {delta.slot for delta in variant.expected}
        state = turn.clean_state or state_of(turn)
        for delta in variant.expected:
            wanted = set(delta.after.values)

            def fits(slot: str, wanted: set[str | None] = wanted) -> bool:
                return bool(wanted & self._known.values.get(slot, set()))

            # First one that may well have such a value.
            for slot, value in sorted(state.items(), key=lambda item: (not fits(item[0]), item)):
                if slot not in stated and value not in delta.after:
                    yield (str(replace(delta, slot=slot, before=value)),)

    def _nothing(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:  # noqa: ARG002 - as the others
        """State that nothing changes."""
        if variant.expected:
            yield ()

    def _elsewhere(self, turn: TurnResult, variant: VariantResult) -> Iterator[Sequence[str]]:  # noqa: ARG002 - as the others
        """State what is right of another rewrite."""
        slots = {delta.slot for delta in variant.expected}
        others = [
            deltas for deltas in self._others if deltas and not slots & {one.slot for one in deltas}
        ]
        if others:
            yield list(map(str, others[spread(variant.text, len(others))]))
