"""Address schemes. A scheme is the part of an address before ``://``, with a tracker factory.

A package adds a scheme by an entry point of the group ``pytest_dstfuzz.schemes``. A test suite
calls `register_scheme` in its ``conftest.py``. The factory may have the parameters ``address``,
``data``, ``service`` and ``settings``. Its other parameters are its own keys (``--dst-tracker
KEY=VALUE``), see `trackers.registry`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pytest_dstfuzz.config import TRACKER_KEYS, Address, Header, Settings, TrackerSettings
from pytest_dstfuzz.config.secret import TOKEN_VARIABLE
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.validation import Deadline

__all__ = ["ServiceSettings"]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Limits and headers of the requests to a service.

    Attributes:
        timeout: seconds for one attempt, from sending to the end of the answer, for each dialogue
            in the request.
        retries: attempts after the first one, if the failure may be temporary.
        concurrency: requests in flight at once.
        rate_limit: requests per second of this process, or ``None`` for no limit.
        headers: sent with every request. See `Header` for their values.
        dead_after: the service counts as dead after so many consecutive requests without an answer.
            0 means never.
        deadline: the time limit of the run.
        token: the environment variable with the token. If it is set, its value is sent as
            ``Authorization: Bearer ...``.
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
        """Return the service settings of a run's tracker."""
        same = "timeout", "retries", "concurrency", "rate_limit", "dead_after"
        taken: dict[str, Any] = {name: getattr(settings, name) for name in same}
        return cls(headers=settings.header, deadline=deadline or Deadline(), **taken)


#: The entry point group through which packages add a scheme. An entry point names its factory.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.schemes"


@dataclass(frozen=True, slots=True)
class HttpScheme:
    """A shipped scheme: ``KIND+http(s)://``, or plain ``http(s)://``.

    Plain addresses follow this package's contract. ``tracker.create(address, service, data,
    settings)`` in the subpackage ``folder`` of `trackers` returns the tracker. It needs the
    packages of the extra ``extra``. In messages, ``about`` is the name of such trackers.
    """

    kind: str
    folder: str
    extra: str = "http"
    needs: tuple[str, ...] = ("httpx",)
    about: str = "services"

    @property
    def prefix(self) -> str:
        """The prefix of its addresses."""
        return f"{self.kind}+" if self.kind else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The tracker options that apply to this scheme."""
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
#: Called as described in the module docstring. May return anything that `as_tracker` accepts.
SchemeFactory = Callable[..., object]
SCHEMES: Final[Registry[SchemeFactory]] = Registry(
    "kind of address",
    ENTRY_POINT_GROUP,
    {f"{scheme.prefix}{protocol}": scheme for scheme in _SHIPPED for protocol in ("http", "https")},
    expects="a class or a function that makes a tracker",
    fits=callable,
)


def register_scheme(name: str, factory: Callable[..., Any]) -> None:
    """Register an address scheme, for example in a ``conftest.py``.

    Args:
        name: the part before ``://``, in lower case.
        factory: returns the tracker at such an address. It may have the parameters ``address``,
            ``data``, ``service`` and ``settings``, and its own keys.

    Raises:
        UserError: a shipped scheme has this name, or the name is invalid.
    """
    SCHEMES.register(name, factory)


def option_owners() -> dict[str, tuple[HttpScheme, ...]]:
    """Return the options that apply to some schemes only, each with its schemes."""
    return {
        item.name: tuple(scheme for scheme in _SHIPPED if scheme.kind in item.kinds)
        for item in TRACKER_KEYS
        if {*item.kinds} != {scheme.kind for scheme in _SHIPPED}
    }
