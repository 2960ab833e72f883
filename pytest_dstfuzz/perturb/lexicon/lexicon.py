"""The compiled lexicon: every table that the transformations and the locks look words up in.

It is made by ``python -m tools.lexicon.build`` and shipped as one file,
``resources/lexicon/lexicon.json.gz``; the README beside that file names the sources and
their licences. Only the standard library is needed to read it.

Every look-up ignores case and answers in lower case; restoring the case of the text is the
caller's work.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pytest_dstfuzz.errors import DataError

#: Raised whenever the layout of the compiled file changes.
FORMAT = 1

#: Stands for "any word" in the keys of the insertion table.
ANY = "*"

#: Part of speech -> its one-letter key in the compiled file.
POS_KEYS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r", "function": "f"}
_POS_NAMES = {key: name for name, key in POS_KEYS.items()}


def context_key(left: str, right: str) -> str:
    """Return the key of a place between two words in the insertion table.

    A contraction counts by the part that touches the place (``it's`` is ``s`` to its right
    and ``it`` to its left), because the training text parts it there. ``""``, the start or
    the end of the utterance, stays empty.
    """
    before = left.lower().replace("\u2019", "'").rpartition("'")[2]
    after = right.lower().replace("\u2019", "'").partition("'")[0]
    return f"{before} {after}"


# What a source of candidates offers, the compiled lexicon and the user's own alike.


class _Source(Protocol):
    @property
    def name(self) -> str:
        """Identifies the source and its content; goes into the lexicon's fingerprint."""


@runtime_checkable
class SynonymSource(_Source, Protocol):
    """Where dictionary synonyms come from."""

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return synonyms of ``word``, best first, lower-cased, in a deterministic order."""


@runtime_checkable
class NeighbourSource(_Source, Protocol):
    """Where neighbours in an embedding space come from."""

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return neighbours of ``word`` with their cosine, nearest first."""


