"""Mechanisms: the ways a state, a call or a reply can go wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, not_corrected
from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult, bare
from pytest_dstfuzz.comparisons.facts import SameNames, SameNumbers
from pytest_dstfuzz.comparisons.polarity import SamePolarity, is_fallback
from pytest_dstfuzz.dialogue.calls import (
    REPLY,
    AnswerPath,
    arguments_in,
    list_text,
    members_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dates import CLOCK_TIME
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Difference, Exchange
from pytest_dstfuzz.dialogue.normalise import CUE_WORDS
from pytest_dstfuzz.perturb.edits import source_spans, undo_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.values import Mentions, canonical, content, spell_compared
from pytest_dstfuzz.perturb.words import Edit, take_apart, word_list, word_set


class Edited(NamedTuple):
    """An utterance with the edits that caused a violation."""

    clean: str
    text: str
    edits: tuple[Edit, ...]

    @property
    def reached(self) -> tuple[str, ...]:
        """The lower-case clean words that the edits overlap. Pure insertions overlap none."""
        words = take_apart(self.clean).words
        spans = list(source_spans(self.edits))
        found = (
            word.lower
            for start, end in spans
            for word in words
            if start < word.end and word.start < end
        )
        return tuple(dict.fromkeys(found))

    @property
    def words(self) -> tuple[str, ...]:
        """The lower-case clean words that the edits overlap or are nearest to."""
        words = take_apart(self.clean).words
        found: list[str] = []
        for start, end in source_spans(self.edits):
            # No word overlaps the edit, so take the nearest ones: two words for a blank, and the
            # word before for an insertion.
            inside = [word.lower for word in words if start < word.end and word.start < end]
            beside = [word.lower for word in words if start <= word.end and word.start <= end]
            near = sorted(words, key=lambda word: max(word.start - end, start - word.end))
            found += inside or beside or [word.lower for word in near[:1]]
        return tuple(dict.fromkeys(found))

    @property
    def brought(self) -> frozenset[str]:
        """The lower-case words that only the edits added."""
        return frozenset(word_list(self.text)).difference(word_list(self.clean))


def blamed(turn: TurnResult, variant: VariantResult) -> Edited:
    """Return the edits that caused a violation, from its smallest version if known.

    Usually these are the edits of the turn itself. If earlier turns caused the violation, these are
    the edits of the last edited turn before it.
    """
    plain = variant.plain
    earlier = plain.context_edits
    if earlier and (variant.cause == "context" or not plain.edits):
        text = plain.context[earlier[-1].turn_index]
        return Edited(undo_edits(text, earlier[-1].edits), text, earlier[-1].edits)
    return Edited(turn.user, plain.text, plain.edits)


_ENDING: Final = re.compile("(?:ing|ed|es|al|e)$")
#: A word without its ending must be this long to match a slot name: `leaving` matches `leaveat`.
_STEM: Final = 4
#: Slot names for the two ends of a journey.
_ENDS: Final = word_set("departure destination origin source from to pickup dropoff")
#: Maximum length, in words, of a value that is not a name.
_SHORT: Final = 2
#: Maximum distance, in words, between a cue and its value, and between `same` and its noun.
_NEAR, _NEXT = 4, 2
#: Cues that introduce a topic, not a value: `how about`.
_TOPIC: Final = frozenset({"about"})
#: A word may stand for a slot name if it is at least this similar: `wifi` for `internet`.
_ALIKE: Final = 0.88


@dataclass(frozen=True)
class BrokenScene:
    """A violation and its dialogue.

    Its indexes of slots keep the time for many changed slots linear.
    """

    edited: Edited
    here: Mentions  #: The edited utterance, before the edits.
    user: Mentions  #: All user texts, including that utterance.
    system: Mentions
    state: Mapping[str, str]  #: The answer to the clean turn.
    changed: tuple[Difference, ...]
    last: str  #: The user's text in the answered turn.

    @classmethod
    def of(cls, turn: TurnResult, variant: VariantResult) -> BrokenScene:
        """Return the known facts about a violation of a turn."""
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

    @cached_property
    def labels(self) -> frozenset[str]:
        """The last word of the name of each slot."""
        return frozenset(names[-1] for slot in self._slots if (names := names_of(slot)))

    @cached_property
    def hit(self) -> Mapping[str, AbstractSet[str]]:
        """Domain -> the slots whose name has an edited word."""
        found: dict[str, set[str]] = {}
        for slot in self._slots:
            names = names_of(slot)
            if any(_is_name(word, names) for word in self.edited.words):
                found.setdefault(domain_of(slot), set()).add(slot)
        return found

    @cached_property
    def holders(self) -> Mapping[str, AbstractSet[str]]:
        """Value -> the domains of the slots that have it in the answer to the clean turn."""
        found: dict[str, set[str]] = {}
        for slot, value in self.state.items():
            found.setdefault(value, set()).add(domain_of(slot))
        return found

    @cached_property
    def owners(self) -> Mapping[tuple[str, str], AbstractSet[str]]:
        """Domain and value -> the slots that have the value there, or had it before a change."""
        before = [(one.slot, one.before) for one in self.changed if one.before is not None]
        found: dict[tuple[str, str], set[str]] = {}
        for slot, value in (*self.state.items(), *before):
            found.setdefault((domain_of(slot), value), set()).add(slot)
        return found

    @cached_property
    def moves(self) -> Mapping[tuple[str | None, str | None], AbstractSet[str]]:
        """The values before and after a change -> the domains of the slots that changed so."""
        found: dict[tuple[str | None, str | None], set[str]] = {}
        for one in self.changed:
            found.setdefault((one.before, one.after), set()).add(domain_of(one.slot))
        return found

    @cached_property
    def _slots(self) -> AbstractSet[str]:
        return {*self.state, *(one.slot for one in self.changed)}


class Traits(NamedTuple):
    """The features of a changed slot that determine the mechanism."""

    family: str  #: One of ``any``, ``yes-no``, ``number``, ``end``, ``name`` and ``choice``.
    happened: str  #: One of ``lost``, ``put in`` and ``replaced``.
    here: bool  #: Whether the edited utterance says the old or the new value.
    user: bool  #: Whether the user says the old or the new value at any time.
    system: bool  #: Whether the system says the value; for a replaced value, both values.
    cue: bool  #: Whether the edit hit the slot's name, or a cue for its value.
    other_cue: bool  #: Whether the edit hit the name of another slot of the domain.
    domain_word: bool  #: Whether the edit hit the name of the slot's domain.
    copied: bool  #: Whether the new value has a word that only the edit introduced.
    misspelt: bool  #: Whether the edit hit a word of the old value.
    runs_on: bool  #: Whether a value runs on into the name of another slot.
    crossed: bool  #: Whether the value moved to or from another domain.
    sibling: bool  #: Whether another slot of the domain has, or had, the new or the lost value.
    elsewhere: bool  #: Whether another domain has the old or the new value.
    same: bool  #: Whether the user refers to another value by the slot's name: ``the same day``.


def traits_of(change: Difference, scene: BrokenScene) -> Traits:
    """Return the features of a changed slot. For a list, only the changed members count."""
    change = _of_members(change)
    before, after = change.before, change.after
    values = [value for value in (before, after) if value is not None]
    domain = domain_of(change.slot)
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
        other_cue=not scene.hit.get(domain, set()) <= {change.slot},
        domain_word=domain in scene.edited.words,
        copied=not scene.edited.brought.isdisjoint(word_list(after or "")),
        misspelt=any(map(_is_slip, scene.edited.edits))
        and not set(word_list(before or "")).isdisjoint(scene.edited.reached),
        runs_on=any(_runs_on(value, scene) for value in values),
        crossed=happened != "replaced" and not scene.moves.get((after, before), set()) <= {domain},
        sibling=any(
            not scene.owners.get((domain, value), set()) <= {change.slot} for value in values[-1:]
        ),
        elsewhere=any(not scene.holders.get(value, set()) <= {domain} for value in values),
        same=_points(change, scene),
    )


def _is_slip(edit: Edit) -> bool:
    """Return whether an edit mistypes a word."""
    return edit.transformation.startswith("char_") or edit.operator == "misspelling"


def _of_members(change: Difference) -> Difference:
    """Return the change of a list without its unchanged members."""
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
    """Return the domain of a slot, or ``""`` if its name has none.

    >>> domain_of("hotel-book stay"), domain_of("size")
    ('hotel', '')
    """
    return slot.partition("-")[0] if "-" in slot else ""


@lru_cache(maxsize=10_000)
def names_of(slot: str) -> tuple[str, ...]:
    """Return the words of a slot name without its domain.

    >>> names_of("hotel-book stay"), names_of("drop_off")
    (('book', 'stay'), ('drop', 'off'))
    """
    return tuple(word_list(re.sub(r"[-_.]", " ", slot.partition("-")[2] or slot)))


def family_of(change: Difference) -> str:
    """Return the family of a slot, such as ``number`` or ``name``, from its name and values.

    >>> family_of(Difference("train-leaveat", "12:15", None))
    'number'
    >>> family_of(Difference("hotel-area", "dontcare", "north"))
    'any'
    >>> family_of(Difference("hotel-name", None, "worth house"))
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


