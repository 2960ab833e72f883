"""A tracker that is known by its fingerprint before it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import GivenUpError, UserError
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker


class UnloadedTracker:
    """Stands for a tracker until it is asked for something.

    Where all answers are kept from an earlier run it never is, and neither its weights nor their
    library, which takes seconds, are loaded.
    """

    def __init__(self, fingerprint: str, load: Callable[[], Tracker]) -> None:
        """Take what tells the tracker from others, and what makes it."""
        self.fingerprint = fingerprint
        self._load = load
        self._loaded: Tracker | None = None

    def load(self) -> Tracker:
        """Return the tracker, made once; a `UserError` where that cannot be done."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        """Let the tracker predict; a `GivenUpError` where it cannot be loaded any more.

        Whoever tests a tracker loads it before: of one that was tested and does not load, nothing
        more is to be expected.
        """
        try:
            tracker = self.load()
        except UserError as error:
            raise GivenUpError(f"the tracker could be loaded no more: {error}") from error
        return tracker.predict(contexts)
