"""Relations that reword a turn: disfluency, speech, phrases, grammar, word order."""

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
from pytest_dstfuzz.noise.casual import respelled
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.draft import FREE, KEPT, OPEN, SHUT
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.values import spelled
from pytest_dstfuzz.perturb.words import Word, match_case, word_list, word_set
from pytest_dstfuzz.relations.checks import veto
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Begun,
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    Shown,
    TurnRelation,
)
from pytest_dstfuzz.relations.should_change.relations import unsaid
from pytest_dstfuzz.relations.should_change.sites import ValueSite, sites_of
from pytest_dstfuzz.relations.values import article_before, inflections, written
from pytest_dstfuzz.seeding import stream

#: How many rewrites of a turn are drawn.
_DRAWN: Final = 16


class Places(NamedTuple):
    """Where an utterance may be edited."""

    #: In reading order; several may be of one place.
    replacements: Sequence[Replacement]
    #: How many of them one rewrite may have.
    most: int


class Paraphrase(Relation):
    """The state stays when a turn is said in other words.

    A class that inherits from it says where a turn may be edited; each rewrite is of some of these
    places, and any part of it is a rewrite as well.
    """

    expects = "{stays}"
    edits = "own"
    english = True
    places: Callable[[Scene], Places | str]

    def places_of(self, replacements: Sequence[Replacement], most: int) -> Places | str:
        """Return these as places, or the last of the reasons where there are none."""
        return Places(replacements, most) if replacements else self.reasons[-1]

    def begin(self, scene: Scene) -> Begun:
        """Return rewrites with one edit or more, or why there is no place for one."""
        found = self.places(scene)
        if isinstance(found, str):
            return Inapplicable(found)
        return (
            scene.rewrite(chosen, about=_told(chosen), separable=True)
            for chosen in drawn(scene, found)
        )


def drawn(scene: Scene, places: Places) -> Iterator[tuple[Replacement, ...]]:
    """Yield different choices of replacements that do not touch each other."""
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
        made = tuple([one[:3] for one in choice])  # Two kinds of edit may be the same edit.
        if made not in seen:
            seen.add(made)
            yield choice


def free(scene: Scene) -> Iterator[tuple[int, Word]]:
    """Yield the words that no lock guards, with their indices.

    Words in the names of slots (`topping-capers`) are no free words, be there an ontology or not.
    """
    roles, titles = scene.guarded.roles, scene.table.titles
    for index, word in enumerate(scene.parts.words):
        if roles[index] == FREE and spelled(word.lower) not in titles:
            yield index, word


def leans_on(scene: Scene, index: int) -> bool:
    """Say whether the next word leans on the word ``index``: `I 'm`, `do n't`."""
    following = scene.parts.words[index + 1 : index + 2]
    return bool(following) and (following[0].text[0] in "'’" or following[0].lower == "n't")


def plain_gap(scene: Scene, index: int) -> bool:
    """Say whether only blanks are before the word ``index``, or after the last one."""
    gaps = scene.parts.gaps
    return not gaps[index] or gaps[index].isspace()


def begins_sentence(scene: Scene, index: int) -> bool:
    """Say whether a sentence begins with the word ``index``."""
    gap = scene.parts.gaps[index]
    return not index or any(mark in gap for mark in ".!?\n")


def without_word(scene: Scene, index: int, operator: str) -> Replacement:
    """Return how the word ``index`` is left out, with the blanks on one of its sides."""
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


_NO_PAIR: Final = "no two words beside each other that are free of locks and marks"
#: At most one pair in so many words.
_WORDS_A_PAIR: Final = 4
#: What they join says something else when they stand elsewhere.
_JOINTS: Final = word_set("and or but if then else because so than as while when unless")
#: Where one changes places with the other, a statement becomes a question: `you can`.
_SUBJECTS: Final = word_set("i you we he she they it there this that")
_HELPERS: Final = word_set(
    "will would can could shall should may might must do does did am are is was were have has had"
)
#: What is said together with the next word.
_SET: Final = word_set("thank thanks of")


@register_relation
class NeighbourSwap(Paraphrase):
    """The state stays when neighbouring words change places, one pair in four words at most.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (random swap).
    """

    name = "neighbour-swap"
    reasons = (_NO_PAIR,)

    def places(self, scene: Scene) -> Places | str:
        """Return the pairs that may change places."""
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
    """Say whether a word has its capital wherever it stands."""
    return word.lower.partition("'")[0] == "i" or word.text.isupper()


_NO_STOP_WORD: Final = "no stop word that is free of locks"
_EMPTY: Final = "nothing but stop words is said"
_MOST_STOP_WORDS: Final = 8
#: What they join or ask for is not there without them.
KEPT_STOP_WORDS: Final = word_set(
    """or nor but if than as because while until what which who whom where when why how all any
    both each few own do does did am are is"""
)


