"""Relations that rephrase a turn: disfluency, speech errors, phrases, grammar, word order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.noise.casual import respell_word
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.draft import FREE, KEPT, OPEN, SHUT
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import Word, match_case, word_list, word_set
from pytest_dstfuzz.relations.checks import veto
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    EarlierResult,
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnRelation,
    TurnStart,
)
from pytest_dstfuzz.relations.should_change.relations import unsaid
from pytest_dstfuzz.relations.should_change.sites import ValueSite, sites_of
from pytest_dstfuzz.relations.values import article_before, inflections, write_value
from pytest_dstfuzz.seeding import stream

#: Number of random rewrites per turn.
_DRAWN: Final = 16


class Places(NamedTuple):
    """The edits that a relation may make in an utterance."""

    #: The possible edits in reading order. Several edits may have the same position.
    replacements: Sequence[Replacement]
    #: Maximum number of edits in one rewrite.
    most: int


class Paraphrase(Relation):
    """Expects the same answer although a turn is rephrased.

    A subclass defines the possible edits of a turn. A rewrite combines some of these edits. Each
    edit alone is also a valid rewrite.
    """

    expects = "{stays}"
    edits = "own"
    english = True
    places: Callable[[Scene], Places | str]

    def places_of(self, replacements: Sequence[Replacement], most: int) -> Places | str:
        """Return edits as `Places`, or a reason if there are none.

        The reason is the last one in the relation's list.
        """
        return Places(replacements, most) if replacements else self.reasons[-1]

    def begin(self, scene: Scene) -> TurnStart:
        """Return rewrites with one or more edits, or the reason why no edit is possible."""
        found = self.places(scene)
        if isinstance(found, str):
            return Inapplicable(found)
        return (
            scene.rewrite(chosen, about=_told(chosen), separable=True)
            for chosen in draw_combinations(scene, found)
        )


def draw_combinations(scene: Scene, places: Places) -> Iterator[tuple[Replacement, ...]]:
    """Yield different combinations of edits. Edits of a combination do not touch each other."""
    seen = set()
    count = len(places.replacements)
    for _ in range(_DRAWN):
        wanted = int(scene.rng.integers(1, min(places.most, count) + 1))
        chosen: list[Replacement] = []
        for index in scene.rng.permutation(count).tolist():
            one = places.replacements[index]
            if all(one.end < other.start or other.end < one.start for other in chosen):
                chosen.append(one)
            if len(chosen) == wanted:
                break
        choice = tuple(sorted(chosen))
        made = tuple([one[:3] for one in choice])  # Two kinds of edit may produce the same text.
        if made not in seen:
            seen.add(made)
            yield choice


def free(scene: Scene) -> Iterator[tuple[int, Word]]:
    """Yield the words without a lock, with their indices.

    Words in slot names (`topping-capers`) are not free, with or without an ontology.
    """
    roles, titles = scene.guarded.roles, scene.table.titles
    for index, word in enumerate(scene.parts.words):
        if roles[index] == FREE and spell_compared(word.lower) not in titles:
            yield index, word


def leans_on(scene: Scene, index: int) -> bool:
    """Return whether a clitic follows the word at ``index``: `I 'm`, `do n't`."""
    following = scene.parts.words[index + 1 : index + 2]
    return bool(following) and (following[0].text[0] in "'’" or following[0].lower == "n't")


def plain_gap(scene: Scene, index: int) -> bool:
    """Return whether there is only whitespace before the word at ``index``, or at the end."""
    gaps = scene.parts.gaps
    return not gaps[index] or gaps[index].isspace()


def begins_sentence(scene: Scene, index: int) -> bool:
    """Return whether the word at ``index`` begins a sentence."""
    gap = scene.parts.gaps[index]
    return not index or any(mark in gap for mark in ".!?\n")


def without_word(scene: Scene, index: int, operator: str) -> Replacement:
    """Return an edit that deletes the word at ``index`` and the whitespace on one side."""
    words, gaps = scene.parts.words, scene.parts.gaps
    start, end = words[index].start, words[index].end
    before, after = gaps[index], gaps[index + 1]
    if before[-1:].isspace():
        start -= len(before) - len(before.rstrip())
    else:
        end += len(after) - len(after.lstrip())
    return Replacement(start, end, "", operator)


def _told(chosen: Sequence[Replacement]) -> str:
    kinds = dict.fromkeys(one.operator for one in chosen)
    return ", ".join(kind.replace("_", " ") for kind in kinds)


_NO_PAIR: Final = "no two adjacent unlocked words without punctuation"
#: Minimum number of words per swapped pair.
_WORDS_A_PAIR: Final = 4
#: Conjunctions. If they move, the meaning changes.
_JOINTS: Final = word_set("and or but if then else because so than as while when unless")
#: Swapping a subject with a helper turns a statement into a question: `you can`.
_SUBJECTS: Final = word_set("i you we he she they it there this that")
_HELPERS: Final = word_set(
    "will would can could shall should may might must do does did am are is was were have has had"
)
#: Words that form a fixed phrase with the next word.
_SET: Final = word_set("thank thanks of")


@register_relation
class NeighbourSwap(Paraphrase):
    """Swaps neighbouring words, at most one pair in four words. The answer must stay the same.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (random swap).
    """

    name = "neighbour-swap"
    reasons = (_NO_PAIR,)

    def places(self, scene: Scene) -> Places | str:
        """Return the pairs of words that may be swapped."""
        words = dict(free(scene))
        pairs = [
            Replacement(words[one].start, words[one + 1].end, self._swapped(scene, one), "swap")
            for one in words
            if one + 1 in words and self._may_swap(scene, one)
        ]
        most = max(1, len(scene.parts.words) // _WORDS_A_PAIR)
        return self.places_of(pairs, most)

    def _may_swap(self, scene: Scene, one: int) -> bool:
        first, second = scene.parts.words[one : one + 2]
        inner = scene.parts.gaps[one + 1]
        return (
            inner.isspace()
            and (begins_sentence(scene, one) or plain_gap(scene, one))
            and plain_gap(scene, one + 2)
            and first.lower != second.lower
            and (_JOINTS | _SET).isdisjoint({first.lower, second.lower})
            and not (first.lower in _SUBJECTS and second.lower in _HELPERS)
            and not (first.lower in _HELPERS and second.lower in _SUBJECTS)
            and not leans_on(scene, one + 1)
        )

    def _swapped(self, scene: Scene, one: int) -> str:
        first, second = scene.parts.words[one : one + 2]
        before, after = second.text, first.text
        if begins_sentence(scene, one) and first.text[0].isupper():
            before = before[0].upper() + before[1:]
            after = after if _stays(first) else after[0].lower() + after[1:]
        return before + scene.parts.gaps[one + 1] + after


def _stays(word: Word) -> bool:
    """Return whether a word keeps its capital letter in any position."""
    return word.lower.partition("'")[0] == "i" or word.text.isupper()


_NO_STOP_WORD: Final = "no unlocked stop word"
_EMPTY: Final = "the turn has only stop words"
_MOST_STOP_WORDS: Final = 8
#: Stop words that are never left out: connectives, question words and verbs.
KEPT_STOP_WORDS: Final = word_set(
    """or nor but if than as because while until what which who whom where when why how all any
    both each few own do does did am are is"""
)


@register_relation
class StopWordDropout(Paraphrase):
    """Leaves out stop words, at most eight. The answer must stay the same.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (stop-word dropout).
    """

    name = "stop-word-dropout"
    source = "NLTK's English stop words (from the Snowball project, BSD), in the lexicon"
    reasons = (_EMPTY, _NO_STOP_WORD)

    def places(self, scene: Scene) -> Places | str:
        """Return the stop words that may be left out."""
        stop_words = frozenset(scene.lexicon.stop_words)
        if all(word.lower in stop_words for word in scene.parts.words):
            return _EMPTY
        found = [
            without_word(scene, index, "stop_word")
            for index, word in free(scene)
            if word.lower in stop_words
            and word.lower not in KEPT_STOP_WORDS
            and not leans_on(scene, index)
        ]
        return self.places_of(found, _MOST_STOP_WORDS)


_NO_WRONG_FORM: Final = "no unlocked word with a known wrong form"
_MOST_WRONG_FORMS: Final = 3
#: Words whose forms are in the table.
_OWN: Final = word_set("is are was were am be been being has have had does do did will would")


@register_relation
class GrammarErrors(Paraphrase):
    """Puts words into a wrong form, at most three. The answer must stay the same.

    The edits replace a word by a wrong one from a table, an inflected verb by its infinitive, or a
    plural by its singular.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (grammar errors); the original uses the AESW data.
    """

    name = "grammar-errors"
    source = (
        "resources/relations/grammar.tsv, of this package (MIT); inflections.json, of this "
        "package's rules and the exception lists of WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NO_WRONG_FORM,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may get a wrong form."""
        found = [
            *replacements(scene, load_shipped_pairs("grammar.tsv"), "wrong_word"),
            *_inflected(scene),
        ]
        return self.places_of(found, _MOST_WRONG_FORMS)


