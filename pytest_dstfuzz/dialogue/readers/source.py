"""Source files, possibly in a folder or zip, and the base class of readers."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import IO, Any, Final, TypeVar

from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue
from pytest_dstfuzz.dialogue.normalise import is_absent, normalise_state
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import encoding_name, encoding_of, refuse_special
from pytest_dstfuzz.json_data import from_json, load_json, parse_json, shorten_value
from pytest_dstfuzz.printable import format_count

__all__ = ["SourceFile"]

_Kind = TypeVar("_Kind")

#: Suffixes of files that may have dialogues, ontologies or lists of dialogue ids.
SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".tsv", ".txt", ".csv", ".yml", ".yaml")

#: Suffixes of compressed files, and of tables that are no text.
_OTHER_DATA: Final = (
    *(".gz", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", ".parquet", ".arrow", ".feather"),
    *(".xlsx", ".xls", ".ods", ".pkl", ".pickle"),
)

#: Suffixes of archives. ``.eval`` is a log of inspect_ai.
ARCHIVES: Final = (".zip", ".eval")

#: Number of bytes for recognising a file. The first dialogue of every published corpus fits.
HEAD_BYTES: Final = 1 << 16
_TABLES: Final = (".csv", ".tsv")
_LINE_END: Final = re.compile(r"[\r\n]")

#: A lone surrogate, which JSON may contain but valid Unicode text may not.
SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: The wording for it in messages.
HALF: Final = "a lone surrogate (half of a character), which is not valid Unicode"

_MAX_DEPTH: Final = 4  # Deep enough for every published archive, and fast in a home folder.
_MAX_FILES: Final = 2000
#: Largest size of a zip member, in bytes and relative to its packed size. MultiWOZ is one file of
#: about 300 MB at a ratio of 18. Small files may repeat a sentence a thousand times.
_MOST_BYTES: Final = 1 << 30
_MOST_RATIO: Final = 100
_ANY_RATIO: Final = 1 << 26
#: The number of zstd among the compressions of zip files. Python unpacks it since version 3.14.
_ZSTD: Final = 93
#: Number of bytes for detecting encoding and line ends.
_BEGUN: Final = 1 << 16


def _archive(path: Path) -> zipfile.ZipFile:
    """Return an open zip.

    Each zip is opened only once, because a long directory is slow to read.
    """
    found = path.stat()
    return _opened_archive(path, os.getpid(), found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _opened_archive(path: Path, *state: int) -> zipfile.ZipFile:
    """Return an opened zip. ``state`` identifies the process and the version of the file."""
    del state
    found = zipfile.ZipFile(path)
    if any(member.compress_type == _ZSTD for member in found.infolist()):
        with suppress(ImportError):
            importlib.import_module("zipfile_zstd")  # Adds zstd to ``zipfile``.
    return found


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source, read on demand. Nothing is unpacked to disk."""

    #: Path relative to the source with forward slashes. Archives count as folders.
    name: str
    path: Path
    #: Name of the member if ``path`` is a zip.
    member: str | None = None

    @property
    def place(self) -> str:
        """The location of the file, for messages."""
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    @property
    def stem(self) -> str:
        """File name without folders and suffixes."""
        return PurePosixPath(self.name).name.split(".", 1)[0]

    def head(self, size: int) -> str:
        """Return the first ``size`` bytes as text, with invalid characters replaced."""
        content = self._read(size)
        return content.decode(encoding_of(content), errors="replace")

    def text(self) -> str:
        """Return the whole text."""
        content = self._read(-1)
        encoding = encoding_of(content)
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            # ``error.object`` may lack the byte order mark.
            before = error.object[: error.start]
            line = max(before.count(b"\n"), before.count(b"\r")) + 1
            raise self._not_decoded(line, error, encoding) from None

    def lines(self) -> Iterator[str]:
        """Yield the lines one by one, decoded like `text`, without line ends.

        This does not use ``splitlines``, because utterances may contain separators that JSON does
        not escape. A lone carriage return ends a line if the start of the file has no line feed.
        """
        begun = self._read(_BEGUN)
        encoding, end = encoding_of(begun), _line_end(begun)
        if encoding not in ("utf-8", "utf-8-sig") or end != "\n":
            yield from self._lines(encoding, end)
            return
        with self._opened() as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise self._not_decoded(number, error, encoding) from None
                yield text.removesuffix("\n")

    def _lines(self, encoding: str, end: str) -> Iterator[str]:
        number = 0
        with (
            self._opened() as stream,
            io.TextIOWrapper(stream, encoding=encoding, newline=end) as lines,
        ):
            try:
                for line in lines:
                    number += 1
                    yield line.removesuffix(end)
            except UnicodeDecodeError as error:
                # No line was yielded from the block that failed to decode.
                number += error.object.count(end.encode(), 0, error.start)
                raise self._not_decoded(number + 1, error, encoding) from None

    def _not_decoded(self, line: int, error: UnicodeDecodeError, encoding: str) -> DataError:
        return DataError(
            f"{self.place}: line {line} is not {encoding_name(encoding)} "
            f"(byte 0x{error.object[error.start]:02x}); convert the file to UTF-8"
        )

    def json(self) -> object:
        """Return the parsed JSON."""
        text = self.text()
        if not text.strip():
            raise DataError(f"{self.place} is empty")
        try:
            return parse_json(text)
        except DataError as error:
            raise DataError(f"{self.place} {error}") from None

    def entries(self, kind: type[_Kind], name: str) -> Iterator[tuple[_Kind, str]]:
        """Yield the objects of a list with their place. ``name`` is the key of their ids."""
        for number, raw in enumerate(
            convert_checked(list[dict[str, Any]], self.json(), self.place)
        ):
            shown = str(raw.get(name, number)).removesuffix(".json")
            place = f"{self.place}: dialogue {shown}"
            yield convert_checked(kind, raw, place), place

    def _read(self, size: int) -> bytes:
        with self._opened() as stream:
            return stream.read(size)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        refuse_special(self.path)
        try:
            if self.member is None:
                with self.path.open("rb") as stream:
                    yield stream
            else:
                with _archive(self.path).open(self.member) as member:
                    yield member
        except NotImplementedError:
            raise DataError(
                f"{self.place} cannot be unpacked, because this Python lacks its compression "
                "(probably zstd): install zipfile-zstd, or convert the archive"
            ) from None
        except _ZIP_ERRORS as error:
            raise DataError(
                f"{self.place} cannot be unpacked ({error}); download the archive again"
            ) from None
        except OSError as error:
            raise DataError(f"{self.place} cannot be read: {error.strerror or error}") from None


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """The options for reading files. All files of one load share one object."""

    #: Normalisation of belief state values: ``plain`` or ``multiwoz``.
    normalisation: str = "plain"
    #: The kind of answer that is tested: ``state``, ``reply`` or ``tool-calls``.
    outcome: OutcomeKind = "state"
    #: Receives notes for the user, such as which columns were read.
    tell: Callable[[str], None] = lambda _: None
    #: Folder, file or zip that the user named.
    source: Path = Path()
    #: Files named ``schema.json`` in the source. Those next to the data come first.
    schemas: tuple[SourceFile, ...] = ()


