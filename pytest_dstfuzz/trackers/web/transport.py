"""Requests to a service that may be temporarily busy, slow or broken."""

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

from pytest_dstfuzz.config import mask_credentials, reveal_credentials
from pytest_dstfuzz.errors import GivenUpError, TrackerError, UserError
from pytest_dstfuzz.json_data import each_key_once
from pytest_dstfuzz.printable import describe, format_count, shorten_text
from pytest_dstfuzz.trackers.adapting import EventLoop
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import BatchInterrupt
from pytest_dstfuzz.trackers.web.secrets import Secrets, header_values, secrets_of

__all__ = ["MalformedReply", "Reply", "ServiceError", "Transport"]


#: Number of attempts if a service returns an unexpected answer. It may be a temporary page of a
#: gateway, but usually the next answer is the same.
ONCE_MORE: Final = 2
#: Statuses below 500 that ask to try later.
_LATER: Final = (408, 425, 429)
#: "Not implemented", the only permanent status from 500 on.
_NEVER: Final = 501
#: Statuses with which a service or its proxy reports that it is unavailable.
AWAY: Final = (*_LATER, 502, 503, 504)
#: Longest wait in seconds before the second attempt. It doubles for each further attempt.
_FIRST: Final = 0.25
_LONGEST_PAUSE: Final = 8.0
#: Longest wait in seconds that a service can request with ``Retry-After``. If it requests more than
#: the second number, there is no further attempt.
_LONGEST_WAIT: Final = 60.0
_HOPELESS: Final = 600.0

#: Value of ``Accept-Encoding``: encodings whose output can be limited. A body that is compressed
#: twice can expand from thirteen kilobytes to eight gigabytes.
ACCEPTED: Final = "gzip, deflate"
#: Largest body in bytes, compressed or not. No belief state is as long. Up to one body per
#: concurrent request is in memory.
LONGEST: Final = 16 * 1024 * 1024
#: Seconds to wait for the answer to a request after Ctrl-C, and after the end of the time, when the
#: deadline soon ends the call itself.
_LATE, _LAST = 2.0, 0.4
_NOT_UTF8: Final = "answered with a body that is not valid JSON (it is not UTF-8)"
_TOO_LONG: Final = f"answered with a body of more than {LONGEST // 1024 // 1024} MB"
#: Encoding -> window sizes of zlib to try in turn. Some services send "deflate" without a header.
_WINDOWS: Final = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}


@dataclass(eq=False, repr=False)
class FailedAttempt(Exception):  # noqa: N818 - the result of an attempt
    """A failed attempt."""

    #: Description of the failure. Its subject is "the service".
    what: str
    _: KW_ONLY
    status: int | None = None
    #: Body of the answer, without credentials.
    text: str = ""
    #: Seconds to wait, as the service asked.
    after: float = 0.0
    #: Most attempts in total after such a failure.
    tries: float = math.inf
    #: See `MalformedReply`.
    unreadable: bool = False

    @property
    def away(self) -> bool:
        """Whether the service was not available."""
        return self.status is None or self.status in AWAY


async def read_body(parts: AsyncGenerator[bytes], headers: Mapping[str, str]) -> bytes:
    """Return the decompressed body of an answer that arrives in parts."""
    content = bytearray()
    async with aclosing(parts):
        async for part in parts:
            content += part
            if len(content) > LONGEST:
                raise FailedAttempt(_TOO_LONG, tries=1)
    return decompress_body(bytes(content), headers.get("content-encoding", ""))


