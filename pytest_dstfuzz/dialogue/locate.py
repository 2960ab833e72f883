"""From what a user writes as the data to a path: ``sample``, a named data set, a path."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import Final

from pytest_dstfuzz.dialogue.cache import DATASET_NAMES, cache_folder
from pytest_dstfuzz.errors import DataError, nearest

#: The dialogues that ship with the package.
SAMPLE: Final = "sample"

# Names that say nothing about the data set: its folder's name is taken instead.
_NO_NAME: Final = re.compile(r"(train|dev|val|valid|validation|test|data)([_-].*)?|trade[_-]tsv")


def locate(source: str | Path) -> tuple[Path, str]:
    """Return the path of ``source`` and the short name of the data set.

    An existing path wins over a data set of the same name in the cache.

    Raises:
        DataError: nothing is there; the message says what to do.
    """
    text = os.fspath(source)
    if text == SAMPLE:
        shipped = resources.files("pytest_dstfuzz") / "resources" / "dialogues" / SAMPLE
        return Path(str(shipped)), SAMPLE
    path = Path(text).expanduser()
    if text and path.exists():
        return path, _name_of(path)
    if text in DATASET_NAMES:
        cached = cache_folder() / text
        if cached.is_dir():
            return cached, text
        raise DataError(
            f"the data set {text!r} is not on this machine: run `dstfuzz fetch {text}`, "
            "or give the path of a folder, file or zip"
        )
    guess = _guess(path, text)
    raise DataError(
        f"no such file or folder: {text!r}.{guess} Give the path of a folder, file or zip, "
        f"or one of {', '.join((SAMPLE, *DATASET_NAMES))}."
    )


def _guess(path: Path, text: str) -> str:
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    found = nearest(path.name, [*siblings, SAMPLE, *DATASET_NAMES]) if text else None
    if found is None:
        return ""
    return f" Did you mean {str(path.parent / found if found in siblings else found)!r}?"


def _name_of(path: Path) -> str:
    resolved = path.resolve()
    name = resolved.name if resolved.is_dir() else resolved.name.split(".", 1)[0]
    if _NO_NAME.fullmatch(name.lower()):
        name = resolved.parent.name
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "data"