@runtime_checkable
class InsertionSource(_Source, Protocol):
    """Where a word that fits between two words comes from."""

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return words that fit between ``left`` and ``right``, likeliest first.

        ``""`` stands for the start or the end of the utterance.
        """


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and characters to perturb with, and the words that must be left alone.

    Build one with :func:`load_lexicon`; :meth:`with_sources` puts the user's own sources in
    the place of the compiled tables.
    """

    #: NLTK's English stop words, whole; negations and cues among them are the caller's to lock.
    stop_words: tuple[str, ...]
    #: Words that may be dropped into a sentence without saying anything.
    fillers: tuple[str, ...]
    emoji: tuple[str, ...]
    #: Words and phrases that turn a statement round.
    negations: tuple[str, ...]
    #: Expressions that say that any value will do.
    dontcare: tuple[str, ...]
    #: Words and phrases that say what a value is for.
    cues: tuple[str, ...]
    number_words: tuple[str, ...]
    weekdays: tuple[str, ...]
    #: Words that are values in most domains: months, directions, prices, sizes, colours.
    value_words: tuple[str, ...]
    #: Words that point to a value said before.
    references: tuple[str, ...]
    #: Words that a language model may insert in ``strict``.
    safe_insertions: tuple[str, ...]
    #: Correct form -> common misspelled forms, none of them a word.
    misspellings: Mapping[str, tuple[str, ...]]
    #: Letter or digit -> its neighbours on a QWERTY keyboard.
    keyboard: Mapping[str, tuple[str, ...]]
    #: Letter -> characters that look like it.
    look_alikes: Mapping[str, tuple[str, ...]]
    #: SHA-256 of the compiled file, and of the names of the user's own sources if any.
    fingerprint: str
    _tables: Mapping[str, Any]
    _synonym_source: SynonymSource | None = None
    _neighbour_source: NeighbourSource | None = None
    _insertion_source: InsertionSource | None = None

    @cached_property
    def _words(self) -> dict[str, str]:
        """Every English word known -> the key of its majority part of speech."""
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
        """Whether ``text`` is an English word: then it is no typo of another."""
        return text.lower() in self._words

    def majority_pos(self, word: str) -> str | None:
        """Return ``noun``, ``verb``, ``adj``, ``adv`` or ``function``; ``None`` when unknown.

        From WordNet's tag counts, with closed classes and a few corrections for requests
        (``book`` is a verb here) of our own.
        """
        return _POS_NAMES.get(self._words.get(word.lower(), ""))

    def frequency_rank(self, word: str) -> int | None:
        """Return the rank (0 = most frequent) in the MultiWOZ training split, if any."""
        return self._ranks.get(word.lower())

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return the reviewed synonyms of ``word`` that keep a request's meaning.

        Args:
            word: a single word in any inflection.
            pos: ``noun``, ``verb``, ``adj`` or ``adv`` to ask for that part of speech only;
                the word's majority part of speech is the only one in the table.
        """
        if self._synonym_source is not None:
            return self._synonym_source.synonyms(word, pos)
        if pos is not None and self.majority_pos(word) != pos:
            return ()
        return self._look_up("synonyms", word)

    def synonyms_all(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return synonyms in every frequent sense of ``word``, unreviewed.

        With ``pos``, of that part of speech alone; without, of the majority one first.
        """
        if self._synonym_source is not None:
            return self._synonym_source.synonyms(word, pos)
        table: Mapping[str, str] = self._tables["synonyms_all"].get(word.lower(), {})
        keys = [POS_KEYS[pos]] if pos in POS_KEYS else list(table)
        found = (candidate for key in keys for candidate in table.get(key, "").split())
        return tuple(dict.fromkeys(found))

    def antonyms(self, word: str) -> tuple[str, ...]:
        """Return the antonyms of ``word`` in any sense: what it must never be replaced by."""
        return self._look_up("antonyms", word)

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return the nearest words in the embedding space with their cosine, unreviewed."""
        if self._neighbour_source is not None:
            return self._neighbour_source.neighbours(word)
        parts = self._look_up("neighbours", word)
        return tuple(
            (neighbour, float(cosine))
            for neighbour, cosine in zip(parts[::2], parts[1::2], strict=True)
        )

    def neighbours_strict(self, word: str) -> tuple[str, ...]:
        """Return the reviewed neighbours of ``word`` that keep a request's meaning.

        Of a source of the user's own, only the neighbours that a synonym source or the
        compiled review agrees with: distribution alone calls north and south neighbours.
        """
        reviewed = self._look_up("neighbours_strict", word)
        if self._neighbour_source is None:
            return reviewed
        agreed = {*reviewed, *self.synonyms(word)}
        near = (neighbour for neighbour, _ in self._neighbour_source.neighbours(word))
        return tuple(neighbour for neighbour in near if neighbour in agreed)

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return words that a masked language model proposes between two words.

        Backs off to the left word alone, the right word alone, and to anywhere. ``""`` is
        the start or the end of the utterance.
        """
        if self._insertion_source is not None:
            return self._insertion_source.insertions(left, right)
        return self._insertions("insertions", left, right)

    def insertions_strict(self, left: str, right: str) -> tuple[str, ...]:
        """Return the proposals that carry no slot content: politeness, emphasis, fillers."""
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
        """Return a lexicon that asks the given sources instead of the compiled tables."""
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


#: The fields of :class:`Lexicon` that are plain lists in the compiled file, and those that map a
#: key to several candidates.
LISTS = tuple(item.name for item in fields(Lexicon) if item.type == "tuple[str, ...]")
MAPPINGS = tuple(
    item.name for item in fields(Lexicon) if item.type == "Mapping[str, tuple[str, ...]]"
)


@cache
def load_lexicon(path: Path | None = None) -> Lexicon:
    """Return the shipped lexicon, or the one compiled into ``path``; read once a process.

    Raises:
        DataError: when ``path`` is no compiled lexicon of this version.
    """
    shipped = resources.files("pytest_dstfuzz") / "resources" / "lexicon" / "lexicon.json.gz"
    try:
        data = shipped.read_bytes() if path is None else path.read_bytes()
        compiled = json.loads(gzip.decompress(data))
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read the lexicon {path or shipped}: {error}") from error
    if not isinstance(compiled, dict) or compiled.get("format") != FORMAT:
        raise DataError(f"{path or shipped} is no compiled lexicon of format {FORMAT}")
    words: dict[str, Any] = {name: tuple(compiled["lists"][name]) for name in LISTS}
    for name in MAPPINGS:
        entries: dict[str, str] = compiled["mappings"][name]
        words[name] = {key: tuple(entry.split(" ")) for key, entry in entries.items()}
    return Lexicon(
        **words,
        fingerprint=hashlib.sha256(data).hexdigest(),
        _tables=compiled["tables"],
    )
