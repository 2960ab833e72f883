"""The identity of settings: everything that decides a result, computed from the option table.

The keys of cached answers and cached results are made from this identity, and so are those of
result folders, their parts and the cells of sweeps.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config.options import OPTIONS
from pytest_dstfuzz.config.parsers import Option, unquote_value
from pytest_dstfuzz.config.secret import Address, Header, OwnKey
from pytest_dstfuzz.config.settings import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import content_of

__all__ = ["code_of", "identity_of", "is_own_function"]

#: Parts of the settings that decide results. The others limit, show or judge a run.
_PARTS: Final = ("tracker", "data", "variant", "reply")
_PACKAGE: Final = f"{__name__.partition('.')[0]}."
#: The folders of Python's own modules and of this package.
_PYTHON: Final = Path(os.__file__).resolve().parent
_PLACE: Final = Path(__file__).resolve().parents[1]
#: A user's own function, as options name it.
_OWN: Final = re.compile(r"(?!embedding:)[\w.]+:[\w.]+")


def decides(item: Option) -> bool:
    """Return whether an option decides results.

    Options that name files of dialogues or tools do not count. The identity of the data is a digest
    of their content instead.
    """
    is_read = item.part == "data" and "path" in item.scopes
    return item.part in _PARTS and "neutral" not in item.scopes and not is_read


def identity_of(settings: Settings, *parts: str) -> dict[str, Any]:
    """Return an identifier of the value of each option that decides a result, as plain JSON.

    A file is identified by its content, wherever the file is. Addresses, headers, keys and tokens
    are identified with their credentials, but these appear only as a keyed digest. Environment
    variables are replaced by their values.

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


def _identity(item: Option, value: object) -> object:
    if isinstance(value, tuple):
        return [_identified(item, one) for one in value]
    found = _identified(item, value)
    token = os.environ.get(item.variable, "").strip() if item.variable else ""
    if token and isinstance(value, Address):
        return [found, _keyed(item.variable, str(value), token)]
    return found


def _identified(item: Option, value: object) -> object:
    match value:
        case Address():
            shown, secret = str(value), value.full
            return shown if shown == secret else f"{shown} {_keyed(item.name, shown, secret)}"
        case Header():
            return f"{value.name}: {_keyed(item.name, value.name, _read(value))}"
        case OwnKey():
            text = _read(value)
            content = content_of(text) if Path(text).is_file() else ""
            return f"{value.name}={content or _keyed(item.name, value.name, text)}"
        case str():
            return _with_contents(item, value)
    return value


def _read(value: Header | OwnKey) -> str:
    """Return a value with its environment variables resolved, or unchanged if one is not set."""
    try:
        return value.read()
    except UserError:
        return value.value


def _with_contents(item: Option, text: str) -> str:
    """Return a text with the digest of a file in place of its path."""
    if "path" in item.scopes:
        return content_of(text) or text
    if "content" in item.scopes:
        # NAME:PATH of a search, PATH:WEIGHT of a noise model.
        for piece in (text, text.partition(":")[2], text.rpartition(":")[0]):
            path = unquote_value(piece)
            if path and Path(path).expanduser().is_file():
                return text.replace(piece, content_of(path))
    return text


@functools.lru_cache(maxsize=256)
def _keyed(name: str, shown: str, secret: str) -> str:
    """Return a digest of a secret; it is slow to compute, and differs for each use."""
    key = f"{name}\0{shown}".encode(errors="replace")
    text = secret.encode(errors="replace")
    return hashlib.scrypt(text, salt=key, n=1 << 14, r=8, p=1, dklen=16).hex()


def is_own_function(text: str) -> bool:
    """Return whether a comparison or a rule is ``package.module:function``."""
    return _OWN.fullmatch(text) is not None


def code_of(thing: Any, name: str = "") -> str:
    """Return a digest of a user's code: the files that define an object, and all that they import.

    If an object of this package wraps a user's object, or a decorator wraps a function, the wrapped
    one counts. Other installed packages do not count. The result is ``""`` for all other objects of
    this package, which its version identifies, and for objects without a file.

    Args:
        thing: a function, a class or an object.
        name: ``package.module:attribute`` if the user named the object so. The module counts, too.
    """
    files = [_file_of_module(name.partition(":")[0])] if ":" in name else []
    for part in _parts_of(thing):
        try:
            files.append(inspect.getsourcefile(part))
        except (OSError, TypeError):
            continue
    found = sorted(_with_imports([Path(file) for file in files if file]).items())
    text = "\n".join(f"{label} {content}" for label, content in found)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if found else ""


def _parts_of(thing: Any) -> Iterator[Any]:
    """Yield the functions and classes that an object of a user consists of."""
    while _is_ours(owner := _owner(thing)):
        if (thing := getattr(thing, "wrapped", None)) is None:
            return
    while thing is not None:
        owner = _owner(thing)
        yield from owner.__mro__ if isinstance(owner, type) else (owner,)
        thing = getattr(thing, "__wrapped__", None)


def _owner(thing: Any) -> Any:
    """Return the function or the class whose module defines an object."""
    if isinstance(thing, functools.partial):
        return _owner(thing.func)
    return thing if isinstance(thing, type) or hasattr(thing, "__code__") else type(thing)


def _is_ours(owner: Any) -> bool:
    return f"{owner.__module__}.".startswith(_PACKAGE)


def _file_of_module(name: str) -> str | None:
    return getattr(sys.modules.get(name), "__file__", None)


def _with_imports(files: Sequence[Path]) -> dict[str, str]:
    """Return the place of each file below its folder of modules -> a digest of its content.

    The files that these files import from such folders are included.
    """
    roots = [Path(entry or ".").resolve() for entry in sys.path]
    roots = [root for root in roots if not _is_installed(root)]
    found: dict[str, str] = {}
    waiting = [file.resolve() for file in files]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in seen or _is_given(file) or not file.is_file():
            continue
        seen.add(file)
        root = file.parent
        while (root / "__init__.py").is_file():
            root = root.parent
        found[file.relative_to(root).as_posix()] = content_of(file)
        # Of an installed package only the files of the same package count.
        top = f"{file.relative_to(root).parts[0]}."
        installed = _is_installed(file)
        folders = [root] if installed else dict.fromkeys((root, *roots))
        for name in dict.fromkeys(_imported_by(file, root)):
            if installed and not f"{name}.".startswith(top):
                continue
            places = (list(_places(each, name)) for each in folders)
            waiting += [place.resolve() for place in next(filter(None, places), ())]
    return found


def _is_installed(path: Path) -> bool:
    """Return whether a path belongs to an installed package."""
    return "site-packages" in path.parts or _is_given(path)


def _is_given(path: Path) -> bool:
    """Return whether a path belongs to Python or to this package."""
    own = "site-packages" not in path.parts or path.is_relative_to(_PLACE)
    return own and any(path.is_relative_to(one) for one in (_PYTHON, _PLACE))


def _places(root: Path, name: str) -> Iterator[Path]:
    """Yield the file of a module, and the ``__init__`` files of its packages, within a folder."""
    place = root
    for part in name.split("."):
        place /= part
        yield from (
            one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()
        )


def _imported_by(file: Path, root: Path) -> Iterator[str]:
    """Yield the names of all modules that the code of a file may import."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    package = file.parent.relative_to(root).parts
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join(filter(None, (*around, node.module or "")))
            names = [".".join(filter(None, (base, alias.name))) for alias in node.names]
        for name in names:
            first = name.partition(".")[0]
            if first not in sys.stdlib_module_names and not f"{first}.".startswith(_PACKAGE):
                yield name
