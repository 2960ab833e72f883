"""A server that makes any tracker available over HTTP, see `trackers.web.contract`.

One thread calls the tracker. It joins all waiting requests to batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.json_data import load_json
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of
from pytest_dstfuzz.trackers.validation import as_list, check_prediction, describe_error
from pytest_dstfuzz.trackers.web import contract
from pytest_dstfuzz.trackers.web.contract import About, ContractError, ServiceAnswer

#: How long an incomplete batch waits for its next request, as a share of the time for the last
#: batch. The first value applies if more callers are expected, the second otherwise. For most
#: trackers, a batch of one takes half as long as a full batch, so a short wait pays off.
_FOR_EXPECTED: Final = 0.5
_FOR_OTHERS: Final = 0.1
#: Longest wait in seconds. Concurrent requests arrive within a few milliseconds.
_LONGEST_PAUSE: Final = 0.02


class _Request:
    """The contexts of one request, and the answers received so far."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self.future: Future[list[ServiceAnswer]] = Future()
        self._answers: dict[int, ServiceAnswer] = {}

    def settle(self, place: int, answer: ServiceAnswer) -> None:
        """Store an answer. The last answer completes the request."""
        self._answers[place] = answer
        if len(self._answers) == len(self.contexts):
            self.future.set_result([self._answers[here] for here in range(len(self.contexts))])


class _Item(NamedTuple):
    """One context of a request, and its place in the request."""

    request: _Request
    place: int
    context: Context


class Batcher:
    """A thread that calls a tracker in batches, for many callers."""

    def __init__(self, tracker: Tracker, batch_size: int, outcome: OutcomeKind = "state") -> None:
        self._tracker = tracker
        self._outcome: OutcomeKind = outcome
        self._batch_size = batch_size
        self._waiting: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        #: Contexts left over from the last batch.
        self._left: list[_Item] = []
        self._ended = False
        #: Number of requests expected for the next batch.
        self._expected = 0
        #: Duration of the last batch in seconds.
        self._took = 0.0
        self._thread = threading.Thread(target=self._run, name="dstfuzz-tracker", daemon=True)
        self._thread.start()

    def submit(self, contexts: Sequence[Context]) -> Future[list[ServiceAnswer]]:
        """Queue the contexts of one request. If the tracker fails, the answer is an error."""
        request = _Request(contexts)
        self._waiting.put(request)
        return request.future

    def close(self) -> None:
        """Answer all pending requests, and stop the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while not self._ended or self._left:
            batch, requests = self._gather()
            started = time.monotonic()
            # Batches of similar length need the least padding.
            self._answer(sorted(batch, key=lambda item: item.context.size()))
            # The callers just answered will ask again, and new ones have arrived.
            self._expected = requests + self._waiting.qsize()
            self._took = time.monotonic() - started

    def _gather(self) -> tuple[list[_Item], int]:
        """Wait for requests. Return the contexts of one batch and the number of new requests."""
        batch, requests = self._left, 0
        while len(batch) < self._batch_size and not self._ended:
            # A caller just answered usually asks again at once. Without this wait, two groups of
            # callers would alternate in half batches for ever.
            share = _FOR_EXPECTED if requests < self._expected else _FOR_OTHERS
            pause = min(share * self._took, _LONGEST_PAUSE) if batch else None
            try:
                request = self._waiting.get(timeout=pause)
            except queue.Empty:
                break
            if request is None:
                self._ended = True
            # Skip a request whose caller has gone.
            elif request.future.set_running_or_notify_cancel():
                batch += [_Item(request, *entry) for entry in enumerate(request.contexts)]
                requests += 1
        self._left = batch[self._batch_size :]
        return batch[: self._batch_size], requests

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answer a batch. If the whole batch fails, send its contexts one by one."""
        if not batch:
            return
        try:
            answers = as_list(self._tracker.predict([item.context for item in batch]), len(batch))
        except BaseException as error:  # noqa: BLE001 - nothing may end this thread
            if len(batch) > 1:
                for item in batch:
                    self._answer([item])
            else:
                (item,) = batch
                item.request.settle(item.place, _failure(error))
            return
        for item, answer in zip(batch, answers, strict=True):
            try:
                # Only validate: the client normalises the state for its own data.
                check_prediction(answer, outcome=self._outcome)
            except TrackerError as error:
                item.request.settle(item.place, _failure(error))
            else:
                item.request.settle(item.place, cast("ServiceAnswer", answer))


