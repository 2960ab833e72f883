"""Files: reading with clear errors, atomic writing, and locks between processes."""

from __future__ import annotations

import codecs
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import time
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.json_data import parse_json

__all__ = [
    "check_apart",
    "check_outside",
    "check_own",
    "check_path",
    "check_writable",
    "content_of",
    "digest_of",
    "exceeds",
    "find_path",
    "is_pickled",
    "lock_file",
    "names_file",
    "read_json",
    "read_table",
    "read_text",
    "read_unchanged",
    "read_versioned",
    "refuse_address",
    "write_bytes",
    "write_json",
    "write_lines",
    "write_text",
]

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

_Content = TypeVar("_Content")
_Mark = TypeVar("_Mark")
#: Maximum number of characters that the name of a draft takes from the name of its target. With 4
#: bytes for each, the name of the draft is still short enough for a file system.
_NAME = 50
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Byte order marks; UTF-32 comes first, since its mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Number of bytes to inspect if a text has no byte order mark.
_LOOKED_AT: Final = 4096
#: Maximum number of bytes of a name in a path, on all common file systems.
_LONGEST: Final = 255
#: The start of an address, such as ``https://``. `Path` makes ``https:/`` of it.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
#: Seconds between two attempts to lock.
_PAUSE: Final = 0.02


