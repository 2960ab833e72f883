"""The body of an answer, decompressed within bounds."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

#: What requests say that they accept. A client asks for what it can bound: of a body that was
#: compressed twice, thirteen kilobytes are eight gigabytes.
ACCEPTED: Final = "gzip, deflate"
#: Bytes, compressed or not; no belief state is as long. As many answers as `Transport` asks for
#: at once may be held at a time.
LONGEST: Final = 16 * 1024 * 1024
_TOO_LONG: Final = f"answered with a body of more than {LONGEST // 1024 // 1024} MB"
#: What zlib is told of each encoding, tried in turn: some call "deflate" what has no header.
_WINDOWS: Final = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}


class BodyError(Exception):
    """A body that cannot be read; the message is said of the service.

    Attributes:
        passing: whether it may be an accident, so that the same is asked again.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def read_body(parts: Iterable[bytes], headers: Mapping[str, str]) -> bytes:
    """Return the body of an answer.

    Args:
        parts: of it, as they come.
        headers: of the answer.

    Raises:
        BodyError: it is longer than any answer, or not what the header says.
    """
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > LONGEST:
            raise BodyError(_TOO_LONG)
    return decompressed(bytes(content), headers.get("content-encoding", ""))


def decompressed(body: bytes, encodings: str) -> bytes:
    """Return a body as it was before it was compressed.

    Args:
        body: as it came.
        encodings: the header ``Content-Encoding``; ``""`` where there is none.

    Raises:
        BodyError: it is too long, or one of its layers is; it is no such body, or its encoding
            was not asked for.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    for name in reversed(names):
        if name in ("", "identity") or not body:
            continue
        if name not in _WINDOWS:
            raise BodyError(f"answered with a body in the encoding {name[:20]!r}, not {ACCEPTED}")
        body = _inflated(body, name)
    return body


def _inflated(body: bytes, name: str) -> bytes:
    for window in _WINDOWS[name]:
        inflater = zlib.decompressobj(window)
        try:
            plain = inflater.decompress(body, LONGEST + 1)
        except zlib.error:
            continue
        if len(plain) > LONGEST:
            raise BodyError(_TOO_LONG)
        if inflater.eof:
            return plain
    raise BodyError(f"answered with a body that is no {name}, or half of one", passing=True)
