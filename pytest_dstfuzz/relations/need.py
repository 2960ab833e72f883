"""A relation that turns requests and questions into statements of need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.words import word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Replacement, Scene
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.relations.wording import (
    Change,
    Sentence,
    Wording,
    at_end,
    raised,
    sentences,
    with_ing,
)

_NAME: Final = "need"
_NO_NEED: Final = "the turn has no request or question that a statement of need can replace"
_ASKED: Final = re.compile(
    r"(?:please|(?:can|could|would|will) you(?: please)?|(?:can|could|may) i(?: please)?"
    r"|i(?: would|'d) like to|i want to) "
)
#: Verbs of requests for a thing that the user does not have yet.
_GETS: Final = word_set("book order buy reserve get add hire rent have")
#: Of these verbs, only a time or a number of people tells the act without the verb.
_NEEDS_DETAIL: Final = word_set("book reserve hire rent")
_DETAILS: Final = word_set("for on at from today tomorrow tonight this next")
#: Verbs of acts that a user says he needs to do.
_ACTS: Final = word_set(
    """book order buy reserve hire rent cancel renew change move reschedule transfer send pay return
    exchange extend join freeze block unblock report update reset postpone collect"""
)
#: Participles of acts on a thing: `I need my booking cancelled.`
_DONE: Final = {
    **{
        verb: verb + ("d" if verb.endswith("e") else "ed")
        for verb in (
            *("change", "move", "renew", "extend", "block", "unblock", "repair", "mend", "refill"),
            *("deliver", "book", "reserve", "remove", "reschedule", "confirm", "update", "close"),
            *("delete", "activate", "replace", "return", "clean", "print", "fix", "service"),
            *("collect", "postpone", "lock", "unlock", "refund", "exchange", "translate"),
        )
    },
    "cancel": "cancelled",
    "transfer": "transferred",
    "freeze": "frozen",
    "unfreeze": "unfrozen",
    "reset": "reset",
}
#: Acts on something that is out of order: `My brakes need fixing.`
_MENDS: Final = word_set("fix repair mend clean service replace refill renew")
_OWN: Final = word_set("my our")
_NEW: Final = word_set("a an some another") | {*NUMBER_WORDS[2:11]}
_DETERMINERS: Final = _OWN | _NEW | word_set("the this that these those all")
#: Words that end the object of a verb.
_AFTER_OBJECT: Final = word_set(
    "for in on at to from under by with into until before after today tomorrow tonight this next"
)
#: Words that a statement of need has no place for.
_CLAUSES: Final = word_set(
    "if because since so but or when where while who which what how instead not look"
)
#: Words of a request for a certain thing, and of things that nobody looks for or needs.
_NAMED: Final = word_set(
    "particular specific called named certain reservation booking appointment reference song"
)
#: Nouns of facts that a user asks about, and never needs.
_FACTS: Final = word_set(
    """fee fees charge charges limit minimum maximum deposit discount way chance problem difference
    deadline penalty rule rules cost costs tax code age wait queue idea time question delay issue
    reason risk catch opening news update possibility mistake error fault leak bug bugs bedbugs fire
    recall smoking smoke noise damage strike outage complaint"""
)
#: Nouns of information that a user needs.
_TOLD: Final = word_set(
    """price address number balance hours menu postcode email total fare rate timetable schedule
    times code"""
)
_THERE: Final = re.compile(r"(?:is|are) there (?:any )?|do you (?:have|sell|offer) (?:any )?")
#: A search for a thing, a need of a thing, and a request to find it.
_SEEKS: Final = re.compile(r"i(?: am| 'm|'m) looking for (?=an? )")
_NEEDS: Final = re.compile(r"i need (?=an? [^ ]+ (?:in|near|with|to|from|that|for)\b)")
_FIND: Final = re.compile(
    r"(?:(?:can|could|would|will) you )?(?:please )?(?:help me )?find (?:me |us )?(?=an? )"
)
_WHERE: Final = re.compile(r"where (?:is|are|can i find) (?=the )")
_WHAT: Final = re.compile(r"(?:what is|what's|what are) (?=(?:the|your|my) )")
_HOW_MUCH: Final = re.compile(r"how much (?:is|are) (?=(?:a|an|the|\d+) )")
#: Words of an object that names no thing.
_OPEN: Final = word_set(
    """anything something anyone someone other others more one ones it them no any still really
    enough already only"""
)
_LONGEST: Final = 20
_LONGEST_QUESTION: Final = 9
_LONGEST_OBJECT: Final = 4


@register_relation
class StatedNeed(Wording):
    """States a need in place of a request or a question. The answer must stay the same.

    Source: own.
    """

    name = "stated-need"
    source = "rules of this package (MIT)"
    reasons = (_NO_NEED,)
    most = 1

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the turn with a statement of need in place of a request or a question."""
        for one in sentences(scene.turn.user):
            if not _CLAUSES.isdisjoint(one.said[1:]) or len(one.said) > _LONGEST:
                continue
            if one.asks and len(one.said) <= _LONGEST_QUESTION:
                # Later, such a question may ask about the offer: `Is there parking?`
                yield from _asked(one, things=scene.kind.name == "reply" or not scene.index)
            yield from _sought(one)
            if not (one.last and scene.turn.system.rstrip().endswith("?") and not one.asks):
                yield from _requested(one)


