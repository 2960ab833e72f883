"""A tracker in this process that hangs: the run ends by its deadline and keeps its results."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.errors import Overrun
from pytest_dstfuzz.trackers.validation import Deadline, can_end_calls, end_at_deadline

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no interval timers there")

#: Hangs at one of the contexts, once a few dialogues are done.
BOT = """
import threading
import time

class Hangs:
    def __init__(self, way, after):
        self.way, self.after, self.asked = way, after, 0
    def __call__(self, context):
        self.asked += 1
        if self.asked > self.after:
            self.hang()
        return {"hotel-name": context.user[:9]}
    def hang(self):
        while self.way == "sleeps":
            time.sleep(600)
        while self.way == "loops":
            pass
        while self.way == "catches":
            try:
                time.sleep(600)
            except Exception:
                pass

sleeps, loops, catches = (Hangs(way, 100) for way in ("sleeps", "loops", "catches"))
at_once = Hangs("sleeps", 0)

class Batches:
    def predict(self, contexts):
        if len(contexts) > 3:
            time.sleep(600)
        return [{"hotel-name": context.user[:9]} for context in contexts]
"""
HANGING_MODULE = "import time\ntime.sleep(600)\n"


@pytest.fixture
def hanging(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(hangbot=BOT, hangmodule=HANGING_MODULE)
    for name in ("hangbot", "hangmodule"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return pytester


def run(pytester: pytest.Pytester, *options: str) -> tuple[pytest.RunResult, float]:
    began = time.monotonic()
    result = pytester.runpytest(*options)
    return result, time.monotonic() - began


@pytest.mark.parametrize("way", ["sleeps", "loops", "catches"])
def test_the_deadline_ends_a_call_that_hangs(hanging: pytest.Pytester, way: str) -> None:
    result, seconds = run(
        hanging,
        *(f"--dst-model=hangbot:{way}", "--dst-max-seconds=4", "--dst-turns=30"),
        *("--dst-fail-on=gate", "--dst-report=out.json", "--dst-validity=strict"),
    )
    # The time of the machine is not ours alone.
    assert seconds < 60
    why = "the budget of 4 seconds ended during a call of the tracker"
    assert why in " ".join(result.stdout.str().split())
    report = json.loads((hanging.path / "out.json").read_text(encoding="utf-8"))
    assert report["summary"]["valid"] > 0
    assert report["data"]["ended"].startswith(why)


@pytest.mark.parametrize(
    ("model", "option", "what"),
    [
        ("at_once", "-odst_preflight_seconds=1", "the limit of 1 s for testing the tracker"),
        ("at_once", "--dst-max-seconds=1", "the budget of 1 seconds ended"),
        ("Batches", "-odst_preflight_seconds=1", "the limit of 1 s for testing the tracker"),
    ],
)
def test_a_preflight_that_hangs_ends(
    hanging: pytest.Pytester, model: str, option: str, what: str
) -> None:
    result, seconds = run(hanging, f"--dst-model=hangbot:{model}", option, "--dst-turns=8")
    assert seconds < 60
    assert result.ret == 6
    result.stderr.fnmatch_lines([f"*the tracker was not tested: it had not answered when {what}*"])


def test_a_module_that_hangs_when_it_is_imported_is_not_waited_for(
    hanging: pytest.Pytester,
) -> None:
    result, seconds = run(hanging, "--dst-model=hangmodule:track", "-odst_preflight_seconds=1")
    assert seconds < 60
    assert result.ret == 6


def test_an_evaluation_waits_no_longer_for_the_preflight(
    hanging: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging.syspathinsert()
    began = time.monotonic()
    assert main(["evaluate", "--model=hangbot:at_once", "--preflight-seconds=1"]) == 2
    assert time.monotonic() - began < 60
    said = capsys.readouterr().err
    assert "it had not answered when the limit of 1 s for testing the tracker" in said


@pytest.fixture
def rings() -> Iterator[list[int]]:
    """Another user of the timer, such as pytest-timeout."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    yield heard
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_another_timer_goes_on(rings: list[int]) -> None:
    signal.setitimer(signal.ITIMER_REAL, 1.2)
    with pytest.raises(Overrun), end_at_deadline(Deadline(0.1)):
        time.sleep(30)
    assert not rings
    while not rings:
        time.sleep(0.05)
    # One that goes off before is left alone.
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with end_at_deadline(Deadline(20.0)):
        while len(rings) < 2:
            time.sleep(0.05)


def test_alarms_of_the_tracker_do_not_switch_the_deadline_off(rings: list[int]) -> None:
    deadline = Deadline(1.0)

    def ask(seconds: float) -> None:
        with end_at_deadline(deadline):
            signal.alarm(50)
            signal.alarm(0)
            time.sleep(seconds)

    ask(0.0)
    began = time.monotonic()
    with pytest.raises(Overrun):
        ask(30.0)
    assert time.monotonic() - began < 20
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert not rings
    assert not any(one.name == "dstfuzz deadline" for one in threading.enumerate())


def test_a_handler_of_the_tracker_gets_no_foreign_alarm(rings: list[int]) -> None:
    deadline, own = Deadline(0.1), list[int]()
    deadline.stopped = True

    def ask() -> None:
        before = signal.signal(signal.SIGALRM, lambda *_: own.append(1))
        signal.alarm(0)
        time.sleep(1.5)
        signal.signal(signal.SIGALRM, before)
        time.sleep(30)

    with pytest.raises(Overrun), end_at_deadline(deadline):
        ask()
    assert not own
    assert not rings


def test_no_timer_is_left(rings: list[int]) -> None:
    with end_at_deadline(Deadline(0.0)):
        pass
    with end_at_deadline(Deadline()), end_at_deadline(None):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    time.sleep(0.6)
    assert not rings


def test_another_thread_is_left_alone_and_says_so() -> None:
    said: list[bool] = []

    def elsewhere() -> None:
        with end_at_deadline(Deadline(0.1)):
            said.append(can_end_calls())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert said == [False]
    assert can_end_calls()
