"""A relation that moves phrases, clauses and sentences of a turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_dstfuzz.dialogue.dates import MONTHS, WEEKDAYS
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.words import word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Replacement, Scene
from pytest_dstfuzz.relations.values import inflections
from pytest_dstfuzz.relations.wording import (
    REQUEST_VERBS,
    Change,
    Sentence,
    Wording,
    is_polite,
    lowered,
    raised,
    requests,
    sentences,
)

_NO_ORDER: Final = "no phrase, clause or sentence can be moved"
_NUMBER: Final = rf"(?:\d{{1,3}}|{'|'.join(NUMBER_WORDS[1:13])})"
_DAY: Final = rf"(?:{'|'.join(WEEKDAYS)})s?"
_PART: Final = "(?:morning|afternoon|evening|night)"
_MONTH: Final = rf"(?:{'|'.join(MONTHS)})"
_DATE: Final = (
    rf"(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?"
    r"|(?:the )?\d{1,2}(?:st|nd|rd|th)(?: of (?:this|next) month)?)"
)
_HOUR: Final = (
    rf"(?:(?:half past |quarter past |quarter to )?(?:\d{{1,2}}|{_NUMBER})(?: ?[ap]m| o'clock)?"
    r"|\d{1,2}:\d\d(?: ?[ap]m)?|noon|midnight|midday)"
)
_ONE_WHEN: Final = (
    rf"(?:(?:on|this|next) {_DAY}(?: {_PART})?|on (?:{_DAY} )?{_DATE}|{_DAY} next week"
    rf"|(?:today|tonight|tomorrow)(?: {_PART})?|at {_HOUR}|(?:this|next) (?:week|month|weekend"
    rf"|{_PART})|at the weekend|in the {_PART})"
)
#: Phrases that say when, and phrases that say for whom or for how long.
_WHEN: Final = re.compile(rf"{_ONE_WHEN}(?: {_ONE_WHEN}){{0,2}}")
_FOR: Final = re.compile(
    rf"for (?:{_NUMBER}(?: (?:people|persons|adults|guests|nights|days|hours|weeks|children|kids))?"
    r"|(?:me|us|my [a-z]+)(?: and my [a-z]+)?)"
)
_LASTING: Final = re.compile(rf"for {_NUMBER} (?:nights|days|hours|weeks|months)")
_FROM: Final = re.compile(r"from (?:the )?[^\d\W]+(?: [^\d\W]+)?")
_TO: Final = re.compile(r"to (?:the )?[^\d\W]+(?: [^\d\W]+)?")
_CLOCKED: Final = re.compile(rf"at {_HOUR}(?: in the {_PART})?|in the {_PART}")
_DAYED: Final = re.compile(
    rf"(?:on|this|next) {_DAY}|on (?:{_DAY} )?{_DATE}|today|tomorrow|{_DAY} next week|next week"
)
_WHERE: Final = re.compile(r"(?:in|near) [^\W\d]+(?: [^\W\d]+)?")
#: An hour before `in the evening`.
_HOURS: Final = re.compile(_HOUR)
#: Pairs of phrases in one order. They may stand in the other order.
_EXCHANGED: Final = tuple(
    pair
    for one, other in (
        (_FOR, _WHEN),
        (_FROM, _TO),
        (_CLOCKED, _DAYED),
        (_WHERE, _WHEN),
        (_WHERE, _FOR),
    )
    for pair in ((one, other), (other, one))
)
_LONGEST: Final = 18
_FEWEST: Final = 3
_LONGEST_PHRASE: Final = 10
#: Before a phrase that ends a sentence, these words and the phrase belong together.
_BEFORE: Final = word_set(
    """from to until till between and or than about for by before after since on at in not except
    only even not just all the my our your this next last is are was be of
    quarter half day date later early earlier"""
) | {*WEEKDAYS, *MONTHS}
#: A time after such a verb may belong to the noun: `cancel the lesson on Friday`.
_CHANGES: Final = word_set(
    """cancel change move reschedule switch confirm postpone make it that was were been if because
    when while but so and or which who extend about remind instead tell show know check"""
)
#: Words that begin the rest of a sentence after its first phrase.
_STARTS: Final = word_set(
    """i i'd i'm we we'd we're is are do does can could will would may what when where how who
    please there"""
)
#: A time is natural before statements and questions that begin so. Before a request, it may be the
#: time of the request: `On Friday, please book a table.`
_FRONTED: Final = _STARTS - word_set("can could will would may please")
#: Words that point to another sentence.
_POINTS: Final = word_set(
    """it its it's that this these those they them their there one ones he she his her him also
    so then too but and else think there's other another yes no ok okay sure both either same
    such did does some about"""
)
_TOLD: Final = word_set(
    """know see check matter tell ask wonder wondering sure care say explain mind out about remember
    decide understand asking"""
)
_SUBJECTS: Final = word_set("i i'm i've we we're we've my our the it it's you they there")
_TWO: Final = 2


@register_relation
class PhraseOrder(Wording):
    """Moves a phrase, a clause or a sentence of a turn. The answer must stay the same.

    Source: own.
    """

    name = "phrase-order"
    source = "rules of this package (MIT)"
    reasons = (_NO_ORDER,)
    most = 1

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the turn with a phrase, a clause or a sentence in another place."""
        parts = list(sentences(scene.turn.user))
        for one in parts:
            yield from _fronted(scene, one)
            yield from _swapped(one)
            yield from _pairs(scene, one)
            yield from _things(scene, one)
            yield from _amounts(one)
            yield from _two_asked(scene, one)
            yield from _clauses(scene, one)
        yield from _turned(scene, parts)