class Oddities:
    """Accepted data that looks faulty, counted by kind and reported at the end."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, what: str, place: str) -> None:
        """Count one occurrence at a place."""
        count, first = self._found.get(what, (0, place))
        self._found[what] = (count + 1, first)

    def tell(self, tell: Callable[[str], None]) -> None:
        """Report each kind in one sentence, with its count and its first place."""
        for what, (count, first) in self._found.items():
            times = "once" if count == 1 else f"{count:,} times, first"
            tell(f"{what} ({times} at {first}).")


class Reader:
    """A file format for dialogues. A reader recognises files and reads them.

    A subclass has a ``name``, describes its files in ``about``, and implements `detect` and
    `read`. It keeps no state between calls.
    """

    #: Name for ``--layout``, reports and messages.
    name: str
    #: A short description of a file, without a full stop, for errors and help.
    about: str = ""
    #: Sets of keys. A JSON object with all keys of one set may have this format. They are compared
    #: with the keys of a file that no reader recognises.
    keys: tuple[tuple[str, ...], ...] = ()
    #: Default normalisation of values in labels.
    normalisation: str = "plain"
    #: Whether the format is that of a published data set with files named after their split. Any
    #: other file counts as the requested split if the user names it directly.
    published: bool = False

    def detect(self, file: SourceFile, head: str) -> float:
        """Return a confidence from 0 to 1 that a file has this format.

        The reader with the highest confidence is used. If several are equal, the first one is used.
        The shipped readers return at most 0.9. A confidence below 0.5 is a guess. A guess only
        counts for a file that the user names directly, if no other reader recognises the file.

        Args:
            file: ``file.name`` has forward slashes. ``lines()`` and ``json()`` read all of it.
            head: the first 64 KB, without leading white space.
        """
        raise NotImplementedError

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file in order.

        Raises:
            DataError: If the file is broken. The message begins with ``file.place``.
        """
        raise NotImplementedError

    def phrases(self, how: ReadOptions) -> Mapping[str, str]:  # noqa: ARG002 - for subclasses
        """Return ordinary words for the slots, if the data has any."""
        return {}

    def slot_values(self, file: SourceFile) -> Mapping[str, Sequence[object]]:  # noqa: ARG002 - as above
        """Return all slots and their known values, if other files of the project define them.

        They form the ontology if the data has no ontology file. ``file`` is the first file of the
        dialogues.
        """
        return {}