def _inflected(scene: Scene) -> Iterator[Replacement]:
    forms = inflections()
    for index, word in free(scene):
        pos = scene.lexicon.majority_pos(word.lower)
        base, operator = None, ""
        if pos == "verb" and word.lower not in _OWN:
            base, operator = forms.infinitive(word.lower), "infinitive"
        elif pos == "noun":
            base, operator = forms.singular(word.lower), "singular"
        if base and not scene.guards.guard_of(base) and not leans_on(scene, index):
            yield Replacement(word.start, word.end, match_case(word.text, base), operator)


_NO_PHRASE: Final = "no unlocked phrase of the table"
_MOST_PHRASES: Final = 4
_SHIPPED: Final = resources.files("pytest_dstfuzz") / "resources" / "relations"


@dataclass(frozen=True)
class PhraseTable:
    """Pairs of phrases with the same meaning, in lower case and split into words."""

    others: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]]
    #: Number of words in the longest phrase.
    longest: int

    @classmethod
    def read(cls, text: str, where: str, *, both_ways: bool = True) -> PhraseTable:
        """Read a table of phrases: two on each line, separated by a tab.

        The second phrase replaces the first. If ``both_ways`` is true, the first also replaces the
        second.

        Raises:
            DataError: a line is no pair.
        """
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            sides = [tuple(side.lower().split()) for side in line.split("\t")]
            if len(sides) != 2 or not all(sides) or sides[0] == sides[1]:
                raise DataError(
                    f"{where}, line {number}: {line!r} is not a pair of phrases: write two "
                    "phrases with a tab between them"
                )
            for one, other in (sides, sides[::-1]) if both_ways else (sides,):
                found.setdefault(one, []).append(other)
        others = {phrase: tuple(dict.fromkeys(others)) for phrase, others in found.items()}
        return cls(others, max(map(len, others), default=0))


