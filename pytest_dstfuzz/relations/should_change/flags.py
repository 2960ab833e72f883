"""Where the user asks for what a yes/no slot is called: ``a room with parking``."""

from __future__ import annotations

from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.relations.clauses import clause_of
from pytest_dstfuzz.relations.kinds import domain_of, name_words
from pytest_dstfuzz.relations.rewrite import Admissible
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

#: What a yes/no slot may be once it is not wanted.
UNWANTED: Final = Admissible(("no", "dontcare", None))


class FlagSite(NamedTuple):
    """A yes/no slot that the turn sets to ``yes``, and the one word of its name."""

    slot: str
    word: int


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
    names = {spelled(word) for word in name_words(slot)}
    places = [n for n, form in enumerate(spoken(scene.turn.user).forms) if form in names]
    earlier = scene.dialogue.turns[: scene.index]
    label = scene.turn.state
    locks = (
        (not places or scene.now[slot] != "yes", NO_MENTION),
        (slot not in scene.given, NOT_NEW),
        (len(places) > 1 or any(names & {*spoken(t.user).forms} for t in earlier), TWICE),
        (bool(names & {*spoken(scene.turn.system).forms}), BY_SYSTEM),
        (bool(places) and is_doubtful(scene, places[0]), IN_DOUBT),
        (label is not None and label.get(slot) != "yes", MISLABELLED),
    )
    reason = next((reason for holds, reason in locks if holds), "")
    return reason or FlagSite(slot, places[0])


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
            names = {spelled(word) for word in name_words(other)}
            said |= {n for n, form in enumerate(user.forms) if form in names}
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
