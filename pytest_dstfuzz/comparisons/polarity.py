"""Comparison of affirmation and negation, and detection of fallback replies."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.number_words import SEVERAL
from pytest_dstfuzz.perturb.words import word_set

#: Optional words before a fallback phrase, in the same sentence. The pattern can match each text in
#: only one way. With two ways to match a word, the time would double with each repetition of it.
_OPENING: Final = (
    r"(?:(?:oh|well|hmm+|hm|um|uh|oops|unfortunately|(?:i(?: am|'m) |my )?"
    r"(?:sorry|apologies|afraid)(?: about that| for that)?)(?:[,.!:;…-]| but)*\s+)*"
)
#: A fallback phrase must be in one of this many sentences at the start of a reply.
_LOOKED_AT: Final = 2


def is_fallback(text: str, more: tuple[str, ...] = ()) -> bool:
    """Return whether a reply says in its first two sentences that it has no answer.

    Args:
        text: a reply.
        more: further regular expressions, which may match anywhere in the reply.

    >>> is_fallback("Sorry, I did not quite get that."), is_fallback("Sorry, we are full.")
    (True, False)
    """
    return _gives_up(text) or any(_compiled(one).search(text) for one in more)


@lru_cache(maxsize=1 << 14)
def _gives_up(text: str) -> bool:
    plain = " ".join(text.replace("’", "'").split())
    sentences = re.split(r"(?<=[.!?:])\s+", plain, maxsplit=_LOOKED_AT)[:_LOOKED_AT]
    return any(_shipped().match(sentence) for sentence in sentences)


@cache
def _shipped() -> re.Pattern[str]:
    file = resources.files("pytest_dstfuzz") / "resources" / "replies" / "fallbacks.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return re.compile(f"{_OPENING}(?:{'|'.join(patterns)})", re.IGNORECASE)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_IDLE: Final = re.compile(
    r"\b(?:no (?:problem|worries|doubt|matter|trouble|need to worry|bother)|not at all|why not"
    r"|do(?:n't| not) (?:worry|hesitate|mind|forget|mention it)|not only|no longer than"
    r"|no more than|no later than|no earlier than"
    r"|not? (?:extra |additional |further )?(?:charge|cost|fee)s?"
    r"|no time|can(?:'t|not| not) (?:wait|go wrong)|not to mention|could(?:n't| not) be (?:easier"
    r"|happier|better)|nothing but|nothing else|no one (?:else )?but|if not|or not|whether or not"
    r"|not just|anything else|last but not least|(?:charges?|costs?|pay) nothing"
    r"|without (?:a )?(?:doubt|problem|delay)"
    r"|how can i help|is(?:n't| not) it|do(?:n't| not) you|are(?:n't| not) (?:you|they|we))\b"
)
_CONDITION: Final = re.compile(
    r"\b(?:if|unless|in case|otherwise|when(?:ever)?|until|so that|because|as long as)\b[^.,;!?]*"
)
_QUESTION: Final = re.compile(r"(?<![^.!?;\n])[^.!?;\n]*\?")
_YES: Final = re.compile(
    r"^(?:(?:oh|ah|well|hi|hello|great question|good news|thanks|thank you)[,.!:]*\s+)*"
    r"(?:yes|yep|yeah|yup|sure|certainly|of course|absolutely|definitely|indeed|correct|right"
    r"|that(?:'s| is) (?:right|correct|true)|affirmative|exactly)(?=$|[\s,.!;:–-])"
)
_NO: Final = re.compile(
    r"^(?:(?:oh|ah|well|hi|hello|thanks|thank you|sorry|actually)[,.!:]*\s+)*"
    r"(?:no(?=$|[,.!;:–-]|\s+(?:i|we|it|they|you|he|she|that|there|this|sorry)\b)|nope|nah"
    r"|(?:unfortunately|i(?:'m| am) afraid|sadly|regrettably|certainly|definitely|absolutely"
    r"|of course),? not\b|not (?:really|yet|currently|any ?more)\b|never\b|negative\b"
    r"|that(?:'s| is)(?: not|n't) (?:right|correct|true)|that(?:'s| is) (?:wrong|incorrect|false)"
    r"|incorrect|wrong)"
)
#: Word that contains a negation -> the word that it denies.
_DENIES: Final = {
    "closed": "open",
    "shut": "open",
    "unavailable": "available",
    "unable": "able",
    "impossible": "possible",
    "forbidden": "allowed",
    "prohibited": "allowed",
    "banned": "allowed",
    "disallowed": "allowed",
    "declined": "accepted",
    "rejected": "accepted",
    "refused": "accepted",
    "excluded": "included",
    "failed": "succeeded",
    **dict.fromkeys(("decline", "declines", "reject", "rejects", "refuse", "refuses"), "accepted"),
    **dict.fromkeys(("disagree", "disagrees", "disagreed"), "agree"),
    **dict.fromkeys(("disapprove", "disapproved", "unapproved"), "approved"),
    "ineligible": "eligible",
    "inaccessible": "accessible",
    "incompatible": "compatible",
    "insufficient": "sufficient",
    "unsuccessful": "successful",
    "unsuitable": "suitable",
    "illegal": "legal",
    "unpaid": "paid",
    "cancelled": "confirmed",
    "canceled": "confirmed",
    "unsafe": "safe",
    "unlikely": "likely",
    "unnecessary": "necessary",
    "unlimited": "limited",
    "invalid": "valid",
    "disabled": "enabled",
    "inactive": "active",
    "false": "true",
    "incorrect": "correct",
    "untrue": "true",
    "nonrefundable": "refundable",
}
#: The prefix un-. Words such as `under`, `unit` and `until` do not have it.
_UN: Final = re.compile(r"un(?!der|i|less|til|cle)[a-z]{4}")
#: Pairs of opposites.
_OPPOSITES: Final = (
    *(("north", "south"), ("east", "west"), ("northern", "southern"), ("eastern", "western")),
    *(("before", "after"), ("hot", "cold"), ("warm", "cool"), ("up", "down"), ("above", "below")),
    *(("cheap", "expensive"), ("early", "late"), ("increase", "decrease"), ("more", "less")),
    *(("more", "fewer"), ("high", "low"), ("higher", "lower"), ("fast", "slow"), ("old", "new")),
    *(("inside", "outside"), ("indoor", "outdoor"), ("credit", "debit")),
    *(("first", "last"), ("best", "worst"), ("always", "never"), ("win", "lose")),
    *(("deposit", "withdraw"), ("arrival", "departure"), ("upstairs", "downstairs")),
    *(("once", "twice"), ("inperiod", "postperiod")),
    *(("single", "double"), ("minimum", "maximum"), ("male", "female"), ("hard", "soft")),
    *(("leftward", "rightward"), ("costless", "costful")),
)
_OPPOSITE: Final = {
    word: frozenset(
        other for pair in _OPPOSITES for other in pair if word in pair and other != word
    )
    for word in sorted({word for pair in _OPPOSITES for word in pair})
}
#: The amount after words such as `at least`, and the words before `left` and `right`.
_AMOUNT: Final = rf"(?= (?:[£$€]?\d|an?\b|{SEVERAL}))"
_SPAN: Final = (
    rf"(?= (?:\d+|an?|{SEVERAL}) (?:business |working )?(?:minute|hour|day|week|month|year)s?\b)"
)
_TURN: Final = r"\b(?:turn|keep|bear|go|on the|to the|on your|to your)"
_PHRASES: Final = (
    (
        re.compile(r"\b(?:sold out|fully booked|booked up|out of stock|booked out)\b"),
        "not available",
    ),
    (re.compile(rf"\bat least\b|\b(?:not|no) (?:less|fewer) than\b{_AMOUNT}"), "minimum"),
    (re.compile(rf"\bat most\b|\b(?:up to|not more than)\b{_AMOUNT}"), "maximum"),
    (re.compile(rf"\b(?:more|greater|higher|longer|larger|bigger) than\b{_AMOUNT}"), "above"),
    (re.compile(rf"\b(?:less|fewer|lower|shorter|smaller) than\b{_AMOUNT}"), "below"),
    (re.compile(rf"\bwithin\b{_SPAN}"), r"\g<0> inperiod"),
    (re.compile(rf"\bafter\b{_SPAN}"), r"\g<0> postperiod"),
    (re.compile(rf"{_TURN} left\b|\bleft-hand\b"), "leftward"),
    (re.compile(rf"{_TURN} right\b|\bright-hand\b"), "rightward"),
    (re.compile(r"\bfree of charge\b"), r"\g<0> costless"),
    (
        re.compile(
            r"\b(?:there is|there's|there will be|we make) an? (?:[a-z]+ )?(?:charge|fee)\b"
        ),
        r"\g<0> costful",
    ),
    (re.compile(r"\bnon-"), "non"),
    (re.compile(r"\bcannot\b|\bcan not\b|\bcan't\b|\bcant\b"), "can not"),
    (re.compile(r"\bwon't\b|\bwont\b"), "will not"),
    (
        re.compile(
            r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should|need|must)n'?t\b"
        ),
        r"\1 not",
    ),
    (re.compile(r"\bain't\b"), "is not"),
    (re.compile(r"\b(?:unable|not able) to\b"), "not"),
    (re.compile(r"\bneither of\b|\bnone of\b"), "no"),
    (re.compile(r"\b(?:is|are|has|have) yet to\b"), "not"),
    (re.compile(r"\b(?:refuse|decline|fail)(?:s|d|ed)? to\b"), "not"),
    (
        # After the contractions above: `it isn't true that we are open`.
        re.compile(
            r"\b(?:it is|it's|that is|that's) "
            r"(?:not (?:true|correct|right|the case)|wrong|false|untrue|incorrect) that\b"
        ),
        "not",
    ),
    (re.compile(r"\bno longer\b|\b(?:stopped|ceased)(?= [a-z]+ing\b)"), "not"),
)
#: A verb with only a pronoun as its object: ``we can do that``. Elsewhere, `do` is an auxiliary.
_PRO_VERB: Final = re.compile(r"\b(?:do|does|did|done|doing)(?= (?:it|that|this|so|them)\b)")
#: The word for such a verb. No other word has an underscore.
_DEED: Final = "_do"
_DEEDS: Final = frozenset({_DEED})
_NEGATIONS: Final = word_set(
    "not no never none nothing nobody nowhere neither nor without hardly barely lacks lack"
)
#: Words that a negation skips.
_THROUGH: Final = word_set(
    """a an the any some much many more very really quite too so all that this it its be been being
    is are was were am do does did have has had can could will would shall should may might must
    to of at in on for with by from as yet currently actually usually normally always ever
    even also i we you they he she there our your their my his her us me them him just only
    currently at present still unfortunately however able left"""
)
_REACH: Final = 2
#: If a text negates one of these words, it also negates the subject: `parking is not possible`.
_OF_ALL: Final = word_set("possible allowed available included needed necessary required permitted")
_IRREGULAR: Final = dict(
    pair.split(":")
    for pair in sorted(
        word_set(
            """found:find got:get gotten:get went:go gone:go goes:go came:come sent:send paid:pay
            made:make took:take taken:take gave:give given:give knew:know known:know left:leave
            held:hold kept:keep said:say told:tell saw:see seen:see won:win lost:lose bought:buy
            sold:sell wrote:write written:write began:begin begun:begin met:meet permitted:allow
            permit:allow welcome:allow"""
        )
    )
)
_WORD: Final = re.compile(r"[a-z0-9à-ÿ_]+(?:'[a-z]+)?|[,.;:!?\n()–—]")
_STOPS: Final = frozenset(",.;:!?\n()–—") | {"but", "and", "although", "though", "while", "or"}


class Polarity(NamedTuple):
    """The affirmations and negations in a text."""

    #: ``yes`` or ``no`` if the text begins with such a word, else ``""``.
    answer: str
    #: The words in the scope of each negation.
    denied: tuple[frozenset[str], ...]
    #: The words before a negation in its clause.
    about: frozenset[str]
    #: The words outside of negations.
    said: frozenset[str]
    #: The words outside of negations that have an opposite. (``not inside`` means outside.)
    ends: frozenset[str]
    #: Whether the text is a fallback reply.
    fallback: bool


class SamePolarity(Comparison):
    """Checks that no text denies a statement of the other. A fallback reply is no answer."""

    name = "polarity"

    def __init__(self, fallbacks: tuple[str, ...] = ()) -> None:
        """Store further regular expressions for fallback replies."""
        self._fallbacks = fallbacks

    @property
    def identity(self) -> str:
        """The name, and the regular expressions."""
        return "".join([self.name, *(f"/{one}/" for one in self._fallbacks)])

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether affirmations and negations agree."""
        del path, asked
        return _compared(before, found, self._fallbacks)


