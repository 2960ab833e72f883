"""Shared parts of the adapters of in-process systems, including async ones."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeAlias, cast

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import MalformedAnswerError, Overrun, TrackerError, passes_through
from pytest_dstfuzz.trackers.tracker import (
    BatchInterrupt,
    Prediction,
    Tracker,
    Usage,
    notes_of,
    read_attribute,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import (
    as_user_error,
    describe_error,
    find_own_line,
)

#: Callback that takes the place of a context in the batch and the answer for it.
Take: TypeAlias = Callable[[int, object], None]

#: The tracker that is asked, and the callback that takes its answers.
_TAKER: ContextVar[tuple[object, Take] | None] = ContextVar("taker", default=None)


@contextmanager
def arriving(tracker: object, take: Take) -> Iterator[None]:
    """Pass each answer of a tracker to ``take`` as soon as it arrives, inside the block.

    ``take`` is called in the thread that calls the tracker.
    """
    token = _TAKER.set((tracker, take))
    try:
        yield
    finally:
        _TAKER.reset(token)


def taker_of(tracker: object) -> Take:
    """Return the callback that `arriving` set for this tracker, or else an empty function.

    A tracker may pass part of a batch to an inner tracker. The inner tracker does not know the
    positions in the batch, so its callback does nothing.
    """
    found = _TAKER.get()
    return found[1] if found is not None and found[0] is tracker else _ignore


def _ignore(_: int, __: object) -> None:
    """Ignore an answer."""


#: Callback that takes a place and a result or, instead of a result, an exception.
Tell: TypeAlias = Callable[[int, object], None]
#: A function that returns the coroutine to await at the end of a loop.
AtEnd: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
#: Seconds for cancelled tasks to end.
_GRACE: Final = 1.0
#: Place that marks the end of the results.
_END: Final = -1
#: Loops to close. Python may collect an `EventLoop` in any thread, even in one that holds a lock of
#: `threading`. To close a loop starts threads, so it would wait for that lock for ever. A
#: `queue.SimpleQueue` takes items at any time.
_UNUSED: Final[queue.SimpleQueue[tuple[asyncio.Runner, AtEnd | None]]] = queue.SimpleQueue()

_OF_THREAD: Final = threading.local()


def event_loop() -> EventLoop:
    """Return the event loop for the bots of this thread.

    Several tests of a bot share one loop, so the bot's clients and locks stay valid.
    """
    found = getattr(_OF_THREAD, "loop", None)
    if found is None:
        found = _OF_THREAD.loop = EventLoop()
    return cast("EventLoop", found)


class EventLoop:
    """An event loop for synchronous callers. It runs while they wait.

    Clients that stay open between calls belong to the loop, and ``at_end`` closes them. If nothing
    refers to a loop any more, the next loop that begins or runs closes it, or else the end of the
    process. So ``at_end`` must not refer to the loop.

    The loop runs in the waiting thread, as a user's bot expects. If ``apart`` is true, it has its
    own thread. Then an exception from a signal handler reaches the waiting thread instead of an
    asyncio callback. Several waiting threads take turns.
    """

    def __init__(self, at_end: AtEnd | None = None, *, apart: bool = False) -> None:
        _close_unused()
        self._at_end = at_end
        self._apart = apart
        self._new()
        #: Held by the thread that waits.
        self._turn = threading.RLock()

    def _new(self) -> None:
        # With an explicit factory, the runner does not change asyncio's event loop of the thread.
        self._runner = asyncio.Runner(
            loop_factory=_new_loop if self._apart else asyncio.new_event_loop
        )
        self._end = weakref.finalize(self, _UNUSED.put, (self._runner, self._at_end))

    def result(self, awaitable: Awaitable[object]) -> object:
        """Return the result of an awaitable. Exceptions propagate."""
        found: list[object] = []
        self._run(_told(awaitable), lambda _, result: found.append(result))
        return found[0]

    def results(self, jobs: Sequence[Callable[[], object]], at_once: int, take: Tell) -> None:
        """Run jobs that may return an awaitable, at most ``at_once`` at a time.

        Each result goes to ``take`` in this thread as soon as it arrives. An exception of the bot
        goes to ``take``, too. Any other exception propagates. If ``take`` raises, the remaining
        jobs are cancelled.
        """
        self._run(lambda tell: _all_of(jobs, at_once, tell), take)

    def _run(self, work: Callable[[Tell], Coroutine[Any, Any, None]], take: Tell) -> None:
        _close_unused()
        with self._turn:
            if self._apart or _runs_here():
                self._run_elsewhere(work, take)
                return
            try:
                self._runner.run(work(take))
            except BaseException:
                self._runner.run(_cancelled())
                raise

    def _run_elsewhere(self, work: Callable[[Tell], Coroutine[Any, Any, None]], take: Tell) -> None:
        """Run the loop in its own thread. Receive the results in this thread."""
        arrived: queue.SimpleQueue[tuple[int, object]] = queue.SimpleQueue()
        begun: list[asyncio.Task[Any]] = []
        left = threading.Event()
        runner, end = self._runner, self._end

        async def begin() -> None:
            if (task := asyncio.current_task()) is not None:
                begun.append(task)
            if not left.is_set():
                await work(lambda place, result: arrived.put((place, result)))

        def run() -> None:
            error: BaseException | None = None
            try:
                runner.run(begin())
            except BaseException as raised:  # noqa: BLE001 - raised in the thread that waits
                error = raised
            arrived.put((_END, error))
            if self._runner is not runner:
                # This thread was abandoned, and nobody else can close its loop.
                end()
                _close_unused()

        # A daemon thread, so that an interrupted run does not wait for a bot that hangs.
        thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
        thread.start()
        try:
            while (found := arrived.get())[0] != _END:
                take(*found)
        except BaseException:
            left.set()
            self._leave(thread, begun)
            raise
        thread.join()
        if isinstance(found[1], BaseException):
            raise found[1]

    def _leave(self, thread: threading.Thread, begun: Sequence[asyncio.Task[Any]]) -> None:
        """Cancel the tasks of a thread. Abandon the thread if it does not end.

        Only the given tasks are cancelled. The loop may already run other tasks when it processes
        the cancellation.
        """
        loop = self._runner.get_loop()
        for task in begun:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(_GRACE)
        if thread.is_alive():
            self._new()


class _LookUps(ThreadPoolExecutor):
    """Threads for host name lookups. The process does not wait for them when it exits."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job in its own daemon thread."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised again for the waiting thread
                future.set_exception(error)
            else:
                future.set_result(found)

        threading.Thread(target=work, daemon=True).start()
        return future


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_LookUps(max_workers=1))
    return loop


