"""Loading of dialogues from names, fetched data sets and local files."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import stat
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from importlib import resources
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, cast

from pytest_dstfuzz.config import SPLIT_ALIASES, SPLITS, canonical_split
from pytest_dstfuzz.dialogue import normalise
from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.normalise import SLOT_PHRASES, check_normalisation
from pytest_dstfuzz.dialogue.ontology import (
    complete_ontology,
    labels_note,
    ontology_of,
    read_ontology,
    with_call_values,
)
from pytest_dstfuzz.dialogue.readers.registry import READERS, find_readers
from pytest_dstfuzz.dialogue.readers.source import (
    ARCHIVES,
    HALF,
    HEAD_BYTES,
    SURROGATE,
    Reader,
    ReadOptions,
    SourceFile,
    begun_object,
    beside,
    is_table_name,
    json_start,
    list_files,
    list_other_data,
    shape_of,
)
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.dialogue.sampling import gather_dialogues
from pytest_dstfuzz.errors import DataError, UserError, nearest, unknown_name
from pytest_dstfuzz.files import check_apart, check_path
from pytest_dstfuzz.garbage import gc_paused
from pytest_dstfuzz.printable import format_list

#: A function of the file's name, the number of bytes received, and the total number if known.
Progress = Callable[[str, int, int | None], None]

_CHUNK: Final = 1 << 16
_TIMEOUT_SECONDS: Final = 30.0
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def download(url: str, target: Path, blob_id: str, progress: Progress | None = None) -> None:
    """Download ``url`` to ``target``, unless it already has the right content.

    Partial content is kept in ``<target>.part`` so that a later call can resume. The file gets its
    final name once it is complete and verified by ``blob_id``, the SHA-1 of ``blob <size>`` +
    NUL + content, as in git.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(f"cannot download {url!r}: only http and https are supported")
    try:
        if target.is_file() and git_blob_id(target) == blob_id:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        _transfer(url, part, target.name, progress)
        try:
            _check(url, part, blob_id)
        except DataError:
            part.unlink()  # The next try starts from the beginning.
            raise
        part.replace(target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None


def git_blob_id(path: Path) -> str:
    """Return git's id for the content of ``path`` (hexadecimal SHA-1)."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_archive(path: Path) -> None:
    """Raise an error if a zip is broken, or has a link or a path outside of its folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise DataError(f"{path.name} is not a zip file or is cut off ({error})") from None
    for member in members:
        name = member.filename.replace("\\", "/")
        climbs = ".." in PurePosixPath(name).parts
        absolute = name.startswith("/") or name[1:2] == ":"
        if climbs or absolute or stat.S_ISLNK(member.external_attr >> 16):
            raise DataError(
                f"{path.name} is rejected: its member {member.filename!r} is a link or lies "
                "outside the folder"
            )


def _transfer(url: str, part: Path, name: str, progress: Progress | None) -> None:
    """Append the missing bytes to ``part``."""
    have = part.stat().st_size if part.exists() else 0
    # The caller has checked the scheme.
    request = urllib.request.Request(url)  # noqa: S310
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as opened:  # noqa: S310
            response = cast("http.client.HTTPResponse", opened)
            if response.status != http.client.PARTIAL_CONTENT:
                have = 0  # The server does not resume, so start from the beginning.
            _receive(response, part, have, name, progress)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # The file is complete. The blob id verifies it later.
        raise DataError(f"{url} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as e:
        reason = e.reason if isinstance(e, urllib.error.URLError) else e or type(e).__name__
        raise DataError(
            f"{url} cannot be downloaded ({reason}); run the command again to continue"
        ) from None


def _receive(
    response: http.client.HTTPResponse,
    part: Path,
    have: int,
    name: str,
    progress: Progress | None,
) -> None:
    length = response.headers.get("Content-Length")
    total = have + int(length) if length and length.isdigit() else None
    with part.open("ab" if have else "wb") as stream:
        while chunk := response.read(_CHUNK):
            stream.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(name, have, total)
    if total is not None and have < total:
        # ``read(n)`` does not raise IncompleteRead if the connection ends early.
        raise http.client.IncompleteRead(b"", total - have)


def _check(url: str, part: Path, blob_id: str) -> None:
    with part.open("rb") as stream:
        if stream.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise DataError(f"{url} is a pointer of Git LFS instead of the file itself")
    found = git_blob_id(part)
    if found != blob_id:
        raise DataError(
            f"{url} differs from the published file, so the download was deleted; run the command "
            "again"
        )
    if url.endswith(".zip"):
        check_archive(part)


#: Environment variable for another cache folder.
CACHE_VARIABLE: Final = "DSTFUZZ_CACHE"


def cache_folder() -> Path:
    """Return the folder of fetched data sets, which need not exist.

    It is ``DSTFUZZ_CACHE`` or, if that is not set, ``dstfuzz`` in the user's cache folder:
    ``LOCALAPPDATA`` on Windows, ``XDG_CACHE_HOME`` or ``~/.cache`` on other systems.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    # platformdirs is not used because it is also a pytest plugin and would slow down every start.
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(base or "~/.cache").expanduser() / "dstfuzz"


#: Raw files of public GitHub repositories.
RAW_URL: Final = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files of a repository at a pinned commit."""

    repository: str
    commit: str
    #: Folder of the repository. The names in the cache leave it out.
    folder: str
    #: Path below ``folder`` -> git blob id.
    files: Mapping[str, str]
    #: Another data set with the lists of validation and test dialogues, if this data set has none.
    lists_from: str | None = None

    def url(self, file: str) -> str:
        """Return the URL of ``file``."""
        path = f"{self.folder}/{file}" if self.folder else file
        return f"{RAW_URL}/{self.repository}/{self.commit}/{path}"


_BUDZIANOWSKI: Final = ("budzianowski/multiwoz", "fe0c8e65cfcd8462bd33c86e35f21addc84ca82b")

_SHARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "dev": (
        "994fec69745c3dfd469835e90bf5cba2d1c4af47",
        "90e368c50db6bb8d6fbec2fa396e71396ca5a3f7",
    ),
    "test": (
        "fd420005cc9dc259892f541b001d9d48608bd38d",
        "8ce97bc17acc3d1105d92d8d936520b8c93892ba",
    ),
    "train": (
        "1ab08d377750e83493095b0eb1249df81a99ba21",
        "d182eae43341a44ebe3807ed61e829d73dc34a84",
        "2544e4c90a5eeef4c290fe2cf0c4c4d70c4f69ff",
        "ec487da741ebc423770ae2d09c9cb5c70b81bd1f",
        "34d733cbc334bb39c79e6f06652b1d1aa997307e",
        "8d390b5dac386dd87c927eafaec63699fde304ea",
        "ee6a677c78d8416779840e2dd306d668851061b6",
        "cf849daab0a6f0caa3f543a6f6d171e443a80dce",
        "ee088d84d2c274c6f3fb3e119346bfd3321c986e",
        "8b6252a34be01fa9500511dc5cc30121cb1ac7f7",
        "c24eb2c071e3d2ab3f12f742eb591a2526d0c19f",
        "89937591b044fa964a0430480cd9f91dfc681a6a",
        "c39aa0c69fda70278ff37de94f2189f2bb3f9e69",
        "d0399d022e916ae79b40df7adb92cb17fe97ad57",
        "e1db3d9ab1475ffffd725d1e8326f7b1df2adf38",
        "079e9f5881429c398626c8615cb979b67c46329d",
        "2cdad94fbcbf80c21e67cb57d40eece195fe3181",
    ),
}

#: The data sets that ``dstfuzz fetch`` knows, by name.
DATASETS: Final[Mapping[str, Dataset]] = {
    "multiwoz20": Dataset(
        *_BUDZIANOWSKI,
        "data",
        {"MultiWOZ_2.0.zip": "4457555aff779b1e8140dca79e59bfed0832877c"},
    ),
    "multiwoz21": Dataset(
        *_BUDZIANOWSKI,
        "data",
        {"MultiWOZ_2.1.zip": "c30d869f77e86fe2bf19245120e771f28cb32bfa"},
    ),
    "multiwoz22": Dataset(
        *_BUDZIANOWSKI,
        "data/MultiWOZ_2.2",
        {"schema.json": "73776eb237d964f08dfc825a0239ce6d9856b80f"}
        | {
            f"{split}/dialogues_{number:03d}.json": blob_id
            for split, blob_ids in _SHARDS.items()
            for number, blob_id in enumerate(blob_ids, start=1)
        },
    ),
    "multiwoz23": Dataset(
        "lexmen318/MultiWOZ-coref",
        "3f53c94c4a81e428b4c1c32e735f36b60d6aed48",
        "",
        {"MultiWOZ2_3.zip": "b1e35eb63e07da9116940ae52adff79f9900da79"},
        lists_from="multiwoz21",
    ),
    "multiwoz24": Dataset(
        "smartyfh/MultiWOZ2.4",
        "6807c1d85f547fcaae10494d26991d2d37c90a63",
        "data",
        {"MULTIWOZ2.4.zip": "e031162b461bddebc9c00ae83234387edde6d449"},
    ),
}


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Download the missing files of a data set and return its folder.

    Archives stay packed, because readers can read them. Some data sets lack lists of their splits.
    Then another data set with these lists is also downloaded.
    """
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    dataset = DATASETS[name]
    if dataset.lists_from is not None:
        fetch(dataset.lists_from, progress)
    folder = cache_folder() / name
    for file, blob_id in dataset.files.items():
        download(dataset.url(file), folder / file, blob_id, progress)
    return folder


def find_fetched(name: str) -> tuple[Path, ...] | None:
    """Return the folders of a data set if all its files are in the cache.

    The second folder, if any, has the lists of its splits. The files were verified when they were
    stored.
    """
    dataset = DATASETS[name]
    folder = cache_folder() / name
    if not all((folder / file).is_file() for file in dataset.files):
        return None
    if dataset.lists_from is None:
        return (folder,)
    lists = find_fetched(dataset.lists_from)
    return None if lists is None else (folder, *lists)


#: A file in a folder counts as dialogues if `Reader.detect` returns at least this score.
_SURE: Final = 0.5
_SPLIT_WORD = re.compile(rf"(?:^|[^a-z])({'|'.join(SPLIT_ALIASES)})(?:[^a-z]|$)")
_LIST_NAME = re.compile(r"(train|val|test)_?list_?file", re.IGNORECASE)


def split_of(file: SourceFile) -> str | None:
    """Return the split in the name of ``file`` or of a parent folder, if any."""
    for part in reversed(file.name.lower().split("/")):
        match = _SPLIT_WORD.search(part)
        if match and not _LIST_NAME.search(part):
            return SPLIT_ALIASES[match[1]]
    return None


def split_of_list(file: SourceFile) -> str | None:
    """Return the split that a list file is for (``testListFile.txt``), if any."""
    match = _LIST_NAME.match(file.stem)
    return canonical_split(match[1]) if match else None


def classify(file: SourceFile, readers: Sequence[Reader], least: float = _SURE) -> str | None:
    """Return the kind of a file's content, judged by its beginning and its name.

    If the highest score of a reader is at least ``least``, the kind is the name of this reader.
    Otherwise it is ``ontology``, ``schema``, ``list`` (of dialogue ids) or ``None``. Ontologies
    have no typical content. They need the name ``<stem>.ontology.json`` or ``ontology*.json``
    (MultiWOZ: ``ontology-modified.json``).
    """
    if split_of_list(file):
        return "list"
    name = file.name.rsplit("/", 1)[-1].lower()
    if name.endswith(".ontology.json"):
        return "ontology"
    head = file.head(HEAD_BYTES).lstrip()
    sureness = {reader.name: reader.detect(file, head) for reader in readers}
    best = max(sureness, key=sureness.__getitem__)
    if sureness[best] >= least:
        return best
    start = json_start(file, head)
    if start == "[" and '"service_name"' in head:
        return "schema"
    named = name.startswith("ontology") and name.endswith(".json")
    return "ontology" if start == "{" and named else None


#: Kinds of files that are also searched next to a single file.
_EXTRAS: Final = ("list", "ontology", "schema")


#: Pairs of kind (see `classify`) and file.
Pairs = tuple[tuple[str, SourceFile], ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The files of a source with their kinds."""

    source: Path
    #: Sorted by file name.
    files: Pairs
    #: Whether the source is a single file, named by the user.
    single: bool
    #: All known readers, in order of preference.
    readers: tuple[Reader, ...]
    #: Names of files of JSON, tables and the like that are not dialogues in a known layout.
    unknown: tuple[str, ...] = ()

    def of(self, *kinds: str) -> Pairs:
        """Return the files of the given kinds, as pairs (kind, file)."""
        return tuple(pair for pair in self.files if pair[0] in kinds)


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The files of one split, all in one layout."""

    reader: Reader
    files: Pairs
    #: Ids that select dialogues from files with all splits. ``None`` takes every dialogue.
    ids: frozenset[str] | None = None
    #: Whether ``ids`` are those of the split, or those of the other splits.
    listed: bool = True
    notes: tuple[str, ...] = ()

    def takes(self, dialogue_id: str) -> bool:
        """Return whether a dialogue of the files belongs to the split."""
        return self.ids is None or (dialogue_id in self.ids) == self.listed


def catalogue(source: Path, lists: Path | None = None, layout: str | None = None) -> Catalogue:
    """Classify every file of ``source``. For a single file, also classify its neighbours.

    Only lists of dialogue ids are taken from the folder ``lists``.
    """
    readers = find_readers(layout)
    files = list_files(source)
    single = source.is_file() and source.suffix.lower() not in ARCHIVES
    pairs = [(kind, file) for file in files if (kind := classify(file, readers))]
    known = {file for _, file in pairs}
    unknown = [
        *(one.name for one in files if one not in known and one.name.lower().endswith(_RECORDS)),
        *list_other_data(source),
    ]
    if single and not pairs and (guess := classify(files[0], readers, least=1e-9)):
        pairs = [(guess, files[0])]
    if all(kind in _EXTRAS for kind, _ in pairs):
        raise _unknown(source, files, readers)
    if source.is_file():
        neighbours = ((classify(file, readers), file) for file in beside(source))
        pairs += [(kind, file) for kind, file in neighbours if kind in _EXTRAS]
    if lists is not None:
        pairs += [("list", file) for file in list_files(lists) if split_of_list(file)]
    return Catalogue(source, tuple(pairs), single, readers, tuple(unknown))


#: Suffixes of files that are noted if no reader knows them. Others are often notes or settings.
_RECORDS: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")


def _notes(files: Catalogue, choice: SplitFiles) -> tuple[str, ...]:
    """Return the notes of a choice, with one about files of a folder in no known layout.

    A published corpus has other files than dialogues, such as a database.
    """
    if files.single or choice.reader.published or not files.unknown:
        return choice.notes
    names = format_list(files.unknown, 3)
    unread = f"{files.source} has files in no known layout, which are not read: {names}."
    return (*choice.notes, unread)


def _unknown(source: Path, files: Sequence[SourceFile], readers: Sequence[Reader]) -> DataError:
    """Return the error for files that no reader recognises, with the most similar layout."""
    own = [reader for reader in readers if not reader.published]
    filled = next((file for file in files if file.head(1 << 10).strip()), None)
    if filled is None:
        return DataError(f"{source} is empty; expected dialogues, for example {own[0].about}")
    head = filled.head(HEAD_BYTES).lstrip()
    found = {*begun_object(head)} if json_start(filled, head) else set()
    close = max(own, key=lambda one: _likeness(found, one))
    score = _likeness(found, close)
    at = "" if len(files) == 1 else f" ({filled.name})"
    told = f"{source} has no dialogues in a known layout. It is {shape_of(filled)}{at}."
    if is_table_name(filled.name) or not json_start(filled, head):
        listed = ", or ".join(reader.about for reader in own if not reader.keys)
        nearest_one = f"Expected JSON, {listed}"
    else:
        if score < _ALIKE:
            close = next(one for one in own if one.name == "messages")
        nearest_one = f"The nearest layout is {close.name!r}: {close.about}"
    return DataError(f"{told} {nearest_one}. `dstfuzz check-data --help` lists all layouts")


#: An error names the nearest layout only if it is at least this similar.
_ALIKE: Final = 0.7


def _likeness(found: Collection[str], reader: Reader) -> float:
    """Return how similar the found keys are to a reader's keys, from 0 to 1."""
    return max(
        (
            sum(max((_ratio(key, one) for one in found), default=0.0) for key in keys) / len(keys)
            for keys in reader.keys
        ),
        default=0.0,
    )


def _ratio(key: str, other: str) -> float:
    return SequenceMatcher(None, key.lower(), other.lower()).ratio()


def choose(files: Catalogue, split: str, layout: str | None) -> SplitFiles:
    """Choose the files of a split. By default, use the first layout with the split."""
    candidates = [one for one in files.readers if layout in (None, one.name)]
    choices = [choice for reader in candidates if (choice := _of_layout(files, split, reader))]
    if not choices:
        raise _no_split(files, split, layout)
    best = choices[0]
    others = [choice.reader.name for choice in choices[1:]]
    if not others:
        return best
    note = (
        f"{files.source} has the split {split!r} in several layouts: the layout "
        f"{best.reader.name!r} is read, and {' and '.join(map(repr, others))} "
        f"{'is' if len(others) == 1 else 'are'} ignored."
    )
    return replace(best, notes=(*best.notes, note))


def _of_layout(files: Catalogue, split: str, reader: Reader) -> SplitFiles | None:
    pairs = files.of(reader.name)
    if not pairs:
        return None
    if files.single and not reader.published:
        return SplitFiles(reader, pairs)
    named = tuple(pair for pair in pairs if split_of(pair[1]) == split)
    unnamed = tuple(pair for pair in pairs if split_of(pair[1]) is None)
    if named:
        chosen, others = (format_list([one.name for _, one in of], 3) for of in (named, unnamed))
        note = (
            f"Of {files.source}, only files with the split {split!r} in their names are read "
            f"({chosen}), and not: {others}."
        )
        return SplitFiles(reader, named, notes=(note,) if unnamed and not reader.published else ())
    lists = {split_of_list(file): file for _, file in files.of("list")}
    if unnamed and lists:
        return _of_lists(reader, unnamed, split, lists)
    return None if len(unnamed) < len(pairs) else _of_unnamed(files.source, reader, pairs, split)


def _of_lists(
    reader: Reader, pairs: Pairs, split: str, lists: Mapping[str | None, SourceFile]
) -> SplitFiles | None:
    """Choose dialogues by lists of ids. Dialogues on no list form the training split."""
    if split in lists:
        return SplitFiles(reader, pairs, _ids(lists[split]))
    if split == "train" and {"val", "test"} <= set(lists):
        return SplitFiles(reader, pairs, _ids(lists["val"]) | _ids(lists["test"]), listed=False)
    return None


def _of_unnamed(source: Path, reader: Reader, pairs: Pairs, split: str) -> SplitFiles:
    """Use files without a split in their names for the requested split."""
    if reader.name == "original" and any(file.stem == "data" for _, file in pairs):
        raise DataError(
            f"{pairs[0][1].place} contains all splits: put MultiWOZ's valListFile.txt and "
            "testListFile.txt next to it"
        )
    note = f"{source} does not name its split: all dialogues are used as the split {split!r}."
    return SplitFiles(reader, pairs, notes=(note,))


def _ids(file: SourceFile) -> frozenset[str]:
    """Return the dialogue ids in a list file, which has one per line."""
    names = (line.strip().removesuffix(".json") for line in file.lines())
    return frozenset(filter(None, names))


def _no_split(files: Catalogue, split: str, layout: str | None) -> DataError:
    found = [
        f"{reader.name}: {', '.join(splits)}"
        for reader in files.readers
        if (splits := [other for other in SPLITS if _of_layout(files, other, reader)])
    ]
    inside = f" in the layout {layout!r}" if layout else ""
    return DataError(
        f"{files.source} does not have the split {split!r}{inside}. It has {'; '.join(found)}."
    )


#: Name of the dialogues that ship with the package.
SAMPLE: Final = "sample"
#: Name of the shipped dialogues with tools, which replace ``sample`` in tests of tool calls.
SAMPLE_TOOLS: Final = "sample-tools"

# Names that do not identify a data set: the name of the parent folder is used instead.
_NO_NAME: Final = re.compile(r"(train|dev|val|valid|validation|test|data)([_-].*)?|trade[_-]tsv")


class Location(NamedTuple):
    """The location of a data set."""

    path: Path
    #: Short name for test ids and reports.
    name: str
    #: Folder with the lists of its splits, if they are separate.
    lists: Path | None = None


def locate(source: str | Path) -> Location:
    """Return the location and the short name of the data set ``source``.

    An existing path takes precedence over a cached data set with the same name.
    """
    text = os.fspath(source)
    if text in (SAMPLE, SAMPLE_TOOLS):
        shipped = resources.files("pytest_dstfuzz") / "resources" / "dialogues" / text
        return Location(Path(str(shipped)), text)
    check_path(text, "data")
    path = Path(text).expanduser()
    if text and path.exists():
        return Location(path, _name_of(path))
    if text in DATASETS:
        folders = find_fetched(text)
        if folders is not None:
            return Location(folders[0], text, folders[1] if len(folders) > 1 else None)
        raise DataError(
            f"the data set {text!r} is not on this machine: run `dstfuzz fetch {text}`, "
            "or give the path of a folder, file or zip"
        )
    if path.is_symlink():
        raise DataError(
            f"the link {text!r} leads to no file or folder: its target {str(path.readlink())!r} is "
            "missing, or links lead back to each other. Correct the link, or give another path"
        )
    guess = _guess(path, text)
    raise DataError(
        f"no such file or folder: {text!r}.{guess} Give the path of a folder, file or zip, "
        f"or one of {', '.join((SAMPLE, SAMPLE_TOOLS, *DATASETS))}."
    )


def _guess(path: Path, text: str) -> str:
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    found = nearest(path.name, [*siblings, SAMPLE, SAMPLE_TOOLS, *DATASETS]) if text else None
    if found is None:
        return ""
    return f" Did you mean {str(path.parent / found if found in siblings else found)!r}?"


def _name_of(path: Path) -> str:
    resolved = path.resolve()
    name = resolved.name if resolved.is_dir() else resolved.name.split(".", 1)[0]
    if _NO_NAME.fullmatch(name.lower()):
        name = resolved.parent.name
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "data"


_NO_CALLS: Final = (
    "a file of tools (--dst-tools) applies only to assistants that call tools: add "
    "--dst-outcome=tool-calls, or leave the file out"
)


@gc_paused()
def load_dialogues(
    source: str | Path,
    split: str = "test",
    *,
    layout: str | None = None,
    ontology: str | Path | None = None,
    normalisation: str | None = None,
    name: str | None = None,
    outcome: OutcomeKind = "state",
    tools: str | Path | None = None,
) -> DialogueSet:
    """Read one split of a data set in any known layout.

    Args:
        source: ``sample`` (shipped; ``sample-tools`` if tool calls are tested), the path of a
            folder, a file or a zip, or the name of a fetched data set (``multiwoz21``).
        split: ``train``, ``val`` (``dev``, ``validation``) or ``test``.
        layout: the name of a reader, shipped or your own; ``dstfuzz check-data --help`` lists them.
            The default is the first layout that has the split.
        ontology: JSON file ``slot -> list of values``. The default is an ontology found with the
            data, or the values of the labels.
        normalisation: ``multiwoz`` or ``plain``. The default is that of the reader.
        name: name of the set in test ids. The default is derived from the source.
        outcome: the kind of answer to test. If replies are tested, no user utterance in JSON Lines
            may be empty.
        tools: JSON file with the tools for dialogues without tools. Only for tests of tool calls.

    Raises:
        UserError: If split, layout or normalisation is unknown, or tools need another outcome.
        DataError: If the data is missing or broken. The message names the place.
    """
    wanted = canonical_split(split)
    _check_wanted(layout, normalisation, outcome, tools)
    shipped = outcome == TOOL_CALLS and source == SAMPLE
    location = locate(SAMPLE_TOOLS if shipped else source)
    files = catalogue(location.path, location.lists, layout)
    choice = choose(files, wanted, layout)
    rules = normalisation or choice.reader.normalisation
    told: list[str] = []
    schemas = _schemas(files, choice, wanted)
    how = ReadOptions(rules, outcome, told.append, files.source, tuple(schemas))
    read = _with_tools(_read(choice, how), tools, told.append)
    dialogues = gather_dialogues(read)
    if not dialogues:
        why = " ".join((_how_read(choice), *told))
        raise DataError(f"{location.path} has no dialogues of the split {wanted!r}: {why}")
    known, notes = _ontology(files, choice, ontology, how)
    found = DialogueSet(
        name=name or location.name,
        split=wanted,
        dialogues=dialogues,
        ontology=complete_ontology(known, dialogues, rules),
        normalisation=rules,
        layout=choice.reader.name,
        notes=(*_notes(files, choice), *notes, *told, *_untested_calls(dialogues, outcome)),
        slot_phrases=(SLOT_PHRASES if rules == "multiwoz" else choice.reader.phrases(how)),
    )
    return _with_words(replace(found, notes=(*found.notes, *labels_note(found))), outcome)


def _how_read(choice: SplitFiles) -> str:
    """Return the content of the first file, and the layout in which it was read."""
    first, reader = choice.files[0][1], choice.reader
    about = f": {reader.about}" if reader.about else ""
    return f"{first.place} is {shape_of(first)}, read in the layout {reader.name!r}{about}."


def _with_tools(
    dialogues: Iterable[Dialogue], given: str | Path | None, tell: Callable[[str], None]
) -> Iterator[Dialogue]:
    """Yield the dialogues, with the given tools for those that have none."""
    if given is None:
        yield from dialogues
        return
    path = Path(given).expanduser()
    tools = read_tools(SourceFile(path.name, path).json(), str(path))
    lacking = False
    for one in dialogues:
        lacking |= not one.tools
        yield one if one.tools else replace(one, tools=tools)
    if not lacking:
        tell(f"All dialogues have their own tools: those in {path} are not used.")


def _untested_calls(dialogues: Iterable[Dialogue], outcome: OutcomeKind) -> tuple[str, ...]:
    """Return a note if belief states are tested but the data has only tool calls."""
    if outcome != "state":
        return ()
    turns = count = 0
    for turn in chain.from_iterable(dialogue.turns for dialogue in dialogues):
        if turn.state is not None:
            return ()
        turns += 1
        count += bool(turn.calls)
    if not count:
        return ()
    calling = f"{count:,} of {turns:,} turns have recorded tool calls"
    return (
        f"{calling}, but this run tests belief states: add --dst-outcome=tool-calls to test calls.",
    )


def _with_words(data: DialogueSet, outcome: OutcomeKind) -> DialogueSet:
    """Return data with the cue words of its slots or tools."""
    if data.normalisation == "multiwoz":
        words, flags = normalise.CUE_WORDS, normalise.FLAG_WORDS
        data = replace(data, cue_words=words, flag_words=flags)
    return with_call_values(data) if outcome == TOOL_CALLS else data


def _check_wanted(
    layout: str | None, normalisation: str | None, outcome: OutcomeKind, tools: str | Path | None
) -> None:
    if layout is not None and layout not in READERS.single:
        raise unknown_name("layout", layout, READERS.single)
    if normalisation is not None:
        check_normalisation(normalisation)
    if tools is not None and outcome != TOOL_CALLS:
        raise UserError(_NO_CALLS)


def shape_of_data(source: str | Path) -> str:
    """Return a description of the content of a data set's first file."""
    files = list_files(locate(source).path)
    more = f"; {len(files):,} files, this is {files[0].name}" if len(files) > 1 else ""
    return f"{shape_of(files[0])}{more}"


def data_files(source: str | Path) -> tuple[Path, ...]:
    """Return the files of ``source`` with dialogues, ontologies or lists of dialogue ids."""
    path = locate(source).path
    # For a single file this includes the ontology and the lists next to it.
    files = tuple(file.path for _, file in catalogue(path).files)
    return tuple(dict.fromkeys((path, *files) if path.is_file() else files))


def check_apart_of_data(
    written: Mapping[str, str | Path | None], data: Mapping[str, str | Path | None]
) -> None:
    """Raise an error if a file to write is one of the files of the data, such as in its folder.

    Both mappings are as in `check_apart`. The data may also be names of data sets.
    """
    old = {
        name: path
        for name, path in written.items()
        if path is not None and Path(path).expanduser().exists()
    }
    for name, source in data.items() if old else ():
        for file in _files_or_none(source) if source is not None else ():
            check_apart(old, {f"a file of {name}": file})


def _files_or_none(source: str | Path) -> tuple[Path, ...]:
    """Return the files of data, or none if the data is missing, as that of a merged run may be."""
    try:
        return data_files(source)
    except UserError:
        return ()


def _read(choice: SplitFiles, how: ReadOptions) -> Iterator[Dialogue]:
    """Read the chosen files in order. Every dialogue must have turns and a unique id."""
    found: dict[str, str] = {}
    for _, file in choice.files:
        place = file.place
        for dialogue in choice.reader.read(file, how):
            if not choice.takes(dialogue.id):
                continue
            if not dialogue.turns:
                raise DataError(f"{place}: dialogue {dialogue.id} has no turns")
            _check_texts(dialogue, place)
            if dialogue.id in found:
                raise DataError(
                    f"{place}: the id {dialogue.id} is not unique: it is already used in "
                    f"{found[dialogue.id]}"
                )
            found[dialogue.id] = place
            yield dialogue


def _check_texts(dialogue: Dialogue, place: str) -> None:
    """Reject texts that cannot be encoded."""
    last = len(dialogue.turns) - 1
    for turn in dialogue.turns:
        texts = (
            dialogue.id,
            turn.system,
            turn.user,
            turn.answer or "",
            *(text for pair in (turn.state or {}).items() for text in pair),
            *(turn.recorded or ()),
            *(text for pair in (turn.calls or {}).items() for text in pair),
            *(dialogue.closing if turn.index == last else ()),
        )
        if SURROGATE.search("".join(texts)):
            where = f"{place}: dialogue {dialogue.id}, turn {turn.index}"
            raise DataError(f"{where} contains {HALF}")


def _ontology(
    files: Catalogue, choice: SplitFiles, given: str | Path | None, how: ReadOptions
) -> tuple[Ontology | None, tuple[str, ...]]:
    """Return the given ontology, or one found with the data, and notes.

    The ontology file of JSON Lines, ``<stem>.ontology.json``, must be valid. Other JSON files in
    the folder may be something else. The first readable ontology is used, and the notes name
    unreadable files. If there is no such file, the reader may find the slots in other files.
    """
    if given is not None:
        path = Path(given)
        return read_ontology(SourceFile(path.name, path), how.normalisation), ()
    candidates = [*(file for _, file in files.of("ontology")), *how.schemas]
    stems = {file.stem for _, file in choice.files}
    own = [file for file in candidates if file.stem in stems]
    notes: list[str] = []
    for file in dict.fromkeys((*own, *filter(_is_general, candidates))):
        try:
            return read_ontology(file, how.normalisation), tuple(notes)
        except DataError as error:
            if choice.reader.name == "jsonl" and not _is_general(file):
                raise
            notes.append(f"Not used as the ontology: {error}.")
    first = choice.files[0][1]
    if values := choice.reader.slot_values(first):
        return ontology_of(values, how.normalisation, first.place), tuple(notes)
    return None, tuple(notes)


def _schemas(files: Catalogue, choice: SplitFiles, split: str) -> list[SourceFile]:
    """Return the schemas in the source: first those beside the data, then the split's."""
    found = [file for _, file in files.of("schema")]
    beside = {_folder(file) for _, file in choice.files}
    return sorted(found, key=lambda file: (_folder(file) not in beside, split_of(file) != split))


def _folder(file: SourceFile) -> str:
    return file.name.rpartition("/")[0]


def _is_general(file: SourceFile) -> bool:
    """Return whether an ontology is for all files in its folder."""
    return not file.name.lower().endswith(".ontology.json")
