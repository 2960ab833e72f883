"""Download one file: resumable, verified by its git blob id, put in place atomically."""

from __future__ import annotations

import hashlib
import http.client
import stat
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final, cast

from pytest_dstfuzz.errors import DataError

#: Called with the file's name, the bytes received so far, and all bytes where known.
Progress = Callable[[str, int, int | None], None]

_CHUNK: Final = 1 << 16
_TIMEOUT_SECONDS: Final = 30.0
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def download(url: str, target: Path, blob_id: str, progress: Progress | None = None) -> None:
    """Bring ``url`` to ``target``, unless it is there already with the right content.

    What has arrived is kept in ``<target>.part``, so that a broken transfer goes on where
    it stopped; the file appears under its own name only when it is whole and verified.

    Args:
        url: ``http`` or ``https``.
        target: the file to make; its folders are made too.
        blob_id: SHA-1 of ``blob <size>`` + NUL + content, as git names the file.
        progress: told after every chunk.

    Raises:
        DataError: the transfer failed, the content is another, an archive is not safe, or
            the file cannot be written.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(f"cannot download {url!r}: only http and https are supported")
    try:
        if target.is_file() and git_blob_id(target) == blob_id:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        _transfer(url, part, target.name, progress)
        _verify(url, part, blob_id)
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
    """Refuse a zip that is broken, or whose members climb out of its folder or are links.

    Raises:
        DataError: says which member.
    """
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


def _verify(url: str, part: Path, blob_id: str) -> None:
    """Check what arrived; wrong content is taken away, so that the next try starts anew."""
    try:
        _check(url, part, blob_id)
    except DataError:
        part.unlink()
        raise


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
