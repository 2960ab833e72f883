"""A relation between whole questions and the short questions that follow another question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dates import MONTHS, WEEKDAYS
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, Exchange
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Inapplicable,
    Move,
    Relation,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.rounds import has_conversations, points_back
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.relations.wording import (
    Sentence,
    asks_to,
    is_polite,
    lowered,
    raised,
    requests,
    sentences,
    subject_asked_about,
)

_NOT_ONE: Final = "besides greetings and thanks, the turn is not one question or request"
_NO_PHRASE: Final = "no phrase of the turn can stand in an earlier turn, or comes from one"
#: Replies of the system to a question that the user asks before the turn.
_UNKNOWN: Final = ("I am sorry, I do not know that.", "Sorry, I cannot answer that.")
_GO_ON: Final = ("Sure, go ahead.", "Of course. What would you like to know?")
_GO_ON_REQUEST: Final = ("Sure, go ahead.", "Of course. What can I do for you?")
#: Sentences that name a topic before a question about it, and before a request.
_TOPICS: Final = ("I have a question about {}.", "I would like to ask about {}.")
_TOPICS_OF_REQUESTS: Final = ("It's about {}.", "I'm writing about {}.")
#: Only in a question with one of these, a name after `to` or `from` is surely a place.
_GOES: Final = word_set(
    "deliver ship fly post mail bus buses train trains flight flights ferry coach tram shuttle"
)
_SHORT: Final = ("And {}?", "What about {}?", "How about {}?")
#: After `about`, the prepositions of these are left out: `What about Sundays?`
_BARE: Final = re.compile(rf"(?:on (?=(?:{'|'.join(WEEKDAYS)}))|to (?=[A-Z]))", re.IGNORECASE)
_DAYS: Final = tuple(f"{day}s" for day in WEEKDAYS)


class Varied(NamedTuple):
    """A kind of phrase that tells two questions apart, such as `on Sundays`."""

    pattern: re.Pattern[str]
    #: Other phrases of this kind, with all words as they are written.
    others: tuple[str, ...]
    #: Whether such a phrase may be added to the end of most questions.
    added: bool = True


def _kind(pattern: str, *others: str, added: bool = True) -> Varied:
    return Varied(re.compile(pattern), others, added)


_CITIES: Final = ("Leeds", "Berlin", "Madrid", "Boston")
_DAY: Final = "|".join(WEEKDAYS)
#: Kinds of phrases. Short questions with such a phrase are usual.
_KINDS: Final = (
    _kind(f"on (?:{'|'.join(_DAYS)})", "on Saturdays", "on Mondays", "on Thursdays"),
    _kind(f"on (?:{_DAY})", "on Saturday", "on Monday", "on Thursday"),
    _kind("on (?:weekdays|weekends|public holidays|bank holidays)", "on Mondays", "on Fridays"),
    _kind("(?:at|on) (?:the )?weekends?", "on Mondays", "on Fridays"),
    _kind("today|tonight|tomorrow", "today", "tomorrow", "next week"),
    _kind("in the (?:morning|afternoon|evening)", "in the morning", "in the evening"),
    _kind("in (?:summer|winter|spring|autumn)", "in summer", "in winter"),
    _kind(f"in (?:{'|'.join(MONTHS)})", "in March", "in October"),
    _kind(
        "for (?:children|kids|adults|students|seniors|pensioners|families|groups|babies|teenagers)",
        "for adults",
        "for students",
        "for children",
    ),
    _kind(r"(?:to|from) (?:[A-Z]\w+)", "to Leeds", "to Berlin", "to Madrid", added=False),
)
#: Beginnings of questions about a thing, and things that users often ask about so.
_ABOUT_THINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "do you sell": ("gift cards", "umbrellas", "wrapping paper"),
    "do you have": ("a car park", "lockers", "free wifi"),
    "do you have any": ("gift cards", "lockers", "leaflets"),
    "do you offer": ("gift cards", "guided tours", "free parking"),
    "do you rent out": ("tents", "lockers"),
    "do you rent": ("tents", "lockers"),
    "do you repair": ("umbrellas", "clocks"),
    "do you fix": ("umbrellas", "clocks"),
    "do you accept": ("vouchers", "foreign coins", "cash"),
    "do you take": ("vouchers", "foreign coins", "cash"),
    "can i pay by": ("cheque", "invoice"),
    "can i pay with": ("vouchers", "cash"),
    "is there a": ("car park", "cash machine"),
    "is there an": ("information desk", "ice rink"),
    "are there any": ("lockers", "guided tours"),
    "are there": ("lockers", "guided tours"),
    "where is the": ("nearest bus stop", "car park"),
    "where are the": ("lockers", "stairs"),
    "where can i buy": ("stamps", "a map"),
    "where can i find": ("the lockers", "the car park"),
    "how much is": ("a gift card", "the parking"),
    "how much are": ("gift cards", "the postcards"),
    "can i bring": ("a tripod", "drinks"),
    "can i bring my": ("camera", "suitcase"),
    "can i rent": ("a tent", "tools"),
    "can i borrow": ("a pen", "tools"),
    "can i buy": ("a gift card", "stamps"),
}
#: Words that end such a beginning and belong to the thing.
_ARTICLES: Final = word_set("a an the my by with")
_NOUN_PHRASE: Final = 3
#: Words that no thing has which a user asks for.
_NO_THING: Final = word_set(
    """it them that this those these there in on at for to from with and or if when which who of
    my your his her their our i you we they is are do does can be by about near open any some one
    ones other another more much many too also today tomorrow tonight available left here
    anything something nothing else lot lots"""
)
_ELLIPSIS: Final = re.compile(r"(?:and |so )?(?:what about|how about)\b|(?:and|or)\b")
_FEWEST: Final = 3
_LONGEST: Final = 14
#: Persons are not `it`.
_PERSONS: Final = word_set(
    """doctor dentist teacher wife husband son daughter mother father brother sister friend boss
    manager colleague driver waiter chef owner guide trainer kid child baby boy girl man woman vet
    name weather time date day year rest"""
)


@register_relation
class FollowUp(Relation):
    """Asks a short question after another one, or the whole question. The answer must stay.

    Source: own.
    """

    name = "follow-up"
    source = "questions and rules of this package (MIT)"
    expects = "{stays}"
    edits = "own"
    english = True
    reasons = (_NOT_ONE, _NO_PHRASE)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn as a short question, as a whole question, or after its topic."""
        parts = [one for one in sentences(scene.turn.user) if not is_polite(one)]
        if len(parts) != 1 or len(parts[0].said) > _LONGEST or scene.guarded.exact:
            return Inapplicable(_NOT_ONE)
        one = parts[0]
        if not (one.asks or requests(one)) or any(gap.strip() for gap in one.gaps):
            return Inapplicable(_NOT_ONE)
        found = [*_whole(scene, one), *_shortened(scene, one)]
        if scene.once(has_conversations):
            found += _after_topic(scene, one)
            if scene.kind.name != "state":
                found += _after_another(scene, one)
        return found or Inapplicable(_NO_PHRASE)