def _close_unused() -> None:
    with suppress(queue.Empty):
        while True:
            unused = _UNUSED.get_nowait()
            # Its bot or service is no longer in use, so nobody needs to know that it fails.
            with suppress(Exception):
                _close(*unused)


# The last of the finalizers that run when the process ends, because it is the first.
weakref.finalize(_UNUSED, _close_unused)


def _close(runner: asyncio.Runner, at_end: AtEnd | None) -> None:
    """Close a loop. If this thread already runs a loop, use another thread."""

    def close() -> None:
        # The runner of an abandoned thread cannot be closed.
        with suppress(RuntimeError):
            try:
                if at_end is not None:
                    runner.run(at_end())
            finally:
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


def _is_current(task: asyncio.Task[Any] | None) -> bool:
    return _runs_here() and asyncio.current_task() is task


def _told(awaitable: Awaitable[object]) -> Callable[[Tell], Coroutine[Any, Any, None]]:
    async def wait(tell: Tell) -> None:
        tell(0, await awaitable)

    return wait


async def _all_of(jobs: Sequence[Callable[[], object]], at_once: int, tell: Tell) -> None:
    free = asyncio.Semaphore(at_once)

    async def do(place: int) -> None:
        task = asyncio.current_task()
        async with free:
            try:
                result = jobs[place]()
                if isinstance(result, Awaitable):
                    result = await result
            except BaseException as error:
                if passes_through(error) or isinstance(error, asyncio.CancelledError):
                    raise
                # Python raises it where an abandoned coroutine waits, but outside of its task.
                if isinstance(error, GeneratorExit) and not _is_current(task):
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
    """Cancel the tasks that remain after a run raised an exception."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE)


#: Concurrent calls of an async function, the same number as for requests to a service.
CONCURRENCY: Final = 16


class Adapter(ABC):
    """Base class of adapters. Requests one context after the other, and awaits async results."""

    def __init__(self, wrapped: object) -> None:
        self.wrapped: Any = wrapped
        self._loop: EventLoop | None = None

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the answer to each context. An interrupted run keeps the answers so far."""
        answers: dict[int, Prediction] = {}
        try:
            self._answer(contexts, answers, taker_of(self))
        except Overrun as overrun:
            overrun.answers = answers
            raise
        except KeyboardInterrupt:
            raise BatchInterrupt(answers) from None
        return [answers[place] for place in range(len(contexts))]

    def _answer(
        self, contexts: Sequence[Context], answers: dict[int, Prediction], take: Take
    ) -> None:
        for place, context in enumerate(contexts):
            answers[place] = self._ask_or_malformed(context)
            take(place, answers[place])

    def _ask_or_malformed(self, context: Context) -> Prediction:
        try:
            return self._ask(context)
        except MalformedAnswerError as error:
            # `Tracker` allows an error in place of an answer.
            return cast("Prediction", error.with_traceback(None))

    @abstractmethod
    def _ask(self, context: Context) -> Prediction: ...

    def _waited(self, result: object) -> object:
        """Return the result of a call, awaited if necessary."""
        return self._event_loop.result(result) if isinstance(result, Awaitable) else result

    @property
    def _event_loop(self) -> EventLoop:
        if self._loop is None:
            self._loop = event_loop()
        return self._loop


