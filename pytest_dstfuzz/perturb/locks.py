"""Locks: the words of a turn that no edit may touch, and the reason for each."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.dialogue.quantities import NUMBER_MARKS
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb import labels, names
from pytest_dstfuzz.perturb.draft import (
    LOCKED,
    SHUT,
    SOLID,
    WEAK,
    Endings,
    Entry,
    Mask,
    WordFacts,
    finish,
    lock,
    lock_names,
    lock_numbers,
    lock_phrases,
)
from pytest_dstfuzz.perturb.exact import EXACT, ExactSpan, exact_spans
from pytest_dstfuzz.perturb.languages import OtherLanguages
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.names import lower_names, name_lists
from pytest_dstfuzz.perturb.values import ValuePieces, canonical
from pytest_dstfuzz.perturb.words import Parts, word_list, word_set

#: Words of degree. In a negated clause, they change the strength of the negation.
DEGREES: Final = word_set(
    """just so really very too simply truly actually definitely absolutely totally completely
    quite even only merely hopefully"""
)
#: A negated clause changes its meaning if it loses one of these words or gets a synonym instead.
_WEIGHED: Final = word_set(
    """need needs needed needing want wants wanted wanting require requires required requiring
    some good great nice excellent wonderful fantastic lovely awesome amazing pleasant terrific"""
)
_HEDGES: Final = word_set("maybe perhaps possibly")
_MODALS: Final = word_set("would could can will should shall might")
_SUBJECTS: Final = word_set("i you we he she they it that this there one someone anyone")
_WISHES: Final = word_set("like love prefer want need appreciate")
_QUANTITIES: Final = word_set("few little")
_REFUSALS: Final = word_set("no nope nah nay")
#: Words that may be edited although they follow `not`.
_EMPTY: Final = word_set("a an the be been being")
#: Words of a reply that a comma separates from the request: `no thanks, a cheap one`.
_ANSWERS: Final = _REFUSALS | word_set(
    """not yes yeah yep ok okay sure thanks thank you sorry well oh um uh yet now that 's that's
    thats is it all"""
)
_CLAUSE_ENDS: Final = frozenset(",;:-–—")
_SENTENCE_ENDS: Final = frozenset("!?\n")


def scope_of(word: str, *, negates: bool) -> str:
    """Return how a lower-cased word affects the words around it; ``""`` if it has no effect.

    >>> scope_of("really", negates=False), scope_of("maybe", negates=False)
    ('negated', 'request')
    """
    if negates:
        return "negation"
    if word in _HEDGES:
        return "request"
    if word in _MODALS:
        return "modal"
    if word in _QUANTITIES:
        return "quantity"
    return "negated" if word in DEGREES or word in _WEIGHED else ""


@lru_cache(maxsize=1024)
def without_degrees(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that may be inserted into a negated clause."""
    return tuple(word for word in words if word.lower() not in DEGREES)


def guard_scopes(
    facts: Sequence[WordFacts], gaps: Sequence[str], reasons: list[str], glued: list[bool]
) -> list[bool]:
    """Lock words that carry meaning only in this context. Close gaps around them.

    Returns:
        For each word, whether its clause is negated. The list is empty if no clause is negated.
    """
    negations = []
    for index, fact in enumerate(facts):
        if fact.scope == "negation" or reasons[index] == "negation":
            negations.append(index)
        elif fact.scope == "request" or (fact.scope == "modal" and _asks(facts, gaps, index)):
            reasons[index] = reasons[index] or "request"
        elif fact.scope == "quantity":
            glued[index] = True
            if index and facts[index - 1].lower == "a":
                reasons[index - 1] = reasons[index - 1] or reasons[index]
    if not negations:
        return []
    for index in negations:
        _guard_next(facts, gaps, reasons, glued, index)
    clauses = _clauses(facts, gaps)
    negated = {clauses[index] for index in negations}
    for index, fact in enumerate(facts):
        if fact.scope == "negated" and clauses[index] in negated:
            reasons[index] = reasons[index] or "negated"
    return [clause in negated for clause in clauses]


