"""The relations that expect another answer after the user's words are edited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import ClassVar, Final

from pytest_dstfuzz.dialogue.calls import REPLY, Outcome, OutcomeKind, members_of
from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    Admissible,
    DialogueSet,
    Difference,
    diff_states,
)
from pytest_dstfuzz.dialogue.normalise import normalise_value
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import match_case, word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Delta,
    Expectation,
    Inapplicable,
    Move,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.should_change.base import (
    OF_CALLS,
    CallScene,
    EditedTurn,
    Lazily,
    RewritesOrReason,
    ShouldChange,
    from_sites,
    in_turn,
    needs_values,
    remove_calls,
    shortly,
    some,
    tables_of,
)
from pytest_dstfuzz.relations.should_change.replies import (
    ADJECTIVES,
    LOOKS,
    NO_OPPOSITE,
    NOT_ONE,
    ZONES,
    asks_details,
    drop_also,
    negate_request,
    negate_statement,
)
from pytest_dstfuzz.relations.should_change.sites import (
    BY_SYSTEM,
    MISLABELLED,
    REASONS,
    FlagSite,
    ValueSite,
    find_requests,
    flags_of,
    is_alone,
    iterate_texts,
    phrase_of,
    says_more,
    sites_of,
    split_spoken,
)
from pytest_dstfuzz.relations.values import (
    REFUSED,
    UNSPOKEN,
    SlotKind,
    ValueTable,
    alike,
    article_before,
    clause_of,
    domain_of,
    end_of,
    inflections,
    join_value,
    moment_of,
    name_words,
    plural_of,
    sentence_of,
    write_value,
)

SPELLED_OTHERWISE: Final = "no other value can be written in the style of this value"
NO_OTHER: Final = "every known value of the slot was already said"

#: Maximum number of values tried per slot.
_MOST_SWAPS: Final = 8


def swap_value(
    scene: Scene, site: ValueSite, value: str, operator: str
) -> list[Replacement] | None:
    """Return the edits that replace a mentioned value by another value in the same style.

    The article before the value changes if necessary. The result is ``None`` if the new value
    cannot take the form of the old one.
    """
    # Capitalise the new value like the old value: `a drama`, not `a Drama`.
    lower = site.kind == "choice" and site.surface.islower() and "@" not in value
    new: str | None = value if lower else scene.worded(site.slot, value)
    if site.mention.spelled == "other" and not _is_same_form(scene, site):
        plural = plural_of(site.value) == site.surface.lower()
        new = plural_of(value) if plural and plural_of(site.value) != site.value else None
    text = new and write_value(site.kind, new, site.surface)
    if not text:
        return None
    start, end = site.mention.start, site.mention.end
    before = scene.parts.words[site.mention.first - 1] if site.mention.first else None
    if before is None or not scene.turn.user[before.end : start].isspace():
        return [Replacement(start, end, text, operator)]
    if text.lower().startswith("the "):
        if before.lower in {"a", "an"}:
            return None
        text = text[4:] if before.lower == "the" else text
    edits = [Replacement(start, end, text, operator)]
    right = article_before(text)
    if before.lower in {"a", "an"} and before.lower != right:
        right = right.capitalize() if before.text[0].isupper() else right
        edits.append(Replacement(before.start, before.end, right, "article"))
    return edits


def _is_same_form(scene: Scene, site: ValueSite) -> bool:
    """Return whether a mention is another spelling of its value, not an inflected form."""
    surface = site.surface.lower()
    typed = normalise_value(site.slot, surface, scene.table.normalisation)
    return typed == site.value and surface.endswith("s") == site.value.endswith("s")


def admit_value(scene: Scene, slot: str, value: str, surface: str) -> Admissible:
    """Return the expected values of a slot: ``value``, and its form in the user's words."""
    typed = normalise_value(slot, surface.lower(), scene.table.normalisation)
    return Admissible(tuple(dict.fromkeys((value, typed or value))))


def unsaid(scene: Scene, slot: str, old: str) -> Iterator[str]:
    """Yield other values of a slot that nobody has said yet, in random order.

    Times that would put the arrival before the departure are skipped.
    """
    others = scene.table.others(slot, old)
    texts = [split_spoken(text) for text in dict.fromkeys(iterate_texts(scene))]
    for place in scene.rng.permutation(len(others)):
        value = others[place]
        if is_in_time(scene, slot, value) and not any(text.mentions(value) for text in texts):
            yield value


def is_in_time(scene: Scene, slot: str, value: str) -> bool:
    """Return whether the departure is before the arrival, if the state has both times."""
    moment = moment_of(slot)
    if not moment or scene.table.kinds.get(slot) != "time":
        return True
    for other, time in scene.now.items():
        if domain_of(other) == domain_of(slot) and {moment, moment_of(other)} == _MOMENTS:
            return value < time if moment == "leave" else time < value
    return True


_MOMENTS: Final = {"leave", "arrive"}


