"""The identity of settings: everything that decides a result, computed from the option table.

The keys of cached answers and cached results are made from this identity. So are the keys of result
folders, their parts and the cells of sweeps.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pytest_dstfuzz.config.options import OPTIONS, option
from pytest_dstfuzz.config.parsers import Option, unquote_value
from pytest_dstfuzz.config.secret import Address, Header, OwnKey
from pytest_dstfuzz.config.settings import Settings
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import content_of, exceeds, find_path, names_file

__all__ = [
    "TOO_LARGE",
    "content_named_in",
    "identity_of",
    "identity_of_address",
    "is_own_function",
]

#: Parts of the settings that decide results. The others limit, show or judge a run.
_PARTS: Final = ("tracker", "data", "variant", "reply")
#: The last parts of the schemes whose addresses are those of services.
_OF_SERVICES: Final = ("http", "https")
#: A user's own function, as options name it.
_OWN: Final = re.compile(r"(?!embedding:)[\w.]+:[\w.]+")

#: Separators of several paths in a key. The name of a file may contain some of them.
_SEPARATORS: Final = (
    *(rf"[,;\s{os.pathsep}]+", rf"[,;\n{os.pathsep}]+", r"[,;\n]+"),
    *(r"\s+", ",", ";", "\n", os.pathsep),
)
#: The characters between the parts of an argument, as in ``a.txt+b.txt:7``. A path may have some.
_BETWEEN: Final = re.compile(r"[^\w./\\~]")
#: Maximum number of such parts in a path.
_MOST_PARTS: Final = 64
#: First folders of paths that no bot reads its settings from, and the exception: shared memory.
_OF_SYSTEM: Final = (("proc",), ("sys",), ("dev",))
_SHARED: Final = ("dev", "shm")
#: Maximum number of files and bytes to read if a text names the home folder, or one around it.
_FILES_AT_HOME: Final = 10_000
_BYTES_AT_HOME: Final = 1 << 30
#: The content of a larger one. No two processes agree on it, so none uses results of another.
TOO_LARGE: Final = "not read because it has too many files"
_UNKNOWN: Final = f"{TOO_LARGE} {uuid.uuid4().hex}"
#: Patterns of the places before and after the path of a folder in a text.
_BEFORE: Final = rf"(?:\A|(?<=[{os.pathsep},;\s'\"=(\[<|@`])|(?<=\w://)|(?<=\w:///))"
_AFTER: Final = rf"(?=[/\\{os.pathsep},;\s'\")\]>|`]|\Z)"
#: Blanks and quotes around a path in a list.
_AROUND: Final = " \t\r\n'\""


def decides(item: Option) -> bool:
    """Return whether an option decides results.

    Options that name files of dialogues or tools do not count. The identity of the data is a digest
    of their content instead.
    """
    is_read = item.part == "data" and "path" in item.scopes
    return item.part in _PARTS and "neutral" not in item.scopes and not is_read


def identity_of(settings: Settings, *parts: str) -> dict[str, Any]:
    """Return an identifier of the value of each option that decides a result, as plain JSON.

    A file that only this package reads is identified by its name and its content. A user's tracker
    may look at more than that, such as the other files of a folder. So a checkpoint and a key of
    the tracker are identified by their text, too, in which the working folder is ``.``. Addresses,
    headers, keys and tokens are identified with their credentials, but these appear only as a keyed
    digest. Environment variables are replaced by their values. The argument of a search, and an
    address of a user's scheme, are identified with all files and folders that they name.

    Args:
        settings: the settings.
        parts: the parts of the settings, such as ``tracker`` for the settings that decide its
            answers; by default all.
    """
    return {
        item.name: _identity(item, settings.option(item.name))
        for item in OPTIONS
        if decides(item) and item.part in (parts or _PARTS)
    }


def identity_of_address(name: str, address: Address) -> str:
    """Return an identifier of the address that an option names, with its token.

    Credentials and the token appear only as keyed digests. So the result is the address as it is
    shown if it has no credentials, and no token is set.
    """
    found = _identity(option(name), address)
    return " ".join(found) if isinstance(found, list) else str(found)


def input_files(settings: Settings) -> dict[str, str]:
    """Return the files that options name, with a text about each for messages.

    Baselines, results and other files for or from the judgement of a run are left out.
    """
    found = {}
    for item in OPTIONS:
        value = settings.option(item.name) if item.part in _PARTS else None
        for one in value if isinstance(value, tuple) else (value,):
            text = _read(one) if isinstance(one, OwnKey) else one if isinstance(one, str) else ""
            pieces = {*map(unquote_value, _pieces(text)), *_paths_in(_argument(item, text))}
            for piece in filter(names_file, sorted(pieces)):
                found[f"the file {piece} of the option {item.name}"] = piece
    return found


def _pieces(text: str) -> tuple[str, ...]:
    """Return the parts of a text that may be a path, as in NAME:PATH or PATH:WEIGHT."""
    return text, text.partition(":")[2], text.rpartition(":")[0]


def _argument(item: Option, text: str) -> str:
    """Return the argument of a search, or ``""``. Only a user's code knows its notation."""
    return text.partition(":")[2] if item.name == "search" else ""


