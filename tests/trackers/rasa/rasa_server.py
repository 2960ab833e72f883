"""A bot of Rasa's kind on loopback, whose every request and answer is held to the descriptions.

``description/rasa.yml`` is Rasa's published API description, as far as it is used;
``description/rest_channel.yml`` says what its documentation says of the REST channel.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openapi_core import OpenAPI
from openapi_core.testing import MockRequest, MockResponse

TOKEN = "open-sesame-4711"  # noqa: S105 - of a server of the tests

_DESCRIPTIONS = Path(__file__).with_name("description")
_RASA = OpenAPI.from_file_path(str(_DESCRIPTIONS / "rasa.yml"))
_CHANNEL = OpenAPI.from_file_path(str(_DESCRIPTIONS / "rest_channel.yml"))
#: Where the descriptions say that the server is.
_DESCRIBED_HOST = "http://localhost:5005"

SLOTS = {
    "restaurant_area": "categorical",
    "cuisine": "text",
    "seats": "float",
    "parking": "bool",
    "dishes": "list",
    "requested_slot": "text",
    "session_started_metadata": "any",
}


_NOT_ACCEPTABLE = json.dumps({"status": "failure", "reason": "NotAcceptable", "code": 406})


@dataclass
class Conversation:
    """One tracker: its slots, and what happened."""

    slots: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(SLOTS))
    events: list[dict[str, Any]] = field(
        default_factory=lambda: [{"event": "action", "name": "action_session_start"}]
    )

    def hear(self, text: str) -> str:
        """Understand a message, run the form, and return what the bot says."""
        self.events.append({"event": "user", "text": text})
        slots, low = self.slots, text.lower()
        if match := re.search(r"chinese|italian", low):
            slots["cuisine"] = match[0]
        if match := re.search(r"table for (\d+)", low):
            slots["seats"] = float(match[1])
        if "parking" in low:
            slots["parking"] = "no parking" not in low
        slots["dishes"] = re.findall(r"soup|rice", low) or slots["dishes"]
        # A form: a bare area is one only where the bot has just asked for it.
        if slots["requested_slot"] == "restaurant_area" and (area := re.search("north|west", low)):
            slots["restaurant_area"] = area[0]
        asked = "restaurant_area" if slots["cuisine"] and not slots["restaurant_area"] else None
        slots["requested_slot"] = asked
        self.events.append({"event": "action", "name": f"action_ask_{asked}"})
        return "Which part of town?" if asked else "Anything else?"

    def act(self, action: str, says: str | None) -> None:
        """Run an action; one whose server fails leaves nothing, and the bot goes on."""
        self.events.append({"event": "action", "name": action})
        if says is not None:
            self.events.append({"event": "bot", "text": says})
        self.events.append({"event": "action", "name": "action_listen"})


class RasaServer(ThreadingHTTPServer):
    """The bot and its API.

    Args:
        as_described: answer with slots as the description has them (a list of objects, texts
            and lists of texts alone), not as servers do (one object, any JSON value).
        status: what ``GET /status`` says.
        slots: of the domain.
        actions: of the domain, which an action server runs.
    """

    #: By default 5 connections wait to be accepted, and 16 come at once.
    request_queue_size = 128

    daemon_threads = True

    def __init__(
        self,
        *,
        as_described: bool = True,
        status: dict[str, Any] | None = None,
        slots: tuple[str, ...] = tuple(SLOTS),
        actions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.as_described = as_described
        self.status = {"model_file": "models/pizza.tar.gz"} if status is None else status
        self.slots = slots
        self.actions = actions
        #: The answer of the action server; ``None`` = it fails, or is away.
        self.acts: str | None = "Done."
        self.conversations: dict[str, Conversation] = defaultdict(Conversation)
        #: What becomes of the next messages: see `_Handler.post_message`; "" = all is well.
        self.faults: deque[str] = deque()
        self.channel = True
        #: The messages that only the NLU got.
        self.parsed: list[str] = []
        #: What did not follow the descriptions.
        self.complaints: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Address with the token."""
        return f"http://127.0.0.1:{self.server_address[1]}?token={TOKEN}"

    def said(self) -> list[list[str]]:
        """Return what each conversation was told."""
        return [
            [event["text"] for event in kept.events if event["event"] == "user"]
            for kept in self.conversations.values()
        ]

    def parse(self, text: str) -> dict[str, Any]:
        """Return a message as its NLU understands it, in the form of a server of version 3.6."""
        self.parsed.append(text)
        found = [("cuisine", one) for one in re.finditer("chinese|italian", text.lower())]
        name = "inform" if found else "greet"
        return {
            "text": text,
            "intent": {"name": name, "confidence": 0.98},
            "entities": [
                {"entity": entity, "start": one.start(), "end": one.end(), "value": one[0]}
                for entity, one in found
            ],
            "intent_ranking": [{"name": name, "confidence": 0.98}],
        }

    def tracker(self, name: str) -> dict[str, Any]:
        """Return a conversation as ``GET /conversations/{id}/tracker`` does."""
        kept = self.conversations[name]
        if not self.as_described:
            return {"sender_id": name, "slots": kept.slots, "events": kept.events}
        slots = [
            {slot: value if isinstance(value, list) else f"{value}"}
            for slot, value in kept.slots.items()
            if value is not None
        ]
        return {"conversation_id": name, "slots": slots, "events": kept.events, "paused": False}

    def domain(self) -> dict[str, Any]:
        """Return the domain as ``GET /domain`` does."""
        return {
            "intents": [{"inform": {"use_entities": True}}],
            "slots": {
                slot: {"type": SLOTS.get(slot, "text"), "auto_fill": True, "initial_value": None}
                for slot in self.slots
            },
            "responses": {},
            "actions": list(self.actions),
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One packet an answer: two would wait for each other.
    server: RasaServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if path == "/model/parse":
            self._answer(
                200, json.dumps(self.server.parse(json.loads(body)["text"])), "application/json"
            )
            return
        request = self._described(_CHANNEL, path, body)
        if path != "/webhooks/rest/webhook" or not self.server.channel:
            self._answer(404, "Requested URL not found.", "text/plain; charset=utf-8")
            return
        self.post_message(request, json.loads(body))

    def post_message(self, request: MockRequest, message: dict[str, str]) -> None:
        """Take in a message; ``faults`` says what goes wrong.

        "late": it is taken in, and answered with 500. "lost": answered, and not taken in, as
        Rasa does where the bot raises. "page": the answer is of something else.
        """
        with self.server.lock:
            fault = self.server.faults.popleft() if self.server.faults else ""
            says = ""
            if fault != "lost":
                kept = self.server.conversations[message["sender"]]
                says = kept.hear(message["message"])
                for action in self.server.actions:
                    kept.act(action, self.server.acts)
        if fault == "late":
            self._answer(500, "oops", "text/plain")
        elif fault == "page":
            self._answer(200, "<html>Welcome</html>", "text/html")
        else:
            answer = [{"recipient_id": message["sender"], "text": says}] if says else []
            self._answer_json(_CHANNEL, request, 200, answer)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        request = self._described(_RASA, path)
        bearer = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if not bearer and ("token", TOKEN) not in parse_qsl(urlsplit(self.path).query):
            error = {"version": "1.0.0", "status": "failure", "reason": "NotAuthenticated"}
            self._answer_json(_RASA, request, 401, error)
        elif path == "/status":
            self._answer_json(_RASA, request, 200, self.server.status)
        elif path == "/domain" and not _takes_domain(self.headers.get("Accept", "")):
            self._answer(406, _NOT_ACCEPTABLE, "application/json")
        elif path == "/domain":
            self._answer_json(_RASA, request, 200, self.server.domain())
        elif match := re.fullmatch(r"/conversations/([^/]+)/tracker", path):
            with self.server.lock:
                self._answer_json(_RASA, request, 200, self.server.tracker(match[1]))
        else:
            self._answer(404, "Requested URL not found.", "text/plain; charset=utf-8")

    def _described(self, description: OpenAPI, path: str, body: bytes = b"") -> MockRequest:
        query = urlsplit(self.path).query
        request = MockRequest(
            _DESCRIBED_HOST,
            self.command,
            path,
            args=dict(parse_qsl(query)),
            headers=dict(self.headers),
            data=body,
            content_type=self.headers.get("Content-Type", ""),
        )
        self._note(lambda: description.validate_request(request))
        return request

    def _answer_json(
        self, description: OpenAPI, request: MockRequest, status: int, value: object
    ) -> None:
        text = json.dumps(value)
        if self.server.as_described:
            response = MockResponse(text.encode(), status)
            self._note(lambda: description.validate_response(request, response))
        self._answer(status, text, "application/json")

    def _note(self, check: Any) -> None:
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test is to show it
            cause = error.__cause__ or error.__context__ or error
            self.server.complaints.append(f"{self.command} {self.path}: {error!r} {cause!r}")

    def _answer(self, status: int, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _takes_domain(accept: str) -> bool:
    """Whether a server of version 3.6 gives its domain to whoever accepts this."""
    return accept.endswith(("json", "yml", "yaml"))


@contextmanager
def serving(server: RasaServer) -> Iterator[RasaServer]:
    """Serve until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
