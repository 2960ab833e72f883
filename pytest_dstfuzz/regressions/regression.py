"""One remembered violation: all that it takes to ask a tracker again, and to read it."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, Exchange, SlotChange
from pytest_dstfuzz.dialogue.normalise import check_normalisation
from pytest_dstfuzz.relations.relation import relation_by_name

#: ``accepted``: it is known, and fails no build.
Status = Literal["open", "accepted"]
#: What became of it: ``failed`` = the tracker gave no prediction, ``unasked`` = the budget ended.
Replayed = Literal["broken", "fixed", "failed", "unasked"]
_DIGITS = 10


class Said(NamedTuple):
    """One exchange: what was said, and what the tracker saw the user say."""

    system: str
    user: str
    seen: str

    def to_json(self) -> dict[str, str]:
        """Return a plain dictionary; ``seen`` is left out where nothing was changed."""
        return (
            self._asdict() if self.seen != self.user else {"system": self.system, "user": self.user}
        )


@dataclass(frozen=True, slots=True)
class Regression:
    """A violation in its smallest known version."""

    #: Readable name of the turn that it was found at.
    turn: str
    relation: str
    exchanges: tuple[Said, ...]
    #: What changed when it was found.
    changed: tuple[SlotChange, ...]
    #: ``transformation/operator`` of each edit that is left, those of earlier turns first.
    edits: tuple[str, ...] = ()
    #: The label of the turn, where the data has one.
    label: BeliefState | None = None
    status: Status = "open"
    #: Why it is accepted.
    reason: str = ""
    #: What slots and values of the states were brought to.
    normalisation: str = "plain"

    @classmethod
    def of(
        cls,
        turn: TurnResult,
        variant: VariantResult,
        dialogue: Dialogue,
        relation: str,
        normalisation: str = "plain",
    ) -> Regression:
        """Remember a violation, its smallest version where that is known.

        Args:
            turn: the turn that it was found at.
            variant: one of its violations.
            dialogue: that the turn is of.
            relation: name of the relation that it breaks.
            normalisation: of the data.
        """
        plain = variant.plain
        seen = (*plain.context, plain.text)
        clean = dialogue.turns[: turn.turn_index + 1]
        edits = [edit for earlier in plain.context_edits for edit in earlier.edits]
        return cls(
            turn=turn.id,
            relation=relation,
            exchanges=tuple(
                Said(past.system, past.user, text) for past, text in zip(clean, seen, strict=True)
            ),
            changed=tuple(
                SlotChange(change.slot, change.before, change.after)
                for change in plain.changed_slots
                if not change.carried
            ),
            edits=tuple(
                f"{edit.transformation}/{edit.operator}" for edit in (*edits, *plain.edits)
            ),
            label=turn.label,
            normalisation=normalisation,
        )

    @property
    def id(self) -> str:
        """Name of this violation: of what is said and seen, and the relation, and nothing else."""
        content = json.dumps([self.relation, *self.exchanges])
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:_DIGITS]

    @property
    def slots(self) -> frozenset[str]:
        """The slots that changed when it was found."""
        return frozenset(change.slot for change in self.changed)

    @property
    def clean(self) -> Context:
        """The dialogue as it was."""
        return Context(tuple(Exchange(said.system, said.user) for said in self.exchanges))

    @property
    def seen(self) -> Context:
        """The dialogue with the edits."""
        return Context(tuple(Exchange(said.system, said.seen) for said in self.exchanges))

    def replayed(
        self, answers: Mapping[Context, Answer]
    ) -> tuple[Replayed, tuple[SlotChange, ...]]:
        """Say whether it is still broken, and by which changes.

        It is while one of the slots that changed when it was found changes; to which value
        does not matter.

        Args:
            answers: those to `clean` and `seen`; missing where the budget ended.
        """
        if self.clean not in answers or self.seen not in answers:
            return "unasked", ()
        before, after = answers[self.clean], answers[self.seen]
        if isinstance(before, TrackerFailure) or isinstance(after, TrackerFailure):
            return "failed", ()
        verdict = relation_by_name(self.relation).judge(before.state, after.state, self.label)
        broken = verdict.kind == "violation" and any(c.slot in self.slots for c in verdict.changes)
        return ("broken", verdict.changes) if broken else ("fixed", ())

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, in the order in which a person reads it."""
        return {
            "id": self.id,
            "status": self.status,
            "reason": self.reason,
            "turn": self.turn,
            "relation": self.relation,
            "normalisation": self.normalisation,
            "changed": [change._asdict() for change in self.changed],
            "edits": list(self.edits),
            "dialogue": [said.to_json() for said in self.exchanges],
            "label": None if self.label is None else self.label.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> Regression:
        """Build what `to_json` wrote.

        Raises:
            KeyError: something is missing.
            TypeError: something is of the wrong kind.
            ValueError: likewise, or the texts are not those that the id was made of.
        """
        data = _object(data, "the line")
        status = data["status"]
        if status not in ("open", "accepted"):
            raise ValueError(f"'status' is {status!r}: it must be 'open' or 'accepted'")
        # Files of earlier versions do not say it.
        rules = _text(data.get("normalisation", "plain"), "normalisation")
        check_normalisation(rules)
        found = cls(
            turn=_text(data["turn"], "turn"),
            relation=relation_by_name(_text(data["relation"], "relation")).name,
            exchanges=tuple(map(_said, _list(data, "dialogue"))),
            changed=tuple(map(_change, _list(data, "changed"))),
            edits=tuple(_text(edit, "edits") for edit in _list(data, "edits")),
            label=None if data["label"] is None else BeliefState(_state(data["label"])),
            status=status,
            reason=_text(data["reason"], "reason"),
            normalisation=rules,
        )
        if not found.exchanges:
            raise ValueError("'dialogue' is empty")
        if not found.changed:
            raise ValueError("'changed' is empty: there is no slot that could be mended")
        if found.id != data["id"]:
            raise ValueError(f"the texts are not those of {data['id']!r}: they make {found.id!r}")
        return found


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} has {reprlib.repr(value)} where an object is expected")
    return value


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    if not isinstance(data[name], list):
        raise TypeError(f"{name!r} has {reprlib.repr(data[name])} where a list is expected")
    return list(data[name])


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name!r} has {value!r} where a text is expected")
    return value


def _slot(value: object) -> str:
    slot = _text(value, "slot")
    # Any other name may be one that a tracker has answered.
    if not slot.strip():
        raise ValueError(f"{slot!r} is no name of a slot")
    return slot


def _said(value: object) -> Said:
    data = _object(value, "'dialogue'")
    seen = data.get("seen", data["user"])
    return Said(*(_text(text, "dialogue") for text in (data["system"], data["user"], seen)))


def _change(value: object) -> SlotChange:
    data = _object(value, "'changed'")
    before, after = (
        None if v is None else _text(v, "changed") for v in (data["before"], data["after"])
    )
    if before == after:
        raise ValueError(f"the slot {data['slot']!r} is among those that changed and did not")
    return SlotChange(_slot(data["slot"]), before, after)


def _state(value: object) -> dict[str, str]:
    data = _object(value, "'label'")
    return {_slot(slot): _text(value, "label") for slot, value in data.items()}
