"""The transport against real sockets: what is saved, what is given up, and how it says so."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import FAULTS, Asked, Says, Service, asking, send

from pytest_dstfuzz.config import Header
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import BatchInterrupt
from pytest_dstfuzz.trackers.web.transport import (
    MalformedReply,
    Reply,
    ServiceError,
    Transport,
    backoff,
    retry_after,
)

Serve = Callable[[Callable[[Asked], Says]], Service]
QUICK = ServiceSettings(timeout=5, retries=2)
#: For what never ends; long enough for a busy machine to answer what does.
IMPATIENT = ServiceSettings(timeout=1.0, retries=2)


def settings_for(fault: str) -> ServiceSettings:
    return IMPATIENT if fault in ("slow", "silent") else QUICK


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the transport would wait, in place of waiting."""
    found: list[float] = []

    async def pause(_: Transport, seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(Transport, "_pause", pause)
    return found


def believed(transport: Transport, body: object = None) -> Any:
    """Ask for one state."""
    return transport.wait(transport.ask("POST", body=body, read=state))


def state(reply: Reply) -> Any:
    """Read a reply as an adapter does."""
    body = reply.json()
    if "state" not in body:
        raise MalformedReply("answered without a state")
    return body["state"]


def test_a_request_arrives_as_it_was_sent(serve: Serve) -> None:
    service = serve(lambda _: Says({"ok": True}))
    transport = Transport(f"{service.url}/api/?key=k", ServiceSettings())
    reply = send(transport, "POST", "/some%20one/ask?deep=yes", {"ä": "\ud800", "n": None})
    assert (reply.status, reply.json()) == (200, {"ok": True})
    assert reply.headers["content-type"] == "application/json"
    send(transport)
    first, second = service.asked
    assert (first.method, first.path) == ("POST", "/api/some%20one/ask?key=k&deep=yes")
    assert first.body == {"ä": "\ud800", "n": None}
    assert first.headers["content-type"] == "application/json"
    assert (second.method, second.path, second.body) == ("GET", "/api/?key=k", None)


def test_connections_are_kept(serve: Serve) -> None:
    service = serve(lambda _: Says({}))
    transport = Transport(service.url, ServiceSettings(concurrency=3))
    transport.map([partial(asking, transport)] * 30)
    assert service.connections <= 3
    assert len(service.asked) == 30


def test_requests_are_in_flight_at_once_but_not_too_many(serve: Serve) -> None:
    together = threading.Barrier(4)

    def answer(asked: Asked) -> Says:
        # Broken after its time-out, if fewer than four ever come together.
        together.wait(5)
        return Says({"state": asked.body})

    service = serve(answer)
    transport = Transport(service.url, ServiceSettings(concurrency=4))
    jobs = [partial(transport.ask, "POST", body=number, read=state) for number in range(1, 25)]
    assert transport.map(jobs) == list(range(1, 25))
    assert service.most_in_flight == 4


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_for_a_while_is_saved(serve: Serve, fault: str) -> None:
    service = serve(lambda asked: FAULTS[fault] if asked.number == 0 else Says({"state": {}}))
    transport = Transport(service.url, settings_for(fault))
    assert believed(transport, {}) == {}
    assert len(service.asked) == 2


REASONS = {
    "500": 'answered 500 Internal Server Error ({"error": "out of order"})',
    "502": "answered 502 Bad Gateway (<html>Bad gateway</html>)",
    "429": 'answered 429 Too Many Requests ({"error": "slow down"})',
    "no JSON": "answered with a body that is not valid JSON (Expecting property name enclosed in "
    "double quotes: line 1 column 2 (char 1))",
    "hangs up": "closed the connection: Server disconnected without sending a response.",
    "slow": "did not answer within 0.2 s",
    "silent": "did not answer within 0.2 s",
}


@pytest.mark.parametrize("fault", REASONS)
def test_what_fails_at_every_attempt_is_told_in_a_line(
    serve: Serve, fault: str, waits: list[float]
) -> None:
    service = serve(lambda _: FAULTS[fault])
    hasty = fault in ("slow", "silent")
    transport = Transport(service.url, replace(QUICK, timeout=0.2) if hasty else QUICK)
    with pytest.raises(ServiceError) as caught:
        believed(transport, {})
    assert str(caught.value) == f"the service at {service.url} {REASONS[fault]} after 3 tries"
    assert caught.value.status == (FAULTS[fault].status if "answered" in REASONS[fault] else None)
    assert len(service.asked) == 3
    assert len(waits) == 2


def test_what_a_service_does_not_implement_is_asked_once(serve: Serve) -> None:
    service = serve(lambda _: Says({"error": "no such method"}, 501))
    with pytest.raises(ServiceError, match=r"answered 501 Not Implemented [^)]*\)$"):
        send(Transport(service.url, settings_for("500")), "GET", "models")
    assert len(service.asked) == 1


PAGE = Says(b"\n<!DOCTYPE html><title>Sign in</title>", 200, {"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("says", "reason", "tries"),
    [
        (Says({"slots": []}), "answered without a state after 2 tries", 2),
        (PAGE, "answered with a web page (<!DOCTYPE html><title>Sign in</title>)", 2),
        (Says({}, 429, {"Retry-After": "99999"}), "asked for a pause of 99,999 s", 1),
        (
            Says(b"x", headers={"Content-Encoding": "br"}),
            "body in the encoding 'br' instead of gzip",
            1,
        ),
    ],
)
def test_what_a_service_means_to_say_is_not_asked_for_five_times(
    serve: Serve, says: Says, reason: str, tries: int, waits: list[float]
) -> None:
    """Another shape and a page may be an accident; a Retry-After may be for another day."""
    service = serve(lambda _: says)
    transport = Transport(service.url, ServiceSettings(timeout=5, retries=4))
    with pytest.raises(ServiceError) as caught:
        believed(transport, {})
    assert reason in str(caught.value)
    assert (len(service.asked), len(waits)) == (tries, tries - 1)


def test_nobody_at_the_address(waits: list[float]) -> None:
    transport = Transport("http://127.0.0.1:9", QUICK)
    with pytest.raises(ServiceError, match=r"cannot be reached: .*refused.* after 3 tries"):
        send(transport)
    assert len(waits) == 2


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(serve: Serve, status: int) -> None:
    says = Says({"detail": "x" * 500}, status, {"Location": "/elsewhere"})
    service = serve(lambda _: says)
    with pytest.raises(ServiceError, match=f"answered {status}") as caught:
        send(Transport(service.url, QUICK))
    assert len(service.asked) == 1
    assert len(str(caught.value)) < 250
    assert "x" * 500 in caught.value.text


@pytest.mark.parametrize("body", [b"NaN", b'{"state": Infinity}', b"\xff", b"[" * 100_000, b""])
def test_json_of_python_alone_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReply, match="not valid JSON"):
        Reply(200, body, {}).json()


def test_other_jobs_go_on_where_one_fails(serve: Serve) -> None:
    service = serve(lambda asked: Says({"state": {}}, 200 if asked.body != 3 else 400))
    transport = Transport(service.url, QUICK)
    results = transport.map(
        [partial(transport.ask, "POST", body=n, read=state) for n in range(1, 6)]
    )
    assert [isinstance(result, TrackerError) for result in results] == [n == 3 for n in range(1, 6)]


def test_a_mistake_in_an_adapter_is_no_failure_of_the_service(serve: Serve) -> None:
    service = serve(lambda _: Says({}))
    transport = Transport(service.url, QUICK)
    with pytest.raises(KeyError, match="state"):
        transport.map([partial(transport.ask, "GET", read=lambda reply: reply.json()["state"])])


@pytest.mark.parametrize("spelled", ["seconds", "date"])
def test_the_service_says_when(serve: Serve, waits: list[float], spelled: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    says = Says({}, 429, {"Retry-After": "30" if spelled == "seconds" else date})
    service = serve(lambda asked: says if asked.number == 0 else Says({}))
    send(Transport(service.url, QUICK))
    (wait,) = waits
    # The date's 40 seconds have begun; jitter alone would be far below.
    assert 20.0 < wait <= 40.0


NOW = datetime(2024, 5, 17, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("3600", 3600.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("Fri, 17 May 99999999999999999999 12:00:00 GMT", 0.0),
        ("Fri, 17 May 2024 12:00:09 GMT", 9.0),
        ("Fri, 17 May 2024 12:00:09 -0000", 9.0),
        ("Fri, 17 May 2024 14:00:09 +0200", 9.0),
        ("Thu, 16 May 2024 12:00:00 GMT", 0.0),
        ("Fri, 17 May 2024 13:00:00 GMT", 3600.0),
    ],
)
def test_retry_after(value: str, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.integers(0, 10_000), st.integers())
def test_backoff_grows_to_a_limit_and_has_full_jitter(failures: int, seed: int) -> None:
    limit = min(8.0, 0.25 * 2.0 ** min(failures, 16))
    assert 0.0 <= backoff(failures, random.Random(seed)) <= limit
    draws = [backoff(failures, random.Random(number)) for number in range(40)]
    assert min(draws) < 0.25 * limit < 0.75 * limit < max(draws)


def test_the_rate_limit_is_one_for_all_jobs(
    serve: Serve, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(lambda _: Says({}))
    settings = ServiceSettings(rate_limit=4.0, concurrency=5)
    transport = Transport(service.url, settings)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    transport.map([partial(asking, transport)] * 8)
    assert sorted(waits) == [number / 4.0 for number in range(8)]


def test_an_interrupt_keeps_the_answers_that_came(serve: Serve) -> None:
    """One job hangs; the one that is taken up after another has its answer interrupts."""
    service = serve(
        lambda asked: Says({"state": {}}, how="silence" if asked.body == 2 else "whole")
    )
    transport = Transport(service.url, ServiceSettings(concurrency=2, timeout=60))

    async def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    ask = partial(transport.ask, "POST", read=state)
    jobs: list[Callable[[], Awaitable[Any]]] = [
        partial(ask, body=1),
        partial(ask, body=2),
        interrupt,
    ]
    with pytest.raises(BatchInterrupt) as caught:
        transport.map([*jobs, *[partial(ask, body=3)] * 50])
    assert caught.value.answers[0] == {}
    assert 1 not in caught.value.answers
    # It can be asked again, by a session that takes its fixtures down.
    assert transport.map([partial(ask, body=1)]) == [{}]


@pytest.mark.parametrize(
    "address",
    [
        "ftp://h",
        "http://",
        "http://h:port",
        "http://h:0",
        "http://h:70000",
        "http://a..b",
        f"http://{'a' * 64}.example",
        "rasa",
        "http://[::1",
        "http:///x",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="is not the address of a service: write http"):
        Transport(address, ServiceSettings())


def test_the_service_cannot_tell_requests_by_a_cookie(serve: Serve) -> None:
    """Its session would go on from context to context."""
    service = serve(lambda _: Says({}, headers={"Set-Cookie": "session=4711"}))
    transport = Transport(service.url, ServiceSettings())
    for _ in range(2):
        send(transport)
    assert ["cookie" in asked.headers for asked in service.asked] == [False, False]


def test_user_and_password_of_the_address_are_sent(serve: Serve) -> None:
    service = serve(lambda _: Says({}))
    address = service.url.replace("//", "//me:p%40ss@")
    transport = Transport(address, ServiceSettings())
    send(transport)
    assert service.asked[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    assert transport.address == service.url.replace("//", "//***@")


def test_a_token_and_headers_of_the_environment(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(lambda _: Says({}))
    monkeypatch.setenv("DSTFUZZ_TOKEN", "tok")
    monkeypatch.setenv("TEAM", "bots")
    headers = (Header("X-Team", "the $TEAM"), Header("X-Price", "$$5"))
    send(Transport(service.url, ServiceSettings(headers=headers)))
    own = Header("authorization", "Basic abc")
    send(Transport(service.url, ServiceSettings(headers=(own,))))
    send(Transport(service.url.replace("//", "//me:pw@"), ServiceSettings()))
    sent = [asked.headers for asked in service.asked]
    assert [item["authorization"] for item in sent] == ["Bearer tok", "Basic abc", "Basic bWU6cHc="]
    assert (sent[0]["x-team"], sent[0]["x-price"]) == ("the bots", "$5")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("$NOT_THERE", "needs the environment variable 'NOT_THERE', which is not set"),
        ("a $ sign", "write \\$NAME, or \\$\\$ for a dollar sign"),
        ("$LINES", "the value of the header 'X-Team' cannot be sent"),
        ("gr\u00fcn", "the value of the header 'X-Team' cannot be sent"),
    ],
)
def test_a_header_that_cannot_be_sent(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "one\ntwo")
    with pytest.raises(UserError, match=message) as caught:
        Transport("http://h", ServiceSettings(headers=(Header("X-Team", value),)))
    assert "two" not in str(caught.value)


def test_it_serves_a_running_loop_and_other_threads(serve: Serve) -> None:
    service = serve(lambda asked: Says({"state": asked.body}))
    transport = Transport(service.url, QUICK)
    jobs = [partial(transport.ask, "POST", body=number, read=state) for number in range(1, 9)]

    async def within() -> object:
        return transport.map(jobs)

    def ask(_: object) -> object:
        return transport.map(jobs)

    with ThreadPoolExecutor(3) as pool:
        found = [asyncio.run(within()), ask(None), *pool.map(ask, range(3))]
    assert found == [[*range(1, 9)]] * 5