def _spoken(one: Sentence, first: int, end: int) -> str:
    """Return words of a sentence as the user wrote them."""
    return " ".join(word.text for word in one.words[first:end])


def _is_of(kind: Varied, one: Sentence, first: int, end: int) -> bool:
    """Return whether words of a sentence are a phrase of a kind, and no part of a name."""
    if kind.added:
        small = one.words[first].text.islower() or first == 0
        # As in `at two in the afternoon` and `in May 1862`.
        hour = first > 0 and (one.said[first - 1] in NUMBER_WORDS or one.said[first - 1].isdigit())
        year = end < len(one.said) and one.said[end].isdigit()
        return (
            small
            and not (hour or year)
            and kind.pattern.fullmatch(" ".join(one.said[first:end])) is not None
        )
    after = one.words[end : end + 1]
    named = after and after[0].text[0].isupper()
    goes = not _GOES.isdisjoint(one.said)
    return goes and not named and kind.pattern.fullmatch(_spoken(one, first, end)) is not None


def _phrase_in(one: Sentence) -> tuple[Varied, int, int] | None:
    """Return the only phrase of `_KINDS` in a sentence, with its first and its last word."""
    found = [
        (kind, first, end)
        for kind in _KINDS
        for first in range(len(one.said))
        for end in range(first + 1, min(first + 4, len(one.said)) + 1)
        if _is_of(kind, one, first, end)
    ]
    return found[0] if len(found) == 1 else None