def _identity(item: Option, value: object) -> object:
    if isinstance(value, tuple):
        return [_identified(item, one) for one in value]
    found = _identified(item, value)
    # A bot in Python may read the token, too. Without a judge, nothing reads the token of one.
    used = isinstance(value, Address) or item.part == "tracker"
    token = os.environ.get(item.variable, "").strip() if item.variable and used else ""
    if token:
        return [found, _keyed(item.variable, str(value), token)]
    return found


def _identified(item: Option, value: object) -> object:
    match value:
        case Address():
            shown, secret = str(value), value.full
            keyed = "" if shown == secret else _keyed(item.name, shown, secret)
            return " ".join(filter(None, (shown, keyed, _content_of_address(secret))))
        case Header():
            return f"{value.name}: {_keyed(item.name, value.name, _read(value))}"
        case OwnKey():
            return f"{value.name}={_of_key(item, value)}"
        case str():
            return _with_contents(item, value)
    return value


def _of_key(item: Option, value: OwnKey) -> str:
    """Return a digest of the text of a key, and the contents of the files that it names."""
    text = _read(value)
    # A path, several ones, or an address of a file.
    paths = {text}
    for one in re.split(r"[,;\s]+", text):
        if "file:" in one:
            with suppress(ValueError):  # It has brackets, and is no address of a file.
                paths.add(unquote(urlsplit(one).path))
    parts = set(paths)
    for separators in _SEPARATORS:
        pieces = {part.strip(_AROUND) for part in re.split(separators, text)} - {""}
        parts |= pieces
        if all(map(find_path, pieces)):
            paths |= pieces
    contents = [_content_of_part(one, named=one in paths) for one in sorted(parts - {""})]
    found = [_keyed(item.name, value.name, _relocated(text)), *filter(None, contents)]
    return " ".join(found)


def content_named_in(argument: str) -> str:
    """Return a digest of the files and folders that a user's argument names, or ``""``.

    Only the user's code knows the notation of the argument. So each part between two separators
    counts that is the path of a file or a folder. See `_content_of_part` for the exceptions.
    """
    found = [
        f"{_relocated(one)} {content}"
        for one in _paths_in(argument)
        if (content := _content_of_part(one, named=True))
    ]
    if any(TOO_LARGE in one for one in found):
        return _UNKNOWN
    return hashlib.sha256("\n".join(found).encode(errors="replace")).hexdigest() if found else ""


