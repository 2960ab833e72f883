"""``dstfuzz serve``: the same contract for any tracker, in a thread and as a command."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pytest_dstfuzz import register_tracker
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.own_code import import_own
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.registry import TRACKERS, tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, fingerprint_of, is_repeatable
from pytest_dstfuzz.trackers.web import server
from pytest_dstfuzz.trackers.web.contract import About, group_json
from pytest_dstfuzz.trackers.web.server import Batcher, address_of, listen, make_app, make_server

DATA = DialogueSet("d", "test", ())


def contexts(count: int) -> list[Context]:
    return [Context((Exchange("", f"user {number}"),)) for number in range(count)]


class Echo:
    """Believes what was said; remembers its batches, and fails on what it is told to."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.ready = threading.Event()
        self.ready.set()

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | Mapping[str, str]]:
        self.ready.wait(5)
        self.batches.append(len(contexts))
        if any("raise" in context.user for context in contexts):
            raise ZeroDivisionError("nothing works")
        return [self._one(context.user) for context in contexts]

    def _one(self, user: str) -> Any:
        if user == "bad":
            return "north"
        if user == "mapping":
            return {"hotel-area": " None "}
        return Prediction(BeliefState({"hotel-area": user}), {"hotel-area": 1 / 3})


@contextmanager
def served(tracker: Tracker, **given: Any) -> Iterator[str]:
    """Serve in a thread until the block ends."""
    options = {"about": About("echo", "1"), "batch_size": 64, **given}
    with listen("127.0.0.1", 0) as listening:
        running = make_server(make_app(tracker, **options))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address_of(listening)
        finally:
            running.should_exit = True
            thread.join()


@pytest.fixture
def asked() -> Iterator[tuple[Echo, Callable[..., httpx.Response]]]:
    """A tracker, and a way to ask it."""
    tracker = Echo()
    with served(tracker) as address, httpx.Client(trust_env=False) as client:
        yield tracker, partial(client.request, url=address)


def say(user: str) -> dict[str, Any]:
    return {"dialogue": [{"system": "", "user": user}]}


def test_it_answers_by_the_contract(asked: tuple[Echo, Callable[..., httpx.Response]]) -> None:
    _, ask = asked
    assert ask("GET").json() == {"name": "echo", "version": "1", "dialogues": 64}
    answer = ask("POST", json=say("north"))
    assert answer.json() == {"state": {"hotel-area": "north"}, "impurities": {"hotel-area": 1 / 3}}
    # Whoever asks normalises, by the data that only they know.
    assert ask("POST", json=say("mapping")).json() == {"state": {"hotel-area": " None "}}


def test_the_version_is_that_of_now() -> None:
    class Reloading(Echo):
        fingerprint = "weights 1"

    tracker = Reloading()
    with served(tracker) as address, httpx.Client(trust_env=False) as client:
        assert client.get(address).json()["version"] == "weights 1"
        tracker.fingerprint = "weights 2"
        assert client.get(address).json()["version"] == "weights 2"


