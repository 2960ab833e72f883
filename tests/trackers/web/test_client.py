"""What a service could do to whoever asks it: bombs, leaks; and environments that will not do."""

from __future__ import annotations

import gzip
import json
import logging
import signal
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import Asked, Says, Service, asking, send

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.web.secrets import Secrets
from pytest_dstfuzz.trackers.web.transport import (
    LONGEST,
    FailedAttempt,
    Reply,
    ServiceError,
    Transport,
    decompress_body,
)

Serve = Callable[[Callable[[Asked], Says]], Service]
MARKER = "tok-3f9a77c1"


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Some kilobytes that are gigabytes, once all of it is decompressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    megabyte = packer.compress(bytes(1024 * 1024)) + packer.flush(zlib.Z_FULL_FLUSH)
    # Without its end: nobody gets there.
    once = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + megabyte * 4096
    return gzip.compress(once, 9)


@pytest.mark.parametrize("status", [200, 500])
def test_a_bomb_is_not_unpacked(serve: Serve, bomb: bytes, status: int) -> None:
    assert len(bomb) < 20_000
    service = serve(lambda _: Says(bomb, status, {"Content-Encoding": "gzip, gzip"}))
    transport = Transport(service.url, ServiceSettings(retries=4))
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError, match=r"answered with a body of more than 16 MB$"):
            send(transport)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LONGEST
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),
        ("GZip , deflate", lambda body: zlib.compress(gzip.compress(body))),
        ("identity", bytes),
        ("", bytes),
    ],
)
def test_bodies_are_decompressed(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    body = json.dumps({"state": {"hotel-area": "north"}}).encode()
    assert decompress_body(pack(body), encoding) == body


@pytest.mark.parametrize(
    "body", [b"nothing", gzip.compress(b"x" * 9999)[:-9]], ids=["none", "half"]
)
def test_a_body_that_is_none_may_be_an_accident(body: bytes) -> None:
    with pytest.raises(FailedAttempt, match="cut off or not valid gzip") as caught:
        decompress_body(body, "gzip")
    assert caught.value.tries > 1


def test_what_httpx_logs_holds_no_credential(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", f"{MARKER}-of-the-environment")
    service = serve(lambda _: Says({}))
    transport = Transport(f"{service.url}/?token={MARKER}", ServiceSettings())
    with caplog.at_level(logging.DEBUG):
        send(transport)
        transport.map([lambda: asking(transport, "POST", "x", {})])
        logging.getLogger("httpx").info("of somebody else: %s", MARKER)
    *ours, other = [record.getMessage() for record in caplog.records]
    assert any("HTTP Request: POST" in message for message in ours)
    assert [message for message in ours if MARKER in message] == []
    assert other == f"of somebody else: {MARKER}"


def test_a_credential_that_a_service_repeats_is_masked_and_no_word_is(serve: Serve) -> None:
    def echo(asked: Asked) -> Says:
        return Says({"key": asked.headers["authorization"], "path": asked.path, "area": "north"})

    service = serve(echo)
    address = service.url.replace("//", f"//user:{MARKER}@") + f"/?token={MARKER}&domain=north"
    answer = send(Transport(address, ServiceSettings())).json()
    assert answer == {"key": "Basic ***", "path": "/?token=***&domain=north", "area": "north"}


@pytest.mark.parametrize(
    "written",
    ["MARK\\/3+x=", "MARK/3\\u002Bx\\u003d", "".join(f"\\u{ord(c):04x}" for c in "MARK/3+x=")],
    ids=["PHP", "dotnet", "all"],
)
def test_a_credential_that_a_service_repeats_in_escapes_is_masked(written: str) -> None:
    secrets = Secrets(["MARK/3+x=" * 2])
    body = f'{{"a": "caf\\u00e9 \\\\u0041 \\"{written * 2}\\" \\u0022\\u005c\\n"}}'
    said = json.loads(secrets.scrub(body.encode()))
    assert said == {"a": 'café \\u0041 "***" "\\\n'}


def test_a_body_without_a_credential_stays_as_it_came() -> None:
    body = rb'{"a": "\u0041\/\u002b"}'
    assert Secrets(["MARK/3+x=" * 2]).scrub(body) == body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"state": {"hotel-area": "café"}}'.encode("latin-1"), "it is not UTF-8"),
        (b'{"state": {"hotel-area": "n", "hotel-area": "s"}}', 'two values for the key "hotel-'),
    ],
)
def test_a_body_that_is_no_text_or_says_two_things_is_told(
    serve: Serve, body: bytes, message: str
) -> None:
    service = serve(lambda _: Says(body))
    transport = Transport(service.url, ServiceSettings(retries=1))
    with pytest.raises(ServiceError, match=message):
        transport.wait(transport.ask("POST", read=Reply.json))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process alone there")
@pytest.mark.parametrize("kind", ["", "rasa+", "openai+"])
def test_an_interrupt_under_full_trace_shows_no_credential(
    tmp_path: Path, serve: Serve, kind: str
) -> None:
    process: subprocess.Popen[str]
    first = iter([True])

    def interrupt(_: Asked) -> Says:
        # Once: a second one would interrupt how pytest ends after the first.
        if next(first, False):
            process.send_signal(signal.SIGINT)
        return Says(how="silence")

    service = serve(interrupt)
    address = service.url.replace("//", f"//user:{MARKER}@") + f"?token={MARKER}"
    command = [sys.executable, "-m", "pytest", "--full-trace", f"--dst-model={kind}{address}"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said, _ = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in said
    assert "transport.py" in said
    assert MARKER not in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "socks9://h:1"),
        ("HTTPS_PROXY", f"ftp://user:{MARKER}@h"),
        ("ALL_PROXY", "http://[::1"),
        ("HTTP_PROXY", "http://h:port"),
        ("HTTP_PROXY", "http://xn--/"),
        ("NO_PROXY", "[::1"),
        ("SSL_CERT_FILE", "/nowhere/at/all.pem"),
        ("SSL_CERT_FILE", __file__),
    ],
)
def test_an_environment_that_will_not_do_is_one_message(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises((UserError, ServiceError)) as caught:
        send(Transport("http://host.invalid", ServiceSettings(retries=0)))
    assert MARKER not in str(caught.value)
    if isinstance(caught.value, UserError):
        assert "proxies or certificates in the environment variables cannot be used" in str(
            caught.value
        )
        assert name in str(caught.value)


@pytest.mark.parametrize("address", ["http://xn--/", "http://xn--a/", "https://xn--999999/x"])
def test_an_international_name_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="is not the address of a service"):
        Transport(address, ServiceSettings())
