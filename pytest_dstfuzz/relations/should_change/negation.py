"""The clause that gives a value is negated at its verb: ``I do not want parking``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.clauses import clause_of, sentence_of
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import OF_CALLS, ShouldChange
from pytest_dstfuzz.relations.should_change.calls import CallScene
from pytest_dstfuzz.relations.should_change.flags import flags_of, is_alone
from pytest_dstfuzz.relations.should_change.sites import REASONS, ValueSite, sites_of

COUNTED: Final = "not so many, or not at that time, says nothing of what is wanted"
NOT_ALONE: Final = "the clause gives several values"
NO_VERB: Final = "no verb of the clause is known to be negated"

#: Words before which `not` is put: `should not be`, `would not like`.
_AUXILIARIES: Final = listed("should would will must")
#: Verbs that `not` follows: `I will not want`.
_HELPING: Final = listed("do will would")
_INFINITIVES: Final = listed("like be have serve include offer provide")
_BE: Final = listed("am 'm are 're i'm we're")
#: Participles that make `I am looking for` a wish.
_SEEKING: Final = listed("looking searching hoping thinking interested going leaving departing")
#: Verbs after a subject; `need` would leave room, so that it becomes `want`.
_PLAIN: Final[Mapping[str, str]] = {"want": "want", "need": "want", "prefer": "prefer"}
_SINGULAR: Final[Mapping[str, str]] = {
    "wants": "want",
    "needs": "want",
    "prefers": "prefer",
    "includes": "include",
    "serves": "serve",
}
_I: Final = listed("i we they")
_PEOPLE: Final = listed("she he")
_IT: Final = listed("it she he that which restaurant hotel place")
_ORDERS: Final = listed("book find reserve include pick choose")
_BEFORE_ORDERS: Final = listed("please just")
#: Words between the verb and a subject: `I really want`.
_ADVERBS: Final = listed("also really just only definitely")
#: What makes it a request for information, or another sentence, between verb and value.
_ASIDE: Final = listed(
    """info information number numbers address postcode phone details help know sure i we you
    about entrance fee price reference"""
)
_POINTERS: Final = listed("it its that this those these they them their there one ones")
_SUBJECTS: Final = listed("i we it she he they you the my our i'm i'd we'd it's")
_FRAGMENTS: Final = listed("in on at for from to with preferably maybe and or")


@register_relation
class Negation(ShouldChange):
    """The slot has any value but the one that is not wanted."""

    name = "negation"
    expects = "the slot does not keep the value that is not wanted, and all others stay"
    reasons = (*REASONS, COUNTED, NOT_ALONE, NO_VERB, *OF_CALLS)

    def edited(self, scene: Scene) -> Begun:
        """Return a rewrite for each slot that a clause of its own gives."""
        flags, sites = flags_of(scene), sites_of(scene)
        made = [_negated(scene, flag.unwanted, flag.first, flag.last) for flag in flags.found]
        made += [_unwanted(scene, site) for site in sites.found]
        rewrites = [one for one in made if isinstance(one, Rewrite)]
        if rewrites:
            return rewrites
        reasons = [*flags.reasons, *(one for one in made if isinstance(one, str)), sites.reason]
        return Inapplicable(max(filter(None, reasons), key=self.reasons.index))


def _unwanted(scene: Scene, site: ValueSite) -> Rewrite | str:
    if site.kind in {"number", "time"}:
        return COUNTED
    delta = Delta(site.slot, site.value, Admissible((site.value,), anything_but=True))
    return _negated(scene, delta, site.mention.first, site.mention.last)


def _negated(scene: Scene, delta: Delta, first: int, last: int) -> Rewrite | str:
    """Return the rewrite in which the verb before a value is negated."""
    if not is_alone(scene, delta.slot, first, last) or _goes_on(scene, last):
        return NOT_ALONE
    words = [word.lower.replace("’", "'") for word in scene.parts.words]
    clause = clause_of(scene.parts, first)
    verb = next((n for n in range(clause.start, first) if _negation_at(words, clause, n)), None)
    if verb is None or not _ASIDE.isdisjoint(words[verb + 1 : first]):
        return NO_VERB
    sentence = sentence_of(scene.parts, first)
    if scene.parts.gaps[sentence.stop].strip().startswith("?"):
        return NO_VERB
    if isinstance(scene, CallScene):
        # Whether the clause asks for the call or only for its argument, nobody knows.
        delta = replace(delta, after=replace(delta.after, or_no_call=True))
    word, new = scene.parts.words[verb], _negation_at(words, clause, verb)
    if word.text[0].isupper():
        new = new[:1].upper() + new[1:]
    if verb and word.start == scene.parts.words[verb - 1].end and not new.startswith("'"):
        new = f" {new}"
    return scene.rewrite([Replacement(word.start, word.end, new, "negation")], [delta])


def _goes_on(scene: Scene, last: int) -> bool:
    """Say whether what follows is under the negation too, or points to what it denies."""
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
    """Return the word at a place of a clause with its negation, ``""`` where no rule is for it.

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
    elif verb in _AUXILIARIES and before in _I | _IT and after in _INFINITIVES:
        new = f"{verb} not"
    elif verb in {"'d", "i'd", "we'd"} and after == "like":
        new = f"{verb[:-2]} would not".strip()
    elif verb in _BE and after in _SEEKING:
        new = f"{verb} not"
    elif verb in _ORDERS and (place == clause.start or before in _BEFORE_ORDERS):
        new = f"do not {verb}"
    return new
