"""Words whose exact letters matter, recognised by the words around them.

Examples are numerals (`henry viii`), labels of one letter (`option a`), and passwords. All
functions return spans of words ``(first, last + 1)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_dstfuzz.perturb.draft import WordFacts
from pytest_dstfuzz.perturb.words import word_set

Span = tuple[int, int]

ROMAN: Final = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_ROMAN_LETTERS: Final = frozenset("ivxlcdm")
#: Numerals that are also words. They count as numerals only after one of `_PARTS`.
_ROMAN_WORDS: Final = word_set("mix di dim mi li")
#: Words for items with a letter or numeral as their label.
_PARTS: Final = word_set(
    """option group terminal vitamin row building section zone size plan drive class note grade key
    type part platform gate block team room seat floor line bus route hepatitis appendix exhibit
    schedule form unit model version question answer choice category level phase series bay pier
    wing tier coach carriage stand door exit entrance hall box paragraph column point step
    chapter item variant product position volume act ward stage article figure table annex
    annexe cabin deck lot lane stop area sector pool court pitch track disc disk side clause
    rule factor strain study trial course module book king queen pope war title division set
    list scenario house flat apartment suite studio tower quadrant bed locker shelf aisle grid
    cluster node influenza protein brand batch lab ring string chord major minor program
    programme language"""
)
_TESTED: Final = word_set("positive negative pos neg plus minus")
_BLOOD: Final = word_set("a b ab o")
#: Letters that are words.
_WORD_LETTERS: Final = word_set("a i")
#: Clitics without their apostrophe: `that s`.
_CLITICS: Final = word_set("s m d t")
#: Words that no clitic follows.
_HOSTLESS: Final = word_set("is was are be an a the of or and with for in to letter size")
#: `i` after one of `_PARTS` is a pronoun if a word in `_OF_MINE` follows. It is also a pronoun if a
#: determiner precedes the word and a verb follows `i`: `the option i booked`.
_OF_MINE: Final = word_set("am 'm ’m have 've ’ve want need like love prefer do don't think mean")
_POINTING: Final = word_set("the this that these those which every any")
#: Musical keys. `a flat` is a key only if the utterance has a word of music.
_KEYS: Final = word_set("a b c d e f g")
_MODES: Final = word_set("flat sharp major minor")
_MUSIC: Final = word_set(
    "key chord song scale piano guitar violin sonata concerto symphony note tune melody music"
)
#: Minimum number of single letters in a row that spell a word.
_SPELLED: Final = 3
#: Words for a secret or an exact text. Expressions of two words follow below.
_SECRETS: Final = word_set(
    """password passwords pw pwd passwd passcode passphrase passkey codeword pin username userid
    login nickname keyword watchword pseudonym serial passwort voucher coupon promo captcha otp puk
    cvv handle gamertag reference pnr ref locator registration plate hashtag alias keyphrase"""
)
_SECRET_PAIRS: Final = frozenset(
    (first, second)
    for firsts, seconds in (
        (
            """pass code safe secret magic pin key access door gate entry search activation
            challenge control command wake trigger""",
            "word phrase",
        ),
        (
            """promo promotion promotional discount coupon voucher access confirmation booking
            reference gift referral security activation door gate invite invitation entry pin zip
            post postal area secret verification tracking order qr country airport dress product
            rate friend member membership""",
            "code",
        ),
        ("secret security challenge", "answer question"),
        (
            """user login screen account display profile network wifi file player gamer stage pen
            domain host branch project code""",
            "name id",
        ),
        ("booking confirmation order licence license number tracking serial", "number plate key"),
        ("secret access api licence license activation security encryption", "key token"),
    )
    for first in firsts.split()
    for second in seconds.split()
)
#: Words that may stand between the word for a secret and the secret.
_LINKS: Final = word_set("is was are be to as = equals reads 's has always been")
_MODALS: Final = word_set("should will shall must")
#: If the utterance has such a word, a `key` is a password.
_NETWORKS: Final = word_set("wifi wi-fi wlan network router hotspot")
#: Words that describe a secret but are not part of it: `the password is wrong`.
_STATES: Final = word_set(
    """not wrong incorrect invalid expired working right correct changed forgotten lost gone locked
    being no n't too very also still now the a an my your protected required needed reset
    number numbers code codes id name details field box page"""
)
#: Maximum number of words before a numeral that belong to it: `pope john paul`.
_LONGEST_HEAD: Final = 3
#: Words between a secret and the word for it. The first of them must be in `_LEADS`.
_BETWEEN: Final = word_set("as the my a our that is this was for its it 's")
_LEADS: Final = word_set("as that is this was it")
#: Words that introduce an exact text: `the word ... is`, and verbs of output.
_WORDS: Final = word_set("word phrase")
_IS: Final = word_set("is was 's")
_ARTICLES: Final = word_set("a an the my your his her our their")
_SAYING: Final = word_set(
    "prints printed print outputs displays echoes logs typed spells spelled spelt"
)
#: Words that end a secret or a label.
_CLOSING: Final = word_set("please thanks thank ok okay hi hello yesterday today tomorrow tonight")
#: Maximum number of linking words between the word for a secret and the secret.
_LINKED: Final = 4
#: Longest secret, in words.
_LONGEST: Final = 6


def numerals(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield Roman numerals with the name before each: `henry viii`, `type i`."""
    for index, fact in enumerate(facts):
        lower = fact.plain
        if not lower or lower[0] not in _ROMAN_LETTERS or not ROMAN.fullmatch(lower):
            continue
        before = facts[index - 1] if index and gaps[index] in {" ", "-"} else None
        part = before is not None and before.lower in _PARTS
        if (len(lower) == 1 or lower in _ROMAN_WORDS) and not part:
            continue
        if _is_user(facts, gaps, index):
            continue
        first = index - part
        while first and index - first < _LONGEST_HEAD and _goes_on(facts[first - 1], gaps[first]):
            first -= 1
        yield first, index + 1


