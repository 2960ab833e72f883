"""Bots that are ``async``: of all kinds, in a loop that runs already, several calls at once."""

from __future__ import annotations

import asyncio
import gc
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.trackers import adapting
from pytest_dstfuzz.trackers.adapters import as_tracker, bound_concurrency
from pytest_dstfuzz.trackers.tracker import Prediction, fingerprint_of, notes_of


async def state(context: Context) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"pizza-size": context.user_utterances[-1]}


async def reply(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return messages[-1]["content"]


async def call(messages: list[dict[str, str]], _tools: object) -> dict[str, Any]:
    await asyncio.sleep(0)
    made = {"name": "order", "arguments": {"size": messages[-1]["content"]}}
    return {"role": "assistant", "tool_calls": [{"function": made}]}


class Updated:
    """Keeps its state from turn to turn."""

    async def reset(self) -> None:
        self.sizes: list[str] = []

    async def update(self, _system: str, user: str) -> dict[str, str]:
        self.sizes.append(user)
        await asyncio.sleep(0)
        return {"pizza-size": self.sizes[-1]}


class Replying:
    """Has a conversation, with a client that belongs to the loop in which it was made."""

    loop: asyncio.AbstractEventLoop | None = None

    async def reset(self) -> None:
        self.loop = self.loop or asyncio.get_running_loop()

    async def reply(self, user: str) -> str:
        assert self.loop is asyncio.get_running_loop()
        return user


class Batched:
    """Takes whole batches."""

    fingerprint = "1"
    notes = ("says something",)

    async def predict(self, contexts: Sequence[Context]) -> list[dict[str, str]]:
        return [await state(context) for context in contexts]


KINDS = [
    *((bot, "state") for bot in (state, Updated(), Updated, Batched())),
    *((bot, "reply") for bot in (reply, Replying)),
    (call, "tool-calls"),
]
CONTEXTS = [Context((Exchange("", size),)) for size in ("small", "medium", "large", "huge")]


def asked(bot: object, outcome: Any, **options: Any) -> list[str]:
    predictor = Predictor(as_tracker(bot, outcome=outcome, **options), outcome=outcome)
    found = predictor.predict(CONTEXTS)
    return [" ".join(map(str, found[c].state.values())) for c in CONTEXTS]  # type: ignore[union-attr]


@pytest.mark.parametrize("running", [False, True], ids=["no loop", "a loop runs"])
@pytest.mark.parametrize(("bot", "outcome"), KINDS)
def test_every_kind_may_be_async(bot: object, outcome: str, running: bool) -> None:
    async def within() -> list[str]:
        return asked(bot, outcome)

    said = asyncio.run(within()) if running else asked(bot, outcome)
    assert [size in one for size, one in zip(("small", "medium", "large"), said, strict=False)]
    assert all(
        context.user_utterances[-1] in one for context, one in zip(CONTEXTS, said, strict=True)
    )


def test_one_loop_serves_calls_within_and_without_another() -> None:
    tracker = as_tracker(Replying(), outcome="reply")

    async def within() -> object:
        return tracker.predict(CONTEXTS)

    first = tracker.predict(CONTEXTS)
    assert asyncio.run(within()) == first
    assert tracker.predict(CONTEXTS) == first


def test_replies_of_an_async_function_with_its_own_history() -> None:
    assert asked(reply, "reply", history="own") == ["small", "medium", "large", "huge"]


@pytest.mark.parametrize("at_once", [1, 3])
def test_calls_run_together_as_many_as_are_allowed(at_once: int) -> None:
    now = most = 0

    async def slow(context: Context) -> dict[str, str]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        # The first to be asked is the last to answer.
        for _ in range(20 - len(context.user_utterances[-1])):
            await asyncio.sleep(0)
        now -= 1
        return {"pizza-size": context.user_utterances[-1]}

    tracker = bound_concurrency(as_tracker(slow), at_once)
    many = [Context((Exchange("", "x" * n),)) for n in range(1, 20)]
    found = tracker.predict(many)
    assert [len(answer.state["pizza-size"]) for answer in found] == [*range(1, 20)]
    assert most == at_once


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit])
@pytest.mark.parametrize("running", [False, True], ids=["no loop", "a loop runs"])
def test_a_call_that_raises_costs_no_other_call(running: bool, kind: type[BaseException]) -> None:
    calls: Counter[str] = Counter()

    async def fussy(context: Context) -> dict[str, str]:
        said = context.user_utterances[-1]
        calls[said] += 1
        await asyncio.sleep(0)
        if said == "large":
            raise kind("no such size")
        return {"pizza-size": said}

    async def within() -> Any:
        return Predictor(as_tracker(fussy)).predict(CONTEXTS)

    found = asyncio.run(within()) if running else Predictor(as_tracker(fussy)).predict(CONTEXTS)
    failed = found[CONTEXTS[2]]
    assert isinstance(failed, TrackerFailure)
    assert failed.reason.startswith(f"{kind.__name__}: no such size (test_async_bots.py:")
    assert sum(isinstance(one, Prediction) for one in found.values()) == 3
    assert {*calls.values()} == {1}


