"""Nobody waits for ever: whole runs of pytest, and the transport, against services that wait."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from loopback import Asked, Says, Service, send
from processes import run_python
from stuck import ANSWERED, STUCK, running

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.errors import GivenUpError
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.validation import Deadline
from pytest_dstfuzz.trackers.web.transport import ServiceError, Transport

Serve = Callable[[Callable[[Asked], Says]], Service]
#: Seconds that a machine which does other things may take for a process that waits for nothing.
#: Before there were deadlines, the shortest of these runs took 60 s, most some 150.
SLACK = 30.0
#: Where even the first batch did not come back in time, the message says where the budget ended.
UNTESTED = "the tracker was not tested: (it had not answered when )?the budget of 3 seconds ended"
RUN_OUT = "the budget of 3 seconds ended( during a call of the tracker)? before this turn"


def run_pytest(folder: Path, *options: str) -> tuple[float, int, str]:
    """Run pytest in a process of its own; return seconds, exit status, and what it said."""
    started = time.monotonic()
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", *options, cwd=folder)
    return time.monotonic() - started, done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("hangs from the first request", 6, UNTESTED),
        ("hangs midway", 0, RUN_OUT),
        ("headers a byte at a time", 0, RUN_OUT),
        ("100 Continue without end", 0, RUN_OUT),
        ("429, Retry-After: 50", 6, UNTESTED),
        ("429, Retry-After: 99999", 4, "answered 429 Too Many Requests"),
    ],
)
def test_a_run_ends_in_time(tmp_path: Path, name: str, status: int, message: str) -> None:
    with running(STUCK[name]) as service:
        options = ("--dst-turns=30", "--dst-max-seconds=3", "-rs")
        seconds, returned, said = run_pytest(tmp_path, f"--dst-model={service.url}", *options)
    assert seconds < 3 + SLACK
    assert re.search(message, said)
    # What a busy machine found in three seconds may be a violation.
    assert returned in (status, 1) if status == 0 else returned == status
    assert "Traceback" not in said


def test_a_service_that_dies_is_not_asked_for_all_the_rest(tmp_path: Path) -> None:
    with running(STUCK["dies midway"]) as service:
        options = ("--dst-turns=120", "--dst-tracker=retries=1", "--no-dst-shrink", "-rs")
        seconds, returned, said = run_pytest(tmp_path, f"--dst-model={service.url}", *options)
    assert seconds < SLACK
    assert returned == 6
    why = f"the service at {service.url} is considered dead (no answer to 20 requests in a row"
    assert f"failed: {why}; the last time, it cannot be reached" in said
    assert f"{why}; the last time" in said.split("short test summary")[1]


@pytest.mark.parametrize("model", ["rasa+{}", "openai+{}", "{}"])
def test_every_adapter_is_cut_while_it_asks_what_is_there(tmp_path: Path, model: str) -> None:
    with running(STUCK["hangs from the first request"]) as service:
        options = (f"--dst-model={model.format(service.url)}", "-odst_preflight_seconds=1")
        seconds, returned, said = run_pytest(tmp_path, *options, "--dst-tracker=timeout=0.5")
    assert seconds < 1 + SLACK
    assert returned == 6
    assert "the limit of 1 s for testing the tracker (dst_preflight_seconds; dstfuzz: " in said
    assert "(infrastructure)" in said


def test_an_evaluation_ends_where_nobody_answers_any_more(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no answer counts as wrong; an accuracy of a dead service would mean nothing."""

    def answer(asked: Asked) -> Says:
        early = len(service.asked) < ANSWERED
        return Says({"state": {}}) if early or asked.method == "GET" else Says({}, 503)

    service = serve(answer)
    options = ["--tracker=retries=0", "--tracker=dead-after=5", f"--model={service.url}"]
    assert main(["evaluate", *options]) == 2
    assert "dead (no answer to 5 requests in a row; the last time, it answered 503" in (
        capsys.readouterr().err
    )


