"""Finds the value sites of a turn: values, features and phrases that a relation may change."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import members_of
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Admissible, Difference
from pytest_dstfuzz.perturb.values import Mentions, content, spell_compared
from pytest_dstfuzz.perturb.words import word_set
from pytest_dstfuzz.relations.relation import Delta, Scene
from pytest_dstfuzz.relations.values import (
    DOUBTS,
    REFUSED,
    UNSPOKEN,
    SlotKind,
    SpokenText,
    ValueMention,
    clause_of,
    domain_of,
    join_value,
    kind_of,
    list_counted_nouns,
    moment_of,
    name_words,
    sentence_of,
)

NO_MENTION: Final = "the user mentions no value of the state"
NOT_NEW: Final = "the slot already had the value"
PART_OF_NAME: Final = "the value is part of a longer name, or is also the name of a domain or slot"
TWICE: Final = "the value is said twice"
BY_SYSTEM: Final = "the system said the value"
OTHER_SLOT: Final = "another slot has the value"
IN_DOUBT: Final = "the value is in a negation, a choice, a comparison or a correction"
GUESSED: Final = "the slot of the value is ambiguous"
MISLABELLED: Final = "the label has another value for this slot"

#: Reasons in the order of the checks. If several slots have no place, the last reason counts.
REASONS: Final = (
    *(NO_MENTION, NOT_NEW, PART_OF_NAME, TWICE, BY_SYSTEM),
    *(OTHER_SLOT, IN_DOUBT, GUESSED, MISLABELLED),
)

#: Maximum distance between a number and its noun, and between a cue and its time.
_NEAR: Final = 3
_GROUPS: Final = word_set("party group family table tables")
_LEAVING: Final = word_set(
    "leave leaves leaving left depart departs departing departure after start"
)
_ARRIVING: Final = word_set(
    "arrive arrives arriving arrived arrival by before get there reach until"
)
#: A region after the name of a town: `, UK`, `, New South Wales`.
_REGION: Final = re.compile(
    r", ?([A-Z]{2,3}\b|[A-Z][a-z]+(?: [A-Z][a-z]+)*(?=[,.!?;]| ?$| (?:on|for|in|and|at|to)\b))"
)
#: Words that are part of a place name if they are capitalised: `New Delhi`.
_BEFORE_NAMES: Final = word_set(
    "new old north south east west upper lower great saint st fort port"
)
#: Maximum length, in words, of a name that may contain a value.
_LONGEST: Final = 5


class ValueSite(NamedTuple):
    """A slot that the turn filled. Exactly one place in the dialogue mentions its value."""

    slot: str
    kind: SlotKind
    value: str
    #: The value before the turn; ``None`` = absent.
    before: str | None
    mention: ValueMention
    #: The text of the mention, as typed.
    surface: str


class Sites(NamedTuple):
    """The value sites of a turn, or the reason if there are none."""

    found: tuple[ValueSite, ...]
    #: One of `REASONS`, or ``""`` if there is a site.
    reason: str


@lru_cache(maxsize=4096)
def split_spoken(text: str) -> SpokenText:
    """Return the words of a text and their forms. Results are cached."""
    return SpokenText.of(text)


def sites_of(scene: Scene) -> Sites:
    """Return the places of the values that a turn fills, sorted by slot."""
    found: list[ValueSite] = []
    furthest = 0
    for slot in scene.given:
        site = _site(scene, slot)
        if isinstance(site, ValueSite):
            found.append(site)
        else:
            furthest = max(furthest, REASONS.index(site))
    if not furthest and not found and any(_mentions(scene, slot) for slot in scene.now):
        # The turn mentions a value, but gives none of the values that it mentions.
        furthest = REASONS.index(NOT_NEW)
    return Sites(tuple(found), "" if found else REASONS[furthest])


def _site(scene: Scene, slot: str) -> ValueSite | str:
    """Return the site of a filled slot's value, or the reason if it has none."""
    value = scene.now[slot]
    mentions = _mentions(scene, slot)
    if not mentions:
        return NO_MENTION
    mention = mentions[0]
    kind = scene.table.kinds.get(slot, "name")
    surface = scene.turn.user[mention.start : mention.end]
    site = ValueSite(slot, kind, value, scene.before.get(slot), mention, surface)
    for reason, holds in _LOCKS:
        if holds(scene, site):
            return reason
    return site