@cache
def load_shipped_pairs(name: str) -> PhraseTable:
    """Return a shipped table that replaces first phrases by second ones, but not vice versa."""
    path = _SHIPPED / name
    return PhraseTable.read(path.read_text(encoding="utf-8"), str(path), both_ways=False)


@cache
def _shipped_table() -> PhraseTable:
    shipped = _SHIPPED / "phrases.tsv"
    return PhraseTable.read(shipped.read_text(encoding="utf-8"), str(shipped))


def phrase_table(path: Path | None = None) -> PhraseTable:
    """Return the shipped table of phrases, or read one from a file of the same format.

    Raises:
        DataError: the file cannot be read, or one of its lines is no pair.
    """
    if path is None:
        return _shipped_table()
    return PhraseTable.read(read_text(path, "phrase table"), str(path))


@register_relation
class PhraseTableRelation(Paraphrase):
    """Replaces phrases by others with the same meaning. The answer must stay the same.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (data-level paraphrase); the original uses PPDB.
    """

    name = "phrase-table"
    source = "resources/relations/phrases.tsv, of this package (MIT)"
    reasons = (_NO_PHRASE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the phrases that may be replaced."""
        found = list(replacements(scene, phrase_table(), "phrase"))
        return self.places_of(found, _MOST_PHRASES)


def replacements(scene: Scene, table: PhraseTable, operator: str) -> Iterator[Replacement]:
    """Yield the replacements from a table that keep the locked words of a turn."""
    words, gaps = scene.parts.words, scene.parts.gaps
    for first in range(len(words)):
        phrase: tuple[str, ...] = ()
        for last in range(first, min(first + table.longest, len(words))):
            if last > first and gaps[last] not in {"", " "}:
                break
            phrase += (words[last].lower.replace("’", "'"),)
            for other in table.others.get(phrase, ()):
                one = _replacement(scene, (first, operator), phrase, other)
                if one is not None:
                    yield one


def _replacement(
    scene: Scene, place: tuple[int, str], old: Sequence[str], new: Sequence[str]
) -> Replacement | None:
    """Return the smallest edit that replaces a phrase, or ``None`` if it hits a lock."""
    first, operator = place
    head = _equal(old, new)
    tail = _equal(old[head:][::-1], new[head:][::-1])
    start, end = first + head, first + len(old) - tail
    added = list(new[head : len(new) - tail])
    roles, words = scene.guarded.roles, scene.parts.words
    if start == end or not added:
        return None
    if any(role != FREE for role in roles[start:end]) or any(map(scene.guards.guard_of, added)):
        return None
    if begins_sentence(scene, start):
        added[0] = match_case(words[start].text, added[0])
    text = " ".join("I" if word == "i" else word for word in added)
    return Replacement(words[start].start, words[end - 1].end, text, operator)


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words at the beginning both phrases share."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_NO_MISHEARD_WORD: Final = "no unlocked word sounds like another word or is easily missed"
_MOST_MISHEARD_WORDS: Final = 3


@register_relation
class Speech(Paraphrase):
    """Replaces words by similar-sounding ones and drops small words, like speech recognition.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog (LAUG),
    ACL 2021 (speech errors).
    """

    name = "speech"
    source = (
        "resources/noise/speech.json: words that sound alike by CMUdict (BSD, two clauses); "
        "resources/relations/homophones.tsv and the small words: of this package (MIT)"
    )
    reasons = (_NO_MISHEARD_WORD,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be misheard or dropped."""
        found = list(_misheard(scene))
        return self.places_of(found, _MOST_MISHEARD_WORDS)


@cache
def _model() -> NoiseModel:
    return NoiseModel.load("speech")


def _misheard(scene: Scene) -> Iterator[Replacement]:
    yield from replacements(scene, load_shipped_pairs("homophones.tsv"), "homophone")
    heard = _model().file.tables.words
    for index, word in free(scene):
        if leans_on(scene, index):
            continue
        for form, _ in respell_word(word.text, heard["homophone"]):
            if not scene.guards.guard_of(form):
                yield Replacement(word.start, word.end, form, "homophone")
        if word.lower in heard["dropped"] and word.lower not in KEPT_STOP_WORDS:
            yield without_word(scene, index, "not_heard")


_NO_FREE_PLACE: Final = "no unlocked place for a filler or a restart"
_MOST_DISFLUENCIES: Final = 3
#: Fillers of the lexicon that are never an answer or a correction. `i mean` is not in the list,
#: because it announces a correction.
_ANYWHERE: Final = ("um", "uh", "er", "erm", "hmm")
_FIRST: Final = (*_ANYWHERE, "well")
#: Maximum number of repeated words in a restart.
_AGAIN: Final = 3
#: Maximum number of repairs per slot.
_REPAIRS: Final = 2
_ARTICLES: Final = word_set("a an")
_THANKS: Final = word_set("thank")


@register_relation
class Disfluency(Paraphrase):
    """Adds fillers, restarts and corrected slips to a turn. The answer must stay the same.

    In a corrected slip, the user first names another value, then says `no` and the original value.
    Only the original value counts.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog (LAUG),
    ACL 2021 (disfluency).
    """

    name = "disfluency"
    source = "fillers of the lexicon, of this package (MIT)"
    reasons = (_NO_FREE_PLACE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the places for fillers, and the words that may be repeated."""
        found = [*_fillers(scene), *_restarts(scene)]
        return self.places_of(found, _MOST_DISFLUENCIES)

    def begin(self, scene: Scene) -> TurnStart:
        """Return rewrites with fillers and restarts, and one rewrite per corrected slip."""
        begun = super().begin(scene)
        repairs = list(_repairs(scene))
        if isinstance(begun, Inapplicable):
            return repairs or begun
        return chain(begun, repairs)  # type: ignore[arg-type]  # it gives nothing but rewrites


def _fillers(scene: Scene) -> Iterator[Replacement]:
    """Yield one random filler for each place."""
    words, states, reasons = scene.parts.words, scene.guarded.open, scene.guarded.reasons
    for index, word in enumerate(words):
        first = begins_sentence(scene, index)
        fillers = [one for one in (_FIRST if first else _ANYWHERE) if one in scene.lexicon.fillers]
        if not fillers:
            continue
        place = int(scene.rng.integers(len(fillers)))
        if states[index] == SHUT or scene.guards.guard_of(fillers[place]):
            continue
        # Insert nothing between a cue and its value: `to Oslo`.
        if index and (words[index - 1].lower in _THANKS or (reasons[index - 1] and reasons[index])):
            continue
        filler = f"{fillers[place].capitalize()}," if first else fillers[place]
        yield Replacement(word.start, word.start, f"{filler} ", "filler")


def _restarts(scene: Scene) -> Iterator[Replacement]:
    """Yield repetitions of a sentence's first words, for each sentence."""
    words, gaps, mask = scene.parts.words, scene.parts.gaps, scene.guarded
    for first in range(len(words)):
        if not begins_sentence(scene, first):
            continue
        for last in range(first, min(first + _AGAIN, len(words) - 1)):
            if mask.roles[last] not in {FREE, KEPT} or (last > first and gaps[last] != " "):
                break
            if mask.open[last + 1] != OPEN or gaps[last + 1] != " ":
                continue
            said = scene.turn.user[words[first].start : words[last].end]
            if words[first].lower.partition("'")[0] != "i" and not words[first].text.isupper():
                said = said[0].lower() + said[1:]
            yield Replacement(words[last].end, words[last].end, f", {said}", "restart")


def _repairs(scene: Scene) -> Iterator[Rewrite]:
    """Yield the turn with a wrong value before each value of the user: `sunday, no, friday`."""
    for site in sites_of(scene).found:
        for value in islice(unsaid(scene, site.slot, site.value), _REPAIRS):
            text = _other(scene, site, value)
            if text:
                start = site.mention.start
                one = Replacement(start, start, f"{text}, no, ", "repair")
                yield scene.rewrite([one], about=f"{text}, no, {site.surface}")


def _other(scene: Scene, site: ValueSite, value: str) -> str | None:
    """Return another value in the form of the old value, or ``None`` if no value fits."""
    first = site.mention.first
    if first != site.mention.last and site.kind != "time":
        return None
    if site.mention.spelled == "other" or len(value.split()) > 1:
        return None
    before = scene.parts.words[first - 1].lower if first else ""
    text = write_value(site.kind, value, site.surface)
    if text is None or (before in _ARTICLES and before != article_before(text)):
        return None
    return None if scene.guarded.open[first] == SHUT else text


_SILENT: Final = "the turn has no words"
_NO_BLOCK: Final = "every sentence to insert contains a locked word"
#: Maximum number of sentences in a block.
_LONGEST: Final = 3
#: The boundary between two sentences, including the whitespace after it.
_BOUND: Final = re.compile(r"(?<![.!?])[.!?]+[\"'”’]?\s+(?=\S)")


@register_relation
class PlugIn(Relation):
    """Adds sentences about another topic to a turn. The answer must stay the same.

    One to three sentences are inserted at the start of the turn, between two sentences, or at its
    end. Each position is tried once. After that, the relation repeats the position with the largest
    loss of the tracker's confidence.

    Source: Pick-n-Plug, which picks block and position without a search.
    """

    name = "plug-in"
    expects = "{stays}"
    source = "resources/relations/blocks.txt, of this package (MIT)"
    edits = "own"
    english = True
    adaptive = True
    reasons = (_SILENT, _NO_BLOCK)

    def begin(self, scene: Scene) -> TurnStart:
        """Return a search for the position that confuses the tracker most."""
        if not scene.parts.words:
            return Inapplicable(_SILENT)
        guard_of = scene.guards.guard_of
        words = scene.table.words
        blocks = [
            one
            for one in _sentences()
            if not any(guard_of(word) or spell_compared(word) in words for word in word_list(one))
        ]
        return _PlaceSearch(scene, blocks) if blocks else Inapplicable(_NO_BLOCK)


class _PlaceSearch(TurnRelation):
    """Tries each position once, then repeats the most effective one with other sentences."""

    def __init__(self, scene: Scene, sentences: Sequence[str]) -> None:
        self._scene = scene
        self._sentences = sentences
        self._seed = int(scene.rng.integers(1 << 62))
        user = scene.turn.user
        bounds = [match.end() for match in _BOUND.finditer(user)]
        self._places = (0, *filter(self._fits, bounds), len(user))

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite:
        """Return rewrite ``number``, which inserts random sentences."""
        rng = stream(self._seed, number, draw)
        wanted = min(int(rng.integers(1, _LONGEST + 1)), len(self._sentences))
        chosen = rng.choice(len(self._sentences), wanted, replace=False).tolist()
        return self._plugged(self._place(number, seen), [self._sentences[one] for one in chosen])

    def _fits(self, place: int) -> bool:
        """Return whether a sentence ends here. The full stop of `St.` or `p.m.` does not count."""
        one = self._plugged(place, self._sentences[:1])
        return not veto(self._scene, one.seen.user, one.edits)

    def _place(self, number: int, seen: Sequence[EarlierResult]) -> int:
        """Return an untried position, or the position with the least certain answer."""
        if number < len(self._places):
            return self._places[number]
        wavered = dict.fromkeys(self._places, -1.0)
        for one in seen:
            place = one.rewrite.edits[0].start
            impurity = 1.0 if one.broken else one.impurity
            wavered[place] = max(wavered[place], impurity if one.answered else -1.0)
        return max(self._places, key=lambda place: wavered[place])

    def _plugged(self, place: int, sentences: Sequence[str]) -> Rewrite:
        user = self._scene.turn.user
        closed = user.rstrip()[-1:] in {".", "!", "?"}
        if place < len(user):
            texts = [f"{one} " for one in sentences]
        else:
            texts = [f" {one}" if closed else f". {one[:-1]}" for one in sentences]
        added = [Replacement(place, place, text, "block") for text in texts]
        where = "at the start" if not place else "within"
        where = "at the end" if place == len(user) else where
        told = f"{len(texts)} sentence{'s' * (len(texts) > 1)} {where}"
        return self._scene.rewrite(added, about=told, separable=True)


@cache
def _sentences() -> tuple[str, ...]:
    path = resources.files("pytest_dstfuzz") / "resources" / "relations" / "blocks.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


_NO_MASKED_WORD: Final = "the model proposes no similar word for an unlocked word"
_MOST_MASKED_WORDS: Final = 2
#: Minimum cosine similarity of a word and its replacement.
_NEAR: Final = 0.6
_CONTENT: Final = frozenset({"noun", "verb", "adj", "adv"})
#: Pairs that are similar, but mean different things in a request.
_APART: Final = frozenset({("get", "give"), ("give", "get"), ("try", "check"), ("met", "answered")})


@register_relation
class MaskedReplacement(Paraphrase):
    """Replaces words by similar words that fit the sentence. The answer must stay the same.

    The new words come from the lexicon's masked language model. A new word must have the same part
    of speech as the old one and a similar word vector, and must not be an antonym.
    """

    name = "masked-replacement"
    source = (
        "proposals and neighbours in the lexicon, made from MultiWOZ 2.1, training split alone; "
        "antonyms from WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NO_MASKED_WORD,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be replaced."""
        found = [one for index, word in free(scene) for one in _others(scene, index, word)]
        return self.places_of(found, _MOST_MASKED_WORDS)


def _others(scene: Scene, index: int, word: Word) -> Iterator[Replacement]:
    lexicon, words = scene.lexicon, scene.parts.words
    pos = lexicon.majority_pos(word.lower)
    if pos not in _CONTENT or leans_on(scene, index):
        return
    near = {other for other, cosine in lexicon.neighbours(word.lower) if cosine >= _NEAR}
    near -= {word.lower, *lexicon.antonyms(word.lower)}
    verb = inflections().infinitive
    # Leave out other forms of the same verb: these would be grammar errors, which have their own
    # relation.
    near = {other for other in near if (verb(other) or other) != (verb(word.lower) or word.lower)}
    if not near:
        return
    left = words[index - 1].lower if index else ""
    right = words[index + 1].lower if index + 1 < len(words) else ""
    for other in lexicon.insertions(left, right):
        fits = other in near and lexicon.majority_pos(other) == pos
        # Similar nouns are usually different things of the same kind: `phone` and `postcode`.
        if fits and (pos != "noun" or _means(scene.lexicon, word.lower, other)):
            if (word.lower, other) in _APART or scene.guards.guard_of(other):
                continue
            yield Replacement(word.start, word.end, match_case(word.text, other), "masked")


def _means(lexicon: Lexicon, word: str, other: str) -> bool:
    """Return whether two nouns are synonyms, or forms of the same noun."""
    forms = inflections()
    synonyms = (*lexicon.synonyms(word), *lexicon.synonyms_all(word, "noun"))
    return other in (
        *synonyms,
        *lexicon.neighbours_strict(word),
        forms.plural(word),
        forms.singular(word),
    )
