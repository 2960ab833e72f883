"""Words at random in the place of what the user says: nothing is asked for any more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, SlotChange, diff_states
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.kinds import UNSPOKEN
from pytest_dstfuzz.relations.other_values import says_more
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.base import OF_CALLS, Lazily, ShouldChange
from pytest_dstfuzz.relations.should_change.calls import call_scene, gone, shortly
from pytest_dstfuzz.relations.should_change.sites import BY_SYSTEM, MISLABELLED, spoken
from pytest_dstfuzz.relations.values import ValueTable

NOTHING_GIVEN: Final = "the turn changes nothing"
NO_WORD: Final = "the turn has no word"
TAKEN_AWAY: Final = "a slot loses its value at the turn"
UNSAID: Final = "the turn gives a value that it does not say"
MORE: Final = "the turn says a value that it does not give"
EARLIER: Final = "an earlier round says a value that the turn gives"

#: Rewrites of a turn.
_DRAWS: Final = 4
#: Shorter words are cues and letters mostly.
_SHORTEST: Final = 4


@register_relation
class RandomInput(ShouldChange):
    """What the turn gave is not given, and the state is that of the turn before."""

    name = "random-input"
    expects = "every slot that the turn gave is as it was before the turn"
    source = "correct forms of the misspellings in the lexicon"
    reasons = (
        *(NO_WORD, NOTHING_GIVEN, TAKEN_AWAY, UNSAID, MORE, BY_SYSTEM, EARLIER, MISLABELLED),
        *OF_CALLS,
    )

    def edited(self, scene: Scene) -> Begun:
        """Return 4 draws of as many words as the turn has."""
        changes = diff_states(scene.before, scene.now)
        if not scene.parts.words:
            return Inapplicable(NO_WORD)
        if not changes:
            return Inapplicable(NOTHING_GIVEN)
        if any(change.after is None for change in changes):
            return Inapplicable(TAKEN_AWAY)
        if reason := _elsewhere(scene, changes):
            return Inapplicable(reason)
        label = scene.turn.state
        if label is not None and any(label.get(slot) != new for slot, _, new in changes):
            return Inapplicable(MISLABELLED)
        deltas = [Delta(slot, new, Admissible((old,))) for slot, old, new in changes]
        table = scene.once(ValueTable.of)
        return Lazily(_drawn(scene, deltas, table) for _ in range(_DRAWS))

    def of_calls(self, scene: Scene) -> Begun:
        """Return as many draws, after which nothing is called: nobody asks for anything."""
        if not scene.parts.words:
            return Inapplicable(NO_WORD)
        if scene.label is not None and not scene.label:
            return Inapplicable(MISLABELLED)
        new = Outcome({path: one for path, one in scene.now.items() if path not in scene.before})
        if not new:
            return Inapplicable(NOTHING_GIVEN)
        deltas, table = list(gone(new)), call_scene(scene).once(ValueTable.of)
        told = " ".join(f"{one.name} {one.description}" for one in scene.dialogue.tools)
        return Lazily(_drawn(scene, deltas, table, told) for _ in range(_DRAWS))


def _elsewhere(scene: Scene, changes: Sequence[SlotChange]) -> str:
    """Say why a value may come from elsewhere than what the user says in this turn.

    A reader would keep what an earlier round said: a place that was asked about, a type that was
    wished for before. And what nobody says at all is a poor label, or taken from an offer.
    """
    values = [change.after or "" for change in changes]
    spelled = [value for value in values if value not in UNSPOKEN]
    *earlier, last = scene.context.exchanges
    if not all(spoken(last.user).mentions(value) for value in spelled):
        return UNSAID
    unheard = "dontcare" in scene.guarded.reasons and DONTCARE not in values
    if unheard or says_more(scene, last.user, changes):
        return MORE
    if any(spoken(last.system).mentions(value) for value in spelled):
        return BY_SYSTEM
    texts = [text for one in earlier for text in (one.system, one.user)]
    if any(spoken(text).mentions(value) for text in texts for value in spelled):
        return EARLIER
    return ""


def _drawn(scene: Scene, deltas: list[Delta], table: ValueTable, tools: str = "") -> Rewrite:
    words = _words(scene, table, tools)
    text = " ".join(next(words) for _ in scene.parts.words)
    about = f"random words: {', '.join(map(str, shortly(deltas)))}"
    return scene.rewrite([scene.whole(text, "random words")], deltas, about=about)


def _words(scene: Scene, table: ValueTable, tools: str) -> Iterator[str]:
    """Yield words that say nothing here: no value, cue or name of a slot, none of the system's.

    Nor those in what is told of the ``tools``.
    """
    pool = _pool(scene.lexicon)
    said = {*word_list(scene.turn.system), *re.findall("[a-z]+", tools.lower())}
    while True:
        word = pool[int(scene.rng.integers(len(pool)))]
        named = word in said or table.is_title(word)
        if not named and not scene.guards.guard_of(word):
            yield word


@lru_cache(maxsize=8)
def _pool(lexicon: Lexicon) -> tuple[str, ...]:
    """Return the words to draw from, in the order of the lexicon."""
    stop = frozenset(lexicon.stop_words)
    return tuple(
        word
        for word in lexicon.misspellings
        if word.isalpha() and word.islower() and len(word) >= _SHORTEST and word not in stop
    )
