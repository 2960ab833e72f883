"""Which layout the files of a source have, and which of them are read for a split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.config import SPLIT_ALIASES, SPLITS, canonical_split
from pytest_dstfuzz.dialogue.readers.registry import known_readers
from pytest_dstfuzz.dialogue.readers.source import (
    HEAD_BYTES,
    Reader,
    SourceFile,
    beside,
    json_start,
    list_files,
)
from pytest_dstfuzz.errors import DataError

#: How sure a reader must be of a file in a folder; below, it is a guess.
_SURE: Final = 0.5
_SPLIT_WORD = re.compile(rf"(?:^|[^a-z])({'|'.join(SPLIT_ALIASES)})(?:[^a-z]|$)")
_LIST_NAME = re.compile(r"(train|val|test)_?list_?file", re.IGNORECASE)


def split_of(file: SourceFile) -> str | None:
    """Return the split that the name of ``file`` or of a folder around it says, if any."""
    for part in reversed(file.name.lower().split("/")):
        match = _SPLIT_WORD.search(part)
        if match and not _LIST_NAME.search(part):
            return SPLIT_ALIASES[match[1]]
    return None


def listed_split(file: SourceFile) -> str | None:
    """Return the split whose dialogue ids ``file`` lists (``testListFile.txt``), if any."""
    match = _LIST_NAME.match(file.stem)
    return canonical_split(match[1]) if match else None


def classify(file: SourceFile, readers: Sequence[Reader], least: float = _SURE) -> str | None:
    """Return what ``file`` holds, from the beginning of its content.

    Ontologies look like nothing in particular, so they go by name too: JSON called
    ``<stem>.ontology.json`` or ``ontology*.json`` (MultiWOZ: ``ontology-modified.json``).
    It is the name of the surest reader, if that is sure enough, or ``ontology``, ``schema``,
    ``list`` (of dialogue ids) or ``None``.
    """
    if listed_split(file):
        return "list"
    name = file.name.rsplit("/", 1)[-1].lower()
    if name.endswith(".ontology.json"):
        return "ontology"
    head = file.head(HEAD_BYTES).lstrip()
    sureness = {reader.name: reader.detect(file, head) for reader in readers}
    best = max(sureness, key=sureness.__getitem__)
    if sureness[best] >= least:
        return best
    start = json_start(file, head)
    if start == "[" and '"service_name"' in head:
        return "schema"
    named = name.startswith("ontology") and name.endswith(".json")
    return "ontology" if start == "{" and named else None


#: Kinds that are looked for beside a single file.
_EXTRAS: Final = ("list", "ontology", "schema")


#: Pairs of kind (see `classify`) and file.
Pairs = tuple[tuple[str, SourceFile], ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The files of a source by what they hold."""

    source: Path
    #: Sorted by file name.
    files: Pairs
    #: The source is one file, which the user pointed at.
    single: bool
    #: All that are known, the preferred first.
    readers: tuple[Reader, ...]

    def of(self, *kinds: str) -> Pairs:
        """Return the pairs whose kind is one of ``kinds``."""
        return tuple(pair for pair in self.files if pair[0] in kinds)


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """What to read for a split: files of one layout."""

    reader: Reader
    files: Pairs
    #: Ids of the split where a file holds all of them; ``None`` = take every dialogue.
    ids: frozenset[str] | None = None
    #: Whether ``ids`` are those of the split (``True``) or of the other splits.
    listed: bool = True
    notes: tuple[str, ...] = ()

    def takes(self, dialogue_id: str) -> bool:
        """Whether a dialogue of the files belongs to the split."""
        return self.ids is None or (dialogue_id in self.ids) == self.listed