def _asks(facts: Sequence[WordFacts], gaps: Sequence[str], index: int) -> bool:
    """Return whether a modal verb asks for something or expresses a wish."""
    if index + 1 == len(facts) or not gaps[index + 1].isspace():
        return False
    following = facts[index + 1].plain.partition("'")[0]
    return following in _SUBJECTS or (facts[index].lower == "would" and following in _WISHES)


def _guard_next(
    facts: Sequence[WordFacts],
    gaps: Sequence[str],
    reasons: list[str],
    glued: list[bool],
    negation: int,
) -> None:
    """Forbid edits that move the word after a negation. Lock this word if it carries meaning."""
    index = negation + 1
    if index == len(facts) or _ends(gaps[index], short=False):
        return
    glued[index] = True
    fact = facts[index]
    empty = fact.lower in _EMPTY and facts[negation].lower not in _REFUSALS
    if gaps[index].isspace() and not (empty or fact.clitic):
        reasons[index] = reasons[index] or "negated"


def _clauses(facts: Sequence[WordFacts], gaps: Sequence[str]) -> list[int]:
    """Return the clause number of each word."""
    clauses: list[int] = []
    clause = 0
    answer = True
    for index, fact in enumerate(facts):
        if index:
            before = facts[index - 1]
            ended = _ends(gaps[index], short=before.unit or len(before.lower) == 1)
            if ended or (answer and not _CLAUSE_ENDS.isdisjoint(gaps[index])):
                clause += 1
                answer = True
        answer = answer and fact.lower in _ANSWERS
        clauses.append(clause)
    return clauses


@lru_cache(maxsize=1024)
def _ends(gap: str, *, short: bool) -> bool:
    """Return whether a sentence ends in a gap. ``short``: a dot may belong to an abbreviation."""
    if not _SENTENCE_ENDS.isdisjoint(gap):
        return True
    # Several dots are a pause. A dot without a blank after it does not end a sentence.
    return gap.count(".") == 1 and gap[-1:].isspace() and not short


#: Spellings of yes and no: replies to a question of the system.
_AFFIRMATIONS: Final = (
    *("yes", "yeah", "yep", "yup", "yea", "sure", "ok", "okay", "okey", "k", "correct", "right"),
    *("absolutely", "definitely", "certainly", "indeed", "fine", "exactly", "agreed", "true"),
    *("affirmative", "false", "wrong", "incorrect", "alright", "perfect", "of course"),
    *("go ahead", "sounds good", "sounds great", "that works"),
)
#: Words that people capitalise anywhere in a sentence.
_GREETINGS: Final = word_set("thanks thank please hi hello hey bye goodbye can could")
_CLITIC: Final = re.compile(r"['’](?:s|m|d|re|ve|ll|t)$|^n['’]t$")
#: Minimum number of letters of a cue word that may take a typing error.
_TYPO_LENGTH: Final = 5
#: A word with a lower frequency rank is too common to identify a name.
_EVERYDAY_RANK: Final = 200
#: Endings of plurals that add ``es`` to the noun.
_SIBILANTS: Final = ("ses", "xes", "zes", "ches", "shes")
#: The lock on a whole utterance in another language.
LANGUAGE: Final = "language"


