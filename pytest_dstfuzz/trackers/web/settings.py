"""How a service is asked."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dstfuzz.config import Header, Settings


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
    """

    timeout: float = 30.0
    retries: int = 4
    concurrency: int = 16
    rate_limit: float | None = None
    headers: tuple[Header, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> ServiceSettings:
        """Take from the settings of a run what concerns the service."""
        return cls(
            settings.timeout,
            settings.retries,
            settings.concurrency,
            settings.rate_limit,
            settings.header,
        )
