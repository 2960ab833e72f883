"""The compiled lexicon: all word tables for transformations and locks.

``python -m tools.lexicon.build`` compiles it, and it ships as one file,
``resources/lexicon/lexicon.json.gz``. The README next to that file lists the sources and their
licences. Reading it needs only the standard library.

Every look-up ignores case and returns lower case. The caller restores the case of the text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pytest_dstfuzz.errors import DataError

#: Incremented whenever the layout of the compiled file changes.
FORMAT = 1

#: Stands for "any word" in the keys of the insertion table.
ANY = "*"

#: Part of speech -> its one-letter key in the compiled file.
POS_KEYS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r", "function": "f"}
_POS_NAMES = {key: name for name, key in POS_KEYS.items()}


def context_key(left: str, right: str) -> str:
    """Return the key of the gap between two words in the insertion table.

    Only the part of a contraction next to the gap counts, because the training text splits
    contractions. For ``it's``, this is ``s`` on the left of a gap and ``it`` on the right. ``""``
    stands for the start or the end of the utterance and stays empty.
    """
    before = left.lower().replace("\u2019", "'").rpartition("'")[2]
    after = right.lower().replace("\u2019", "'").partition("'")[0]
    return f"{before} {after}"


# The interface of a source of candidates. The compiled lexicon and the user's sources implement it.


class _Source(Protocol):
    @property
    def name(self) -> str:
        """A name for the source and its content. It is part of the lexicon's fingerprint."""


@runtime_checkable
class SynonymSource(_Source, Protocol):
    """A source of dictionary synonyms."""

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return synonyms of ``word``, best first, lower-cased, in a deterministic order."""


@runtime_checkable
class NeighbourSource(_Source, Protocol):
    """A source of neighbours in an embedding space."""

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return neighbours of ``word`` with their cosine similarity, nearest first."""