def check_path(path: str | Path, shown_as: str) -> None:
    """Raise an error if the system refuses to look for a path. Nothing needs to be there.

    ``Path.exists`` raises an `OSError` for such a path, instead of returning whether it exists.

    Args:
        path: the path. It may also be a name, such as that of a data set.
        shown_as: the user's spelling of the option, for the message. The path itself is not shown
            if it is too long, because it may be another text, such as one with a credential.
    """
    try:
        problem = _number_of_error(os.path.expanduser(path))  # noqa: PTH111 - never fails
    except ValueError:  # A NUL, or a lone surrogate.
        raise UserError(
            f"{shown_as}: the value has a character that no path can have: remove it"
        ) from None
    if problem == errno.ENAMETOOLONG:
        raise UserError(
            f"{shown_as}: the value is too long for a name or a path, in which each part can "
            f"have at most {_LONGEST} bytes: give a shorter one"
        )
    # The user of the path says what is missing.
    if problem not in (0, errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        raise UserError(
            f"{shown_as}: cannot read {path}: {os.strerror(problem)}: give another path, or "
            "change the permissions"
        )


def refuse_address(text: str, shown_as: str) -> None:
    """Raise an error if the path of a file or folder is an address.

    Otherwise a report would be written into a folder ``https:``, and its path would show the
    credentials of the address.
    """
    if _ADDRESS.match(text) and find_path(text) is None:
        raise UserError(
            f"{shown_as}: the value is an address, but it must be a file or folder of this "
            "machine: give a path"
        )


def _number_of_error(place: str) -> int:
    """Return the number of the system's error for a path, or 0 if there is none."""
    if max(map(len, os.fsencode(place).split(os.fsencode(os.sep)))) > _LONGEST:
        return errno.ENAMETOOLONG
    try:
        mode = os.stat(place).st_mode  # noqa: PTH116 - Path drops a slash at the end
    except OSError as error:
        return error.errno or errno.EIO
    is_locked = stat.S_ISDIR(mode) and not os.access(place, os.R_OK | os.X_OK)
    return errno.EACCES if is_locked else 0


def find_path(text: str) -> Path | None:
    """Return the path of a file or folder that exists, or ``None`` for any other text."""
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # No name of a file, or no home folder.
        return None


def names_file(text: str) -> bool:
    """Return whether a text is the path of a file. Any text may be given, such as a prompt."""
    path = find_path(text)
    return path is not None and path.is_file()


def refuse_special(path: Path, what: str = "") -> None:
    """Raise an error for a pipe, a socket or a device, because reading it may never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # Opening the file reports that.
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        name = f"the {what} {path}" if what else path
        raise DataError(
            f"cannot read {name}: it is a pipe or a device, not a regular file; write its content "
            "to a file"
        )


def read_text(path: Path, what: str = "") -> str:
    """Return the text of a file with newlines as line ends. Messages call the file ``what``."""
    refuse_special(path, what)
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
            f"{path} is not a valid {what or 'text'}: it is not {encoding_name(encoding)} text; "
            "convert the file to UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def encoding_of(head: bytes) -> str:
    """Return Python's name for the encoding of a text, given its first bytes.

    Editors and spreadsheets begin a file with a byte order mark. Without a mark, UTF-16 is
    recognised by the zero bytes of Latin letters and blanks. The default is UTF-8.
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
    """Return the common name of an encoding that `encoding_of` returned."""
    return "-".join(encoding.upper().split("-")[:2])


def read_json(path: Path, what: str) -> Any:
    """Return the JSON value of a file. See `read_text` and `parse_json`."""
    text = read_text(path, what)
    try:
        return parse_json(text)
    except DataError as error:
        raise DataError(f"{path} is not a valid {what}: it {error}") from None


def read_versioned(path: Path, what: str, key: str, known: int, oldest: int = 1) -> dict[str, Any]:
    """Return the JSON object of a file. Its version must be between ``oldest`` and ``known``."""
    content = read_json(path, what)
    version = content.get(key) if isinstance(content, dict) else None
    if type(version) is not int:  # isinstance() would accept True.
        raise DataError(f"{path} is not a valid {what}: it has no {key!r}")
    if not oldest <= version <= known:
        fix = (
            "update pytest-dstfuzz"
            if version > known
            else f"write the {what} again with this version"
        )
        raise DataError(
            f"{path} has the {key.replace('_', ' ')} {version}, but this package reads {known}: "
            f"{fix}"
        )
    return dict(content)


def read_table(path: Path, name: str) -> Any:
    """Return a table of a TOML file by its name in brackets. A missing table is empty.

    The name ``[]`` means the whole file.
    """
    text = read_text(path)
    try:
        table: Any = tomllib.loads(text)
    except ValueError as error:
        raise DataError(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise DataError(f"{path} is nested too deeply to be read") from None
    for part in filter(None, name.strip("[]").split(".")):
        table = table.get(part, {}) if isinstance(table, Mapping) else table
    return table


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically. Missing folders are created."""
    write_bytes(path, utf8(text))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write texts one after the other, see `write_text`. Lines must contain their newlines."""
    _write(path, map(utf8, lines))


def utf8(text: str) -> bytes:
    r"""Return a text as UTF-8.

    UTF-8 cannot encode a lone surrogate. It is written as ``\udXXX``, as in JSON.
    """
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode("utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, indented by one blank, atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` atomically. Missing folders are created.

    The content goes to a new file in the same folder, which then replaces ``path``. If anything
    fails, an existing file keeps its content. A symbolic link stays a link.
    """
    _write(path, (content,))


def write_named(folder: Path, parts: Iterable[bytes], begin: str, end: str) -> Path:
    """Write a file whose name contains the SHA-256 of its content. Write it part by part.

    Args:
        folder: the folder of the file.
        parts: the parts of the content.
        begin: the file name before the first 8 digits of the digest.
        end: the file name after the digits.

    Returns:
        The path of the file.
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
    """Write parts to ``path``, or to the path that ``named`` returns after the last part."""
    target = _target(path)
    draft = _draft(target.parent, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # tempfile would ignore the umask: only the owner could read the file.
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


#: The first bytes of Zip archives, which `torch.save` writes, and of pickles.
_PICKLES: Final = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def is_pickled(content: bytes) -> bool:
    """Return whether a file is a pickle, by its first bytes. Loading a pickle may run code."""
    # A safetensors file begins with the size of its header, which may look like a pickle. A brace
    # follows the size.
    return content.startswith(_PICKLES) and content[8:9] != b"{"


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files in the given order, as 64 digits."""
    digest = hashlib.sha256()
    for path in paths:
        refuse_special(path)
        digest.update(path.name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def content_of(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, or of all names and contents in a folder.

    The digest does not depend on the path. It is ``""`` if there is no such file or folder.

    Raises:
        DataError: a file cannot be read.
    """
    try:
        place = Path(path).expanduser()
        if place.is_dir():
            digest = hashlib.sha256()
            for one in sorted(_entries_of(place)):
                # Of all else than a regular file, a program may see the name.
                name, content = one.relative_to(place).as_posix(), b""
                if one.is_file():
                    content = _content(one)
                else:
                    name += "/"
                digest.update(f"{name}\0".encode(errors="replace") + content)
            return digest.hexdigest()
        return _content(place).hex() if place.is_file() else ""
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (RuntimeError, ValueError):  # No home folder, or a NUL.
        return ""


def read_unchanged(
    read: Callable[[], _Content], mark: Callable[[], _Mark], about: str
) -> tuple[_Content, _Mark]:
    """Read files, and return the result with a mark of the files, such as a digest.

    Raises:
        UserError: the mark differs before and after, so it may not be that of the result.
    """
    before = mark()
    found = read()
    if mark() != before:
        raise UserError(
            f"the files of {about} changed while they were read, for example because a training "
            "wrote a new checkpoint: run again when they no longer change"
        )
    return found, before


def exceeds(folder: Path, files: int, size: int) -> bool:
    """Return whether a folder has more files, or more bytes in them, than these."""
    total = 0
    for count, one in enumerate(_entries_of(folder), 1):
        with suppress(OSError):
            total += one.stat().st_size
        if count > files or total > size:
            return True
    return False


def _entries_of(folder: Path) -> Iterator[Path]:
    """Yield all in a folder and its subfolders, except subfolders with anything in them.

    Links are followed, but no link to a folder that contains it.
    """
    above: dict[str, set[Path]] = {str(folder): {folder.resolve()}}
    for place, folders, names in os.walk(folder, followlinks=True):
        seen = above.pop(place)
        inner = {name: Path(place, name).resolve() for name in folders}
        folders[:] = [name for name in folders if inner[name] not in seen]
        above.update({os.path.join(place, name): seen | {inner[name]} for name in folders})  # noqa: PTH118 - as os.walk
        yield from (Path(place, name) for name in (*names, *(inner.keys() - {*folders})))
        if not (inner or names or Path(place) == folder):
            yield Path(place)


def _content(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def check_apart(
    written: Mapping[str, str | Path | None], read: Mapping[str, str | Path | None]
) -> None:
    """Raise an error if a file to write is also an input, or has two purposes.

    Symbolic links are followed. Each mapping gives the path for the name of a file in messages. The
    path ``None`` means no file.
    """
    known = {name: Path(path) for name, path in read.items() if path is not None}
    paths = {name: Path(path) for name, path in written.items() if path is not None}
    for name, target in paths.items():
        for other, path in known.items():
            if _same(target, path):
                raise UserError(
                    f"{name} and {other} are the same file, {path}, which would be overwritten: "
                    "give one another path"
                )
        known[name] = target


def check_outside(written: Iterable[str | Path], folder: str | Path | None) -> None:
    """Raise an error if a file to write would be in a folder of results."""
    if folder is None:
        return
    for path in written:
        if Path(path).expanduser().resolve().parent == Path(folder).expanduser().resolve():
            raise UserError(f"{path} is in the folder of results, {folder}: write it elsewhere")


def check_own(path: str | Path, mark: str, what: str) -> None:
    """Raise an error if a file to write exists, and another program or a person wrote it.

    Args:
        path: the file. An empty file may be overwritten.
        mark: a text at the beginning of each file that this package writes here.
        what: a noun for these files, for the message.
    """
    place = Path(path).expanduser()
    if not names_file(str(path)):
        return
    try:
        with place.open("rb") as file:
            head = file.read(_LOOKED_AT)
    except OSError as error:
        raise _unwritable(place, error) from None
    if head.strip() and mark not in head.decode(encoding_of(head), "replace"):
        raise UserError(
            f"{path} exists and is not {what}, so it is not overwritten: give another path, or "
            "move the file away"
        )


def _same(one: Path, other: Path) -> bool:
    try:
        if one.expanduser().resolve() == other.expanduser().resolve():
            return True
        return one.expanduser().samefile(other.expanduser())
    except (OSError, RuntimeError, ValueError):  # For example, a missing file or a link loop.
        return False


def check_writable(path: Path) -> None:
    """Raise an error if a report cannot be written. The check leaves no file behind."""
    target = _target(path)
    folder = next(parent for parent in target.parents if parent.exists())
    draft = _draft(folder, target)
    try:
        draft.open("xb").close()
        draft.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _draft(folder: Path, target: Path) -> Path:
    """Return an unused name for a draft. A draft is written first and then renamed.

    A killed run may leave its draft behind. The name contains no process id, because each run in a
    container may have the same id. The name of the target file is cut, because file systems limit
    the length of names.
    """
    return folder / f".{target.name[:_NAME]}.{uuid.uuid4().hex}.tmp"


def _target(path: Path) -> Path:
    """Return the file to write. For a symbolic link, return its target to keep the link."""
    try:
        target = path.expanduser().resolve()
        if target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "not a regular file"
            raise UserError(f"cannot write {path}: it is {kind}")
    except (OSError, RuntimeError, ValueError) as error:  # For example, a link loop or a NUL.
        raise _unwritable(path, error) from None
    return target


def _unwritable(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(f"cannot write {path}: {reason}")


@contextmanager
def lock_file(path: Path, wait: float = 60.0) -> Iterator[None]:
    """Hold an exclusive lock on a file while it is read, changed and written.

    The folder of the file is locked, because writing replaces the file. The folder is created if
    needed. The lock leaves no file behind, even if the process is killed. If folders cannot be
    locked (Windows, some network file systems), a file ``.NAME.lock`` next to the file is the lock.

    Raises:
        UserError: the lock cannot be taken, for example because another process holds it longer
            than ``wait`` seconds. With 0, do not wait.
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


def _in_use(path: Path, wait: float) -> str:
    if not wait:
        return f"another process is changing {path}"
    return f"another process has been changing {path} for {wait:.0f} seconds"


def _lock_folder(path: Path, folder: Path, wait: float) -> int | None:
    """Lock the folder and return the lock's descriptor.

    Return ``None`` if folders have no locks.
    """
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
                raise UserError(f"{_in_use(path, wait)}: try again later") from None
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
    """Create the lock file and return its descriptor.

    Windows removes the file even if the process is killed.
    """
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
    end = time.monotonic() + wait
    while True:
        # Windows denies permission while another process removes the file.
        with suppress(FileExistsError, *([PermissionError] if os.name == "nt" else [])):
            return os.open(mark, flags, 0o600)
        if time.monotonic() > end:
            raise UserError(
                f"{_in_use(path, wait)}: try again later, or remove {mark} if there is no such "
                "process"
            )
        time.sleep(_PAUSE)


def hold_folder(folder: Path) -> Callable[[], None]:
    """Create a folder for this user only and lock it. Return a function that unlocks it."""
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
        # Another run removed the folder as a leftover before this process locked it.
        os.close(held)


def remove_leftovers(place: Path, pattern: str) -> None:
    """Remove the folders of this user that killed runs left behind.

    Windows cannot lock folders, so a folder may still be in use. Therefore Windows keeps all
    folders.
    """
    if fcntl is None:
        return
    for folder in place.glob(pattern):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:  # A link, not a folder, not readable, or already removed.
            continue
        try:
            if os.fstat(held).st_uid == os.getuid():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # An active run holds it.
            continue
        finally:
            os.close(held)
