"""Negation of a statement or a request. A bot must then give another reply, or make no call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import Admissible
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.words import Word, match_case, word_set
from pytest_dstfuzz.relations.relation import (
    OTHER_REPLY,
    Delta,
    Inapplicable,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.values import article_before, inflections
from pytest_dstfuzz.relations.wording import Sentence, is_polite, requests, says_need, sentences

NOT_ONE: Final = (
    "besides greetings and thanks, the turn is not a single statement, request, negated question "
    "or question with which"
)
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
_SWAPPED: Final[Mapping[str, str]] = {"with": "without", "without": "with"}
#: Words before which `with` has another meaning, and words that need `with`.
_WHOSE: Final = word_set("me my you your us our him her them it this that the him thanks more")
_TAKE_WITH: Final = word_set(
    """help helps problem problems trouble issue issues wrong deal talk speak meet pay begin start
    stay come travelling traveling travel happy unhappy satisfied appointment meeting share go
    transaction making one is"""
)
#: First words of a question that may be negated, and the negated forms in it.
_ASKING: Final = word_set("which what who when where")
_NO_FORMS: Final[Mapping[str, str]] = {
    "don't": "",
    "aren't": "are",
    "isn't": "is",
    "can't": "can",
    "cannot": "can",
}
#: First words of a question, which may lack its mark.
_ASKING_WORDS: Final = _ASKING | word_set(
    "why how is are was were do does did can could will would has have had may should"
)
_SUBJECTS: Final = word_set("you i we they it he she the my your this that there")
#: Verbs of requests that do something, and do not only look something up.
_ACTS: Final = word_set(
    """book cancel order buy reserve change send pay add schedule make remove delete transfer play
    block close renew rent return exchange reschedule move set turn switch lock unlock start stop
    open create invite text email print remind lower raise dim increase reduce lend submit upload"""
)
#: The verb after a subject such as `my new card` must have a lower index than this.
_MOST_SUBJECT: Final = 4
_LONGEST: Final = 14


def negate_statement(scene: Scene) -> TurnStart:
    """Return the turn with its only statement or request negated."""
    parts = [one for one in sentences(scene.turn.user) if not is_polite(one)]
    if len(parts) != 1 or (parts[0].asks and not any(_changes(parts[0]))):
        return Inapplicable(NOT_ONE)
    one = parts[0]
    if not _IDLE.isdisjoint(one.said) or len(one.said) > _LONGEST or _has_clauses(one):
        return Inapplicable(NO_OPPOSITE)
    denied = _denies_all(scene, one)
    found = [edit for edit in _changes(one) if edit.operator != "denied" or not denied]
    return [
        replace(scene.rewrite(_in_full(one, edit), about=_named(edit)), expected=OTHER_REPLY)
        for edit in found
    ] or Inapplicable(NO_OPPOSITE)


def _named(edit: Replacement) -> str:
    return "negated" if edit.operator == "denied" else edit.operator


def _in_full(one: Sentence, edit: Replacement) -> list[Replacement]:
    """Return an edit, with those of `too` and `also` if it negates the verb of a sentence."""
    verb = _verb_of(one)
    if edit.operator != "denied" or verb is None:
        return [edit]
    return [edit, *drop_also(one.words, verb, len(one.words))]


def drop_also(words: Sequence[Word], verb: int, stop: int) -> list[Replacement]:
    """Return the edit that drops `too`, `as well` or `also` from a negated sentence.

    `Either` would need another negation before it.

    Args:
        words: the words of the text.
        verb: the index of the negated verb.
        stop: the index after the last word of the sentence.
    """
    said = [word.lower for word in words]
    end = stop - (said[stop - 1] == "please")
    first = end - 1 if said[end - 1] == "too" else end - 2
    if first > 0 and (said[first] == "too" or said[first:end] == ["as", "well"]):
        return [Replacement(words[first - 1].end, words[end - 1].end, "", "also")]
    if not verb or said[verb - 1] != "also":
        return []
    return [Replacement(words[verb - 1].start, words[verb].start, "", "also")]


#: Words of a question that asks for no details: `Is there anything else?`
_OPEN_QUESTION: Final = word_set("else anything help assist")
#: Requests that look something up or correct it. Nobody says `Do not find me a hotel`.
LOOKS: Final = word_set(
    """find show search give tell get list recommend suggest look know see check display fetch
    locate compare make"""
)
#: Requests for a new thing, unless the object is known: `Do not book a room`.
_MAKES: Final = word_set("book order buy reserve schedule create open rent arrange")
_KNOWN: Final = word_set("my our your this that these those the it them him her his its")
#: Participles that tell the request or the way of the user.
_PLANS: Final = word_set(
    """looking searching hoping thinking planning trying going leaving departing arriving traveling
    travelling heading coming flying interested"""
)
_QUANTITIES: Final = word_set("a an some any another more")


def asks_details(system: str) -> bool:
    """Return whether the system asks for details of a request, and not `Anything else?`."""
    parts = list(sentences(system))
    asks = any(one.asks or not _ASKING.isdisjoint(one.said) for one in parts[-2:])
    return asks and not any(one.asks and not _OPEN_QUESTION.isdisjoint(one.said) for one in parts)


def _denies_all(scene: Scene, one: Sentence) -> bool:
    """Return whether the negated sentence denies the whole request, or answers no question.

    Nobody opens with `I am not looking for a gift` or with `Do not find a hotel`.
    """
    said = [word for word in one.said if word != "please"]
    if requests(one):
        return _is_new(said)
    verb = _verb_of(one)
    if verb is None:
        return False
    rest = [word for word in one.said[verb + 1 :] if word != "also"]
    if rest[:1] and rest[0] in _PLANS:
        return True
    word = one.said[verb]
    if word == "would":
        rest = rest[1:]
    elif word not in {"want", "need", "like"}:
        return False
    if rest[:1] == ["to"]:
        return len(rest) < 3 or rest[1] not in _ACTS or _is_new(rest[1:])
    side = "also" in said or said[-1] == "too" or said[-2:] == ["as", "well"]
    counted = bool(rest) and (rest[0] in _QUANTITIES or rest[0] in NUMBER_WORDS)
    return counted and not side and not asks_details(scene.turn.system)


def _is_new(said: Sequence[str]) -> bool:
    """Return whether a request looks something up, or is for a thing that is not yet known."""
    objects = [word for word in said[1:3] if word not in {"me", "us"}]
    return said[0] in LOOKS or (said[0] in _MAKES and not (objects and objects[0] in _KNOWN))


def _changes(one: Sentence) -> Iterator[Replacement]:
    """Yield the edits that turn a sentence into its opposite."""
    if (question := _negated_question(one)) is not None:
        yield question
    elif one.asks:
        yield from _negated_choice(one)
    elif one.said[0] not in _ASKING_WORDS:
        yield from _parts(one)
        narrower = list(_not_so(one)) if _is_plain(one) else []
        yield from narrower
        # `Do not find me a hotel in the centre` is odd.
        if not (narrower and requests(one)) and _NEGATIONS.isdisjoint(one.said):
            yield from _opposites(one)


def _negated_question(one: Sentence) -> Replacement | None:
    """Return the edit from `Which dishes do not contain nuts?` to `Which dishes contain nuts?`."""
    said, words = one.said, one.words
    negated = [n for n, word in enumerate(said) if word == "not" or word in _NO_FORMS]
    if said[0] not in _ASKING or len(negated) != 1 or not _NEGATIONS.isdisjoint(said):
        return None
    place = negated[0]
    if place + 1 == len(said) or said[place + 1] in _SUBJECTS:
        return None
    form = _NO_FORMS.get(said[place])
    if form:
        return Replacement(words[place].start, words[place].end, form, "affirmed")
    first = place - (said[place] == "not" and said[place - 1] == "do")
    if said[place] == "not" and first == place and said[place - 1] not in _NEGATED:
        return None
    return Replacement(words[first].start, words[place + 1].start, "", "affirmed")


#: Verbs of questions that ask for all things of a kind: `Which rooms have a balcony?`
_CHOSEN_BY: Final = word_set(
    "have contain serve offer include accept allow need open close cost deliver stop run"
)


def _is_plain(one: Sentence) -> bool:
    """Return whether a sentence has no negation."""
    said = one.said
    negated = any(word == "not" or word.endswith("n't") or word == "cannot" for word in said)
    return not negated and _NEGATIONS.isdisjoint(said)


def _negated_choice(one: Sentence) -> Iterator[Replacement]:
    """Yield the edit from `Which rooms have a balcony?` to `Which rooms do not have a balcony?`."""
    said, words = one.said, one.words
    if said[0] not in {"which", "what"} or not _is_plain(one) or len(said) > _LONGEST:
        return
    verbs = [n for n in (2, 3) if n + 1 < len(said) and said[n] in _CHOSEN_BY | {"are"}]
    noun = said[verbs[0] - 1] if verbs else ""
    if not noun or inflections().singular(noun) is None or "and" in said or "or" in said:
        return
    verb = verbs[0]
    if said[verb] == "are" and said[verb + 1] not in _SUBJECTS:
        yield Replacement(words[verb].end, words[verb].end, " not", "negated")
    elif said[verb] != "are":
        yield Replacement(words[verb].start, words[verb].start, "do not ", "negated")


#: Places that a thing may be in or not.
ZONES: Final = word_set("centre center north south east west suburbs")
#: Adjectives that may stand behind `that is not`.
ADJECTIVES: Final = word_set(
    """cheap expensive vegan vegetarian spicy red blue green black white yellow grey brown italian
    french chinese indian thai japanese mexican spanish greek turkish german english american
    british electric modern quiet large small big"""
)


def _not_so(one: Sentence) -> Iterator[Replacement]:
    """Yield `a hotel that is not in the centre` for `a hotel in the centre`.

    `a cheap hotel` becomes `a hotel that is not cheap`.
    """
    said, words = one.said, one.words
    size = len(said) - (said[-1] == "please")
    if not (requests(one) or says_need(one)) or "and" in said or "or" in said:
        return
    place = size - 3
    if place > 1 and said[place : place + 2] == ("in", "the") and said[size - 1] in ZONES:
        verb = "are" if inflections().singular(said[place - 1]) is not None else "is"
        at = words[place].start
        yield Replacement(at, at, f"that {verb} not ", "negated")
    place = size - 2
    if place > 0 and said[place] in ADJECTIVES and said[place - 1] in {"a", "an"}:
        noun = words[size - 1].text
        text = f"{article_before(noun)} {noun} that is not {words[place].text}"
        yield Replacement(words[place - 1].start, words[size - 1].end, text, "negated")


def _parts(one: Sentence) -> Iterator[Replacement]:
    """Yield `with` for `without`, and vice versa, or drop a first `no`."""
    said, words = one.said, one.words
    swaps = [n for n, word in enumerate(said) if word in _SWAPPED and 0 < n < len(said) - 1]
    others = [word for word in said if word.endswith("n't") or word == "not"]
    if len(swaps) == 1 and not others and said[swaps[0] + 1] not in _WHOSE:
        word = words[swaps[0]]
        # `Without three rooms` is odd, and a name may be a person.
        after = words[swaps[0] + 1].text
        odd = after in NUMBER_WORDS or not after.islower()
        if said[swaps[0] - 1] not in _TAKE_WITH and not odd:
            yield Replacement(word.start, word.end, _SWAPPED[word.lower], "opposite")
    if said[0] == "no" and said[-1] == "please" and len(said) > 2 and said[1] not in _WHOSE:
        text = match_case(words[0].text, words[1].text)
        yield Replacement(words[0].start, words[1].end, text, "affirmed")


def negate_request(scene: Scene) -> list[Rewrite]:
    """Return `Do not cancel my order.` for `Cancel my order.`, if the turn makes one call.

    The call must then be gone. The list is empty if no rule applies.
    """
    parts = [one for one in sentences(scene.turn.user) if not is_polite(one)]
    calls = [path for path in scene.now if str(AnswerPath.of(path).call) == path]
    if len(parts) != 1 or len(calls) != 1 or parts[0].asks or len(parts[0].said) > _LONGEST:
        return []
    if asks_details(scene.turn.system):
        return []
    one, said = parts[0], [word for word in parts[0].said if word != "please"]
    acts = said[0] in _ACTS and requests(one)
    wishes = said[0] in {"i", "we"} and said[1:2] in (["want"], ["need"]) and said[2:3] == ["to"]
    if not (acts or (wishes and said[3:4] and said[3] in _ACTS)):
        return []
    if _has_clauses(one) or not (_IDLE | _NEGATIONS).isdisjoint(said):
        return []
    before = scene.now[calls[0]]
    none = Delta(calls[0], before, Admissible((before,), anything_but=True, or_no_call=True))
    if _denies_all(scene, one):
        return []
    edits = [edit for edit in _opposites(one) if edit.operator == "denied"]
    return [scene.rewrite(_in_full(one, edit), [none], about="negated") for edit in edits]


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
            yield Replacement(words[first].start, words[first].end, after, "denied")
            return
        place = _verb_of(one)
        if place is None:
            return
        if said[place : place + 2] == ("would", "like"):
            start, end = words[place].start, words[place + 1].end
            yield Replacement(start, end, "do not want", "denied")
            return
        full = said[place] in _FULL_VERBS and not _is_perfect(said, place)
        if full:
            yield Replacement(words[place].start, words[place].start, "do not ", "denied")
        else:
            yield Replacement(words[place].end, words[place].end, " not", "denied")
        return
    yield from _affirmed(one, negated[0])


def _is_perfect(said: Sequence[str], place: int) -> bool:
    """Return whether a word is `have` before a participle: `I have lost my card`."""
    after = said[place + 1] if place + 1 < len(said) else ""
    base = inflections().infinitive(after)
    formed = after == "been" or (base is not None and base != after and after[-1:] != "s")
    return said[place] == "have" and formed


def _verb_of(one: Sentence) -> int | None:
    """Return the index of the verb after a short subject at the beginning of a sentence."""
    said = one.said
    if said[0] in {"i", "we"} and said[1:2] and said[1] in {*_FULL_VERBS, *_NEGATED}:
        return 1
    if said[0] in {"i", "we"} and said[1:2] == ("also",) and said[2:3] and said[2] in _FULL_VERBS:
        return 2
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
    if not follows or "yet" in said:
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
