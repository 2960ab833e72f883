"""Files: read with one message, written whole or left as they were, locked between writers."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
import shutil
import time
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.json_data import parse_json

__all__ = [
    "check_apart",
    "check_writable",
    "digest_of",
    "is_pickled",
    "locked",
    "read_json",
    "read_table",
    "read_text",
    "read_versioned",
    "write_bytes",
    "write_json",
    "write_text",
]

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

#: Characters of a name that its draft has: of four bytes each they leave room for the rest.
_NAME = 50
_SURROGATE = re.compile("[\ud800-\udfff]")
#: How a text begins that says how it is encoded; that of UTF-32 begins as that of UTF-16 does.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Bytes that tell an encoding without such a beginning.
_LOOKED_AT: Final = 4096
#: Seconds between two attempts to lock.
_PAUSE: Final = 0.02


def read_text(path: Path, what: str = "") -> str:
    """Return the text of a file in UTF-8, ``what`` saying in messages what it should be."""
    try:
        content = path.read_bytes()
    except OSError as error:
        name = f"the {what} {path}" if what else path
        raise DataError(f"cannot read {name}: {error.strerror or error}") from None
    encoding = encoding_of(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is no {what or 'text'}: it is not {encoding_name(encoding)} text; convert "
            "the file to UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its first bytes, as Python calls it.

    Editors and spreadsheets begin a file with a mark. UTF-16 without a mark shows by the zero
    bytes of its Latin letters and blanks. All else is taken for UTF-8, or is no text.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    some = head[:_LOOKED_AT]
    count = len(some) // 2
    first, second = some[0::2].count(0), some[1::2].count(0)
    if count and second > count // 3 and not first:
        return "utf-16-le"
    if count and first > count // 3 and not second:
        return "utf-16-be"
    return "utf-8"


def encoding_name(encoding: str) -> str:
    """Return the name that people know an encoding of `encoding_of` by."""
    return "-".join(encoding.upper().split("-")[:2])


def read_json(path: Path, what: str) -> Any:
    """Return the JSON value in a file; see `read_text` and `parse_json`."""
    text = read_text(path, what)
    try:
        return parse_json(text)
    except DataError as error:
        raise DataError(f"{path} is no {what}: it {error}") from None


def read_versioned(path: Path, what: str, key: str, known: int, oldest: int = 1) -> dict[str, Any]:
    """Return the JSON object in a file that says its version, ``oldest`` to ``known``."""
    content = read_json(path, what)
    version = content.get(key) if isinstance(content, dict) else None
    if type(version) is not int:  # True is one too.
        raise DataError(f"{path} is no {what}: it has no {key!r}")
    if not oldest <= version <= known:
        fix = "update pytest-dstfuzz" if version > known else f"write the {what} again with it"
        raise DataError(
            f"{path} has the {key.replace('_', ' ')} {version}, this package knows {known}: {fix}"
        )
    return dict(content)


def read_table(path: Path, name: str) -> Any:
    """Return a table of a TOML file, ``name`` in brackets; an empty one where there is none.

    ``[]`` is the whole file.
    """
    text = read_text(path)
    try:
        table: Any = tomllib.loads(text)
    except ValueError as error:
        raise DataError(f"{path} is no TOML: {error}") from None
    except RecursionError:
        raise DataError(f"{path} is nested too deeply to be read") from None
    for part in filter(None, name.strip("[]").split(".")):
        table = table.get(part, {}) if isinstance(table, Mapping) else table
    return table


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as `utf8` does, atomically; folders that are missing are made."""
    write_bytes(path, utf8(text))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with its end, or other pieces, as `write_text` does, one by one."""
    _write(path, map(utf8, lines))


def utf8(text: str) -> bytes:
    r"""Return a text as UTF-8.

    A lone surrogate, which UTF-8 does not have, is written as ``\udXXX``, as JSON spells it.
    """
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode("utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, indented by one blank, atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` atomically; folders that are missing are made.

    It goes to a new file in the same folder, which then takes the place of ``path``:
    whatever fails, a file that was there keeps its content. A link stays one.
    """
    _write(path, (content,))


def write_named(folder: Path, parts: Iterable[bytes], begin: str, end: str) -> Path:
    """Write parts of a content, one by one, to a file whose name their SHA-256 decides.

    Args:
        folder: of the file.
        parts: of its content.
        begin: of its name, before 8 digits of the digest.
        end: of its name, after them.

    Returns:
        The file.
    """
    digest = hashlib.sha256()

    def noted() -> Iterator[bytes]:
        for part in parts:
            digest.update(part)
            yield part

    def path() -> Path:
        return folder / f"{begin}{digest.hexdigest()[:8]}{end}"

    return _write(path(), noted(), path)