HANGS = ("silence", "drip", "slow head", "continue")


@pytest.mark.parametrize("how", HANGS)
def test_an_attempt_has_a_limit_as_a_whole(serve: Serve, how: str) -> None:
    service = serve(lambda _: Says({"state": "x" * 5000}, how=how))
    transport = Transport(service.url, ServiceSettings(timeout=0.6, retries=1))
    started = time.monotonic()
    with pytest.raises(ServiceError, match=r"did not answer within 0\.6 s after 2 tries"):
        send(transport)
    assert time.monotonic() - started < 1.2 + 5


@pytest.mark.parametrize("how", HANGS)
def test_the_deadline_is_that_of_all_jobs(serve: Serve, how: str) -> None:
    stuck = Says({"ok": "x" * 5000}, how=how)
    service = serve(lambda asked: stuck if asked.body == 1 else Says({"ok": 1}))
    deadline = Deadline(1.0, "the budget of 1 seconds")
    settings = ServiceSettings(concurrency=2, deadline=deadline)
    transport = Transport(service.url, settings)
    started = time.monotonic()
    jobs = [partial(transport.ask, "POST", body=n, read=lambda reply: reply.json()) for n in (0, 1)]
    answers = transport.map([*jobs, *jobs])
    assert time.monotonic() - started < 1 + 5
    assert answers[0] == answers[2] == {"ok": 1}
    for failed in (answers[1], answers[3]):
        assert isinstance(failed, GivenUpError)
        assert str(failed).startswith("the budget of 1 seconds ended")


def test_a_wait_is_no_longer_than_what_is_left(serve: Serve) -> None:
    service = serve(lambda _: Says({}, 503, {"Retry-After": "60"}))
    settings = ServiceSettings(deadline=Deadline(0.5, "the budget of 0.5 seconds"))
    started = time.monotonic()
    with pytest.raises(GivenUpError, match=r"0\.5 seconds ended \(the last time, the service answ"):
        send(Transport(service.url, settings))
    assert time.monotonic() - started < 0.5 + 5


def test_the_breaker_counts_failures_in_a_row(serve: Serve) -> None:
    """Any answer begins the count anew; one of 500 or 422 is an answer."""
    script = [503] * 2 + [200] + [503] * 2 + [500, 503, 503, 422] + [503] * 9
    service = serve(lambda _: Says({}, script[len(service.asked) - 1]))
    transport = Transport(service.url, ServiceSettings(retries=0, dead_after=3))
    outcomes: list[object] = []
    for _ in script:
        try:
            outcomes.append(send(transport).status)
        except ServiceError as error:
            outcomes.append(error.status)
        except GivenUpError as error:
            outcomes.append(str(error).partition(" is considered dead ")[2])
    why = "(no answer to 3 requests in a row; the last time, it answered 503 Service Unavailable"
    assert outcomes[:12] == script[:12]
    assert outcomes[12:] == [f"{why} ({{}}))"] * 6
    assert len(service.asked) == 12


def test_a_breaker_that_is_switched_off() -> None:
    transport = Transport("http://127.0.0.1:9", ServiceSettings(retries=0, dead_after=0))
    for _ in range(30):
        with pytest.raises(ServiceError, match="cannot be reached"):
            send(transport)


def test_a_closer_end_is_one_of_a_part_alone() -> None:
    now = [100.0]
    deadline = Deadline(20, "the run", spent=5, clock=lambda: now[0])
    assert deadline.left == 15
    now[0] = 103.0
    with deadline.within(4, "the preflight"):
        assert (deadline.left, deadline.ended) == (4, "")
        now[0] = 107.0
        assert (deadline.left, deadline.ended) == (0, "the preflight ended")
    assert (deadline.left, deadline.ended) == (8, "")
    with deadline.within(30, "the preflight"):
        now[0] = 200.0
        assert deadline.ended == "the run ended"
    assert Deadline().ended == ""
    assert Deadline().left == float("inf")
