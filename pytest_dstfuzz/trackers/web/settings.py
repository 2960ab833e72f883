"""How a service is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_dstfuzz.config import Header, TrackerSettings
from pytest_dstfuzz.trackers.deadline import Deadline


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How often, how fast and with which headers a service is asked.

    Attributes:
        timeout: seconds that one attempt may take, from sending to the end of the answer, for
            each dialogue that it asks about.
        retries: attempts after the first one, where the failure may pass.
        concurrency: requests in flight at once.
        rate_limit: requests a second of this process; ``None`` = no limit.
        headers: sent with every request; see `Header` on their values.
        dead_after: requests in a row that nobody answered, after which the service is taken for
            dead; 0 = never.
        deadline: when nobody waits any more.
    """

    timeout: float = 30.0
    retries: int = 4
    concurrency: int = 16
    rate_limit: float | None = None
    headers: tuple[Header, ...] = ()
    dead_after: int = 20
    deadline: Deadline = field(default_factory=Deadline)

    @classmethod
    def of(cls, settings: TrackerSettings, deadline: Deadline | None = None) -> ServiceSettings:
        """Take from the settings of a run what concerns the service.

        Args:
            settings: of the run.
            deadline: of the run; ``None`` = it has none.
        """
        return cls(
            settings.timeout,
            settings.retries,
            settings.concurrency,
            settings.rate_limit,
            settings.header,
            settings.dead_after,
            deadline or Deadline(),
        )
