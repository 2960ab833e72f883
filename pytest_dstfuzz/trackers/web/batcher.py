"""Puts requests that wait together into batches: a tracker is asked in one thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.checks import as_list, check_prediction, describe_error
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.web.group import Answered

#: How long a batch that has room waits for its next request, as a share of what the batch
#: before took: where more callers are expected, and where all of them are there. A batch of
#: one costs most trackers half of what a full one does, so that a little waiting pays.
_FOR_EXPECTED: Final = 0.5
_FOR_OTHERS: Final = 0.1
#: Seconds that it waits at most: those who ask together come within a few milliseconds.
_LONGEST_PAUSE: Final = 0.02


class _Request:
    """The contexts of one request, and their answers as far as they are there."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self.future: Future[list[Answered]] = Future()
        self._answers: dict[int, Answered] = {}

    def settle(self, place: int, answer: Answered) -> None:
        """Keep an answer; the last one to come ends the request."""
        self._answers[place] = answer
        if len(self._answers) == len(self.contexts):
            self.future.set_result([self._answers[here] for here in range(len(self.contexts))])


class _Item(NamedTuple):
    """One context of a request."""

    request: _Request
    place: int

    @property
    def context(self) -> Context:
        return self.request.contexts[self.place]


class Batcher:
    """Asks a tracker on behalf of many, the waiting ones together.

    Args:
        tracker: that is asked; from one thread only.
        batch_size: contexts of one batch at most.
    """

    def __init__(self, tracker: Tracker, batch_size: int) -> None:
        self._tracker = tracker
        self._batch_size = batch_size
        self._waiting: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        #: Contexts that the batch before had no room for.
        self._left: list[_Item] = []
        self._ended = False
        #: Requests that the next batch probably has.
        self._expected = 0
        #: Seconds that the batch before took.
        self._took = 0.0
        self._thread = threading.Thread(target=self._run, name="dstfuzz-tracker", daemon=True)
        self._thread.start()

    def submit(self, contexts: Sequence[Context]) -> Future[list[Answered]]:
        """Ask for the contexts of one request; where the tracker fails, its error is an answer."""
        request = _Request(contexts)
        self._waiting.put(request)
        return request.future

    def close(self) -> None:
        """Answer what was asked for, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while not self._ended or self._left:
            batch, requests = self._gather()
            started = time.monotonic()
            # Contexts of similar length are what trackers pad least.
            self._answer(sorted(batch, key=lambda item: item.context.size()))
            # Those who were answered will ask again, and others have come meanwhile.
            self._expected = requests + self._waiting.qsize()
            self._took = time.monotonic() - started

    def _gather(self) -> tuple[list[_Item], int]:
        """Wait for requests; return the contexts of one batch, and how many requests came."""
        batch, requests = self._left, 0
        while len(batch) < self._batch_size and not self._ended:
            # Whoever was answered just now asks again at once, if at all: without waiting
            # for them, those and the others would for ever take turns in half batches.
            share = _FOR_EXPECTED if requests < self._expected else _FOR_OTHERS
            pause = min(share * self._took, _LONGEST_PAUSE) if batch else None
            try:
                request = self._waiting.get(timeout=pause)
            except queue.Empty:
                break
            if request is None:
                self._ended = True
            # A caller who has gone needs no answer.
            elif request.future.set_running_or_notify_cancel():
                batch += [_Item(request, place) for place in range(len(request.contexts))]
                requests += 1
        self._left = batch[self._batch_size :]
        return batch[: self._batch_size], requests

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answer a batch; where the tracker fails as a whole, each context for itself."""
        if not batch:
            return
        try:
            answers = as_list(self._tracker.predict([item.context for item in batch]), len(batch))
        except BaseException as error:  # noqa: BLE001 - the thread must live on, whatever it is
            if len(batch) > 1:
                for item in batch:
                    self._answer([item])
            else:
                (item,) = batch
                item.request.settle(item.place, _failure(error))
            return
        for item, answer in zip(batch, answers, strict=True):
            item.request.settle(item.place, _checked(answer))


def _checked(answer: object) -> Answered:
    try:
        # For its complaints alone: whoever asked normalises the state as its data wants it.
        check_prediction(answer)
    except TrackerError as error:
        return _failure(error)
    assert isinstance(answer, Prediction | Mapping)  # noqa: S101 - checked just now
    return answer


def _failure(error: BaseException) -> TrackerError:
    return TrackerError(f"the tracker failed: {describe_error(error)}")
