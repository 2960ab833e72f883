"""What our texts hold: no sentence of MultiWOZ, and nothing that a merge left undecided."""

from __future__ import annotations

import ast
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("DSTFUZZ_SHARED", ROOT.parent / "shared"))
ARCHIVE = SHARED / "data" / "multiwoz21" / "trade-tsv.zip"

#: Names that someone also said as a whole utterance, and what anybody says of a price.
NAMES = {
    "The Man on the Moon",
    "The price is 16.60 pounds",
    "express by holiday inn cambridge",
    "It's 17.90 pounds per ticket",
    "city centre north bed and breakfast",
    "a and b guest house",
}


def key(text: str) -> str:
    """Letters and digits alone, in lower case."""
    return "".join(re.findall(r"[a-z0-9]+", text.lower()))


def sentences(text: str) -> Iterator[str]:
    """Yield the text, its lines and its sentences, where they have five words."""
    for part in (text, *re.split(r"(?<=[.?!])\s+|\n", text)):
        if sum(any(map(str.isalnum, word)) for word in part.split()) >= 5:
            yield part.strip()


def strings(value: object) -> Iterator[str]:
    """Yield the texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value if isinstance(value, list) else value.values():
            yield from strings(part)


def texts(path: Path) -> Iterator[str]:
    """Yield what a file says."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(content))
        yield from (n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str)
    elif path.suffix in {".json", ".jsonl"}:
        for part in content.split("\n") if path.suffix == ".jsonl" else [content]:
            yield from strings(json.loads(part or "null"))
    else:
        yield content
        yield from re.findall(r'"([^"\n]+)"', content)


@pytest.mark.shared_data
def test_no_sentence_is_from_multiwoz() -> None:
    if not ARCHIVE.exists():
        pytest.skip("needs the MultiWOZ files of ../shared (or $DSTFUZZ_SHARED)")
    with zipfile.ZipFile(ARCHIVE) as archive:
        tables = [archive.read(name).decode() for name in archive.namelist() if "tsv" in name]
    rows = [line.split("\t") for table in tables for line in table.split("\n")[1:]]
    theirs = {key(part) for row in rows for text in row[3:5] for part in sentences(text)}
    assert len(theirs) > 100_000
    ours = [ROOT / "README.md"]
    for folder in ("tests", "examples", "docs", "pytest_dstfuzz/resources/dialogues"):
        files = (ROOT / folder).rglob("*")
        ours += [p for p in files if p.suffix in {".py", ".json", ".jsonl", ".md", ".txt", ".ini"}]
    theirs -= {key(name) for name in NAMES}
    found = {
        f"{path.relative_to(ROOT)}: {part}"
        for path in ours
        for text in texts(path)
        for part in sentences(text)
        if key(part) in theirs
    }
    assert found == set()


def test_no_merge_is_undecided() -> None:
    folders = ("pytest_dstfuzz", "tools", "tests", "examples", "docs", "changelog.d", ".ci")
    inside = (path for folder in folders for path in (ROOT / folder).rglob("*.*"))
    kinds = {".py", ".pyi", ".json", ".jsonl", ".md", ".txt", ".toml", ".yml", ".csv", ".css"}
    ours = [p for p in (*ROOT.glob("*.*"), *inside) if p.suffix in kinds and p.is_file()]
    assert len(ours) > 500
    marker = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    assert [p for p in ours if marker.search(p.read_text(encoding="utf-8"))] == []
