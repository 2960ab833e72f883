"""Waits for what is ``async``, also if an event loop runs in this thread already.

Such a loop runs within a notebook, within tests of pytest-asyncio, and after a fixture of
Playwright was used. No second one can run in its thread, so the other one then runs in a thread
of its own.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, TypeAlias, cast

from pytest_dstfuzz.trackers.validation import passes_through

#: Takes a place and a result, or the exception that there is instead.
Tell: TypeAlias = Callable[[int, object], None]
#: Makes something to wait for, at the end of a loop.
AtEnd: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
#: Seconds that whatever is cancelled has to end.
_GRACE: Final = 1.0
#: In the place of a result: all is over.
_END: Final = -1


_OF_THREAD: Final = threading.local()


def event_loop() -> EventLoop:
    """Return the event loop of the bots of this thread.

    A bot that is tested twice has one loop, so that its clients and locks serve both times.
    """
    found = getattr(_OF_THREAD, "loop", None)
    if found is None:
        found = _OF_THREAD.loop = EventLoop()
    return cast("EventLoop", found)


class EventLoop:
    """An event loop for callers that are not ``async``; it runs while they wait.

    Clients that are kept from call to call belong to it. ``at_end`` closes them: it must not refer
    to the loop, which is closed when nobody refers to it.
    """

    def __init__(self, at_end: AtEnd | None = None) -> None:
        self._at_end = at_end
        self._runner = self._new()
        #: Held by the thread that waits.
        self._turn = threading.RLock()

    def _new(self) -> asyncio.Runner:
        # With a factory of its own it leaves alone what asyncio calls the loop of the thread.
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        weakref.finalize(self, _close, runner, self._at_end)
        return runner

    def result(self, awaitable: Awaitable[object]) -> object:
        """Return what there is to wait for; an exception passes through."""
        found: list[object] = []
        self._run(_told(awaitable), lambda _, result: found.append(result))
        return found[0]

    def results(self, jobs: Sequence[Callable[[], object]], at_once: int, take: Tell) -> None:
        """Do jobs that may return something to wait for, so many at once.

        Each result is handed to ``take`` as it comes, in this thread, and so is an exception, but
        for one that is no failure of the bot: it passes through. What ``take`` raises cancels the
        jobs that are left.
        """
        self._run(lambda tell: _all_of(jobs, at_once, tell), take)

    def _run(self, work: Callable[[Tell], Coroutine[Any, Any, None]], take: Tell) -> None:
        with self._turn:
            if _runs_here():
                self._run_elsewhere(work, take)
                return
            try:
                self._runner.run(work(take))
            except BaseException:
                self._runner.run(_cancelled())
                raise

    def _run_elsewhere(self, work: Callable[[Tell], Coroutine[Any, Any, None]], take: Tell) -> None:
        """Run the loop in a thread of its own, and take the results in this one."""
        arrived: queue.SimpleQueue[tuple[int, object]] = queue.SimpleQueue()

        def run() -> None:
            error: BaseException | None = None
            try:
                self._runner.run(work(lambda place, result: arrived.put((place, result))))
            except BaseException as raised:  # noqa: BLE001 - raised in the thread that waits
                error = raised
            arrived.put((_END, error))

        # A daemon: a run that is interrupted must not wait for a bot that hangs.
        thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
        thread.start()
        try:
            while (found := arrived.get())[0] != _END:
                take(*found)
        except BaseException:
            self._leave(thread)
            raise
        thread.join()
        if isinstance(found[1], BaseException):
            raise found[1]

    def _leave(self, thread: threading.Thread) -> None:
        """Cancel what runs in a thread; if it does not end, it is left to itself."""
        loop = self._runner.get_loop()
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join(_GRACE)
        if thread.is_alive():
            self._runner = self._new()


def _close(runner: asyncio.Runner, at_end: AtEnd | None) -> None:
    """Close a loop, which a thread with a running one cannot do itself."""

    def close() -> None:
        # Of one that was left to itself nothing can be closed.
        with suppress(RuntimeError):
            if at_end is not None:
                runner.run(at_end())
            runner.close()

    if _runs_here():
        thread = threading.Thread(target=close, daemon=True)
        thread.start()
        thread.join(_GRACE)
    else:
        close()


def _runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _told(awaitable: Awaitable[object]) -> Callable[[Tell], Coroutine[Any, Any, None]]:
    async def wait(tell: Tell) -> None:
        tell(0, await awaitable)

    return wait


async def _all_of(jobs: Sequence[Callable[[], object]], at_once: int, tell: Tell) -> None:
    free = asyncio.Semaphore(at_once)

    async def do(place: int) -> None:
        async with free:
            try:
                result = jobs[place]()
                if isinstance(result, Awaitable):
                    result = await result
            except BaseException as error:
                if passes_through(error) or isinstance(error, asyncio.CancelledError):
                    raise
                result = error
            tell(place, result)

    tasks = [asyncio.ensure_future(do(place)) for place in range(len(jobs))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _cancelled() -> None:
    """Cancel what is still there of a run that an exception ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE)