class Locks:
    """The locks for one lexicon and one ontology."""

    def __init__(
        self,
        lexicon: Lexicon,
        ontology: Ontology | None = None,
        cue_words: Iterable[str] = (),
        user: Iterable[str] = (),
    ) -> None:
        """Build the tables.

        Args:
            lexicon: source of the negations, cues and other word lists.
            ontology: slot values to look for in every utterance. Slot names count as cues.
            cue_words: additional words that name the purpose of a value.
            user: words, phrases or ``/regular expressions/`` that no edit may touch.

        Raises:
            UserError: If a regular expression does not compile or a lock has no word.
        """
        self._lexicon = lexicon
        self._stop_words = frozenset(lexicon.stop_words)
        self._function_words = self._stop_words.union(lexicon.fillers, _AFFIRMATIONS, _GREETINGS)
        slots = ontology.slots if ontology else ()
        self._phrases: dict[str, list[Entry]] = {}
        self._patterns = [pattern for lock in user if (pattern := self._user_lock(lock))]
        self._enter("number", lexicon.number_words)
        self._enter("value", (*lexicon.weekdays, *lexicon.value_words))
        self._enter("negation", lexicon.negations)
        self._enter("dontcare", lexicon.dontcare)
        self._enter("affirmation", _AFFIRMATIONS)
        cues = [*lexicon.cues, *cue_words, *(part for slot in slots for part in word_list(slot))]
        self._enter("cue", cues)
        self._enter("reference", lexicon.references)
        # If several lists have a word, it has the lock of the first list.
        self._single = {
            word: next(reason for phrase, reason in entries if len(phrase) == 1)
            for word, entries in self._phrases.items()
            if any(len(phrase) == 1 for phrase, _ in entries)
        }
        values = [v for found in ontology.values.values() for v in found] if ontology else []
        phrases = (*lexicon.stop_words, *cues, *lexicon.fillers)
        self._common = frozenset(canonical(word) for text in phrases for word in word_list(text))
        # Frequent words of dialogues (`place`, `good`) do not identify a name either.
        self._common |= {canonical(w) for v in values for w in word_list(v) if self._everyday(w)}
        self._values = ValuePieces.of(values, self._common)
        self._closed = self._stop_words.union(*(word_list(phrase) for phrase in cues))
        self._single_ends = Endings(self._single)
        self._value_ends = Endings(self._values.words)
        self._seconds = frozenset(second for _, second in self._values.pairs)
        self._languages = OtherLanguages(lexicon.is_word, self._function_words)
        self._names_known = name_lists()
        self._pieces = lru_cache(maxsize=8192)(self._more_pieces)
        self._facts = lru_cache(maxsize=1 << 15)(self._look_at)

    @classmethod
    def of(
        cls,
        lexicon: Lexicon,
        ontology: Ontology | None = None,
        cue_words: Iterable[str] = (),
        user: Iterable[str] = (),
    ) -> Locks:
        """Return the locks, as the constructor does. Campaigns on the same data share them."""
        values = ontology.values if ontology else {}
        known = tuple((slot, tuple(found)) for slot, found in values.items())
        return _locks(lexicon, known, tuple(cue_words), tuple(user))

    def _everyday(self, word: str) -> bool:
        rank = self._lexicon.frequency_rank(word)
        return rank is not None and rank < _EVERYDAY_RANK and self._lexicon.is_word(word)

    def _enter(self, reason: str, phrases: Iterable[str]) -> None:
        for phrase in phrases:
            parts = word_list(phrase)
            for variant in dict.fromkeys((tuple(parts), tuple(_parted(parts)))):
                if variant:
                    self._phrases.setdefault(variant[0], []).append((variant, reason))

    def _more_pieces(self, value: str) -> ValuePieces | None:
        """Return the pieces of a value, or ``None`` if the ontology already has all of them."""
        pieces = ValuePieces.of([value], self._common)
        return None if self._values.joined(pieces) is self._values else pieces

    def _user_lock(self, lock: str) -> re.Pattern[str] | None:
        """Return the pattern of a regular expression. Store a word or phrase instead."""
        if len(lock) > 2 and lock.startswith("/") and lock.endswith("/"):
            try:
                return re.compile(lock[1:-1], re.IGNORECASE)
            except re.error as error:
                raise UserError(f"lock {lock!r} is not a regular expression: {error}") from None
        if not word_list(lock):
            raise UserError(f"lock {lock!r} has no word: give a word or a /regular expression/")
        self._enter("user", [lock])
        return None

    def guard_of(self, word: str) -> str:
        """Return the lock that a word has in every context, or ``""``.

        An edit must not insert a word with such a lock.
        """
        lower = word.lower()
        if not lower.isalpha() and any(map(str.isdigit, lower)):
            return "number"
        if reason := self._single.get(lower if lower.isalpha() else lower.replace("’", "'")):
            return reason
        if canonical(lower) in self._values.words:
            return "value"
        patterns = self._patterns
        return "user" if patterns and any(p.fullmatch(word) for p in patterns) else ""

    def mask(self, text: str, parts: Parts, values: Iterable[str] = (), system: str = "") -> Mask:
        """Return the mask of an utterance, given the values of its belief state."""
        words, gaps = parts.words, parts.gaps
        if self.is_other_language(parts):
            return _whole(text, len(words))
        facts = [self._facts(word.text) for word in words]
        reasons = [""] * len(words)
        glued = [False] * (len(words) + 1)
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                start, end = match.span()
                inside = [i for i, w in enumerate(words) if w.start < end and start < w.end]
                lock(reasons, glued, inside, "user")
        for first, end in self._mentions(facts, values):
            lock(reasons, glued, range(first, end), "value")
        lock_phrases(facts, self._single, reasons, glued)
        lock_numbers(facts, reasons)
        spans = exact_spans(text)
        _lock_spans(spans, parts, reasons, glued)
        for find in (labels.numerals, labels.labels, labels.spell_label, labels.secrets):
            for first, end in find(facts, gaps):
                lock(reasons, glued, range(first, end), EXACT)
        lock_names(facts, gaps, self._names(text, parts, facts, reasons, system), reasons)
        scopes = guard_scopes(facts, gaps, reasons, glued)
        exact = tuple([(span.start, span.end) for span in spans])
        return finish(facts, gaps, reasons, glued, scopes, exact)

    def is_other_language(self, parts: Parts) -> bool:
        """Return whether an utterance, or one of its clauses, is not in English."""
        return self._languages.has(parts.words, parts.gaps)

    def _mentions(self, facts: Sequence[WordFacts], values: Iterable[str]) -> list[tuple[int, int]]:
        pieces = self._values
        for more in map(self._pieces, values):
            if more is not None:
                pieces = pieces.joined(more)
        ends: Sequence[int] = range(len(facts))
        if pieces is self._values:  # Fast path: only a few words can end a mention.
            ends = [index for index, fact in enumerate(facts) if fact.mentions]
        if not ends:
            return []
        return pieces.mentions([fact.plain for fact in facts], [fact.form for fact in facts], ends)

    def _names(
        self,
        text: str,
        parts: Parts,
        facts: Sequence[WordFacts],
        reasons: Sequence[str],
        system: str,
    ) -> set[int]:
        """Return the indices of words that look like names."""
        gaps = parts.gaps
        found = lower_names(facts, gaps, reasons)
        found.update(names.match_called([fact.lower for fact in facts], gaps, self._closed))
        if not text.islower():
            capitals = [fact.capital for fact in facts]
            plain, is_word = self._function_words, self._is_word
            found.update(names.find_capitalised(text, parts, capitals, plain, is_word))
        if system:
            unlocked = {
                fact.lower
                for index, fact in enumerate(facts)
                if not fact.stop_word and (not reasons[index] or reasons[index] in WEAK)
            }
            if named := names.find_named_by_system(system, unlocked):
                found.update(i for i, fact in enumerate(facts) if fact.lower in named)
        return found

    def _look_at(self, text: str) -> WordFacts:
        """Return the facts about a word in its typed form."""
        lower = text.lower()
        plain = lower.replace("’", "'")
        form = canonical(plain)
        entries = self._phrases.get(plain, [])
        alone = [reason for phrase, reason in entries if len(phrase) == 1]
        own = next((reason for reason in alone if reason in SOLID), (*alone, "")[0])
        seconds = dict.fromkeys(phrase[1] for phrase, _ in entries if len(phrase) > 1)
        phrases = {
            second: tuple(entry for entry in entries if entry[0][1:2] in {(), (second,)})
            for second in seconds
        }
        second_half = plain in self._single_ends
        bare = plain.replace("-", "")
        joined = self._single.get(bare, "") if bare != plain else ""
        contracted = plain == "n't"
        pos = self._lexicon.majority_pos(lower)
        return WordFacts(
            lower=lower,
            stop_word=lower in self._stop_words,
            plain=plain,
            form=form,
            mentions=bool(form) and self._may_end_mention(form),
            listed=bool(entries or second_half or joined or contracted),
            own=own,
            phrases=phrases,
            second_half=second_half,
            joined=joined,
            contracted=contracted,
            number=not text.isalpha() and any(map(str.isdigit, text)),
            unit=lower in NUMBER_MARKS,
            unknown=self._is_name(plain),
            place=lower in self._names_known.places,
            given=lower in self._names_known.given,
            family=lower in self._names_known.family,
            rare=pos == "noun" and self._is_rare(lower),
            capital=text[0].isupper() and lower.partition("'")[0] not in {"i", ""},
            clitic=("'" in lower or "’" in lower) and bool(_CLITIC.search(lower)),
            noun=pos == "noun",
            nounish=pos in {None, "noun"},
            verb=pos == "verb",
            describes=pos == "adj",
            long=len(text) >= _TYPO_LENGTH and lower.isalpha(),
            scope=scope_of(lower, negates=contracted or "negation" in alone),
        )

    def _is_name(self, plain: str) -> bool:
        """Return whether a word is a name in every context, or unknown."""
        formed = unicodedata.normalize("NFC", plain).removesuffix("'s")
        if formed in self._names_known.always:
            return True
        # Parts of one letter, as in `t-shirt`, do not count.
        pieces = [piece for piece in formed.split("-") if len(piece) > 1]
        return bool(pieces) and all(
            piece.isalpha() and not self._is_known(piece) for piece in pieces
        )

    def _is_known(self, lower: str) -> bool:
        return lower in self._stop_words or self._is_word(lower)

    def _is_word(self, lower: str) -> bool:
        """Return whether a text is an English word or the plural of a noun.

        The lexicon lacks many regular plurals: `bikes`, `vouchers`.
        """
        return self._lexicon.is_word(lower) or any(
            single not in self._names_known.given and self._lexicon.majority_pos(single) == "noun"
            for single in _singulars(lower)
        )

    def _is_rare(self, lower: str) -> bool:
        return self._lexicon.frequency_rank(lower) is None and not lower.endswith("s")

    def _may_end_mention(self, form: str) -> bool:
        # The word may be the second half of a known word that is written as two words.
        known = form in self._value_ends or form in self._seconds
        return known or self._values.begins_like(form)


