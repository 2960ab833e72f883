"""Finds trackers by name, attribute or address."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Final, cast

from pytest_dstfuzz.config import (
    OPTIONS,
    TRACKER_KEYS,
    Address,
    Settings,
    TrackerSettings,
    mask_credentials,
    reveal_credentials,
)
from pytest_dstfuzz.config.identity import decides
from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, History, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import (
    DstFuzzError,
    GivenUpError,
    OutOfReachError,
    UserError,
    did_you_mean,
    passes_through,
    unknown_name,
)
from pytest_dstfuzz.own_code import import_own
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.trackers.adapters import as_tracker, bound_concurrency
from pytest_dstfuzz.trackers.schemes import SCHEMES, HttpScheme, ServiceSettings, option_owners
from pytest_dstfuzz.trackers.tracker import Tracker, UnloadedTracker, read_parameters
from pytest_dstfuzz.trackers.validation import Deadline, as_user_error, cause_of
from pytest_dstfuzz.trackers.web.secrets import secrets_of

__all__ = ["TrackerMaker", "tracker_for"]


def load_attribute(name: str, search_path: tuple[str, ...], kind: str) -> object:
    """Import an attribute of a module.

    Args:
        name: ``package.module:attribute``. The attribute may be a dotted path.
        search_path: folders, which stay on Python's path. Empty means the working directory.
        kind: the noun for messages, such as ``tracker``.

    Raises:
        UserError: there is no such module or attribute, or the module cannot be imported.
    """
    search_path = search_path or (str(Path.cwd()),)
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UserError(f"{name!r} is not a valid {kind}: write package.module:attribute")
    # The folders stay on the path, because the module may import more of its package later.
    sys.path[:0] = [folder for folder in search_path if folder not in sys.path]
    target: object = _import_module(module_name, name, search_path, kind)
    with as_user_error(f"{module_name!r} cannot give its attribute {path!r}"):
        for part in path.split("."):
            if not hasattr(target, part):
                hint = did_you_mean(
                    part, (name for name in dir(target) if not name.startswith("_"))
                )
                raise UserError(f"{module_name!r} has no attribute {path!r}.{hint}")
            target = getattr(target, part)
    return target


def _import_module(module_name: str, whole: str, search_path: tuple[str, ...], kind: str) -> object:
    try:
        return import_own(module_name)
    except BaseException as error:
        if passes_through(error):
            raise
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is None or not f"{module_name}.".startswith(f"{missing}."):
            what = f"the module {module_name!r} cannot be imported: {cause_of(error)}"
            raise UserError(what) from error
    file, _, attribute = whole.partition(":")
    if file.endswith(".py"):
        meant = f"{file.removesuffix('.py').replace('/', '.')}:{attribute}"
        why = f"write {meant!r}, without .py"
    else:
        why = f"looked in {', '.join(search_path)} and on Python's path"
    raise UserError(
        f"there is no module {missing!r} for the {kind} {mask_credentials(whole)!r} ({why})"
    )


_SWITCH: Final = {"yes": True, "true": True, "no": False, "false": False}


#: Name of an annotation -> parser of the text, and the expected value for messages.
_READERS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (lambda text: _SWITCH[text.lower()], "yes or no"),
    "Path": (Path, "a path"),
}


def call_factory(
    factory: Callable[..., object],
    who: str,
    offered: Mapping[str, object],
    keys: Mapping[str, str],
) -> object:
    """Call a factory with the arguments that it has parameters for.

    The factory may lack parameters for arguments in ``offered``, but it must accept every key in
    the user's ``keys``. ``who`` is the subject of error messages.
    """
    parameters = parameters_of(factory)
    own = {
        name: one
        for name, one in parameters.items()
        if name not in offered and one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)
    }
    for key in keys:
        if key not in own:
            valid = (*own, *getattr(factory, "keys", ()))
            raise UserError(f"{who}: {unknown_name('key', key, valid)}")
    missing = [n for n, one in own.items() if one.default is Parameter.empty and n not in keys]
    if missing:
        raise UserError(
            f"{who} needs a value for {' and '.join(map(repr, missing))}: add "
            f"--dst-tracker {missing[0]}=VALUE, or give the parameter a default in the factory"
        )
    given = {name: value for name, value in offered.items() if takes(factory, name)}
    read = {key: _read(own[key], text, f"{who}: {key}={text}") for key, text in keys.items()}
    return factory(**given, **read)


def takes(factory: Callable[..., object], name: str) -> bool:
    """Return whether a factory has this parameter or accepts any keyword."""
    parameters = parameters_of(factory)
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def parameters_of(factory: Callable[..., object]) -> Mapping[str, Parameter]:
    """Return the parameters of a factory by name."""
    return {one.name: one for one in read_parameters(factory) or ()}


def _read(parameter: Parameter, text: str, where: str) -> object:
    annotation = parameter.annotation
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    read, expected = _READERS.get(name.removesuffix(" | None").split(".")[-1], (str, ""))
    try:
        return read(text)
    except (ValueError, KeyError):
        raise UserError(f"{where} must be {expected}") from None


#: The entry point group through which packages add a tracker. An entry point names its factory.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.trackers"
#: A factory receives the arguments ``checkpoint``, ``device`` and ``batch_size`` if it has such
#: parameters, and its own keys. It may return anything that `as_tracker` accepts.
TrackerFactory = Callable[..., object]


class TrackerMaker(ABC):
    """A tracker factory with facts about the tracker that it would make.

    A package can register an instance instead of a plain factory.
    """

    __call__: TrackerFactory

    def refusal(self, outcome: OutcomeKind) -> str:  # noqa: ARG002 - subclasses use it
        """Return why this kind of answer cannot be tested, or ``""`` if it can be tested."""
        return ""

    def fingerprint(self, checkpoint: str | None, device: str) -> str:  # noqa: ARG002 - as above
        """Return the fingerprint of the tracker that a call would make, or ``""`` if unknown.

        If a tracker has a fingerprint, it is made only when an answer is missing from the cache.
        """
        return ""


TRACKERS: Final[Registry[TrackerFactory]] = Registry(
    "tracker",
    ENTRY_POINT_GROUP,
    expects="a class or a function that returns a tracker",
    fits=callable,
)
_DEFAULT_DEVICE: Final = "cpu"
_PACKAGE: Final = f"{__name__.partition('.')[0]}."
#: Schemes whose bots call no tools.
_WITHOUT_TOOLS: Final = ("rasa+http", "rasa+https")


def register_tracker(name: str, factory: TrackerFactory) -> None:
    """Register a tracker under a name, for example in a ``conftest.py``.

    Args:
        name: the value for the option ``model``.
        factory: a class or function that returns the tracker. It receives ``checkpoint``,
            ``device`` and ``batch_size`` if it has such parameters, and its own keys.

    Raises:
        UserError: a shipped tracker has this name, or the name is invalid.
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
    """Return the tracker of the settings, for the given dialogues.

    The option ``model`` is a name or an address. An adapter may need the slots and the
    normalisation of the data. ``deadline`` limits the requests to a service. If ``later`` is true,
    a shipped network may be an `UnloadedTracker`.
    """
    if settings.tracker.model is None:
        raise UserError(
            "no tracker is named: give a registered name such as 'trade', "
            "package.module:attribute, or the address of a service"
        )
    name = reveal_credentials(settings.tracker.model)
    for option, owners in option_owners().items():
        given = settings.option(option) not in (None, False)
        if given and not name.lower().startswith(tuple(owner.prefix for owner in owners)):
            forms = " or ".join(f"{owner.prefix}http://..." for owner in owners)
            raise UserError(
                f"--dst-tracker {option.replace('_', '-')} applies only to {owners[0].about} "
                f"({forms}), not for {settings.tracker.model!r}"
            )
    if "://" in name:
        # Pass no credentials as plain arguments, because pytest --full-trace shows arguments.
        return _at_address(Address(name), settings, data, deadline)
    if isinstance(settings.tracker.model, Address):
        raise UserError(
            f"the address {str(settings.tracker.model)!r} is mistyped: it needs '://' after its "
            "kind, such as http:// or openai+https://"
        )
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
    return bound_concurrency(found, settings.tracker.concurrency)


