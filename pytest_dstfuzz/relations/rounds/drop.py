"""Drop: a round is left out, and what it gave is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.other_values import says_more, spans
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import (
    Admissible,
    Begun,
    Delta,
    Expected,
    Inapplicable,
    Move,
    Rewrite,
)
from pytest_dstfuzz.relations.rounds.moves import context_after
from pytest_dstfuzz.relations.rounds.rounds import CORRECTIONS, SpokenRound, rounds_of
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import spoken
from pytest_dstfuzz.relations.values import ValueTable, joined

_NONE: Final = "no round between the first and the last one changes the state"
_LATER: Final = "a later round changes the same slots"
_LABELS: Final = "the labels of the round, or of the end, disagree with what it changed"
_UNSAID: Final = "the user does not say all that the round changes"
_MORE: Final = "the user says more values in the round than it gives"
_STANDS: Final = "what was said before the round stands again without it"
_CORRECTS: Final = "the user corrects something in the round"
_VALUES: Final = "another round says what the round gives"
_TAKEN_BACK: Final = "a later turn says another value of the slot, or corrects something"
_NEEDED: Final = "the round says what a later round gives"
_POINTS: Final = "a later round points to what was said before"
_DOMAINS: Final = "a later round would not say any more what its values are for"


@register_relation
class Drop(Relation):
    """What a round gave is not in the state at the end when the round is left out.

    Source: method, section 14.
    """

    name = "drop"
    expects = "what the round gave is gone at the end, and all else stays"
    on = ("state",)
    edits = "own"
    side = "should-change"
    unit = "dialogue"
    reasons = (
        _NONE,
        _LATER,
        _LABELS,
        _UNSAID,
        _MORE,
        _STANDS,
        _CORRECTS,
        _VALUES,
        _TAKEN_BACK,
        _NEEDED,
        _POINTS,
        _DOMAINS,
    )

    def begin(self, scene: Scene) -> Begun:
        """Return the dialogue without each of the rounds that nothing else depends on."""
        rounds = rounds_of(scene)
        reasons = {one.index: self._needed(scene, rounds, one) for one in rounds[1:-1] if one.delta}
        found = [index for index, reason in reasons.items() if not reason]
        if not found:
            return Inapplicable(max(reasons.values(), key=self.reasons.index, default=_NONE))
        return (_rewrite(scene, rounds[index]) for index in found)

    def _needed(self, scene: Scene, rounds: Sequence[SpokenRound], one: SpokenRound) -> str:
        """Return why a round cannot be left out; ``""`` = it can."""
        later = rounds[one.index + 1 :]
        others = [*rounds[: one.index], *later]
        # In the order of the reasons.
        checks = (
            (_LATER, any(not one.slots.isdisjoint(other.slots) for other in later)),
            (_LABELS, not _agrees(scene, one)),
            (_UNSAID, not one.given_by_user),
            (_MORE, says_more(scene, one.user, one.changes)),
            (_STANDS, _stands_again(scene, rounds, one)),
            (_CORRECTS, not CORRECTIONS.isdisjoint(word_list(one.user))),
            (_VALUES, any(other.hints_at(change) for other in others for change in one.changes)),
            (_TAKEN_BACK, any(other.takes_back(scene, one) for other in later)),
            (_NEEDED, any(one.hints_at(change) for other in later for change in other.changes)),
            # What a round that changes nothing points to does not matter.
            (_POINTS, any(other.changes and other.points(scene.lexicon) for other in later)),
            (_DOMAINS, not _continues(rounds, one)),
        )
        return next((reason for reason, holds in checks if holds), "")


def _agrees(scene: Scene, one: SpokenRound) -> bool:
    """Say whether the labels, where there are some, have the same changes and keep them."""
    label = scene.turn.state
    if one.labelled is not None and one.labelled != one.delta:
        return False
    ends = (scene.now,) if label is None else (scene.now, label)
    return all(end.get(change.slot) == change.after for end in ends for change in one.delta)


def _stands_again(scene: Scene, rounds: Sequence[SpokenRound], one: SpokenRound) -> bool:
    """Say whether something else was said of the slots before: a request, or an offer."""
    if any(change.before is not None for change in one.delta):
        return True
    values = scene.once(ValueTable.of).joined_values
    wanted = frozenset[str]().union(*(values.get(slot, frozenset()) for slot in one.slots))
    for earlier in rounds[: one.index]:
        words = [word.lower for word in spoken(earlier.system).parts.words]
        places = spans(range(len(words)))
        if any(joined(" ".join(words[first : last + 1])) in wanted for first, last in places):
            return True
    return False


def _continues(rounds: Sequence[SpokenRound], one: SpokenRound) -> bool:
    """Say whether the rounds after one still say what their values are for."""
    known = frozenset[str]()
    for other in rounds[: one.index]:
        known = other.domains or known
    for other in rounds[one.index + 1 :]:
        if not other.domains:
            continue
        # After the first of them, all is as it was.
        return all(other.names(domain) for domain in other.domains - known)
    return True


def _rewrite(scene: Scene, one: SpokenRound) -> Rewrite:
    moves = (Move("drop", one.index),)
    deltas = tuple(Delta(c.slot, c.after, Admissible((c.before,))) for c in one.delta)
    seen = context_after(scene.dialogue, scene.index + 1, moves)
    about = f"round {one.index + 1} left out"
    return Rewrite(seen, scene.context, Expected(deltas), moves=moves, about=about)