def json_start(file: SourceFile, head: str) -> str:
    """Return the bracket at the start of a JSON file, or ``""`` for text or a table."""
    return head[:1] if head[:1] in ("[", "{") and not is_table_name(file.name) else ""


def is_table_name(name: str) -> bool:
    """Return whether a file has the name of a table."""
    return name.lower().endswith(_TABLES)


def first_line(head: str) -> str:
    """Return the first line of a text, which may have any kind of line end."""
    return _LINE_END.split(head, maxsplit=1)[0]


def first_object(head: str) -> Mapping[str, Any] | None:
    """Return the JSON object in the first line, or ``None`` if the line has no complete object."""
    try:
        found = load_json(first_line(head))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


#: The tokens of JSON. A quotation mark alone is the begin of a text that is cut off.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+|"', re.DOTALL)


@lru_cache(maxsize=8)
def begun_json(head: str) -> object:
    """Return the first JSON value of a text that may be cut off. Drop incomplete values.

    >>> begun_json('[{"a": 1, "b": [2, {"c": "text that is cut of')
    [{'a': 1, 'b': [2, {}]}]
    """
    try:
        return json.JSONDecoder().raw_decode(head)[0]
    except RecursionError:
        return None
    except ValueError:
        pass
    closing: list[str] = []
    end, rest = 0, ""
    for token in _TOKEN.finditer(head):
        mark = token[0]
        if mark == '"':
            break
        if mark in "[{":
            closing.append("]" if mark == "[" else "}")
        elif mark in "]}" and closing:
            closing.pop()
        elif mark != ",":
            continue
        end, rest = token.start() if mark == "," else token.end(), "".join(reversed(closing))
        if not closing:
            break
    try:
        return load_json(head[:end] + rest)
    except ValueError:
        return None


def begun_object(head: str) -> Mapping[str, Any]:
    """Return the first object of a JSON text. The text may be cut off, or be a list of objects."""
    found = entries_of_list(begun_json(head))
    first = found[0] if isinstance(found, list) and found else found
    return first if isinstance(first, dict) else {}


#: Keys of a list as the APIs of OpenAI and Langfuse return it.
_OF_LIST: Final = frozenset(
    {"object", "data", "meta", "first_id", "last_id", "has_more", "next_cursor"}
)


def entries_of_list(value: object) -> object:
    """Return the entries of a list that an API returned, or another value unchanged.

    >>> entries_of_list({"object": "list", "data": [{"id": 1}], "has_more": False})
    [{'id': 1}]
    """
    if isinstance(value, dict) and isinstance(value.get("data"), list) and value.keys() <= _OF_LIST:
        return value["data"]
    return value


