"""Where the user gives the value of a slot, so that it is known what depends on these words.

A site is the one place of a dialogue that says a value which the turn gave to a slot. Everything
that could let the value come from elsewhere, belong to another slot or mean something else makes
the turn inapplicable; each cause is a reason that is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.values import members_of
from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.clauses import DOUBTS, clause_of, sentence_of
from pytest_dstfuzz.relations.kinds import (
    UNSPOKEN,
    SlotKind,
    counted_by,
    domain_of,
    moment_of,
)
from pytest_dstfuzz.relations.mentions import SpokenText, ValueMention
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.values import ValueTable, joined

NO_MENTION: Final = "the turn says no value of the state"
NOT_NEW: Final = "the slot had the value before"
PART_OF_NAME: Final = "the value is part of a longer name, or a word of a domain or slot"
TWICE: Final = "the value is said twice"
BY_SYSTEM: Final = "the system said the value"
OTHER_SLOT: Final = "another slot has the value"
IN_DOUBT: Final = "the value stands in a negation, a choice, a comparison or a correction"
GUESSED: Final = "which slot the value is for would have to be guessed"
MISLABELLED: Final = "the label has another value in this slot"

#: In the order in which they are looked at: of several slots, the turn is counted with the last.
REASONS: Final = (
    *(NO_MENTION, NOT_NEW, PART_OF_NAME, TWICE, BY_SYSTEM),
    *(OTHER_SLOT, IN_DOUBT, GUESSED, MISLABELLED),
)

#: Words between a number and the noun that it counts, and between a cue and its time.
_NEAR: Final = 3
_GROUPS: Final = listed("party group family table tables")
_LEAVING: Final = listed("leave leaves leaving left depart departs departing departure after start")
_ARRIVING: Final = listed("arrive arrives arriving arrived arrival by before get there reach until")
#: A region behind the name of a town: `, UK`, `, New South Wales`.
_REGION: Final = re.compile(
    r", ?([A-Z]{2,3}\b|[A-Z][a-z]+(?: [A-Z][a-z]+)*(?=[,.!?;]| ?$| (?:on|for|in|and|at|to)\b))"
)
#: With a capital they belong to the name of a place: `New Delhi`.
_BEFORE_NAMES: Final = listed("new old north south east west upper lower great saint st fort port")
#: Longest name, in words, of which a value may be a part.
_LONGEST: Final = 5


class ValueSite(NamedTuple):
    """A slot that the turn gave a value, and the only place where this is said."""

    slot: str
    kind: SlotKind
    value: str
    #: Its value before the turn; ``None`` = absent.
    before: str | None
    mention: ValueMention
    #: The words of the mention, as typed.
    surface: str


class Sites(NamedTuple):
    """The sites of a turn, and how far the slots came that have none."""

    found: tuple[ValueSite, ...]
    #: One of `REASONS`; ``""`` where there is a site.
    reason: str


@lru_cache(maxsize=4096)
def spoken(text: str) -> SpokenText:
    """Return a text taken apart: of one turn, later turns ask again."""
    return SpokenText.of(text)


def sites_of(scene: Scene) -> Sites:
    """Return the sites of a turn, sorted by slot."""
    found: list[ValueSite] = []
    furthest = 0
    for slot in scene.given:
        site = _site(scene, slot)
        if isinstance(site, ValueSite):
            found.append(site)
        else:
            furthest = max(furthest, REASONS.index(site))
    if not furthest and not found and any(_mentions(scene, slot) for slot in scene.now):
        # The turn says a value, and gives none of those that it says.
        furthest = REASONS.index(NOT_NEW)
    return Sites(tuple(found), "" if found else REASONS[furthest])


def _site(scene: Scene, slot: str) -> ValueSite | str:
    """Return the site of a slot that the turn gives, or why it has none."""
    value = scene.now[slot]
    mentions = _mentions(scene, slot)
    if not mentions:
        return NO_MENTION
    mention = mentions[0]
    kind = scene.once(ValueTable.of).kinds.get(slot, "name")
    surface = scene.turn.user[mention.start : mention.end]
    site = ValueSite(slot, kind, value, scene.before.get(slot), mention, surface)
    for reason, holds in _LOCKS:
        if holds(scene, site):
            return reason
    return site


def _mentions(scene: Scene, slot: str) -> tuple[ValueMention, ...]:
    value = scene.now[slot]
    return () if value in UNSPOKEN else spoken(scene.turn.user).mentions(value)


def _is_part(scene: Scene, site: ValueSite) -> bool:
    """Say whether a longer name holds the mention, or it says what is talked about."""
    table = scene.once(ValueTable.of)
    if table.is_title(site.value):
        return True
    region = site.surface[:1].isupper() and _REGION.match(scene.turn.user, site.mention.end)
    if region and joined(region[1]) not in table.known:
        return True
    parts = scene.parts
    first, last = site.mention.first, site.mention.last
    for neighbour, gap in ((first - 1, first), (last + 1, last + 1)):
        if not 0 <= neighbour < len(parts.words):
            continue
        if parts.gaps[gap].strip() in {"-", "'", "/"}:
            return True
        if parts.gaps[gap] == " " and _is_of_name(scene, site, neighbour):
            return True
    words = [joined(word.lower) for word in parts.words]
    value = joined(site.value)
    for start in range(max(0, first - _LONGEST), first + 1):
        for end in range(last + 1, min(len(words), last + _LONGEST) + 1):
            said = "".join(words[start:end])
            if len(said) > len(value) and said in table.known:
                return True
    return False


def _is_of_name(scene: Scene, site: ValueSite, neighbour: int) -> bool:
    """Say whether the word beside a mention makes one name with it: `North Gate`."""
    word = scene.parts.words[neighbour]
    if word.lower in _BEFORE_NAMES and word.text[0].isupper() and site.surface[0].isupper():
        return True
    guard = scene.guarded.reasons[neighbour]
    if guard not in {"name", "value"} or word.lower in scene.lexicon.stop_words:
        return False
    mentions = spoken(scene.turn.user).mentions
    values = (member for value in scene.now.values() for member in members_of(value))
    if any(m.first <= neighbour <= m.last for v in values for m in mentions(v)):
        return False
    # Of words that stand in some value, those with a capital count, as ``place`` stands in many.
    capitals = site.surface[:1].isupper() and word.text[0].isupper()
    return guard == "name" or (capitals and not scene.once(ValueTable.of).is_title(word.lower))


def _is_repeated(scene: Scene, site: ValueSite) -> bool:
    """Say whether the user says the value at another place of the dialogue too."""
    if len(spoken(scene.turn.user).mentions(site.value)) > 1:
        return True
    earlier = scene.dialogue.turns[: scene.index]
    return any(spoken(turn.user).mentions(site.value) for turn in earlier)


def _is_from_system(scene: Scene, site: ValueSite) -> bool:
    return bool(spoken(scene.turn.system).mentions(site.value))


def _is_shared(scene: Scene, site: ValueSite) -> bool:
    states = (*scene.before.items(), *scene.now.items())
    return any(
        slot != site.slot and joined(member) == joined(site.value)
        for slot, value in states
        for member in members_of(value)
    )


def _is_in_doubt(scene: Scene, site: ValueSite) -> bool:
    return is_doubtful(scene, site.mention.first)


def is_doubtful(scene: Scene, place: int) -> bool:
    """Say whether something in the clause of a word turns, questions or compares what it says."""
    parts, reasons = scene.parts, scene.guarded.reasons
    if any(
        parts.words[i].lower in DOUBTS or reasons[i] == "negation" for i in clause_of(parts, place)
    ):
        return True
    sentence = sentence_of(parts, place)
    doubtful = any(parts.words[i].lower in {"if", "or"} for i in sentence)
    return doubtful and any(reasons[i] == "negation" for i in sentence)


def _is_guessed(scene: Scene, site: ValueSite) -> bool:
    if site.kind == "number":
        return not _is_counted(scene, site)
    if site.kind == "time" and moment_of(site.slot):
        slots = scene.once(ValueTable.of).kinds
        moments = {moment_of(s) for s in slots if domain_of(s) == domain_of(site.slot)}
        return {"leave", "arrive"} <= moments and _moment_said(scene, site) != moment_of(site.slot)
    return False


def _is_counted(scene: Scene, site: ValueSite) -> bool:
    """Say whether a noun after the number says its slot, or the system's question does."""
    words = [word.lower for word in scene.parts.words]
    nouns = counted_by(site.slot)
    last = site.mention.last
    for place in range(last + 1, min(last + 1 + _NEAR, len(words))):
        if words[place] in nouns:
            return True
        if scene.parts.gaps[place].strip() not in {"", "-"} or words[place] in _PREPOSITIONS:
            break
    first = site.mention.first
    if "people" in nouns and not _GROUPS.isdisjoint(words[max(0, first - _NEAR) : first]):
        return True
    if "?" not in scene.turn.system:
        return False
    asked = {word.lower for word in spoken(scene.turn.system).parts.words}
    kinds = scene.once(ValueTable.of).kinds
    rivals = [slot for slot, kind in kinds.items() if kind == "number" and counted_by(slot) & asked]
    return bool(rivals) and all(counted_by(slot) == nouns for slot in rivals)


