"""Which layout the files of a source have, and which of them are read for a split."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.config import SPLIT_ALIASES, SPLITS, canonical_split
from pytest_dstfuzz.dialogue.readers.csv_log import is_table
from pytest_dstfuzz.dialogue.readers.source import SourceFile, beside, list_files
from pytest_dstfuzz.dialogue.readers.trade import COLUMNS
from pytest_dstfuzz.dialogue.readers.user_lines import is_of_users
from pytest_dstfuzz.errors import DataError

#: Layouts, the preferred first where a source holds several of one split.
LAYOUTS: Final = (
    *("original", "sharded", "trade", "sgd", "canard", "jsonl", "messages", "csv", "users"),
)
#: Those of a team's own file: whatever it is called, it is of the split that is asked for.
_OWN: Final = ("messages", "jsonl", "csv", "users")

#: Enough for the first dialogue of every published file.
_HEAD: Final = 1 << 16
_SPLIT_WORD = re.compile(rf"(?:^|[^a-z])({'|'.join(SPLIT_ALIASES)})(?:[^a-z]|$)")
#: Services of SGD are numbered, those of MultiWOZ 2.2 are its domains.
_SGD_SERVICE: Final = re.compile(r'"services?"\s*:\s*\[?\s*"[A-Za-z]+_\d+"')
#: The keys of a recorded conversation, a list of messages alone, and a line of utterances.
_MESSAGES: Final = re.compile(r'"messages"\s*:\s*\[')
_TOOLS: Final = re.compile(r'"(tools|functions)"\s*:\s*\[')
_BARE: Final = re.compile(r'\[\s*\[?\s*\{[^{}]*"role"\s*:\s*"')
_TURNS: Final = re.compile(r'\{\s*"(dialogue_id|turns|utterances|users)"\s*:')
#: Ends a line, in whatever way.
_LINE_END: Final = re.compile(r"[\r\n]")
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


def classify(file: SourceFile) -> str | None:
    """Return what ``file`` holds, from the beginning of its content.

    Ontologies look like nothing in particular, so they go by name too: JSON called
    ``<stem>.ontology.json`` or ``ontology*.json`` (MultiWOZ: ``ontology-modified.json``).
    One of ``original``, ``sharded``, ``trade`` (JSON), ``trade-tsv``, ``sgd``, ``canard``,
    ``messages``, ``jsonl``, ``csv``, ``ontology``, ``schema``, ``list`` (of dialogue ids), or
    ``None``.
    """
    if listed_split(file):
        return "list"
    name = file.name.rsplit("/", 1)[-1].lower()
    if name.endswith(".ontology.json"):
        return "ontology"
    head = file.head(_HEAD).lstrip()
    if name.endswith((".csv", ".tsv")):
        return _of_rows(head)
    if head.startswith("["):
        return _of_array(head)
    if head.startswith("{"):
        named = name.startswith("ontology") and name.endswith(".json")
        return _of_object(head) or ("ontology" if named else None)
    return _of_rows(head) if head.startswith(COLUMNS[0]) else None


def _of_rows(head: str) -> str | None:
    if head.startswith(COLUMNS[0]):
        return "trade-tsv"
    return "csv" if is_table(head) else None


def _of_array(head: str) -> str | None:
    if '"dialogue_idx"' in head:
        return "trade"
    if '"QuAC_dialog_id"' in head:
        return "canard"
    if '"dialogue_id"' in head:
        dialogues = "sgd" if _SGD_SERVICE.search(head) else "sharded"
        if '"turns"' in head:
            return dialogues
    if _is_recorded(head) or _BARE.match(head):
        return "messages"
    return "schema" if '"service_name"' in head else None


def _of_object(head: str) -> str | None:
    if found := _of_line(_LINE_END.split(head, maxsplit=1)[0]):
        return found
    if _is_recorded(head):
        return "messages"
    return "original" if re.search(r'"log"\s*:\s*\[', head) else None


def _is_recorded(head: str) -> bool:
    """Whether a text begins a recorded conversation, of which tools may be all that is seen."""
    cut_off = len(head) > _HEAD // 5  # A character has up to four bytes.
    return bool(_MESSAGES.search(head) or (cut_off and _TOOLS.search(head)))


def _of_line(line: str) -> str | None:
    """Return which of the layouts of JSON Lines a first line is of."""
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        # A first line that is longer than the head, or broken: named when it is read.
        return "jsonl" if _TURNS.match(line) and not _MESSAGES.search(line) else None
    if "messages" in first:
        return "messages"
    return "jsonl" if first.keys() & {"dialogue_id", "turns", "utterances", "users"} else None


#: Kinds of file that hold dialogues: a layout each, but for the other form of one.
_KINDS: Final = (*LAYOUTS, "trade-tsv")

#: Kinds that are looked for beside a single file.
_EXTRAS: Final = ("list", "ontology", "schema")

_EXPECTED: Final = (
    'expected JSON Lines with one dialogue a line, {"dialogue_id": "a", "users": ["..."]}, or '
    'recorded messages, {"messages": [{"role": "user", "content": "..."}], "tools": [...]}, '
    "MultiWOZ's data.json, the sharded files of 2.2, TRADE's TSV or *_dials.json, "
    "SGD's dialogues_*.json, CANARD's questions, a CSV with the columns dialogue_id, speaker and "
    "text, or a .txt with one request of a user a line"
)


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

    def of(self, *kinds: str) -> Pairs:
        """Return the pairs whose kind is one of ``kinds``."""
        return tuple(pair for pair in self.files if pair[0] in kinds)


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """What to read for a split: files of one layout."""

    layout: str
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
    files = list_files(source)
    single = source.is_file() and source.suffix.lower() != ".zip"
    pairs = [(kind, file) for file in files if (kind := classify(file))]
    if single and not pairs and is_of_users(files[0], files[0].head(1 << 10)):
        pairs = [("users", files[0])]
    if not any(kind in _KINDS for kind, _ in pairs):
        if all(not file.head(1 << 10).strip() for file in files):
            raise DataError(f"{source} is empty; {_EXPECTED}")
        raise DataError(f"{source} holds no dialogues in a layout that is known; {_EXPECTED}")
    if source.is_file():
        neighbours = ((classify(file), file) for file in beside(source))
        pairs += [(kind, file) for kind, file in neighbours if kind in _EXTRAS]
    if lists is not None:
        pairs += [("list", file) for file in list_files(lists) if listed_split(file)]
    return Catalogue(source, tuple(pairs), single)


def choose(files: Catalogue, split: str, layout: str | None) -> SplitFiles:
    """Choose the files of a split, in one layout or else the first of `LAYOUTS` that holds it."""
    candidates = LAYOUTS if layout is None else (layout,)
    choices = [choice for name in candidates if (choice := _of_layout(files, split, name))]
    if not choices:
        raise _no_split(files, split, layout)
    best = choices[0]
    others = [choice.layout for choice in choices[1:]]
    if not others:
        return best
    note = (
        f"{files.source} holds the split {split!r} in several layouts: read in the layout "
        f"{best.layout!r}, not in {' or '.join(map(repr, others))}."
    )
    return replace(best, notes=(*best.notes, note))


def _of_layout(files: Catalogue, split: str, layout: str) -> SplitFiles | None:
    pairs = files.of(layout, f"{layout}-tsv")
    if not pairs:
        return None
    if layout in _OWN and files.single:
        return SplitFiles(layout, pairs)
    named = tuple(pair for pair in pairs if split_of(pair[1]) == split)
    if named:
        return SplitFiles(layout, named)
    unnamed = tuple(pair for pair in pairs if split_of(pair[1]) is None)
    lists = {listed_split(file): file for _, file in files.of("list")}
    if unnamed and lists:
        return _of_lists(layout, unnamed, split, lists)
    return None if len(unnamed) < len(pairs) else _of_unnamed(files.source, layout, pairs, split)


def _of_lists(
    layout: str, pairs: Pairs, split: str, lists: Mapping[str | None, SourceFile]
) -> SplitFiles | None:
    """Choose from files of all splits by lists of ids; what no list has is for training."""
    if split in lists:
        return SplitFiles(layout, pairs, _ids(lists[split]))
    if split == "train" and {"val", "test"} <= set(lists):
        return SplitFiles(layout, pairs, _ids(lists["val"]) | _ids(lists["test"]), listed=False)
    return None


def _of_unnamed(source: Path, layout: str, pairs: Pairs, split: str) -> SplitFiles:
    """Take files that say nothing about splits as the split that is asked for."""
    if layout == "original" and any(file.stem == "data" for _, file in pairs):
        raise DataError(
            f"{pairs[0][1].place} holds all splits: put MultiWOZ's valListFile.txt and "
            "testListFile.txt beside it"
        )
    note = f"{source} does not say which split it is: all dialogues are taken as {split!r}."
    return SplitFiles(layout, pairs, notes=(note,))


def _ids(file: SourceFile) -> frozenset[str]:
    """Return the dialogue ids of a list file: one a line, whatever its ending says."""
    names = (line.strip().removesuffix(".json") for line in file.lines())
    return frozenset(filter(None, names))


def _no_split(files: Catalogue, split: str, layout: str | None) -> DataError:
    found = [
        f"{name}: {', '.join(splits)}"
        for name in LAYOUTS
        if (splits := [other for other in SPLITS if _of_layout(files, other, name)])
    ]
    inside = f" in the layout {layout!r}" if layout else ""
    return DataError(
        f"{files.source} does not hold the split {split!r}{inside}. It holds {'; '.join(found)}."
    )
