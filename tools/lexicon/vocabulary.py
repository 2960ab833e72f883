"""Decides which strings are words, how frequent they are, and their majority part of speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.lexicon.inflect import FORMS, Inflector
from tools.lexicon.wndb import PARTS_OF_SPEECH, WordNet

#: A training word of this count is a word, unless it is a known misspelling.
MIN_TRAINING_COUNT = 5
#: Shorter lemmas that were never tagged are mostly symbols of elements and units.
MIN_UNTAGGED_LENGTH = 4
#: A form of a word tagged this many times as often as the form itself belongs to that word.
FORM_FACTOR = 5


def plain(word: str) -> bool:
    """Return whether a string has only the letters a to z."""
    return word.isascii() and word.isalpha() and word.islower()


@dataclass(frozen=True, slots=True)
class WordList:
    """Words with their parts of speech, and the training split's frequencies."""

    #: word -> majority part of speech (or ``function``, or ``""`` when unknown).
    pos: Mapping[str, str]
    #: base word -> share of its tags that have the majority part of speech.
    share: Mapping[str, float]
    #: Training words by falling frequency, those seen at least three times.
    ranked: tuple[str, ...]
    training: Counter[str]


def build_vocabulary(
    wordnet: WordNet,
    training: Counter[str],
    function_words: Iterable[str],
    corrections: Mapping[str, str],
    misspelled: Iterable[str],
    extra_words: Iterable[str] = (),
) -> WordList:
    """Compile the word list.

    Args:
        wordnet: the dictionary.
        training: counts of the tokens of the training split.
        function_words: closed classes, never a content word.
        corrections: word -> its majority part of speech in requests.
        misspelled: known misspellings, which the training split also has.
        extra_words: further words, with WordNet's part of speech where it has one.
    """
    pos, share = _lemmas(wordnet, training, corrections)
    inflected = _inflected(wordnet, pos, share)
    # ``leaving`` is a noun in WordNet too; a form far more frequent than that is the verb's.
    for form, (part, count) in inflected.items():
        own = sum(wordnet.count(form, p) for p in PARTS_OF_SPEECH)
        if form not in pos or (form not in corrections and count >= FORM_FACTOR * max(1, own)):
            pos[form] = part
            share.pop(form, None)
    bad = frozenset(misspelled)
    for word, count in training.items():
        if count >= MIN_TRAINING_COUNT and plain(word) and word not in bad:
            pos.setdefault(word, "")
    for word in extra_words:
        parts = (p for p in PARTS_OF_SPEECH if (word, p) in wordnet.senses)
        pos.setdefault(word, next(parts, ""))
    pos.update(dict.fromkeys(function_words, "function"))
    ranked = sorted((w for w, n in training.items() if n >= 3), key=lambda w: (-training[w], w))
    return WordList(pos, share, tuple(ranked), training)


def _lemmas(
    wordnet: WordNet, training: Counter[str], corrections: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, float]]:
    """Return the majority part of speech of every base word, and its share of the tags.

    Words that were never tagged have no share: they are words, but get no entries.
    """
    pos: dict[str, str] = {}
    share: dict[str, float] = {}
    for lemma in sorted({lemma for lemma, _ in wordnet.senses if plain(lemma)}):
        counts = {p: wordnet.count(lemma, p) for p in PARTS_OF_SPEECH}
        known = [p for p in PARTS_OF_SPEECH if (lemma, p) in wordnet.senses]
        if any(counts.values()) or training[lemma] >= MIN_TRAINING_COUNT:
            pos[lemma] = corrections.get(lemma) or max(known, key=lambda p: counts[p])
            total = sum(counts.values())
            certain = lemma in corrections or not total
            share[lemma] = 1.0 if certain else counts[pos[lemma]] / total
        elif len(lemma) >= MIN_UNTAGGED_LENGTH and not _proper(wordnet, lemma, known):
            pos[lemma] = known[0]
    return pos, share


def _inflected(
    wordnet: WordNet, pos: Mapping[str, str], share: Mapping[str, float]
) -> dict[str, tuple[str, int]]:
    """Return form -> part of speech and tag count of the base it most likely belongs to."""
    inflector = Inflector(wordnet.irregular)
    table: dict[str, tuple[str, int]] = {}
    for lemma in share:
        for part in PARTS_OF_SPEECH:
            count = wordnet.count(lemma, part) + (pos[lemma] == part)
            if (lemma, part) not in wordnet.senses or not count:
                continue
            for name in FORMS[part]:
                form = inflector.form(lemma, part, name)
                if form and form != lemma and count > table.get(form, ("", 0))[1]:
                    table[form] = (part, count)
    for part in PARTS_OF_SPEECH:
        for form in sorted(filter(plain, wordnet.irregular[part])):
            table.setdefault(form, (part, 0))
    return table


def _proper(wordnet: WordNet, lemma: str, parts: list[str]) -> bool:
    """Return whether a lemma is always spelled with capitals, as a name is."""
    return not any(
        lemma in wordnet.synsets[synset].words
        for part in parts
        for synset in wordnet.senses[lemma, part]
    )