def _hits_cue(change: Difference, family: str, values: Sequence[str], scene: BrokenScene) -> bool:
    """Return whether an edited word names the slot or announces a value (a cue)."""
    clean = word_list(scene.edited.clean)
    names = names_of(change.slot)
    said = {word for value in values if scene.here.says(value) for word in content(value)}
    at = [place for place, word in enumerate(clean) if spell_compared(word) in said]
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
    """Return the single words that announce a value, in travel and other requests."""
    cues = (*load_lexicon().cues, *CUE_WORDS)
    return frozenset(cue for cue in cues if " " not in cue) - _TOPIC


def _is_name(word: str, names: Sequence[str]) -> bool:
    """Return whether a lower-case word matches a slot name, regardless of its ending."""
    stem = _ENDING.sub("", canonical(word))
    if len(stem) >= _STEM and any(name.startswith(stem) for name in names):
        return True
    return canonical(word) in map(canonical, names)


def _points(change: Difference, scene: BrokenScene) -> bool:
    """Return whether the user says `same` before the name of the slot."""
    names = names_of(change.slot)
    for text in (scene.edited.clean, scene.last):
        words = word_list(text)
        for place, word in enumerate(words, 1):
            if word == "same" and any(_is_name(other, names) for other in words[place:][:_NEXT]):
                return True
    return False


