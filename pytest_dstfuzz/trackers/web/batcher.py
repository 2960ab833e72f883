"""Puts requests that wait together into batches: a tracker is asked in one thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeAlias

from pytest_dstfuzz.dialogue.types import Context
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.checks import as_list, check_prediction, describe_error
from pytest_dstfuzz.trackers.protocol import Prediction, Tracker

#: What a tracker may answer to a context.
Answered: TypeAlias = Prediction | Mapping[str, str]
_Item: TypeAlias = tuple[Context, "Future[Answered]"]

#: How long a batch that has room waits for its next request, as a share of what the batch
#: before took: where more callers are expected, and where all of them are there. A batch of
#: one costs most trackers half of what a full one does, so that a little waiting pays.
_FOR_EXPECTED: Final = 0.5
_FOR_OTHERS: Final = 0.1
#: Seconds that it waits at most: no caller takes longer to ask again.
_LONGEST_PAUSE: Final = 0.05


class Batcher:
    """Asks a tracker on behalf of many, the waiting ones together.

    Args:
        tracker: that is asked; from one thread only.
        batch_size: contexts of one batch at most.
    """

    def __init__(self, tracker: Tracker, batch_size: int) -> None:
        self._tracker = tracker
        self._batch_size = batch_size
        self._waiting: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._callers = 0
        #: Seconds that the batch before took.
        self._took = 0.0
        self._thread = threading.Thread(target=self._run, name="dstfuzz-tracker", daemon=True)
        self._thread.start()

    def submit(self, context: Context) -> Future[Answered]:
        """Ask for one context; a `TrackerError` comes of a failure of the tracker."""
        future: Future[Answered] = Future()
        self._waiting.put((context, future))
        return future

    def close(self) -> None:
        """Answer what was asked for, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._gather()
            started = time.monotonic()
            # Contexts of similar length are what trackers pad least.
            self._answer(sorted(batch, key=lambda item: item[0].size()))
            # Those who were answered will ask again, and others have come meanwhile.
            self._callers = len(batch) + self._waiting.qsize()
            self._took = time.monotonic() - started

    def _gather(self) -> tuple[list[_Item], bool]:
        """Wait for requests; return those of one batch, and whether they are the last."""
        batch: list[_Item] = []
        item = self._waiting.get()
        while item is not None:
            # A caller who has gone needs no answer.
            if item[1].set_running_or_notify_cancel():
                batch.append(item)
            if len(batch) == self._batch_size:
                return batch, False
            try:
                # Whoever was answered just now asks again at once, if at all: without waiting
                # for them, those and the others would for ever take turns in half batches.
                share = _FOR_EXPECTED if len(batch) < self._callers else _FOR_OTHERS
                item = self._waiting.get(timeout=min(share * self._took, _LONGEST_PAUSE))
            except queue.Empty:
                return batch, False
        return batch, True

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answer a batch; where the tracker fails as a whole, each context for itself."""
        if not batch:
            return
        try:
            answers = as_list(self._tracker.predict([context for context, _ in batch]), len(batch))
        except BaseException as error:  # noqa: BLE001 - the thread must live on, whatever it is
            if len(batch) > 1:
                for item in batch:
                    self._answer([item])
            else:
                batch[0][1].set_exception(TrackerError(describe_error(error)))
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            _settle(future, answer)


def _settle(future: Future[Answered], answer: object) -> None:
    try:
        # For its complaints alone: whoever asked normalises the state as its data wants it.
        check_prediction(answer)
    except TrackerError as error:
        future.set_exception(error)
    else:
        assert isinstance(answer, Prediction | Mapping)  # noqa: S101 - checked just now
        future.set_result(answer)
