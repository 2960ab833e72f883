"""What a service answers, decompressed within bounds, and what it means when it does not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.json_data import each_key_once

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


#: Characters of a page that a message shows.
_SHOWN = 60


class ServiceError(TrackerError):
    """A service did not do what it was asked for.

    Attributes:
        status: of its answer; ``None`` where it gave none.
        text: body of its answer, without credentials.
    """

    def __init__(self, message: str, status: int | None = None, text: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.text = text


class MalformedReply(TrackerError):  # noqa: N818 - the reply is what is malformed
    """An answer that is not what was asked for.

    Attributes:
        passing: whether it may well be an accident, so that the same is asked again as often as
            after other failures. For a whole answer of another shape that is once more.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered with a status below 300.

    Attributes:
        status: of HTTP.
        content: the body, decompressed.
        headers: by their names in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 in it is replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body's JSON value.

        Raises:
            MalformedReply: it is none: a page for people, or half of one perhaps.
        """
        if self._is_page:
            text = " ".join(self.text.split())
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
            raise MalformedReply(
                f"answered with a page for people ({shown}) where JSON is expected: is the "
                "address that of the tracker itself?"
            )
        try:
            return json.loads(
                self.content, parse_constant=_refuse_constant, object_pairs_hook=_ONCE
            )
        except UnicodeDecodeError:
            raise MalformedReply(
                "answered with a body that is no JSON (it is not UTF-8)", passing=True
            ) from None
        except (ValueError, RecursionError) as error:
            raise MalformedReply(
                f"answered with a body that is no JSON ({error})", passing=True
            ) from None

    @property
    def _is_page(self) -> bool:
        """Whether the body is HTML or XML."""
        return self.content.lstrip()[:1] == b"<"


_ONCE = each_key_once(
    lambda key: MalformedReply(f'answered with two values for the key "{key[:_SHOWN]}"')
)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
