"""``dstfuzz serve``: lets a tracker be tested from another process or machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError, needs_extra

SUMMARY = "answer for a tracker over HTTP, so that it can be tested from elsewhere"
KEPT = "every request that had come was answered"

#: What is said where everybody may ask.
_OPEN = (
    "dstfuzz: warning: whoever reaches {host} can ask the tracker: --token-env NAME answers only "
    "those who send the token in that environment variable"
)
_SHARED = ("model", "checkpoint", "device", "batch_size")
_EXAMPLES = """\
  dstfuzz serve --model trade --device cuda --host 0.0.0.0 --token-env SERVE_TOKEN
  dstfuzz serve --model mybot.tracker:track --port 9000
  pytest --dst-model=http://127.0.0.1:9000               tests what answers there"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the process is told to end."""
    options = _parser().parse_all(arguments)
    name: str = options.model
    if "://" in name:
        raise UserError(f"{name} is a service already: test it with pytest --dst-model={name}")
    token = _token(options.token_env)
    with needs_extra("dstfuzz serve", "serve", "starlette", "uvicorn"):
        from pytest_dstfuzz.trackers.web.contract import About  # noqa: PLC0415 - needs the extra
        from pytest_dstfuzz.trackers.web.server import (  # noqa: PLC0415 - needs the extra
            address_of,
            is_loopback,
            listen,
            make_app,
            make_server,
        )
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.trackers.registry import resolve_tracker  # noqa: PLC0415
    from pytest_dstfuzz.trackers.tracker import fingerprint_of, is_repeatable  # noqa: PLC0415

    given = {key: value for key in _SHARED[1:] if (value := getattr(options, key)) is not None}
    with listen(options.host, options.port) as listening:
        tracker = resolve_tracker(name, **given)
        about = About(name, fingerprint_of(tracker), repeatable=is_repeatable(tracker))
        batch_size = given.get("batch_size", Settings().tracker.batch_size)
        app = make_app(tracker, about, batch_size=batch_size, token=token, host=options.host)
        if not (token or is_loopback(options.host)):
            print(_OPEN.format(host=options.host), file=sys.stderr, flush=True)
        print(f"{name} answers at {address_of(listening)} (Ctrl-C ends it)", flush=True)
        make_server(app).run(sockets=[listening])
    return 0


def _parser() -> Parser:
    parser = Parser("dstfuzz serve", f"{SUMMARY.capitalize()}.", _EXAMPLES)
    parser.shared(*_SHARED, required=("model",))
    host, port = "127.0.0.1", 8765
    parser.value("--host", str, "HOST", default=host, help=f"to listen on (default: {host})")
    parser.value(
        "--port", _port, "PORT", default=port, help=f"0 takes a free one (default: {port})"
    )
    parser.value(
        "--token-env",
        str,
        "NAME",
        help="answer only those who send the bearer token in this environment variable; "
        "pytest sends that in DSTFUZZ_TOKEN",
    )
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise ValueError("must be a whole number from 0 to 65535")
    return int(text)


def _token(variable: str | None) -> str:
    if variable is None:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise UserError(f"--token-env: the environment variable {variable!r} is not set")
    return token