class FunctionAdapter(Adapter):
    """An adapter of a function that keeps no state between calls.

    If the function is ``async``, up to ``concurrency`` calls run at once.
    """

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self.concurrency = CONCURRENCY
        #: Whether the function has returned an awaitable that led to an answer.
        self._is_async = False

    @abstractmethod
    def _call(self, context: Context) -> object:
        """Return the result of the function, which may be an awaitable."""

    @abstractmethod
    def _read(self, answer: object) -> Prediction:
        """Return the result of the function as a prediction."""

    def _ask(self, context: Context) -> Prediction:
        result = self._call(context)
        found = self._read(self._waited(result))
        self._is_async = self._is_async or isinstance(result, Awaitable)
        return found

    def _answer(
        self, contexts: Sequence[Context], answers: dict[int, Prediction], take: Take
    ) -> None:
        # Until its first answer, call the function sequentially, so that an exception ends the
        # batch.
        while not self._is_async and len(answers) < len(contexts):
            place = len(answers)
            answers[place] = self._ask_or_malformed(contexts[place])
            take(place, answers[place])
        first = len(answers)

        def arrived(number: int, result: object) -> None:
            # `Tracker` allows an error in place of an answer.
            answers[first + number] = cast("Prediction", self._read_or_failure(result))
            take(first + number, answers[first + number])

        jobs = [partial(self._call, context) for context in contexts[first:]]
        if jobs:
            self._event_loop.results(jobs, self.concurrency, arrived)

    def _read_or_failure(self, result: object) -> Prediction | TrackerError:
        if isinstance(result, BaseException):
            return failure_of(result)
        try:
            return self._read(result)
        except BaseException as error:
            if passes_through(error):
                raise
            return failure_of(error)


def failure_of(error: BaseException) -> TrackerError:
    """Return the error to put in the place of an answer."""
    if isinstance(error, TrackerError):
        return error.with_traceback(None)
    return TrackerError(describe_error(error) + find_own_line(error))


class AsyncTracker(Adapter):
    """A tracker whose ``predict`` is ``async``."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the tracker for the user."""
        return notes_of(self.wrapped)

    @property
    def usage(self) -> Usage | None:
        """The usage of the tracker's answers, if the tracker counts it."""
        return usage_of(self.wrapped)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the result of the tracker, without checks."""
        return cast("list[Prediction]", self._waited(self.wrapped.predict(contexts)))

    def _ask(self, context: Context) -> Prediction:
        return self.predict([context])[0]


def as_it_is(candidate: object) -> Tracker:
    """Return an object with ``predict`` as a tracker. If its ``predict`` is async, await it."""
    if inspect.iscoroutinefunction(read_attribute(candidate, "predict")):
        return AsyncTracker(candidate)
    return cast("Tracker", candidate)


def make_instance(candidate: object) -> object:
    """Return an instance of a class that needs no arguments. Other objects are returned as is."""
    if not isinstance(candidate, type):
        return candidate
    with as_user_error(
        f"the tracker class {candidate.__qualname__!r} cannot be created without arguments"
    ):
        return candidate()
