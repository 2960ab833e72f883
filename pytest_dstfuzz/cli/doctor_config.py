"""What the configuration file of pytest says of this plugin, without secrets.

The command may not import pytest, and a run of pytest would import the user's ``conftest.py``:
the files are found and read here, by pytest's rule.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_dstfuzz.config import MASK, masked, masked_words
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_table, read_text

#: In the order in which pytest looks at them in each folder; the first two since pytest 9.
_FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml"),
    *("tox.ini", "setup.cfg"),
)
_GUARDED = (
    r"header|(?<!max_)(?<!max-)token|secret|passw|credential|cookie|authorization|bearer"
    r"|(?:api|access|private)[-_ ]?key"
)
_GUARDED_NAME = re.compile(_GUARDED, re.IGNORECASE)
#: Such a name within a text, and what comes after it.
_GUARDED_TEXT = re.compile(rf"((?:{_GUARDED})[\w-]*[\"']?\s*[=:\s]\s*).+", re.IGNORECASE)


def abbreviated(text: str) -> str:
    """Return a text with ``~`` in the place of the home folder."""
    for home in {str(Path.home()), os.path.realpath(Path.home())} - {os.sep}:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return text


def find_config(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Return the file that pytest started in a folder reads, its settings, and ``[tool.dstfuzz]``.

    It may stand in a folder above. Files that cannot be read are put among the problems.
    """
    for place in (folder, *folder.parents):
        for name in _files_of_this_pytest():
            path = place / name
            if not path.is_file():
                continue
            try:
                keys = _keys(path)
            except DataError as error:
                problems.append(abbreviated(str(error)))
                continue
            except configparser.Error as error:
                # Its message may repeat a line of the file.
                problems.append(abbreviated(f"{path} cannot be read: {type(error).__name__}"))
                continue
            if keys is not None:
                settings = {
                    name: _shown(name, keys[name]) for name in keys if name.startswith("dst_")
                }
                if added := _of_ours(keys.get("addopts", "")):
                    settings["addopts"] = added
                table = _table(place / "pyproject.toml", problems)
                return {"file": abbreviated(str(path)), "settings": settings, "table": table}
    return {"file": None, "settings": {}, "table": _table(folder / "pyproject.toml", problems)}


def _files_of_this_pytest() -> tuple[str, ...]:
    try:
        major = int(metadata.version("pytest").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return _FILES
    return _FILES if major >= 9 else _FILES[2:]


def _keys(path: Path) -> Mapping[str, Any] | None:
    """Return the keys of pytest in a file; ``None`` where pytest goes on to the next."""
    if path.suffix == ".toml":
        if path.name != "pyproject.toml":
            return dict(read_table(path, "[pytest]"))
        table = read_table(path, "[tool.pytest]")
        return {**table, **table.get("ini_options", {})} if table else None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(read_text(path))
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.suffix == ".ini" and path.name != "tox.ini" else None


def _table(path: Path, problems: list[str]) -> Any:
    """Return ``[tool.dstfuzz]`` of a ``pyproject.toml``, masked."""
    try:
        return _shown("", read_table(path, "[tool.dstfuzz]") if path.exists() else {})
    except DataError as error:
        if (problem := abbreviated(str(error))) not in problems:
            problems.append(problem)
        return {}


def _of_ours(addopts: object) -> list[str]:
    """Return the words of ``addopts``, masked, where one of them is about this plugin."""
    try:
        words = shlex.split(addopts) if isinstance(addopts, str) else list(map(str, addopts))  # type: ignore[call-overload]  # a list in TOML
    except (TypeError, ValueError):
        return [MASK]
    if not any("dst" in word for word in words):
        return []
    return [_masked(word) for word in masked_words(words)]


def _shown(name: str, value: Any) -> Any:
    """Return a value of a file without secrets and without the home folder."""
    if isinstance(value, Mapping):
        return {key: _shown(f"{name}.{key}", part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shown(name, part) for part in value]
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float | None) else str(value)
    if name in ("dst_header", "dst_tracker"):
        # Its name, and the value where that only names a variable.
        return masked_words([f"--{name.replace('_', '-')}", value])[1]
    table, _, key = name.rpartition(".")
    if table.rpartition(".")[2] == "tracker":
        value = masked_words(["--dst-tracker", f"{key}={value}"])[1].partition("=")[2]
    return MASK if _GUARDED_NAME.search(name) else _masked(value)


def _masked(text: str) -> str:
    text = re.sub(r"\S+", lambda word: masked(word[0]), text)
    return abbreviated(_GUARDED_TEXT.sub(rf"\1{MASK}", text))
