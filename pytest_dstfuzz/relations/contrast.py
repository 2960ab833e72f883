"""A relation that names what the user does not mean: `my debit card, not the credit card`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import islice
from typing import Final

from pytest_dstfuzz.dialogue.dates import WEEKDAYS
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import take_apart, word_set
from pytest_dstfuzz.relations.order import asks_when
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Replacement, Scene
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.relations.wording import (
    Change,
    Sentence,
    Wording,
    asks_to,
    requests,
    says_need,
    sentences,
)

_NO_OTHER: Final = "the turn requests nothing of which the users of the data name another kind"
#: Number of utterances in which other kinds of things are looked for.
_MOST_READ: Final = 2000
#: Words before a noun that name no kind of it.
_NO_KINDS: Final = word_set(
    """new next last first second other same full more many most few free good nice great whole
    opening closing own right extra big small little long short old whole total single double
    different following entire repeat"""
)
_HELD: Final = word_set("my the our your")
_NEGATIONS: Final = word_set("not no never nothing nor without except instead rather")
#: Beginnings of a request besides those of `asks_to`.
_FOR_USER: Final = (("can", "i"), ("could", "i"), ("may", "i"))
#: Words of the stop list that continue a thing or a day.
_CONTINUES: Final = word_set("of this next")
_LONGEST: Final = 20


@register_relation
class Contrast(Wording):
    """Names what the user does not mean, beside what he means. The answer must stay the same.

    Source: own.
    """

    name = "contrast"
    source = "the utterances of the data itself"
    reasons = (_NO_OTHER,)
    most = 1
    checks_locks = False  # The user's own words stay.

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the turn with each kind of thing or day that the user may refuse in passing."""
        kinds = scene.once(_kinds)
        for one in sentences(scene.turn.user):
            asks = requests(one) or asks_to(one) or says_need(one) or one.said[:2] in _FOR_USER
            if not asks or len(one.said) > _LONGEST or not _NEGATIONS.isdisjoint(one.said):
                continue
            if {"and", "or"}.isdisjoint(one.said) and not any("," in gap for gap in one.gaps):
                yield from _other_kinds(scene, one, kinds)
                if not asks_when(scene.turn.system):
                    yield from _other_days(one)


def _other_kinds(scene: Scene, one: Sentence, kinds: Mapping[str, Set[str]]) -> Iterator[Change]:
    """Yield `my debit card, not the credit card` for `my debit card`."""
    said = one.said
    for place in range(1, len(said)):
        noun, kind = said[place], said[place - 1]
        others = kinds.get(noun, frozenset())
        if kind not in others or not one.gaps[place - 1].isspace() or said.count(noun) > 1:
            continue
        held = place > 1 and said[place - 2] in _HELD
        several = bool(_single(noun))
        if not (held or several) or not _ends(one, place):
            continue
        for other in sorted(others - {kind, *said}):
            if scene.kind.name != "reply" and not _of_one_slot(scene, kind, other):
                continue
            thing = f"the {other} {noun}" if held else f"{other} ones"
            yield (_aside(one, place, f"not {thing}"),)


def _single(noun: str) -> str:
    """Return the singular of a noun, or ``""`` if it is no plural."""
    found = inflections().singular(noun)
    ends = noun.endswith("s") and not noun.endswith("ss")
    return found if found is not None else noun[:-1] * ends


def _of_one_slot(scene: Scene, kind: str, other: str) -> bool:
    """Return whether two words are values of one slot."""
    return any({kind, other} <= {*values} for values in scene.table.values.values())


def _other_days(one: Sentence) -> Iterator[Change]:
    """Yield `on Friday, not Saturday` for `on Friday`."""
    found = [n for n, word in enumerate(one.said) if word in WEEKDAYS]
    if len(found) != 1 or not found[0] or one.said[found[0] - 1] != "on":
        return
    if not _ends(one, found[0]):
        return
    place = found[0]
    day = WEEKDAYS.index(one.said[place])
    for step in (1, -1):
        other = WEEKDAYS[(day + step) % len(WEEKDAYS)]
        other = other.capitalize() if one.words[place].text[0].isupper() else other
        yield (_aside(one, place, f"not {other}"),)


def _ends(one: Sentence, place: int) -> bool:
    """Return whether a thing ends with a word: `range` continues `the cheap price`."""
    if place + 1 == len(one.said):
        return True
    after = one.said[place + 1]
    return after not in _CONTINUES and after in load_lexicon().stop_words


def _aside(one: Sentence, place: int, text: str) -> Replacement:
    """Return the insertion of a text between commas after the word ``place``."""
    at = one.words[place].end
    return Replacement(at, at, f", {text}{'' if place + 1 == len(one.said) else ','}", "contrast")


def _kinds(data: DialogueSet) -> Mapping[str, Set[str]]:
    """Return the kinds of things that users name: noun -> its kinds."""
    lexicon = load_lexicon()
    found: dict[str, set[str]] = {}
    no_kinds = (_NO_KINDS, lexicon.stop_words, NUMBER_WORDS)
    said = (turn.user for talk in data.dialogues for turn in talk.turns)
    for user in islice(said, _MOST_READ):
        parts = take_apart(user)
        for place in range(1, len(parts.words)):
            kind, noun = parts.words[place - 1].text, parts.words[place].text
            base = _single(noun) or noun
            plain = kind.islower() and noun.islower() and parts.gaps[place].isspace()
            if not plain or any(kind in words for words in no_kinds):
                continue
            described = lexicon.majority_pos(kind) in {"adj", "noun"} or not lexicon.is_word(kind)
            if described and lexicon.majority_pos(base) == "noun":
                found.setdefault(noun, set()).add(kind)
    return {noun: kinds for noun, kinds in found.items() if len(kinds) > 1}