_PREPOSITIONS: Final = listed("at on in from for and with by to starting beginning")


def _moment_said(scene: Scene, site: ValueSite) -> str:
    """Return what the time is of by the nearest cue before it, or by the system's question."""
    words = [word.lower for word in scene.parts.words]
    clause = clause_of(scene.parts, site.mention.first)
    for place in range(site.mention.first - 1, clause.start - 1, -1):
        if words[place] in _LEAVING | _ARRIVING:
            return "leave" if words[place] in _LEAVING else "arrive"
    asked = {word.lower for word in spoken(scene.turn.system).parts.words}
    if "?" in scene.turn.system and bool(asked & _LEAVING) != bool(asked & _ARRIVING):
        return "leave" if asked & _LEAVING else "arrive"
    return ""


def _is_mislabelled(scene: Scene, site: ValueSite) -> bool:
    label = scene.turn.state
    return label is not None and label.get(site.slot) != site.value


_LOCKS: Final[tuple[tuple[str, Callable[[Scene, ValueSite], bool]], ...]] = (
    (PART_OF_NAME, _is_part),
    (TWICE, _is_repeated),
    (BY_SYSTEM, _is_from_system),
    (OTHER_SLOT, _is_shared),
    (IN_DOUBT, _is_in_doubt),
    (GUESSED, _is_guessed),
    (MISLABELLED, _is_mislabelled),
)


def said_so_far(scene: Scene) -> Iterator[str]:
    """Yield what was said up to the turn, and the values of its states, to look values up in."""
    for turn in scene.dialogue.turns[: scene.index + 1]:
        yield turn.system
        yield turn.user
    for value in (*scene.before.values(), *scene.now.values()):
        yield from members_of(value)