def _stated(one: Sentence, place: int, text: str, *others: Replacement) -> Change:
    """Return the change that puts a text before the word ``place``, and ends in a full stop."""
    start, at = one.start, one.words[place].start
    begins = Replacement(start, at, f"{raised(text, one)} ", _NAME)
    return (begins, *others, *at_end(one, ".", _NAME))


def _asked(one: Sentence, *, things: bool) -> Iterator[Change]:
    """Yield `I need a lift.` for `Is there a lift?`, and the like."""
    said = " ".join(one.said)
    if any(gap.strip(" -") for gap in one.gaps):
        return
    if things and (found := _THERE.match(said)):
        count = len(found[0].split())
        thing = one.said[count : _end_of_object(one, count)]
        if thing and _FACTS.isdisjoint(thing) and thing[0] not in _OPEN:
            yield _stated(one, count, "I'm looking for")
            if one.said[0] in {"is", "are"}:
                yield _stated(one, count, "I need")
    elif (found := _WHERE.match(said)) and _FACTS.isdisjoint(one.said):
        count = len(found[0].split())
        yield _stated(one, count, "I'm looking for")
        yield _stated(one, count, "I need to find")
    elif (found := _WHAT.match(said)) and not _TOLD.isdisjoint(one.said):
        yield _stated(one, len(found[0].split()), "I need")
    elif (found := _HOW_MUCH.match(said)) and _FACTS.isdisjoint(one.said):
        yield _stated(one, len(found[0].split()), "I need the price of")


def _sought(one: Sentence) -> Iterator[Change]:
    """Yield `I need a hotel.` for `I'm looking for a hotel.`, and vice versa."""
    said = " ".join(one.said)
    if not _NAMED.isdisjoint(one.said):
        return
    if not one.asks and (found := _SEEKS.match(said)):
        yield _stated(one, len(found[0].split()), "I need")
    elif not one.asks and (found := _NEEDS.match(said)):
        yield _stated(one, len(found[0].split()), "I'm looking for")
    elif found := _FIND.match(said):
        yield _stated(one, len(found[0].split()), "I need")


def _requested(one: Sentence) -> Iterator[Change]:
    """Yield `I need to book a table.` and `I need a table.` for `Book a table.`, and the like."""
    found = _ASKED.match(" ".join(one.said))
    place = len(found[0].split()) if found else 0
    said = one.said
    if place + 1 >= len(said) or any(gap.strip() for gap in one.gaps[:place]):
        return
    if place and said[place] == "please":
        return
    verb = said[place]
    if said[-2:] in {("for", "me"), ("for", "us")}:
        return
    if verb not in _GETS | _ACTS | _MENDS | _DONE.keys() or (not found and one.asks):
        return
    asks_bot = found is None or "you" in found[0] or found[0] == "please "
    if verb == "have" and asks_bot:  # `Have a nice day.`
        return
    first = place + 1
    new = said[first] in _NEW or said[first].isdigit() or said[first] in NUMBER_WORDS
    new = new and one.gaps[place].isspace()  # No sign, as in `£40`, stands before the thing.
    # Without the verb, `I need a bike` does not tell that the bike is for hire.
    new = new and (verb not in _NEEDS_DETAIL or not _DETAILS.isdisjoint(said[first:]))
    if verb in _GETS and new and not (verb == "add" and "to" in said):
        yield _stated(one, first, "I need")
    counted = said[first] in _DETERMINERS | {"tickets"} or said[first].isdigit()
    if verb in _ACTS and counted and (found is None or "like" not in found[0]):
        yield _stated(one, place, "I need to")
    if asks_bot and said[first] in _DETERMINERS:
        yield from _done(one, place, verb)


def _done(one: Sentence, place: int, verb: str) -> Iterator[Change]:
    """Yield `I need my booking cancelled.` and `My brakes need fixing.`."""
    said, first = one.said, place + 1
    end = _end_of_object(one, first)
    if not first + 1 < end <= first + _LONGEST_OBJECT:
        return
    at = one.words[end - 1].end
    if verb in _DONE:
        for text in ("I need", "I'd like"):
            done = Replacement(at, at, f" {_DONE[verb]}", _NAME)
            yield _stated(one, first, text, done)
    if verb in _MENDS and said[first] in _OWN:
        several = inflections().singular(said[end - 1]) is not None
        needs = f" {'need' if several else 'needs'} {with_ing(verb)}"
        begins = Replacement(one.start, one.words[first].end, raised(said[first], one), _NAME)
        yield (begins, Replacement(at, at, needs, _NAME), *at_end(one, ".", _NAME))


def _end_of_object(one: Sentence, first: int) -> int:
    """Return the index after the noun phrase that begins at ``first``."""
    said = one.said
    ends = (n for n in range(first, len(said)) if said[n] in _AFTER_OBJECT | {"please"})
    return next(ends, len(said))
