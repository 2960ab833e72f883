"""What happened to a slot: the kind of its values, where they were said, what the edit hit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import ChangedSlot, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dates import CLOCK_TIME
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.dialogue.multiwoz import CUE_WORDS
from pytest_dstfuzz.dialogue.values import list_text, members_of
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.spelling import Mentions, content, spelled
from pytest_dstfuzz.perturb.value_index import canonical
from pytest_dstfuzz.perturb.words import listed, word_list
from pytest_dstfuzz.weaknesses.edited import Edited, blamed

_ENDING: Final = re.compile("(?:ing|ed|es|al|e)$")
#: Letters of a word without its ending that say which name it is of: `leaving`, `leaveat`.
_STEM: Final = 4
#: What slots are called that are the two ends of a journey.
_ENDS: Final = listed("departure destination origin source from to pickup dropoff")
#: Words of the longest value that is not taken for a name.
_SHORT: Final = 2
#: Words between a cue and the value that it is for, and between `same` and what is the same.
_NEAR, _NEXT = 4, 2
#: Cues that say what is talked about, and not what a value is for: `how about`.
_TOPIC: Final = frozenset({"about"})
#: How near a word is to the name of a slot that it may stand for: `wifi` to `internet`.
_ALIKE: Final = 0.88


class BrokenScene(NamedTuple):
    """A violation and the dialogue that it stands in."""

    edited: Edited
    here: Mentions  #: The utterance of the edits, as it was before them.
    user: Mentions  #: All that the user said, that utterance as well.
    system: Mentions
    state: Mapping[str, str]  #: The answer to the clean turn.
    changed: tuple[ChangedSlot, ...]
    last: str  #: What the user said in the turn that was answered.

    @classmethod
    def of(cls, turn: TurnResult, variant: VariantResult) -> BrokenScene:
        """Return what is known about a violation of a turn."""
        edited, plain = blamed(turn, variant), variant.plain
        edits = {earlier.turn_index: earlier.edits for earlier in plain.context_edits}
        user = [undo_edits(text, edits.get(n, ())) for n, text in enumerate(plain.context)]
        return cls(
            edited,
            Mentions([edited.clean]),
            Mentions([*user, turn.user]),
            Mentions([*turn.earlier_system, turn.system]),
            turn.clean_state or {},
            plain.changed_slots,
            turn.user,
        )


class Traits(NamedTuple):
    """What tells the change of one slot from others."""

    family: str  #: One of ``any``, ``yes-no``, ``number``, ``end``, ``name`` and ``choice``.
    happened: str  #: One of ``lost``, ``put in`` and ``replaced``.
    here: bool  #: Whether the utterance of the edits says the value, the old one or the new one.
    user: bool  #: Likewise the user at any time.
    system: bool  #: Likewise the system; of a value replaced, both of them.
    cue: bool  #: Whether the edit hit the slot's name, or a word for what the value is for.
    other_cue: bool  #: Whether the edit hit the name of another slot of the domain.
    domain_word: bool  #: Whether the edit hit the name of the slot's domain.
    copied: bool  #: Whether the new value has a word that only the edit brought.
    runs_on: bool  #: Whether a value goes on with the name of another slot.
    crossed: bool  #: Whether its value went to another domain, or came from there.
    sibling: bool  #: Whether another slot of the domain has, or had, the new or the lost value.
    elsewhere: bool  #: Whether another domain has the old value, or the new one.
    same: bool  #: Whether the user points to another value by the slot's name: ``the same day``.


def traits_of(change: ChangedSlot, scene: BrokenScene) -> Traits:
    """Return what tells the change of a slot from others; of a list the members that changed."""
    others = [one for one in scene.changed if one is not change]
    change = _of_members(change)
    before, after = change.before, change.after
    values = [value for value in (before, after) if value is not None]
    domain = domain_of(change.slot)
    held = [(slot, value) for slot, value in scene.state.items() if slot != change.slot]
    had = [*held, *((one.slot, one.before) for one in others)]
    known = [(scene.system.says(value), scene.user.says(value)) for value in values]
    happened = "lost" if after is None else "put in" if before is None else "replaced"
    family = family_of(change)
    return Traits(
        family=family,
        happened=happened,
        here=any(map(scene.here.says, values)),
        user=any(user for _, user in known),
        system=all(system for system, _ in known),
        cue=_hits_cue(change, family, values, scene),
        other_cue=any(
            _is_name(word, names_of(slot))
            for slot in [*scene.state, *(one.slot for one in others)]
            if slot != change.slot and domain_of(slot) == domain
            for word in scene.edited.words
        ),
        domain_word=domain in scene.edited.words,
        copied=not scene.edited.brought.isdisjoint(word_list(after or "")),
        runs_on=any(_runs_on(value, scene) for value in values),
        crossed=happened != "replaced"
        and any(
            domain_of(one.slot) != domain and (one.after, one.before) == (before, after)
            for one in others
        ),
        sibling=any(value in values[-1:] and domain_of(slot) == domain for slot, value in had),
        elsewhere=any(value in values and domain_of(slot) != domain for slot, value in held),
        same=_points(change, scene),
    )


def _of_members(change: ChangedSlot) -> ChangedSlot:
    """Return a change of a list without the members that stay."""
    before, after = (
        Counter(() if value is None else members_of(value))
        for value in (change.before, change.after)
    )
    if before == after or max(before.total(), after.total()) < 2:
        return change
    gone, new = (list((before - after).elements()), list((after - before).elements()))
    texts = [list_text(some) if len(some) > 1 else (*some, None)[0] for some in (gone, new)]
    return replace(change, before=texts[0], after=texts[1])


def domain_of(slot: str) -> str:
    """Return what a slot is about, ``""`` where its name does not tell.

    >>> domain_of("hotel-book stay"), domain_of("size")
    ('hotel', '')
    """
    return slot.partition("-")[0] if "-" in slot else ""


def names_of(slot: str) -> list[str]:
    """Return the words for what a slot holds.

    >>> names_of("hotel-book stay"), names_of("drop_off")
    (['book', 'stay'], ['drop', 'off'])
    """
    return word_list(re.sub(r"[-_.]", " ", slot.partition("-")[2] or slot))


def family_of(change: ChangedSlot) -> str:
    """Return the kind of slot, as its name and its values tell.

    >>> family_of(ChangedSlot("train-leaveat", "12:15", None))
    'number'
    >>> family_of(ChangedSlot("hotel-area", "dontcare", "north"))
    'any'
    >>> family_of(ChangedSlot("hotel-name", None, "worth house"))
    'name'
    """
    values = [value.lower() for value in (change.before, change.after) if value]
    names = names_of(change.slot)
    if DONTCARE in values:
        return "any"
    if all(value in ("yes", "no", "true", "false") for value in values):
        return "yes-no"
    if any(CLOCK_TIME.fullmatch(value) or value.isdecimal() for value in values):
        return "number"
    if not _ENDS.isdisjoint(names):
        return "end"
    long = any(len(word_list(value)) > _SHORT for value in values)
    return "name" if long or "name" in names else "choice"


def _hits_cue(change: ChangedSlot, family: str, values: Sequence[str], scene: BrokenScene) -> bool:
    """Say whether an edited word names the slot, or says beside its value what that is for."""
    clean = word_list(scene.edited.clean)
    names = names_of(change.slot)
    said = {word for value in values if scene.here.says(value) for word in content(value)}
    at = [place for place, word in enumerate(clean) if spelled(word) in said]
    for word in scene.edited.words:
        if _is_name(word, names):
            return True
        if family == "yes-no":
            near = [name for name, cosine in load_lexicon().neighbours(word) if cosine > _ALIKE]
            if any(_is_name(other, names) for other in near):
                return True
        elif word in _cues():
            places = [place for place, other in enumerate(clean) if other == word]
            if any(0 < abs(one - other) <= _NEAR for one in at for other in places):
                return True
    return False


@cache
def _cues() -> frozenset[str]:
    """Return the single words that say what a value is for, of travel and of other requests."""
    cues = (*load_lexicon().cues, *CUE_WORDS)
    return frozenset(cue for cue in cues if " " not in cue) - _TOPIC


def _is_name(word: str, names: Sequence[str]) -> bool:
    """Say whether a lower-cased word names a slot of these words, its ending left aside."""
    stem = _ENDING.sub("", canonical(word))
    if len(stem) >= _STEM and any(name.startswith(stem) for name in names):
        return True
    return canonical(word) in map(canonical, names)


def _points(change: ChangedSlot, scene: BrokenScene) -> bool:
    """Say whether the user says `same` of what the slot is called."""
    names = names_of(change.slot)
    for text in (scene.edited.clean, scene.last):
        words = word_list(text)
        for place, word in enumerate(words, 1):
            if word == "same" and any(_is_name(other, names) for other in words[place:][:_NEXT]):
                return True
    return False


def _runs_on(value: str, scene: BrokenScene) -> bool:
    """Say whether a value that nobody said has the name of a slot in its midst."""
    slots = [*scene.state, *(one.slot for one in scene.changed)]
    labels = {names[-1] for slot in slots if (names := names_of(slot))}
    within = not labels.isdisjoint(word_list(value)[1:-1])
    return within and not scene.user.says(value) and not scene.system.says(value)