#: How the command is called another time -> the options, and a file that changes before.
OTHERWISE = {
    "key": (["mode=bad"], ""),
    "file of a key": (["mode=mode.txt"], "mode.txt"),
    "factory": (["mode=good", "--batch-size=7"], ""),
    "code": (["mode=good"], "served_help.py"),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_the_version_changes_with_all_that_made_the_tracker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(TRACKERS, "_registered", {})
    (tmp_path / "served_help.py").write_text(
        "class Bot:\n    fingerprint = 'v1'\n    def __call__(self, context): return {}\n"
    )
    (tmp_path / "mode.txt").write_text("good")
    told: list[str] = []

    def start(app: Starlette) -> Any:
        told.append(TestClient(app, "http://127.0.0.1").get("/").json()["version"])
        return SimpleNamespace(run=lambda **_: None)

    monkeypatch.setattr(server, "make_server", start)

    def serve(*options: str) -> None:
        sys.modules.pop("served_help", None)
        bot = import_own("served_help").Bot

        def create(mode: str, batch_size: int = 64) -> object:
            assert mode
            assert batch_size
            return bot()

        register_tracker("told", create)
        assert main(["serve", "--model=told", "--port=0", "--tracker", *options]) == 0

    options, changed = OTHERWISE[how]
    first = options if changed else ["mode=good"]
    serve(*first)
    serve(*first)
    if changed:
        with (tmp_path / changed).open("a") as file:
            file.write("# other")
    serve(*options)
    assert told[0] == told[1] != told[2]
    assert told[0].startswith("v1")


def test_one_request_for_several_is_one_batch(
    asked: tuple[Echo, Callable[..., httpx.Response]],
) -> None:
    tracker, ask = asked
    answer = ask("POST", json=group_json(contexts(5)))
    users = [f"user {number}" for number in range(5)]
    assert [part["state"] for part in answer.json()["answers"]] == [
        {"hotel-area": user} for user in users
    ]
    assert tracker.batches == [5]


def test_a_dialogue_that_fails_leaves_the_others_of_its_request_alone(
    asked: tuple[Echo, Callable[..., httpx.Response]],
) -> None:
    users = ("a", "raise", "bad", "mapping")
    answer = asked[1]("POST", json={"dialogues": [say(user)["dialogue"] for user in users]})
    assert answer.status_code == 200
    assert answer.json()["answers"] == [
        {"state": {"hotel-area": "a"}, "impurities": {"hotel-area": 1 / 3}},
        {"error": "the tracker failed: ZeroDivisionError: nothing works"},
        {
            "error": "the tracker failed: the tracker returned a str instead of a Prediction or a "
            "mapping slot -> value; if the system replies to users, add --dst-outcome=reply"
        },
        {"state": {"hotel-area": " None "}},
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            json.dumps(group_json(contexts(65))).encode(),
            '"dialogues" has 65 entries; this service accepts',
        ),
        (b'{"dialogues": [[]]}', '"dialogues"[0] is list []; it must be a list of at least one '),
        (b"{", "the request is not valid JSON: "),
        (b"[" * 100_000, "the request is not valid JSON: "),
        (b'{"dialogue": []}', '"dialogue" is list []; it must be a list of at least one '),
        (b" " * 5_000_000, "the request is longer than 4,194,304 bytes"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(
    asked: tuple[Echo, Callable[..., httpx.Response]], content: bytes, message: str
) -> None:
    answer = asked[1]("POST", content=content)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)


def test_other_ways_to_ask(asked: tuple[Echo, Callable[..., httpx.Response]]) -> None:
    assert asked[1]("DELETE").status_code == 405


def test_a_tracker_that_fails_does_so_for_one_dialogue_alone() -> None:
    tracker = Echo()
    with served(tracker) as address:
        web = tracker_for(Settings.of(model=address), DATA)
        users = ["a", "raise", "b", "bad"]
        tracker.ready.clear()
        threading.Timer(0.2, tracker.ready.set).start()
        answers = web.predict([Context((Exchange("", user),)) for user in users])
    assert [isinstance(answer, TrackerError) for answer in answers] == [False, True, False, True]
    reason = f"the service at {address} has no answer: the tracker failed: "
    assert str(answers[1]) == f"{reason}ZeroDivisionError: nothing works"
    assert str(answers[3]).startswith(f"{reason}the tracker returned a str")


def test_requests_that_wait_are_one_batch() -> None:
    tracker = Echo()
    tracker.ready.clear()
    batcher = Batcher(tracker, 10)
    answers = [batcher.submit([context]) for context in contexts(24)]
    tracker.ready.set()
    assert [answer.result()[0] for answer in answers] == Echo().predict(contexts(24))
    batcher.close()
    assert sum(tracker.batches) == 24
    # The first one began before the others had come; none is longer than it may be.
    assert len(tracker.batches) <= 4
    assert max(tracker.batches) == 10


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 6))
def test_requests_of_any_size_are_answered_in_their_order(sizes: list[int], most: int) -> None:
    tracker = Echo()
    batcher = Batcher(tracker, most)
    rest = iter(contexts(sum(sizes)))
    requests = [list(islice(rest, size)) for size in sizes]
    answers = [batcher.submit(request) for request in requests]
    batcher.close()
    assert [answer.result() for answer in answers] == [Echo().predict(part) for part in requests]
    assert max(tracker.batches) <= most


def test_small_packets_do_not_wait_for_each_other() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_token_keeps_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Echo(), token="m\u00e4rker") as address:
        for token in (None, "marker"):
            if token is not None:
                monkeypatch.setenv("DSTFUZZ_TOKEN", token)
            with pytest.raises(UserError, match="answered 401 Unauthorized") as caught:
                tracker_for(Settings.of(model=address), DATA)
            assert "arker" not in str(caught.value)
    monkeypatch.setenv("DSTFUZZ_TOKEN", "marker")
    with served(Echo(), token="marker") as address:
        assert len(tracker_for(Settings.of(model=address), DATA).predict(contexts(3))) == 3