def _runs_on(value: str, scene: BrokenScene) -> bool:
    """Return whether a value that nobody said contains the name of a slot."""
    within = not scene.labels.isdisjoint(word_list(value)[1:-1])
    return within and not scene.user.says(value) and not scene.system.says(value)


#: The mechanism if the change that a relation of another package expects did not happen.
IGNORED: Final = "expected change missing"
#: Relation -> mechanism if the state stays as it was.
_IGNORED: Final = {
    "value-swap": "new value ignored",
    "confusing-entity": "new value ignored",
    "turn-back": "correction ignored",
    "repair": "correction ignored",
    "negation": "negation ignored",
    "antonym": "negation ignored",
    "removal": "removed value still present",
    "role-swap": "swapped values ignored",
    "random-input": "value found in random words",
    "drop": "value of dropped round kept",
}
#: Move of a round -> mechanism if the state should have stayed the same.
RESTARTED: Final = "same dialogue, different answer"
_MOVED: Final = {
    "repeat": "repeated round changes answer",
    "move": "order of rounds matters",
    "again": RESTARTED,
}

FAILURES: Final = (
    *dict.fromkeys(_IGNORED.values()),
    IGNORED,
    *(
        "only some values changed",
        "new value in wrong place",
        "changed to wrong value",
        "another value changed too",
    ),
    *_MOVED.values(),
)


def failure_of(
    turn: TurnResult, variant: VariantResult, changes: Sequence[Difference]
) -> tuple[str, int]:
    """Return the mechanism for the changed state, and the index of the change.

    If the relation expects no change and the variant has edits of the text, the mechanism also
    depends on the edits. Then the result is ``("", -1)``.
    """
    if turn.side != "should-change":
        told = (_MOVED.get(move.kind, "") for move in variant.moves)
        name = next(filter(None, told), "")
        if name:
            return name, 0 if changes else -1
        taken = _taken_back(variant, changes)
        return ("correction ignored" if taken >= 0 else "", taken)
    missed = [number for number, one in enumerate(changes) if one.expected is not None]
    first = next(iter(missed), -1)
    if variant.failure == "partial":
        return "only some values changed", first
    if variant.failure == "other" and (found := _instead(variant, changes, missed)) is not None:
        return found
    return _IGNORED.get(turn.relation, IGNORED), first


