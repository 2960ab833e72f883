"""The sample of violations and decoys for an audit, and the question for the judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.audit.decoys import Decoy, Pair, draw_decoys
from pytest_dstfuzz.campaign.results import Results, TurnResult, VariantResult
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.answers import call_lines
from pytest_dstfuzz.report.explain import move_texts
from pytest_dstfuzz.seeding import stream

#: Verdict of a judge. ``keeps`` or ``changes``: the perturbed dialogue asks for the same slots and
#: values, or not. ``right`` or ``wrong``: the change stated by the relation is correct, or not.
Verdict = Literal["keeps", "changes", "right", "wrong"]


class Question(NamedTuple):
    """A question for judges with its two answers, and their wording in the statistics."""

    text: str
    good: Verdict
    bad: Verdict
    #: Introduction below the question, on the page.
    lead: str
    #: Completes ``12 of 15 violations ...``; the next one completes ``judged ...``.
    share: str
    otherwise: str

    @property
    def answers(self) -> dict[str, Verdict]:
        """Maps each key of the keyboard to its verdict."""
        return {verdict[0]: verdict for verdict in (self.good, self.bad)}


KEEPING: Final = Question(
    "Does the user still ask for the same thing?",
    "keeps",
    "changes",
    "Read the edited utterance in its dialogue, and decide whether it asks for the same as the "
    "clean one. Only the request matters, not typing errors or filler words.",
    "keep the meaning",
    "to change the meaning",
)
STATED: Final = Question(
    "Is the stated change right?",
    "right",
    "wrong",
    "Read the clean and the edited utterance in their dialogue, and decide whether the edited "
    "one makes exactly the stated change to the request.",
    "state the right change",
    "to state a wrong one",
)


#: Kind of a row that is not a decoy.
VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class Draw:
    """The parameters for drawing a sample."""

    #: Maximum number of violations.
    violations: int = 200
    #: Maximum number of violations per dialogue. If it is more than one, violations are not
    #: independent, and intervals use the dialogue as their unit.
    per_dialogue: int = 1
    decoys: int = 0
    seed: int = 0
    #: Number of additional decoys whose change is as small as a typing error.
    fine_decoys: int = 0
    #: Name of the relation to audit. ``""`` stands for the only one.
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier turn of the dialogue as the tracker read it, with its edits."""

    system: str
    user: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row for a judge. Part of it is hidden from the judge."""

    id: str
    earlier: tuple[Earlier, ...]
    system: str
    clean: str
    perturbed: str
    #: Edits from the clean to the perturbed utterance, in decoys too.
    edits: tuple[Edit, ...]
    #: Differences in the tracker's answer. Empty if the sample contains decoys.
    changes: tuple[str, ...]
    #: ``violation``, or the kind of decoy.
    kind: str
    turn: str
    dialogue: str
    variant: int
    #: The change that made the decoy. Empty for a violation.
    what: str
    #: Slot changes stated by a relation that expects a change.
    stated: tuple[str, ...] = ()
    #: Changes to the rounds of the dialogue.
    moves: tuple[str, ...] = ()

    @property
    def real(self) -> bool:
        """Whether the row is a violation instead of a decoy."""
        return self.kind == VIOLATION

    def shown(self) -> dict[str, Any]:
        """Return the visible part of the row as plain values."""
        return {
            "id": self.id,
            "earlier": [
                {
                    "system": turn.system,
                    "clean": undo_edits(turn.user, turn.edits),
                    "perturbed": turn.user,
                }
                for turn in self.earlier
            ],
            "system": self.system,
            "clean": self.clean,
            "perturbed": self.perturbed,
            "changes": list(self.changes),
            **({"stated": list(self.stated)} if self.stated else {}),
            **({"moves": list(self.moves)} if self.moves else {}),
        }

    def key(self) -> dict[str, Any]:
        """Return the hidden part of the row as plain values."""
        return {"kind": self.kind, "turn": self.turn, "variant": self.variant, "what": self.what}


@dataclass(frozen=True)
class Sample:
    """The violations and decoys of an audit, in the order of their ids."""

    draw: Draw
    rows: tuple[AuditRow, ...]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all rows with their hidden parts. It links judgements to one sample."""
        rows = [[row.shown(), row.key()] for row in self.rows]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    @property
    def short(self) -> str:
        """The first digits of the fingerprint, enough to identify a sample."""
        return self.fingerprint[:12]

    @property
    def question(self) -> Question:
        """The question that all rows ask the judge."""
        return STATED if any(row.stated for row in self.rows) else KEEPING

    @property
    def violations(self) -> int:
        """The number of violations among the rows."""
        return sum(row.real for row in self.rows)

    def order(self, judge: str) -> tuple[AuditRow, ...]:
        """Return the rows in the order for a judge. Each judge has another order."""
        order = stream(self.draw.seed, "audit", "order", judge).permutation(len(self.rows))
        return tuple(self.rows[int(place)] for place in order)


