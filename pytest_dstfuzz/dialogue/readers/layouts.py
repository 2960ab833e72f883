"""Which layout a file has, seen from its content, and which split it holds, from its name."""

from __future__ import annotations

import json
import re
from typing import Final

from pytest_dstfuzz.config import SPLIT_ALIASES, canonical_split
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.dialogue.readers.trade import COLUMNS

#: Layouts, the preferred first where a source holds several of one split.
LAYOUTS: Final = ("original", "sharded", "trade", "jsonl")

#: Enough for the first dialogue of every published file.
_HEAD: Final = 1 << 16
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


def classify(file: SourceFile) -> str | None:
    """Return what ``file`` holds, from the beginning of its content.

    Ontologies look like nothing in particular, so they go by name too: JSON called
    ``<stem>.ontology.json`` or ``ontology*.json`` (MultiWOZ: ``ontology-modified.json``).
    One of ``original``, ``sharded``, ``trade`` (JSON), ``trade-tsv``, ``jsonl``,
    ``ontology``, ``schema``, ``list`` (of dialogue ids), or ``None``.
    """
    if listed_split(file):
        return "list"
    name = file.name.rsplit("/", 1)[-1].lower()
    if name.endswith(".ontology.json"):
        return "ontology"
    head = file.head(_HEAD).lstrip()
    if head.startswith(COLUMNS[0]):
        return "trade-tsv"
    if head.startswith("["):
        return _of_array(head)
    if head.startswith("{"):
        named = name.startswith("ontology") and name.endswith(".json")
        return _of_object(head) or ("ontology" if named else None)
    return None


def _of_array(head: str) -> str | None:
    if '"dialogue_idx"' in head:
        return "trade"
    if '"service_name"' in head and '"dialogue_id"' not in head:
        return "schema"
    if '"dialogue_id"' in head and '"turns"' in head:
        return "sharded"
    return None


def _of_object(head: str) -> str | None:
    first_line = head.split("\n", 1)[0]
    if _has_dialogue_keys(first_line):
        return "jsonl"
    if re.search(r'"log"\s*:\s*\[', head):
        return "original"
    return None


def _has_dialogue_keys(line: str) -> bool:
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        # A first line that is longer than the head, or broken: named when it is read.
        return bool(re.match(r'\{\s*"(dialogue_id|turns|utterances|users)"\s*:', line))
    keys = set(first)
    return "dialogue_id" in keys or bool(keys & {"turns", "utterances", "users"})
