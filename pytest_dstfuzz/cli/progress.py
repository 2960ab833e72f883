"""Progress on the error stream: one line that is rewritten, or a line now and then."""

from __future__ import annotations

import sys
import time

from pytest_dstfuzz.config.rates import percent

#: Seconds between lines where the stream is no terminal.
_PAUSE = 10.0


class ProgressLine:
    """Shows how far a command is in what it counts, without a trace in its output."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Show ``done`` of ``total``, when it is time to."""
        now = time.monotonic()
        if not self._terminal and now - self._last < _PAUSE:
            return
        self._last = now
        share = f" of {total:,} ({percent(done / total, 0)})" if total else ""
        text = f"{done:,}{share} {self._what}"
        print(f"\r{text}\x1b[K" if self._terminal else text, end="", file=sys.stderr)
        print(end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal's line clean."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