def decompress_body(body: bytes, encodings: str) -> bytes:
    """Decompress a body according to its header ``Content-Encoding``.

    Raises:
        Failed: the body or one of its layers is too long or malformed, or the request did not allow
            the encoding.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    for name in reversed(names):
        if name in ("", "identity") or not body:
            continue
        if name not in _WINDOWS:
            what = f"answered with a body in the encoding {name[:20]!r} instead of {ACCEPTED}"
            raise FailedAttempt(what, tries=1)
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
            raise FailedAttempt(_TOO_LONG, tries=1)
        if inflater.eof:
            return plain
    raise FailedAttempt(f"answered with a body that is cut off or not valid {name}")


#: Characters of a web page, and of a refusal, that a message shows.
_SHOWN = 60
_SHOWN_REFUSAL = 120


@dataclass(eq=False, repr=False)
class ServiceError(TrackerError):
    """A service did not fulfil a request."""

    message: str
    _: KW_ONLY
    #: Status of the answer, or ``None`` if there was no answer.
    status: int | None = None
    #: Body of the answer, without credentials.
    text: str = ""
    #: See `MalformedReply`.
    unreadable: bool = False


@dataclass(eq=False, repr=False)
class MalformedReply(TrackerError):  # noqa: N818 - the name describes the reply
    """An answer has an unexpected form."""

    message: str
    _: KW_ONLY
    #: Whether the failure is probably temporary, so that it is retried as often as other failures.
    #: An answer of another shape is retried only once.
    passing: bool = False
    #: Whether the bot wrote the answer. Then the caller decides about retries.
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a status below 300."""

    status: int
    #: The body, decompressed.
    content: bytes
    #: Header names are in lower case.
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text, with invalid UTF-8 replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the JSON value of the body, or raise a `MalformedReply`."""
        if self.content.lstrip()[:1] == b"<":  # HTML or XML
            shown = shorten_text(" ".join(self.text.split()), _SHOWN)
            raise MalformedReply(
                f"answered with a web page ({shown}) instead of JSON: is the address that of the "
                "tracker itself?"
            )
        try:
            return json.loads(
                self.content, parse_constant=_refuse_constant, object_pairs_hook=_ONCE
            )
        except UnicodeDecodeError:
            raise MalformedReply(_NOT_UTF8, passing=True) from None
        except (ValueError, RecursionError) as error:
            raise MalformedReply(
                f"answered with a body that is not valid JSON ({error})", passing=True
            ) from None

    @property
    def is_stream(self) -> bool:
        """Whether the body is an event stream, by its content type."""
        return "event-stream" in self.headers.get("content-type", "").lower()

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Yield the JSON object of each event in a stream.

        Raises:
            MalformedReply: an event is not a JSON object, or reports an error.
        """
        for text in _data(self.text):
            if text == _DONE:
                return
            event = replace(self, content=text.encode()).json()
            if not isinstance(event, Mapping):
                raise MalformedReply(f"streamed {describe(event)} instead of an object")
            if event.get("error"):
                raise MalformedReply(
                    f"ended its stream with an error, {describe(event['error'])}", passing=True
                )
            yield event


T = TypeVar("T")


def read_of_bot(read: Callable[[Reply], T]) -> Callable[[Reply], T]:
    """Return a function that reads a bot's answer, so that the caller decides about retries."""

    def reader(reply: Reply) -> T:
        try:
            return read(reply)
        except MalformedReply as error:
            raise MalformedReply(str(error), unreadable=True) from None

    return reader


def report_early_end() -> MalformedReply:
    """Return the error for a stream that ends before its answer is complete."""
    return MalformedReply("ended its stream before its answer was complete", passing=True)


_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_DONE: Final = "[DONE]"


def _data(text: str) -> Iterator[str]:
    """Yield the data of each event. The last event need not end with a blank line."""
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
    raise ValueError(f"{name} is not a number in JSON")


def backoff(failures: int, jitter: random.Random) -> float:
    """Return a random wait in seconds after ``failures`` earlier failures, with full jitter.

    The wait is uniform between 0 and a limit that doubles with each failure. So requests that
    failed together are repeated at different times.
    """
    # Limit the exponent, because 2.0 ** 2000 overflows.
    return jitter.uniform(0.0, min(_LONGEST_PAUSE, _FIRST * 2.0 ** min(failures, 16)))