@lru_cache(maxsize=1 << 14)
def _compared(before: str, found: str, fallbacks: tuple[str, ...]) -> ComparisonResult:
    one, other = polarity(before, fallbacks), polarity(found, fallbacks)
    if one.fallback or other.fallback:
        told = ["no answer" if side.fallback else "an answer" for side in (one, other)]
        return _told(one.fallback == other.fallback, *told)
    if one.answer and other.answer and one.answer != other.answer:
        return _told(False, one.answer, other.answer)
    if one.answer == other.answer == "no":
        return ComparisonResult(same=True)
    # Two replies that begin with yes may still contradict each other: `Yes, but no flash`.
    if "no" not in {one.answer, other.answer}:
        return _contradiction(one, other)
    # After `No, ...`, a reply may affirm any alternative.
    denies = [side.answer == "no" or bool(side.denied) for side in (one, other)]
    if all(denies) or not (one.denied or other.denied):
        return ComparisonResult(same=True)
    return _contradiction(one, other)


def _contradiction(one: Polarity, other: Polarity) -> ComparisonResult:
    for word in sorted(one.ends - other.ends):
        if opposite := _OPPOSITE[word] & (other.ends - one.ends):
            return _told(False, word, min(opposite))
    for mine, theirs, swapped in ((one, other, False), (other, one, True)):
        denied_there = theirs.about.union(*theirs.denied)
        for reached in mine.denied:
            against = sorted(reached & theirs.said)
            # Two refusals may each deny one deed and offer another.
            if reached == _DEEDS and theirs.denied:
                continue
            if 2 * len(against) > len(reached) and not reached & denied_there:
                word = against[0].removeprefix("_")
                told = [f"not {word}", word]
                return _told(False, *(reversed(told) if swapped else told))
    return ComparisonResult(same=True)