def _mentions(scene: Scene, slot: str) -> tuple[ValueMention, ...]:
    value = scene.now[slot]
    return () if value in UNSPOKEN else split_spoken(scene.turn.user).mentions(value)


def _is_part(scene: Scene, site: ValueSite) -> bool:
    """Return whether a mention is part of a longer name, or consists of slot words."""
    table = scene.table
    if table.is_title(site.value):
        return True
    region = site.surface[:1].isupper() and _REGION.match(scene.turn.user, site.mention.end)
    if region and join_value(region[1]) not in table.known:
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
    words = [join_value(word.lower) for word in parts.words]
    value = join_value(site.value)
    for start in range(max(0, first - _LONGEST), first + 1):
        for end in range(last + 1, min(len(words), last + _LONGEST) + 1):
            said = "".join(words[start:end])
            if len(said) > len(value) and said in table.known:
                return True
    return False


def _is_of_name(scene: Scene, site: ValueSite, neighbour: int) -> bool:
    """Return whether the neighbouring word belongs to the name of the mention: `North Gate`."""
    word = scene.parts.words[neighbour]
    if word.lower in _BEFORE_NAMES and word.text[0].isupper() and site.surface[0].isupper():
        return True
    guard = scene.guarded.reasons[neighbour]
    if guard not in {"name", "value"} or word.lower in scene.lexicon.stop_words:
        return False
    mentions = split_spoken(scene.turn.user).mentions
    values = (member for value in scene.now.values() for member in members_of(value))
    if any(m.first <= neighbour <= m.last for v in values for m in mentions(v)):
        return False
    # Words of other values count only if capitalised, because many values contain ``place``.
    capitals = site.surface[:1].isupper() and word.text[0].isupper()
    return guard == "name" or (capitals and not scene.table.is_title(word.lower))


def _is_repeated(scene: Scene, site: ValueSite) -> bool:
    """Return whether the user says the value more than once, here or earlier."""
    if len(split_spoken(scene.turn.user).mentions(site.value)) > 1:
        return True
    earlier = scene.dialogue.turns[: scene.index]
    return any(split_spoken(turn.user).mentions(site.value) for turn in earlier)


def _is_from_system(scene: Scene, site: ValueSite) -> bool:
    return bool(split_spoken(scene.turn.system).mentions(site.value))


def _is_shared(scene: Scene, site: ValueSite) -> bool:
    states = (*scene.before.items(), *scene.now.items())
    return any(
        slot != site.slot and join_value(member) == join_value(site.value)
        for slot, value in states
        for member in members_of(value)
    )


def _is_in_doubt(scene: Scene, site: ValueSite) -> bool:
    return is_doubtful(scene, site.mention.first)


def is_doubtful(scene: Scene, place: int) -> bool:
    """Return whether the clause of a word is a negation, a question or a comparison."""
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
        slots = scene.table.kinds
        moments = {moment_of(s) for s in slots if domain_of(s) == domain_of(site.slot)}
        return {"leave", "arrive"} <= moments and _moment_said(scene, site) != moment_of(site.slot)
    return False


def _is_counted(scene: Scene, site: ValueSite) -> bool:
    """Return whether the noun after a number, or the system's question, identifies the slot."""
    words = [word.lower for word in scene.parts.words]
    nouns = list_counted_nouns(site.slot)
    last = site.mention.last
    for place in range(last + 1, min(last + 1 + _NEAR, len(words))):
        if words[place] in nouns:
            return True
        if scene.parts.gaps[place].strip() not in {"", "-"} or words[place] in _BEFORE_TIMES:
            break
    first = site.mention.first
    if "people" in nouns and not _GROUPS.isdisjoint(words[max(0, first - _NEAR) : first]):
        return True
    if "?" not in scene.turn.system:
        return False
    asked = {word.lower for word in split_spoken(scene.turn.system).parts.words}
    kinds = scene.table.kinds
    rivals = [
        slot
        for slot, kind in kinds.items()
        if kind == "number" and list_counted_nouns(slot) & asked
    ]
    return bool(rivals) and all(list_counted_nouns(slot) == nouns for slot in rivals)