def _write(path: Path, parts: Iterable[bytes], named: Callable[[], Path] | None = None) -> Path:
    """Write parts to a path, or to the one that is known when all are written."""
    target = _target(path)
    draft = _draft(target.parent, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Not tempfile: its files are readable by their owner alone, whatever the umask.
            with draft.open("xb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            target = target if named is None else _target(named())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None
    return target


#: Zip archives, which `torch.save` writes, and pickles.
_PICKLES: Final = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def is_pickled(content: bytes) -> bool:
    """Whether a file is one that may run code when it is read, by how it begins."""
    # One of safetensors begins with the size of its header, which may look alike, and a brace.
    return content.startswith(_PICKLES) and content[8:9] != b"{"


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of names and contents of files, in their order, as 64 digits."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def check_apart(
    written: Mapping[str, str | Path | None], read: Mapping[str, str | Path | None]
) -> None:
    """Refuse to write a file that is read, or that is written for something else too.

    Links of either kind are followed: what counts is the file. Both map what messages call a
    file to its path; ``None`` is nothing.
    """
    known = {name: Path(path) for name, path in read.items() if path is not None}
    paths = {name: Path(path) for name, path in written.items() if path is not None}
    for name, target in paths.items():
        for other, path in known.items():
            if _same(target, path):
                raise UserError(
                    f"{name} and {other} are one file, {path}: what is in it would be lost; give "
                    "one of them another path"
                )
        known[name] = target


def _same(one: Path, other: Path) -> bool:
    try:
        if one.expanduser().resolve() == other.expanduser().resolve():
            return True
        return one.expanduser().samefile(other.expanduser())
    except (OSError, RuntimeError, ValueError):  # One of them is not there, a loop of links, ...
        return False


def check_writable(path: Path) -> None:
    """Find out before a long run whether its report can be written; leaves no trace."""
    target = _target(path)
    folder = next(parent for parent in target.parents if parent.exists())
    draft = _draft(folder, target)
    try:
        draft.open("xb").close()
        draft.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _draft(folder: Path, target: Path) -> Path:
    """Return a name that no run has used.

    One that was killed may have left its draft; its process number comes again, in a container
    in every run. The end of a long name is left out: a name has a limit.
    """
    return folder / f".{target.name[:_NAME]}.{uuid.uuid4().hex}.tmp"


def _target(path: Path) -> Path:
    """Return the file itself where ``path`` is a link, so that the link stays."""
    try:
        target = path.expanduser().resolve()
        if target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "no regular file"
            raise UserError(f"cannot write {path}: it is {kind}")
    except (OSError, RuntimeError, ValueError) as error:  # A loop of links, a NUL, ...
        raise _unwritable(path, error) from None
    return target


def _unwritable(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(f"cannot write {path}: {reason}")


@contextmanager
def locked(path: Path, wait: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file while it is read, changed and written; its folder is made.

    The folder is what is locked, since the file itself is replaced when it is written, and
    nothing is left behind, also by a process that is killed. Where folders cannot be locked
    (Windows, some network file systems) a file ``.NAME.lock`` beside it stands for the lock.
    After ``wait`` seconds it is an error.
    """
    target = path.expanduser().resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        held = _lock_folder(path, target.parent, wait)
        mark = None if held is not None else target.with_name(f".{target.name}.lock")
        if mark is not None:
            held = _make_mark(path, mark, wait)
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror or error}") from None
    try:
        yield
    finally:
        if held is not None:
            os.close(held)
        if mark is not None:
            mark.unlink(missing_ok=True)


def _lock_folder(path: Path, folder: Path, wait: float) -> int | None:
    """Return what holds the lock; ``None`` where a folder cannot be locked."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(held)
                raise UserError(
                    f"another process has been changing {path} for {wait:.0f} seconds: "
                    "try again when it is done"
                ) from None
            time.sleep(_PAUSE)
        except OSError:
            os.close(held)
            return None
        except BaseException:
            os.close(held)
            raise
        else:
            return held


def _make_mark(path: Path, mark: Path, wait: float) -> int:
    """Make the file that stands for the lock; Windows removes it also when a process is killed."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
    end = time.monotonic() + wait
    while True:
        # Windows refuses permission while another process is removing it.
        with suppress(FileExistsError, *([PermissionError] if os.name == "nt" else [])):
            return os.open(mark, flags, 0o600)
        if time.monotonic() > end:
            raise UserError(
                f"another process has been changing {path} for {wait:.0f} seconds; if there is "
                f"none, remove {mark}"
            )
        time.sleep(_PAUSE)


def hold_folder(folder: Path) -> Callable[[], None]:
    """Make a folder that nobody else may read or replace by a link; return what lets go of it."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        if fcntl is None:
            return lambda: None
        held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            if folder.exists() and os.path.samestat(os.fstat(held), folder.stat()):
                return lambda: os.close(held)
        except BaseException:
            os.close(held)
            raise
        # Another run took it for a leftover before it was held.
        os.close(held)


def remove_leftovers(place: Path, pattern: str) -> None:
    """Remove the folders of this user that killed runs left behind.

    Without locks (Windows) it cannot be known that nobody uses them: they stay.
    """
    if fcntl is None:
        return
    for folder in place.glob(pattern):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:  # A link, no folder, not ours to read, or gone meanwhile.
            continue
        try:
            if os.fstat(held).st_uid == os.getuid():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # A run that goes on holds it.
            continue
        finally:
            os.close(held)