def shown_keys(value: object) -> str:
    """Return a description of a JSON value by its keys, for messages.

    >>> shown_keys([{"traj": [], "info": {}}, {}]), shown_keys({}), shown_keys(["a"])
    ('a list of 2 objects with the keys info and traj', 'an empty object', 'a list of 1 text')
    """
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, dict):
            many = f"{len(value):,} object{'s' if len(value) != 1 else ''}"
            return f"a list of {many} with {_keys(first)}"
        kind = "text" if isinstance(first, str) else "list" if isinstance(first, list) else "value"
        return f"a list of {len(value):,} {kind}{'s' if len(value) != 1 else ''}"
    if isinstance(value, dict):
        return f"an object with {_keys(value)}" if value else "an empty object"
    return shorten_value(value)


def _keys(value: Mapping[str, Any]) -> str:
    names = [shown if len(shown) < 40 else f"{shown[:37]}..." for shown in map(str, value)]
    if len(names) > 8:
        return f"the keys {', '.join(names[:8])} and {len(names) - 8} more"
    *listed, last = sorted(names) or ["no name"]
    return f"the keys {', '.join(listed)} and {last}" if listed else f"the key {last}"


def shape_of(file: SourceFile) -> str:
    """Describe the content of a file: its lines, the keys of its objects, its columns, or text."""
    lines = read_filled_lines(file)
    begun = list(islice(lines, 2))
    if not begun:
        return "empty"
    if is_table_name(file.name):
        return f"a table with the header {shorten(begun[0][1], 80)}"
    if begun[0][1].lstrip()[:1] not in ("[", "{", '"'):
        return f"{format_count(len(begun) + sum(1 for _ in lines), 'line')} of text"
    try:
        if is_one_a_line(begun):
            first = shown_keys(parse_json(begun[0][1]))
            return f"{len(begun) + sum(1 for _ in lines):,} lines of JSON, the first {first}"
        return shown_keys(file.json())
    except DataError:
        return "no valid JSON"


def _line_end(begun: bytes) -> str:
    """Return the line end that a text uses, judged by its first bytes."""
    # The last carriage return may be the first half of a line end.
    return "\r" if b"\n" not in begun and b"\r" in begun.rstrip(b"\0")[:-1] else "\n"


_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # A password is needed.
    KeyError,
)


def read_filled_lines(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(file.lines(), start=1) if line.strip())


def is_one_a_line(begun: Sequence[tuple[int, str]]) -> bool:
    """Return whether the first two lines with content begin a JSON Lines file."""
    if len(begun) < 2:
        return False
    try:
        parse_json(begun[0][1])
    except DataError:
        return False
    return True


def moment_of(value: object) -> float | None:
    """Return a number, or a time in ISO 8601 in seconds, or ``None`` for another value."""
    try:
        return float(value if isinstance(value, int | float) else str(value))
    except (OverflowError, ValueError):
        pass
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


#: A key is misspelt if it is at least this similar to one that is missing: `anwser`, `states`.
_ALIKE: Final = 0.82
_NO_LETTERS: Final = re.compile(r"[^a-z]+")


#: Other names that people give to states, for `refuse_misspelt`.
OTHER_STATES: Final = "beliefstates dialoguestates dialogstates"


def refuse_misspelt(
    given: Mapping[str, Any], label: str, others: str, kinds: type | tuple[type, ...], place: str
) -> None:
    """Refuse an object without a label if one of its keys is a misspelt key of the label.

    Otherwise, accuracy would be measured on the labels that are left.

    Args:
        given: an object of the data.
        label: the key of the label.
        others: other names that people give to the label, in small letters without other
            characters, separated by blanks.
        kinds: the types of such a label.
        place: the location of the object.
    """
    if given.get(label):
        return
    for key, value in given.items():
        if value and isinstance(value, kinds) and key != label and _means(key, label, others):
            raise DataError(f"{place}: unknown key {key!r}; did you mean {label!r}?")


@lru_cache(maxsize=1 << 10)
def _means(key: str, label: str, others: str) -> bool:
    letters = _NO_LETTERS.sub("", key.lower())
    alike = SequenceMatcher(None, letters, _NO_LETTERS.sub("", label)).ratio()
    return alike >= _ALIKE or letters in others.split()


def convert_checked(kind: type[_Kind], value: object, place: str) -> _Kind:
    """Convert JSON to the expected type. Errors are a `DataError` that begins with the place."""
    try:
        return from_json(kind, value)
    except UnicodeEncodeError:
        raise DataError(f"{place} contains {HALF}") from None
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