def _failure(error: BaseException) -> TrackerError:
    return TrackerError(f"the tracker failed: {describe_error(error)}")


#: Largest request in bytes. The longest single dialogues have about ten thousand bytes.
_LONGEST_REQUEST: Final = 4 * 1024 * 1024
#: Seconds to keep an idle connection, longer than a client needs to generate variants.
_KEPT: Final = 75


def make_app(
    tracker: Tracker,
    about: About,
    *,
    batch_size: int,
    token: str = "",
    host: str = "127.0.0.1",
    outcome: OutcomeKind = "state",
    mark: str = "",
) -> Starlette:
    """Return the application that serves a tracker, in batches of at most ``batch_size`` contexts.

    It declares the tracker's fingerprint with ``mark`` as its version, or the version of ``about``
    if there is none. ``mark`` changes with the settings and the code that made the tracker.
    ``outcome`` is the kind of answer. If ``token`` is not empty, callers must send it as
    ``Authorization: Bearer``. If it is empty and ``host`` is a loopback address, requests must use
    a name of this machine. This protects against DNS rebinding by a page in a local browser.
    """
    batcher = Batcher(tracker, batch_size, outcome)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        batcher.close()

    own_names = host if is_loopback(host) and not token else ""

    async def tell(request: Request) -> JSONResponse:
        _check_caller(request, token, own_names)
        # A tracker may load another model while it is served.
        fingerprint = fingerprint_of(tracker)
        version = f"{fingerprint} {mark}".strip() if fingerprint else about.version
        return JSONResponse(replace(about, version=version, dialogues=batch_size).to_json())

    async def predict(request: Request) -> Response:
        _check_caller(request, token, own_names)
        try:
            body = await _body(request)
            group = contract.is_group(body)
            contexts = (
                contract.read_group(body, batch_size, outcome)
                if group
                else [contract.read_request(body, outcome)]
            )
        except ClientDisconnect:
            # The client has gone.
            return Response(status_code=400)
        except ContractError as error:
            raise HTTPException(400, str(error)) from None
        answers = await asyncio.wrap_future(batcher.submit(contexts))
        if group:
            return JSONResponse(contract.answers_json(answers, outcome))
        (answer,) = answers
        if isinstance(answer, TrackerError):
            raise HTTPException(422, str(answer))
        return JSONResponse(contract.answer_json(answer, outcome))

    routes = [Route("/", tell, methods=["GET"]), Route("/", predict, methods=["POST"])]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _explain})


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Connections wait until `serve` accepts them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Choose others with "
            "--host and --port; --port 0 selects a free port"
        ) from None
    # Accepted connections inherit this option. asyncio sets it only on sockets that it creates.
    # Without it, the body of an answer waits 40 ms for the acknowledgement of its header.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: Starlette) -> uvicorn.Server:
    """Return a server without log output that keeps idle connections open."""
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=_KEPT)
    )


async def _body(request: Request) -> Any:
    """Return the JSON value of a request, or raise a `ContractError`."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > _LONGEST_REQUEST:
            raise ContractError(f"the request is longer than {_LONGEST_REQUEST:,} bytes")
    try:
        return load_json(content)
    except ValueError as error:
        raise ContractError(f"the request is not valid JSON: {error}") from None


def _check_caller(request: Request, token: str, own: str) -> None:
    """Reject browser pages, callers without the token, and unexpected host names.

    The host must be a loopback name or ``own``. An empty ``token`` or ``own`` switches off its
    check.
    """
    # Only browsers send the header Origin.
    if "origin" in request.headers:
        raise HTTPException(403, "requests from web pages are not allowed")
    name = request.url.hostname or ""
    if own and not (is_loopback(name) or name == own):
        raise HTTPException(
            403, f"{name!r} is not a name of this machine: use {own}, or --token-env"
        )
    given = request.headers.get("authorization", "")
    # Compare as bytes and in constant time, because a header may hold any Latin-1 character.
    if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise HTTPException(401, "a bearer token is required", {"WWW-Authenticate": "Bearer"})


async def _explain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - the only type it is registered for
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
