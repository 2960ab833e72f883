"""Requests to a service that may be busy, slow or broken for a while.

Every adapter of a service asks through a `Transport`: connections are kept, a bounded
number of requests is in flight, and what may pass (429, 502 to 504 and other 5xx, a time-out,
a broken connection, a body that is cut off) is tried again after exponential backoff with full
jitter [1]_, or after what ``Retry-After`` says. What does not pass is a `ServiceError`
of one line, without any credential.

Nobody waits for ever: an attempt as a whole has its time-out, the run its deadline, and a
service that nobody reaches any more is taken for dead (`Breaker`). Of the last two, a
`GivenUpError` stands in the place of every answer that is missing.

.. [1] M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import json
import math
import queue
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qsl

import httpx

from pytest_dstfuzz.config import masked, revealed
from pytest_dstfuzz.errors import GivenUpError, TrackerError
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Interrupted
from pytest_dstfuzz.trackers.web.client import attempt, make_client, service_url
from pytest_dstfuzz.trackers.web.reply import (
    AWAY,
    ONCE_MORE,
    Breaker,
    Failed,
    MalformedReply,
    Reply,
    ServiceError,
    backoff,
    read_body,
    refusal,
)
from pytest_dstfuzz.trackers.web.secrets import Secrets, header_values, secrets_of

__all__ = ["MalformedReply", "Reply", "ServiceError", "Transport"]

T = TypeVar("T")

#: Seconds after which it is looked whether there is anything left to wait for.
_LOOK: Final = 0.2


@dataclass(eq=False)
class _Run(Generic[T]):
    """Jobs that are done by several threads."""

    jobs: Sequence[Callable[[], T]]
    #: Places of the jobs that no thread has taken.
    places: Iterator[int]
    #: By place. The threads write them: an interrupt can come between the moment that another
    #: thread hands over a result and the one that this one keeps it.
    results: dict[int, T | TrackerError] = field(default_factory=dict)
    #: An entry for each job that ended: its place, and what is no failure of the tracker or
    #: ``None``.
    done: queue.SimpleQueue[tuple[int, BaseException | None]] = field(
        default_factory=queue.SimpleQueue
    )
    #: Set when nobody waits for the results any more.
    stop: threading.Event = field(default_factory=threading.Event)


class Transport:
    """A service and its connections; may be used by several threads.

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
        url = service_url(full, self.address)
        self._service = service
        headers = header_values(service.headers, token=service.token, signed=bool(url.userinfo))
        self.secrets: Secrets = secrets_of(full, headers.values())
        self._base = url.copy_with(userinfo=b"")
        self._breaker = Breaker(service.dead_after)
        self._client = make_client(url, headers, service.concurrency)
        weakref.finalize(self, self._client.close)
        self._lock = threading.Lock()
        #: When the next request may be sent, by the rate limit.
        self._next_slot = 0.0
        # Of the system: waiting times decide no result, and processes should not agree.
        self._jitter = random.Random()  # noqa: S311 - no cryptography
        self._running = threading.local()

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
        try:
            for number in range(tries):
                self._refuse_if_over(last)
                self._wait_for_slot()
                try:
                    reply = self._attempt(method, path, content, worth)
                    return self._read(reply, read)
                except Failed as error:
                    failure = error.with_traceback(None)
                last = failure.what
                self._refuse_if_over(last)
                if number + 1 >= min(tries, failure.tries):
                    break
                with self._lock:
                    drawn = backoff(number, self._jitter)
                self._pause(max(drawn, failure.after))
        except KeyboardInterrupt:
            # Its frames hold whole addresses, which pytest --full-trace would show.
            raise KeyboardInterrupt from None
        if failure.away:
            self._breaker.failed(self.secrets.redact(failure.what))
        after = f" after {number + 1} tries" if number else ""
        line = " ".join(f"the service at {self.address} {failure.what}{after}".split())
        line = self.secrets.redact(line)
        raise ServiceError(
            line, status=failure.status, text=failure.text, unreadable=failure.unreadable
        )

    def map(
        self,
        jobs: Sequence[Callable[[], T]],
        take: Callable[[int, object], None] = lambda _, __: None,
    ) -> list[T | TrackerError]:
        """Do jobs, several at once, and return their results in the order of the jobs.

        Each is handed to ``take`` as it comes, with its place and in the thread that waits.

        A `TrackerError` stands in the place of the result of the job that raised it, and of
        each job that was not done when the run was over or the service dead. `Interrupted` has
        the results that were there.
        """
        run: _Run[T] = _Run(jobs, iter(range(len(jobs))))
        try:
            for _ in range(min(self._service.concurrency, len(jobs))):
                # Daemons: an interrupted run must not wait for a service that does not answer.
                threading.Thread(target=self._work, args=(run,), daemon=True).start()
            waiting = len(jobs)
            while waiting:
                try:
                    place, error = run.done.get(timeout=min(_LOOK, self._service.deadline.left))
                except queue.Empty:
                    # A thread may hang where nothing bounds it, as in the look-up of a name.
                    if self._over():
                        break
                    continue
                if error is not None:
                    raise error
                take(place, run.results[place])
                waiting -= 1
        except KeyboardInterrupt:
            raise Interrupted(dict(run.results)) from None
        finally:
            run.stop.set()
        found = dict(run.results)
        over = GivenUpError(self._over())
        return [found.get(place, over) for place in range(len(jobs))]

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
            run.done.put((place, failure))

    def _over(self) -> str:
        """Return why nothing more is asked, as a clause, or ``""``."""
        if opened := self._breaker.opened:
            return f"the service at {self.address} is taken for dead ({opened})"
        return self._service.deadline.ended

    def _refuse_if_over(self, last: str) -> None:
        if over := self._over():
            dead = self._breaker.opened or not last
            shown = "" if dead else f" (the last time, the service {self.secrets.redact(last)})"
            raise GivenUpError(over + shown)

    def _attempt(self, method: str, path: str, content: bytes | None, worth: int) -> Reply:
        """Make one request once; without an answer of a status below 300, it has `Failed`."""
        headers = {} if content is None else {"Content-Type": "application/json"}
        granted = min(self._service.timeout * worth, self._service.deadline.left)
        connecting = min(self._service.timeout, granted)
        try:
            with (
                attempt(granted, self.secrets),
                self._client.stream(
                    method,
                    self._url_of(path),
                    content=content,
                    headers=headers,
                    timeout=httpx.Timeout(granted, connect=connecting),
                ) as response,
            ):
                body = read_body(response.iter_raw(), response.headers)
        except httpx.TimeoutException:
            raise Failed(f"did not answer within {granted:.4g} s") from None
        except (httpx.TransportError, OSError) as error:
            # These come after it took the request: it was there.
            broken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            what = "broke the connection off" if broken else "cannot be reached"
            raise Failed(f"{what}: {str(error) or type(error).__name__}") from None
        except Failed as error:
            error.status = response.status_code
            raise
        reply = Reply(response.status_code, self.secrets.scrub(body), {**response.headers})
        if reply.status not in AWAY:
            self._breaker.answered()
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

    def _wait_for_slot(self) -> None:
        """Wait until the rate limit allows one more request."""
        if self._service.rate_limit is None:
            return
        with self._lock:
            slot = max(time.monotonic(), self._next_slot)
            self._next_slot = slot + 1.0 / self._service.rate_limit
        self._pause(slot - time.monotonic())

    def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the run."""
        stop: threading.Event | None = getattr(self._running, "stop", None)
        _pause(min(seconds, self._service.deadline.left, threading.TIMEOUT_MAX), stop)


def _pause(seconds: float, stop: threading.Event | None) -> None:
    """Wait, but not on behalf of a run that was ended: that is a `TrackerError`."""
    if stop is None:
        time.sleep(max(0.0, seconds))
    elif stop.wait(max(0.0, seconds)):
        raise TrackerError("the run was ended")