def catalogue(source: Path, lists: Path | None = None) -> Catalogue:
    """Look at every file of ``source``; beside a single file, at its neighbours too.

    Of ``lists``, another folder, only the lists of dialogue ids are taken.
    """
    readers = known_readers()
    files = list_files(source)
    single = source.is_file() and source.suffix.lower() != ".zip"
    pairs = [(kind, file) for file in files if (kind := classify(file, readers))]
    if single and not pairs and (guess := classify(files[0], readers, least=1e-9)):
        pairs = [(guess, files[0])]
    if all(kind in _EXTRAS for kind, _ in pairs):
        # Whoever is told wrote the file, so their own forms come first.
        own_first = sorted(readers, key=lambda reader: reader.published)
        *listed, last = (reader.about or reader.name for reader in own_first)
        expected = f"expected {', '.join(listed)}, or {last}"
        if all(not file.head(1 << 10).strip() for file in files):
            raise DataError(f"{source} is empty; {expected}")
        raise DataError(f"{source} holds no dialogues in a layout that is known; {expected}")
    if source.is_file():
        neighbours = ((classify(file, readers), file) for file in beside(source))
        pairs += [(kind, file) for kind, file in neighbours if kind in _EXTRAS]
    if lists is not None:
        pairs += [("list", file) for file in list_files(lists) if listed_split(file)]
    return Catalogue(source, tuple(pairs), single, readers)


def choose(files: Catalogue, split: str, layout: str | None) -> SplitFiles:
    """Choose the files of a split, in one layout or else that of the first reader with some."""
    candidates = [one for one in files.readers if layout in (None, one.name)]
    choices = [choice for reader in candidates if (choice := _of_layout(files, split, reader))]
    if not choices:
        raise _no_split(files, split, layout)
    best = choices[0]
    others = [choice.reader.name for choice in choices[1:]]
    if not others:
        return best
    note = (
        f"{files.source} holds the split {split!r} in several layouts: read in the layout "
        f"{best.reader.name!r}, not in {' or '.join(map(repr, others))}."
    )
    return replace(best, notes=(*best.notes, note))


def _of_layout(files: Catalogue, split: str, reader: Reader) -> SplitFiles | None:
    pairs = files.of(reader.name)
    if not pairs:
        return None
    if files.single and not reader.published:
        return SplitFiles(reader, pairs)
    named = tuple(pair for pair in pairs if split_of(pair[1]) == split)
    if named:
        return SplitFiles(reader, named)
    unnamed = tuple(pair for pair in pairs if split_of(pair[1]) is None)
    lists = {listed_split(file): file for _, file in files.of("list")}
    if unnamed and lists:
        return _of_lists(reader, unnamed, split, lists)
    return None if len(unnamed) < len(pairs) else _of_unnamed(files.source, reader, pairs, split)


def _of_lists(
    reader: Reader, pairs: Pairs, split: str, lists: Mapping[str | None, SourceFile]
) -> SplitFiles | None:
    """Choose from files of all splits by lists of ids; what no list has is for training."""
    if split in lists:
        return SplitFiles(reader, pairs, _ids(lists[split]))
    if split == "train" and {"val", "test"} <= set(lists):
        return SplitFiles(reader, pairs, _ids(lists["val"]) | _ids(lists["test"]), listed=False)
    return None


def _of_unnamed(source: Path, reader: Reader, pairs: Pairs, split: str) -> SplitFiles:
    """Take files that say nothing about splits as the split that is asked for."""
    if reader.name == "original" and any(file.stem == "data" for _, file in pairs):
        raise DataError(
            f"{pairs[0][1].place} holds all splits: put MultiWOZ's valListFile.txt and "
            "testListFile.txt beside it"
        )
    note = f"{source} does not say which split it is: all dialogues are taken as {split!r}."
    return SplitFiles(reader, pairs, notes=(note,))


def _ids(file: SourceFile) -> frozenset[str]:
    """Return the dialogue ids of a list file: one a line, whatever its ending says."""
    names = (line.strip().removesuffix(".json") for line in file.lines())
    return frozenset(filter(None, names))


def _no_split(files: Catalogue, split: str, layout: str | None) -> DataError:
    found = [
        f"{reader.name}: {', '.join(splits)}"
        for reader in files.readers
        if (splits := [other for other in SPLITS if _of_layout(files, other, reader)])
    ]
    inside = f" in the layout {layout!r}" if layout else ""
    return DataError(
        f"{files.source} does not hold the split {split!r}{inside}. It holds {'; '.join(found)}."
    )
