"""A reader of WordNet's database files.

The format is documented in the manual pages ``wndb(5WN)``, ``senseidx(5WN)`` and ``morphy(7WN)`` of
WordNet 3.0 (https://wordnet.princeton.edu/documentation/wndb5wn). The reader only reads what is
needed for synonyms: the synsets' words and pointers, the senses of a lemma in order of frequency,
the tag counts of ``cntlist.rev``, and the irregular forms of ``*.exc``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_dstfuzz.errors import DataError

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")

_POS_OF_TYPE = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
#: Synset types as numbered in sense keys; 5 is a satellite adjective.
_POS_OF_NUMBER = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
_ANTONYM, _SIMILAR = "!", "&"


class SynsetId(NamedTuple):
    """Part of speech and byte offset, which together identify a synset."""

    pos: str
    offset: int


class Pointer(NamedTuple):
    """A relation of a synset. ``source`` and ``target`` are numbers of words (0 = all words)."""

    symbol: str
    synset: SynsetId
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Synset:
    """Words with one meaning, spelled as in the data file (proper names keep their capitals)."""

    words: tuple[str, ...]
    pointers: tuple[Pointer, ...]


@dataclass(frozen=True, slots=True)
class WordNet:
    """The database in memory."""

    synsets: dict[SynsetId, Synset]
    #: (lemma, part of speech) -> its senses, most frequent first.
    senses: dict[tuple[str, str], tuple[SynsetId, ...]]
    #: (lemma, part of speech, sense number from 1) -> how often it was tagged.
    counts: dict[tuple[str, str, int], int]
    #: part of speech -> irregular form -> base forms.
    irregular: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)

    def count(self, lemma: str, pos: str) -> int:
        """Return how often ``lemma`` was tagged as ``pos``, in all senses."""
        senses = self.senses.get((lemma, pos), ())
        return sum(self.counts.get((lemma, pos, n), 0) for n in range(1, len(senses) + 1))

    def sense_count(self, lemma: str, synset: SynsetId) -> int:
        """Return how often ``lemma`` was tagged with ``synset``."""
        return self.counts.get((lemma, synset.pos, self.sense_number(lemma, synset)), 0)

    def sense_number(self, lemma: str, synset: SynsetId) -> int:
        """Return the rank of ``synset`` among the senses of ``lemma``, 1 = most frequent."""
        return self.senses[lemma, synset.pos].index(synset) + 1

    def antonyms(self, lemma: str) -> set[str]:
        """Return the antonyms of a lemma in any sense, with those of its head adjectives."""
        found: set[str] = set()
        for pos in PARTS_OF_SPEECH:
            for synset_id in self.senses.get((lemma, pos), ()):
                words = [word.lower() for word in self.synsets[synset_id].words]
                found |= self._opposites(synset_id, words.index(lemma) + 1)
                for head in self._related(synset_id, _SIMILAR):
                    found |= self._opposites(head, 0)
        return found - {lemma}

    def _opposites(self, synset_id: SynsetId, word_number: int) -> set[str]:
        found = set()
        for pointer in self.synsets[synset_id].pointers:
            if pointer.symbol == _ANTONYM and (not word_number or pointer.source == word_number):
                found.add(self.synsets[pointer.synset].words[pointer.target - 1].lower())
        return found

    def _related(self, synset_id: SynsetId, symbol: str) -> Iterator[SynsetId]:
        pointers = self.synsets[synset_id].pointers
        return (pointer.synset for pointer in pointers if pointer.symbol == symbol)


def read_wordnet(folder: Path) -> WordNet:
    """Read ``data.*``, ``index.*``, ``cntlist.rev`` and ``*.exc`` from ``folder``.

    Raises:
        DataError: a file is missing, or a line does not have the documented form.
    """
    synsets: dict[SynsetId, Synset] = {}
    senses: dict[tuple[str, str], tuple[SynsetId, ...]] = {}
    irregular: dict[str, dict[str, tuple[str, ...]]] = {}
    for pos in PARTS_OF_SPEECH:
        for number, line in _lines(folder / f"data.{pos}"):
            with _blame(folder / f"data.{pos}", number):
                offset, synset = _parse_synset(line)
            synsets[SynsetId(pos, offset)] = synset
        for number, line in _lines(folder / f"index.{pos}"):
            with _blame(folder / f"index.{pos}", number):
                lemma, offsets = _parse_index(line)
            senses[lemma, pos] = tuple(SynsetId(pos, offset) for offset in offsets)
        forms = (line.split() for _, line in _lines(folder / f"{pos}.exc"))
        irregular[pos] = {parts[0]: tuple(parts[1:]) for parts in forms}
    counts: dict[tuple[str, str, int], int] = defaultdict(int)
    for number, line in _lines(folder / "cntlist.rev"):
        with _blame(folder / "cntlist.rev", number):
            key, sense, count = line.split()
            lemma, _, rest = key.partition("%")
            counts[lemma, _POS_OF_NUMBER[rest[0]], int(sense)] = int(count)
    return WordNet(synsets, senses, dict(counts), irregular)


class _blame:  # noqa: N801 - used like a function
    """Turns any failure to parse a line into a :class:`DataError` that names the line."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, IndexError, KeyError)):
            raise DataError(
                f"{self.path}, line {self.number}: not in WordNet's database format"
            ) from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a database file without the licence, which is indented."""
    try:
        with path.open(encoding="utf-8", errors="strict") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("  "):
                    yield number, line
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read WordNet's {path}: {error}") from error


def _parse_synset(line: str) -> tuple[int, Synset]:
    """Parse ``offset lexfile type w_cnt word lex_id... p_cnt pointer... | gloss``."""
    fields = line.partition(" | ")[0].split()
    word_count = int(fields[3], 16)
    end = 4 + 2 * word_count
    # Adjectives carry their position as a marker: "galore(ip)".
    words = tuple(word.partition("(")[0] for word in fields[4:end:2])
    pointer_count = int(fields[end])
    starts = range(end + 1, end + 1 + 4 * pointer_count, 4)
    return int(fields[0]), Synset(words, tuple(_parse_pointer(fields[s : s + 4]) for s in starts))


def _parse_pointer(fields: list[str]) -> Pointer:
    symbol, offset, kind, ends = fields
    target = SynsetId(_POS_OF_TYPE[kind], int(offset))
    source, target_word = bytes.fromhex(ends)
    return Pointer(symbol, target, source, target_word)


def _parse_index(line: str) -> tuple[str, list[int]]:
    """Parse ``lemma pos synset_cnt p_cnt symbol... sense_cnt tagsense_cnt offset...``."""
    fields = line.split()
    offsets = [int(offset) for offset in fields[6 + int(fields[3]) :]]
    if len(offsets) != int(fields[2]):
        raise ValueError(line)
    return fields[0], offsets
