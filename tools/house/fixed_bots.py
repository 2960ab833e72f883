"""The bots of the fixed runs: a front desk that replies, and a service that fills slots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

#: Dialogues of the front desk, each with what its guest asks.
QUESTIONS: Final[Mapping[str, Sequence[str]]] = {
    "anna": ("Hello, when is the museum open?", "And how much is a ticket for two?"),
    "ben": ("Is there a bus to your museum?", "Thank you. Are dogs allowed inside?"),
    "carla": ("How much do I pay for a student ticket?",),
    "dan": ("Where could we leave our coats?", "Do you have a guided tour in the morning?"),
    "eve": ("Are you open on public holidays?",),
    "finn": ("Which bus stops in front of the museum?", "Is the cafe expensive?"),
    "gita": ("Could we book a guided tour for twenty people?",),
    "hal": ("I lost my umbrella, did anybody find it?", "It is a green umbrella"),
}
_REPLIES = {
    "open": "The museum is open from 10 to 18.",
    "ticket": "A ticket is 9 euros, 5 for students.",
    "bus": "Bus 14 stops in front of the house.",
    "dogs": "Sorry, no dogs inside.",
    "coats": "There are lockers beside the entrance.",
    "tour": "Guided tours begin at 11 and at 15.",
    "umbrella": "Please ask for it at the cash desk.",
}
_RULES = {
    "hotel-area": r"hotel.* in the (north|south|east|west|centre)",
    "restaurant-area": r"(?:restaurant|eat).* in the (north|south|east|west|centre)",
    "restaurant-food": r"(\w+) food",
    "train-day": r"(?:leav|travel|train).* on (\w+day)",
    "train-departure": r"from (\w+)",
    "train-destination": r"to (cambridge|london|ely|norwich|stevenage)",
    "hotel-pricerange": r"(cheap|moderate|expensive)(?:ly)?(?: priced)? (?:hotel|place)",
}


def reply(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the reply of the front desk to the last message."""
    asked = messages[-1]["content"].lower()
    known = (answer for word, answer in _REPLIES.items() if word in asked)
    return next(known, "Sorry, I do not know that.")


def slots(dialogue: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the slots that the user of a dialogue has filled."""
    state: dict[str, str] = {}
    for exchange in dialogue:
        for slot, rule in _RULES.items():
            if found := re.search(rule, exchange["user"].lower()):
                state[slot] = found[1]
    return state


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"state": slots(asked["dialogue"])}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing about requests."""


@contextmanager
def served() -> Iterator[str]:
    """Serve the bots on loopback within this context, and yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