_DAYS: Final = word_set("today tomorrow tonight")


def _text(one: Sentence, first: int, end: int) -> str:
    """Return the words ``first`` to ``end`` of a sentence as the user wrote them."""
    pieces = [one.words[first].text]
    for place in range(first + 1, end):
        pieces += [one.gaps[place - 1], one.words[place].text]
    return "".join(pieces)


def _start(one: Sentence, first: int, end: int) -> str:
    """Return words that now begin the sentence."""
    return raised(_text(one, first, end), one)


def _inside(scene: Scene, one: Sentence, end: int) -> str:
    """Return the first words of a sentence, which no longer begin it."""
    rest = one.gaps[0] + _text(one, 1, end) if end > 1 else ""
    first = one.words[0]
    return (first.lower if first.lower in _DAYS else lowered(scene, one)) + rest


def _plain(one: Sentence, first: int, end: int) -> bool:
    """Return whether no mark stands between words."""
    return not any(gap.strip() for gap in one.gaps[first : end - 1])


def _phrase(one: Sentence, pattern: re.Pattern[str], end: int) -> int | None:
    """Return the index where the longest phrase that ends before ``end`` begins."""
    for first in range(max(end - _LONGEST_PHRASE, 0), end):
        if pattern.fullmatch(" ".join(one.said[first:end])) and _plain(one, first, end):
            return first
    return None


def _parts(before: str) -> bool:
    """Return whether a phrase does not belong to the word before it."""
    return before not in _BEFORE and not before[0].isdigit() and not before.endswith("ing")