@pytest.mark.parametrize("running", [False, True], ids=["no loop", "a loop runs"])
def test_what_ends_the_run_ends_the_calls(running: bool) -> None:
    ended = []

    async def interrupted(context: Context) -> dict[str, str]:
        if context.user_utterances[-1] == "large":
            pytest.fail("the test takes too long")
        try:
            await asyncio.sleep(30 if context.user_utterances[-1] == "huge" else 0)
        except asyncio.CancelledError:
            ended.append("huge")
            raise
        return {"pizza-size": "any"}

    tracker = as_tracker(interrupted)

    async def within() -> None:
        tracker.predict(CONTEXTS)

    def ask() -> None:
        asyncio.run(within()) if running else tracker.predict(CONTEXTS)

    with pytest.raises(pytest.fail.Exception, match="takes too long"):
        ask()
    # The next call finds none of it.
    assert len(tracker.predict(CONTEXTS[:2])) == 2


def test_a_tracker_that_is_async_keeps_what_it_says_of_itself() -> None:
    tracker = as_tracker(Batched())
    assert fingerprint_of(tracker) == "1"
    assert notes_of(tracker) == ("says something",)


def test_a_bot_that_is_tested_twice_keeps_its_loop() -> None:
    bot = Replying()
    for _ in range(2):
        tracker = as_tracker(bot, outcome="reply")
        (answer,) = tracker.predict([Context((Exchange("", "hello"),))])
        assert not isinstance(answer, TrackerFailure)


def test_a_campaign_bounds_the_calls_that_run_at_once() -> None:
    running, most = 0, 0

    async def bot(context: Context) -> dict[str, str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return {"hotel-name": context.user}

    list(Campaign(bot, "sample", Settings.of(turns=4, variants=1, tracker=["concurrency=1"])))
    assert most == 1


def test_the_loop_of_a_bot_that_hung_is_closed_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapting, "_GRACE", 0.01)
    loops: list[asyncio.AbstractEventLoop] = []
    answered = threading.Event()

    async def hang() -> None:
        loops.append(asyncio.get_running_loop())
        answered.wait(10)  # It blocks the loop, so nobody can cancel it.

    async def quick() -> None: ...

    def interrupt(*_: object) -> None:
        while not loops:
            time.sleep(0.001)
        raise KeyboardInterrupt

    of_bot = adapting.EventLoop(apart=True)
    with pytest.raises(KeyboardInterrupt):
        of_bot.results([quick, hang], 2, interrupt)
    answered.set()
    for _ in range(1000):
        if loops[0].is_closed():
            break
        time.sleep(0.01)
    assert loops[0].is_closed()
    of_bot.results([quick], 1, lambda *_: None)


def test_garbage_collection_closes_no_loop() -> None:
    closed: list[threading.Thread] = []

    async def end() -> None:
        closed.append(threading.current_thread())

    async def quick() -> None: ...

    def leave_one() -> None:
        of_bot = adapting.EventLoop(end, apart=True)
        of_bot.results([quick], 1, lambda *_: None)
        circle: list[object] = [of_bot]
        circle.append(circle)

    leave_one()
    # Python may look for garbage in any thread, even in one that holds a lock of `threading`.
    # There, to close a loop would wait for ever, because that begins a thread.
    gc.collect()
    assert not closed
    adapting.EventLoop()
    assert closed == [threading.current_thread()]


def test_a_loop_that_cannot_be_closed_is_no_fault_of_the_next_one() -> None:
    async def end() -> None:
        raise OSError("the connection was lost")

    async def quick() -> str:
        return "answered"

    def leave_one() -> None:
        adapting.EventLoop(end).result(quick())

    leave_one()
    assert adapting.EventLoop().result(quick()) == "answered"


def test_the_end_of_a_process_closes_its_loops(tmp_path: Path) -> None:
    code = """
    from pytest_dstfuzz.trackers.adapting import EventLoop

    async def end():
        print("closed")

    async def answer():
        print("answered")

    loop = EventLoop(end)
    loop.result(answer())
    """
    run = run_python("-c", textwrap.dedent(code), cwd=tmp_path)
    assert run.stdout.split() == ["answered", "closed"]
    assert not run.stderr