@register_relation
class ValueSwap(ShouldChange):
    """Replaces a value. The slot must take the new value, and no other slot may change."""

    name = "value-swap"
    expects = "the slot takes the new value, and all others stay"
    reasons = (*REASONS, SPELLED_OTHERWISE, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no slot has two known values, else ``""``."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> EditedTurn:
        """Return up to 8 rewrites for each slot that the turn fills."""
        return from_sites(self, scene, _swaps)


def _swaps(scene: Scene, site: ValueSite) -> RewritesOrReason:
    return some(islice(_swapped(scene, site), _MOST_SWAPS)) or why_none(scene, site)


def _swapped(scene: Scene, site: ValueSite) -> Iterator[Rewrite]:
    for value in unsaid(scene, site.slot, site.value):
        edits = swap_value(scene, site, value, site.kind)
        if edits is not None:
            after = admit_value(scene, site.slot, value, edits[0].after)
            yield scene.rewrite(edits, [Delta(site.slot, site.value, after)])


def why_none(scene: Scene, site: ValueSite) -> str:
    """Return why no other value can replace the mentioned one."""
    values = unsaid(scene, site.slot, site.value)
    untaken = any(swap_value(scene, site, value, site.kind) is None for value in values)
    return SPELLED_OTHERWISE if untaken else NO_OTHER


GIVES_NOTHING: Final = "the turn fills no slot whose value can be replaced"
IS_NAMED: Final = "the slot, such as the area, describes a place whose name is in the state"
NO_NAME: Final = "no clear phrase for the slot is known"

#: The system's words before the user's change of mind in a new turn.
ACKNOWLEDGED: Final = "Okay."
#: Maximum number of values tried per slot, each in both forms.
_MOST_RETURNS: Final = 4
_SPOKEN: Final = re.compile(r"[.!?]\s*$")


@register_relation
class TurnBack(ShouldChange):
    """Adds a sentence that changes a value. The slot must take the value of this sentence."""

    name = "turn-back"
    expects = "the named slot takes the new value, and all others stay"
    reasons = (GIVES_NOTHING, MISLABELLED, IS_NAMED, NO_NAME, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no slot has two known values, else ``""``."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> EditedTurn:
        """Return two rewrites for each slot that the turn fills, one per form of the sentence."""
        if not scene.given:
            return Inapplicable(GIVES_NOTHING)
        return in_turn(self, scene, [_turned(scene, slot) for slot in scene.given])


def _turned(scene: Scene, slot: str) -> RewritesOrReason:
    old, label = scene.now[slot], scene.label
    kind = scene.table.kinds.get(slot, "yes-no")
    # Skip lists, because it would be unclear whether their other members should stay.
    if old == DONTCARE or kind == "yes-no" or len(members_of(old)) > 1:
        return GIVES_NOTHING
    if label is not None and label.get(slot) != old:
        return MISLABELLED
    if kind == "choice" and _is_named(scene, slot):
        return IS_NAMED
    name = slot_phrase(scene, slot)
    if not name:
        return NO_NAME
    values = islice(unsaid(scene, slot, old), _MOST_RETURNS)
    deltas = (Delta(slot, old, admit_value(scene, slot, value, value)) for value in values)
    return some(form for delta in deltas for form in _both_forms(scene, name, delta)) or NO_OTHER


def _is_named(scene: Scene, slot: str) -> bool:
    """Return whether the slot's place has a name, so that another area implies another place."""
    kinds = scene.table.kinds
    others = (other for other in scene.now if domain_of(other) == domain_of(slot))
    return any(kinds.get(other) == "name" for other in others)


def slot_phrase(scene: Scene, slot: str) -> str:
    """Return the phrase for a slot in this dialogue, or ``""`` if none is known.

    The phrase comes from `DialogueSet.slot_phrases`. Otherwise it is the name of the slot, if the
    name consists of words. If the state has slots of several domains, the phrase includes the
    domain.
    """
    if not scene.names_domains and _has_namesake(scene, slot):
        return ""
    phrase = scene.data.slot_phrases.get(slot, "")
    if not phrase:
        first, *others = words = name_words(slot)
        counted = scene.table.kinds.get(slot) == "number" and words[-1] in _COUNTED
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
    """Return whether a slot of another tool or call has the same name."""
    name = name_words(slot.partition("#")[0])
    others = (other.partition("#")[0] for other in scene.now if other != slot)
    return any(name_words(other) == name for other in others)


#: Nouns that need `number of` in a phrase, because nobody says `make the people 5`.
_COUNTED: Final = frozenset({"people", "persons", "guests", "adults", "children", "nights", "days"})
#: First words of a name that already mean `number of`: `number_of_adults`, `num_guests`.
_COUNTS: Final = frozenset({"number", "count", "num", "nr", "no", "n"})
#: Slot names that are unclear without their domain.
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
        expected=Expectation((delta,)),
        moves=(Move("add", scene.index + 1, scene.index),),
        about=f"{delta}: {sentence}",
    )
    # Use a random order, so that campaigns with one rewrite per turn use both forms equally often.
    yield from (same_turn, own_turn) if scene.rng.integers(2) else (own_turn, same_turn)


NEEDED: Final = "the sentence needs the phrase that gives the value"
NOTHING_LEFT: Final = "too little is left of the turn without the phrase"
POINTED_AT: Final = "a later word refers to the phrase"

#: Minimum number of remaining words.
_LEAST: Final = 4
#: Signs of an amount, which are part of its value but not words.
_SIGN_BEFORE: Final = re.compile(r"(?:[£$€]\s?)?$")
_SIGN_BEHIND: Final = re.compile(r"(?:\s?[%‰°£$€])?")
_POINTERS_TO_VALUES: Final = frozenset({"there", "then", "that", "those", "same", "they", "them"})


@register_relation
class Removal(ShouldChange):
    """Removes a value from the turn. The slot must be empty, or have its earlier value."""

    name = "removal"
    expects = "the slot has its earlier value or is empty, and all others stay"
    reasons = (*REASONS, NEEDED, NOTHING_LEFT, POINTED_AT, *OF_CALLS)

    def edited(self, scene: Scene) -> EditedTurn:
        """Return one rewrite for each slot whose phrase can be removed."""
        return from_sites(self, scene, _removed)


def _removed(scene: Scene, site: ValueSite) -> RewritesOrReason:
    phrase = phrase_of(scene, site)
    if phrase is None:
        return NEEDED
    first, last = phrase
    words = scene.parts.words
    left = [*words[:first], *words[last + 1 :]]
    titles = scene.table.titles
    if len(left) < _LEAST or not any(
        scene.lexicon.majority_pos(word.lower) == "verb" or spell_compared(word.lower) in titles
        for word in left
    ):
        return NOTHING_LEFT
    if any(word.lower in _POINTERS_TO_VALUES for word in words[last + 1 :]):
        return POINTED_AT
    after = Admissible(tuple(dict.fromkeys((site.before, None))))
    edits = _without(scene, first, last)
    return [scene.rewrite(edits, [Delta(site.slot, site.value, after)])]


def _length(found: re.Match[str] | None) -> int:
    return len(found[0]) if found else 0


def _without(scene: Scene, first: int, last: int) -> list[Replacement]:
    """Return the edits that remove the words ``first`` to ``last`` with one blank."""
    words, user = scene.parts.words, scene.turn.user
    start, end = words[first].start, words[last].end
    start -= _length(_SIGN_BEFORE.search(user[:start]))
    end += _length(_SIGN_BEHIND.match(user[end:]))
    if last + 1 < len(words) and user[end : words[last + 1].start].isspace():
        end = words[last + 1].start
    elif first:
        start = words[first - 1].end
    edits = [Replacement(start, end, "", "phrase")]
    article = words[first - 1] if first else None
    if article and last + 1 < len(words) and article.lower in {"a", "an"}:
        right = article_before(words[last + 1].lower)
        if right != article.lower:
            right = right.capitalize() if article.text[0].isupper() else right
            edits.append(Replacement(article.start, article.end, right, "article"))
    return edits


NO_ROLE: Final = "the turn sets no time of departure or arrival, and not both ends of a journey"
NO_CUE: Final = "the words before the value do not show its role"
OTHER_HELD: Final = "the slot of the other role has a value"
NO_OTHER_SLOT: Final = "no slot has the other role"

_FROM: Final = word_set("from leaving departing")
_TO: Final = word_set("to into")
#: Words between a verb and a time that do not show the role of the time.
_LOOSE: Final = word_set("anytime sometime any time")
_LEAVE: Final = word_set("at after")
_ARRIVE: Final = word_set("by before at")
#: Verbs of leaving -> verbs of arriving, and the reverse mapping.
_ARRIVAL_OF: Final = {
    "leave": "arrive",
    "leaves": "arrives",
    "leaving": "arriving",
    "depart": "arrive",
    "departs": "arrives",
    "departing": "arriving",
}
_LEAVING_OF: Final = {"arrive": "leave", "arrives": "leaves", "arriving": "leaving"}


@register_relation
class RoleSwap(ShouldChange):
    """Swaps the two ends of a journey, or turns a departure time into an arrival time."""

    name = "role-swap"
    expects = "the two ends exchange their values, or the time moves to the slot of the other role"
    reasons = (*REASONS, NO_ROLE, NO_CUE, NO_OTHER_SLOT, OTHER_HELD, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no domain has two slots with opposite roles, else ``""``."""
        roles: set[tuple[str, str]] = set()
        for kinds in (table.kinds for table in tables_of(data)):
            roles |= {(domain_of(s), end_of(s)) for s, kind in kinds.items() if kind == "end"}
            roles |= {(domain_of(s), moment_of(s)) for s, kind in kinds.items() if kind == "time"}
        for one, other in (("from", "to"), ("leave", "arrive")):
            if any((domain, other) in roles for domain, role in roles if role == one):
                return ""
        return "it needs two slots for the ends of a journey, or for leaving and arriving"

    def edited(self, scene: Scene) -> EditedTurn:
        """Return a rewrite that swaps the ends, and one for each departure or arrival time."""
        sites = sites_of(scene)
        if not sites.found:
            return Inapplicable(sites.reason)
        ends = [site for site in sites.found if site.kind == "end" and end_of(site.slot)]
        made = [
            _exchanged(scene, one, other)
            for one in ends
            for other in ends
            if end_of(one.slot) == "from"
            and end_of(other.slot) == "to"
            and domain_of(one.slot) == domain_of(other.slot)
        ]
        times = (site for site in sites.found if site.kind == "time" and moment_of(site.slot))
        made += [_moved(scene, site) for site in times]
        rewrites = [one for one in made if isinstance(one, Rewrite)]
        if rewrites:
            return rewrites
        reasons = [one for one in made if isinstance(one, str)]
        return Inapplicable(max(reasons, key=self.reasons.index, default=NO_ROLE))


def _exchanged(scene: Scene, start: ValueSite, goal: ValueSite) -> Rewrite | str:
    """Return the rewrite that swaps start and destination, or the reason why it cannot."""
    for site, cues in ((start, _FROM), (goal, _TO)):
        if _cue(scene, site) not in cues:
            return NO_CUE
    edits, deltas = [], []
    for site, other in ((start, goal), (goal, start)):
        place = site.mention
        edits.append(Replacement(place.start, place.end, other.surface, "ends"))
        after = admit_value(scene, site.slot, other.value, other.surface)
        deltas.append(Delta(site.slot, site.value, after))
    return scene.rewrite(edits, deltas)


def _moved(scene: Scene, site: ValueSite) -> Rewrite | str:
    """Return the rewrite that turns a departure time into an arrival time, or the reverse."""
    words = scene.parts.words
    cue = site.mention.first - 1
    verb = cue - 1
    while verb > 0 and words[verb].lower in _LOOSE:
        verb -= 1
    if verb < 0:
        return NO_CUE
    leaves = moment_of(site.slot) == "leave"
    verbs, cues = (_ARRIVAL_OF, _LEAVE) if leaves else (_LEAVING_OF, _ARRIVE)
    new = verbs.get(words[verb].lower)
    if new is None or words[cue].lower not in cues or _is_range(scene, site):
        return NO_CUE
    other = _other_slot(scene, site)
    if other is None:
        return NO_OTHER_SLOT
    if other in scene.now or other in scene.before:
        return OTHER_HELD
    edits = [
        Replacement(
            words[verb].start, words[cue - 1].end, match_case(words[verb].text, new), "verb"
        ),
        Replacement(words[cue].start, words[cue].end, "by" if leaves else "after", "cue"),
    ]
    emptied = Admissible(tuple(dict.fromkeys((site.before, None))))
    filled = Admissible((site.value,))
    deltas = [Delta(site.slot, site.value, emptied), Delta(other, None, filled)]
    return scene.rewrite(edits, deltas)


def _cue(scene: Scene, site: ValueSite) -> str:
    first = site.mention.first
    if not first or scene.parts.gaps[first].strip():
        return ""
    return scene.parts.words[first - 1].lower


def _is_range(scene: Scene, site: ValueSite) -> bool:
    """Return whether a time is a range or has a place: `9:00 to 10:00`, `8:15 in ely`."""
    words = [word.lower for word in scene.parts.words]
    following = words[site.mention.last + 1 : site.mention.last + 3]
    if any(word[:1].isdigit() or word in {"or", "to"} for word in following):
        return True
    if following[:1] in (["in"], ["at"], ["from"]):
        return True
    return any(
        cue in _ARRIVE | _LEAVE and word in {"that", "then"} for cue, word in pairwise(words)
    )


def _other_slot(scene: Scene, site: ValueSite) -> str | None:
    """Return the domain's slot for the opposite time: arrival or departure."""
    kinds = scene.table.kinds
    wanted = "arrive" if moment_of(site.slot) == "leave" else "leave"
    return next(
        (
            slot
            for slot, kind in kinds.items()
            if kind == "time"
            and domain_of(slot) == domain_of(site.slot)
            and moment_of(slot) == wanted
        ),
        None,
    )


SAME: Final = "the turn says `same`"
NO_TWIN: Final = "no slot of the same type has another value from an earlier turn"


@register_relation
class ConfusingEntity(ShouldChange):
    """Replaces a value by the value of another slot of its type. Both slots must then have it."""

    name = "confusing-entity"
    expects = "the slot takes the value of the other slot, which keeps its own"
    reasons = (*REASONS, SAME, NO_TWIN, SPELLED_OTHERWISE, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no two slots have the same type, else ``""``."""
        for table in tables_of(data):
            slots = tuple(table.kinds)
            if any(_is_twin(table, one, other) for one in slots for other in slots):
                return needs_values(self.name, data)
        return "it needs two slots of the same type"

    def edited(self, scene: Scene) -> EditedTurn:
        """Return a rewrite for each filled slot and each value of another slot."""
        return from_sites(self, scene, _confused)


def _confused(scene: Scene, site: ValueSite) -> RewritesOrReason:
    if any(word.lower == "same" for word in scene.parts.words):
        return SAME
    table = scene.table
    reason = NO_TWIN
    rewrites: dict[str, Rewrite] = {}
    for other, value in scene.before.items():
        taken = (
            value == DONTCARE or join_value(value) == join_value(site.value) or value in rewrites
        )
        if taken or scene.now.get(other) != value or not _is_twin(table, site.slot, other):
            continue
        usual = site.kind == "time" or value in table.values[site.slot]
        if not usual or not is_in_time(scene, site.slot, value):
            continue
        edits = swap_value(scene, site, value, site.kind)
        if edits is None:
            reason = SPELLED_OTHERWISE
            continue
        delta = Delta(site.slot, site.value, admit_value(scene, site.slot, value, edits[0].after))
        about = f"{delta}, the value of {other}"
        rewrites[value] = scene.rewrite(edits, [delta], about=about)
    return list(rewrites.values()) or reason


_PLACES: Final[frozenset[SlotKind]] = frozenset({"end", "name"})


def _is_twin(table: ValueTable, slot: str, other: str) -> bool:
    """Return whether two slots have the same type but are not the two ends of a journey."""
    kind, kind_of_other = table.kinds.get(slot), table.kinds.get(other)
    if slot == other or kind is None or kind_of_other is None:
        return False
    places = kind in _PLACES and kind_of_other in _PLACES
    if places and domain_of(slot) == domain_of(other):
        return False
    if kind == kind_of_other == "time":
        return True
    same = places or (kind == kind_of_other and kind != "yes-no")
    return same and alike(table.values[slot], table.values[other])


COUNTED: Final = "the wanted value is unknown, because a number or time is negated"
NOT_ALONE: Final = "the clause gives several values"
NO_VERB: Final = "no rule negates a verb of the clause"
DENIED: Final = "the negation would deny the whole request, or tell the bot nothing"

#: Auxiliaries before `not`: `should not be`, `would not like`.
_AUXILIARIES: Final = word_set("should would will must")
#: Auxiliaries that a negated main verb follows: `I will not want`.
_HELPING: Final = word_set("do will would")
_INFINITIVES: Final = word_set("like be have serve include offer provide")
_BE: Final = word_set("am 'm are 're i'm we're")
#: Participles that express a wish after `I am`: `I am looking for`.
_SEEKING: Final = word_set("looking searching hoping thinking interested going leaving departing")
#: Verbs after a subject. `need` becomes `want`, because `do not need` would not exclude a value
#: that is no yes/no feature.
_PLAIN: Final[Mapping[str, str]] = {"want": "want", "need": "want", "prefer": "prefer"}
_SINGULAR: Final[Mapping[str, str]] = {
    "wants": "want",
    "needs": "want",
    "prefers": "prefer",
    "includes": "include",
    "serves": "serve",
}
_I: Final = word_set("i we they")
_PEOPLE: Final = word_set("she he")
_IT: Final = word_set("it she he that which restaurant hotel place")
_ORDERS: Final = word_set("book find reserve include pick choose")
_BEFORE_ORDERS: Final = word_set("please just")
#: Words between a subject and its verb: `I really want`.
_ADVERBS: Final = word_set("also really just only definitely")
#: Words between verb and value that show a request for information, or another sentence.
_ASIDE: Final = word_set(
    """info information number numbers address postcode phone details help know sure i we you
    about entrance fee price reference"""
)
_POINTERS: Final = word_set("it its that this those these they them their there one ones")
_SUBJECTS: Final = word_set("i we it she he they you the my our i'm i'd we'd it's")
_FRAGMENTS: Final = word_set("in on at for from to with preferably maybe and or")


@register_relation
class Negation(ShouldChange):
    """Negates a wish. The slot may then have any value except the unwanted one.

    For bots that reply, the reply must change. There, a statement may also lose its negation.
    """

    name = "negation"
    expects = "the slot does not keep the rejected value, and all others stay; a reply differs"
    on: ClassVar[tuple[OutcomeKind, ...]] = ("state", "tool-calls", "reply")
    reasons = (*REASONS, COUNTED, NOT_ALONE, NO_VERB, DENIED, *OF_CALLS, NOT_ONE, NO_OPPOSITE)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn with a negated wish, or the reason why the relation does not apply."""
        if scene.kind.name == REPLY:
            return negate_statement(scene)
        begun = super().begin(scene)
        if scene.kind.has_tools and isinstance(begun, Inapplicable):
            return negate_request(scene) or begun
        return begun

    def edited(self, scene: Scene) -> EditedTurn:
        """Return a rewrite for each slot with the only value of its clause."""
        flags, sites = flags_of(scene), sites_of(scene)
        made = [_not_needed(scene, flag) for flag in flags.found]
        made += [_unwanted(scene, site) for site in sites.found]
        rewrites = [one for one in made if isinstance(one, Rewrite)]
        if rewrites:
            return rewrites
        reasons = [*flags.reasons, *(one for one in made if isinstance(one, str)), sites.reason]
        return Inapplicable(max(filter(None, reasons), key=self.reasons.index))


def _unwanted(scene: Scene, site: ValueSite) -> Rewrite | str:
    if site.kind in {"number", "time"}:
        return COUNTED
    if not _is_refusable(scene, site):
        return DENIED
    delta = Delta(site.slot, site.value, Admissible((site.value,), anything_but=True))
    first, last = site.mention.first, site.mention.last
    # A journey needs its end, so that nobody says where it does not go.
    narrower = None if site.kind == "end" else _not_there(scene, delta, first, last)
    if narrower is None and site.kind != "end":
        narrower = _not_such(scene, delta, first, last)
    return narrower or _negated(scene, delta, first, last)


def _is_refusable(scene: Scene, site: ValueSite) -> bool:
    """Return whether a user may refuse a value and say nothing else about the slot.

    Nobody refuses one day or one city of many, and nobody answers `Which food?` so.
    """
    words = [word.lower for word in scene.parts.words]
    first, last = site.mention.first, site.mention.last
    value = {*words[first : last + 1]}
    place = first - 1 - (words[max(first - 1, 0)] == "the")
    before = words[place] if place >= 0 else ""
    located = before in _AT and not value <= ZONES
    return value.isdisjoint(_NOWHERE) and not (located or asks_details(scene.turn.system))


_AT: Final = word_set("in near at to from around")


def _not_such(scene: Scene, delta: Delta, first: int, last: int) -> Rewrite | None:
    """Return `rooms that are not cheap` for `cheap rooms`, if the noun ends its clause."""
    parts = scene.parts
    words = [word.lower for word in parts.words]
    place = last + 1 + (words[last + 1 : last + 2] == ["priced"])
    if place >= len(words) or any(not gap.isspace() for gap in parts.gaps[last + 1 : place + 1]):
        return None
    end = place + 1 + (words[place + 1 :] == ["please"])
    noun, lexicon = words[place], scene.lexicon
    base = inflections().singular(noun) or noun
    described = " ".join(words[first : last + 1])
    adjective = described in ADJECTIVES or lexicon.majority_pos(described) == "adj"
    nominal = lexicon.majority_pos(base) == "noun" and base not in {"price", "range", "rating"}
    nominal = nominal and scene.guarded.reasons[place] != "name"
    goes_on = words[end : end + 1] == ["with"] and parts.gaps[end].isspace()
    ends = goes_on or end == len(words) or parts.gaps[end].strip()[:1] in {".", "?", "!"}
    if not (adjective and nominal and ends and first):
        return None
    article = words[first - 1] in {"a", "an"}
    clause = clause_of(parts, first)
    denied = {"not", "no", "or", "and", "but"} & {*words[clause.start : clause.stop]}
    if article != (base == noun) or denied:
        return None
    said = scene.turn.user[parts.words[first].start : parts.words[place - 1].end]
    begin = parts.words[first - article]
    things = f"{article_before(noun)} {noun}" if article else noun
    text = f"{things} that {'is' if article else 'are'} not {said}{',' * goes_on}"
    edit = Replacement(begin.start, parts.words[place].end, text, "negation")
    return scene.rewrite([edit], [_or_no_call(scene, delta)])


def _or_no_call(scene: Scene, delta: Delta) -> Delta:
    """Return a change that a missing call fulfils as well, because the clause may ask for it."""
    if not scene.kind.has_tools:
        return delta
    return replace(delta, after=replace(delta.after, or_no_call=True))


def _not_there(scene: Scene, delta: Delta, first: int, last: int) -> Rewrite | None:
    """Return `a hotel that is not in the north` for `a hotel in the north`.

    The phrase must end its clause, so that nothing else is negated.
    """
    words = [word.lower for word in scene.parts.words]
    place = first - (words[first - 1] == "the") - 1 if first else -1
    stop = sentence_of(scene.parts, first).stop
    ends = {"please", "thanks", *_OF_PLACES}.issuperset(words[last + 1 : stop])
    if place < 1 or words[place] not in {"in", "near"} or not ends:
        return None
    if scene.parts.gaps[place].strip() or "number" in scene.guarded.reasons[place - 2 : place - 1]:
        return None
    noun = words[place - 1]
    base = inflections().singular(noun) or noun
    nominal = scene.lexicon.majority_pos(base) == "noun" or noun in {"something", "anything"}
    if not nominal or scene.guarded.reasons[place - 1] == "name":
        return None
    if not _is_plain_clause(words, clause_of(scene.parts, first)):
        return None
    before = words[max(0, place - 4) : place]
    # `to look in the north`, and `the weather next week in Ely`
    if before[-2:-1] == ["to"] or not _NOWHERE.isdisjoint(before):
        return None
    at = scene.parts.words[place].start
    text = f"that {'is' if base == noun else 'are'} not "
    return scene.rewrite([Replacement(at, at, text, "negation")], [_or_no_call(scene, delta)])


#: Words after a value that belong to it: `in the north part of town`.
_OF_PLACES: Final = word_set("area part side end of town the city")
#: Things that are everywhere, and times: no user asks for `weather that is not in Ely`.
_NOWHERE: Final = word_set(
    """weather forecast temperature humidity wind news day week weekend month today tomorrow tonight
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december"""
)


def _is_plain_clause(words: Sequence[str], clause: range) -> bool:
    """Return whether a clause has no other negation, choice or second place."""
    said = words[clause.start : clause.stop]
    return not {"not", "no", "or", "and", "that", "which", "but", "with"} & {*said}


def _not_needed(scene: Scene, flag: FlagSite) -> Rewrite | str:
    """Return `I do not need parking` for `I need parking`, or the reason why no rule fits."""
    begins = scene.parts.words[0].lower
    if begins in _AGREES:
        return DENIED
    return _negated(scene, flag.unwanted, flag.first, flag.last, _NEEDS)


#: First words of a turn that agrees, so that it does not do without a feature.
_AGREES: Final = word_set("yes yeah yep yup sure ok okay")
#: Negated wishes, and how a user does without a yes/no feature. Nobody refuses free parking.
_NEEDS: Final[Mapping[str, str]] = {
    "not want": "not need",
    "should not": "does not need to",
    "must not": "does not need to",
    "does not include": "does not need to include",
}


def _is_left_alone(scene: Scene, sentence: range, last: int) -> bool:
    """Return whether a sentence is a question, ends in `please`, or has `along` after a value."""
    words = [word.lower for word in scene.parts.words[last : sentence.stop]]
    asks = scene.parts.gaps[sentence.stop].strip().startswith("?")
    return asks or words[-1:] == ["please"] or "along" in words


def _negated(
    scene: Scene, delta: Delta, first: int, last: int, softer: Mapping[str, str] | None = None
) -> Rewrite | str:
    """Return the rewrite that negates the verb before a value, or the reason why no rule fits.

    Args:
        scene: the turn.
        delta: the expected change.
        first: the index of the first word of the value.
        last: the index of its last word.
        softer: negations of wishes, and what stands for them. ``None`` = the wish itself.
    """
    if not is_alone(scene, delta.slot, first, last) or _negation_goes_on(scene, last):
        return NOT_ALONE
    words = [word.lower.replace("’", "'") for word in scene.parts.words]
    clause = clause_of(scene.parts, first)
    verb = next((n for n in range(clause.start, first) if _negation_at(words, clause, n)), None)
    if verb is None or not _ASIDE.isdisjoint(words[verb + 1 : first]):
        return NO_VERB
    sentence = sentence_of(scene.parts, first)
    # A value with a full stop, such as `St. Ives`, goes on in the next sentence.
    if last not in sentence or _is_left_alone(scene, sentence, last):
        return NO_VERB
    # Only `but` fits before a refusal. Before a feature that nobody needs, it does not.
    joint = "and" if softer is None else "but"
    odd = joint in words[max(clause.start - 1, 0) : clause.start + 1]
    if odd or _denies_request(scene, delta.slot, verb, first):
        return DENIED
    word, new = scene.parts.words[verb], _negation_at(words, clause, verb)
    for wish, other in (softer or {}).items():
        new = new.replace(wish, other)
    subject = next((one for one in words[clause.start : verb][::-1] if one not in _ADVERBS), "")
    if subject in _I:
        new = new.replace("does not", "do not")
    if word.text[0].isupper():
        new = new[:1].upper() + new[1:]
    if verb and word.start == scene.parts.words[verb - 1].end and not new.startswith("'"):
        new = f" {new}"
    replaces_like = new.lower().endswith(("do not want", "do not need"))
    end = scene.parts.words[verb + (replaces_like and words[verb + 1] == "like")].end
    edits = [Replacement(word.start, end, new, "negation")]
    if _LAST_WORDS.issuperset(words[clause.stop : sentence.stop]):
        edits += drop_also(scene.parts.words, verb, sentence.stop)
    return scene.rewrite(edits, [_or_no_call(scene, delta)])


#: Words that may follow the clause of a negated verb: `parking, too`.
_LAST_WORDS: Final = word_set("too as well please")
#: Kinds of slots whose denial leaves nothing that the bot could act on: `I am not going to Ely`.
_NEEDED_KINDS: Final[frozenset[SlotKind]] = frozenset({"end", "name"})
#: Words between a verb and a value that refer to the request.
_REFERENCES: Final = word_set("it one ones")
#: Words that refer to the request of an earlier sentence.
_THINGS: Final = word_set("something somewhere anything place")
#: Words that may stand between a wish and its yes/no feature.
_BEFORE_FEATURES: Final = word_set("a an the free to have include offer it also your like be")
#: Words after which a denial does not narrow a request.
_VAGUE: Final = _NOWHERE | word_set("finding thinking reservation")
_TRAVELS: Final = word_set("going leaving departing arriving traveling travelling")


def _denies_request(scene: Scene, slot: str, verb: int, first: int) -> bool:
    """Return whether a negated verb denies the whole request, or is useless as an answer.

    `I am not looking for a museum` is odd at the beginning of a conversation. A negation that only
    narrows a request is not: `It should not be cheap`, `I do not want parking`.
    """
    words = [word.lower.replace("’", "'") for word in scene.parts.words]
    between, kind = words[verb + 1 : first], scene.table.kinds.get(slot)
    looks = not (LOOKS | {"looking"}).isdisjoint([words[verb], *between])
    looks = looks and "look" not in between
    travels = not _TRAVELS.isdisjoint(between[:2]) or between[:2] == ["looking", "in"]
    if kind in _NEEDED_KINDS or looks or travels or not _VAGUE.isdisjoint(between):
        return True
    said = [word for word in words[max(0, verb - 2) : verb] if word not in _ADVERBS]
    stated = words[verb] not in {"wants", "needs", "prefers"} and said[-1:] != []
    later = sentence_of(scene.parts, first).start > 0
    narrows = (
        (kind == "yes-no" and _BEFORE_FEATURES.issuperset(between))
        or (later and not _THINGS.isdisjoint(between))
        or not _REFERENCES.isdisjoint(between)
        or (stated and said[-1] in _IT - _PEOPLE)
    )
    return not narrows and not _is_underway(scene, slot, first)


def _is_underway(scene: Scene, slot: str, first: int) -> bool:
    """Return whether the request was made before the sentence, which only adds a detail."""
    start, domain = sentence_of(scene.parts, first).start, domain_of(slot)
    user = split_spoken(scene.turn.user)
    others = [other for other in scene.given if other != slot and domain_of(other) == domain]
    if any(one.first < start for other in others for one in user.mentions(scene.now[other])):
        return True
    if scene.before and not scene.kind.has_tools:
        return any(domain_of(other) == domain for other in scene.before)
    return asks_details(scene.turn.system)


def _negation_goes_on(scene: Scene, last: int) -> bool:
    """Return whether later words would be negated too, or need the value."""
    words = [word.lower for word in scene.parts.words]
    if not _POINTERS.isdisjoint(words[last + 1 :]):
        return True
    stop = clause_of(scene.parts, last).stop
    following = words[stop : stop + 2]
    if following[:1] in (["and"], ["or"]) and _SUBJECTS.isdisjoint(following[1:]):
        return True
    if following and following[0] in _FRAGMENTS - {"and"}:
        return True
    rest = range(stop, sentence_of(scene.parts, last).stop)
    said = any(scene.guarded.reasons[n] in {"value", "number", "name"} for n in rest)
    return said and following[:1] != ["and"]


def _negation_at(words: Sequence[str], clause: range, place: int) -> str:
    """Return the negated form of a word in a clause, or ``""`` if no rule applies.

    >>> _negation_at(["i", "really", "want", "a", "bath"], range(5), 2)
    'do not want'
    >>> _negation_at(["it", "should", "be", "cheap"], range(4), 1)
    'should not'
    """
    verb, after = words[place], words[place + 1] if place + 1 < len(words) else ""
    earlier = (words[n] for n in range(place - 1, clause.start - 1, -1))
    said = [word for word in earlier if word not in _ADVERBS]
    before, subject = [*said, "", ""][:2]
    new = ""
    if verb in _PLAIN and before in _I:
        new = f"do not {_PLAIN[verb]}"
    elif verb in _PLAIN and before in _HELPING and subject in _I:
        new = f"not {_PLAIN[verb]}"
    elif verb in _SINGULAR and before in (_PEOPLE if verb == "needs" else _IT):
        new = f"does not {_SINGULAR[verb]}"
    elif verb == "would" and after == "like" and before in _I:
        new = "do not want"
    elif verb in _AUXILIARIES and before in _I | _IT and after in _INFINITIVES:
        new = f"{verb} not"
    elif verb in {"'d", "i'd", "we'd"} and after == "like":
        new = f"{verb[:-2]} do not want".strip()
    elif verb in _BE and after in _SEEKING:
        new = f"{verb} not"
    elif verb in _ORDERS and (place == clause.start or before in _BEFORE_ORDERS):
        new = f"do not {verb}"
    return new


NO_RULE: Final = "no word before the slot can be replaced by its opposite"
NO_FLAG: Final = "it needs a yes/no slot"

#: Opposites that flip the slot, from WordNet 3.0. The entries for `offer` and `provide` come from
#: this package.
_OPPOSITES: Final[Mapping[str, str]] = {
    "with": "without",
    "include": "exclude",
    "includes": "excludes",
    "including": "excluding",
    "have": "lack",
    "has": "lacks",
    "having": "lacking",
    "offers": "lacks",
    "offering": "lacking",
    "provides": "lacks",
    "providing": "lacking",
}
#: Before a verb, these words ask whether a place has the feature, or leave it open.
_ASKING: Final = frozenset({"if", "whether", "do", "does", "did"})
#: Before `have`, these words show that the place has the feature.
_HOLDERS: Final = frozenset({"it", "that", "which", "should", "must", "place", "one", "places"})
#: Words that may stand between a word with an opposite and the name of the slot.
_BETWEEN: Final = frozenset({"a", "an", "the", "some", "any", "on", "site"})


@register_relation
class Antonym(ShouldChange):
    """Replaces a word like `with` by its opposite. The user then no longer wants the feature."""

    name = "antonym"
    expects = "the yes/no slot is no, dontcare or empty, and all others stay"
    reasons = (*REASONS, NO_RULE, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if there is no yes/no slot, else ``""``."""
        flags = any("yes-no" in table.kinds.values() for table in tables_of(data))
        return "" if flags else NO_FLAG

    def edited(self, scene: Scene) -> EditedTurn:
        """Return a rewrite for each yes/no slot whose name follows a word that has an opposite."""
        flags = flags_of(scene)
        rewrites = [
            scene.rewrite([edit], [site.unwanted])
            for site in flags.found
            if (edit := _opposite(scene, site))
        ]
        if rewrites:
            return rewrites
        reasons = (REASONS[0], *flags.reasons, *(NO_RULE for _ in flags.found))
        return Inapplicable(max(reasons, key=self.reasons.index))


def _opposite(scene: Scene, site: FlagSite) -> Replacement | None:
    """Return an edit that reverses the word before a slot's name, or ``None``."""
    words, gaps = scene.parts.words, scene.parts.gaps
    place = site.first - 1
    while place > 0 and words[place].lower in _BETWEEN and not gaps[place + 1].strip("- "):
        place -= 1
    if place < 0 or words[place].lower not in _OPPOSITES or _flags_go_on(scene, site):
        return None
    if words[place].lower != "with" and not _is_told(scene, place):
        return None
    word = words[place]
    opposite = match_case(word.text, _OPPOSITES[word.lower])
    return Replacement(word.start, word.end, opposite, "antonym")


def _flags_go_on(scene: Scene, site: FlagSite) -> bool:
    """Return whether later words would be reversed too: `parking and breakfast`."""
    words, after = scene.parts.words, site.last + 1
    if words[after : after + 1] and words[after].lower in {"and", "or"}:
        return True
    rest = range(after, sentence_of(scene.parts, site.last).stop)
    flags = (slot for slot in scene.now if slot != site.slot and scene.now[slot] in REFUSED)
    return any(
        one.first in rest for slot in flags for one in find_requests(scene, slot, scene.turn.user)
    )


def _is_told(scene: Scene, place: int) -> bool:
    """Return whether a sentence states or demands a feature instead of asking about it."""
    words = [word.lower for word in scene.parts.words]
    if not _ASKING.isdisjoint(words[sentence_of(scene.parts, place).start : place]):
        return False
    before = words[place - 1] if place else ""
    return words[place] != "have" or before in _HOLDERS or scene.table.is_title(before)


TOO_LONG: Final = "the value has several words"

#: Maximum number of values tried per slot.
_MOST_REPAIRS: Final = 4


@register_relation
class Repair(ShouldChange):
    """Says a wrong value first, then corrects it. The slot must have the corrected value."""

    name = "repair"
    expects = "the slot takes the corrected value, and all others stay"
    reasons = (*REASONS, TOO_LONG, SPELLED_OTHERWISE, NO_OTHER, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no slot has two known values, else ``""``."""
        return needs_values(self.name, data)

    def edited(self, scene: Scene) -> EditedTurn:
        """Return up to 4 rewrites for each slot that the turn fills."""
        return from_sites(self, scene, _repaired)


def _repaired(scene: Scene, site: ValueSite) -> RewritesOrReason:
    if site.mention.first != site.mention.last and site.kind != "time":
        return TOO_LONG
    return some(islice(_repairs(scene, site), _MOST_REPAIRS)) or why_none(scene, site)


def _repairs(scene: Scene, site: ValueSite) -> Iterator[Rewrite]:
    for value in unsaid(scene, site.slot, site.value):
        edits = swap_value(scene, site, value, "repair")
        if edits and (" " not in edits[0].after or site.kind == "time"):
            new = edits[0].after
            delta = Delta(site.slot, site.value, admit_value(scene, site.slot, value, new))
            added = Replacement(site.mention.end, site.mention.end, f", no, {new}", "repair")
            yield scene.rewrite([added], [delta])


NOTHING_GIVEN: Final = "the turn changes nothing"
NO_WORD: Final = "the turn has no words"
TAKEN_AWAY: Final = "the turn removes the value of a slot"
UNSAID: Final = "the turn sets a slot to a value that the user does not mention"
MORE: Final = "the user mentions a value, but the turn fills no slot with it"
EARLIER: Final = "an earlier round mentions a value that the turn sets"

#: Number of rewrites per turn.
_DRAWS: Final = 4
#: Minimum length of a random word. Shorter words are mostly cues and letters.
_SHORTEST: Final = 4


@register_relation
class RandomInput(ShouldChange):
    """Replaces the turn by random words. The state must stay as it was before the turn."""

    name = "random-input"
    expects = "every slot has its value from before the turn"
    source = "correct forms of the misspellings in the lexicon"
    reasons = (
        *(NO_WORD, NOTHING_GIVEN, TAKEN_AWAY, UNSAID, MORE, BY_SYSTEM, EARLIER, MISLABELLED),
        *OF_CALLS,
    )

    def edited(self, scene: Scene) -> EditedTurn:
        """Return 4 texts of random words, as long as the turn."""
        changes = diff_states(scene.before, scene.now)
        if reason := why_gives_nothing(scene, changes) or _elsewhere(scene, changes):
            return Inapplicable(reason)
        label = scene.label
        if label is not None and any(label.get(one.slot) != one.after for one in changes):
            return Inapplicable(MISLABELLED)
        deltas = [Delta(one.slot, one.after, Admissible((one.before,))) for one in changes]
        table = scene.table
        return Lazily(_drawn(scene, deltas, table) for _ in range(_DRAWS))

    def of_calls(self, scene: Scene) -> TurnStart:
        """Return 4 texts of random words. The calls of the turn must then be missing."""
        if not scene.parts.words:
            return Inapplicable(NO_WORD)
        if scene.label is not None and not scene.label:
            return Inapplicable(MISLABELLED)
        new = Outcome({path: one for path, one in scene.now.items() if path not in scene.before})
        if not new:
            return Inapplicable(NOTHING_GIVEN)
        deltas, table = list(remove_calls(new)), CallScene.of(scene).table
        told = " ".join(f"{one.name} {one.description}" for one in scene.dialogue.tools)
        return Lazily(_drawn(scene, deltas, table, told) for _ in range(_DRAWS))


def why_gives_nothing(scene: Scene, changes: Sequence[Difference]) -> str:
    """Return why the words of a turn with these changes give no value, or ``""``."""
    if not scene.parts.words:
        return NO_WORD
    if not changes:
        return NOTHING_GIVEN
    return TAKEN_AWAY if any(change.after is None for change in changes) else ""


def _elsewhere(scene: Scene, changes: Sequence[Difference]) -> str:
    """Return why a value may come from elsewhere than the user's words, or ``""``.

    A careful reader would keep values from earlier rounds, such as a place or a type. If nobody
    says a value, either the label is wrong or the system has offered the value.
    """
    values = [change.after or "" for change in changes]
    spelled = [value for value in values if value not in UNSPOKEN]
    *earlier, last = scene.context.exchanges
    if not all(split_spoken(last.user).mentions(value) for value in spelled):
        return UNSAID
    unheard = "dontcare" in scene.guarded.reasons and DONTCARE not in values
    if unheard or says_more(scene, last.user, changes):
        return MORE
    if any(split_spoken(last.system).mentions(value) for value in spelled):
        return BY_SYSTEM
    texts = [text for one in earlier for text in (one.system, one.user)]
    if any(split_spoken(text).mentions(value) for text in texts for value in spelled):
        return EARLIER
    return ""


def _drawn(scene: Scene, deltas: list[Delta], table: ValueTable, tools: str = "") -> Rewrite:
    words = neutral_words(scene, table, tools)
    text = " ".join(next(words) for _ in scene.parts.words)
    about = f"random words: {', '.join(map(str, shortly(deltas)))}"
    return scene.rewrite([scene.whole(text, "random words")], deltas, about=about)


def neutral_words(scene: Scene, table: ValueTable, tools: str = "") -> Iterator[str]:
    """Yield random neutral words: no values, slot names or cues, and no words of the system.

    Words in the names and descriptions of the ``tools`` are left out, too.
    """
    pool = _pool(scene.lexicon)
    said = {*word_list(scene.turn.system), *re.findall("[a-z]+", tools.lower())}
    while True:
        word = pool[int(scene.rng.integers(len(pool)))]
        named = word in said or table.is_title(word)
        if not named and not scene.guards.guard_of(word):
            yield word


@lru_cache(maxsize=8)
def _pool(lexicon: Lexicon) -> tuple[str, ...]:
    """Return the words for random texts, in the order of the lexicon."""
    stop = frozenset(lexicon.stop_words)
    return tuple(
        word
        for word in lexicon.misspellings
        if word.isalpha() and word.islower() and len(word) >= _SHORTEST and word not in stop
    )