def draw_sample(turns: Results, draw: Draw) -> Sample:
    """Draw violations, make decoys, and shuffle both.

    The order of ``turns`` does not matter. If the dialogues do not have enough violations, the
    sample has fewer than ``draw.violations``.
    """
    found = of_relation(turns, draw.relation)
    turns = sorted(found, key=lambda turn: (turn.dialogue_id, turn.turn_index, turn.id))
    drawn = _draw_violations(turns, draw)
    if not drawn:
        raise UserError("the report has no violations to judge")
    hidden = draw_decoys(turns, drawn, draw.decoys, draw.fine_decoys, draw.seed)
    systems = {(turn.dialogue_id, turn.turn_index): turn.system for turn in turns}
    entries: list[tuple[Pair, Decoy | None]] = [(pair, None) for pair in drawn]
    entries += [((decoy.turn, decoy.variant), decoy) for decoy in hidden]
    order = stream(draw.seed, "precision", "order").permutation(len(entries))
    rows = [
        _row(f"q{number:03d}", *entries[int(place)], systems, blind=bool(hidden))
        for number, place in enumerate(order, start=1)
    ]
    return Sample(draw, tuple(rows))


def of_relation(turns: Results, name: str) -> Results:
    """Return the turns of one relation. Without ``name``, the report must have only one."""
    known = sorted({turn.relation for turn in turns})
    if name and name not in known:
        raise unknown_name("relation of the report", name, known)
    if not name and len(known) > 1:
        raise UserError(
            f"the report has several relations ({', '.join(known)}), but a sample has one: choose "
            "it with --relation"
        )
    return [turn for turn in turns if turn.relation == name] if name else turns


def _draw_violations(turns: Sequence[TurnResult], draw: Draw) -> list[Pair]:
    by_dialogue: dict[str, list[Pair]] = {}
    for turn in turns:
        for variant in turn.violations:
            by_dialogue.setdefault(turn.dialogue_id, []).append((turn, variant))
    random = stream(draw.seed, "precision", "violations")
    drawn: list[Pair] = []
    # In rounds, so that no dialogue gives a second violation before all have given one.
    for _ in range(draw.per_dialogue):
        found = [left.pop(int(random.integers(len(left)))) for left in by_dialogue.values() if left]
        drawn += [found[int(index)] for index in random.permutation(len(found))]
        if len(drawn) >= draw.violations or not found:
            break
    return drawn[: draw.violations]


def _row(
    name: str,
    pair: Pair,
    decoy: Decoy | None,
    systems: Mapping[tuple[str, int], str],
    *,
    blind: bool,
) -> AuditRow:
    turn, variant = pair
    edited = {earlier.turn_index: earlier.edits for earlier in variant.context_edits}
    edits = variant.edits
    if decoy is not None and decoy.text != variant.text:
        edits = (*edits, _difference(variant.text, decoy.text))
    earlier = tuple(
        Earlier(systems.get((turn.dialogue_id, index), ""), user, edited.get(index, ()))
        for index, user in enumerate(variant.context)
    )
    system, clean = turn.system, turn.user
    if variant.exchanges is not None:
        *before, last = variant.exchanges
        earlier = tuple(Earlier(one.system, one.user, ()) for one in before)
        system, clean = last.system, undo_edits(last.user, variant.edits)
    stated = tuple(map(str, variant.expected))
    return AuditRow(
        id=name,
        earlier=earlier,
        system=system,
        clean=clean,
        perturbed=variant.text if decoy is None else decoy.text,
        edits=edits,
        changes=() if blind else _changes(turn, variant),
        kind=VIOLATION if decoy is None else decoy.kind,
        turn=turn.id,
        dialogue=turn.dialogue_id,
        variant=variant.index,
        what="" if decoy is None else decoy.what,
        stated=stated if decoy is None else decoy.stated,
        moves=tuple(move_texts(variant)),
    )


def _difference(before: str, after: str) -> Edit:
    """Return the single edit that turns one text into another."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    rest = shortest - head
    tail = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    return Edit("decoy", "decoy", head, head + len(old), old, new)


def _changes(turn: TurnResult, variant: VariantResult) -> tuple[str, ...]:
    """Return one line per slot that changed, or the tool calls as code."""
    calls = call_lines(turn, variant.changed_slots)
    return tuple(calls) or tuple(str(change) for change in variant.changed_slots)