def as_state(
    values: Mapping[str, object] | None, place: str, normalisation: str
) -> BeliefState | None:
    """Return the normalised state. Errors are a `DataError` that begins with the place."""
    try:
        return None if values is None else normalise_state(values, normalisation)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def as_label(
    values: Mapping[str, object] | None, place: str, normalisation: str
) -> BeliefState | None:
    """Return a normalised state whose values have MultiWOZ's spellings.

    ``none`` and similar values mean absence, and only the first value of a list is used.
    """
    if values is None:
        return None
    first = {
        slot: next(iter(value), None) if isinstance(value, list) else value
        for slot, value in values.items()
    }
    stated = {slot: value for slot, value in first.items() if not is_absent(value)}
    return as_state(stated, place, normalisation)


def list_files(source: Path, depth: int = _MAX_DEPTH) -> tuple[SourceFile, ...]:
    """Return the files of a folder, file or zip that may have dialogues, sorted by name.

    ``depth`` is the number of levels of folders to search, and 1 is the folder itself.
    """
    if not source.exists():
        raise DataError(f"no such file or folder: {source}")
    if source.is_dir():
        found = _in_folder(source, depth)
    elif source.suffix.lower() in ARCHIVES:
        found = list(_in_zip(source, ""))
    else:
        found = [SourceFile(source.name, source)]
    if not found:
        raise DataError(
            f"{source} has no file of dialogues; expected one of {', '.join(SUFFIXES)} or .zip"
        )
    return tuple(sorted(found, key=lambda file: file.name))


def beside(file: Path) -> tuple[SourceFile, ...]:
    """Return the plain files in the folder of ``file``, without this file."""
    siblings = (path for path in sorted(file.parent.iterdir()) if path.is_file() and path != file)
    return tuple(SourceFile(p.name, p) for p in siblings if p.suffix.lower() in SUFFIXES)


def _in_folder(folder: Path, depth: int) -> list[SourceFile]:
    found: list[SourceFile] = []
    for path in _walk(folder, depth):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() in ARCHIVES:
            found.extend(_in_zip(path, f"{name}/"))
        elif path.suffix.lower() in SUFFIXES:
            found.append(SourceFile(name, path))
        if len(found) > _MAX_FILES:
            raise DataError(
                f"{folder} has more than {_MAX_FILES} files; give the folder of a single data set"
            )
    return found


def list_other_data(source: Path) -> list[str]:
    """Return the names of files in a folder that have data in a format that no reader knows."""
    if not source.is_dir():
        return []
    paths = (path for path in _walk(source, _MAX_DEPTH) if path.suffix.lower() in _OTHER_DATA)
    return [path.relative_to(source).as_posix() for path in islice(paths, _MAX_FILES)]


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if depth > 1:
                yield from _walk(entry, depth - 1)
        else:
            yield entry


def _in_zip(path: Path, prefix: str) -> Iterator[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{path} is not a zip file or is cut off ({error}); download it again"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    for member in members:
        name = member.filename
        parts = PurePosixPath(name).parts
        hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
        if not hidden and PurePosixPath(name).suffix.lower() in SUFFIXES:
            _refuse_bomb(path, member)
            yield SourceFile(prefix + name, path, name)


def _refuse_bomb(path: Path, member: zipfile.ZipInfo) -> None:
    """Reject a zip member that would need too much memory.

    Unpacking stops at the stated length of the member. Only deflate guarantees that no single piece
    is longer.
    """
    size, packed = member.file_size, max(member.compress_size, 1)
    if member.compress_type in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        raise DataError(
            f"{path}:{member.filename} is compressed with bzip2 or lzma, which may need any amount "
            "of memory: compress it with deflate, or unpack it"
        )
    if size > _MOST_BYTES or (size > _ANY_RATIO and size > _MOST_RATIO * packed):
        raise DataError(
            f"{path}:{member.filename} would unpack to {size / 1e6:,.0f} MB from "
            f"{packed / 1e6:,.1f} MB; the limit for a file in a zip is {_MOST_BYTES / 1e6:,.0f} MB "
            f"and {_MOST_RATIO} times its compressed size. If it really contains dialogues, unpack "
            "it and give the file"
        )
