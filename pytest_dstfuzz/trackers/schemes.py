"""Kinds of address: what comes before ``://``, and who makes the tracker behind it.

A package brings one by an entry point of the group ``pytest_dstfuzz.schemes``, a suite by
`register_scheme` in its ``conftest.py``: a factory, called with those of ``address``, ``data``,
``service`` and ``settings`` that it names; what else it names are keys of its own
(``--dst-tracker KEY=VALUE``), see `trackers.registry`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pytest_dstfuzz.config import TRACKER_KEYS, Address, Header, Settings, TrackerSettings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.validation import Deadline

__all__ = ["ServiceSettings"]

#: The environment variable of the token of the tested system.
TOKEN_VARIABLE: Final = "DSTFUZZ_TOKEN"  # noqa: S105 - the name of a variable, no token


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
        token: the environment variable whose value, where it has one, is sent as ``Authorization:
            Bearer ...``.
    """

    timeout: float = 30.0
    retries: int = 4
    concurrency: int = 16
    rate_limit: float | None = None
    headers: tuple[Header, ...] = ()
    dead_after: int = 20
    deadline: Deadline = field(default_factory=Deadline)
    token: str = TOKEN_VARIABLE

    @classmethod
    def of(cls, settings: TrackerSettings, deadline: Deadline | None = None) -> ServiceSettings:
        """Take from the settings of a run what concerns the service."""
        same = "timeout", "retries", "concurrency", "rate_limit", "dead_after"
        taken: dict[str, Any] = {name: getattr(settings, name) for name in same}
        return cls(headers=settings.header, deadline=deadline or Deadline(), **taken)


#: Packages bring a kind of address by an entry point of this group that names its factory.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.schemes"


@dataclass(frozen=True, slots=True)
class HttpScheme:
    """A kind of address that ships: ``KIND+http(s)://``, or ``http(s)://`` for the own contract.

    In ``folder`` of `trackers`, ``tracker.create(address, service, data, settings)`` returns the
    tracker; it needs the packages of ``extra``. Messages say ``about`` whom its own options are.
    """

    kind: str
    folder: str
    extra: str = "http"
    needs: tuple[str, ...] = ("httpx",)
    about: str = "services"

    @property
    def prefix(self) -> str:
        """How its addresses begin."""
        return f"{self.kind}+" if self.kind else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The options that say how it is asked."""
        return tuple(item.name for item in TRACKER_KEYS if self.kind in item.kinds)

    def __call__(
        self, address: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
    ) -> Tracker:
        """Return the tracker at an address."""
        scheme, _, rest = address.full.partition("://")
        with needs_extra(f"a tracker at {scheme}://...", self.extra, *self.needs):
            module = importlib.import_module(f"pytest_dstfuzz.trackers.{self.folder}.tracker")
        url = Address(f"{scheme.lower().removeprefix(self.prefix)}://{rest}")
        return cast("Tracker", module.create(url, service, data, settings))


_CHAT: Final = ("httpx", "jinja2")
_SHIPPED: Final = (
    HttpScheme("", "web"),
    HttpScheme("rasa", "rasa", about="the slots of a Rasa bot"),
    HttpScheme("openai", "chat", "chat", _CHAT, about="chat models"),
    HttpScheme("anthropic", "anthropic", "chat", _CHAT, about="chat models"),
)
#: Called as said above; whatever `as_tracker` takes may be returned.
SchemeFactory = Callable[..., object]
SCHEMES: Final[Registry[SchemeFactory]] = Registry(
    "kind of address",
    ENTRY_POINT_GROUP,
    {f"{scheme.prefix}{protocol}": scheme for scheme in _SHIPPED for protocol in ("http", "https")},
)


def register_scheme(name: str, factory: Callable[..., Any]) -> None:
    """Make a kind of address known, such as in a ``conftest.py``.

    Args:
        name: what comes before ``://``, in lower case.
        factory: of the tracker at such an address: called with those of ``address``, ``data``,
            ``service`` and ``settings`` that it names, and with its own keys.

    Raises:
        UserError: one that ships has this name, or it is none.
    """
    SCHEMES.register(name, factory)


def option_owners() -> dict[str, tuple[HttpScheme, ...]]:
    """Return the options that are for some kinds of address alone, with those kinds."""
    return {
        item.name: tuple(scheme for scheme in _SHIPPED if scheme.kind in item.kinds)
        for item in TRACKER_KEYS
        if {*item.kinds} != {scheme.kind for scheme in _SHIPPED}
    }
