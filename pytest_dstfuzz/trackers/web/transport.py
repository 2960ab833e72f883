"""Requests to a service that may be busy, slow or broken for a while."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import random
import re
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, TypeVar, cast
from urllib.parse import parse_qsl

import httpx

from pytest_dstfuzz.config import masked, revealed
from pytest_dstfuzz.errors import GivenUpError, TrackerError, UserError
from pytest_dstfuzz.json_data import each_key_once
from pytest_dstfuzz.printable import counted, describe, shortened
from pytest_dstfuzz.trackers.adapting import EventLoop
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Interrupted
from pytest_dstfuzz.trackers.web.secrets import Secrets, header_values, secrets_of

__all__ = ["MalformedReply", "Reply", "ServiceError", "Transport"]


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
_LONGEST_PAUSE: Final = 8.0
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
    return jitter.uniform(0.0, min(_LONGEST_PAUSE, _FIRST * 2.0 ** min(failures, 16)))


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


T = TypeVar("T")


class _Over(Exception):  # noqa: N818 - no failure: nothing more is asked
    """The run is over, or the service is dead."""


class Transport:
    """A service and its connections.

    The address may hold user and password, and a query that goes with every request.

    Attributes:
        address: for messages: without credentials.
        secrets: takes the credentials out of texts.
        concurrency: requests that `map` has in flight at once, where there are so many jobs.
    """

    def __init__(self, base_url: str, service: ServiceSettings) -> None:
        full = revealed(base_url)
        self.address = masked(full)
        self.concurrency = service.concurrency
        url = _service_url(full, self.address)
        self._service = service
        headers = header_values(service.headers, token=service.token, signed=bool(url.userinfo))
        self.secrets: Secrets = secrets_of(full, headers.values())
        self._base = url.copy_with(userinfo=b"")
        self._client = _make_client(url, headers, service.concurrency)
        self._loop = EventLoop(self._client.aclose, apart=True)
        #: When the next request may be sent, by the rate limit.
        self._next_slot = 0.0
        # Of the system: waiting times decide no result, and processes should not agree.
        self._jitter = random.Random()  # noqa: S311 - no cryptography
        #: Requests in a row that nobody answered, and why the service is taken for dead.
        self._unanswered = 0
        self._dead = ""

    def wait(self, asked: Awaitable[T]) -> T:
        """Return what there is to wait for, such as the answer that `ask` brings."""
        try:
            return cast("T", self._loop.result(asked))
        except KeyboardInterrupt:
            # Its frames hold whole addresses, which pytest --full-trace would show.
            raise KeyboardInterrupt from None

    def map(
        self,
        jobs: Sequence[Callable[[], Awaitable[T]]],
        take: Callable[[int, object], None] = lambda _, __: None,
    ) -> list[T | TrackerError]:
        """Do jobs that `ask`, several at once, and return their results in the order of the jobs.

        Each is handed to ``take`` as it comes, with its place.

        A `TrackerError` stands in the place of the result of the job that raised it, and of
        each job that was not done when the run was over or the service dead. `Interrupted` has
        the results that were there.
        """
        results: dict[int, T | TrackerError] = {}

        async def do(place: int) -> None:
            # Kept before it is handed over: an interrupt can come in between.
            try:
                results[place] = await jobs[place]()
            except TrackerError as error:
                # Its frames would keep the whole request alive.
                results[place] = error.with_traceback(None)

        def arrived(place: int, failure: object) -> None:
            if isinstance(failure, BaseException):
                raise failure
            take(place, results[place])
            if self._over():
                raise _Over

        each = [partial(do, place) for place in range(len(jobs))]
        try:
            self._loop.results(each, self.concurrency, arrived)
        except _Over:
            over = GivenUpError(self._over())
            return [results.get(place, over) for place in range(len(jobs))]
        except KeyboardInterrupt:
            raise Interrupted(results) from None
        return [results[place] for place in range(len(jobs))]

    async def ask(
        self,
        method: str,
        path: str = "",
        body: object = None,
        *,
        read: Callable[[Reply], T],
        worth: int = 1,
    ) -> T:
        """Make one request, again where the failure may pass; return what ``read`` makes of it.

        The path is below the address, percent-encoded, and may have a query. A `MalformedReply`
        that ``read`` raises is a failed attempt. An attempt may take ``worth`` times as long as one
        for a single request.

        Raises:
            ServiceError: the service refused, failed at every attempt, or answered with
                something else.
            GivenUpError: the run is over, or the service is dead.
            TrackerError: whatever else ``read`` raises.
        """
        content = None if body is None else json.dumps(body).encode("ascii")
        tries, last = self._service.retries + 1, ""
        for number in range(tries):
            self._refuse_if_over(last)
            await self._wait_for_slot()
            try:
                reply = await self._attempt(method, path, content, worth)
                return self._read(reply, read)
            except Failed as error:
                failure = error.with_traceback(None)
            last = failure.what
            self._refuse_if_over(last)
            if number + 1 >= min(tries, failure.tries):
                break
            await self._pause(max(backoff(number, self._jitter), failure.after))
        if failure.away:
            self._count_unanswered(self.secrets.redact(failure.what))
        after = f" after {number + 1} tries" if number else ""
        line = " ".join(f"the service at {self.address} {failure.what}{after}".split())
        line = self.secrets.redact(line)
        raise ServiceError(
            line, status=failure.status, text=failure.text, unreadable=failure.unreadable
        )

    def _count_unanswered(self, what: str) -> None:
        """Note what happened the last time to a request that no attempt got an answer to.

        Any answer of a service that works begins the count anew. One that refuses a dialogue, or
        fails on it (500), works.
        """
        self._unanswered += 1
        most = self._service.dead_after
        if self._unanswered == most and not self._dead:
            in_a_row = f"nobody answered {counted(most, 'request')} in a row"
            why = f"{in_a_row}, the last time it {what}"
            self._dead = f"the service at {self.address} is taken for dead ({why})"

    def _over(self) -> str:
        """Return why nothing more is asked, as a clause, or ``""``."""
        return self._dead or self._service.deadline.ended

    def _refuse_if_over(self, last: str) -> None:
        if over := self._over():
            dead = self._dead or not last
            shown = "" if dead else f" (the last time, the service {self.secrets.redact(last)})"
            raise GivenUpError(over + shown)

    async def _attempt(self, method: str, path: str, content: bytes | None, worth: int) -> Reply:
        """Make one request once; without an answer of a status below 300, it has `Failed`."""
        headers = {} if content is None else {"Content-Type": "application/json"}
        granted = min(self._service.timeout * worth, self._service.deadline.left)
        # The time-outs of httpx are for one read or write each: a service that sends a byte a
        # second, or ``100 Continue`` without end, is never late by them.
        limits = httpx.Timeout(None, connect=min(self._service.timeout, granted))
        masking = _SECRETS.set(self.secrets)
        try:
            async with (
                asyncio.timeout(granted),
                self._client.stream(
                    method, self._url_of(path), content=content, headers=headers, timeout=limits
                ) as response,
            ):
                parts = cast("AsyncGenerator[bytes]", response.aiter_raw())
                body = await read_body(parts, response.headers)
        except (httpx.TimeoutException, TimeoutError):
            raise Failed(f"did not answer within {granted:.4g} s") from None
        except (httpx.TransportError, OSError) as error:
            # These come after it took the request: it was there.
            broken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            what = "broke the connection off" if broken else "cannot be reached"
            raise Failed(f"{what}: {_reason(error)}") from None
        except Failed as error:
            error.status = response.status_code
            raise
        finally:
            _SECRETS.reset(masking)
        reply = Reply(response.status_code, self.secrets.scrub(body), {**response.headers})
        if reply.status not in AWAY:
            self._unanswered = 0
        if reply.status >= 300:
            raise refusal(reply, response.reason_phrase, self.secrets.redact(reply.text))
        return reply

    def _read(self, reply: Reply, read: Callable[[Reply], T]) -> T:
        """Return what is read in a reply.

        What is wrong with one is said about a reply that holds no credentials: the message may
        show the beginning of a text, and half a credential is one that `Secrets` does not find.
        """
        try:
            return read(reply)
        except MalformedReply as error:
            # Said where it does not show in what is clean, as of a body that is not UTF-8.
            what, malformed = "answered with a body that is no JSON (it is not UTF-8)", error
        clean = replace(reply, content=self.secrets.redact(reply.text).encode())
        try:
            read(clean)
        except MalformedReply as error:
            what = str(error)
        tries = math.inf if malformed.passing else ONCE_MORE
        if unreadable := malformed.unreadable:
            tries = 1
        raise Failed(what, status=reply.status, text=clean.text, tries=tries, unreadable=unreadable)

    def _url_of(self, path: str) -> httpx.URL:
        below, _, query = path.partition("?")
        url = self._base
        if below:
            start = url.raw_path.partition(b"?")[0].rstrip(b"/")
            rest = b"?" + url.query if url.query else b""
            url = url.copy_with(raw_path=start + b"/" + below.lstrip("/").encode("ascii") + rest)
        return url.copy_merge_params(dict(parse_qsl(query))) if query else url

    async def _wait_for_slot(self) -> None:
        """Wait until the rate limit allows one more request."""
        if self._service.rate_limit is None:
            return
        slot = max(time.monotonic(), self._next_slot)
        self._next_slot = slot + 1.0 / self._service.rate_limit
        await self._pause(slot - time.monotonic())

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the run."""
        await asyncio.sleep(min(seconds, self._service.deadline.left))


