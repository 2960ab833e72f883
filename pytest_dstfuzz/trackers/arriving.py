"""Answers of a batch that are taken as they come, before the whole batch is answered.

A batch of a slow tracker may take longer than a run is allowed to: whoever kills the run, such as
pytest-timeout, must not cost the answers that were there. Whoever asks a tracker says who takes
them, and a tracker that answers one context after the other hands each on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

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
