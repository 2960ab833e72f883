"""A kind of address of one's own: ``--dst-model=lines://HOST:PORT``, a line of JSON each way."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

from pytest_dstfuzz import Context, TrackerError


def create(address: Any, *, timeout: float = 10.0):
    service = urlsplit(address.full)  # with the credentials that printing it leaves out

    def track(context: Context) -> dict[str, str]:
        said = json.dumps([service.password, *context.user_utterances])
        try:
            with socket.create_connection((service.hostname, service.port), timeout) as connection:
                connection.sendall(f"{said}\n".encode())
                return json.loads(connection.makefile().readline())
        except (OSError, ValueError) as error:
            raise TrackerError(f"no answer: {error}") from None

    return track
