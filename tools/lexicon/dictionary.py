"""Synonyms and antonyms from WordNet: a full table and a strict one for review.

The profile ``strict`` needs few good synonyms, because a variant must keep its meaning in at least
95 of 100 cases. A pair is in the strict table if all of this holds: the meaning is the first sense
of the word's majority part of speech, and one of the first two senses of the synonym. The word
occurs in the training split. The synonym is tagged in WordNet's corpus, or frequent in that split.
The person who read the table did not strike the pair out. Nobody read the pairs of words that the
training split lacks, and of a sample one in four was wrong. So these words have only synonyms that
the reader added (``affair`` for ``matter``, ``baby`` for ``babe``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.lexicon.inflect import FORMS, Inflector
from tools.lexicon.vocabulary import WordList, plain
from tools.lexicon.wndb import PARTS_OF_SPEECH, SynsetId, WordNet

#: A word outside the training split gets entries when it was tagged this often.
MIN_TAGS = 5
#: A sense is frequent when it has this share of the tags of its lemma and part of speech.
MIN_SENSE_SHARE = 0.1
#: What the strict table asks of the tags: of the part of speech, and of the first sense.
MIN_POS_SHARE, MIN_FIRST_SENSE_SHARE = 0.7, 0.5
#: What it asks of a synonym: tags in WordNet's corpus, or occurrences in the training split.
MIN_SYNONYM_TAGS, MIN_SYNONYM_COUNT = 3, 5
MAX_SYNONYMS = 8

Table = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Builds tables over one WordNet and one vocabulary.

    Args:
        wordnet: the database.
        vocabulary: the words that get entries, and their parts of speech.
        closed: words that the strict table neither replaces nor proposes.
    """

    wordnet: WordNet
    vocabulary: WordList
    closed: frozenset[str]

    def bases(self) -> list[str]:
        """Return the base words that get entries, sorted."""
        net = self.wordnet
        return sorted(
            lemma
            for lemma in self.vocabulary.share
            if self.vocabulary.training[lemma] >= 3
            or sum(net.count(lemma, pos) for pos in PARTS_OF_SPEECH) >= MIN_TAGS
        )

    def synonyms_all(self) -> dict[str, dict[str, list[str]]]:
        """Return word -> part of speech -> synonyms in all frequent senses, main part first."""
        table: dict[str, dict[str, list[str]]] = {}
        for base in self.bases():
            first = self.vocabulary.pos[base]
            for pos in sorted(PARTS_OF_SPEECH, key=lambda p: (p != first, p)):
                found = [
                    word
                    for synset in self._frequent_senses(base, pos)
                    for word in self._others(base, synset)
                    if word in self.vocabulary.share
                ]
                found = list(dict.fromkeys(found))[:MAX_SYNONYMS]
                if found:
                    self._enter(table, base, pos, found)
        return table

    def synonyms_strict(self, exclusions: Table, additions: Mapping[str, Table]) -> Table:
        """Return word -> synonyms that keep the meaning, the reader's additions first.

        Args:
            exclusions: word -> synonyms struck out by the review; ``*`` strikes all, and
                ``*: word`` strikes a word out wherever it is proposed.
            additions: part of speech -> base word -> synonyms added by the review, whose
                inflected forms follow; under ``as is`` they are taken as written.
        """
        never = {*self.closed, *exclusions.get("*", [])}
        proposed: dict[str, dict[str, list[str]]] = {}
        for base in self.bases():
            struck = {*never, *exclusions.get(base, [])}
            if self.vocabulary.training[base] < 3 or base in never or "*" in struck:
                continue
            found = [word for word in self._strict(base) if word not in struck]
            if found:
                self._enter(proposed, base, self.vocabulary.pos[base], found)
        added: dict[str, dict[str, list[str]]] = {}
        for pos, entries in additions.items():
            for word, others in entries.items():
                self._enter(added, word, pos, others)
        table: Table = {}
        for word in sorted({*proposed, *added}):
            # The review names inflected forms too.
            struck = {*never, *exclusions.get(word, [])}
            others = (
                [] if "*" in struck else [o for e in proposed.get(word, {}).values() for o in e]
            )
            kept = [other for other in others if other not in struck and word not in never]
            own = [other for entry in added.get(word, {}).values() for other in entry]
            if own or kept:
                table[word] = list(dict.fromkeys([*own, *kept]))
        return table

    def antonyms(self, own: Table) -> Table:
        """Return word -> antonyms in any sense, also for inflected forms.

        The table is symmetric.
        """
        table: dict[str, dict[str, list[str]]] = {}
        plain_bases = [word for word in self.bases() if plain(word)]
        for base in plain_bases:
            found = sorted(word for word in self.wordnet.antonyms(base) if plain(word))
            for pos in PARTS_OF_SPEECH:
                if found and (base, pos) in self.wordnet.senses:
                    self._enter(table, base, pos, found)
        pairs = {
            (word, other) for word, entry in table.items() for e in entry.values() for other in e
        }
        pairs |= {(word, other) for word, others in own.items() for other in others}
        merged: dict[str, set[str]] = {}
        for word, other in pairs:
            merged.setdefault(word, set()).add(other)
            merged.setdefault(other, set()).add(word)
        return {word: sorted(others - {word}) for word, others in sorted(merged.items())}

    def _frequent_senses(self, lemma: str, pos: str) -> Iterable[SynsetId]:
        senses = self.wordnet.senses.get((lemma, pos), ())
        least = max(1.0, MIN_SENSE_SHARE * self.wordnet.count(lemma, pos))
        for number, synset in enumerate(senses):
            if number == 0 or self.wordnet.sense_count(lemma, synset) >= least:
                yield synset

    def _others(self, lemma: str, synset: SynsetId) -> list[str]:
        """Return the other single, lower-case words of a synset, the most frequent first."""
        words = [w for w in self.wordnet.synsets[synset].words if plain(w) and w != lemma]
        return sorted(words, key=lambda w: -self.wordnet.sense_count(w, synset))

    def _strict(self, base: str) -> list[str]:
        net, pos = self.wordnet, self.vocabulary.pos[base]
        if self.vocabulary.share[base] < MIN_POS_SHARE or not net.senses.get((base, pos)):
            return []
        first = net.senses[base, pos][0]
        total = net.count(base, pos)
        if total and net.sense_count(base, first) < MIN_FIRST_SENSE_SHARE * total:
            return []
        opposite = net.antonyms(base)
        return [
            word
            for word in self._others(base, first)
            if self.vocabulary.pos.get(word) == pos
            and net.sense_number(word, first) <= 2
            and word not in opposite
            and (
                net.count(word, pos) >= MIN_SYNONYM_TAGS
                or self.vocabulary.training[word] >= MIN_SYNONYM_COUNT
            )
        ]

    def _enter(
        self, table: dict[str, dict[str, list[str]]], base: str, pos: str, others: list[str]
    ) -> None:
        """Add a base word and its regular forms to a table, with the same forms of the synonyms."""
        table.setdefault(base, {}).setdefault(pos, [])
        table[base][pos] = list(dict.fromkeys([*table[base][pos], *others]))
        inflector = Inflector(self.wordnet.irregular)
        for name in FORMS.get(pos, ()):
            form = inflector.form(base, pos, name)
            # A form that is an entry of its own (``meeting``) is not a form of this word here.
            if form is None or form in self.vocabulary.share:
                continue
            forms = [inflector.form(other, pos, name) for other in others]
            found = [f for f in forms if f and f in self.vocabulary.pos and f != form]
            if found:
                entry = table.setdefault(form, {}).setdefault(pos, [])
                entry.extend(f for f in found if f not in entry)