@register_relation
class StopWordDropout(Paraphrase):
    """The state stays when stop words are left out, eight at most.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (stop-word dropout).
    """

    name = "stop-word-dropout"
    source = "NLTK's English stop words (from the Snowball project, BSD), in the lexicon"
    reasons = (_EMPTY, _NO_STOP_WORD)

    def places(self, scene: Scene) -> Places | str:
        """Return the stop words that may go."""
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


_NO_WRONG_FORM: Final = "no word that is free of locks and has a wrong form"
_MOST_WRONG_FORMS: Final = 3
#: Whose forms the table has.
_OWN: Final = word_set("is are was were am be been being has have had does do did will would")


@register_relation
class GrammarErrors(Paraphrase):
    """The state stays when a word has the wrong form: three words at most.

    A wrong word for a right one by a table, an infinitive for an inflected verb, a singular for a
    plural.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (grammar errors); theirs takes the AESW data.
    """

    name = "grammar-errors"
    source = (
        "resources/relations/grammar.tsv, of this package (MIT); inflections.json, of this "
        "package's rules and the exception lists of WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NO_WRONG_FORM,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be wrong."""
        found = [
            *replacements(scene, shipped_pairs("grammar.tsv"), "wrong_word"),
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


_NO_PHRASE: Final = "no phrase of the table that is free of locks"
_MOST_PHRASES: Final = 4
_SHIPPED: Final = resources.files("pytest_dstfuzz") / "resources" / "relations"


@dataclass(frozen=True)
class PhraseTable:
    """Phrases, in lower case with blanks between their words, and what may stand for each."""

    others: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]]
    #: Words of the longest one.
    longest: int

    @classmethod
    def read(cls, text: str, where: str, *, both_ways: bool = True) -> PhraseTable:
        """Read pairs, one a line, parted by a tab; the second stands for the first.

        With ``both_ways``, the first stands for the second as well.

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
                    f"{where}, line {number}: {line!r} is no pair of two phrases parted by a tab"
                )
            for one, other in (sides, sides[::-1]) if both_ways else (sides,):
                found.setdefault(one, []).append(other)
        others = {phrase: tuple(dict.fromkeys(others)) for phrase, others in found.items()}
        return cls(others, max(map(len, others), default=0))


@cache
def shipped_pairs(name: str) -> PhraseTable:
    """Return a shipped table in which the second of a pair stands for the first."""
    path = _SHIPPED / name
    return PhraseTable.read(path.read_text(encoding="utf-8"), str(path), both_ways=False)


@cache
def phrase_table(path: Path | None = None) -> PhraseTable:
    """Return the shipped table, or that of a file of the same form.

    Raises:
        DataError: the file cannot be read, or a line of it is no pair.
    """
    shipped = _SHIPPED / "phrases.tsv"
    own = None if path is None else read_text(path, "phrase table")
    text = shipped.read_text(encoding="utf-8") if own is None else own
    return PhraseTable.read(text, str(path or shipped))


@register_relation
class PhraseTableRelation(Paraphrase):
    """The state stays when phrases give way to others that say the same.

    Source: Niu and Bansal, Adversarial over-sensitivity and over-stability strategies for dialogue
    models, CoNLL 2018 (data-level paraphrase); theirs takes PPDB.
    """

    name = "phrase-table"
    source = "resources/relations/phrases.tsv, of this package (MIT)"
    reasons = (_NO_PHRASE,)

    def places(self, scene: Scene) -> Places | str:
        """Return the phrases that may give way."""
        found = list(replacements(scene, phrase_table(), "phrase"))
        return self.places_of(found, _MOST_PHRASES)


def replacements(scene: Scene, table: PhraseTable, operator: str) -> Iterator[Replacement]:
    """Yield what a table says of the phrases of a turn, where no lock guards what differs."""
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
    """Return the edit of what differs between two phrases, if no lock guards that."""
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
    """Return how many words two phrases begin with that are the same."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_NO_MISHEARD_WORD: Final = (
    "no word that is free of locks sounds like another or is easily not heard"
)
_MOST_MISHEARD_WORDS: Final = 3


