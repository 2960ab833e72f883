"""The phrase by which a value is given, as far as it can be left out of a sentence."""

from __future__ import annotations

import re
from typing import Final

from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.kinds import counted_by
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import ValueSite
from pytest_dstfuzz.relations.values import ValueTable

_PREPOSITIONS: Final = listed("in on at from to for by after before around with until into near")
_ARTICLES: Final = listed("the a an")
#: Nouns after a value that are nothing without it: `in the north part of town`.
_HEADS: Final = listed(
    """area part side end section range price prices priced pricerange star stars rating rated type
    style class cuisine o'clock am pm"""
)
_PLACES: Final = listed("town city cambridge")
#: Nouns that no value describes: `one in Elm Hill today`.
_WHEN: Final = listed("today tomorrow tonight")
#: Participles that a preposition leans on: `departing from ely`.
_PARTICIPLES: Final = listed(
    "departing leaving arriving going traveling travelling heading starting beginning coming"
)
_BE: Final = listed("am 'm are 're is 's be i'm we're they're")
#: Verbs of a relative clause that can go as a whole: `that leaves after 10:00`.
_VERBS: Final = listed(
    """leaves departs arrives goes starts leave depart arrive go is serves serve has offers have
    are"""
)
_RELATIVES: Final = listed("that which who")
#: What may stand before a phrase that is left out, besides nouns.
_OPEN: Final = listed("it one ones them me us something somewhere anything please there also and")
#: What may follow.
_AFTER: Final = listed(
    """and for from to in on at by after before with please that which but as so if who can could
    thanks thank also around near near then because where"""
)
_BOUNDARY: Final = re.compile(r"[.,!?;:]")


def phrase_of(scene: Scene, site: ValueSite) -> tuple[int, int] | None:
    """Return the first and the last word of the phrase that gives the value of a site.

    ``None`` where the sentence needs the phrase, or where nothing says how far it goes.
    """
    words = [word.lower for word in scene.parts.words]
    gaps = scene.parts.gaps
    first, last = site.mention.first, site.mention.last
    if site.kind == "choice" and _is_adjective(scene, site, words):
        return first, last
    end = _right(scene, site, words)
    if end is None:
        return None
    if first and words[first - 1] in _ARTICLES and not gaps[first].strip():
        first -= 1
    following = words[end + 1 : end + 3]
    if following[:1] == ["and"] and spelled(following[-1]).isdigit():
        # `for 3 people and 4 nights`: the preposition is that of both.
        return (first, end + 1) if first and words[first - 1] in _PREPOSITIONS else None
    start = _left(words, gaps, first)
    if start is None or not _may_stand_before(scene, words, gaps, start):
        return None
    return start, end


def _is_adjective(scene: Scene, site: ValueSite, words: list[str]) -> bool:
    """Say whether the value only describes the noun after it: `a cheap hotel`."""
    after, parts = site.mention.last + 1, scene.parts
    nothing = _HEADS | _PLACES | _WHEN
    if after == len(words) or parts.gaps[after].strip() or words[after] in nothing:
        return False
    # `for cheap food`, `any indian restaurants`, but not `find indian`: a noun has to remain.
    return (words[after] == "one" or _is_noun(scene, words[after])) and words[after] not in _AFTER


def _right(scene: Scene, site: ValueSite, words: list[str]) -> int | None:
    """Return the last word of the phrase: the value, its head noun, and `of town`."""
    gaps, last = scene.parts.gaps, site.mention.last
    heads = _HEADS | counted_by(site.slot) if site.kind == "number" else _HEADS
    while last + 1 < len(words) and words[last + 1] in heads and not gaps[last + 1].strip("- "):
        last += 1
    if words[last + 1 : last + 2] == ["of"]:
        end = last + 2 + (words[last + 2 : last + 3] == ["the"])
        if words[end : end + 1] and words[end] in _PLACES:
            last = end
        else:
            return None
    if last + 1 == len(words) or _BOUNDARY.search(gaps[last + 1]):
        return last
    return last if words[last + 1] in _AFTER else None


def _left(words: list[str], gaps: list[str], first: int) -> int | None:
    """Return the first word of the phrase: its preposition, and what leans on that."""
    start: int | None = None
    cue = words[first - 1] if first and not gaps[first].strip() else ""
    if cue in {"leaving", "departing", "serving"} or (cue == "and" and words[first][:1].isdigit()):
        start = first - 1
    elif cue in _VERBS:
        start = _relative(words, gaps, first - 1)
    elif cue in _PREPOSITIONS and first > 1 and not gaps[first - 1].strip():
        start = first - 1
        if words[first - 2] in _PARTICIPLES:
            # `I am leaving from`: the sentence has no other verb.
            start = None if first > 2 and words[first - 3] in _BE else first - 2
        elif words[first - 2] in _VERBS:
            start = _relative(words, gaps, first - 2)
    return start


def _relative(words: list[str], gaps: list[str], verb: int) -> int | None:
    """Return the relative pronoun before a verb, the first word of a clause that can go."""
    if verb and words[verb - 1] in _RELATIVES and not gaps[verb].strip():
        return verb - 1
    return None


def _may_stand_before(scene: Scene, words: list[str], gaps: list[str], start: int) -> bool:
    """Say whether the sentence can do without what begins here."""
    if not start:
        return False
    before = words[start - 1]
    if _BOUNDARY.search(gaps[start]):
        return before not in _VERBS
    if before.endswith("ed") and scene.lexicon.majority_pos(before) == "verb":
        return False
    if scene.guarded.reasons[start - 1] in {"value", "number", "name"} or before in _OPEN:
        return True
    return _is_noun(scene, before) and before not in _DANGLING


def _is_noun(scene: Scene, word: str) -> bool:
    """Say whether a word is a noun mostly, or what a domain or slot is called: `trains`."""
    named = scene.once(ValueTable.of).is_title(word)
    return named or scene.lexicon.majority_pos(word) == "noun"


#: Nouns that need what follows them.
_DANGLING: Final = listed("information info details interest look need way time day")
