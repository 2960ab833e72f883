"""A real service on loopback that answers as a test wants it to, broken ways included."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pytest_dstfuzz.trackers.web.transport import Reply, Transport


@dataclass(frozen=True)
class Asked:
    """One request: the number is that of its kind of dialogue, from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    number: int


@dataclass(frozen=True)
class Says:
    """One answer.

    ``how``: whole, cut (half of the body that was promised), drip (a byte at a time), slow head
    (so are status and headers), continue (100 Continue without end), silence (nothing until the
    service ends) or hang-up (the connection is closed without an answer).
    """

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    how: str = "whole"


class Service(ThreadingHTTPServer):
    """Counts what it is asked, and how."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Callable[[Asked], Says]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.lock = threading.Lock()
        self.asked: list[Asked] = []
        self.times: dict[str, int] = {}
        self.connections = self.in_flight = self.most_in_flight = 0
        self.ended = threading.Event()
        self.dead = threading.Event()

    def die(self) -> None:
        """Take no more connections, and close those that there are with the next request."""
        self.dead.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it an answer waits for the acknowledgement of its header.
    disable_nagle_algorithm = True
    server: Service

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def _serve(self) -> None:
        service = self.server
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        with service.lock:
            key = f"{self.command} {content.decode()}"
            number = service.times[key] = service.times.get(key, -1) + 1
            body = json.loads(content) if content else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body, number)
            service.asked.append(asked)
            service.in_flight += 1
            service.most_in_flight = max(service.most_in_flight, service.in_flight)
        try:
            self._say(Says(how="hang-up") if service.dead.is_set() else service.answer(asked))
        finally:
            with service.lock:
                service.in_flight -= 1

    do_GET = do_POST = _serve  # noqa: N815 - as http.server calls them

    def _say(self, says: Says) -> None:
        if says.how == "silence":
            self.server.ended.wait()
        while says.how == "continue" and not self.server.ended.wait(0.001):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 64)
        if says.how == "slow head":
            self._drip(b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 65_000)
        if says.how in ("silence", "continue", "slow head", "hang-up"):
            self.close_connection = True
            return
        body = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
        self.send_response(says.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**headers, **says.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if says.how == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif says.how == "drip":
            self._drip(body)
        else:
            self.wfile.write(body)

    def _drip(self, content: bytes) -> None:
        for place in range(len(content)):
            self.wfile.write(content[place : place + 1])
            if self.server.ended.wait(0.05):
                return


@contextmanager
def serving(answer: Callable[[Asked], Says]) -> Iterator[Service]:
    """Serve in a thread until the block ends."""
    service = Service(answer)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.ended.set()
        if not service.dead.is_set():
            service.shutdown()
        thread.join()
        service.server_close()


async def asking(
    transport: Transport, method: str = "GET", path: str = "", body: object = None
) -> Reply:
    """Make one request and return the reply as it came."""
    return await transport.ask(method, path, body, read=lambda reply: reply)


def send(transport: Transport, *asked: Any) -> Reply:
    """Do the same for a caller that is not ``async``."""
    return transport.wait(asking(transport, *asked))


#: Ways to fail that a second attempt mends; ``Retry-After`` is 0 so that tests are quick.
FAULTS: dict[str, Says] = {
    "500": Says({"error": "out of order"}, 500),
    "502": Says(b"<html>Bad gateway</html>", 502, {"Content-Type": "text/html"}),
    "503": Says({"error": "busy"}, 503, {"Retry-After": "0"}),
    "429": Says({"error": "slow down"}, 429, {"Retry-After": "0"}),
    "no JSON": Says(b"{'state': {}}"),
    "another shape": Says({"slots": []}),
    "cut off": Says({"state": {"hotel-area": "north"}}, how="cut"),
    "hangs up": Says(how="hang-up"),
    "slow": Says({"state": {"hotel-area": "north"}}, how="drip"),
    "silent": Says(how="silence"),
}
