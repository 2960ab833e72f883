"""Where the user asks for what a yes/no slot is called: ``a room with parking``."""

from __future__ import annotations

from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.relations.clauses import clause_of
from pytest_dstfuzz.relations.kinds import REFUSED, domain_of, name_words
from pytest_dstfuzz.relations.mentions import ValueMention
from pytest_dstfuzz.relations.rewrite import Admissible, Delta
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import (
    BY_SYSTEM,
    IN_DOUBT,
    MISLABELLED,
    NO_MENTION,
    NOT_NEW,
    TWICE,
    is_doubtful,
    spoken,
)
from pytest_dstfuzz.relations.values import ValueTable


class FlagSite(NamedTuple):
    """A yes/no slot that the turn sets, and the words that ask for it, both included."""

    slot: str
    #: ``yes``, or what the data writes for it.
    value: str
    first: int
    last: int

    @property
    def unwanted(self) -> Delta:
        """What becomes of the slot once it is not wanted."""
        return Delta(self.slot, self.value, Admissible((REFUSED[self.value], DONTCARE, None)))


class Flags(NamedTuple):
    """The yes/no slots that a turn sets, and how far the others came."""

    found: tuple[FlagSite, ...]
    reasons: tuple[str, ...]


def flags_of(scene: Scene) -> Flags:
    """Return the yes/no slots of a turn, sorted by slot."""
    kinds = scene.once(ValueTable.of).kinds
    sites = [_flag(scene, slot) for slot in scene.now if kinds.get(slot) == "yes-no"]
    return Flags(
        tuple(site for site in sites if isinstance(site, FlagSite)),
        tuple(site for site in sites if isinstance(site, str)),
    )


def _flag(scene: Scene, slot: str) -> FlagSite | str:
    places, value = asked_for(scene, slot, scene.turn.user), scene.now[slot]
    if not places or value not in REFUSED:
        return NO_MENTION
    if slot not in scene.given:
        return NOT_NEW
    earlier = (turn.user for turn in scene.dialogue.turns[: scene.index])
    label = scene.turn.state
    reason = ""
    if len(places) > 1 or any(asked_for(scene, slot, text) for text in earlier):
        reason = TWICE
    elif asked_for(scene, slot, scene.turn.system):
        reason = BY_SYSTEM
    elif is_doubtful(scene, places[0].first):
        reason = IN_DOUBT
    elif label is not None and label.get(slot) != value:
        reason = MISLABELLED
    if reason:
        return reason
    first, words = places[0].first, scene.parts.words
    while first and words[first - 1].lower in _FREE and scene.parts.gaps[first].isspace():
        first -= 1
    return FlagSite(slot, value, first, places[0].last)


#: What is said of what a yes/no slot stands for; in some ontologies it is a value.
_FREE: Final = frozenset({"free", "complimentary"})


def asked_for(scene: Scene, slot: str, text: str) -> list[ValueMention]:
    """Return where a text says what a yes/no slot stands for: by its name, or a word of the data.

    That is any word of the name that is no stop word: `wifi` of ``has_wifi``.
    """
    own = [word for word in name_words(slot) if word not in scene.lexicon.stop_words]
    names = dict.fromkeys((*own, *scene.data.flag_words.get(slot, ())))
    return [mention for name in names for mention in spoken(text).mentions(name)]


def is_alone(scene: Scene, slot: str, first: int, last: int) -> bool:
    """Say whether the clause of some words gives no more than the value of the slot.

    Another slot of the domain that the turn gives without saying its value may be given there.
    """
    clause = clause_of(scene.parts, first)
    user, table = spoken(scene.turn.user), scene.once(ValueTable.of)
    given: set[int] = set()
    for other in scene.given:
        said = {m.first for m in user.mentions(scene.now[other])}
        if table.kinds.get(other) == "yes-no":
            found = asked_for(scene, other, scene.turn.user)
            said |= {place for one in found for place in range(one.first, one.last + 1)}
        if not said and domain_of(other) == domain_of(slot):
            return False
        given |= said
    return not any(
        n in given or (scene.guarded.reasons[n] in _SAID and user.forms[n] not in table.titles)
        for n in clause
        if not first <= n <= last and scene.parts.words[n].lower not in scene.lexicon.stop_words
    )


#: Locks of words that may be values, in whatever spelling.
_SAID: Final = frozenset({"value", "number", "name"})