def _thing_in(one: Sentence) -> tuple[str, int] | None:
    """Return the beginning of a question about a thing, and the index of the thing's first word.

    The thing ends the question.
    """
    for count in (4, 3, 2):
        begins = " ".join(one.said[:count])
        if begins in _ABOUT_THINGS:
            thing = one.said[count:]
            bare = thing[1:] if thing[:1] and thing[0] in _ARTICLES else thing
            fits = 0 < len(bare) <= _NOUN_PHRASE and _NO_THING.isdisjoint(bare)
            return (begins, count) if fits else None
    return None


def _last_question(scene: Scene) -> Sentence | None:
    """Return the question that ends the user's previous turn, if there is one."""
    if not scene.index:
        return None
    parts = list(sentences(scene.dialogue.turns[scene.index - 1].user))
    asked = [one for one in parts if not is_polite(one)]
    return asked[-1] if asked and asked[-1].asks else None


def _short(phrase: str) -> list[str]:
    """Return the short questions with a phrase."""
    return [
        template.format(_BARE.sub("", phrase) if "about" in template else phrase)
        for template in _SHORT
    ]


def _rewording(scene: Scene, one: Sentence, text: str, about: str) -> Rewrite:
    user = scene.turn.user
    end = one.mark_at + len(one.mark)
    edit = scene.whole(f"{user[: one.start]}{text}{user[end:]}", about.replace(" ", "_"))
    return scene.rewrite([edit], about=about)


