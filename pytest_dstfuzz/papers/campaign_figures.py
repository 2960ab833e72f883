"""What is kept of one campaign: enough for every table, small enough to be kept on disk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.campaign.ledger import Counts, count
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.config import VariantSettings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.weaknesses.keys import read


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation."""

    cause: str | None  #: ``turn``, ``context`` or ``both``.
    #: The slots that it changed anew, each with the value after, sorted: what broke.
    weakness: tuple[tuple[str, str | None], ...]
    vetoed: bool  #: The profile `strict` vetoes its own edits.
    vetoed_context: bool  #: ... or those of an earlier turn that it was seen with.
    number: int  #: How many variants the turn had been given with it.
    key: str  #: Id of its weakness.
    slot: str  #: The slot whose change says most.
    mass: float  #: Probability that people type the turn so; 0 where its context is to blame.
    #: ``TRANSFORMATION/OPERATOR`` of the edits of its smallest version, sorted, each once.
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """One turn."""

    dialogue: str
    turn: int
    calls: int  #: Contexts that the tracker was asked for.
    #: ... for its first 0, 1, 2, ... variants: what a campaign of fewer variants asks for.
    calls_after: tuple[int, ...]
    #: How many variants it takes until the first violation; ``None`` without one.
    broken_after: int | None
    counts: Counts
    draws: int  #: Draws of its variants, those that were drawn again included.
    edit_w: float  #: Sums of the edit rates of the valid variants.
    edit_c: float
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class CampaignFigures:
    """One campaign; JSON in and out, see `json_data`."""

    turns: tuple[TurnFigures, ...]
    inertia: float  #: Of the actions of all draws, see `action.inertia`.
    seconds: float  #: How long it ran.

    @property
    def calls(self) -> int:
        """Contexts that the tracker was asked for."""
        return sum(turn.calls for turn in self.turns)

    @property
    def turns_broken(self) -> int:
        """Turns with a violation."""
        return sum(bool(turn.violations) for turn in self.turns)


class StrictVeto:
    """Says what `strict` vetoes, whichever profile made it; ``settings`` are the campaign's."""

    def __init__(self, settings: VariantSettings, data: DialogueSet) -> None:
        strict = replace(settings, validity="strict")
        self._perturber = Perturber.of(strict, data, load_lexicon())
        self._data = data
        self._dialogues: dict[str, Dialogue] = {item.id: item for item in data.dialogues}

    def vetoes(self, result: TurnResult, text: str, edits: Sequence[Edit]) -> bool:
        """Say whether the edits of a variant of a turn would be vetoed."""
        turn = self._dialogues[result.dialogue_id].turns[result.turn_index]
        # A turn has violations only where the tracker answered on its clean context.
        assert result.clean_state is not None  # noqa: S101
        values = lock_values(self._data, turn, Prediction(result.clean_state))
        source = self._perturber.prepare(turn.user, values, turn.system)
        return self._perturber.check(source, text, edits)[0] == "vetoed"


def calls_after(result: TurnResult, users: Sequence[str]) -> tuple[int, ...]:
    """Count the contexts that a turn, run to its end, takes for its first 0, 1, 2, ... variants.

    A variant of a number never depends on those of higher ones, so this is what campaigns of
    fewer variants ask for. It is what `TurnResult.calls` counts, but where a tracker that
    disagrees with itself is asked again. ``users`` are the clean utterances of earlier turns.
    """
    clean = tuple(users)
    asked = {(clean, result.user)}
    counted = [len(asked)]
    for variant in result.variants:
        if variant.valid:
            asked.add((variant.context, variant.text))
        if variant.outcome == "violation" and variant.context_edits:
            # The second passes that find its cause.
            asked.update({(clean, variant.text), (variant.context, result.user)})
        counted.append(len(asked))
    return tuple(counted)


def turn_figures(
    result: TurnResult, earlier: Mapping[int, TurnResult], veto: StrictVeto | None
) -> TurnFigures:
    """Return the figures of a turn; ``veto`` is ``None`` where the campaign was strict."""

    def violation(number: int, variant: VariantResult) -> Violation:
        own = around = False
        if veto is not None:
            own = veto.vetoes(result, variant.text, variant.edits)
            around = any(
                veto.vetoes(earlier[past.turn_index], variant.context[past.turn_index], past.edits)
                for past in variant.context_edits
            )
        new = [change for change in variant.changed_slots if change.is_fault]
        weakness = tuple((change.slot, change.after) for change in new)
        reading = read(result, variant)
        return Violation(
            cause=variant.cause,
            weakness=weakness,
            vetoed=own,
            vetoed_context=own or around,
            number=number,
            key=reading.key.id,
            slot=reading.slot,
            mass=_chance(variant),
            operators=_operators(variant),
        )

    valid = [variant for variant in result.variants if variant.valid]
    outcomes = [variant.outcome for variant in result.variants]
    users = [earlier[index].user for index in range(result.turn_index)]
    return TurnFigures(
        dialogue=result.dialogue_id,
        turn=result.turn_index,
        calls=result.calls,
        calls_after=calls_after(result, users),
        broken_after=outcomes.index("violation") + 1 if "violation" in outcomes else None,
        counts=count(result.variants),
        draws=sum(variant.draws for variant in result.variants),
        edit_w=sum(variant.edit_w for variant in valid),
        edit_c=sum(variant.edit_c for variant in valid),
        violations=tuple(
            violation(number, variant)
            for number, variant in enumerate(result.variants, start=1)
            if variant.outcome == "violation"
        ),
    )


def _chance(variant: VariantResult) -> float:
    """Return how likely people type the turn so; 0 if its context is to blame."""
    if variant.log_probability is None or (variant.context_edits and variant.cause != "turn"):
        return 0.0
    return math.exp(variant.log_probability)


def _operators(variant: VariantResult) -> tuple[str, ...]:
    plain = variant.plain
    edits = [*plain.edits, *(edit for past in plain.context_edits for edit in past.edits)]
    return tuple(sorted({f"{edit.transformation}/{edit.operator}" for edit in edits}))


def all_turn_figures(
    results: Sequence[TurnResult], veto: StrictVeto | None
) -> tuple[TurnFigures, ...]:
    """Return the figures of the turns of a campaign; see `turn_figures`."""
    dialogues: dict[str, dict[int, TurnResult]] = {}
    for result in results:
        dialogues.setdefault(result.dialogue_id, {})[result.turn_index] = result
    return tuple(turn_figures(result, dialogues[result.dialogue_id], veto) for result in results)