def raw(address: str, content: bytes) -> bytes:
    """Send bytes to a server and return what it answers."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(content)
        return connection.recv(65536)


GET = "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n"


@pytest.mark.parametrize(
    ("host", "more", "status"),
    [
        ("127.0.0.1:80", "", 200),
        ("localhost", "", 200),
        ("[::1]:8765", "", 200),
        # A name that somebody else made lead here, for a page of theirs.
        ("rebound.example", "", 403),
        ("127.0.0.1.example", "", 403),
        ("127.0.0.1", "Origin: http://elsewhere.example\r\n", 403),
        ("127.0.0.1", "Origin: null\r\n", 403),
    ],
)
def test_a_page_in_a_browser_is_not_answered(host: str, more: str, status: int) -> None:
    with served(Echo()) as address:
        answer = raw(address, GET.format(host, more).encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_with_a_token_the_name_does_not_matter() -> None:
    """Whoever knows it is no page that somebody made lead here."""
    sent = "Authorization: Bearer marker\r\n"
    with served(Echo(), token="marker", host="0.0.0.0") as address:  # noqa: S104 - see the test
        assert b" 200 " in raw(address, GET.format("gpu-box:8765", sent).encode())[:20]
        assert b" 401 " in raw(address, GET.format("gpu-box:8765", "").encode())[:20]


def test_a_client_that_hangs_up_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Echo()) as address:
        host, port = address.removeprefix("http://").split(":")
        for content in (b'{"dialogue"', json.dumps(say("x")).encode()):
            head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(head + content)
        assert httpx.get(address, trust_env=False).status_code == 200
    # Where uvicorn writes what it logs.
    assert capsys.readouterr().err == ""


def test_the_port_is_taken() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1, port {port}: .*--port"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "trade", "--port", "70000"], "must be a whole number from 0 to 65535"),
        (["--model", "trade", "--token-env", "NOT_THERE"], "'NOT_THERE' is not set"),
        (["--model", "trade", "--token-env", "sk-marker"], "may be the token"),
        (["--model", "http://u:marker@h"], "http://***@h is already a service"),
        (["--model", "trdae", "--port", "0"], "Did you mean 'trade'?"),
    ],
)
def test_mistakes_in_the_command(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "marker" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process alone there")
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - that it warns
def test_the_command_serves_until_ctrl_c(tmp_path: Path, host: str) -> None:
    (tmp_path / "echo_bot.py").write_text(
        "def track(context):\n    return {'hotel-area': context.user}\ntrack.fingerprint = '7'\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest_dstfuzz.cli", "serve"]
    command += ["--model=echo_bot:track", "--port=0", f"--host={host}"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(
                rf"echo_bot:track answers at (http://{host}:\d+) \(Ctrl-C ends it\)\n", line
            )
            assert found is not None, line
            web = tracker_for(Settings.of(model=found[1]), DATA)
            # Declared by the function that the tracker is made of. A mark of its code follows.
            assert str(fingerprint_of(web)).startswith("7 ")
            assert [answer.state for answer in web.predict(contexts(3))] == [
                {"hotel-area": f"user {number}"} for number in range(3)
            ]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            # It serves until it is told to end: a test that failed would wait for ever.
            process.kill()
    bye = "\ndstfuzz: interrupted; all received requests were answered\n"
    warning = (
        "dstfuzz: warning: anyone who can reach 0.0.0.0 can use the tracker: add --token-env NAME "
    )
    assert process.returncode == 130
    assert err.endswith(bye)
    said = err.removesuffix(bye)
    assert said.startswith(warning) if host == "0.0.0.0" else said == ""  # noqa: S104 - see above


def test_replies_are_served_and_asked_for() -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        return "" if messages[-1]["content"] == "mute" else f"{len(messages)} so far"

    later = Context((Exchange("Hello!", "Hi"), Exchange("Yes?", "Are you open?")))
    tracker = as_tracker(reply, outcome="reply")
    with served(tracker, outcome="reply") as address:
        asks = tracker_for(Settings.of(model=address, outcome="reply"), DATA)
        found = asks.predict([*contexts(9), later, Context((Exchange("", "mute"),))])
        how = Settings.of(model=address, outcome="reply", opening="system")
        assert fingerprint_of(tracker_for(how, DATA)) == "1, name=echo, opening=system"
        (wrong,) = tracker_for(Settings.of(model=address), DATA).predict(contexts(1))
    replies = [one.reply for one in found if isinstance(one, Prediction)]
    assert replies == [*["1 so far"] * 9, "4 so far"]
    assert "an empty reply" in str(found[-1])
    assert "if the service replies to users, add --dst-outcome=reply" in str(wrong)
    # It says nothing about that, and so do services that were written by hand.
    assert is_repeatable(asks) != is_repeatable(asks, outcome="reply")


def test_a_service_that_keeps_a_state_says_nothing() -> None:
    with served(Echo()) as address:
        asks = tracker_for(Settings.of(model=address, outcome="reply"), DATA)
        (answer,) = asks.predict(contexts(1))
    assert 'it must be {"reply": "..."}; if the service keeps a belief' in str(answer)