_BEFORE_TIMES: Final = word_set("at on in from for and with by to starting beginning")


def _moment_said(scene: Scene, site: ValueSite) -> str:
    """Return whether a time is a departure or an arrival, judged by the words before it."""
    words = [word.lower for word in scene.parts.words]
    clause = clause_of(scene.parts, site.mention.first)
    for place in range(site.mention.first - 1, clause.start - 1, -1):
        if words[place] in _LEAVING | _ARRIVING:
            return "leave" if words[place] in _LEAVING else "arrive"
    asked = {word.lower for word in split_spoken(scene.turn.system).parts.words}
    if "?" in scene.turn.system and bool(asked & _LEAVING) != bool(asked & _ARRIVING):
        return "leave" if asked & _LEAVING else "arrive"
    return ""


def _is_mislabelled(scene: Scene, site: ValueSite) -> bool:
    label = scene.label
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


def iterate_texts(scene: Scene) -> Iterator[str]:
    """Yield the texts up to the turn and the values of its states."""
    for turn in scene.dialogue.turns[: scene.index + 1]:
        yield turn.system
        yield turn.user
    for value in (*scene.before.values(), *scene.now.values()):
        yield from members_of(value)


class FlagSite(NamedTuple):
    """A yes/no slot that the turn sets, with the words for the requested feature."""

    slot: str
    #: ``yes``, or a synonym in the data.
    value: str
    first: int
    last: int

    @property
    def unwanted(self) -> Delta:
        """The expected change of the slot if the user does not want the feature."""
        return Delta(self.slot, self.value, Admissible((REFUSED[self.value], DONTCARE, None)))


class Flags(NamedTuple):
    """The yes/no slots that a turn sets, and the reasons for omitted slots."""

    found: tuple[FlagSite, ...]
    reasons: tuple[str, ...]


def flags_of(scene: Scene) -> Flags:
    """Return the yes/no slots of a turn, sorted by slot."""
    kinds = scene.table.kinds
    sites = [_flag(scene, slot) for slot in scene.now if kinds.get(slot) == "yes-no"]
    return Flags(
        tuple(site for site in sites if isinstance(site, FlagSite)),
        tuple(site for site in sites if isinstance(site, str)),
    )


def _flag(scene: Scene, slot: str) -> FlagSite | str:
    places, value = find_requests(scene, slot, scene.turn.user), scene.now[slot]
    if not places or value not in REFUSED:
        return NO_MENTION
    if slot not in scene.given:
        return NOT_NEW
    earlier = (turn.user for turn in scene.dialogue.turns[: scene.index])
    label = scene.label
    reason = ""
    if len(places) > 1 or any(find_requests(scene, slot, text) for text in earlier):
        reason = TWICE
    elif find_requests(scene, slot, scene.turn.system):
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


#: Modifiers of a yes/no feature; some ontologies list them as values.
_FREE: Final = frozenset({"free", "complimentary"})


def find_requests(scene: Scene, slot: str, text: str) -> list[ValueMention]:
    """Return the words in a text that refer to a yes/no slot.

    These are the words that the data gives for the slot, and the words of its name except stop
    words: `wifi` in ``has_wifi``.
    """
    own = [word for word in name_words(slot) if word not in scene.lexicon.stop_words]
    names = dict.fromkeys((*own, *scene.data.flag_words.get(slot, ())))
    return [mention for name in names for mention in split_spoken(text).mentions(name)]