@lru_cache(maxsize=4)
def _locks(
    lexicon: Lexicon,
    values: tuple[tuple[str, tuple[str, ...]], ...],
    cue_words: tuple[str, ...],
    user: tuple[str, ...],
) -> Locks:
    return Locks(lexicon, Ontology(dict(values)), cue_words, user)


def _whole(text: str, words: int) -> Mask:
    """Return a mask that locks a whole text."""
    whole = ((0, len(text)),)
    return Mask((LOCKED,) * words, (LANGUAGE,) * words, (SHUT,) * (words + 1), whole)


def _lock_spans(
    spans: Iterable[ExactSpan], parts: Parts, reasons: list[str], glued: list[bool]
) -> None:
    """Lock the words in spans of characters, and close the gaps that a span overlaps."""
    for span in spans:
        first = bisect_right(parts.ends, span.start)
        end = max(first, bisect_left(parts.starts, span.end))
        lock(reasons, glued, range(first, end), span.reason)
        for gap in (first, end):
            left = parts.ends[gap - 1] if gap else 0
            right = parts.starts[gap] if gap < len(parts.words) else left + len(parts.gaps[-1])
            if max(left, span.start) < min(right, span.end):
                glued[gap] = True


def _singulars(lower: str) -> Iterator[str]:
    """Yield the words of which a text is a regular plural, if they exist.

    >>> [*_singulars("brushes")], [*_singulars("cherries")], [*_singulars("open")]
    (['brushe', 'brush'], ['cherrie', 'cherry'], [])
    """
    if lower.endswith("s") and not lower.endswith("ss"):
        yield lower[:-1]
    if lower.endswith(_SIBILANTS):
        yield lower[:-2]
    if lower.endswith("ies"):
        yield f"{lower[:-3]}y"


def _parted(parts: Sequence[str]) -> list[str]:
    """Split contractions as MultiWOZ does: ``don't`` -> ``do n't``."""
    parted: list[str] = []
    for part in parts:
        if part.endswith("n't") and len(part) > 3:
            parted += [part[:-3], "n't"]
        elif "'" in part[1:]:
            head, _, tail = part.partition("'")
            parted += [head, "'" + tail]
        else:
            parted.append(part)
    return parted