@runtime_checkable
class InsertionSource(_Source, Protocol):
    """A source of words that fit between two words."""

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return words that fit between ``left`` and ``right``, likeliest first.

        ``""`` stands for the start or the end of the utterance.
        """


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and characters for the edits, and the words that no edit may touch.

    Build one with :func:`load_lexicon`. :meth:`with_sources` replaces the compiled tables by the
    user's own sources.
    """

    #: All English stop words of NLTK. The caller locks negations and cues among them.
    stop_words: tuple[str, ...]
    #: Words that can be inserted into a sentence without adding meaning.
    fillers: tuple[str, ...]
    emoji: tuple[str, ...]
    #: Words and phrases that reverse the meaning of a statement.
    negations: tuple[str, ...]
    #: Expressions for "any value will do".
    dontcare: tuple[str, ...]
    #: Words and phrases that name the purpose of a value.
    cues: tuple[str, ...]
    number_words: tuple[str, ...]
    weekdays: tuple[str, ...]
    #: Words that are values in most domains: months, directions, prices, sizes, colours.
    value_words: tuple[str, ...]
    #: Words that refer to a value mentioned before.
    references: tuple[str, ...]
    #: Words that a language model may insert in ``strict``.
    safe_insertions: tuple[str, ...]
    #: Correct form -> common misspellings that are not words.
    misspellings: Mapping[str, tuple[str, ...]]
    #: Letter or digit -> its neighbours on a QWERTY keyboard.
    keyboard: Mapping[str, tuple[str, ...]]
    #: Letter -> characters that look like it.
    look_alikes: Mapping[str, tuple[str, ...]]
    #: SHA-256 of the compiled file and, if there are any, the names of the user's own sources.
    fingerprint: str
    _tables: Mapping[str, Any]
    #: Pairs of phrases that the user calls synonyms.
    own_synonyms: tuple[tuple[str, str], ...] = ()
    _synonym_source: SynonymSource | None = None
    _neighbour_source: NeighbourSource | None = None
    _insertion_source: InsertionSource | None = None

    @cached_property
    def _words(self) -> dict[str, str]:
        """Every known English word -> the key of its majority part of speech."""
        words: dict[str, str] = {}
        for key, text in self._tables["words"].items():
            words.update(dict.fromkeys(text.split(" "), key))
        return words

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {word: rank for rank, word in enumerate(self._tables["ranks"].split(" "))}

    @cached_property
    def _safe(self) -> frozenset[str]:
        return frozenset(self.safe_insertions)

    def is_word(self, text: str) -> bool:
        """Return whether ``text`` is an English word, not a misspelling."""
        return text.lower() in self._words

    def majority_pos(self, word: str) -> str | None:
        """Return ``noun``, ``verb``, ``adj``, ``adv`` or ``function``, or ``None`` if unknown.

        The parts of speech come from WordNet's tag counts, with function words added and a few
        corrections for requests (``book`` is a verb).
        """
        return _POS_NAMES.get(self._words.get(word.lower(), ""))

    def frequency_rank(self, word: str) -> int | None:
        """Return the rank in the MultiWOZ training split, 0 = most frequent, or ``None``."""
        return self._ranks.get(word.lower())

    @property
    def frequent_words(self) -> Collection[str]:
        """The words with a frequency rank, in order."""
        return self._ranks.keys()

    @cached_property
    def words_with_pos(self) -> frozenset[str]:
        """The known words that have a part of speech. Some words without are frequent slips."""
        return frozenset(word for word, key in self._words.items() if key in _POS_NAMES)

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return the reviewed synonyms of ``word`` that keep the meaning of a request.

        Args:
            word: a single word in any inflection.
            pos: ``noun``, ``verb``, ``adj`` or ``adv`` to restrict the part of speech. The table
                only has the word's majority part of speech.
        """
        if self._synonym_source is not None:
            return self._synonym_source.synonyms(word, pos)
        if pos is not None and self.majority_pos(word) != pos:
            return ()
        return self._look_up("synonyms", word)

    def synonyms_all(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return unreviewed synonyms in every frequent sense of ``word``.

        ``pos`` restricts the part of speech. By default, the most frequent part comes first.
        """
        if self._synonym_source is not None:
            return self._synonym_source.synonyms(word, pos)
        table: Mapping[str, str] = self._tables["synonyms_all"].get(word.lower(), {})
        keys = [POS_KEYS[pos]] if pos in POS_KEYS else list(table)
        found = (candidate for key in keys for candidate in table.get(key, "").split())
        return tuple(dict.fromkeys(found))

    def antonyms(self, word: str) -> tuple[str, ...]:
        """Return the antonyms of ``word`` in any sense.

        Edits must never insert them for the word.
        """
        return self._look_up("antonyms", word)

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return the nearest words in the embedding space with their cosine, without review."""
        if self._neighbour_source is not None:
            return self._neighbour_source.neighbours(word)
        parts = self._look_up("neighbours", word)
        return tuple(
            (neighbour, float(cosine))
            for neighbour, cosine in zip(parts[::2], parts[1::2], strict=True)
        )

    def neighbours_strict(self, word: str) -> tuple[str, ...]:
        """Return the reviewed neighbours of ``word`` that keep the meaning of a request.

        From a user's own source, only synonyms and neighbours in the reviewed table are returned.
        In embedding spaces, opposites such as north and south are neighbours, too.
        """
        reviewed = self._look_up("neighbours_strict", word)
        if self._neighbour_source is None:
            return reviewed
        agreed = {*reviewed, *self.synonyms(word)}
        near = (neighbour for neighbour, _ in self._neighbour_source.neighbours(word))
        return tuple(neighbour for neighbour in near if neighbour in agreed)

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return words that a masked language model proposes between two words.

        If the pair is unknown, use the left word alone, then the right word alone, then any
        context. ``""`` is the start or the end of the utterance.
        """
        if self._insertion_source is not None:
            return self._insertion_source.insertions(left, right)
        return self._insertions("insertions", left, right)

    def insertions_strict(self, left: str, right: str) -> tuple[str, ...]:
        """Return only proposals that add no slot value: politeness, emphasis, fillers."""
        if self._insertion_source is not None:
            proposals = self._insertion_source.insertions(left, right)
            return tuple(word for word in proposals if word in self._safe)
        return self._insertions("insertions_strict", left, right)

    def with_sources(
        self,
        synonyms: SynonymSource | None = None,
        neighbours: NeighbourSource | None = None,
        insertions: InsertionSource | None = None,
    ) -> Lexicon:
        """Return a lexicon that uses the given sources instead of the compiled tables."""
        given = [source for source in (synonyms, neighbours, insertions) if source is not None]
        if not given:
            return self
        identity = "\n".join([self.fingerprint, *(source.name for source in given)])
        return replace(
            self,
            fingerprint=hashlib.sha256(identity.encode()).hexdigest(),
            _synonym_source=synonyms or self._synonym_source,
            _neighbour_source=neighbours or self._neighbour_source,
            _insertion_source=insertions or self._insertion_source,
        )

    def with_synonyms(self, pairs: Iterable[tuple[str, str]]) -> Lexicon:
        """Return a lexicon with pairs of phrases for the relation ``synonyms``."""
        own = (*self.own_synonyms, *pairs)
        if own == self.own_synonyms:
            return self
        identity = json.dumps([self.fingerprint, own])
        fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        return replace(self, fingerprint=fingerprint, own_synonyms=own)

    def _look_up(self, table: str, word: str) -> tuple[str, ...]:
        entry: str = self._tables[table].get(word.lower(), "")
        return tuple(entry.split())

    def _insertions(self, name: str, left: str, right: str) -> tuple[str, ...]:
        table: Mapping[str, str] = self._tables[name]
        key = context_key(left, right)
        before, after = key.split(" ")
        for candidate in (key, f"{before} {ANY}", f"{ANY} {after}", f"{ANY} {ANY}"):
            found = table.get(candidate)
            if found:
                return tuple(found.split(" "))
        return ()


#: The fields of :class:`Lexicon` that are plain lists in the compiled file, and the fields that map
#: a key to several candidates.
LISTS = tuple(item.name for item in fields(Lexicon) if item.type == "tuple[str, ...]")
MAPPINGS = tuple(
    item.name for item in fields(Lexicon) if item.type == "Mapping[str, tuple[str, ...]]"
)


def load_lexicon(path: Path | None = None) -> Lexicon:
    """Return the lexicon in ``path``, or the shipped lexicon, which each process reads only once.

    Raises:
        DataError: If ``path`` is not a compiled lexicon of this format.
    """
    return _shipped() if path is None else _read(path)


@cache
def _shipped() -> Lexicon:
    return _read(None)


def _read(path: Path | None) -> Lexicon:
    shipped = resources.files("pytest_dstfuzz") / "resources" / "lexicon" / "lexicon.json.gz"
    try:
        data = shipped.read_bytes() if path is None else path.read_bytes()
        compiled = json.loads(gzip.decompress(data))
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read the lexicon {path or shipped}: {error}") from error
    if not isinstance(compiled, dict) or compiled.get("format") != FORMAT:
        raise DataError(f"{path or shipped} is not a compiled lexicon of format {FORMAT}")
    words: dict[str, Any] = {name: tuple(compiled["lists"][name]) for name in LISTS}
    for name in MAPPINGS:
        entries: dict[str, str] = compiled["mappings"][name]
        words[name] = {key: tuple(entry.split(" ")) for key, entry in entries.items()}
    return Lexicon(
        **words,
        fingerprint=hashlib.sha256(data).hexdigest(),
        _tables=compiled["tables"],
    )