def is_alone(scene: Scene, slot: str, first: int, last: int) -> bool:
    """Return whether the clause of some words mentions no other value.

    The result is also false if the turn fills another slot of the domain without mentioning its
    value, because this clause may fill that slot.
    """
    clause = clause_of(scene.parts, first)
    user, table = split_spoken(scene.turn.user), scene.table
    given: set[int] = set()
    for other in scene.given:
        said = {m.first for m in user.mentions(scene.now[other])}
        if table.kinds.get(other) == "yes-no":
            found = find_requests(scene, other, scene.turn.user)
            said |= {place for one in found for place in range(one.first, one.last + 1)}
        if not said and domain_of(other) == domain_of(slot):
            return False
        given |= said
    return not any(
        n in given or (scene.guarded.reasons[n] in _SAID and user.forms[n] not in table.titles)
        for n in clause
        if not first <= n <= last and scene.parts.words[n].lower not in scene.lexicon.stop_words
    )


#: Locks of words that may be values, in any spelling.
_SAID: Final = frozenset({"value", "number", "name"})


_BEFORE_VALUES: Final = word_set("in on at from to for by after before around with until into near")
_ARTICLES: Final = word_set("the a an")
#: Nouns after a value that depend on it: `in the north part of town`.
_HEADS: Final = word_set(
    """area part side end section range price prices priced pricerange star stars rating rated type
    style class cuisine o'clock am pm"""
)
_PLACES: Final = word_set("town city cambridge")
#: Nouns that no value describes: `one in Elm Hill today`.
_WHEN: Final = word_set("today tomorrow tonight")
#: Participles with a preposition: `departing from ely`.
_PARTICIPLES: Final = word_set(
    "departing leaving arriving going traveling travelling heading starting beginning coming"
)
_BE: Final = word_set("am 'm are 're is 's be i'm we're they're")
#: Verbs of a relative clause that can be removed as a whole: `that leaves after 10:00`.
_VERBS: Final = word_set(
    """leaves departs arrives goes starts leave depart arrive go is serves serve has offers have
    are"""
)
_RELATIVES: Final = word_set("that which who")
#: Words, besides nouns, that may precede a removed phrase.
_OPEN: Final = word_set("it one ones them me us something somewhere anything please there also and")
#: Words that may follow a removed phrase.
_AFTER: Final = word_set(
    """and for from to in on at by after before with please that which but as so if who can could
    thanks thank also around near near then because where"""
)
_BOUNDARY: Final = re.compile(r"[.,!?;:]")


def phrase_of(scene: Scene, site: ValueSite) -> tuple[int, int] | None:
    """Return the first and the last word of a value's phrase: `in the north`.

    The result is ``None`` if the sentence needs the phrase, or if its extent is unclear.
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
    if following[:1] == ["and"] and spell_compared(following[-1]).isdigit():
        # In `for 3 people and 4 nights`, both numbers have the same preposition.
        return (first, end + 1) if first and words[first - 1] in _BEFORE_VALUES else None
    start = _left(words, gaps, first)
    if start is None or not _may_stand_before(scene, words, gaps, start):
        return None
    return start, end


def _is_adjective(scene: Scene, site: ValueSite, words: list[str]) -> bool:
    """Return whether the value only describes the noun after it: `a cheap hotel`."""
    after, parts = site.mention.last + 1, scene.parts
    nothing = _HEADS | _PLACES | _WHEN
    if after == len(words) or parts.gaps[after].strip() or words[after] in nothing:
        return False
    # A noun must remain, as in `for cheap food`, `any indian restaurants`, but not `find indian`.
    return (words[after] == "one" or _is_noun(scene, words[after])) and words[after] not in _AFTER


def _right(scene: Scene, site: ValueSite, words: list[str]) -> int | None:
    """Return the last word of a value's phrase. The phrase may include a noun and `of town`."""
    gaps, last = scene.parts.gaps, site.mention.last
    heads = _HEADS | list_counted_nouns(site.slot) if site.kind == "number" else _HEADS
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
    """Return the first word of a value's phrase. It is a preposition or a verb."""
    start: int | None = None
    cue = words[first - 1] if first and not gaps[first].strip() else ""
    if cue in {"leaving", "departing", "serving"} or (cue == "and" and words[first][:1].isdigit()):
        start = first - 1
    elif cue in _VERBS:
        start = _relative(words, gaps, first - 1)
    elif cue in _BEFORE_VALUES and first > 1 and not gaps[first - 1].strip():
        start = first - 1
        if words[first - 2] in _PARTICIPLES:
            # `I am leaving from`: the sentence has no other verb.
            start = None if first > 2 and words[first - 3] in _BE else first - 2
        elif words[first - 2] in _VERBS:
            start = _relative(words, gaps, first - 2)
    return start