def retry_after(value: str, now: datetime | None = None) -> float:
    """Return the seconds that the header ``Retry-After`` asks for (RFC 9110, 10.2.3).

    The result is at least 0. It is 0 if the value is neither a number of seconds nor an HTTP date.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return 0.0
        # HTTP dates are in UTC, even if they do not say so.
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def refusal(reply: Reply, phrase: str, text: str) -> FailedAttempt:
    """Return the failure for an error status. ``text`` is the body, masked."""
    head = shorten_text(" ".join(text.split()), _SHOWN_REFUSAL)
    what = " ".join(f"answered {reply.status} {phrase}".split()) + (f" ({head})" if head else "")
    if (reply.status < 500 and reply.status not in _LATER) or reply.status == _NEVER:
        return FailedAttempt(what, status=reply.status, text=text, tries=1)
    after = retry_after(reply.headers.get("retry-after", ""))
    if after > _HOPELESS:
        what += f" and asked for a pause of {after:,.0f} s"
        return FailedAttempt(what, status=reply.status, text=text, tries=1)
    return FailedAttempt(what, status=reply.status, text=text, after=min(after, _LONGEST_WAIT))


class _Over(Exception):  # noqa: N818 - not a failure, only the end
    """The run is over, or the service is dead."""


#: Statuses of a service that did not process the request.
_BUSY: Final = (425, 429, 503)


class Transport:
    """A service and its connections.

    The address may contain user and password, and a query that is sent with every request.

    Attributes:
        address: the address without credentials, for messages.
        secrets: masks the credentials in texts.
        concurrency: maximum number of requests that `map` sends at once.
    """

    def __init__(self, base_url: str, service: ServiceSettings) -> None:
        full = reveal_credentials(base_url)
        self.address = mask_credentials(full)
        self.concurrency = service.concurrency
        url = _service_url(full, self.address)
        self._service = service
        headers = header_values(service.headers, token=service.token, signed=bool(url.userinfo))
        self.secrets: Secrets = secrets_of(full, headers.values())
        self._base = url.copy_with(userinfo=b"")
        self._client = _make_client(url, headers, service.concurrency)
        self._loop = EventLoop(self._client.aclose, apart=True)
        #: Earliest time of the next request under the rate limit.
        self._next_slot = 0.0
        # Seeded by the system: waits do not affect results, and processes should differ.
        self._jitter = random.Random()  # noqa: S311 - no cryptography
        #: Number of consecutive unanswered requests, and the reason that the service counts as
        #: dead.
        self._unanswered = 0
        self._dead = ""

    def wait(self, asked: Awaitable[T]) -> T:
        """Wait for an awaitable, such as a result of `ask`, and return its result."""
        try:
            return cast("T", self._loop.result(asked))
        except KeyboardInterrupt:
            # The frames hold full addresses, which pytest --full-trace would show.
            raise KeyboardInterrupt from None

    def map(
        self,
        jobs: Sequence[Callable[[], Awaitable[T]]],
        take: Callable[[int, object], None] = lambda _, __: None,
    ) -> list[T | TrackerError]:
        """Run jobs that call `ask`, several at once, and return their results in the given order.

        Each result is passed to ``take`` with its place as soon as it arrives. If a job raises a
        `TrackerError`, the error is its result. If the run is over or the service is dead, such an
        error is also the result of each remaining job.

        Raises:
            BatchInterrupt: Ctrl-C was pressed. The exception has the results so far.
        """
        results: dict[int, T | TrackerError] = {}

        async def do(place: int) -> None:
            # Store the result first, because an interrupt may come before it is handed over.
            try:
                results[place] = await jobs[place]()
            except TrackerError as error:
                # Drop the frames, which would keep the whole request alive.
                results[place] = error.with_traceback(None)

        def arrived(place: int, failure: object) -> None:
            if isinstance(failure, BaseException):
                raise failure
            take(place, results[place])
            if self.over:
                raise _Over

        each = [partial(do, place) for place in range(len(jobs))]
        try:
            self._loop.results(each, self.concurrency, arrived)
        except _Over:
            over = GivenUpError(self.over)
            return [results.get(place, over) for place in range(len(jobs))]
        except KeyboardInterrupt:
            raise BatchInterrupt(results) from None
        return [results[place] for place in range(len(jobs))]

    async def ask(
        self,
        method: str,
        path: str = "",
        body: object = None,
        *,
        read: Callable[[Reply], T],
        worth: int = 1,
        once: bool = False,
        late: bool = False,
    ) -> T:
        """Send one request, with retries for temporary failures, and return the result of ``read``.

        The path is relative to the address, percent-encoded, and may have a query. A
        `MalformedReply` from ``read`` counts as a failed attempt. An attempt may take ``worth``
        times the usual timeout. With ``once``, the service must not process the request twice. So
        the request is only sent again if the service was too busy to process it. With ``late``, it
        is sent even after the end of the run, but only once and with a short timeout.

        Raises:
            ServiceError: the service refused, failed at every attempt, or returned an unexpected
                answer.
            GivenUpError: the run is over, or the service is dead.
            TrackerError: any other error from ``read``.
        """
        content = None if body is None else json.dumps(body).encode("ascii")
        tries, last = 1 if late else self._service.retries + 1, ""
        for number in range(tries):
            if not late:
                self._refuse_if_over(last)
            await self._wait_for_slot()
            try:
                reply = await self._attempt(method, path, content, worth, late=late)
                return self._read(reply, read)
            except FailedAttempt as error:
                failure = error.with_traceback(None)
            last = failure.what
            self._refuse_if_over(last)
            if number + 1 >= min(tries, failure.tries) or (once and failure.status not in _BUSY):
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
        """Count a request that got no answer in any attempt. ``what`` describes the last attempt.

        Any answer of a working service resets the count. A refusal of a dialogue, or status 500 for
        it, also shows that the service works.
        """
        self._unanswered += 1
        most = self._service.dead_after
        if self._unanswered == most and not self._dead:
            in_a_row = f"no answer to {format_count(most, 'request')} in a row"
            why = f"{in_a_row}; the last time, it {what}"
            self._dead = f"the service at {self.address} is considered dead ({why})"

    @property
    def over(self) -> str:
        """The reason to stop, as a clause, or ``""``."""
        return self._dead or self._service.deadline.ended

    def _refuse_if_over(self, last: str) -> None:
        if over := self.over:
            dead = self._dead or not last
            shown = "" if dead else f" (the last time, the service {self.secrets.redact(last)})"
            raise GivenUpError(over + shown)

    async def _attempt(
        self, method: str, path: str, content: bytes | None, worth: int, *, late: bool
    ) -> Reply:
        """Send one request. Raise a `FailedAttempt` if the status is 300 or more."""
        headers = {} if content is None else {"Content-Type": "application/json"}
        left = self._service.deadline.left
        if late:
            left = _LAST if self._service.deadline.ended else _LATE
        granted = min(self._service.timeout * worth, left)
        # httpx applies its timeouts to each read or write. They never catch a service that sends a
        # byte per second, or ``100 Continue`` for ever.
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
            raise FailedAttempt(f"did not answer within {granted:.4g} s") from None
        except (httpx.TransportError, OSError) as error:
            # These errors occur after the service accepted the request, so it was available.
            broken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            what = "closed the connection" if broken else "cannot be reached"
            raise FailedAttempt(f"{what}: {_reason(error)}") from None
        except FailedAttempt as error:
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
        """Return the result of ``read``. Errors show no credentials.

        A message may show the beginning of a text, and `Secrets` cannot find half a credential.
        Therefore a malformed reply is masked and read again to make the message.
        """
        try:
            return read(reply)
        except MalformedReply as error:
            # The default message, if the redacted reply has no error, as for invalid UTF-8.
            what, malformed = _NOT_UTF8, error
        clean = replace(reply, content=self.secrets.redact(reply.text).encode())
        try:
            read(clean)
        except MalformedReply as error:
            what = str(error)
        tries = math.inf if malformed.passing else ONCE_MORE
        if unreadable := malformed.unreadable:
            tries = 1
        raise FailedAttempt(
            what, status=reply.status, text=clean.text, tries=tries, unreadable=unreadable
        )

    def _url_of(self, path: str) -> httpx.URL:
        below, _, query = path.partition("?")
        url = self._base
        if below:
            start = url.raw_path.partition(b"?")[0].rstrip(b"/")
            rest = b"?" + url.query if url.query else b""
            url = url.copy_with(raw_path=start + b"/" + below.lstrip("/").encode("ascii") + rest)
        return url.copy_merge_params(dict(parse_qsl(query))) if query else url

    async def _wait_for_slot(self) -> None:
        """Wait until the rate limit allows another request."""
        if self._service.rate_limit is None:
            return
        slot = max(time.monotonic(), self._next_slot)
        self._next_slot = slot + 1.0 / self._service.rate_limit
        await self._pause(slot - time.monotonic())

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run."""
        await asyncio.sleep(min(seconds, self._service.deadline.left))


