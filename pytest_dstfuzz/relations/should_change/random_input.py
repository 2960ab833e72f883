"""Words at random in the place of what the user says: nothing is asked for any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, SlotChange, diff_states
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import ShouldChange
from pytest_dstfuzz.relations.should_change.sites import BY_SYSTEM, MISLABELLED, spoken
from pytest_dstfuzz.relations.values import ValueTable

NOTHING_GIVEN: Final = "the turn changes nothing"
NO_WORD: Final = "the turn has no word"

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
    reasons = (NO_WORD, NOTHING_GIVEN, BY_SYSTEM, MISLABELLED)

    def begin(self, scene: Scene) -> Begun:
        """Return 4 draws of as many words as the turn has."""
        changes = diff_states(scene.before, scene.now)
        if not scene.parts.words:
            return Inapplicable(NO_WORD)
        if not changes:
            return Inapplicable(NOTHING_GIVEN)
        if any(_is_offered(scene, change) for change in changes):
            return Inapplicable(BY_SYSTEM)
        label = scene.turn.state
        if label is not None and any(label.get(slot) != new for slot, _, new in changes):
            return Inapplicable(MISLABELLED)
        deltas = [Delta(slot, new, Admissible((old,))) for slot, old, new in changes]
        return [_drawn(scene, deltas) for _ in range(_DRAWS)]


def _is_offered(scene: Scene, change: SlotChange) -> bool:
    """Say whether the system said the value: anything might accept it."""
    value = change.after
    return value not in {None, DONTCARE, "yes", "no"} and bool(
        spoken(scene.turn.system).mentions(value or "")
    )


def _drawn(scene: Scene, deltas: list[Delta]) -> Rewrite:
    words = _words(scene)
    text = " ".join(next(words) for _ in scene.parts.words)
    whole = Replacement(0, len(scene.turn.user), text, "random words")
    about = f"random words: {', '.join(map(str, deltas))}"
    return scene.rewrite([whole], deltas, about=about)


def _words(scene: Scene) -> Iterator[str]:
    """Yield words that say nothing here: no value, cue or name of a slot, none of the system's."""
    pool, table = _pool(scene.lexicon), scene.once(ValueTable.of)
    said = set(word_list(scene.turn.system))
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
