"""Checks after each batch that a service still has the version that it had before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pytest_dstfuzz.errors import ChangedTrackerError, GivenUpError, TrackerError, UserError
from pytest_dstfuzz.trackers.adapting import Take, taker_of
from pytest_dstfuzz.trackers.tracker import BatchInterrupt
from pytest_dstfuzz.trackers.web.transport import Transport

T = TypeVar("T")


@dataclass(frozen=True)
class VersionCheck:
    """The version of a service, and how to read it again."""

    transport: Transport
    #: The version before the batch; ``None`` if the service declares none, so nothing is checked.
    version: object
    #: Requests the version. It takes whether to request it even after the end of the run.
    read: Callable[[bool], object]
    #: Words for messages: "service" and "version", and the version with its article.
    who: str
    what: str
    named: str

    def taker_of(self, tracker: object) -> Take | None:
        """Return the callback for early answers, or ``None``.

        Answers that may be of another version count only after the batch.
        """
        return taker_of(tracker) if self.version is None else None

    def checked(self, ask: Callable[[], T]) -> T:
        """Return the answers to a batch.

        Raises:
            ChangedTrackerError: the service has another version than before, or declares none.
            GivenUpError: the run is over, and the version is unknown.
            BatchInterrupt: Ctrl-C was pressed. The exception has the answers so far, unless the
                version has changed.
        """
        try:
            answers = ask()
        except BatchInterrupt as stopped:
            try:
                self._refuse_another(late=True)
            except GivenUpError:
                raise BatchInterrupt({}) from None
            raise stopped from None
        self._refuse_another(late=bool(self.transport.over))
        return answers

    def _refuse_another(self, *, late: bool) -> None:
        if self.version is None:
            return
        try:
            version = self.read(late)
        except (TrackerError, UserError) as error:
            if over := self.transport.over:
                if not late:  # The time has ended meanwhile.
                    self._refuse_another(late=True)
                    return
                raise GivenUpError(over) from None
            raise ChangedTrackerError(
                f"it is unknown whether the {self.who} still has {self.named} {self.version}, so "
                f"its last answers do not count: {error}"
            ) from None
        if version != self.version:
            raise ChangedTrackerError(
                f"the {self.who} at {self.transport.address} changed its {self.what} from "
                f"{self.version} to {version or 'none'} during the run"
            )