def _reason(error: BaseException) -> str:
    """Return the system's error message, without the wrappers of asyncio, anyio and httpx."""
    found = str(error) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):  # One error per address of the host
            cause = cause.exceptions[-1]
        if isinstance(cause, OSError) and cause.errno is not None:
            found = str(cause)
            if str(cause.strerror).startswith("Connect call failed"):
                found = f"[Errno {cause.errno}] {os.strerror(cause.errno)}"
        # httpcore raises some errors "from None".
        cause = cause.__cause__ or cause.__context__
    return found


#: Environment variables that httpx reads.
_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"),
)
_LOGGERS: Final = (
    "httpx",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)
#: The secrets to mask in log records of the current attempt.
_SECRETS: ContextVar[Secrets | None] = ContextVar("secrets", default=None)


def _mask(record: logging.LogRecord) -> bool:
    """Mask the credentials in httpx log records, which contain full addresses."""
    if (secrets := _SECRETS.get()) is not None:
        record.msg, record.args = secrets.redact(record.getMessage()), None
    return True


def _make_client(url: httpx.URL, headers: Mapping[str, str], connections: int) -> httpx.AsyncClient:
    """Return the client for a service whose address may hold user and password.

    It opens at most ``connections`` connections at once.
    """
    # User and password apply only if no header has an authorization.
    signed = url.userinfo and "authorization" not in map(str.lower, headers)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask)
    try:
        return httpx.AsyncClient(
            auth=httpx.BasicAuth(url.username, url.password) if signed else None,
            headers={"Accept-Encoding": ACCEPTED, **headers},
            # Accept no cookies: with a session cookie, all contexts would be one dialogue.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
    except (httpx.InvalidURL, ImportError, OSError, ValueError, TypeError) as error:
        raise UserError(_environment_problem(error)) from None


def _service_url(address: str, shown: str) -> httpx.URL:
    """Return the address of a service as a URL. The error message shows only ``shown``."""
    try:
        url = httpx.URL(address)
        # Sockets do the same later, too late for a clear message.
        url.raw_host.decode("ascii").encode("idna")
        known = url.scheme in ("http", "https") and url.host
        right = known and 0 < (1 if url.port is None else url.port) < 65536
    except (httpx.InvalidURL, UnicodeError):
        right = False
    if not right:
        raise UserError(
            f"{shown!r} is not the address of a service: write http://HOST:PORT/PATH or https://..."
        )
    return url


def _environment_problem(error: Exception) -> str:
    """Describe a problem with proxies or certificates. Omit their values, which may be secret."""
    found = [name for name in _VARIABLES if os.environ.get(name) or os.environ.get(name.lower())]
    # Show the text of an OSError or ImportError only: it may name a path. Other messages repeat
    # addresses.
    about = str(error) if isinstance(error, OSError | ImportError) else ""
    why = f" ({' '.join(about.split())})" if about else ""
    return (
        f"the proxies or certificates in the environment variables cannot be used{why}: check "
        f"{', '.join(found) or ', '.join(_VARIABLES)}. Write a proxy as http://HOST:PORT; "
        "SSL_CERT_FILE must name a file of certificates in PEM format"
    )
