"""Counts what the service says that answers took, from all threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pytest_dstfuzz.trackers.tracker import Usage


class Meter:
    """Adds up tokens, and what they cost.

    Args:
        prices: money for a million tokens of prompts, and of answers; ``None`` = not known.
    """

    def __init__(self, prices: tuple[float, float] | None = None) -> None:
        self._prices = prices
        self._lock = threading.Lock()
        self._answers = self._uncounted = self._prompt = self._completion = 0

    def add(self, counts: object) -> None:
        """Count one answer.

        Args:
            counts: its ``usage`` (``prompt_tokens``, ``completion_tokens``); anything else is
                an answer for which the service gave no counts.
        """
        prompt, completion = _tokens(counts, "prompt_tokens"), _tokens(counts, "completion_tokens")
        with self._lock:
            self._answers += 1
            if prompt is None or completion is None:
                self._uncounted += 1
            else:
                self._prompt += prompt
                self._completion += completion

    @property
    def usage(self) -> Usage:
        """What was counted so far."""
        with self._lock:
            cost = None
            if self._prices is not None:
                per_prompt, per_answer = self._prices
                cost = (self._prompt * per_prompt + self._completion * per_answer) / 1e6
            return Usage(self._answers, self._uncounted, self._prompt, self._completion, cost)


def _tokens(counts: object, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    # True is an int to Python, but it is no number of tokens.
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
