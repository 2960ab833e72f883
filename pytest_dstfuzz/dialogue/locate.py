"""From what a user writes as the data to a path: ``sample``, a named data set, a path."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.datasets import DATASETS, fetched
from pytest_dstfuzz.errors import DataError, nearest

#: The dialogues that ship with the package.
SAMPLE: Final = "sample"

# Names that say nothing about the data set: its folder's name is taken instead.
_NO_NAME: Final = re.compile(r"(train|dev|val|valid|validation|test|data)([_-].*)?|trade[_-]tsv")


class Location(NamedTuple):
    """Where a data set lies."""

    path: Path
    #: Short name for test ids and reports.
    name: str
    #: Folder with the lists of its splits, where it brings none itself.
    lists: Path | None = None


def locate(source: str | Path) -> Location:
    """Return where ``source`` lies and the short name of the data set.

    An existing path wins over a data set of the same name in the cache.

    Raises:
        DataError: nothing is there; the message says what to do.
    """
    text = os.fspath(source)
    if text == SAMPLE:
        shipped = resources.files("pytest_dstfuzz") / "resources" / "dialogues" / SAMPLE
        return Location(Path(str(shipped)), SAMPLE)
    path = Path(text).expanduser()
    if text and path.exists():
        return Location(path, _name_of(path))
    if text in DATASETS:
        folders = fetched(text)
        if folders is not None:
            return Location(folders[0], text, folders[1] if len(folders) > 1 else None)
        raise DataError(
            f"the data set {text!r} is not on this machine: run `dstfuzz fetch {text}`, "
            "or give the path of a folder, file or zip"
        )
    guess = _guess(path, text)
    raise DataError(
        f"no such file or folder: {text!r}.{guess} Give the path of a folder, file or zip, "
        f"or one of {', '.join((SAMPLE, *DATASETS))}."
    )


def _guess(path: Path, text: str) -> str:
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    found = nearest(path.name, [*siblings, SAMPLE, *DATASETS]) if text else None
    if found is None:
        return ""
    return f" Did you mean {str(path.parent / found if found in siblings else found)!r}?"


def _name_of(path: Path) -> str:
    resolved = path.resolve()
    name = resolved.name if resolved.is_dir() else resolved.name.split(".", 1)[0]
    if _NO_NAME.fullmatch(name.lower()):
        name = resolved.parent.name
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "data"
