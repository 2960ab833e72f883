"""Names in a text, with or without capitals."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.draft import WordFacts
from pytest_dstfuzz.perturb.words import Parts, take_apart, word_set

_SENTENCE_END: Final = re.compile(r"[.!?…。]")
_CALLED: Final = frozenset({"called", "named", "titled", "call"})
#: Words inside names that are not capitalised.
_LINKS: Final = frozenset({"and", "of", "the", "'s", "’s"})
#: Marks that end a name.
_NAME_ENDS: Final = frozenset(",.!?;:")
#: Longest name, in words, after ``called``.
_LONGEST: Final = 6
#: If more than this share of the words is capitalised, capitals do not mark names.
_TITLE_CASE: Final = 0.5


def match_called(lowers: Sequence[str], gaps: Sequence[str], closed: Collection[str]) -> list[int]:
    """Return the words after ``called`` or ``named``, up to the first function word."""
    found: list[int] = []
    if _CALLED.isdisjoint(lowers):
        return found
    for index, word in enumerate(lowers):
        if word not in _CALLED:
            continue
        for place in range(index + 1, min(index + 1 + _LONGEST, len(lowers))):
            lower = lowers[place]
            inside = lower in _LINKS and (place == index + 1 or place - 1 in found[-1:])
            if not _NAME_ENDS.isdisjoint(gaps[place]) or (lower in closed and not inside):
                break
            found.append(place)
    return found


def find_capitalised(
    text: str,
    parts: Parts,
    capitals: Sequence[bool],
    plain: Collection[str],
    is_word: Callable[[str], bool],
) -> set[int]:
    """Return the words with a capital that grammar does not require.

    Words in ``plain`` (lower-cased stop words and greetings) count only if they link two other
    capitalised words (``of``, ``'s``). The first word of a sentence counts if it is unknown or if a
    capitalised word follows.
    """
    words, gaps = parts.words, parts.gaps
    if sum(capitals) > _TITLE_CASE * len(words) and len(words) > 2 and text.isupper():
        return set()
    found: list[int] = []
    for index, word in enumerate(words):
        if not capitals[index]:
            continue
        if not index or _SENTENCE_END.search(gaps[index]):
            follows = index + 1 < len(words) and capitals[index + 1]
            if is_word(word.lower) and (word.lower in plain or not follows):
                continue
        elif word.lower in plain:
            continue
        found.append(index)
    known = set(found)
    for index in found:
        place = index + 1
        while place < len(words) and words[place].lower in _LINKS:
            place += 1
        if place in known:
            known.update(range(index, place))
    return known


def find_named_by_system(system: str, lowers: Collection[str]) -> set[str]:
    """Return those words of ``lowers`` that are names in the preceding system utterance."""
    if not _may_name(system, lowers):
        return set()
    parts = take_apart(system)
    found = {
        word.lower
        for word, gap in zip(parts.words[1:], parts.gaps[1:], strict=False)
        if word.text[0].isupper() and not _SENTENCE_END.search(gap)
    }
    return found.intersection(lowers)


def _may_name(system: str, lowers: Collection[str]) -> bool:
    """Return False if it is obvious that the system utterance has no name."""
    if not system.isascii():
        return True  # Lower-casing may change offsets.
    spoken = system.lower()
    for lower in lowers:
        at = spoken.find(lower)
        while at >= 0:
            if system[at].isupper():
                return True
            at = spoken.find(lower, at + 1)
    return False


_FILE: Final = resources.files("pytest_dstfuzz") / "resources" / "lexicon" / "names.txt"
#: Words that precede the name of a place.
_TOWARDS: Final = word_set(
    """to from in at near via around towards toward through into outside visit visiting reach
    reaching leaving between past beyond nearby"""
)
_AFTER: Final = _TOWARDS | {"with", "on"}
#: Words after the name of a place. An adjective before such a word is part of the name.
_PLACED: Final = word_set("airport station city town beach international university cathedral area")
#: Words that precede the name of a person.
_TOWARDS_PERSON: Final = word_set(
    """for with by under from about tell ask call remind message text email phone ring invite
    contact meet meeting see seeing and or dear mr mrs ms miss dr prof professor sir madam
    aunt uncle daughter son friend wife husband sister brother mother father mom mum dad
    boss colleague partner cousin neighbour neighbor assistant girlfriend boyfriend fiance
    fiancee niece nephew grandma grandpa grandmother grandfather dog cat baby named"""
)
#: Words of the set above that may also precede a verb.
_JOINING: Final = word_set("and or")
_ENDS: Final = frozenset(",.!?;:")
_DETERMINERS: Final = word_set(
    "the a an my your his her its our their this that these those some any"
)
_BOOKINGS: Final = word_set(
    "booking bookings booked book reservation reserved reserve table room name order"
)
_PLAYS: Final = word_set("play stream watch read hear listening queue")
#: Last words of street names.
_STREETS: Final = word_set("street road avenue lane valley boulevard terrace crescent square")
_FLYING: Final = word_set("fly flying flew flown flies travel sail")
_FLIGHTS: Final = word_set("flight flights")
#: Maximum distance, in words, from a word for flying to the name of the airline.
_FLIGHT: Final = 5
#: First words of a question about a person: `is grace coming`.
_ASKING: Final = word_set("is was")
#: Longest title, and longest name after the words that introduce one, in words.
_LONGEST_TITLE: Final = 6
_LONGEST_NAME: Final = 3
#: Words that end a name.
_IDLE: Final = word_set(
    """please thanks thank is was that on in at for from to now today tonight and i next last this
    tomorrow yesterday or but with of by as so"""
)


class NameLists(NamedTuple):
    """The words of `resources/lexicon/names.txt`."""

    #: Words that are names in every context.
    always: frozenset[str]
    #: Ordinary words that are also the name of a place, or a given name.
    places: frozenset[str]
    given: frozenset[str]
    #: Ordinary words that may follow a given name as a family name.
    family: frozenset[str]


@cache
def name_lists() -> NameLists:
    """Return the shipped lists."""
    lists = dict(line.split(":", 1) for line in _FILE.read_text(encoding="utf-8").splitlines())
    return NameLists(*(word_set(lists[name]) for name in NameLists._fields))


def lower_names(facts: Sequence[WordFacts], gaps: Sequence[str], locked: Sequence[str]) -> set[int]:
    """Return the indices of lower-case words that are names in their context.

    Args:
        facts: the facts about each word.
        gaps: the text before each word, and the text after the last one.
        locked: the lock that already guards each word.
    """
    found: set[int] = set()
    for index in range(1, len(facts)):
        if gaps[index] == " " and (
            _is_place(facts, gaps, index, found, locked) or _is_person(facts, gaps, index)
        ):
            found.add(index)
            if index + 1 < len(facts) and gaps[index + 1] == " ":
                found.update([index + 1] if facts[index + 1].family and facts[index].given else [])
    for index in range(1, len(facts)):
        if facts[index].lower in _STREETS and gaps[index] == " " and not facts[index - 1].stop_word:
            found.add(index - 1)
    found.update(_introduced(facts, gaps))
    found.update(_titles(facts, gaps))
    return found


def _is_place(
    facts: Sequence[WordFacts],
    gaps: Sequence[str],
    index: int,
    found: set[int],
    locked: Sequence[str],
) -> bool:
    before, fact = facts[index - 1].lower, facts[index]
    if before not in _AFTER or fact.stop_word:
        return False
    following = None
    if index + 1 < len(facts) and gaps[index + 1] == " ":
        following = facts[index + 1]
    ends = following is None or (following.stop_word and following.lower not in _DETERMINERS)
    ends = ends or (following is not None and following.lower in _IDLE)
    if fact.place and before in _TOWARDS:
        if fact.describes or (fact.verb and before == "to" and not fact.lower.endswith("ing")):
            return ends or (following is not None and following.lower in _PLACED)
        return not (before == "to" and following is not None and following.lower in _DETERMINERS)
    if before in {"with", "on"} and index > 1:
        # `fly with delta`, `a flight to orlando with frontier`.
        earlier = [other.lower for other in facts[max(index - _FLIGHT, 0) : index - 1]]
        flown = not _FLYING.isdisjoint(earlier) or not _FLIGHTS.isdisjoint(earlier)
        return (earlier[-1:] != [] and earlier[-1] in _FLYING) or (fact.rare and ends and flown)
    # `from Dover to Deal`: if the origin is a name, so is the destination.
    return (
        before == "to"
        and index > 2
        and ends
        and facts[index - 3].lower in {"from", "between"}
        and (
            locked[index - 2] in {"name", "value"} or index - 2 in found or facts[index - 2].unknown
        )
    )


def _is_person(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    before, fact = facts[index - 1].lower, facts[index]
    following = facts[index + 1] if index + 1 < len(facts) and gaps[index + 1] == " " else None
    if fact.given and before in _ASKING:
        return following is not None and following.lower.endswith("ing")
    if fact.given and before == "to":
        # `write to will`, `send it to faith and hope`. But in `to grant`, the word may be a verb.
        paired = following is not None and following.lower == "and"
        return fact.lower == "will" or (not fact.verb and (following is None or paired))
    if not fact.given or before not in _TOWARDS_PERSON:
        return False
    joins = before == "and" and index > 1 and facts[index - 2].given
    if before in _JOINING and not joins:
        return following is not None and following.family and fact.lower != "will"
    # In `for summer holidays` and `with rose wine` the word describes the next one.
    described = following is not None and following.noun and not following.family
    return not described or fact.lower == "will"


def _introduced(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[int]:
    """Yield the words after `my name is`, `in the name of` and `booked under`."""
    for index, fact in enumerate(facts):
        lower = fact.lower
        after = [other.lower for other in facts[index + 1 : index + 2]]
        if (
            lower in {"name", "names"}
            and after
            and after[0] in {"is", "'s", "’s", "of", "are", "as"}
        ):
            yield from _run(facts, gaps, index + 2, _LONGEST_NAME)
        elif lower == "name" and index and facts[index - 1].lower in {"last", "first", "family"}:
            yield from _run(facts, gaps, index + 1, _LONGEST_NAME)
        elif lower in {"name's", "name’s", "surname"}:
            skip = int(after[:1] in (["is"], ["'s"]))
            yield from _run(facts, gaps, index + 1 + skip, _LONGEST_NAME)
        elif lower == "under" and any(
            other.lower in _BOOKINGS for other in facts[max(index - 5, 0) : index]
        ):
            yield from _run(facts, gaps, index + 1, _LONGEST_NAME)


def _titles(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[int]:
    """Yield the words of a title and its artist: `play hello by adele`."""
    for index, fact in enumerate(facts):
        if fact.lower not in _PLAYS:
            continue
        first = index + 1
        while first < len(facts) and facts[first].lower in {"me", "us", "the", "song", "a", "to"}:
            first += 1
        for by in range(first + 1, min(first + _LONGEST_TITLE + 1, len(facts) - 1)):
            if facts[by].lower == "by" and gaps[by] == " ":
                yield from range(first, by)
                yield from _run(facts, gaps, by + 1, _LONGEST_NAME)
                break
            if not _ENDS.isdisjoint(gaps[by]):
                break


def _run(
    facts: Sequence[WordFacts], gaps: Sequence[str], first: int, longest: int
) -> Iterator[int]:
    """Yield the words from ``first`` up to the end of a clause or a function word.

    A function word that is also a given name (`will`) does not end the sequence.
    """
    for place in range(first, min(first + longest, len(facts))):
        fact = facts[place]
        idle = fact.stop_word or fact.lower in _IDLE
        if (idle and not fact.given) or (not _ENDS.isdisjoint(gaps[place]) and place > first):
            break
        if not _ENDS.isdisjoint(gaps[place].replace(":", "")):
            break
        yield place
