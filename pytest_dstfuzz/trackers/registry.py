"""Trackers by name: registered ones, ``package.module:attribute``, and addresses of services."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, cast

from pytest_dstfuzz.config import KEYS, Address, Settings, TrackerSettings, revealed
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.outcome import History, OutcomeKind
from pytest_dstfuzz.errors import (
    DstFuzzError,
    GivenUpError,
    OutOfReachError,
    UserError,
    unknown_name,
)
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.adapting import bounded_to
from pytest_dstfuzz.trackers.attributes import load_attribute
from pytest_dstfuzz.trackers.deadline import Deadline
from pytest_dstfuzz.trackers.factories import call_factory, parameters_of, takes
from pytest_dstfuzz.trackers.schemes import SCHEMES, HttpScheme, ServiceSettings, option_owners
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.unloaded import UnloadedTracker
from pytest_dstfuzz.trackers.validation import as_user_error, cause_of, passes_through
from pytest_dstfuzz.trackers.web.secrets import secrets_of

__all__ = ["TrackerMaker", "tracker_for"]

#: Packages bring a tracker by an entry point of this group that names its factory.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.trackers"
#: Called with those of ``checkpoint``, ``device`` and ``batch_size`` that it names, and with its
#: own keys, see `trackers.factories`. Whatever `as_tracker` takes may be returned.
TrackerFactory = Callable[..., object]


class TrackerMaker(ABC):
    """A factory of trackers that knows something of them before it makes one.

    A package registers an instance in the place of a plain factory.
    """

    __call__: TrackerFactory

    def refusal(self, outcome: OutcomeKind) -> str:  # noqa: ARG002 - for those that refuse some
        """Say why a kind of answer cannot be tested of its trackers; ``""`` if it can."""
        return ""

    def fingerprint(self, checkpoint: str | None, device: str) -> str:  # noqa: ARG002 - likewise
        """Return that of the tracker it would make; ``""`` if it is not known before.

        A tracker with one is made when it is first asked for what no cache knows.
        """
        return ""


TRACKERS: Final[Registry[TrackerFactory]] = Registry("tracker", ENTRY_POINT_GROUP)
_DEFAULT_DEVICE: Final = "cpu"
#: Kinds of address behind which a belief state is asked for, and nothing else.
_SLOTS_ALONE: Final = ("rasa+http", "rasa+https")


def register_tracker(name: str, factory: TrackerFactory) -> None:
    """Make a tracker known by a name, such as in a ``conftest.py``.

    Args:
        name: that the option ``model`` takes.
        factory: a class or a function that returns the tracker: called with those of
            ``checkpoint``, ``device`` and ``batch_size`` that it names, and with its own keys.

    Raises:
        UserError: one that ships has this name, or it is none.
    """
    TRACKERS.register(name, factory)


def tracker_for(
    settings: Settings,
    data: DialogueSet,
    search_path: tuple[str, ...] = (),
    deadline: Deadline | None = None,
    *,
    later: bool = False,
) -> Tracker:
    """Return the tracker that settings name, for the dialogues that it is asked about.

    Their ``model`` is a name or an address; an adapter may need the slots and the normalisation
    of the data. A service is not waited for after the deadline. ``later``: a shipped network may be
    an `UnloadedTracker`.
    """
    if settings.tracker.model is None:
        raise UserError(
            "no tracker is named: give a registered name such as 'trade', "
            "package.module:attribute, or the address of a service"
        )
    name = revealed(settings.tracker.model)
    for option, owners in option_owners().items():
        given = settings.option(option) not in (None, False)
        if given and not name.lower().startswith(tuple(owner.prefix for owner in owners)):
            forms = " or ".join(f"{owner.prefix}http://..." for owner in owners)
            raise UserError(
                f"--dst-tracker {option.replace('_', '-')} is for {owners[0].about} "
                f"({forms}), not for {settings.tracker.model!r}"
            )
    if "://" in name:
        # No argument of any call holds credentials: pytest --full-trace shows arguments.
        return _at_address(Address(name), settings, data, deadline)
    found = resolve_tracker(
        name,
        checkpoint=settings.tracker.checkpoint,
        device=settings.tracker.device,
        batch_size=settings.tracker.batch_size,
        normalisation=data.normalisation,
        outcome=settings.reply.outcome,
        history=settings.reply.history,
        search_path=search_path,
        keys=_keys(settings.tracker, TRACKERS.find(name) if name in TRACKERS.names else None),
        later=later,
    )
    return bounded_to(found, settings.tracker.concurrency)


def _at_address(
    address: Address, settings: Settings, data: DialogueSet, deadline: Deadline | None
) -> Tracker:
    """Return the tracker of a service."""
    scheme, outcome = address.full.partition("://")[0].lower(), settings.reply.outcome
    if scheme not in SCHEMES.names:
        raise unknown_name("kind of address", f"{scheme}://", (f"{s}://" for s in SCHEMES.names))
    if settings.tracker.checkpoint is not None or settings.tracker.device != _DEFAULT_DEVICE:
        raise UserError(
            f"checkpoint and device are for registered trackers; the service at {address} "
            "chooses them itself"
        )
    if outcome != "state" and scheme in _SLOTS_ALONE:
        says = "says" if outcome == "reply" else "calls"
        raise UserError(
            f"of what is behind {scheme}://... the slots are tested, not what it {says}: leave "
            f"--dst-outcome={outcome} out, or ask it in a function of your own that takes messages "
            "and returns the reply"
        )
    if outcome == "state" and settings.tracker.opening != TrackerSettings().opening:
        raise UserError(
            "--dst-tracker opening is for systems that reply: add --dst-outcome=reply, or leave it "
            "out"
        )
    service = ServiceSettings.of(settings.tracker, deadline)
    offered = {"address": address, "data": data, "service": service, "settings": settings}
    factory = SCHEMES.find(scheme)
    keys = _keys(settings.tracker, factory)
    try:
        made = call_factory(factory, f"the tracker at {address}", offered, keys)
    except GivenUpError as error:
        raise OutOfReachError(f"the tracker was not tested: {error}") from error
    except BaseException as error:
        if isinstance(error, DstFuzzError) or passes_through(error):
            raise
        # Not from the error: its message may hold what the address keeps to itself.
        cause = cause_of(error).replace(address.full, address)
        with suppress(ValueError):  # Of what is no address there are no parts to look for.
            cause = secrets_of(address.full, keys.values()).redact(cause)
        raise UserError(f"the tracker at {address} cannot be made: {cause}") from None
    return as_tracker(
        made, normalisation=data.normalisation, outcome=outcome, history=settings.reply.history
    )


def _keys(settings: TrackerSettings, factory: Callable[..., object] | None) -> dict[str, str]:
    """Return the keys that are for a factory alone, as the user wrote them.

    A factory of others may have a parameter that is called as a key of the shipped services.
    """
    found = {key.name: key.read() for key in settings.tracker}
    if not isinstance(factory, HttpScheme | None):
        plain = TrackerSettings()
        for name in KEYS:
            value = getattr(settings, name)
            if value != getattr(plain, name) and name in parameters_of(factory):
                found[name] = str(value)
    return found


def resolve_tracker(  # noqa: PLR0913 - all but the first are given by their names
    name: str,
    *,
    checkpoint: str | None = None,
    device: str = _DEFAULT_DEVICE,
    batch_size: int = 64,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
    history: History = "recorded",
    search_path: tuple[str, ...] = (),
    keys: Mapping[str, str] | None = None,
    later: bool = False,
) -> Tracker:
    """Return the tracker called ``name``: a registered one, or ``package.module:attribute``.

    An attribute is anything that `as_tracker` takes, to which ``normalisation``, ``outcome`` and
    ``history`` go; its module is looked for in ``search_path``, by default the working folder. All
    else is for the factory of a registered tracker, see `call_factory`, and for ``later`` see
    `tracker_for`.
    """
    adapted = partial(as_tracker, normalisation=normalisation, outcome=outcome, history=history)
    if ":" in name:
        if checkpoint is not None or device != _DEFAULT_DEVICE:
            raise UserError(
                f"checkpoint and device are for registered trackers; {name!r} is an object of "
                "your own, which chooses them itself"
            )
        if keys:
            raise UserError(
                f"{name!r} is an object of your own, which takes no keys "
                f"({', '.join(keys)}): register a factory under a name, see register_tracker"
            )
        return adapted(load_attribute(name, search_path, "tracker"))
    if name not in TRACKERS.names:
        error = unknown_name("tracker", name, TRACKERS.names)
        raise UserError(f"{error} Your own tracker is named as package.module:attribute.")
    factory, who = TRACKERS.find(name), f"the tracker {name!r}"
    if isinstance(factory, TrackerMaker) and (why := factory.refusal(outcome)):
        raise UserError(why)
    offered = {"checkpoint": checkpoint, "device": device, "batch_size": batch_size}
    for option, chosen in (("checkpoint", checkpoint), ("device", device != _DEFAULT_DEVICE)):
        if chosen and not takes(factory, option):
            raise UserError(f"{who} takes no {option}: leave the option {option} out")
    make = partial(call_factory, factory, who, offered, keys or {})
    with as_user_error(f"{who} cannot be created"):
        fingerprint = ""
        if later and not keys and isinstance(factory, TrackerMaker):
            fingerprint = factory.fingerprint(checkpoint, device)
        made = UnloadedTracker(fingerprint, partial(_made, make, who)) if fingerprint else make()
    return adapted(made)


def _made(make: Callable[[], object], who: str) -> Tracker:
    with as_user_error(f"{who} cannot be created"):
        return cast("Tracker", make())