def _paths_in(argument: str) -> Iterator[str]:
    """Yield each part of an argument that is the path of a file or folder.

    Of several folders that begin at one place, only the longest path counts: in ``my-runs/last``,
    the argument does not name a folder ``my``.
    """
    between = [one.start() for one in _BETWEEN.finditer(argument)]
    ends = [*between, len(argument)]
    for number, begin in enumerate([0, *(place + 1 for place in between)]):
        parts = (argument[begin:end] for end in ends[number : number + _MOST_PARTS])
        paths = [part for part in parts if part and find_path(part)]
        yield from (part for part in paths if part == paths[-1] or names_file(part))


def _content_of_address(address: str) -> str:
    """Return the contents of the files and folders that an address of a user's scheme names."""
    scheme, is_address, rest = address.partition("://")
    if not is_address or scheme.lower().rpartition("+")[2] in _OF_SERVICES:
        return ""
    return content_named_in(unquote(rest))


def _relocated(text: str) -> str:
    """Return a text with the path of the working folder as ``.``.

    So the text is the same for a copy of a project in another folder or on another machine.
    """
    here = str(Path.cwd())
    return re.sub(f"{_BEFORE}{re.escape(here)}{_AFTER}", ".", text) if here in text else text


def _content_of_part(part: str, *, named: bool) -> str:
    """Return the content of the file or folder that a part of a key's text names, or ``""``.

    A part may be any text, such as a token or a word of a prompt. So a folder counts only if its
    path has a separator, or if it is ``named``: the part is the whole text, the path of an address,
    one of a list of existing paths, or a part of an argument. Folders of the system, and those with
    the working folder in them, never count. The content of a large home folder is not known.
    """
    try:
        place = Path(part).expanduser()
        found = place.resolve()
        is_folder, is_there = place.is_dir(), place.exists()
        here = Path.cwd()
    except (OSError, RuntimeError, ValueError):  # No name of a file, or no home folder.
        return ""
    of_system = found.parts[1:2] in _OF_SYSTEM and found.parts[1:3] != _SHARED
    if of_system or here.is_relative_to(found) or not is_there:
        return ""
    if is_folder and not named and os.sep not in part:
        return ""
    if is_folder and _is_home(found) and exceeds(found, _FILES_AT_HOME, _BYTES_AT_HOME):
        return _UNKNOWN
    try:
        return content_of(place)
    except DataError:  # The message would show the text of the key.
        return "unreadable"


def _is_home(folder: Path) -> bool:
    """Return whether the home folder is a folder, or is in it."""
    try:
        return Path.home().is_relative_to(folder)
    except RuntimeError:
        return False


def _read(value: Header | OwnKey) -> str:
    """Return a value with its environment variables resolved, or unchanged if one is not set."""
    try:
        return value.read()
    except UserError:
        return value.value


def _with_contents(item: Option, text: str) -> str:
    """Return a text with the digest of the file that it names."""
    # A user's tracker reads the checkpoint, and the package reads the other files.
    if item.name == "checkpoint":
        return " ".join(filter(None, (_relocated(text), content_of(text))))
    # A file may have the name of a shipped model, so the name counts, too.
    if "path" in item.scopes:
        return f"{Path(text).name} {found}" if (found := content_of(text)) else text
    if "content" in item.scopes:
        for piece in _pieces(text):
            path = unquote_value(piece)
            if names_file(path):
                return text.replace(piece, f"{Path(path).name} {content_of(path)}")
        return " ".join(filter(None, (text, content_named_in(_argument(item, text)))))
    return text


@functools.lru_cache(maxsize=256)
def _keyed(name: str, shown: str, secret: str) -> str:
    """Return a digest of a secret. It is slow to compute and differs for each use."""
    key = f"{name}\0{shown}".encode(errors="replace")
    text = secret.encode(errors="replace")
    return hashlib.scrypt(text, salt=key, n=1 << 14, r=8, p=1, dklen=16).hex()


def is_own_function(text: str) -> bool:
    """Return whether a comparison or a rule is ``package.module:function``."""
    return _OWN.fullmatch(text) is not None
