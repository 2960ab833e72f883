"""Paraphrases of tools, from a user's file or the schemas of SGD-X."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.config import canonical_split
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, ToolParaphrase
from pytest_dstfuzz.dialogue.load import classify, split_of
from pytest_dstfuzz.dialogue.readers.corpora import paraphrase
from pytest_dstfuzz.dialogue.readers.registry import find_readers
from pytest_dstfuzz.dialogue.readers.source import SourceFile, list_files
from pytest_dstfuzz.dialogue.readers.tools import read_tool_words
from pytest_dstfuzz.errors import DataError

#: Schemas of variants are in deeper folders than dialogues: ``sgd_x/data/v1/test/schema.json``.
_DEPTH: Final = 5
_VARIANT: Final = re.compile(r"(?:^|/)(v\d+)/")


def sgd_paraphrases(source: str | Path, split: str = "test") -> tuple[ToolParaphrase, ...]:
    """Return the tools of an SGD split in the words of each SGD-X variant, sorted by name.

    Args:
        source: a folder with the schemas of SGD and SGD-X, which may be in ``test.zip`` and
            ``sgd_x.zip``.
        split: ``train``, ``val`` (``dev``) or ``test``.

    Raises:
        DataError: If a schema is missing, or is not a paraphrase of the original.
    """
    wanted = canonical_split(split)
    readers = find_readers()
    schemas = [
        file
        for file in list_files(Path(source), _DEPTH)
        if classify(file, readers) == "schema" and split_of(file) == wanted
    ]
    variants: dict[str, SourceFile] = {}
    originals: list[SourceFile] = []
    for file in schemas:
        found = _VARIANT.search(file.name)
        if found is None:
            originals.append(file)
        else:
            variants[found[1]] = file
    if not originals or not variants:
        missing = "the schema.json of SGD" if not originals else "SGD-X (sgd_x.zip)"
        raise DataError(f"{source} does not contain {missing} for the split {wanted!r}")
    return tuple(paraphrase(originals[0], variants[name], name) for name in sorted(variants))


def with_paraphrases(data: DialogueSet, given: str | Path | None) -> DialogueSet:
    """Return data with paraphrases of its tools.

    Args:
        data: dialogues with tools.
        given: a JSON file, see `readers.tools`, or a folder with SGD and SGD-X. ``None`` returns
            the data unchanged.

    Raises:
        DataError: If the source cannot be read, or does not fit the tools of the data.
    """
    if given is None:
        return data
    path = Path(given).expanduser()
    if path.suffix == ".json":
        found = read_tool_words(SourceFile(path.name, path), data.tools)
    else:
        found = sgd_paraphrases(path, data.split)
    return replace(data, paraphrases=found)