def _at_address(
    address: Address, settings: Settings, data: DialogueSet, deadline: Deadline | None
) -> Tracker:
    """Return the tracker of a service."""
    scheme, outcome = address.full.partition("://")[0].lower(), settings.reply.outcome
    if scheme not in SCHEMES.names:
        raise unknown_name("kind of address", f"{scheme}://", (f"{s}://" for s in SCHEMES.names))
    if settings.tracker.checkpoint is not None or settings.tracker.device != _DEFAULT_DEVICE:
        raise UserError(
            f"checkpoint and device apply only to registered trackers; the service at {address} "
            "chooses its own: leave them out"
        )
    if outcome == TOOL_CALLS and scheme in _WITHOUT_TOOLS:
        raise UserError(
            f"{scheme}://... tests the slots or the replies of a bot, not its tool calls: leave "
            f"--dst-outcome={outcome} out, or write --dst-outcome=reply"
        )
    if outcome == "state" and settings.tracker.opening != TrackerSettings().opening:
        raise UserError(
            "--dst-tracker opening applies only to bots that reply or call tools: add "
            "--dst-outcome=reply or --dst-outcome=tool-calls, or leave it out"
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
        # No `raise from`: the message of the error may contain secrets of the address.
        cause = cause_of(error).replace(address.full, address)
        with suppress(UserError):  # A malformed address has no parts to redact.
            cause = secrets_of(address.full, keys.values()).redact(cause)
        raise UserError(f"the tracker at {address} cannot be created: {cause}") from None
    return as_tracker(
        made, normalisation=data.normalisation, outcome=outcome, history=settings.reply.history
    )


def _keys(settings: TrackerSettings, factory: Callable[..., object] | None) -> dict[str, str]:
    """Return the keys for the factory, as the user wrote them.

    A user's factory may have a parameter with the name of a shipped service option. Then the value
    of the option becomes a key.
    """
    found = {key.name: key.read() for key in settings.tracker}
    if not isinstance(factory, HttpScheme | None):
        plain = TrackerSettings()
        for name in (item.name for item in TRACKER_KEYS):
            value = getattr(settings, name)
            if value != getattr(plain, name) and name in parameters_of(factory):
                found[name] = str(value)
    return found


def factory_options_of(settings: TrackerSettings) -> dict[str, str]:
    """Return the options that decide no answer of a shipped tracker, but reach a user's factory.

    A factory with a parameter such as ``batch_size`` or ``timeout`` may give its tracker any
    meaning of it. The factory of an address may take all options, as ``service`` or ``settings``.
    """
    name = str(settings.model or "")
    scheme, is_address, _ = name.partition("://")
    factory: Callable[..., object]
    if is_address and scheme.lower() in SCHEMES.names:
        factory = SCHEMES.find(scheme.lower())
    elif name in TRACKERS.names:
        factory = TRACKERS.find(name)
    else:
        return {}
    # A package's own maker of trackers is a user's factory, too.
    if f"{type(factory).__module__}.".startswith(_PACKAGE):
        return {}
    reach = [item.name for item in OPTIONS if item.part == "tracker" and not decides(item)]
    if not (is_address and any(takes(factory, each) for each in ("service", "settings"))):
        reach = ["batch_size"] if takes(factory, "batch_size") else []
    found = {each: str(getattr(settings, each)) for each in reach}
    named = {key.name for key in settings.tracker}
    given = _keys(settings, factory).items()
    return {**found, **{key: text for key, text in given if key not in named}}


def resolve_tracker(  # noqa: PLR0913 - all but the first are keywords
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
    """Return the tracker with a registered name, or the attribute ``package.module:attribute``.

    An attribute may be anything that `as_tracker` accepts with ``normalisation``, ``outcome`` and
    ``history``. Its module is searched in ``search_path``, by default the working directory. The
    other arguments are for the factory of a registered tracker, see `call_factory`. For ``later``
    see `tracker_for`.
    """
    adapted = partial(as_tracker, normalisation=normalisation, outcome=outcome, history=history)
    if ":" in name:
        if checkpoint is not None or device != _DEFAULT_DEVICE:
            raise UserError(
                "checkpoint and device apply only to registered trackers; your own object "
                f"{name!r} chooses its own: leave them out"
            )
        if keys:
            raise UserError(
                f"your own object {name!r} accepts no keys ({', '.join(keys)}): register a factory "
                "with register_tracker() instead"
            )
        return adapted(load_attribute(name, search_path, "tracker"))
    if name not in TRACKERS.names:
        error = unknown_name("tracker", name, TRACKERS.names)
        raise UserError(f"{error} For your own tracker, write package.module:attribute.")
    factory, who = TRACKERS.find(name), f"the tracker {name!r}"
    if isinstance(factory, TrackerMaker) and (why := factory.refusal(outcome)):
        raise UserError(why)
    offered = {"checkpoint": checkpoint, "device": device, "batch_size": batch_size}
    for option, chosen in (("checkpoint", checkpoint), ("device", device != _DEFAULT_DEVICE)):
        if chosen and not takes(factory, option):
            raise UserError(f"{who} does not accept a {option}: leave the option {option} out")
    make = partial(call_factory, factory, who, offered, keys or {})
    with as_user_error(f"{who} cannot be created"):
        made: object = None
        if later and not keys and isinstance(factory, TrackerMaker):
            made = _unloaded(make, partial(factory.fingerprint, checkpoint, device), who)
        made = make() if made is None else made
    return adapted(made)


def _unloaded(
    make: Callable[[], object], read: Callable[[], str], who: str
) -> UnloadedTracker | None:
    """Return a tracker to load later, or ``None`` if its fingerprint is unknown until then."""
    if not (fingerprint := read()):
        return None

    def load() -> Tracker:
        with as_user_error(f"{who} cannot be created"):
            tracker = cast("Tracker", make())
            # The files may have changed since the fingerprint was read, or during the load.
            if read() != fingerprint:
                raise UserError(
                    f"{who} changed after the run had begun, for example because a training wrote "
                    "a new checkpoint: run again when its files no longer change"
                )
        return tracker

    return UnloadedTracker(fingerprint, load)