def _taken_back(variant: VariantResult, changes: Sequence[Difference]) -> int:
    """Return the index of a change to a value that the user corrects at once, or -1.

    The relation `disfluency` puts such a wrong value before the right one: `sunday, no, friday`.
    """
    slips = [
        Mentions([edit.after])
        for edit in variant.plain.edits
        if (edit.transformation, edit.operator) == ("disfluency", "repair")
    ]
    changed = enumerate(change.after for change in changes)
    told = (n for n, value in changed if value and any(slip.says(value) for slip in slips))
    return next(told, -1)


def _instead(
    variant: VariantResult, changes: Sequence[Difference], missed: Sequence[int]
) -> tuple[str, int] | None:
    """Return the mechanism if the state did not change as expected, otherwise ``None``.

    ``missed`` holds the indices of slots that should have changed.
    """
    others = [number for number in range(len(changes)) if number not in missed]
    if not missed:
        return "another value changed too", next(iter(others), -1)
    new = {
        value
        for delta in variant.expected
        if not delta.after.anything_but
        for value in delta.after.values
        if value is not None
    }
    for number in others:
        if changes[number].after in new:
            return "new value in wrong place", number
    moved = (n for n in missed if changes[n].before != changes[n].after)
    number = next(moved, -1)
    return ("changed to wrong value", number) if number >= 0 else None


#: The mechanism if the reply is the same but should differ.
ANYWAY: Final = "changed question, same reply"
#: The mechanism if two contexts with the same information lead to different replies.
_DISAGREES: Final = "equivalent context, different reply"
#: Comparisons of facts, the most significant first.
_FACTS: Final[dict[str, Comparison]] = {
    "number in reply changed": SameNumbers(),
    "yes and no reversed": SamePolarity(),
    "name in reply changed": SameNames(),
}
REPLIES: Final = (
    *("fallback instead of answer", "earlier reply repeated", ANYWAY, _DISAGREES),
    *_FACTS,
    *("question instead of answer", "different reply"),
)
#: Polite questions that may follow an answer.
_COURTESY: Final = re.compile(
    r"anything else|(?:can|may|could) (?:i|we) (?:help|assist|do)|does that help", re.IGNORECASE
)


def reply_failure(turn: TurnResult, variant: VariantResult) -> str:
    """Return the mechanism of a violation by a reply: one of `REPLIES`, or `RESTARTED`."""
    if any(move.kind == "again" for move in variant.moves):
        return RESTARTED
    changes = [(one.before or "", one.after or "") for one in variant.plain.changed_slots]
    before, after = changes[0] if changes else ("", "")
    if variant.failure == "stuck" or bare(before) == bare(after):
        return ANYWAY
    if is_fallback(after) and not is_fallback(before):
        return "fallback instead of answer"
    if turn.system and bare(after) == bare(turn.system):
        return "earlier reply repeated"
    if turn.relation == "contexts-agree":
        return _DISAGREES
    return _another(before, after, Context((Exchange(turn.system, turn.user),)))


def _another(before: str, after: str, asked: Context) -> str:
    for name, facts in _FACTS.items():
        if _becomes_another(facts.compare(REPLY, before, after, asked)):
            return name
    return "question instead of answer" if _asks(after) and not _asks(before) else "different reply"


def _becomes_another(compared: ComparisonResult) -> bool:
    """Return whether both replies have a value for the differing fact. ``1969 / -`` does not."""
    return not {"", "-", "no answer"} & set(compared.why.split(" / "))


def _asks(reply: str) -> bool:
    """Return whether a reply ends with a question that is more than a courtesy."""
    words = reply.rstrip("".join({one for one in reply if not one.isalnum()} - {"_"}))
    question = reply.find("?", len(words))
    if question < 0:
        return False
    start = max(reply.rfind(end, 0, question) for end in ".!?\n") + 1
    return not _COURTESY.search(reply, start)


#: The mechanism if no slot changed. Only relations of other packages may report such a violation.
OTHER: Final = "different answer"

