"""Drop: a round is left out, and what it gave is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.spelling import content
from pytest_dstfuzz.perturb.words import listed, word_list
from pytest_dstfuzz.relations.kinds import name_words
from pytest_dstfuzz.relations.mentions import SpokenText
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
from pytest_dstfuzz.relations.rounds.rounds import SpokenRound, rounds_of
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
_NEEDED: Final = "the round says what a later round gives"
_POINTS: Final = "a later round points to what was said before"
_DOMAINS: Final = "a later round would not say any more what its values are for"
#: What was said before may be for another slot than it seemed to be.
_CORRECTIONS: Final = listed("actually instead rather sorry wrong oops correction meant mistake")
#: Longest value, in words, that is looked for.
_LONGEST: Final = 5


@register_relation
class Drop(Relation):
    """What a round gave is not in the state at the end when the round is left out.

    Source: method, section 14.
    """

    name = "drop"
    expects = "what the round gave is gone at the end, and all else stays"
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
            (_MORE, _says_more(scene, one)),
            (_STANDS, _stands_again(scene, rounds, one)),
            (_CORRECTS, not _CORRECTIONS.isdisjoint(word_list(one.user))),
            (_VALUES, any(other.hints_at(change) for other in others for change in one.changes)),
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


def _says_more(scene: Scene, one: SpokenRound) -> bool:
    """Say whether the user says a value that the round does not give, or a word of one.

    The label is poor there, or other slots would lose what they have, too.
    """
    table, user = scene.once(ValueTable.of), spoken(one.user)
    own = {place for change in one.changes for place in _places(user, change.after)}
    elsewhere = {slot: value for slot, value in scene.now.items() if slot not in one.slots}
    known = scene.once(_all_values)
    parts = {word for value in elsewhere.values() for word in content(value)} - table.titles
    words = [word.lower for word in user.parts.words]
    telling = [place for place, word in enumerate(words) if joined(word)]
    for first, last in _spans(telling):
        if own.issuperset(place for place in telling if first <= place <= last):
            continue
        text = " ".join(words[first : last + 1])
        if not table.is_title(text) and joined(text) in known | parts:
            return True
    flags = [slot for slot, kind in table.kinds.items() if kind == "yes-no"]
    said = one.words_of_user.says
    return any(slot not in one.slots and all(map(said, name_words(slot))) for slot in flags)


def _spans(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of all that may be a value."""
    for first, last in combinations_with_replacement(places, 2):
        if last - first < _LONGEST:
            yield first, last


def _places(text: SpokenText, value: str | None) -> Iterator[int]:
    """Yield the words that say a value."""
    for mention in text.mentions(value or ""):
        yield from range(mention.first, mention.last + 1)


def _stands_again(scene: Scene, rounds: Sequence[SpokenRound], one: SpokenRound) -> bool:
    """Say whether something else was said of the slots before: a request, or an offer."""
    if any(change.before is not None for change in one.delta):
        return True
    values = scene.once(_joined_values)
    wanted = frozenset[str]().union(*(values.get(slot, frozenset()) for slot in one.slots))
    for earlier in rounds[: one.index]:
        words = [word.lower for word in spoken(earlier.system).parts.words]
        spans = _spans(range(len(words)))
        if any(joined(" ".join(words[first : last + 1])) in wanted for first, last in spans):
            return True
    return False


def _all_values(data: DialogueSet) -> frozenset[str]:
    """Return the values of all slots, as `_joined_values` does."""
    found = frozenset[str]().union(*_joined_values(data).values())
    return found - {"yes", "no", ""}


def _joined_values(data: DialogueSet) -> dict[str, frozenset[str]]:
    """Return the values of each slot in the form in which they are compared."""
    return {
        slot: frozenset(map(joined, values)) for slot, values in ValueTable.of(data).values.items()
    }


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
