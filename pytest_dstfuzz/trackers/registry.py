"""Trackers by name: registered ones, ``package.module:attribute``, and addresses of services."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, cast

from pytest_dstfuzz.config import Address, Settings, revealed
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import (
    GivenUpError,
    OutOfReachError,
    UserError,
    message_of,
    nearest,
    needs_extra,
    unknown_name,
)
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.deadline import Deadline
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.validation import passes_through, raised_at
from pytest_dstfuzz.trackers.web.settings import ServiceSettings

#: Packages register a tracker under this group as a factory that is called as
#: ``factory(checkpoint=..., device=..., batch_size=...)``.
ENTRY_POINT_GROUP = "pytest_dstfuzz.trackers"

_DEFAULT_DEVICE = "cpu"


class _Adapter(NamedTuple):
    """Who makes the tracker of an address.

    Attributes:
        module: whose ``create(url, service, data, settings)`` returns it.
        extra: that the adapter needs.
        needs: packages of that extra.
    """

    module: str
    extra: str
    needs: tuple[str, ...] = ("httpx", "httpcore")


#: What comes before ``+http(s)`` in an address -> the adapter; nothing is the own contract.
_ADAPTERS = {
    "": _Adapter("pytest_dstfuzz.trackers.web.tracker", "http"),
    "rasa": _Adapter("pytest_dstfuzz.trackers.rasa", "http"),
    "openai": _Adapter("pytest_dstfuzz.trackers.chat", "chat", ("httpx", "httpcore", "jinja2")),
}
_SCHEMES = {
    f"{kind}+{protocol}" if kind else protocol: kind
    for kind in _ADAPTERS
    for protocol in ("http", "https")
}

#: Options that one adapter alone takes -> how its addresses begin, and what they are for.
_OPTIONS_OF_ONE = {
    "slot_map": ("rasa+", "the slots of a Rasa bot"),
    **dict.fromkeys(("service_model", "prompt", "prices"), ("openai+", "chat models")),
}


def tracker_for(
    settings: Settings,
    data: DialogueSet,
    search_path: tuple[str, ...] = (),
    deadline: Deadline | None = None,
) -> Tracker:
    """Return the tracker that settings name, for the dialogues that it is asked about.

    Args:
        settings: of the run; its ``model`` is a name or an address.
        data: the dialogues, whose slots and normalisation an adapter may need.
        search_path: see `resolve_tracker`.
        deadline: when a service is not waited for any more; ``None`` = there is none.

    Raises:
        OutOfReachError: a service does not say what it is in time.
        UserError: no tracker is named, there is no such one, or it cannot be made.
    """
    if settings.model is None:
        raise UserError(
            "no tracker is named: give a registered name such as 'trade', "
            "package.module:attribute, or the address of a service"
        )
    name = revealed(settings.model)
    for option, (prefix, what) in _OPTIONS_OF_ONE.items():
        if getattr(settings, option) is not None and not name.lower().startswith(prefix):
            shown = f"--dst-{option.replace('_', '-')}"
            raise UserError(
                f"{shown} is for {what} ({prefix}http://...), not for {settings.model!r}"
            )
    if "://" in name:
        # No argument of any call holds credentials: pytest --full-trace shows arguments.
        return _at_address(Address(name), settings, data, deadline)
    return resolve_tracker(
        name,
        checkpoint=settings.checkpoint,
        device=settings.device,
        batch_size=settings.batch_size,
        normalisation=data.normalisation,
        search_path=search_path,
    )


def _at_address(
    address: Address, settings: Settings, data: DialogueSet, deadline: Deadline | None
) -> Tracker:
    """Return the tracker of a service."""
    scheme, _, rest = address.full.partition("://")
    kind = _SCHEMES.get(scheme.lower())
    if kind is None:
        raise unknown_name("kind of address", f"{scheme}://", (f"{s}://" for s in _SCHEMES))
    if settings.checkpoint is not None or settings.device != _DEFAULT_DEVICE:
        raise UserError(
            f"checkpoint and device are for registered trackers; the service at {address} "
            "chooses them itself"
        )
    adapter = _ADAPTERS[kind]
    with needs_extra(f"a tracker at {scheme}://...", adapter.extra, *adapter.needs):
        create = importlib.import_module(adapter.module).create
    url = Address(f"{scheme.lower().removeprefix(f'{kind}+')}://{rest}")
    service = ServiceSettings.of(settings, deadline)
    try:
        return cast("Tracker", create(url, service, data, settings))
    except GivenUpError as error:
        raise OutOfReachError(f"the tracker was not tested: {error}") from error


def resolve_tracker(
    name: str,
    *,
    checkpoint: str | None = None,
    device: str = _DEFAULT_DEVICE,
    batch_size: int = 64,
    normalisation: str = "plain",
    search_path: tuple[str, ...] = (),
) -> Tracker:
    """Return the tracker called ``name``.

    Args:
        name: a registered name, or ``package.module:attribute``: a tracker, a class
            that needs no arguments, or anything else that `as_tracker` takes.
        checkpoint: weights for a registered tracker instead of its own.
        device: where a registered tracker computes.
        batch_size: how many contexts it will be asked for at once.
        normalisation: see `as_tracker`.
        search_path: folders to import modules from; the working folder by default.

    Raises:
        UserError: there is no such tracker, or it cannot be made.
    """
    if ":" in name:
        if checkpoint is not None or device != _DEFAULT_DEVICE:
            raise UserError(
                f"checkpoint and device are for registered trackers; {name!r} is an object of "
                "your own, which chooses them itself"
            )
        return as_tracker(
            _load_attribute(name, search_path or (str(Path.cwd()),)), normalisation=normalisation
        )
    points = {point.name: point for point in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    if name not in points:
        error = unknown_name("tracker", name, points)
        raise UserError(f"{error} Your own tracker is named as package.module:attribute.")
    try:
        made = points[name].load()(checkpoint=checkpoint, device=device, batch_size=batch_size)
    except BaseException as error:
        if isinstance(error, UserError) or passes_through(error):
            raise
        raise UserError(f"the tracker {name!r} cannot be created: {_cause(error)}") from error
    return as_tracker(made, normalisation=normalisation)


def _load_attribute(name: str, search_path: tuple[str, ...]) -> object:
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UserError(f"{name!r} is no tracker name: write package.module:attribute")
    # Kept on the path: a tracker may import more of its package when it is first used.
    sys.path[:0] = [folder for folder in search_path if folder not in sys.path]
    target: object = _import_module(module_name, name, search_path)
    for part in path.split("."):
        if not hasattr(target, part):
            public = [candidate for candidate in dir(target) if not candidate.startswith("_")]
            guess = nearest(part, public)
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise UserError(f"{module_name!r} has no attribute {path!r}.{hint}")
        target = getattr(target, part)
    return target


def _import_module(module_name: str, tracker: str, search_path: tuple[str, ...]) -> object:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            file, _, attribute = tracker.partition(":")
            meant = f"{file.removesuffix('.py').replace('/', '.')}:{attribute}"
            raise UserError(
                f"there is no module {missing!r} for the tracker {tracker!r} "
                + (
                    f"(a module, without .py: write {meant!r})"
                    if file.endswith(".py")
                    else f"(looked in {', '.join(search_path)} and on Python's path)"
                )
            ) from None
        raise UserError(
            f"the module {module_name!r} cannot be imported: {_cause(error)}"
        ) from error
    except BaseException as error:
        if passes_through(error):
            raise
        raise UserError(
            f"the module {module_name!r} cannot be imported: {_cause(error)}"
        ) from error


def _cause(error: BaseException) -> str:
    """Return type, message and innermost place of an exception in the user's code."""
    return f"{type(error).__name__}: {message_of(error)}{raised_at(error)}"
