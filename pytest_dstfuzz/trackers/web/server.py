"""A server that lets any tracker be asked over HTTP, by `trackers.web.contract`.

Requests that wait together are put into batches: a tracker is asked in one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
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
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.validation import as_list, check_prediction, describe_error
from pytest_dstfuzz.trackers.web import contract
from pytest_dstfuzz.trackers.web.contract import About, Answered, ContractError

#: How long a batch that has room waits for its next request, as a share of what the batch
#: before took: where more callers are expected, and where all of them are there. A batch of
#: one costs most trackers half of what a full one does, so that a little waiting pays.
_FOR_EXPECTED: Final = 0.5
_FOR_OTHERS: Final = 0.1
#: Seconds that it waits at most: those who ask together come within a few milliseconds.
_LONGEST_PAUSE: Final = 0.02


class _Request:
    """The contexts of one request, and their answers as far as they are there."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self.future: Future[list[Answered]] = Future()
        self._answers: dict[int, Answered] = {}

    def settle(self, place: int, answer: Answered) -> None:
        """Keep an answer; the last one to come ends the request."""
        self._answers[place] = answer
        if len(self._answers) == len(self.contexts):
            self.future.set_result([self._answers[here] for here in range(len(self.contexts))])


class _Item(NamedTuple):
    """One context of a request, and its place there."""

    request: _Request
    place: int
    context: Context


class Batcher:
    """Asks a tracker on behalf of many, the waiting ones together, from one thread only."""

    def __init__(self, tracker: Tracker, batch_size: int, outcome: OutcomeKind = "state") -> None:
        self._tracker = tracker
        self._outcome: OutcomeKind = outcome
        self._batch_size = batch_size
        self._waiting: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        #: Contexts that the batch before had no room for.
        self._left: list[_Item] = []
        self._ended = False
        #: Requests that the next batch probably has.
        self._expected = 0
        #: Seconds that the batch before took.
        self._took = 0.0
        self._thread = threading.Thread(target=self._run, name="dstfuzz-tracker", daemon=True)
        self._thread.start()

    def submit(self, contexts: Sequence[Context]) -> Future[list[Answered]]:
        """Ask for the contexts of one request; where the tracker fails, its error is an answer."""
        request = _Request(contexts)
        self._waiting.put(request)
        return request.future

    def close(self) -> None:
        """Answer what was asked for, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while not self._ended or self._left:
            batch, requests = self._gather()
            started = time.monotonic()
            # Contexts of similar length are what trackers pad least.
            self._answer(sorted(batch, key=lambda item: item.context.size()))
            # Those who were answered will ask again, and others have come meanwhile.
            self._expected = requests + self._waiting.qsize()
            self._took = time.monotonic() - started

    def _gather(self) -> tuple[list[_Item], int]:
        """Wait for requests; return the contexts of one batch, and how many requests came."""
        batch, requests = self._left, 0
        while len(batch) < self._batch_size and not self._ended:
            # Whoever was answered just now asks again at once, if at all: without waiting
            # for them, those and the others would for ever take turns in half batches.
            share = _FOR_EXPECTED if requests < self._expected else _FOR_OTHERS
            pause = min(share * self._took, _LONGEST_PAUSE) if batch else None
            try:
                request = self._waiting.get(timeout=pause)
            except queue.Empty:
                break
            if request is None:
                self._ended = True
            # A caller who has gone needs no answer.
            elif request.future.set_running_or_notify_cancel():
                batch += [_Item(request, *entry) for entry in enumerate(request.contexts)]
                requests += 1
        self._left = batch[self._batch_size :]
        return batch[: self._batch_size], requests

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answer a batch; where the tracker fails as a whole, each context for itself."""
        if not batch:
            return
        try:
            answers = as_list(self._tracker.predict([item.context for item in batch]), len(batch))
        except BaseException as error:  # noqa: BLE001 - the thread must live on, whatever it is
            if len(batch) > 1:
                for item in batch:
                    self._answer([item])
            else:
                (item,) = batch
                item.request.settle(item.place, _failure(error))
            return
        for item, answer in zip(batch, answers, strict=True):
            try:
                # For its complaints alone: whoever asked normalises the state as its data wants it.
                check_prediction(answer, outcome=self._outcome)
            except TrackerError as error:
                item.request.settle(item.place, _failure(error))
            else:
                item.request.settle(item.place, cast("Answered", answer))


def _failure(error: BaseException) -> TrackerError:
    return TrackerError(f"the tracker failed: {describe_error(error)}")


#: Bytes of a request, however many dialogues it holds; the longest have some ten thousand.
_LONGEST_REQUEST: Final = 4 * 1024 * 1024
#: Seconds that an idle connection is kept: longer than a client needs to think of variants.
_KEPT: Final = 75


def make_app(
    tracker: Tracker,
    about: About,
    *,
    batch_size: int,
    token: str = "",
    host: str = "127.0.0.1",
    outcome: OutcomeKind = "state",
) -> Starlette:
    """Return the application that answers for a tracker, at most ``batch_size`` contexts at once.

    What it answers with is its ``outcome``.

    Callers must send ``token`` as ``Authorization: Bearer``; ``""`` = none. Without one, a ``host``
    of this machine alone is asked by no other name than its own: a page in a browser here may have
    a name that leads here, too.
    """
    batcher = Batcher(tracker, batch_size, outcome)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        batcher.close()

    own_names = host if is_loopback(host) and not token else ""

    async def tell(request: Request) -> JSONResponse:
        _check_caller(request, token, own_names)
        return JSONResponse(replace(about, dialogues=batch_size).to_json())

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
            # Nobody reads that.
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
    """Whether a host is this machine alone: an address of loopback, or ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait until `serve` takes them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Choose another one "
            "with --host and --port; port 0 takes one that is free"
        ) from None
    # Connections take it over; asyncio sets it for sockets alone that it made itself. Without,
    # the body of an answer waits 40 ms for the acknowledgement of its header.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the address under which a listening socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: Starlette) -> uvicorn.Server:
    """Return a server for ``run(sockets=[...])``: quiet, and in no hurry to end connections."""
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=_KEPT)
    )


async def _body(request: Request) -> Any:
    """Return the JSON value of a request; a `ContractError` says that it is none."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > _LONGEST_REQUEST:
            raise ContractError(f"the request is longer than {_LONGEST_REQUEST:,} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"the request is no JSON: {error}") from None


def _check_caller(request: Request, token: str, own: str) -> None:
    """Refuse pages of browsers, whoever has not the token, and other names than those of ``own``.

    Where token or host are ``""``, none is needed and any will do.
    """
    # A browser says on behalf of which page it asks; nobody else does.
    if "origin" in request.headers:
        raise HTTPException(403, "no page in a browser may ask")
    name = request.url.hostname or ""
    if own and not (is_loopback(name) or name == own):
        raise HTTPException(
            403, f"{name!r} is no name of this machine: ask {own}, or use --token-env"
        )
    given = request.headers.get("authorization", "")
    # Compared in constant time, as bytes: a header may hold any character of Latin-1.
    if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})


async def _explain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for this alone
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
