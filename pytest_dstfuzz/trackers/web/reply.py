"""What a service answers, decompressed within bounds; what follows where it does not.

A stream of server-sent events is read when it has come to its end. Its format is that of the HTML
standard, section 9.2; ``[DONE]`` ends a stream of a chat model.
"""

from __future__ import annotations

import json
import math
import random
import re
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.json_data import each_key_once
from pytest_dstfuzz.printable import describe, shortened

#: Attempts where a service answers with something else: it may be an accident, as of a gateway
#: that shows a page for a moment, but mostly it is what the service means to say.
ONCE_MORE: Final = 2
#: Statuses below 500 that say "later".
_LATER: Final = (408, 425, 429)
#: Not implemented: the one status from 500 on that does not pass.
_NEVER: Final = 501
#: Statuses with which the service, or whoever stands before it, says that it cannot be had.
AWAY: Final = (*_LATER, 502, 503, 504)
#: Seconds: the longest wait before the second attempt; each further one doubles it.
_FIRST: Final = 0.25
_LONGEST: Final = 8.0
#: However long a service asks to be left alone, it is asked again after so many seconds; where
#: it asks for more than the second number, it is not: that is for another day.
_LONGEST_WAIT: Final = 60.0
_HOPELESS: Final = 600.0

#: What requests say that they accept. A client asks for what it can bound: of a body that was
#: compressed twice, thirteen kilobytes are eight gigabytes.
ACCEPTED: Final = "gzip, deflate"
#: Bytes, compressed or not; no belief state is as long. As many answers as `Transport` asks for
#: at once may be held at a time.
LONGEST: Final = 16 * 1024 * 1024
_TOO_LONG: Final = f"answered with a body of more than {LONGEST // 1024 // 1024} MB"
#: What zlib is told of each encoding, tried in turn: some call "deflate" what has no header.
_WINDOWS: Final = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}


@dataclass(eq=False, repr=False)
class Failed(Exception):  # noqa: N818 - what came of an attempt
    """An attempt gave no answer."""

    #: What happened, said of the service.
    what: str
    _: KW_ONLY
    status: int | None = None
    #: Body of its answer, without credentials.
    text: str = ""
    #: Seconds that the service asks to wait.
    after: float = 0.0
    #: How many attempts are made at most where this is what comes of them.
    tries: float = math.inf
    #: See `MalformedReply`.
    unreadable: bool = False

    @property
    def away(self) -> bool:
        """Whether nobody was there who could answer."""
        return self.status is None or self.status in AWAY


async def read_body(parts: AsyncGenerator[bytes], headers: Mapping[str, str]) -> bytes:
    """Return the body of an answer, which comes in parts, as it was before it was compressed."""
    content = bytearray()
    async with aclosing(parts):
        async for part in parts:
            content += part
            if len(content) > LONGEST:
                raise Failed(_TOO_LONG, tries=1)
    return decompressed(bytes(content), headers.get("content-encoding", ""))


def decompressed(body: bytes, encodings: str) -> bytes:
    """Return a body as it was before it was compressed, by its header ``Content-Encoding``.

    `Failed`: it or one of its layers is too long, or its encoding is wrong or was not asked for.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    for name in reversed(names):
        if name in ("", "identity") or not body:
            continue
        if name not in _WINDOWS:
            what = f"answered with a body in the encoding {name[:20]!r}, not {ACCEPTED}"
            raise Failed(what, tries=1)
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
            raise Failed(_TOO_LONG, tries=1)
        if inflater.eof:
            return plain
    raise Failed(f"answered with a body that is no {name}, or half of one")


#: Characters of a page, and of a refusal, that a message shows.
_SHOWN = 60
_SHOWN_REFUSAL = 120


@dataclass(eq=False, repr=False)
class ServiceError(TrackerError):
    """A service did not do what it was asked for."""

    message: str
    _: KW_ONLY
    #: Of its answer; ``None`` where it gave none.
    status: int | None = None
    #: Body of its answer, without credentials.
    text: str = ""
    #: See `MalformedReply`.
    unreadable: bool = False


@dataclass(eq=False, repr=False)
class MalformedReply(TrackerError):  # noqa: N818 - the reply is what is malformed
    """An answer that is not what was asked for."""

    message: str
    _: KW_ONLY
    #: Whether it may well be an accident, so that the same is asked again as often as after other
    #: failures. For a whole answer of another shape that is once more.
    passing: bool = False
    #: Whether a language model may have written it: then whoever asks decides whether to ask again.
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered with a status below 300."""

    status: int
    #: The body, decompressed.
    content: bytes
    #: By their names in lower case.
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 in it is replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body's JSON value; where it is none, a `MalformedReply` says so."""
        if self.content.lstrip()[:1] == b"<":  # HTML or XML
            shown = shortened(" ".join(self.text.split()), _SHOWN)
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
    def is_stream(self) -> bool:
        """Whether it is a stream of events, as the service says."""
        return "event-stream" in self.headers.get("content-type", "").lower()

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Yield the JSON object of each event of a stream.

        Raises:
            MalformedReply: an event is no JSON object, or tells of an error.
        """
        for text in _data(self.text):
            if text == _DONE:
                return
            event = replace(self, content=text.encode()).json()
            if not isinstance(event, Mapping):
                raise MalformedReply(f"streamed {describe(event)} where an object is expected")
            if event.get("error"):
                raise MalformedReply(
                    f"ended its stream with an error, {describe(event['error'])}", passing=True
                )
            yield event


def ended_early() -> MalformedReply:
    """Return what is wrong with a stream that ends before its answer does."""
    return MalformedReply("ended its stream before its answer was complete", passing=True)


_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_DONE: Final = "[DONE]"


def _data(text: str) -> Iterator[str]:
    """Yield the data of each event; of the last one too where no blank line ends it."""
    data: list[str] = []
    for line in (*_LINE_END.split(text), ""):
        field, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif field == "data":
            data.append(value.removeprefix(" "))


_ONCE = each_key_once(
    lambda key: MalformedReply(f'answered with two values for the key "{key[:_SHOWN]}"')
)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def backoff(failures: int, jitter: random.Random) -> float:
    """Draw the seconds to wait after so many failures before this one, with full jitter.

    Uniform between 0 and a limit that doubles, so that requests which failed together
    do not come back together.
    """
    # The exponent is bounded too: 2.0 ** 2000 is no float.
    return jitter.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(failures, 16)))


def retry_after(value: str, now: datetime | None = None) -> float:
    """Return the seconds that the header ``Retry-After`` asks for (RFC 9110, 10.2.3).

    That is 0 or more, and 0 for what is neither a number of seconds nor a date of HTTP.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return 0.0
        # HTTP's dates are in UTC, also where they do not say so.
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def refusal(reply: Reply, phrase: str, text: str) -> Failed:
    """Return what a status says that is no success; the text is that without credentials."""
    head = shortened(" ".join(text.split()), _SHOWN_REFUSAL)
    what = " ".join(f"answered {reply.status} {phrase}".split()) + (f" ({head})" if head else "")
    if (reply.status < 500 and reply.status not in _LATER) or reply.status == _NEVER:
        return Failed(what, status=reply.status, text=text, tries=1)
    after = retry_after(reply.headers.get("retry-after", ""))
    if after > _HOPELESS:
        what += f" and wants to be left alone for {after:,.0f} s"
        return Failed(what, status=reply.status, text=text, tries=1)
    return Failed(what, status=reply.status, text=text, after=min(after, _LONGEST_WAIT))
