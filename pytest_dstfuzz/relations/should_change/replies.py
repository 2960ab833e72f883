"""Negation of a statement or a request. A bot must then give another reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.perturb.words import match_case, word_set
from pytest_dstfuzz.relations.relation import (
    OTHER_REPLY,
    Inapplicable,
    Replacement,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.wording import Sentence, is_polite, requests, sentences

NOT_ONE: Final = "besides greetings and thanks, the turn is not a single statement or request"
NO_OPPOSITE: Final = "no rule negates the statement or removes its negation"
#: If a statement has one of these words, its negation need not change the reply: `I want to know
#: when you open`.
_IDLE: Final = word_set(
    """care mind matter preference know ask question questions information info help tell wondering
    wonder sure glad happy sorry but because since so if though although unless when while any
    anything some only just"""
)
#: Auxiliaries after which `not` stands, and their negated forms.
_NEGATED: Final[Mapping[str, str]] = {
    "is": "isn't",
    "are": "aren't",
    "was": "wasn't",
    "were": "weren't",
    "has": "hasn't",
    "have": "haven't",
    "will": "won't",
    "can": "can't",
    "am": "am not",
    "would": "wouldn't",
}
_AFFIRMED: Final[Mapping[str, str]] = {
    **{negated: word for word, negated in _NEGATED.items()},
    "cannot": "can",
    "i'm not": "i'm",
}
_FULL_VERBS: Final = word_set("want need like have own eat drink smoke drive speak")
_POSSESSIVES: Final = word_set("my our the")
_NEGATIONS: Final = word_set("no never nothing nobody none nor neither without")
#: The verb after a subject such as `my new card` must have a lower index than this.
_MOST_SUBJECT: Final = 4
_LONGEST: Final = 14


def negate_statement(scene: Scene) -> TurnStart:
    """Return the turn with its only statement or request negated."""
    parts = [one for one in sentences(scene.turn.user) if not is_polite(one)]
    if len(parts) != 1 or parts[0].asks:
        return Inapplicable(NOT_ONE)
    one = parts[0]
    said = set(one.said)
    if not said.isdisjoint(_IDLE | _NEGATIONS) or len(one.said) > _LONGEST or _has_clauses(one):
        return Inapplicable(NO_OPPOSITE)
    found = list(_opposites(one))
    return [
        replace(scene.rewrite([edit], about=edit.operator.replace("_", " ")), expected=OTHER_REPLY)
        for edit in found
    ] or Inapplicable(NO_OPPOSITE)


def _has_clauses(one: Sentence) -> bool:
    """Return whether a sentence has a comma. A comma before a final `please` does not count."""
    gaps = one.gaps[:-1] if one.said[-1] == "please" else one.gaps
    return any(gap.strip() for gap in gaps)


def _opposites(one: Sentence) -> Iterator[Replacement]:
    """Yield the edit that negates a sentence or removes its negation."""
    said, words = one.said, one.words
    first = 1 if said[0] == "please" and len(said) > 1 else 0
    negated = [n for n, word in enumerate(said) if word == "not" or word.endswith("n't")]
    negated += [n for n, word in enumerate(said) if word == "cannot"]
    if len(negated) > 1:
        return
    if not negated:
        if requests(one):
            said_first = match_case(words[first].text, "do not")
            after = f"{said_first} {words[first].lower}"
            yield Replacement(words[first].start, words[first].end, after, "negated")
            return
        place = _verb_of(one)
        if place is None:
            return
        full = said[place] in _FULL_VERBS and said[place + 1 : place + 2] != ("been",)
        if full:
            yield Replacement(words[place].start, words[place].start, "do not ", "negated")
        else:
            yield Replacement(words[place].end, words[place].end, " not", "negated")
        return
    yield from _affirmed(one, negated[0])


def _verb_of(one: Sentence) -> int | None:
    """Return the index of the verb after a short subject at the beginning of a sentence."""
    said = one.said
    if said[0] in {"i", "we"} and said[1:2] and said[1] in {*_FULL_VERBS, *_NEGATED}:
        return 1
    if said[0] in {"i'm", "we're", "it's"} and len(said) > 2:
        return 0
    if said[0] in {"it", "they"} and said[1:2] and said[1] in _NEGATED:
        return 1
    if said[0] in _POSSESSIVES:
        verbs = range(2, min(_MOST_SUBJECT, len(said) - 1))
        return next(
            (place for place in verbs if said[place] in _NEGATED and said[place - 1] != "i"), None
        )
    return None


def _affirmed(one: Sentence, place: int) -> Iterator[Replacement]:
    """Yield the sentence without its negation."""
    said, words = one.said, one.words
    before = said[place - 1] if place else ""
    follows = said[place + 1 : place + 2]
    word = words[place]
    if not follows:
        return
    if said[place] == "don't" or (said[place] == "not" and before == "do"):
        start = words[place - 1].start if said[place] == "not" else word.start
        begins = place - (said[place] == "not") == 0
        subject = said[place - (1 if said[place] == "don't" else 2)] if not begins else ""
        if begins or subject in {"i", "we", "they", "please"}:
            text = words[place + 1].text
            text = text[0].upper() + text[1:] if begins and words[0].text[0].isupper() else text
            yield Replacement(start, words[place + 1].end, text, "affirmed")
    elif said[place] == "not" and before in {*_NEGATED, "i'm", "we're", "it's"}:
        yield Replacement(words[place - 1].end, word.end, "", "affirmed")
    elif said[place] in _AFFIRMED:
        yield Replacement(word.start, word.end, _AFFIRMED[said[place]], "affirmed")
