"""Candidates for the file of frozen variants: what a source says for each turn, and its locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, turn_keys
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name
from pytest_dstfuzz.relations.relation import Relation, begin, proposed
from pytest_dstfuzz.relations.rewrite import BySearch, Inapplicable
from pytest_dstfuzz.relations.scene import Scene, Scenes
from pytest_dstfuzz.relations.sources.frozen import Frozen
from pytest_dstfuzz.relations.sources.locks import broken_lock
from pytest_dstfuzz.relations.sources.retrieval import (
    MOST_RETRIEVED,
    Retrieval,
    said_by_others,
    templates,
)
from pytest_dstfuzz.relations.sources.rows import FrozenRow


class CandidateSource(NamedTuple):
    """Something that says turns in other words."""

    #: As ``--source`` names it, and as each row of the file shows.
    name: str
    #: Where its words come from, and their licence.
    licence: str
    #: Returns other words for the utterance of each scene, the best first.
    words: Callable[[Sequence[Scene]], Iterable[Sequence[str]]]


def relation_source(name: str) -> CandidateSource:
    """Return the source that is a relation which says turns in other words.

    Raises:
        UserError: there is no such relation, or it does something else.
    """
    relation = relation_by_name(name)
    if not _says_otherwise(relation):
        others = (relation_by_name(one) for one in RELATIONS.shipped)
        usable = ", ".join(other.name for other in others if _says_otherwise(other))
        raise UserError(
            f"the relation {name!r} does not say turns in other words; those that do: {usable}"
        )

    def words(scenes: Sequence[Scene]) -> Iterator[Sequence[str]]:
        for scene in scenes:
            begun = begin(relation, scene)
            if isinstance(begun, Inapplicable | BySearch):
                yield ()
            else:
                yield [rewrite.seen.user for rewrite in proposed(begun)]

    return CandidateSource(name, relation.source or "none", words)


def pool_source(pool: DialogueSet) -> CandidateSource:
    """Return the source that is other data with labels: what people there say in a like place."""
    others = templates(pool)

    def words(scenes: Sequence[Scene]) -> Iterator[Sequence[str]]:
        for scene in scenes:
            yield list(islice(said_by_others(scene, others), MOST_RETRIEVED))

    licence = f"the utterances of {pool.name} (split {pool.split}), under its licence"
    return CandidateSource(Retrieval.name, licence, words)


def _says_otherwise(relation: Relation) -> bool:
    """Say whether a relation edits turns that are to mean the same."""
    kept = relation.side == "should-not-change" and relation.unit == "turn"
    return kept and relation.edits == "own" and not isinstance(relation, Frozen)


def candidate_rows(
    source: CandidateSource,
    data: DialogueSet,
    turns: Iterable[tuple[Dialogue, int]],
    *,
    each: int,
    seed: int,
    locks: Sequence[str] = (),
) -> Iterator[FrozenRow]:
    """Yield candidates for some turns, at most ``each`` for one, and the lock that each breaks.

    The labels stand for the tracker's answers; where there are none, no slot has a value.
    """
    lexicon = load_lexicon()
    guards = Locks(lexicon, data.ontology, data.cue_words, locks)
    scenes = Scenes(data, lexicon, guards, seed)
    asked = []
    for dialogue, index in turns:
        states = [turn.state or BeliefState() for turn in dialogue.turns]
        asked.append(scenes.of(source.name, dialogue, index, states))
    for scene, texts in zip(asked, source.words(asked), strict=True):
        user = scene.turn.user
        other = [text for text in dict.fromkeys(texts) if text.split() != user.split()]
        key = turn_keys(scene.dialogue)[scene.index]
        for text in islice(other, each):
            yield FrozenRow(key, user, text, source.name, broken_lock(scene, text))
