"""The variants of a dialogue and the contexts they are seen in, before any is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.results import ContextEdits
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.types import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.perturb.designs import replaces
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.types import Variant
from pytest_dstfuzz.relations.builtin import relation_for
from pytest_dstfuzz.relations.protocol import Relation
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.trackers.protocol import Prediction


@dataclass(frozen=True, slots=True)
class Rules:
    """What a campaign does to every dialogue, built once from its settings."""

    settings: Settings
    data: DialogueSet
    relation: Relation
    search: Search
    perturber: Perturber

    @classmethod
    def of(cls, settings: Settings, data: DialogueSet, lexicon: Lexicon) -> Rules:
        """Build the rules of ``settings``.

        Raises:
            UserError: an unknown relation or search, a bad lock, or data without the
                labels that the relation needs.
        """
        perturber = Perturber(
            lexicon,
            validity=settings.validity,
            max_edit_rate=settings.max_edit_rate,
            locks=settings.lock,
            ontology=data.ontology,
            cue_words=data.cue_words,
            only=settings.only,
            flat_rate=settings.flat_edit_rate,
        )
        return cls(
            settings=settings,
            data=data,
            relation=relation_for(settings.relation, data),
            search=search_by_name(settings.search, seed=settings.seed, k=settings.transformations),
            perturber=perturber,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One variant of a turn, in the context it is seen in."""

    #: Number of the variant; it goes with those of the same number of earlier turns.
    index: int
    variant: Variant
    #: Number of the first valid variant of the turn with the same text, when lower.
    twin: int | None
    #: Earlier turns that are seen perturbed: index -> text.
    users: Mapping[int, str]
    context: Context
    context_edits: tuple[ContextEdits, ...]

    @property
    def to_run(self) -> bool:
        """Whether the tracker has to be asked: valid, and no copy of another one."""
        return self.variant.valid and self.twin is None


@dataclass(frozen=True, slots=True)
class TurnAttempts:
    """A turn, what the tracker said about it, and its variants."""

    turn: Turn
    clean_context: Context
    clean: Answer
    #: Whether the relation says anything about the turn.
    applicable: bool
    attempts: tuple[Attempt, ...]

    @property
    def to_run(self) -> tuple[Attempt, ...]:
        """The attempts that the tracker is asked about."""
        if not (self.applicable and isinstance(self.clean, Prediction)):
            return ()
        return tuple(attempt for attempt in self.attempts if attempt.to_run)

    def numbered(self, index: int) -> Attempt:
        """Return the attempt of a number; turns of one dialogue have the same ones."""
        return next(attempt for attempt in self.attempts if attempt.index == index)


def perturb_dialogue(
    rules: Rules, dialogue: Dialogue, clean: Sequence[tuple[Context, Answer]]
) -> list[TurnAttempts]:
    """Perturb the first turns of a dialogue.

    Args:
        rules: what to do.
        dialogue: the dialogue.
        clean: clean context and answer of its first turns, in order; as many turns are
            perturbed.
    """
    turns: list[TurnAttempts] = []
    for turn, (context, answer) in zip(dialogue.turns, clean, strict=False):
        attempts: list[Attempt] = []
        first: dict[str, int] = {}
        for index, variant in _variants(rules, dialogue, turn, answer):
            twin = None
            if variant.valid:
                number = first.setdefault(variant.text, index)
                twin = number if number < index else None
            attempts.append(_in_context(rules, dialogue, turns, index, variant, twin))
        turns.append(
            TurnAttempts(
                turn=turn,
                clean_context=context,
                clean=answer,
                applicable=isinstance(answer, Prediction)
                and rules.relation.applies(answer.state, turn.state),
                attempts=tuple(attempts),
            )
        )
    return turns


def lock_values(data: DialogueSet, turn: Turn, clean: Answer) -> tuple[str, ...]:
    """Return the slot values that no edit of this turn may touch, sorted, each once.

    The label's; where the data has no labels or no ontology, also those which the
    tracker itself predicts for the clean turn, and those that it predicts for slots of
    which the ontology, if not complete, knows nothing.
    """
    values = set() if turn.state is None else set(turn.state.values())
    if isinstance(clean, Prediction):
        known = {} if turn.state is None or data.ontology is None else data.ontology.values
        values.update(value for slot, value in clean.state.items() if slot not in known)
    return tuple(sorted(values))


def _variants(
    rules: Rules, dialogue: Dialogue, turn: Turn, clean: Answer
) -> list[tuple[int, Variant]]:
    """Return the variants of one turn that are wanted, valid or not, with their numbers."""
    values = lock_values(rules.data, turn, clean)
    source = rules.perturber.prepare(turn.user, values, turn.system)
    actions = rules.search.actions(dialogue, turn.index, rules.settings.variants)
    return [
        (index, rules.perturber.apply(source, action))
        for index, action in enumerate(actions)
        if rules.settings.variant in (None, index)
    ]


def _in_context(
    rules: Rules,
    dialogue: Dialogue,
    earlier: Sequence[TurnAttempts],
    index: int,
    variant: Variant,
    twin: int | None,
) -> Attempt:
    """Put a variant in the context that the attack design shows it in.

    Earlier turns are seen as their variant of the same number where the design says
    so and that variant is valid. Where the tracker failed on the clean turn its
    variants stay out: without its prediction they may lack their locks.
    """
    settings = rules.settings
    seen = [
        (past.turn.index, other)
        for past in earlier
        if (other := past.numbered(index).variant).valid
        and isinstance(past.clean, Prediction)
        and replaces(settings.attack, settings.seed, dialogue.id, index, past.turn.index)
    ]
    users = {number: other.text for number, other in seen}
    return Attempt(
        index=index,
        variant=variant,
        twin=twin,
        users=users,
        context=dialogue.context(len(earlier), {**users, len(earlier): variant.text}),
        context_edits=tuple(ContextEdits(number, other.edits) for number, other in seen),
    )