def _whole(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `Are you open on Sundays?` for `And on Sundays?` after `Are you open on Fridays?`."""
    earlier = _last_question(scene)
    begins = _ELLIPSIS.match(" ".join(one.said))
    count = len(begins[0].split()) if begins else 0
    if earlier is None or count == len(one.said) or not one.asks:
        return
    rest = one.said[count:]
    phrase = _spoken(one, count, len(one.said))
    phrase = phrase if count else lowered(scene, one) + phrase[len(one.words[0].text) :]
    if begins is None and _phrase_in(one) is None:
        return
    about = _in_earlier(earlier, rest, phrase)
    if about is not None:
        yield _rewording(scene, one, about, "the whole question")
    if about is not None and begins is not None:
        said = scene.turn.user[one.start : one.mark_at + len(one.mark)]
        for text in _short(phrase):
            if text.lower() != said.lower():
                yield _rewording(scene, one, text, "another short question")


def _in_earlier(earlier: Sentence, rest: Sequence[str], phrase: str) -> str | None:
    """Return an earlier question with a new phrase, or ``None`` if it has no place for it."""
    if any(gap.strip() for gap in earlier.gaps):
        return None
    there, size = _phrase_in(earlier), len(earlier.said)
    kinds = _kinds_of(phrase)
    if not kinds and there is not None:
        # `What about Sundays?` leaves out the preposition.
        longer = f"{earlier.said[there[1]]} {phrase}"
        kinds = _kinds_of(longer)
        phrase = longer if kinds else phrase
    if kinds and there is not None and _alike(there[0], kinds[0]):
        head, tail = _spoken(earlier, 0, there[1]), _spoken(earlier, there[2], size)
        return f"{' '.join(filter(None, (head, phrase, tail)))}?"
    for_whom = phrase.startswith("for ") and earlier.said[:2] == ("how", "much")
    if kinds and there is None and kinds[0].added and (for_whom or _thing_in(earlier) is None):
        return f"{_spoken(earlier, 0, size)} {phrase}?" if earlier.said[0] in _ASKS else None
    thing = _thing_in(earlier)
    bare = rest[1:] if rest[0] in _ARTICLES else rest
    if kinds or thing is None or len(bare) > _NOUN_PHRASE or not _NO_THING.isdisjoint(bare):
        return None
    begins = thing[0].rpartition(" ")[2]
    if not bare or (begins == "the" and rest[0] != "the"):
        return None
    whole = begins in _ARTICLES and (begins not in {"by", "with"} or rest[0] == begins)
    count = thing[1] - whole
    return f"{_spoken(earlier, 0, count)} {phrase}?"


def _kinds_of(phrase: str) -> list[Varied]:
    """Return the kinds to which a phrase belongs."""
    return [
        kind
        for kind in _KINDS
        if kind.pattern.fullmatch(phrase if not kind.added else phrase.lower().replace("’", "'"))
    ]


_ASKS: Final = word_set("are is do does can what when where how which could may")


def _alike(one: Varied, other: Varied) -> bool:
    """Return whether one of two phrases may replace the other: both say when, or for whom."""
    times = _KINDS[:8]
    return one is other or (one in times and other in times)


def _shortened(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `And on Sundays?` for `Are you open on Sundays?` after `Are you open on Fridays?`."""
    earlier = _last_question(scene)
    if earlier is None or not one.asks:
        return
    here, there = _phrase_in(one), _phrase_in(earlier)
    if here is not None and there is not None and _alike(here[0], there[0]):
        rests = [
            (*sentence.said[: found[1]], *sentence.said[found[2] :])
            for sentence, found in ((one, here), (earlier, there))
        ]
        phrase = _spoken(one, here[1], here[2])
        if rests[0] == rests[1] and phrase.lower() != _spoken(earlier, there[1], there[2]).lower():
            phrase = phrase[0].lower() + phrase[1:] if here[1] == 0 else phrase
            for text in _short(phrase):
                yield _rewording(scene, one, raised(text, one), "a short question")
    things = _thing_in(one), _thing_in(earlier)
    if things[0] and things[1] and things[0][0] == things[1][0]:
        phrase = _thing_phrase(one, *things[0])
        if phrase != _thing_phrase(earlier, *things[1]):
            for text in _short(phrase):
                yield _rewording(scene, one, raised(text, one), "a short question")


def _thing_phrase(one: Sentence, begins: str, count: int) -> str:
    """Return the words for a thing, with the article that may end the beginning."""
    return _spoken(one, count - (begins.rpartition(" ")[2] in _ARTICLES), len(one.said))


def _things_of(data: DialogueSet) -> Mapping[str, tuple[str, ...]]:
    """Return the things that users of the data ask about, by the beginning of the question."""
    found: dict[str, dict[str, None]] = {}
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            for one in sentences(turn.user):
                thing = _thing_in(one) if one.asks else None
                if thing is not None and not any(gap.strip() for gap in one.gaps):
                    text = _spoken(one, thing[1], len(one.said))
                    if not text.islower():
                        continue  # It may be a name.
                    found.setdefault(thing[0], {})[text] = None
    return {begins: tuple(things) for begins, things in found.items()}


def _after_another(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `And on Sundays?` for `Are you open on Sundays?`, after the same about Saturdays."""
    if not one.asks or asks_to(one) or points_back(scene.turn.user, scene.lexicon):
        return
    if one.said[0] == "and":
        return
    here, thing = _phrase_in(one), _thing_in(one)
    if here is not None and here[2] - here[1] < len(one.said) - 1:
        pairs = list(_other_phrases(one, *here))
    elif thing is not None and not scene.index:
        pairs = list(_other_things(scene, one, *thing))
    else:
        return
    order = scene.rng.permutation(len(pairs)).tolist()
    for number, place in enumerate(order):
        asked, phrase = pairs[place]
        if not _unlocked(scene, asked, one):
            continue
        short = raised(_short(phrase)[number % len(_SHORT)], one)
        yield _two_rounds(scene, one, asked, _UNKNOWN[number % 2], short, "after another question")


def _other_phrases(one: Sentence, kind: Varied, first: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield questions with another phrase of a kind, and the phrase of the turn."""
    phrase, size = _spoken(one, first, end), len(one.said)
    for other in kind.others:
        if other.lower() == phrase.lower():
            continue
        put = other if kind.added else _same_preposition(other, one.said[first])
        asked = " ".join(filter(None, (_spoken(one, 0, first), put, _spoken(one, end, size))))
        yield f"{asked[0].upper()}{asked[1:]}?", phrase


def _other_things(
    scene: Scene, one: Sentence, begins: str, count: int
) -> Iterator[tuple[str, str]]:
    """Yield questions about another thing, and the words for the thing of the turn."""
    phrase, said = _thing_phrase(one, begins, count), _spoken(one, count, len(one.said))
    for other in (*scene.once(_things_of).get(begins, ()), *_ABOUT_THINGS[begins]):
        if other.lower() != said.lower() and _is_plural(other) == _is_plural(said):
            yield f"{_spoken(one, 0, count)} {other}?", phrase


def _is_plural(text: str) -> bool:
    return inflections().singular(text.rsplit(maxsplit=1)[-1]) is not None


def _same_preposition(phrase: str, preposition: str) -> str:
    return f"{preposition} {phrase.partition(' ')[2]}"


def _unlocked(scene: Scene, asked: str, one: Sentence) -> bool:
    """Return whether the words of another question are no values of the data."""
    words = scene.table.words if scene.kind.name == "state" else frozenset[str]()
    known = {*one.said}
    return all(
        word in known or spell_compared(word) not in words for word in word_list(asked.lower())
    )


def _two_rounds(
    scene: Scene, one: Sentence, first: str, answer: str, text: str, about: str
) -> Rewrite:
    """Return the dialogue with a round before the turn, and another text of the turn."""
    user = scene.turn.user
    *earlier, last = scene.context.exchanges
    said = f"{user[: one.start]}{text}{user[one.mark_at + len(one.mark) :]}"
    seen = replace(scene.context, exchanges=(*earlier, Exchange(last.system, first)))
    seen = seen.going_on(answer, said)
    moves = (Move("add", scene.index, scene.index - 1),)
    return Rewrite(seen, scene.context, moves=moves, about=about)


def _after_topic(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `When does it open?` for `When does the museum open?`, after a turn about the museum.

    A request is treated alike: `Cancel it.` for `Cancel my order.`.
    """
    alone = scene.turn.user.strip() == scene.turn.user[one.start : one.mark_at + len(one.mark)]
    if points_back(scene.turn.user, scene.lexicon) or not alone or (scene.index and not one.asks):
        return
    found = subject_asked_about(scene, one) if one.asks else _object_of(one)
    if found is None:
        return
    first, end = found
    noun, topic = one.said[end - 1], _spoken(one, first, end)
    if noun in _PERSONS or one.said.count(noun) > 1 or not one.words[end - 1].text.islower():
        return
    several = inflections().singular(noun) is not None
    named = scene.guarded.reasons[one.first + first : one.first + end]
    if "user" in named or (several and one.said[0] == "is"):
        return
    pronoun = ("them" if several else "it") if not one.asks else "they" if several else "it"
    head = _spoken(one, 0, first)
    tail = _spoken(one, end, len(one.said))
    text = " ".join(filter(None, (head, pronoun, tail))) + (one.mark or "")
    topic = topic if first else lowered(scene, one) + topic[len(one.words[0].text) :]
    leads = _TOPICS if one.asks else _TOPICS_OF_REQUESTS
    for number, lead in enumerate(lead.format(topic) for lead in leads):
        answer = (_GO_ON if one.asks else _GO_ON_REQUEST)[number % 2]
        yield _two_rounds(scene, one, lead, answer, text, "after its topic")


def _object_of(one: Sentence) -> tuple[int, int] | None:
    """Return the place of the object of a short request, such as `Cancel my order.`."""
    first = 2 if one.said[0] == "please" else 1
    size = len(one.said) - (one.said[-1] == "please")
    fits = one.said[first] in _OWN and 1 < size - first <= _NOUN_PHRASE
    plain = _NO_THING.isdisjoint(one.said[first + 1 : size])
    return (first, size) if fits and plain else None


_OWN: Final = word_set("my our the")
