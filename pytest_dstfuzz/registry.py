"""Registries: shipped objects, objects of installed packages, objects of a test suite.

A package provides an object by an entry point in the registry's group. A suite registers one in
its ``conftest.py``, which pytest loads before it reads options, also in every xdist worker.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, Generic, TypeVar, cast

from pytest_dstfuzz.errors import (
    DstFuzzError,
    UserError,
    message_of,
    passes_through,
    redact_text,
    unknown_name,
)
from pytest_dstfuzz.own_code import find_caller, watch_loads

T = TypeVar("T")
_PACKAGE: Final = Path(__file__).parent
#: This distribution. Its optional parts also provide objects by entry points.
_DISTRIBUTION: Final = "pytest-dstfuzz"


class Registry(Generic[T]):
    """All objects of one kind by name.

    Args:
        kind: the noun for an object in messages.
        group: the group of the entry points.
        shipped: the shipped objects.
        families: additional valid names that stand for several objects each.
        load: returns more shipped objects; called when they are first needed.
        expects: description of a valid object, for the message about an invalid one.
        fits: returns whether an object is valid. `find` raises an error if not.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        shipped: Mapping[str, T] | None = None,
        families: Sequence[str] = (),
        *,
        load: Callable[[], Mapping[str, T]] | None = None,
        expects: str = "",
        fits: Callable[[object], bool] = lambda found: True,  # noqa: ARG005 - of any type
    ) -> None:
        self._kind = kind
        self._group = group
        self._given = dict(shipped or {})
        self._load = load
        self._families = tuple(families)
        self._expects = expects
        self._fits = fits
        self._registered: dict[str, T] = {}
        #: Name of a registered object -> the file of the code that registered it.
        self._callers: dict[str, str] = {}

    @property
    def shipped(self) -> tuple[str, ...]:
        """The names of the shipped objects."""
        return tuple(self._shipped)

    @property
    def _shipped(self) -> Mapping[str, T]:
        load, self._load = self._load, None
        if load is not None:
            self._given.update(load())
        return self._given

    @property
    def names(self) -> tuple[str, ...]:
        """All valid names: shipped objects, then families, then objects of packages and suites."""
        return (*self._shipped, *self._families, *self._others)

    @property
    def single(self) -> tuple[str, ...]:
        """The names of single objects, without families, in the order of `names`."""
        return (*self._shipped, *self._others)

    @property
    def _others(self) -> list[str]:
        return sorted({*self._points(), *self._registered} - set(self._shipped))

    def register(self, name: str, thing: T) -> None:
        """Register an object. It replaces an earlier object with the same name."""
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise UserError(
                f"{name!r} cannot be the name of a {self._kind}: write a word without a colon"
            )
        self.refuse_shipped(name)
        self._registered[name] = thing
        self._callers[name] = find_caller(_PACKAGE)

    def check_shape(
        self, thing: object, where: str, method: str, answer: str, known_as: str = ""
    ) -> None:
        """Raise an error if an object lacks a name or a method, or has a shipped object's name.

        Args:
            thing: the object.
            where: its origin, at the start of the message.
            method: the required method, such as ``turn(task)``.
            answer: the return value of the method, for the message.
            known_as: the name under which the object was found.
        """
        name, called = getattr(thing, "name", None), method.partition("(")[0]
        lacks = [] if isinstance(name, str) and name.strip() else ["a name"]
        lacks += [] if callable(getattr(thing, called, None)) else [f"a method {called}()"]
        if lacks:
            base = self._kind.title().replace(" ", "")
            raise UserError(
                f"{where}: {type(thing).__name__} is not a {self._kind}: it lacks "
                f"{' and '.join(lacks)}. A {self._kind} needs a name and {method}, which returns "
                f"{answer}; inherit from pytest_dstfuzz.{base} for the rest"
            )
        if name != known_as:
            self.refuse_shipped(str(name), where)

    def refuse_shipped(self, name: str, where: str = "") -> None:
        """Raise an error if a shipped object has the name. Reports identify objects by name."""
        if name in (*self._shipped, *self._families) or self._is_of_a_wing(name):
            said = f"{where}: " if where else ""
            raise UserError(
                f"{said}the {self._kind} {name!r} ships with pytest-dstfuzz: give yours another "
                "name"
            )

    def _is_of_a_wing(self, name: str) -> bool:
        brought = (point.dist for point in self._points().get(name, ()))
        return any(dist is not None and dist.name == _DISTRIBUTION for dist in brought)

    def registered(self, name: str) -> T | None:
        """Return the object that a suite or a loaded module registered, if any."""
        return self._registered.get(name)

    def origin(self, name: str) -> str:
        """Return the module that an object comes from, or its file, for `own_code.code_of`.

        It is ``""`` for a shipped object.
        """
        if name in self._callers or name in self._shipped:
            return self._callers.get(name, "")
        points = self._points().get(name, ())
        return next((point.value for point in points), "")

    def find(self, name: str) -> T:
        """Return an object by name. Load its entry point if it is not registered.

        Raises:
            UserError: the name is unknown, two packages have it, or the entry point is broken.
        """
        for known in (self._shipped, self._registered):
            if name in known:
                return known[name]
        points = self._points().get(name)
        if points is None:
            raise unknown_name(self._kind, name, self.names)
        point = points[0]
        if len(points) > 1:
            packages = " and ".join(f"{p.dist.name if p.dist else '?'} ({p.value})" for p in points)
            raise UserError(
                f"two packages provide the {self._kind} {name!r}: {packages}; remove one"
            )
        who, fix = f"the {self._kind} {name!r} cannot be loaded: {point.value}", self._fix(point)
        with blame_errors(who, fix):
            if point.dist is None or point.dist.name != _DISTRIBUTION:
                watch_loads()
            loaded: T = point.load()
        if not self._fits(loaded):
            raise UserError(f"{who} is {type(loaded).__name__}, not {self._expects}{fix}")
        return loaded

    def _fix(self, point: metadata.EntryPoint) -> str:
        """Return the end of an error message: the origin of an entry point and the fix."""
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "another package"
        return (
            f". It is the entry point {point.name!r} of the group {self._group}, of {package}: "
            "install another version of that package, or remove it"
        )

    def where(self, name: str) -> str:
        """Return a description of an object for messages: its kind, name and package."""
        # A run asks for each turn, and to read the entry points takes milliseconds.
        known = name in self._shipped or name in self._registered
        points = () if known else self._points().get(name, ())
        brought = [f" of {point.dist.name}" for point in points if point.dist]
        return f"the {self._kind} {name!r}{''.join(brought)}"

    def _points(self) -> dict[str, list[metadata.EntryPoint]]:
        points: dict[str, list[metadata.EntryPoint]] = {}
        # Sort, since the order depends on folders. A package may also be found twice.
        found = {(p.name, p.value): p for p in entry_points(self._group)}
        for (name, _), point in sorted(found.items()):
            points.setdefault(name, []).append(point)
        return points


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group.

    The packages on a path are read only once, because a run calls this function about thirty times.
    Each reading of a hundred packages would take tens of milliseconds, and each search of all their
    entry points some milliseconds.
    """
    return _of_group(tuple(sys.path), group)


@functools.cache
def _of_group(path: tuple[str, ...], group: str) -> metadata.EntryPoints:
    return _entry_points(path).select(group=group)


@functools.cache
def _entry_points(path: tuple[str, ...]) -> metadata.EntryPoints:  # noqa: ARG001 - the key
    # Python 3.11 returns another type, from which `select` selects in the same way.
    return cast("metadata.EntryPoints", metadata.entry_points())


@contextmanager
def blame_errors(who: str, fix: str = "") -> Iterator[None]:
    """Convert an exception in the code of a user or another package to a `UserError`.

    The message begins with ``who`` and ends with the file, the line and ``fix``.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, DstFuzzError) or passes_through(error):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        # If this package raised it because of a wrong argument, name the caller's line.
        theirs = [one for one in frames if not Path(one.filename).is_relative_to(_PACKAGE)]
        frame = (theirs or frames)[-1]
        kind = type(error).__name__
        place = f"{frame.filename}:{frame.lineno}"
        raise UserError(
            f"{who} raised {kind}: {redact_text(message_of(error))} ({place}){fix}"
        ) from error