def _relative(words: list[str], gaps: list[str], verb: int) -> int | None:
    """Return the relative pronoun before a verb, if its clause can be removed."""
    if verb and words[verb - 1] in _RELATIVES and not gaps[verb].strip():
        return verb - 1
    return None


def _may_stand_before(scene: Scene, words: list[str], gaps: list[str], start: int) -> bool:
    """Return whether the sentence is complete without the phrase that begins here."""
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
    """Return whether a word is mostly a noun, or names a domain or slot: `trains`."""
    named = scene.table.is_title(word)
    return named or scene.lexicon.majority_pos(word) == "noun"


#: Nouns that need a complement.
_DANGLING: Final = word_set("information info details interest look need way time day")


#: A time of day, because data never lists all times that users may say.
_CLOCK: Final = re.compile(r"\d[:.]\d\d|\d ?[ap]\.?m\b", re.IGNORECASE)


def says_more(scene: Scene, text: str, given: Collection[Difference]) -> bool:
    """Return whether a text mentions values beyond the ``given`` changes.

    A word of another slot's value in the state also counts. If the result is true, either the label
    is wrong or other slots depend on the text.

    Args:
        scene: provides the state and the values of the data.
        text: a text of the user.
        given: the changes of slots that the text is known to cause.
    """
    table, user = scene.table, split_spoken(text)
    own = {place for change in given for place in _places(user, change.after)}
    slots = {change.slot for change in given}
    elsewhere = {slot: value for slot, value in scene.now.items() if slot not in slots}
    parts = {word for value in elsewhere.values() for word in content(value)} - table.titles
    words = [word.lower for word in user.parts.words]
    telling = [place for place, word in enumerate(words) if join_value(word)]
    for first, last in spans(telling):
        if own.issuperset(place for place in telling if first <= place <= last):
            continue
        found = " ".join(words[first : last + 1])
        value = join_value(found)
        if not table.is_title(found) and (value in table.telling or value in parts):
            return True
    flags = [slot for slot, kind in table.kinds.items() if kind == "yes-no"]
    said = Mentions([text])
    return any(slot not in slots and all(map(said.says, name_words(slot))) for slot in flags)


def says_other(scene: Scene, text: str, change: Difference, given: Collection[Difference]) -> bool:
    """Return whether a text mentions another value of a slot.

    Args:
        scene: provides the values of the data.
        text: a text of the user that does not say the slot's own value.
        change: the change of the slot. If the slot is a time, every time counts as another value.
        given: the changes in the labels of the text. The words for these changes do not count,
            because they belong to another slot with the same values.
    """
    table, user = scene.table, split_spoken(text)
    own = {place for change in given for place in _places(user, change.after)}
    words = [word.lower for word in user.parts.words]
    # In `that one`, the word `one` is a pronoun and not a number.
    telling = [place for place, word in enumerate(words) if join_value(word) and word != "one"]
    wanted = table.joined_values.get(change.slot, frozenset())
    for first, last in spans([place for place in telling if place not in own]):
        found = " ".join(words[first : last + 1])
        if join_value(found) in wanted and not table.is_title(found):
            return True
    # The check uses the value because data without an ontology may know no other value of the slot.
    if change.after is None or kind_of(change.slot, [change.after]) != "time":
        return False
    taken = [user.parts.words[place].start for place in own]
    clocks = _CLOCK.finditer(text)
    return any(not any(one.start() - 2 < at < one.end() for at in taken) for one in clocks)


def spans(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each span of words that may be a value."""
    for first, last in combinations_with_replacement(places, 2):
        if last - first < _LONGEST:
            yield first, last


def _places(text: SpokenText, value: str | None) -> Iterator[int]:
    """Yield the indices of the words that mention a value."""
    for mention in text.mentions(value or ""):
        yield from range(mention.first, mention.last + 1)
