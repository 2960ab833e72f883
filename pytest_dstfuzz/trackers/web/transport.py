"""Requests to a service that may be busy, slow or broken for a while.

Every adapter of a service asks through a `Transport`: connections are kept, a bounded
number of requests is in flight, and what may pass (429, 5xx, a time-out, a broken
connection, a body that is cut off) is tried again after exponential backoff with full
jitter [1]_, or after what ``Retry-After`` says. What does not pass is a `ServiceError`
of one line, without any credential.

.. [1] M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qsl, unquote

import httpx

from pytest_dstfuzz.config import masked
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.protocol import Interrupted
from pytest_dstfuzz.trackers.web.reply import MalformedReply, Reply, ServiceError
from pytest_dstfuzz.trackers.web.retry import backoff, retry_after
from pytest_dstfuzz.trackers.web.secrets import Secrets, header_values, secrets_of
from pytest_dstfuzz.trackers.web.settings import ServiceSettings

__all__ = ["MalformedReply", "Reply", "ServiceError", "Transport"]

T = TypeVar("T")

#: Statuses below 500 that say "later".
_LATER: Final = (408, 425, 429)
#: Characters of a body that a message shows.
_SHOWN: Final = 120
#: Bytes; no belief state is as long, and a body without an end would fill the memory.
_LONGEST_BODY: Final = 64 * 1024 * 1024


class _Passing(Exception):  # noqa: N818 - no error yet: it is tried again
    """An attempt that failed and may succeed later.

    Attributes:
        after: seconds that the service asks to wait.
    """

    def __init__(self, what: str, status: int | None = None, text: str = "") -> None:
        super().__init__(what)
        self.status = status
        self.text = text
        self.after = 0.0


class _Run(Generic[T]):
    """Jobs that are done by several threads.

    Args:
        jobs: to do.

    Attributes:
        places: of the jobs that no thread has taken.
        results: by place. The threads write them: an interrupt can come between the moment
            that another thread hands over a result and the one that this one keeps it.
        done: an entry for each job that ended: what is no failure of the tracker, or ``None``.
        stop: set when nobody waits for the results any more.
    """

    def __init__(self, jobs: Sequence[Callable[[], T]]) -> None:
        self.jobs = jobs
        self.places = iter(range(len(jobs)))
        self.results: dict[int, T | TrackerError] = {}
        self.done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self.stop = threading.Event()


class Transport:
    """A service, its connections and what it cost so far; may be used by several threads.

    Args:
        base_url: address of the service, ``http(s)://...``, which may hold user and
            password, and a query that goes with every request.
        service: how it is asked.

    Attributes:
        address: for messages: without credentials.
        secrets: takes the credentials out of texts.
        concurrency: requests that `map` has in flight at once, where there are so many jobs.
        requests: attempts made so far.
        retries: those of them that were not the first of their request.
        seconds: that requests took, waiting to be allowed to ask again left out; the sum
            over all requests, so that it may be more than the time that passed.

    Raises:
        UserError: the address or a header is none.
    """

    def __init__(self, base_url: str, service: ServiceSettings) -> None:
        self.address = masked(base_url)
        self.concurrency = service.concurrency
        url = _url(base_url, self.address)
        self._service = service
        headers = header_values(service.headers, signed=bool(url.userinfo))
        self.secrets: Secrets = secrets_of(base_url, headers.values())
        self._base = url.copy_with(userinfo=b"")
        client = httpx.Client(
            auth=_auth(url, headers),
            headers=headers,
            # None is kept: by a session's cookie, contexts would be one dialogue to the service.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(
                max_connections=service.concurrency, max_keepalive_connections=service.concurrency
            ),
        )
        self._client = client
        weakref.finalize(self, client.close)
        self._lock = threading.Lock()
        #: When the next request may be sent, by the rate limit.
        self._next_slot = 0.0
        # Of the system: waiting times decide no result, and processes should not agree.
        self._jitter = random.Random()  # noqa: S311 - no cryptography
        self._running = threading.local()
        self.requests = self.retries = 0
        self.seconds = 0.0

    def ask(
        self,
        method: str,
        path: str = "",
        body: object = None,
        *,
        read: Callable[[Reply], T],
        worth: int = 1,
    ) -> T:
        """Make one request, again where the failure may pass; return what ``read`` makes of it.

        Args:
            method: of HTTP.
            path: below the address, percent-encoded, and a query; ``""`` is the address.
            body: JSON value; ``None`` sends no body.
            read: called with the reply. A `MalformedReply` that it raises is an attempt that
                failed like others.
            worth: requests that this one stands for; an attempt may take so many times as long.

        Raises:
            ServiceError: the service refused, or failed at every attempt.
            TrackerError: whatever else ``read`` raises.
        """
        content = None if body is None else json.dumps(body).encode("ascii")
        stop: threading.Event | None = getattr(self._running, "stop", None)
        tries = self._service.retries + 1
        timeout = self._service.timeout * worth
        for number in range(tries):
            try:
                self._wait_for_slot(stop)
                reply = self._attempt(method, path, content, timeout, again=number > 0)
                try:
                    return read(reply)
                except MalformedReply:
                    failure = self._malformed(reply, read)
            except _Passing as error:
                failure = error
            if number + 1 < tries:
                with self._lock:
                    drawn = backoff(number, self._jitter)
                _pause(max(drawn, failure.after), stop)
        raise self._error(str(failure), failure.status, failure.text, tries)

    def map(self, jobs: Sequence[Callable[[], T]]) -> list[T | TrackerError]:
        """Do jobs, several at once, and return their results in the order of the jobs.

        A `TrackerError` stands in the place of the result of the job that raised it.

        Raises:
            Interrupted: Ctrl-C; it has the results that were there.
        """
        run: _Run[T] = _Run(jobs)
        try:
            for _ in range(min(self._service.concurrency, len(jobs))):
                # Daemons: an interrupted run must not wait for a service that does not answer.
                threading.Thread(target=self._work, args=(run,), daemon=True).start()
            for _ in jobs:
                if (error := run.done.get()) is not None:
                    raise error
        except KeyboardInterrupt:
            raise Interrupted(dict(run.results)) from None
        finally:
            run.stop.set()
        return [run.results[place] for place in range(len(jobs))]

    def _work(self, run: _Run[T]) -> None:
        """Do jobs in this thread until there are none left."""
        self._running.stop = run.stop
        while not run.stop.is_set():
            with self._lock:
                place = next(run.places, None)
            if place is None:
                return
            failure = None
            try:
                run.results[place] = run.jobs[place]()
            except TrackerError as error:
                # Its frames would keep the whole request alive.
                run.results[place] = error.with_traceback(None)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                failure = error
            run.done.put(failure)

    def _attempt(
        self, method: str, path: str, content: bytes | None, timeout: float, *, again: bool
    ) -> Reply:
        """Make one request once.

        Raises:
            _Passing: it failed in a way that may pass.
            ServiceError: the service refused it.
        """
        headers = {} if content is None else {"Content-Type": "application/json"}
        started = time.monotonic()
        try:
            with self._client.stream(
                method,
                self._url_of(path),
                content=content,
                headers=headers,
                timeout=httpx.Timeout(timeout, connect=self._service.timeout, pool=None),
            ) as response:
                parts, size = [], 0
                for part in response.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    # The client's own limit is one for each read: a body may drip for ever.
                    if time.monotonic() - started > timeout:
                        raise _Passing(_too_late(timeout))
                    if size > _LONGEST_BODY:
                        raise _Passing("answered with a body that does not end")
        except httpx.TimeoutException:
            raise _Passing(_too_late(timeout)) from None
        except httpx.TransportError as error:
            raise _Passing(f"cannot be reached: {_reason(error)}") from None
        except httpx.DecodingError as error:
            raise _Passing(f"answered with a body that is no such one: {_reason(error)}") from None
        finally:
            with self._lock:
                self.requests += 1
                self.retries += again
                self.seconds += time.monotonic() - started
        reply = Reply(response.status_code, b"".join(parts), dict(response.headers))
        if reply.status >= 300:
            self._raise_status(reply, response.reason_phrase)
        return reply

    def _malformed(self, reply: Reply, read: Callable[[Reply], T]) -> _Passing:
        """Return what is wrong with a reply, said about one that holds no credentials.

        The message may show the beginning of a text, and half a credential is one that
        `Secrets` does not find.
        """
        clean = replace(reply, content=self.secrets.redact(reply.text).encode())
        try:
            read(clean)
        except MalformedReply as error:
            return _Passing(str(error), reply.status, clean.text)
        return _Passing("answered with a malformed body", reply.status, clean.text)

    def _raise_status(self, reply: Reply, phrase: str) -> None:
        text = self.secrets.redact(reply.text)
        shown = " ".join(text.split())
        head = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
        what = " ".join(f"answered {reply.status} {phrase}".split()) + (
            f" ({head})" if head else ""
        )
        if reply.status < 500 and reply.status not in _LATER:
            raise self._error(what, reply.status, text, 1)
        failure = _Passing(what, reply.status, text)
        failure.after = retry_after(reply.headers.get("retry-after", ""))
        raise failure

    def _error(self, what: str, status: int | None, text: str, tries: int) -> ServiceError:
        after = "" if tries == 1 else f" after {tries} tries"
        line = " ".join(f"the service at {self.address} {what}{after}".split())
        return ServiceError(self.secrets.redact(line), status, text)

    def _url_of(self, path: str) -> httpx.URL:
        below, _, query = path.partition("?")
        url = self._base
        if below:
            start = url.raw_path.partition(b"?")[0].rstrip(b"/")
            rest = b"?" + url.query if url.query else b""
            url = url.copy_with(raw_path=start + b"/" + below.lstrip("/").encode("ascii") + rest)
        return url.copy_merge_params(dict(parse_qsl(query))) if query else url

    def _wait_for_slot(self, stop: threading.Event | None) -> None:
        """Wait until the rate limit allows one more request."""
        if self._service.rate_limit is None:
            return
        with self._lock:
            slot = max(time.monotonic(), self._next_slot)
            self._next_slot = slot + 1.0 / self._service.rate_limit
        _pause(slot - time.monotonic(), stop)


def _pause(seconds: float, stop: threading.Event | None) -> None:
    """Wait, but not on behalf of a run that was ended.

    Raises:
        TrackerError: the run was ended.
    """
    if stop is None:
        time.sleep(max(0.0, seconds))
    elif stop.wait(max(0.0, seconds)):
        raise TrackerError("the run was ended")


def _url(address: str, shown: str) -> httpx.URL:
    try:
        url = httpx.URL(address)
        # As sockets do it, where it would be too late for a message.
        url.raw_host.decode("ascii").encode("idna")
    except (httpx.InvalidURL, UnicodeError):
        url = httpx.URL("")
    known = url.scheme in ("http", "https") and url.host
    if not known or not 0 < (1 if url.port is None else url.port) < 65536:
        raise UserError(
            f"{shown!r} is no address of a service: write http://HOST:PORT/PATH or https://..."
        )
    return url


def _auth(url: httpx.URL, headers: Mapping[str, str]) -> httpx.BasicAuth | None:
    """Return user and password of the address, where no header says who asks."""
    if not url.userinfo or "authorization" in map(str.lower, headers):
        return None
    user, _, password = url.userinfo.decode("ascii").partition(":")
    return httpx.BasicAuth(unquote(user), unquote(password))


def _too_late(timeout: float) -> str:
    return f"did not answer within {timeout:g} s"


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__
