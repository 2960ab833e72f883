"""Things of one kind by name: those that ship, those that packages bring, those of a suite.

A package brings one by an entry point of the kind's group; a suite registers one in its
``conftest.py``, which is read before any option is looked at, in every worker of xdist too.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, Generic, TypeVar

from pytest_dstfuzz.errors import DstFuzzError, UserError, message_of, unknown_name

T = TypeVar("T")
_PACKAGE: Final = Path(__file__).parent
#: Of this package, whose wings bring things by entry points, too.
_DISTRIBUTION: Final = "pytest-dstfuzz"


class Registry(Generic[T]):
    """The things of one kind, by name.

    ``kind`` is what messages call one of them, ``group`` that of the entry points, ``families``
    what else may be written in the place of a name. What ships is given, or returned by ``load``,
    which is called when it is first needed.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        shipped: Mapping[str, T] | None = None,
        families: Sequence[str] = (),
        *,
        load: Callable[[], Mapping[str, T]] | None = None,
    ) -> None:
        self._kind = kind
        self._group = group
        self._given = dict(shipped or {})
        self._load = load
        self._families = tuple(families)
        self._registered: dict[str, T] = {}

    @property
    def shipped(self) -> tuple[str, ...]:
        """The names of those that ship."""
        return tuple(self._shipped)

    @property
    def _shipped(self) -> Mapping[str, T]:
        load, self._load = self._load, None
        if load is not None:
            self._given.update(load())
        return self._given

    @property
    def names(self) -> tuple[str, ...]:
        """All that may be written: shipped ones first, then those of packages and suites."""
        return (*self._shipped, *self._families, *self._others)

    @property
    def single(self) -> tuple[str, ...]:
        """The names that each stand for one, in the order of `names`."""
        return (*self._shipped, *self._others)

    @property
    def _others(self) -> list[str]:
        return sorted({*self._points(), *self._registered} - set(self._shipped))

    def register(self, name: str, thing: T) -> None:
        """Add one; a later one takes the place of an earlier one of its name."""
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise UserError(f"{name!r} is no name of a {self._kind}: write a word without a colon")
        self.refuse_shipped(name)
        self._registered[name] = thing

    def check_shape(
        self, thing: object, where: str, method: str, answer: str, known_as: str = ""
    ) -> None:
        """Refuse what is none of the kind: it needs a name of its own, and a method.

        ``where`` it comes from begins the message; ``method``, such as ``turn(task)``, and its
        ``answer`` say what would be right. ``known_as``: the name under which it was found.
        """
        name, called = getattr(thing, "name", None), method.partition("(")[0]
        lacks = [] if isinstance(name, str) and name.strip() else ["a name"]
        lacks += [] if callable(getattr(thing, called, None)) else [f"a method {called}()"]
        if lacks:
            base = self._kind.title().replace(" ", "")
            raise UserError(
                f"{where}: {type(thing).__name__} is no {self._kind}, it lacks "
                f"{' and '.join(lacks)}. A {self._kind} has a name and {method}, which returns "
                f"{answer}; inherit from pytest_dstfuzz.{base} for the rest"
            )
        if name != known_as:
            self.refuse_shipped(str(name), where)

    def refuse_shipped(self, name: str, where: str = "") -> None:
        """Refuse the name of one that ships for somebody else's: reports tell them by it."""
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
        """Return what a suite, or a module that was loaded, registered under a name, if any."""
        return self._registered.get(name)

    def find(self, name: str) -> T:
        """Return the thing of a name."""
        for known in (self._shipped, self._registered):
            if name in known:
                return known[name]
        points = self._points().get(name)
        if points is None:
            raise unknown_name(self._kind, name, self.names)
        point = points[0]
        if len(points) > 1:
            packages = " and ".join(f"{p.dist.name if p.dist else '?'} ({p.value})" for p in points)
            raise UserError(f"two packages bring the {self._kind} {name!r}: {packages}; remove one")
        with blamed(f"the {self._kind} {name!r} cannot be loaded: {point.value}"):
            loaded: T = point.load()
        return loaded

    def _points(self) -> dict[str, list[metadata.EntryPoint]]:
        points: dict[str, list[metadata.EntryPoint]] = {}
        # The order in which packages are found is that of folders, and one may be found twice.
        found = {(p.name, p.value): p for p in metadata.entry_points(group=self._group)}
        for (name, _), point in sorted(found.items()):
            points.setdefault(name, []).append(point)
        return points


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """Turn an exception of somebody else's code into one message that says where it was raised."""
    try:
        yield
    except DstFuzzError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        # What they handed to this package is wrong in their line, not in the one that found it.
        theirs = [one for one in frames if not Path(one.filename).is_relative_to(_PACKAGE)]
        frame = (theirs or frames)[-1]
        kind = type(error).__name__
        raise UserError(
            f"{who} raised {kind}: {message_of(error)} ({frame.filename}:{frame.lineno})"
        ) from error
