"""What all adapters of systems in this process share, async ones included."""

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
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError
from pytest_dstfuzz.trackers.tracker import (
    Interrupted,
    Prediction,
    Tracker,
    Usage,
    notes_of,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import (
    Overrun,
    as_user_error,
    describe_error,
    passes_through,
    raised_in,
)

#: Takes the place of a context in the batch, and what would stand there.
Take: TypeAlias = Callable[[int, object], None]

#: The tracker that is asked, and who takes its answers.
_TAKER: ContextVar[tuple[object, Take] | None] = ContextVar("taker", default=None)


@contextmanager
def arriving(tracker: object, take: Take) -> Iterator[None]:
    """Let someone take the answers of a tracker, in the thread that asks it, while it is asked."""
    token = _TAKER.set((tracker, take))
    try:
        yield
    finally:
        _TAKER.reset(token)


def taker_of(tracker: object) -> Take:
    """Return who takes the answers of a tracker; nobody does unless it is the one that is asked.

    A tracker that asks others for parts of a batch knows their places alone.
    """
    found = _TAKER.get()
    return found[1] if found is not None and found[0] is tracker else _ignore


def _ignore(_: int, __: object) -> None:
    """Do nothing with an answer."""


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

    It runs in the thread that waits, as a bot of the user expects. If it is ``apart``, it runs in a
    thread of its own: what a handler of a signal raises reaches the thread that waits, and is not
    lost in a callback of asyncio. Several threads that wait take turns.
    """

    def __init__(self, at_end: AtEnd | None = None, *, apart: bool = False) -> None:
        self._at_end = at_end
        self._apart = apart
        self._runner = self._new()
        #: Held by the thread that waits.
        self._turn = threading.RLock()

    def _new(self) -> asyncio.Runner:
        # With a factory of its own it leaves alone what asyncio calls the loop of the thread.
        runner = asyncio.Runner(loop_factory=_new_loop if self._apart else asyncio.new_event_loop)
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
            if self._apart or _runs_here():
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
        begun: list[asyncio.Task[Any]] = []
        left = threading.Event()

        async def begin() -> None:
            if (task := asyncio.current_task()) is not None:
                begun.append(task)
            if not left.is_set():
                await work(lambda place, result: arrived.put((place, result)))

        def run() -> None:
            error: BaseException | None = None
            try:
                self._runner.run(begin())
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
            left.set()
            self._leave(thread, begun)
            raise
        thread.join()
        if isinstance(found[1], BaseException):
            raise found[1]

    def _leave(self, thread: threading.Thread, begun: Sequence[asyncio.Task[Any]]) -> None:
        """Cancel what runs in a thread; if it does not end, it is left to itself.

        That alone is cancelled: the loop may come to it only when it runs something else.
        """
        loop = self._runner.get_loop()
        for task in begun:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(_GRACE)
        if thread.is_alive():
            self._runner = self._new()


class _LookUps(ThreadPoolExecutor):
    """Threads that look up names of hosts: at its end, the process does not wait for them."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do a job in a thread of its own."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                future.set_exception(error)
            else:
                future.set_result(found)

        threading.Thread(target=work, daemon=True).start()
        return future


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_LookUps(max_workers=1))
    return loop


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


#: Calls of an async function at once: as many as requests of a service.
CONCURRENCY: Final = 16


