"""Hypothesis strategies over the action space of the campaigns.

An action chooses transformations of an utterance. A variant is the result. ``@given`` explores
actions, variants and dialogues. It shrinks a failing example to the shortest beginning of the
dialogue and to the fewest transformations. It also shrinks each transformation to one edit, at the
first place, with the first choice. The locks and the lexicon are loaded when the first example is
drawn.

Importing this module registers the profile ``dstfuzz``, which has no deadline, because a tracker
may be slow. Load it with ``settings.load_profile("dstfuzz")``, or with
``--hypothesis-profile=dstfuzz`` if a ``conftest.py`` imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.edits import without
from pytest_dstfuzz.perturb.engine import GRID, ActionSpace, ActionStep, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import Action, Variant
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.relations.registry import as_relation, relation_by_name
from pytest_dstfuzz.relations.relation import (
    BySearch,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    Scenes,
    begin,
    list_rewrites,
)
from pytest_dstfuzz.selection import select
from pytest_dstfuzz.trackers.tracker import Prediction

with needs_extra("pytest_dstfuzz.strategies", "hypothesis", "hypothesis"):
    from hypothesis import assume, currently_in_test_context, event, reject
    from hypothesis import settings as hypothesis_settings
    from hypothesis import strategies as st

__all__ = ["actions", "dialogues", "rewrites", "variants"]

hypothesis_settings.register_profile("dstfuzz", deadline=None)

#: A coordinate of an action; 0 stands for the first place, the first operator or the first choice.
_UNIT: Final = st.integers(0, GRID).map(lambda number: number / GRID)
#: Importance 0 means that a transformation is not used.
_IMPORTANCE: Final = st.integers(1, GRID).map(lambda number: number / GRID)
_NO_DATA: Final = DialogueSet("dialogues", "test", ())
_MOST_NEWS: Final = 3


def actions(transformations: int = 3, *, edits: Sequence[str] = ()) -> st.SearchStrategy[Action]:
    """Return a strategy for actions. Coordinates are multiples of 1/1024 from 0 to 1.

    Coordinates of unused transformations and of inactive repetitions have no effect. They are 0, so
    that equivalent actions are equal. Examples shrink towards one transformation that is carried
    out once, with all parameters 0.

    Args:
        transformations: the maximum number of transformations in an action, from 1 to 6, or more
            if ``edits`` names registered transformations.
        edits: the transformations to choose from, as in ``--dst-edits``; the shipped six if empty.

    Raises:
        UserError: the number is invalid, a transformation is unknown, or none is left.
    """
    space = ActionSpace(select(tuple(edits)))
    if not 1 <= transformations <= space.most:
        raise UserError(f"transformations must be from 1 to {space.most}, not {transformations}")
    return _actions(space, transformations, space.selection.names)


def _actions(
    space: ActionSpace, transformations: int, names: Sequence[str]
) -> st.SearchStrategy[Action]:
    """Return a strategy for actions with some transformations of a space."""
    chosen = st.lists(st.sampled_from(names), min_size=1, max_size=transformations, unique=True)
    return chosen.flatmap(lambda drawn: _steps(space, drawn)).map(space.encode)


def variants(
    dialogue: Dialogue,
    turn_index: int | None = None,
    *,
    data: DialogueSet | None = None,
    settings: Settings | None = None,
    lexicon: Lexicon | None = None,
    clean: Prediction | None = None,
) -> st.SearchStrategy[Variant]:
    """Return a strategy for the valid variants of a turn's utterance.

    A campaign draws from the same variants, with equal transformations, locks and limits. Examples
    shrink towards the one edit that breaks the test. To get the prediction of a tracker for a
    variant, ask it for ``dialogue.context(turn_index, {turn_index: variant.text})``.

    Args:
        dialogue: the dialogue with the turn.
        turn_index: the index of the turn; ``None`` = the last.
        data: the data set of the dialogue, for its ontology and cue words. If ``None``, only the
            values of the turn's own label are known.
        settings: only the settings of variants count, such as ``edits``, ``validity``,
            ``max_edit_rate`` and ``lock``. The setting ``transformations`` is the maximum number of
            transformations in a variant. ``None`` = the defaults.
        lexicon: the words for edits; ``None`` = the shipped lexicon.
        clean: the prediction for the clean turn. If the data has no label or no ontology, no edit
            may change the predicted values.

    Raises:
        UserError: the turn does not exist. Two errors are raised when the first example is drawn:
            a setting is invalid, or no transformation may change the utterance.
    """
    index = _index(dialogue, turn_index)
    data = data or _NO_DATA
    key = _PerturberKey(data, id(data), settings or Settings(), lexicon)
    return st.deferred(lambda: _variants(dialogue, dialogue.turns[index], key, clean))


def rewrites(
    dialogue: Dialogue,
    turn_index: int | None = None,
    *,
    relation: Relation | str,
    states: Sequence[BeliefState] | None = None,
    data: DialogueSet | None = None,
    lexicon: Lexicon | None = None,
) -> st.SearchStrategy[Rewrite]:
    """Return a strategy for the rewrites of a turn by a relation, in the relation's order.

    For each rewrite, ask a tracker for the contexts ``seen`` and ``reference``. Then call
    ``expected.judge(answer to the reference, answer)`` for the verdict. Examples shrink towards the
    first rewrite.

    A test may call the function for a dialogue that hypothesis has drawn. If the relation does not
    apply to the turn, the example is rejected, as by ``assume``. The statistics of hypothesis show
    the reasons.

    Args:
        dialogue: the dialogue with the turn.
        turn_index: the index of the turn; ``None`` = the last. Relations that test whole dialogues
            apply only to the last turn.
        relation: a relation that makes its own edits, or its name.
        states: the tracker's answers to the clean turns, at least up to this turn. ``None`` = the
            labels of the data.
        data: the data set of the dialogue, for its ontology, its cue words and the values of other
            dialogues; ``None`` = only this dialogue.
        lexicon: the words for edits; ``None`` = the shipped lexicon.

    Raises:
        UserError: the turn or the relation does not exist. Two errors are raised when the first
            example is drawn: the relation leaves the edits to a search, or the relation does not
            apply to the turn (outside of a test). The message gives the reason.
    """
    index = _index(dialogue, turn_index)
    found = (
        relation_by_name(relation)
        if isinstance(relation, str)
        else as_relation(relation, "rewrites()")
    )
    known = data or replace(_NO_DATA, dialogues=(dialogue,))
    answers = [turn.state for turn in dialogue.turns] if states is None else list(states)
    # Within a test, reject the turn, since the next example may have another. Outside of a test,
    # the turn is fixed, so raise an error.
    drawn = currently_in_test_context()

    def made() -> st.SearchStrategy[Rewrite]:
        words = lexicon or load_lexicon()
        scenes = Scenes(known, words, Locks.of(words, known.ontology, known.cue_words), seed=0)
        scene = scenes.of(found.name, dialogue, index, answers[: index + 1])
        return _rewrites(found, scene, drawn=drawn)

    return st.deferred(made)


def _rewrites(relation: Relation, scene: Scene, *, drawn: bool) -> st.SearchStrategy[Rewrite]:
    begun = begin(relation, scene)
    at = f"turn {scene.index} of dialogue {scene.dialogue.id!r}"
    if isinstance(begun, Inapplicable):
        if drawn:
            event(f"{relation.name} does not apply: {begun.reason}")
            reject()
        raise UserError(f"the relation {relation.name!r} does not apply to {at}: {begun.reason}")
    if isinstance(begun, BySearch):
        raise UserError(
            f"the relation {relation.name!r} leaves the edits to a search: use variants()"
        )
    if not (found := list_rewrites(begun)):
        if drawn:
            reject()
        raise UserError(f"the relation {relation.name!r} has no rewrite of {at}")
    return st.sampled_from(found)


def _index(dialogue: Dialogue, turn_index: int | None) -> int:
    """Return the index of a turn; ``None`` = the last. Check that the turn exists."""
    count = len(dialogue.turns)
    index = count - 1 if turn_index is None else turn_index
    if not 0 <= index < count:
        raise UserError(
            f"there is no turn {index} in dialogue {dialogue.id!r}: it has "
            f"{format_count(count, 'turn')}, numbered from 0"
        )
    return index


def dialogues(source: DialogueSet | Ontology, *, max_turns: int = 5) -> st.SearchStrategy[Dialogue]:
    """Return a strategy for dialogues.

    Args:
        source: a data set or an ontology. Examples from a data set are its dialogues and their
            beginnings. Examples from an ontology are made up: the user names a few values in each
            turn, and these values are the labels.
        max_turns: the maximum number of turns of a dialogue. Examples shrink towards one turn.

    Raises:
        UserError: there is no dialogue or no value to draw from, or ``max_turns`` is below 1.
    """
    if max_turns < 1:
        raise UserError(f"max_turns must be at least 1, not {max_turns}")
    if isinstance(source, Ontology):
        known = {slot: source.values[slot] for slot in source.slots if source.values[slot]}
        if not known:
            raise UserError("no dialogue can be made, because the ontology has no slot with values")
        # If a slot is drawn again in a later turn, its newest value counts.
        news = st.lists(
            st.sampled_from([(slot, value) for slot in known for value in known[slot]]),
            min_size=1,
            max_size=_MOST_NEWS,
            unique_by=lambda pair: pair[0],
        )
        return st.lists(news, min_size=1, max_size=max_turns).map(_made_up)
    if not source.dialogues:
        raise UserError(f"the data set {source.name!r} has no dialogues")
    shortest_first = sorted(
        source.dialogues, key=lambda dialogue: (len(dialogue.turns), dialogue.id)
    )
    return st.sampled_from(shortest_first).flatmap(
        lambda dialogue: _beginnings(dialogue, max_turns)
    )


@dataclass(frozen=True, slots=True)
class _PerturberKey:
    """The arguments of a perturber, as a cache key. Data sets are compared by identity."""

    data: DialogueSet = field(compare=False)
    data_id: int
    settings: Settings
    #: A lexicon is equal only to itself; ``None`` = the shipped lexicon.
    lexicon: Lexicon | None


@lru_cache(maxsize=8)
def _perturber(key: _PerturberKey) -> Perturber:
    """Return the `Perturber` of a campaign with these settings.

    It tries places in reading order.
    """
    # Search and relation have no effect on the edits, so use ones that are always valid.
    settings = key.settings.replace_options(search="random", relation="metamorphic")
    return CampaignSpec.of(settings.variant, key.data, key.lexicon or load_lexicon()).perturber


def _variants(
    dialogue: Dialogue, turn: Turn, key: _PerturberKey, clean: Prediction | None
) -> st.SearchStrategy[Variant]:
    perturber = _perturber(key)
    values = lock_values(key.data, turn, clean)
    source = perturber.prepare(turn.user, values, turn.system)
    # A transformation without a place in this utterance would only make vacuous variants.
    names = [name for name, menu in perturber.menus(source).items() if menu.operators]
    if not names:
        raise UserError(
            f"the profile {perturber.validity!r} allows no edit of turn {turn.index} of dialogue "
            f"{dialogue.id!r}: {turn.user!r}"
        )
    actions = _actions(perturber.space, key.settings.variant.transformations, names)
    return _valid(_OfTurn(perturber, source, actions))


class _OfTurn:
    """The objects that are needed to draw variants of a turn.

    This is not a dataclass, because hypothesis prints all fields of strategies and warns if they
    are long.
    """

    def __init__(
        self, perturber: Perturber, source: Source, actions: st.SearchStrategy[Action]
    ) -> None:
        self.perturber, self.source, self.actions = perturber, source, actions

    def __repr__(self) -> str:
        """Return a short text for the output of hypothesis."""
        return f"<variants of {self.source.text!r}>"


@st.composite
def _valid(draw: st.DrawFn, drawn: _OfTurn) -> Variant:
    perturber, source = drawn.perturber, drawn.source
    variant = perturber.apply(source, draw(drawn.actions))
    count = len(variant.edits)
    if count > 1:
        # Hypothesis cannot shrink by removing a step of the action, because each edit moves the
        # places of later edits. Therefore the simpler half of the draws keep only one edit.
        alone = draw(st.integers(0, 2 * count - 1))
        if alone < count:
            others = set(range(count)) - {alone}
            variant = perturber.remake(source, without(variant.edits, others))
    assume(variant.valid)
    return variant


def _steps(space: ActionSpace, chosen: Sequence[str]) -> st.SearchStrategy[list[ActionStep]]:
    """Return a strategy for the steps of the chosen transformations, word level first."""
    names = (name for name in space.selection.names if name in chosen)
    steps = (_step(name, space.parameters(name), space.repetitions) for name in names)
    return st.tuples(*steps).map(list)


@lru_cache(maxsize=64)
def _step(name: str, parameters: int, slots: int) -> st.SearchStrategy[ActionStep]:
    values = st.tuples(*[_UNIT] * parameters)
    repetitions = st.lists(values, min_size=1, max_size=slots).map(tuple)
    return st.builds(ActionStep, st.just(name), _IMPORTANCE, repetitions, st.just(slots))


def _beginnings(dialogue: Dialogue, max_turns: int) -> st.SearchStrategy[Dialogue]:
    most = min(max_turns, len(dialogue.turns))
    return st.integers(1, most).map(lambda count: replace(dialogue, turns=dialogue.turns[:count]))


def _made_up(news: Sequence[Sequence[tuple[str, str]]]) -> Dialogue:
    """Return a dialogue with the given values in the user's words."""
    turns: list[Turn] = []
    state: dict[str, str] = {}
    for index, pairs in enumerate(news):
        state |= dict(pairs)
        user = " and ".join(_said(slot.replace("-", " "), value) for slot, value in pairs)
        system = "anything else ?" if index else ""
        turns.append(Turn(index, system, user, BeliefState(state)))
    return Dialogue("made-up", tuple(turns))


def _said(what: str, value: str) -> str:
    said = f"the {what} should be {value}"
    return f"i do not care about the {what}" if value == DONTCARE else said