#: Mechanisms of states, the most significant first. If several slots change, the first mechanism
#: in this order counts.
MECHANISMS: Final = (
    "two values run together",
    "misspelt value copied",
    "misspelt value lost or changed",
    "value in wrong domain",
    "no preference lost or changed",
    "slip in key word, yes/no wrong",
    "cross-domain value lost or changed",
    "slip in key word, value wrong",
    "number or time changed",
    "departure and destination confused",
    "name changed or made up",
    "value replaced by another",
    "value copied to another slot",
    "slip in unrelated word, value lost",
    "offered value lost or added",
    "number or time made up",
    "value made up",
)


def mechanism_of(changes: Sequence[Traits]) -> tuple[str, int]:
    """Return the mechanism of a violation, and the index of the change that shows it."""
    found = [(MECHANISMS.index(_mechanism(one)), number) for number, one in enumerate(changes)]
    if not found:
        return OTHER, -1
    rank, number = min(found)
    return MECHANISMS[rank], number


def _mechanism(one: Traits) -> str:
    """Return the mechanism of one changed slot. The family of the slot decides the rules."""
    if one.runs_on:
        return "two values run together"
    if one.family == "any":
        return "no preference lost or changed"
    if one.copied:
        return "misspelt value copied"
    if one.misspelt:
        return "misspelt value lost or changed"
    if one.family == "yes-no":
        return (
            "slip in key word, yes/no wrong"
            if one.cue or one.other_cue
            else "offered value lost or added"
        )
    return "value in wrong domain" if one.crossed else _FAMILIES[one.family](one)


def _number(one: Traits) -> str:
    if _is_moved(one):
        return "slip in key word, value wrong"
    if (one.same and one.happened != "put in") or _is_taken_over(one):
        return "cross-domain value lost or changed"
    if one.happened == "replaced":
        return "number or time changed"
    if not (one.user or one.system or one.cue or one.sibling):
        return "number or time made up"
    return "offered value lost or added" if one.system and not one.here else _place(one)


def _end(one: Traits) -> str:
    if _is_moved(one):
        return "slip in key word, value wrong"
    if _is_taken_over(one) or (one.happened == "lost" and one.system and not one.user):
        return "cross-domain value lost or changed"
    if one.happened == "replaced":
        return "departure and destination confused"
    if one.sibling:
        return _place(one)
    if not (one.user or one.system):
        return "value made up"
    return "offered value lost or added" if one.system and not one.here else _place(one)


def _name(one: Traits) -> str:
    if one.happened != "replaced" and one.system:
        return "offered value lost or added"
    return _loss(one) if one.happened == "lost" and one.here else "name changed or made up"


def _choice(one: Traits) -> str:
    just_lost = one.happened == "lost" and one.here
    if one.happened != "put in" and (one.same or (one.elsewhere and not just_lost)):
        return "cross-domain value lost or changed"
    if one.happened == "replaced":
        return "value replaced by another"
    if one.sibling:
        return "slip in key word, value wrong"
    if one.happened == "put in" and one.elsewhere:
        return "value copied to another slot"
    if just_lost or (one.happened == "lost" and one.user and not one.system):
        return _loss(one)
    return "offered value lost or added" if one.user or one.system else "value made up"


#: Rules for each family of slots. For times, numbers and ends of a journey, other slots have the
#: same values. Names are usually offered by the system. Other slots have few values.
_FAMILIES: Final[dict[str, Callable[[Traits], str]]] = {
    "number": _number,
    "end": _end,
    "name": _name,
    "choice": _choice,
}


def _is_moved(one: Traits) -> bool:
    """Return whether another slot of the domain has the value, and an edit changed a cue."""
    return one.happened == "replaced" and one.cue and one.sibling


def _is_taken_over(one: Traits) -> bool:
    """Return whether a value of another domain is lost, although the edits changed no cue."""
    hit = one.here and (one.cue or one.domain_word)
    return one.happened == "lost" and one.elsewhere and not hit


def _place(one: Traits) -> str:
    """Return the mechanism of a lost or added value, if the user said the value.

    The value is a time, a number, or one end of a journey.
    """
    if one.happened == "lost":
        return _loss(one)
    return (
        "value copied to another slot"
        if one.elsewhere and not one.sibling
        else "slip in key word, value wrong"
    )