def _goes_on(fact: WordFacts, gap: str) -> bool:
    """Return whether a word may be part of the name before a numeral."""
    return gap in {" ", "-"} and not (fact.stop_word or fact.verb)


def labels(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield labels of one letter, each with the word for the labelled item."""
    blood = any(fact.lower == "blood" for fact in facts)
    for index, fact in enumerate(facts):
        lower = fact.lower
        tested = [following.lower for following in facts[index + 1 : index + 2]]
        if blood and lower in _BLOOD and not _TESTED.isdisjoint(tested):
            yield index, index + 2
        if len(lower) != 1 or not lower.isalpha():
            continue
        first = index
        if index and gaps[index] in {" ", "-"}:
            before = facts[index - 1]
            if before.lower in _PARTS or (before.noun and lower not in _WORD_LETTERS):
                first = index - 1
            elif before.lower == "of" and index > 1 and facts[index - 2].lower in _PARTS:
                first = index - 2
        if lower == "a" and index and facts[index - 1].lower == "an":
            yield index - 1, index + 1
        if first == index and lower in _CLITICS and _is_clitic(facts, gaps, index):
            continue
        if lower in _WORD_LETTERS and (first == index or not _ends_here(facts, gaps, index)):
            continue
        yield first, index + 1


def _is_clitic(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    """Return whether a letter may be a clitic without its apostrophe."""
    before = facts[index - 1] if index and gaps[index] == " " else None
    return before is not None and before.stop_word and before.lower not in _HOSTLESS


def _is_user(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    """Return whether an `i` after a noun is a pronoun: `this is the option i want`."""
    if facts[index].lower != "i" or index + 1 == len(facts) or gaps[index + 1].strip():
        return False
    following = facts[index + 1]
    pointed = index > 1 and facts[index - 2].lower in _POINTING
    plain = following.verb and not following.lower.endswith("s")
    return following.lower in _OF_MINE or (pointed and plain)


def spell_label(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield spelled words (`s m y t h e`, `d as in delta`) and musical keys (`b flat`)."""
    lowers = [fact.lower for fact in facts]
    musical = not _MUSIC.isdisjoint(lowers)
    first = 0
    for index in range(len(lowers) + 1):
        joined = index < len(lowers) and (index == first or gaps[index] in {" ", "-"})
        if joined and len(lowers[index]) == 1 and lowers[index].isalpha():
            continue
        if index - first >= _SPELLED:
            yield first, index
        first = index + (index < len(lowers) and len(lowers[index]) > 1)
    for index, lower in enumerate(lowers):
        following = lowers[index + 1 : index + 4]
        if following[:1] and lower in _KEYS and following[0] in _MODES:
            if musical or lower != "a":
                yield index, index + 2
        elif len(lower) == 1 and following[:2] == ["as", "in"]:
            yield index, index + 1 + len(following)


def _ends_here(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    """Return whether a letter is a label: `i` is no pronoun, or `a` has no noun after it."""
    if facts[index].lower == "i":
        return not _is_user(facts, gaps, index)
    if index + 1 == len(facts) or gaps[index + 1] != " ":
        return True
    following = facts[index + 1]
    says = following.verb and following.lower.endswith("s")
    return following.stop_word or says or following.lower in _CLOSING


def secrets(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield passwords, code words and similar texts, found by the words that introduce them."""
    yield from _given_before(facts, gaps)
    yield from _said(facts, gaps)
    lowers = [fact.lower for fact in facts]
    for index, fact in enumerate(facts):
        pair = _is_secret_pair(facts, index)
        key = fact.lower == "key" and not _NETWORKS.isdisjoint(lowers)
        if not pair and not key and fact.lower not in _SECRETS:
            continue
        first, linked = index + 1, ":" in gaps[index + 1]
        if first < len(facts) and _is_secret_pair(facts, first):
            continue  # The two-word expression ends with the next word.
        if lowers[first + 1 : first + 2] == ["be"] and lowers[first] in _MODALS:
            first += 1
        start = index
        if first < len(facts) and lowers[first] == "for":  # `the password for the network is ...`
            reach = range(first, min(first + _LONGEST, len(facts)))
            first = start = next((at for at in reach if lowers[at] in _IS), first)
        while first < len(facts) and facts[first].lower in _LINKS and first - start <= _LINKED:
            first, linked = first + 1, True
        end = first
        while end < len(facts) and end - first < _LONGEST and not _stops(gaps[end], end == first):
            lower = facts[end].lower
            if lower in _STATES or ((end > first or not linked) and _closes(facts[end])):
                break
            end += 1
        if end > first:
            yield first, end


def _is_secret_pair(facts: Sequence[WordFacts], index: int) -> bool:
    """Return whether a word and the word before it name a secret: `code word`."""
    return index > 0 and (facts[index - 1].lower, facts[index].lower) in _SECRET_PAIRS


def _given_before(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield secrets that precede the word for them: `enter moonlight as the password`."""
    for index, fact in enumerate(facts):
        pair = _is_secret_pair(facts, index)
        if not pair and fact.lower not in _SECRETS:
            continue
        end = index - pair
        while end and facts[end - 1].lower in _BETWEEN:
            end -= 1
        if end == index - pair or facts[end].lower not in _LEADS:
            continue
        first = end
        while first and end - first < _LONGEST_HEAD and not facts[first - 1].stop_word:
            first -= 1
            if first and _stops(gaps[first], first=True):
                break
        if first < end:
            yield first, end


def _said(facts: Sequence[WordFacts], gaps: Sequence[str]) -> Iterator[Span]:
    """Yield exact texts after `the word ... is` or after a verb of output: `the word is sesame`."""
    for index, fact in enumerate(facts):
        first = index + 1
        if fact.lower in _WORDS:
            while (
                first < len(facts) and first - index <= _LONGEST and facts[first].lower not in _IS
            ):
                first += 1
            first += 1
        elif fact.lower not in _SAYING or (first < len(facts) and facts[first].stop_word):
            continue
        elif index and facts[index - 1].lower in _ARTICLES:
            continue  # `a typed letter`
        end = first
        while end < len(facts) and end - first < _LONGEST and not _stops(gaps[end], end == first):
            if end > first and _closes(facts[end]):
                break
            end += 1
        if end > first and not any(_stops(gap, first=False) for gap in gaps[index + 1 : first]):
            yield first, end


def _closes(fact: WordFacts) -> bool:
    return fact.stop_word or fact.lower in _CLOSING


def _stops(gap: str, first: bool) -> bool:
    """Return whether a clause ends in a gap. A colon does not end it if ``first`` is true."""
    return any(mark in gap for mark in (",.!?;)" if first else ",.!?;:)"))
