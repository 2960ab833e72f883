"""Data sets that are fetched: where each is published, how it gets here, where it is kept."""

from __future__ import annotations

import hashlib
import http.client
import os
import stat
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, cast

from pytest_dstfuzz.errors import DataError, unknown_name

#: Called with the file's name, the bytes received so far, and all bytes where known.
Progress = Callable[[str, int, int | None], None]

_CHUNK: Final = 1 << 16
_TIMEOUT_SECONDS: Final = 30.0
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def download(url: str, target: Path, blob_id: str, progress: Progress | None = None) -> None:
    """Bring ``url`` to ``target``, unless it is there already with the right content.

    What has arrived is kept in ``<target>.part``, so that a broken transfer goes on where
    it stopped; the file appears under its own name only when it is whole and verified by
    ``blob_id``, SHA-1 of ``blob <size>`` + NUL + content, as git names it.
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
            part.unlink()  # So that the next try starts anew.
            raise
        part.replace(target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None


def git_blob_id(path: Path) -> str:
    """Return the id that git gives the content of ``path`` (hexadecimal SHA-1)."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_archive(path: Path) -> None:
    """Refuse a zip that is broken, or whose members climb out of its folder or are links."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise DataError(f"{path.name} is no zip or is cut off ({error})") from None
    for member in members:
        name = member.filename.replace("\\", "/")
        climbs = ".." in PurePosixPath(name).parts
        absolute = name.startswith("/") or name[1:2] == ":"
        if climbs or absolute or stat.S_ISLNK(member.external_attr >> 16):
            raise DataError(
                f"{path.name} is refused: its member {member.filename!r} is a link or climbs "
                "out of the folder"
            )


def _transfer(url: str, part: Path, name: str, progress: Progress | None) -> None:
    """Append to ``part`` what is missing of it."""
    have = part.stat().st_size if part.exists() else 0
    # The caller has checked the scheme.
    request = urllib.request.Request(url)  # noqa: S310
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as opened:  # noqa: S310
            response = cast("http.client.HTTPResponse", opened)
            if response.status != http.client.PARTIAL_CONTENT:
                have = 0  # This server does not resume: from the beginning.
            _receive(response, part, have, name, progress)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # All of it is here; what it is worth, the blob id says.
        raise DataError(f"{url} answers {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as e:
        reason = e.reason if isinstance(e, urllib.error.URLError) else e or type(e).__name__
        raise DataError(f"{url} cannot be fetched ({reason}); run it again to go on") from None


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
        # ``read(n)`` does not raise IncompleteRead when the connection ends early.
        raise http.client.IncompleteRead(b"", total - have)


def _check(url: str, part: Path, blob_id: str) -> None:
    with part.open("rb") as stream:
        if stream.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise DataError(f"{url} is only a pointer of Git LFS, not the file itself")
    found = git_blob_id(part)
    if found != blob_id:
        raise DataError(
            f"{url} is not the file that was published: its git blob id is {found}, "
            f"expected {blob_id}; it was not kept, run it again"
        )
    if url.endswith(".zip"):
        check_archive(part)


#: Set it to keep fetched data sets in a folder of your own.
CACHE_VARIABLE: Final = "DSTFUZZ_CACHE"


def cache_folder() -> Path:
    """Return the folder of fetched data sets; it need not exist.

    ``DSTFUZZ_CACHE``, else ``dstfuzz`` in the user's cache folder: ``LOCALAPPDATA`` on
    Windows, elsewhere ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    # Not by platformdirs: it is a pytest plugin too, which would slow every start of pytest.
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(base or "~/.cache").expanduser() / "dstfuzz"


#: Raw files of public GitHub repositories.
RAW_URL: Final = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files of a repository at a pinned commit."""

    repository: str
    commit: str
    #: Folder of the repository that is left out of the names in the cache.
    folder: str
    #: Path below ``folder`` -> git blob id.
    files: Mapping[str, str]
    #: Data set that brings the lists of validation and test dialogues, where this has none.
    lists_from: str | None = None

    def url(self, file: str) -> str:
        """Return the address of ``file``."""
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
    """Download the data set ``name`` as far as it is not there yet, and return its folder.

    Archives stay packed: the readers read them as they are. A data set that is published
    without lists of its splits brings the one with the lists along.
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


def fetched(name: str) -> tuple[Path, ...] | None:
    """Return the folders of data set ``name`` when all of its files are in the cache.

    The second folder, if any, holds the lists of its splits. Files get their names only
    after they were verified, so they are not hashed again.
    """
    dataset = DATASETS[name]
    folder = cache_folder() / name
    if not all((folder / file).is_file() for file in dataset.files):
        return None
    if dataset.lists_from is None:
        return (folder,)
    lists = fetched(dataset.lists_from)
    return None if lists is None else (folder, *lists)