class Adapter(ABC):
    """Asks what it adapts for one context after the other, and waits for what is ``async``."""

    def __init__(self, wrapped: object) -> None:
        self.wrapped: Any = wrapped
        self._loop: EventLoop | None = None

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the answer to each context; what ends a run loses none that is there."""
        answers: dict[int, Prediction] = {}
        try:
            self._answer(contexts, answers, taker_of(self))
        except Overrun as overrun:
            overrun.answers = answers
            raise
        except KeyboardInterrupt:
            raise Interrupted(answers) from None
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
            # An error may stand in the place of an answer, as `Tracker` says.
            return cast("Prediction", error.with_traceback(None))

    @abstractmethod
    def _ask(self, context: Context) -> Prediction: ...

    def _waited(self, result: object) -> object:
        """Return what a call returned, once it is there."""
        return self._event_loop.result(result) if isinstance(result, Awaitable) else result

    @property
    def _event_loop(self) -> EventLoop:
        if self._loop is None:
            self._loop = event_loop()
        return self._loop


class FunctionAdapter(Adapter):
    """Asks a function that keeps nothing from call to call.

    Of one that is ``async`` several calls run at once, ``concurrency`` of them at most.
    """

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self.concurrency = CONCURRENCY
        #: Whether it has answered, and what it returned had to be waited for.
        self._is_async = False

    @abstractmethod
    def _call(self, context: Context) -> object:
        """Return what the function returns, which may have to be waited for."""

    @abstractmethod
    def _read(self, answer: object) -> Prediction:
        """Return the answer of the function as a prediction."""

    def _ask(self, context: Context) -> Prediction:
        result = self._call(context)
        found = self._read(self._waited(result))
        self._is_async = self._is_async or isinstance(result, Awaitable)
        return found

    def _answer(
        self, contexts: Sequence[Context], answers: dict[int, Prediction], take: Take
    ) -> None:
        # One that never answered is asked alone, so that what it raises ends the batch.
        while not self._is_async and len(answers) < len(contexts):
            place = len(answers)
            answers[place] = self._ask_or_malformed(contexts[place])
            take(place, answers[place])
        first = len(answers)

        def arrived(number: int, result: object) -> None:
            # An error may stand in the place of an answer, as `Tracker` says.
            answers[first + number] = cast("Prediction", self._read_or_failure(result))
            take(first + number, answers[first + number])

        jobs = [partial(self._call, context) for context in contexts[first:]]
        if jobs:
            self._event_loop.results(jobs, self.concurrency, arrived)

    def _read_or_failure(self, result: object) -> Prediction | TrackerError:
        if isinstance(result, BaseException):
            return _failure_of(result)
        try:
            return self._read(result)
        except Exception as error:  # noqa: BLE001 - the object may be one of a user's classes
            return _failure_of(error)


def _failure_of(error: BaseException) -> TrackerError:
    """Return what stands in the place of an answer."""
    if isinstance(error, TrackerError):
        return error.with_traceback(None)
    return TrackerError(describe_error(error) + raised_in(error))


class AsyncTracker(Adapter):
    """A tracker whose ``predict`` is ``async``."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the tracker has to say to the user."""
        return notes_of(self.wrapped)

    @property
    def usage(self) -> Usage | None:
        """What its answers took, if it counts that."""
        return usage_of(self.wrapped)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return what the tracker returns, not checked yet."""
        return cast("list[Prediction]", self._waited(self.wrapped.predict(contexts)))

    def _ask(self, context: Context) -> Prediction:
        return self.predict([context])[0]


def as_it_is(candidate: object) -> Tracker:
    """Return what has ``predict``; one that is ``async`` is waited for."""
    if inspect.iscoroutinefunction(getattr(candidate, "predict", None)):
        return AsyncTracker(candidate)
    return cast("Tracker", candidate)


def bounded_to(tracker: Tracker, concurrency: int) -> Tracker:
    """Return a tracker of which so many calls run at once, if it is an async function."""
    # An attribute of a user's object may run code of theirs, so it is not looked for there.
    adapter = tracker.wrapped if isinstance(tracker, Adapter) else None
    for one in (tracker, adapter):
        if isinstance(one, FunctionAdapter):
            one.concurrency = concurrency
    return tracker


def made(candidate: object) -> object:
    """Return an object of a class that needs no arguments; what is no class stays as it is."""
    if not isinstance(candidate, type):
        return candidate
    with as_user_error(
        f"the tracker class {candidate.__qualname__!r} cannot be created without arguments"
    ):
        return candidate()