@register_relation
class Speech(Paraphrase):
    """The state stays when words are heard as others that sound alike, or small ones are not heard.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog
    (LAUG), ACL 2021 (speech errors).
    """

    name = "speech"
    source = (
        "resources/noise/speech.json: words that sound alike by CMUdict (BSD, two clauses); "
        "resources/relations/homophones.tsv and the small words: of this package (MIT)"
    )
    reasons = (_NO_MISHEARD_WORD,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may be heard as others, or not at all."""
        found = list(_misheard(scene))
        return self.places_of(found, _MOST_MISHEARD_WORDS)


@cache
def _model() -> NoiseModel:
    return NoiseModel.load("speech")


def _misheard(scene: Scene) -> Iterator[Replacement]:
    yield from replacements(scene, shipped_pairs("homophones.tsv"), "homophone")
    heard = _model().file.tables.words
    for index, word in free(scene):
        if leans_on(scene, index):
            continue
        for form, _ in respelled(word.text, heard["homophone"]):
            if not scene.guards.guard_of(form):
                yield Replacement(word.start, word.end, form, "homophone")
        if word.lower in heard["dropped"] and word.lower not in KEPT_STOP_WORDS:
            yield without_word(scene, index, "not_heard")


_NO_FREE_PLACE: Final = "no place that is free of locks for a filler or a restart"
_MOST_DISFLUENCIES: Final = 3
#: Of the lexicon's fillers, those that nobody could take for an answer or a correction: where
#: `i mean` is, something is put right.
_ANYWHERE: Final = ("um", "uh", "er", "erm", "hmm")
_FIRST: Final = (*_ANYWHERE, "well")
#: Words that are said twice where somebody begins again, at most.
_AGAIN: Final = 3
#: Repairs of one slot.
_REPAIRS: Final = 2
_ARTICLES: Final = word_set("a an")
_THANKS: Final = word_set("thank")


@register_relation
class Disfluency(Paraphrase):
    """The state stays when somebody speaks with fillers, begins again, or puts a slip right.

    A repair says another value first and then, after `no`, the one that was said: the last one
    counts.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog
    (LAUG), ACL 2021 (disfluency).
    """

    name = "disfluency"
    source = "fillers of the lexicon, of this package (MIT)"
    reasons = (_NO_FREE_PLACE,)

    def places(self, scene: Scene) -> Places | str:
        """Return where a filler may stand, and what may be said twice."""
        found = [*_fillers(scene), *_restarts(scene)]
        return self.places_of(found, _MOST_DISFLUENCIES)

    def begin(self, scene: Scene) -> Begun:
        """Return rewrites with fillers and restarts, and one for each repair."""
        begun = super().begin(scene)
        repairs = list(_repairs(scene))
        if isinstance(begun, Inapplicable):
            return repairs or begun
        return chain(begun, repairs)  # type: ignore[arg-type]  # it gives nothing but rewrites


def _fillers(scene: Scene) -> Iterator[Replacement]:
    """Yield one filler for each place, drawn."""
    words, states, reasons = scene.parts.words, scene.guarded.open, scene.guarded.reasons
    for index, word in enumerate(words):
        first = begins_sentence(scene, index)
        fillers = [one for one in (_FIRST if first else _ANYWHERE) if one in scene.lexicon.fillers]
        if not fillers:
            continue
        place = int(scene.rng.integers(len(fillers)))
        if states[index] == SHUT or scene.guards.guard_of(fillers[place]):
            continue
        # A cue and its value stay together: `to Oslo`.
        if index and (words[index - 1].lower in _THANKS or (reasons[index - 1] and reasons[index])):
            continue
        filler = f"{fillers[place].capitalize()}," if first else fillers[place]
        yield Replacement(word.start, word.start, f"{filler} ", "filler")


def _restarts(scene: Scene) -> Iterator[Replacement]:
    """Yield the first words of each sentence, said twice."""
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
    """Yield the turn with another value before one that it gives: `sunday, no, friday`."""
    for site in sites_of(scene).found:
        for value in islice(unsaid(scene, site.slot, site.value), _REPAIRS):
            text = _other(scene, site, value)
            if text:
                start = site.mention.start
                one = Replacement(start, start, f"{text}, no, ", "repair")
                yield scene.rewrite([one], about=f"{text}, no, {site.surface}")


def _other(scene: Scene, site: ValueSite, value: str) -> str | None:
    """Return another value as the old one is written, if the article before it fits."""
    first = site.mention.first
    if first != site.mention.last and site.kind != "time":
        return None
    if site.mention.spelled == "other" or len(value.split()) > 1:
        return None
    before = scene.parts.words[first - 1].lower if first else ""
    text = written(site.kind, value, site.surface)
    if text is None or (before in _ARTICLES and before != article_before(text)):
        return None
    return None if scene.guarded.open[first] == SHUT else text


_SILENT: Final = "the turn says nothing"
_NO_BLOCK: Final = "no sentence of the blocks is free of locks"
#: Sentences of one block, at most.
_LONGEST: Final = 3
#: Between two sentences, with the blank after the mark.
_BOUND: Final = re.compile(r"(?<![.!?])[.!?]+[\"'”’]?\s+(?=\S)")


@register_relation
class PlugIn(Relation):
    """The state stays when the user says something about something else as well.

    One to three sentences are put before the first sentence of the turn, between two, or after the
    last one. First each of these places is tried, then again that at which the tracker became the
    least sure.

    Source: Pick-n-Plug, which picks block and place without a search.
    """

    name = "plug-in"
    expects = "{stays}"
    source = "resources/relations/blocks.txt, of this package (MIT)"
    edits = "own"
    english = True
    adaptive = True
    reasons = (_SILENT, _NO_BLOCK)

    def begin(self, scene: Scene) -> Begun:
        """Return the search for the place of a block."""
        if not scene.parts.words:
            return Inapplicable(_SILENT)
        guard_of = scene.guards.guard_of
        words = scene.table.words
        blocks = [
            one
            for one in _sentences()
            if not any(guard_of(word) or spelled(word) in words for word in word_list(one))
        ]
        return _PlaceSearch(scene, blocks) if blocks else Inapplicable(_NO_BLOCK)


class _PlaceSearch(TurnRelation):
    """Tries each place once, then the one that did most, each time with another block."""

    def __init__(self, scene: Scene, sentences: Sequence[str]) -> None:
        self._scene = scene
        self._sentences = sentences
        self._seed = int(scene.rng.integers(1 << 62))
        user = scene.turn.user
        bounds = [match.end() for match in _BOUND.finditer(user)]
        self._places = (0, *filter(self._fits, bounds), len(user))

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite:
        """Return rewrite ``number``, each time with a block that is drawn."""
        rng = stream(self._seed, number, draw)
        wanted = min(int(rng.integers(1, _LONGEST + 1)), len(self._sentences))
        chosen = rng.choice(len(self._sentences), wanted, replace=False).tolist()
        return self._plugged(self._place(number, seen), [self._sentences[one] for one in chosen])

    def _fits(self, place: int) -> bool:
        """Say whether it is the end of a sentence: not that of `St.` in a name, or `p.m.`."""
        one = self._plugged(place, self._sentences[:1])
        return not veto(self._scene, one.seen.user, one.edits)

    def _place(self, number: int, seen: Sequence[Shown]) -> int:
        """Return the next place that was not tried, or the one where the tracker wavered most."""
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


_NO_MASKED_WORD: Final = (
    "no word that is free of locks and for which the model proposes one like it"
)
_MOST_MASKED_WORDS: Final = 2
#: Cosine from which two words are near to each other.
_NEAR: Final = 0.6
_CONTENT: Final = frozenset({"noun", "verb", "adj", "adv"})
#: Near to each other, and not the same where somebody asks for something.
_APART: Final = frozenset({("get", "give"), ("give", "get"), ("try", "check"), ("met", "answered")})


@register_relation
class MaskedReplacement(Paraphrase):
    """The state stays when a word gives way to one that fits in its place and is near to it.

    Proposals for a place are those of the lexicon's masked language model, and of those only the
    ones of the same part of speech that are neighbours of the word and none of its antonyms.
    """

    name = "masked-replacement"
    source = (
        "proposals and neighbours in the lexicon, made from MultiWOZ 2.1, training split alone; "
        "antonyms from WordNet 3.0 (WordNet licence)"
    )
    reasons = (_NO_MASKED_WORD,)

    def places(self, scene: Scene) -> Places | str:
        """Return the words that may give way."""
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
    # A form of the same verb is an error of grammar, which is another relation.
    near = {other for other in near if (verb(other) or other) != (verb(word.lower) or word.lower)}
    if not near:
        return
    left = words[index - 1].lower if index else ""
    right = words[index + 1].lower if index + 1 < len(words) else ""
    for other in lexicon.insertions(left, right):
        fits = other in near and lexicon.majority_pos(other) == pos
        # Near nouns are mostly two things of one kind: `phone` and `postcode`.
        if fits and (pos != "noun" or _means(scene.lexicon, word.lower, other)):
            if (word.lower, other) in _APART or scene.guards.guard_of(other):
                continue
            yield Replacement(word.start, word.end, match_case(word.text, other), "masked")


def _means(lexicon: Lexicon, word: str, other: str) -> bool:
    """Say whether two nouns are synonyms, or forms of one noun."""
    forms = inflections()
    synonyms = (*lexicon.synonyms(word), *lexicon.synonyms_all(word, "noun"))
    return other in (
        *synonyms,
        *lexicon.neighbours_strict(word),
        forms.plural(word),
        forms.singular(word),
    )
