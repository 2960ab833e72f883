"""Values that a text says beside those that it is known to give."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import SlotChange
from pytest_dstfuzz.perturb.spelling import Mentions, content
from pytest_dstfuzz.relations.kinds import kind_of, name_words
from pytest_dstfuzz.relations.mentions import SpokenText
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import spoken
from pytest_dstfuzz.relations.values import ValueTable, joined

#: Longest value, in words, that is looked for.
_LONGEST: Final = 5
#: A time of day; the values of data are never all times that people say.
_CLOCK: Final = re.compile(r"\d[:.]\d\d|\d ?[ap]\.?m\b", re.IGNORECASE)


def says_more(scene: Scene, text: str, given: Collection[SlotChange]) -> bool:
    """Say whether a text says a value that it is not known to give, or a word of one in the state.

    The label is poor there, or other slots would lose what they have if it were not said.

    Args:
        scene: the state, and the values of the data.
        text: what a user says.
        given: what it is known to give.
    """
    table, user = scene.once(ValueTable.of), spoken(text)
    own = {place for change in given for place in _places(user, change.after)}
    slots = {change.slot for change in given}
    elsewhere = {slot: value for slot, value in scene.now.items() if slot not in slots}
    parts = {word for value in elsewhere.values() for word in content(value)} - table.titles
    words = [word.lower for word in user.parts.words]
    telling = [place for place, word in enumerate(words) if joined(word)]
    for first, last in spans(telling):
        if own.issuperset(place for place in telling if first <= place <= last):
            continue
        found = " ".join(words[first : last + 1])
        value = joined(found)
        if not table.is_title(found) and (value in table.telling or value in parts):
            return True
    flags = [slot for slot, kind in table.kinds.items() if kind == "yes-no"]
    said = Mentions([text])
    return any(slot not in slots and all(map(said.says, name_words(slot))) for slot in flags)


def says_other(scene: Scene, text: str, change: SlotChange, given: Collection[SlotChange]) -> bool:
    """Say whether a text says a value of a slot, in words that give nothing else.

    Args:
        scene: the values of the data.
        text: what a user says, and in which the slot's own value does not stand.
        change: what gave the slot its value; for a time, every time is another value.
        given: what the text gives by its labels. Its words are passed over: they are for another
            slot with the same values.
    """
    table, user = scene.once(ValueTable.of), spoken(text)
    own = {place for change in given for place in _places(user, change.after)}
    words = [word.lower for word in user.parts.words]
    # `That one` counts nothing.
    telling = [place for place, word in enumerate(words) if joined(word) and word != "one"]
    wanted = table.joined_values.get(change.slot, frozenset())
    for first, last in spans([place for place in telling if place not in own]):
        found = " ".join(words[first : last + 1])
        if joined(found) in wanted and not table.is_title(found):
            return True
    # Of the value and not of the slot: data without an ontology may know no other value.
    if change.after is None or kind_of(change.slot, [change.after]) != "time":
        return False
    taken = [user.parts.words[place].start for place in own]
    clocks = _CLOCK.finditer(text)
    return any(not any(one.start() - 2 < at < one.end() for at in taken) for one in clocks)


def spans(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of all that may be a value."""
    for first, last in combinations_with_replacement(places, 2):
        if last - first < _LONGEST:
            yield first, last


def _places(text: SpokenText, value: str | None) -> Iterator[int]:
    """Yield the words that say a value."""
    for mention in text.mentions(value or ""):
        yield from range(mention.first, mention.last + 1)