def _reason(error: BaseException) -> str:
    """Return what the system says is wrong, which asyncio, anyio and httpx each wrap."""
    found = str(error) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):  # Of all addresses of a name
            cause = cause.exceptions[-1]
        if isinstance(cause, OSError) and cause.errno is not None:
            found = str(cause)
            if str(cause.strerror).startswith("Connect call failed"):
                found = f"[Errno {cause.errno}] {os.strerror(cause.errno)}"
        # httpcore raises some of them "from None".
        cause = cause.__cause__ or cause.__context__
    return found


#: Variables of the environment that httpx reads.
_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"),
)
_LOGGERS: Final = (
    "httpx",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)
#: What must not be logged of the attempt that is made.
_SECRETS: ContextVar[Secrets | None] = ContextVar("secrets", default=None)


def _mask(record: logging.LogRecord) -> bool:
    """Mask the credentials in what httpx logs of requests of ours; they hold whole addresses."""
    if (secrets := _SECRETS.get()) is not None:
        record.msg, record.args = secrets.redact(record.getMessage()), None
    return True


def _make_client(url: httpx.URL, headers: Mapping[str, str], connections: int) -> httpx.AsyncClient:
    """Return the client of a service, whose address may hold user and password.

    It has at most so many connections at once.
    """
    # User and password, where no header says who asks.
    signed = url.userinfo and "authorization" not in map(str.lower, headers)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask)
    try:
        return httpx.AsyncClient(
            auth=httpx.BasicAuth(url.username, url.password) if signed else None,
            headers={"Accept-Encoding": ACCEPTED, **headers},
            # None is kept: by a session's cookie, contexts would be one dialogue to the service.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
    except (httpx.InvalidURL, ImportError, OSError, ValueError, TypeError) as error:
        raise UserError(_environment_problem(error)) from None


def _service_url(address: str, shown: str) -> httpx.URL:
    """Return the address of a service, which the message shows without credentials."""
    try:
        url = httpx.URL(address)
        # As sockets do it, where it would be too late for a message.
        url.raw_host.decode("ascii").encode("idna")
        known = url.scheme in ("http", "https") and url.host
        right = known and 0 < (1 if url.port is None else url.port) < 65536
    except (httpx.InvalidURL, UnicodeError):
        right = False
    if not right:
        raise UserError(
            f"{shown!r} is no address of a service: write http://HOST:PORT/PATH or https://..."
        )
    return url


def _environment_problem(error: Exception) -> str:
    """Return what is wrong with proxies or certificates; values may hold a password."""
    found = [name for name in _VARIABLES if os.environ.get(name) or os.environ.get(name.lower())]
    # Of an OSError the reason alone: Python's messages repeat a path, which is welcome, but
    # those about addresses repeat the address.
    about = str(error) if isinstance(error, OSError | ImportError) else ""
    why = f" ({' '.join(about.split())})" if about else ""
    return (
        f"the proxies or certificates of the environment cannot be used{why}: check "
        f"{', '.join(found) or ', '.join(_VARIABLES)}. A proxy is written http://HOST:PORT, "
        "SSL_CERT_FILE names a file of certificates in PEM"
    )
