"""The user changes their mind and names the slot (``Actually, make the area north.``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, DialogueSet
from pytest_dstfuzz.dialogue.values import members_of
from pytest_dstfuzz.relations.kinds import domain_of, name_words
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Delta, Expected, Inapplicable, Move, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import (
    OF_CALLS,
    Made,
    ShouldChange,
    in_turn,
    needs_values,
    some,
)
from pytest_dstfuzz.relations.should_change.sites import MISLABELLED
from pytest_dstfuzz.relations.should_change.value_swap import NO_OTHER, admitted, unsaid
from pytest_dstfuzz.relations.values import ValueTable

GIVES_NOTHING: Final = "the turn gives no slot a value that could be another one"
IS_NAMED: Final = "the state names a place, and the slot describes it"
NO_NAME: Final = "the name of the slot would have to be guessed"

#: What the system says before the user changes their mind in a turn of its own.
ACKNOWLEDGED: Final = "Okay."
#: Values tried of one slot, each in both forms.
_VALUES: Final = 4
_SPOKEN: Final = re.compile(r"[.!?]\s*$")


@register_relation
class TurnBack(ShouldChange):
    """The slot takes the value that the user turns to."""

    name = "turn-back"
    expects = "the named slot takes the value that the user turns to, and all others stay"
    reasons = (GIVES_NOTHING, MISLABELLED, IS_NAMED, NO_NAME, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no slot has two known values."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> Begun:
        """Return the rewrites of each slot that the turn gives, in both forms."""
        if not scene.given:
            return Inapplicable(GIVES_NOTHING)
        return in_turn(self, scene, [_turned(scene, slot) for slot in scene.given])


def _turned(scene: Scene, slot: str) -> Made:
    old, label = scene.now[slot], scene.turn.state
    kind = scene.once(ValueTable.of).kinds.get(slot, "yes-no")
    # Of a list nobody knows whether the others are meant to stay.
    if old == DONTCARE or kind == "yes-no" or len(members_of(old)) > 1:
        return GIVES_NOTHING
    if label is not None and label.get(slot) != old:
        return MISLABELLED
    if kind == "choice" and _is_named(scene, slot):
        return IS_NAMED
    name = slot_phrase(scene, slot)
    if not name:
        return NO_NAME
    values = islice(unsaid(scene, slot, old), _VALUES)
    deltas = (Delta(slot, old, admitted(scene, slot, value, value)) for value in values)
    return some(form for delta in deltas for form in _both_forms(scene, name, delta)) or NO_OTHER


def _is_named(scene: Scene, slot: str) -> bool:
    """Say whether the state has a name in the slot's domain: another area may be another place."""
    kinds = scene.once(ValueTable.of).kinds
    others = (other for other in scene.now if domain_of(other) == domain_of(slot))
    return any(kinds.get(other) == "name" for other in others)


def slot_phrase(scene: Scene, slot: str) -> str:
    """Return what people call a slot in this dialogue; ``""`` where it would have to be guessed.

    The data says it (`DialogueSet.slot_phrases`), else the name of the slot does where it is made
    of words. With slots of several domains in the state, the domain is part of it.
    """
    if not scene.names_domains and _has_namesake(scene, slot):
        return ""
    phrase = scene.data.slot_phrases.get(slot, "")
    if not phrase:
        first, *others = words = name_words(slot)
        counted = scene.once(ValueTable.of).kinds.get(slot) == "number" and words[-1] in _COUNTED
        if counted and others and first in _COUNTS:
            words = others[others[0] == "of" :]
        if not all(scene.lexicon.is_word(word) for word in words):
            return ""
        if all(word in scene.lexicon.stop_words for word in words):  # `to`, `where to`
            return ""
        phrase = f"{'number of ' if counted else ''}{' '.join(words)}"
    domain = domain_of(slot)
    domains = {domain_of(other) for other in (*scene.before, *scene.now)}
    if not domain or ((len(domains) == 1 or not scene.names_domains) and phrase not in _BARE):
        return phrase
    if not all(scene.lexicon.is_word(word) for word in re.split("[^a-z]+", domain)):
        return ""
    return f"{phrase} for the {domain}" if " of " in phrase else f"{domain} {phrase}"


def _has_namesake(scene: Scene, slot: str) -> bool:
    """Say whether another slot is called alike: of another tool, or a further call of the tool."""
    name = name_words(slot.partition("#")[0])
    others = (other.partition("#")[0] for other in scene.now if other != slot)
    return any(name_words(other) == name for other in others)


#: What there is a number of, where a slot is called by it: nobody makes the people 5.
_COUNTED: Final = frozenset({"people", "persons", "guests", "adults", "children", "nights", "days"})
#: First words of such a name that say the same already: `number_of_adults`, `num_guests`.
_COUNTS: Final = frozenset({"number", "count", "num", "nr", "no", "n"})
#: Names of slots that say nothing without their domain.
_BARE: Final = frozenset({"name", "type", "kind", "method"})


def _both_forms(scene: Scene, name: str, delta: Delta) -> Iterator[Rewrite]:
    value = scene.worded(delta.slot, delta.after.values[0] or "")
    sentence = f"Actually, make the {name} {value}."
    user = scene.turn.user
    joint = " " if _SPOKEN.search(user) else ". " if user.strip() else ""
    end = len(user.rstrip())
    appended = [Replacement(end, end, joint + sentence, "same-turn")]
    same_turn = scene.rewrite(appended, [delta], about=f"{delta}: {sentence}")
    own_turn = Rewrite(
        seen=scene.context.going_on(ACKNOWLEDGED, sentence),
        reference=scene.context,
        expected=Expected((delta,)),
        moves=(Move("add", scene.index + 1, scene.index),),
        about=f"{delta}: {sentence}",
    )
    # Of campaigns that take one of a turn, half are to see each form.
    yield from (same_turn, own_turn) if scene.rng.integers(2) else (own_turn, same_turn)