def _fronted(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `On Friday, I need a table.` for `I need a table on Friday.`, and vice versa."""
    said = one.said
    if not _CHANGES.isdisjoint(said) or len(said) > _LONGEST:
        return
    end = len(said) - (said[-1] == "please")
    # The new information of an answer comes last, and a yes/no question begins with its verb.
    kept = asks_when(scene.turn.system) or (one.asks and said[0] in _HELPERS)
    first = None if kept else _phrase(one, _WHEN, end)
    rest = said[first - 1] if first else ""
    begins = said[0] in _FRONTED and said[1:2] != ("not",) and "looking" not in said
    enough = first is not None and first >= _FEWEST and begins
    spoken = said[first or 0] == "in" and rest in NUMBER_WORDS  # As in `at three in the afternoon`.
    named = said[first or 0] in _DAYS and one.words[first or 0].text[0].isupper()
    lasting = _phrase(one, _LASTING, end)
    if lasting is not None and lasting >= _FEWEST and begins and not kept and _plain(one, 0, end):
        text = f"{_start(one, lasting, end)}, {_inside(scene, one, lasting)}"
        yield (Replacement(one.start, one.words[end - 1].end, text, "fronted"),)
    if (
        first is not None
        and enough
        and not (spoken or named)
        and _parts(rest)
        and _plain(one, 0, first + 1)
    ):
        text = f"{_start(one, first, end)}, {_inside(scene, one, first)}"
        yield (Replacement(one.start, one.words[end - 1].end, text, "fronted"),)
    for last in range(min(_LONGEST_PHRASE, len(said) - _FEWEST), 0, -1):
        if _phrase(one, _WHEN, last) == 0:
            if _begins(said[last:]) and _plain(one, last, end):
                moved = _inside(scene, one, last)
                text = f"{_start(one, last, end)} {moved}"
                yield (Replacement(one.start, one.words[end - 1].end, text, "moved_back"),)
            return


#: First words of a yes/no question.
_HELPERS: Final = word_set("am is are was were do does did can could will would have has had")
_TIMES: Final = word_set("when day days date dates time times month long")


def asks_when(system: str) -> bool:
    """Return whether the system asks for a day or a time."""
    return any(
        not _TIMES.isdisjoint(one.said)
        and (one.asks or not {"which", "what", "when"}.isdisjoint(one.said))
        for one in sentences(system)
    )


def _begins(said: Sequence[str]) -> bool:
    """Return whether words begin with a subject, a question or a request."""
    helper = said[0] in _ASKS and said[0] not in {"do", "are", "is"}
    return said[0] in _STARTS and (not helper or said[1] in {"i", "we", "you", "they", "the", "my"})


def _swapped(one: Sentence) -> Iterator[Change]:
    """Yield a sentence with two phrases in the other order: `for two on Friday`."""
    said = one.said
    for middle in range(2, len(said)):
        for left, right in _EXCHANGED:
            first = _phrase(one, left, middle)
            end = _longest_from(one, right, middle)
            if first is None or not end or not first >= _FEWEST - 1 or not _plain(one, first, end):
                continue
            if not _parts(said[first - 1]) or (said[end : end + 1] and said[end] not in _AFTER):
                continue
            if said[first] == "in" and _HOURS.fullmatch(said[first - 1]):
                continue
            spoken = _FOR in (left, right) and _WHERE not in (left, right)
            if spoken and "in" in (said[middle], said[first]):
                continue  # `For three in the afternoon` is a time.
            if _WHERE in (left, right) and not _is_place(
                one, *((first, middle) if left is _WHERE else (middle, end))
            ):
                continue
            route = left in (_FROM, _TO)
            moves = not _MOVES.isdisjoint(said[:first])
            if route and (
                not (moves or said[first - 1] in _RIDES)
                or not _AMBIGUOUS.isdisjoint(said[first:end])
            ):
                continue
            text = f"{_text(one, middle, end)} {_text(one, first, middle)}"
            yield (Replacement(one.words[first].start, one.words[end - 1].end, text, "swapped"),)


def _is_place(one: Sentence, first: int, end: int) -> bool:
    """Return whether a phrase such as `in Leeds` names a place and no month."""
    named = one.words[first + 1 : end]
    return all(word.text[0].isupper() and word.lower not in MONTHS for word in named)


#: Words before `from London to Leeds`.
_RIDES: Final = word_set(
    """bus buses train trains flight flights coach ferry tram taxi cab ride ticket tickets journey
    trip go travel fly drive get"""
)
#: Verbs whose object goes `from savings to Ann`.
_MOVES: Final = word_set("transfer move send pay wire copy translate")
#: Words that may follow two swapped phrases.
_AFTER: Final = word_set("please on at for today tomorrow tonight this next in under with")
#: In `from work to see a film`, `to` begins no place.
_AMBIGUOUS: Final = word_set(
    """see get do have be go make find work home my me you us book buy pay visit eat take and
    or at on in for by with until today tomorrow tonight next this please there here noon morning
    evening departing leaving arriving going"""
) | {*WEEKDAYS, *MONTHS, *NUMBER_WORDS}


def _longest_from(one: Sentence, pattern: re.Pattern[str], first: int) -> int:
    """Return the index after the longest phrase that begins at ``first``, or 0."""
    ends = range(min(first + _LONGEST_PHRASE, len(one.said)), first, -1)
    if pattern in (_FROM, _TO):
        ends = range(min(first + _FEWEST + 1, len(one.said)), first, -1)
    return next(
        (
            end
            for end in ends
            if pattern.fullmatch(" ".join(one.said[first:end]))
            and (end == len(one.said) or one.said[end] in _AFTER)
        ),
        0,
    )


def last_detail(one: Sentence) -> int | None:
    """Return the index of a phrase such as `for two on Friday` that ends a sentence.

    It is ``None`` if there is no such phrase, or if the phrase may belong to the word before it.
    """
    first = end = len(one.said)
    if not _CHANGES.isdisjoint(one.said) or len(one.said) > _LONGEST:
        return None
    while end:
        found = _phrase(one, _WHEN, end)
        found = _phrase(one, _FOR, end) if found is None else found
        if found is None or found < _FEWEST:
            break
        first = end = found
    fits = first < len(one.said) and _parts(one.said[first - 1])
    fits = fits and one.said[first:] not in {("for", "me"), ("for", "us")}
    return first if fits and _plain(one, 0, len(one.said)) else None


_COUNTED: Final = re.compile(rf"{_NUMBER}|a|an|my|the")


def _pairs(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `three children and two adults` for `two adults and three children`."""
    said = one.said
    for place in range(2, len(said) - _TWO):
        left, right = said[place - 2], said[place + 1]
        if said[place] != "and" or not _COUNTED.fullmatch(left) or not _COUNTED.fullmatch(right):
            continue
        end = place + 3
        nouns = said[place - 1], said[place + 2]
        after = said[end] if end < len(said) else ""
        before = said[place - 3] if place > _TWO else ""
        if not all(_is_noun(scene, noun) for noun in nouns) or before in {
            "of",
            "between",
            "and",
            "both",
            "the",
        }:
            continue
        if (after and after not in _AFTER) or not _plain(one, place - 2, end):
            continue
        if before and _is_noun(scene, before):
            continue
        head, tail = _text(one, place + 1, end), _text(one, place - _TWO, place)
        if place == _TWO:
            head, tail = raised(head, one), _inside(scene, one, place)
        text = f"{head} and {tail}"
        yield (Replacement(one.words[place - 2].start, one.words[end - 1].end, text, "pair"),)


#: Words before a list of things.
_LISTING: Final = word_set(
    """sell have rent offer need want like repair fix buy bring order get serve accept take with
    without for of find include hire mend clean recycle return borrow lend"""
)
#: Pairs of nouns that have one order.
_SET_PAIRS: Final = frozenset(
    {
        ("bed", "breakfast"),
        ("fish", "chips"),
        ("terms", "conditions"),
        ("mac", "cheese"),
        ("bread", "butter"),
        ("gin", "tonic"),
        ("salt", "pepper"),
        ("arts", "crafts"),
        ("ladies", "gentlemen"),
        ("rock", "roll"),
        ("ham", "eggs"),
        ("pros", "cons"),
        ("questions", "answers"),
    }
)


def _things(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `Do you sell stoves and tents?` for `Do you sell tents and stoves?`."""
    said = one.said
    for place in range(2, len(said) - 1):
        left, right = said[place - 1], said[place + 1]
        after = said[place + 2] if place + 2 < len(said) else ""
        if said[place] not in {"and", "or"} or (after and after not in _AFTER | _AFTER_THINGS):
            continue
        before = place - 2
        listed = one.gaps[before].strip() == "," and _is_noun(scene, said[before])
        head = said[before - 1] if listed and before else said[before]
        small = all(one.words[n].text.islower() for n in (place - 1, place + 1))
        if head not in _LISTING or not _is_noun(scene, left) or not _is_noun(scene, right):
            continue
        if (left, right) in _SET_PAIRS or not small or not _plain(one, place - 1, place + 2):
            continue
        if listed:
            text = f"{one.words[place - 1].text}, {one.words[before].text}"
            yield (Replacement(one.words[before].start, one.words[place - 1].end, text, "things"),)
        else:
            text = f"{one.words[place + 1].text} {said[place]} {one.words[place - 1].text}"
            start = one.words[place - 1].start
            yield (Replacement(start, one.words[place + 1].end, text, "things"),)


#: Units in which people order.
_UNITS: Final = word_set(
    """packs boxes bottles bags tins cartons pots packets jars cans kilos pounds pairs sheets
    bunches loaves cups glasses slices portions rolls copies pieces litres crates"""
)


def _amounts(one: Sentence) -> Iterator[Change]:
    """Yield `Please order cement, 3 bags.` for `Please order 3 bags of cement.`."""
    said = one.said
    end = len(said) - (said[-1] == "please")
    for place in range(1, end - 3):
        counted = re.fullmatch(_NUMBER, said[place]) and said[place + 1] in _UNITS
        if not counted or said[place + 2] != "of" or end - place > 5 or not _plain(one, 0, end):
            continue
        if said[place - 1] not in _LISTING | {"add"} or "and" in said:
            continue
        text = f"{_text(one, place + 3, end)}, {_text(one, place, place + 2)}"
        yield (Replacement(one.words[place].start, one.words[end - 1].end, text, "amount"),)


_AFTER_THINGS: Final = word_set("in here there near available with this next left")


def _two_asked(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `What does it cost and when do you open?` for the two questions in the other order.

    Two requests are treated alike.
    """
    said = one.said
    cuts = [n for n, word in enumerate(said) if word == "and"]
    if len(cuts) != 1 or not _plain(one, 0, len(said)) or len(said) > _LONGEST:
        return
    left, right = said[: cuts[0]], said[cuts[0] + 1 :]
    if len(left) < _FEWEST or len(right) < _FEWEST or not (_POINTS - {"and"}).isdisjoint(said):
        return
    asked = one.asks and all(map(_is_direct, (left, right)))
    ordered = requests(one) and right[0] in REQUEST_VERBS and right[1] in _OF_OBJECT
    if not asked and not ordered:
        return
    cut = cuts[0]
    text = f"{_start(one, cut + 1, len(said))} and {_inside(scene, one, cut)}"
    yield (Replacement(one.start, one.end, text, "two_asked"),)


def _is_direct(said: Sequence[str]) -> bool:
    """Return whether words are a direct question, and none such as `Can you tell me`."""
    turned = said[0] in _ASKS or not _ASKS.isdisjoint(said[1:3])
    return said[0] in _BEGINS_QUESTION and turned and _TOLD.isdisjoint(said)


_BEGINS_QUESTION: Final = word_set("what when where how which who is are do does can could")
_OF_OBJECT: Final = word_set("a an the my our me us two three")


def _is_noun(scene: Scene, word: str) -> bool:
    base = inflections().singular(word) or word
    return scene.lexicon.majority_pos(base) == "noun"


#: Conjunctions of clauses that may come first or last.
_JOINS: Final = word_set("if because when unless once")
_ASKS: Final = word_set("do does did is are was were can could will would should have has may am")


#: A clause with one of these does not move.
_LINKS: Final = word_set("and but so or please too also either")


def _clauses(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `If it rains, can I cancel?` for `Can I cancel if it rains?`, and vice versa."""
    said = one.said
    if said[0] in _JOINS and said[1:2] and said[1] not in _ASKS:
        commas = [place for place, gap in enumerate(one.gaps, 1) if gap.strip()]
        cut = commas[0] if len(commas) == 1 and one.gaps[commas[0] - 1].strip() == "," else 0
        rest = said[cut:]
        if cut >= _FEWEST and len(rest) >= _FEWEST and rest[0] in _STARTS | _SUBJECTS:
            if not {"then", *_JOINS}.isdisjoint(rest) or not _LINKED.isdisjoint(rest):
                return
            text = f"{_start(one, cut, len(said))} {_inside(scene, one, cut)}"
            yield (Replacement(one.start, one.end, text, "clause_last"),)
        return
    found = [place for place, word in enumerate(said) if word in _JOINS]
    if len(found) != 1 or not _plain(one, 0, len(said)) or len(said) > _LONGEST:
        return
    cut = found[0]
    main, clause = said[:cut], said[cut + 1 :]
    told = not _TOLD.isdisjoint(main) or not _LINKS.isdisjoint(said)
    if len(main) < _FEWEST or len(clause) < _TWO or told or clause[0] not in _SUBJECTS:
        return
    asked = requests(one) and said[cut] != "because"  # A reason is odd before a request.
    if main[0] in _STARTS | _SUBJECTS or asked:
        text = f"{_start(one, cut, len(said))}, {_inside(scene, one, cut)}"
        yield (Replacement(one.start, one.end, text, "clause_first"),)


#: A pronoun that then comes before its noun.
_LINKED: Final = word_set("it they them that this one he she him her")


def _turned(scene: Scene, parts: Sequence[Sentence]) -> Iterator[Change]:
    """Yield a turn with its last two sentences in the other order."""
    if len(parts) < _TWO or any(map(is_polite, parts[-_TWO:])):
        return
    first, second = parts[-_TWO:]
    words = {*first.said, *second.said}
    if not first.mark or not second.mark or not words.isdisjoint(_POINTS):
        return
    if len(first.said) < _FEWEST or len(second.said) < _FEWEST:
        return
    asked = second.asks or requests(second)
    alike = (requests(first) and requests(second)) or all(
        one.asks and _is_direct(one.said) for one in (first, second)
    )
    told = first.said[0] in _SUBJECTS and not first.asks and not requests(first)
    if not alike and not (told and asked):
        return
    user = scene.turn.user
    gap = user[first.mark_at + len(first.mark) : second.start]
    if not first.capital or not second.capital or gap.strip():
        return
    end = second.mark_at + len(second.mark)
    text = f"{user[second.start : end]}{gap}{user[first.start : first.mark_at + len(first.mark)]}"
    yield (Replacement(first.start, end, text, "sentences"),)
