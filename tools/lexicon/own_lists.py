"""Reads the lists written for this package: ``own/*.txt``.

``words.txt`` and ``characters.txt`` have ``[sections]``; the review files have sections with the
reason as title, and lines ``word: other other``. ``#`` starts a comment line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_dstfuzz.errors import DataError

#: Where the lists lie.
FOLDER = Path(__file__).parent / "own"


def read_sections(path: Path) -> dict[str, list[str]]:
    """Return the lines of every section of a file, without comments and blank lines."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _lines(path):
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        elif current is None:
            raise DataError(f"{path}: {line!r} stands before the first [section]")
        else:
            current.append(line)
    return sections


def read_words(path: Path) -> dict[str, list[str]]:
    """Return the comma-separated entries of every section, without repetitions."""
    entries = {
        title: (entry.strip() for line in lines for entry in line.split(","))
        for title, lines in read_sections(path).items()
    }
    return {title: list(dict.fromkeys(filter(None, found))) for title, found in entries.items()}


def read_pairs(path: Path) -> dict[str, list[str]]:
    """Return the entries of a file of ``word: other other`` lines; sections are only titles."""
    return _pairs((line for line in _lines(path) if not line.startswith("[")), path)


def read_pairs_by_section(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return section -> entries of a file of ``word: other other`` lines."""
    return {title: _pairs(lines, path) for title, lines in read_sections(path).items()}


def _pairs(lines: Iterable[str], path: Path) -> dict[str, list[str]]:
    pairs: dict[str, list[str]] = {}
    for line in lines:
        word, colon, others = line.partition(":")
        if not colon or not others.split():
            raise DataError(f"{path}: {line!r} is not of the form 'word: other other'")
        pairs.setdefault(word.strip(), []).extend(others.split())
    return {word: list(dict.fromkeys(others)) for word, others in pairs.items()}


def keyboard(rows: list[str]) -> dict[str, list[str]]:
    """Return the neighbours of every key: the (up to six) keys around it.

    Args:
        rows: lines ``shift keys``, top row first, the shift in key widths.
    """
    places: dict[str, tuple[float, float]] = {}
    for height, row in enumerate(rows):
        shift, keys = row.split()
        for index, key in enumerate(keys):
            places[key] = (float(shift) + index, float(height))
    return {
        key: sorted(
            other
            for other, (x, y) in places.items()
            if other != key and (x - here[0]) ** 2 + (y - here[1]) ** 2 <= 1.6
        )
        for key, here in sorted(places.items())
    }


def look_alikes(lines: list[str]) -> dict[str, list[str]]:
    """Return letter -> characters that look like it, from lines ``letter characters``."""
    pairs = (line.split() for line in lines)
    return {letter: list(characters) for letter, characters in pairs}


def _lines(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the list {path}: {error}") from error
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()