def _loss(one: Traits) -> str:
    """Return the mechanism of a lost value that the user said."""
    if one.cue or one.domain_word:
        return "slip in key word, value wrong"
    if one.sibling:
        return (
            "departure and destination confused"
            if one.family == "end"
            else "slip in key word, value wrong"
        )
    return "slip in unrelated word, value lost"


_UNKNOWN: Final = "unknown tool called"
_OTHER_TOOL: Final = "different tool called"
_NO_CALL: Final = "call dropped"
_LEFT_OUT: Final = "one of several calls dropped"
_NEW: Final = "call added"
_ORDER: Final = "order of calls changed"
#: Mechanisms of arguments, the most significant first. If several arguments change, the first
#: mechanism in this order counts.
_ARGUMENTS: Final = (
    "misspelt argument copied",
    "arguments mixed up",
    "number or time changed",
    "number or time dropped",
    "argument dropped",
    "argument shortened or extended",
    "argument type changed",
    "argument value changed",
    "argument added",
)
CALLS: Final = (_UNKNOWN, _OTHER_TOOL, _NO_CALL, _LEFT_OUT, _NEW, *_ARGUMENTS, _ORDER)


def call_failure(turn: TurnResult, variant: VariantResult) -> tuple[str, str]:
    """Return the mechanism of a violation by tool calls, and the affected tool or argument.

    The mechanism is one of `CALLS`, or a mechanism of relations that expect a change. If nothing
    changed, it is `OTHER`.
    """
    changes = not_corrected(variant.plain.changed_slots)
    found = _of_calls(turn, changes)
    if found is not None:
        return found
    name, number = failure_of(turn, variant, changes)
    if name:
        return name, changes[number].path.part[1] if number >= 0 else ""
    edited = blamed(turn, variant)
    every = variant.plain.changed_slots
    told = [
        (_ARGUMENTS.index(_argument(one, turn, every, edited)), one.path.part[1])
        for one in changes
        if not one.path.is_call
    ]
    if told:
        rank, slot = min(told)
        return _ARGUMENTS[rank], slot
    return (_ORDER, changes[0].path.part[1]) if changes else (OTHER, "")


def _of_calls(turn: TurnResult, changes: Sequence[Difference]) -> tuple[str, str] | None:
    """Return mechanism and tool if a call is missing or new, otherwise ``None``."""
    own = [one for one in changes if one.path.is_call]
    gone = [one.path.tool for one in own if one.after is None and one.before is not None]
    new = [one.path.tool for one in own if one.before is None and one.after is not None]
    unknown = [tool for tool in new if turn.tools and tool not in turn.tools]
    if unknown:
        return _UNKNOWN, unknown[0]
    if gone and new:
        return _OTHER_TOOL, gone[0]
    if gone:
        made = [path for path in turn.clean_state or () if AnswerPath.of(path).is_call]
        return (_LEFT_OUT if len(made) > len(gone) else _NO_CALL), gone[0]
    return (_NEW, new[0]) if new else None


def _argument(
    change: Difference, turn: TurnResult, changes: Sequence[Difference], edited: Edited
) -> str:
    """Return the mechanism of one argument."""
    before, after = change.before, change.after
    if after is None:
        return "number or time dropped" if _has_digits(before) else "argument dropped"
    if not edited.brought.isdisjoint(word_list(after)):
        return "misspelt argument copied"
    if before is None:
        return "argument added"
    if str(value_of(before)) == str(value_of(after)):
        return "argument type changed"
    return _replaced(change, turn, changes)


def _replaced(change: Difference, turn: TurnResult, changes: Sequence[Difference]) -> str:
    """Return the mechanism of an argument that has another value."""
    before, after = change.before or "", change.after or ""
    others = dict(arguments_in(turn.clean_state or {}))
    others |= {one.path: one.before for one in changes if one.before is not None}
    if any(text == after for path, text in others.items() if path != change.path):
        return "arguments mixed up"
    if _has_digits(before) or _has_digits(after):
        return "number or time changed"
    was, now = set(word_list(before)), set(word_list(after))
    return "argument shortened or extended" if was < now or now < was else "argument value changed"


def _has_digits(text: str | None) -> bool:
    return any(char.isdecimal() for char in text or "")