def _told(same: bool, one: str, other: str) -> ComparisonResult:
    return ComparisonResult(same, why="" if same else f"{one} / {other}")


@lru_cache(maxsize=1 << 14)
def polarity(text: str, fallbacks: tuple[str, ...] = ()) -> Polarity:
    """Return the affirmations and negations in a text.

    >>> polarity("No, we do not serve lunch.").answer
    'no'
    >>> [sorted(reached) for reached in polarity("The pool is closed.").denied]
    [['open']]
    """
    plain = " ".join(text.lower().replace("’", "'").split(" ")).strip()
    answer = "yes" if _YES.search(plain) and not _NO.search(plain) else ""
    answer = answer or ("no" if _NO.search(plain) else "")
    for pattern in (_IDLE, _CONDITION, _QUESTION):
        plain = pattern.sub(" ", plain)
    for pattern, instead in _PHRASES:
        plain = pattern.sub(instead, plain)
    words = _WORD.findall(_PRO_VERB.sub(_DEED, plain.replace("_", " ")))
    denied, about, said = _reached(words)
    ends = frozenset(word for word in words if word in _OPPOSITE and stem(word) in said)
    return Polarity(answer, denied, about, said, ends, is_fallback(text, fallbacks))


def _reached(
    words: list[str],
) -> tuple[tuple[frozenset[str], ...], frozenset[str], frozenset[str]]:
    denied: list[frozenset[str]] = []
    about: set[str] = set()
    said: list[str] = []
    clause: list[str] = []
    open_: list[str] | None = None
    #: The number of words of the clause that are in `about`.
    known = 0
    #: The deed that the negation denies. That counts only if it denies nothing else.
    deed: list[str] = []
    for place, word in enumerate([*words, "."]):
        if open_ is not None and (word in _STOPS or len(open_) == _REACH):
            if {stem(one) for one in _OF_ALL} & set(open_):
                open_ += clause
                clause, known = [], 0
            about.update(deed)
            denied += [frozenset(open_ or deed)] if open_ or deed else []
            open_, deed = None, []
        if word in _STOPS:
            said += clause
            clause, known = [], 0
        elif word in _NEGATIONS:
            answers = word == "no" and words[place + 1 : place + 2] in ([], [","], ["."], ["!"])
            about.update(clause[known:])
            known = len(clause)
            open_ = open_ if answers else (open_ or [])
        elif meant := _opposite_of(word):
            turned = stem(meant)
            about.update(clause[known:])
            known = len(clause)
            if open_ is not None:
                clause.append(turned)
            elif meant in _OF_ALL:
                denied.append(frozenset({turned, *clause}))
                clause, known = [], 0
            else:
                denied.append(frozenset({turned}))
        elif word not in _THROUGH:
            free, bound = (said, deed) if word == _DEED else (clause, open_)
            (free if bound is None or open_ is None else bound).append(stem(word))
    return tuple(denied), frozenset(about), frozenset(said)


def _opposite_of(word: str) -> str:
    """Return the word that a word such as `closed` or `unheated` denies, or ``""``."""
    if word in _DENIES:
        return _DENIES[word]
    return word.removeprefix("un") if _UN.match(word) and word not in _THROUGH else ""


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return the stem of a lower-case word: `serving` and `serves` have the same stem.

    >>> [stem(word) for word in ("serving", "serves", "found", "stopped", "rooms")]
    ['serv', 'serv', 'find', 'stop', 'room']
    """
    word = _IRREGULAR.get(word, word).removesuffix("'s")
    for ending in ("ing", "ed", "es", "s", "e", "able"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sleo":
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word
