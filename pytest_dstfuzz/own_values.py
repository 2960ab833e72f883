"""The identity of the values that a user's object holds, such as those of a closure."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
)
from typing import Any, Final

from pytest_dstfuzz.own_code import is_own

__all__ = ["hide_values", "values_of"]

#: Types whose ``repr`` shows all of a value, and always in the same way.
_SHOWN: Final = (
    *(type(None), bool, bytes, complex, range, type(...)),
    *(date, time, timedelta, Decimal, Fraction),
)
#: Objects with a name that stands for what they do.
_NAMED: Final = (FunctionType, type, BuiltinMethodType, MethodDescriptorType)
#: The form of a value without a stable form, and of a function without values.
_NOTHING: Final = ""


def values_of(thing: object) -> str:
    """Return a digest of the values that a user's function or object holds; ``""`` if of none.

    These are the values of a closure, the defaults and attributes of a function, the arguments of a
    `functools.partial`, and the attributes of an object of a user's class. Numbers, texts, bytes,
    compiled patterns, functions, and collections of these count. All other values, such as paths
    and objects of packages, have no form that is the same in each run and on each machine, so they
    are left out. The path of the working folder in a text counts as ``.``.

    A run may change the values. So call this before the object is used.
    """
    text = _Forms().held_by(thing)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if text else ""


@functools.lru_cache(maxsize=256)
def hide_values(digest: str) -> str:
    """Return a digest of a result of `values_of` that is slow to compute.

    A value may be a secret, and anybody may read a baseline.
    """
    secret = digest.encode()
    return hashlib.scrypt(secret, salt=b"values", n=1 << 14, r=8, p=1, dklen=16).hex()


class _Forms:
    """The forms of values. A value that contains itself is followed once."""

    def __init__(self) -> None:
        self._here = str(Path.cwd())
        #: ``id()`` -> the objects that are followed. They are kept, so that no id is used again.
        self._seen: dict[int, tuple[int, object]] = {}

    def held_by(self, thing: Any) -> str:
        """Return the forms of the values that an object holds, without the object itself."""
        self._seen[id(thing)] = len(self._seen), thing
        return _join("", filter(None, self._parts(thing)))

    def _form(self, value: Any) -> str:
        """Return a text that differs for different values, or `_NOTHING`."""
        match value:
            case Enum():
                form = f"{_name(type(value))}.{value.name}"
            case str():
                form = repr(self._relocated(str.__str__(value)))
            case _ if isinstance(value, _SHOWN):
                form = repr(value)
            case int() | float():
                # A subclass may show itself in another way.
                form = (int if isinstance(value, int) else float).__repr__(value)
            case re.Pattern():
                form = f"re {value.pattern!r} {value.flags}"
            case list() | tuple() | deque() | set() | frozenset() | dict() | MappingProxyType():
                form = self._once(value, self._collection)
            case _:
                form = self._once(value, self._object)
        return form

    def _once(self, value: Any, form: Callable[[Any], str]) -> str:
        if id(value) in self._seen:
            return f"again {self._seen[id(value)][0]}"
        self._seen[id(value)] = len(self._seen), value
        try:
            return form(value)
        finally:
            # Equal collections may be one object or several.
            if form == self._collection:
                del self._seen[id(value)]

    def _collection(self, value: Any) -> str:
        if isinstance(value, dict | MappingProxyType):
            return _join("{}", sorted(self._pairs(value.items())))
        found = map(self._form, value)
        if isinstance(value, set | frozenset):
            return _join("set", sorted(filter(None, found)))
        return _join("[]", filter(None, found))

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> Iterator[str]:
        for name, value in items:
            key, form = self._form(name), self._form(value)
            if key and form:
                yield _join("", (key, form))

    def _object(self, value: Any) -> str:
        parts = list(filter(None, self._parts(value)))
        named = isinstance(value, _NAMED) or is_own(value)
        return _join(_name(value), parts) if parts or named else _NOTHING

    def _parts(self, thing: Any) -> Iterator[str]:
        """Yield the forms of the values that an object holds."""
        match thing:
            case FunctionType():
                yield from self._of_function(thing)
            case functools.partial():
                yield from map(self._form, (thing.func, thing.args, thing.keywords))
            case MethodType():
                yield from map(self._form, (thing.__func__, thing.__self__))
            case BuiltinMethodType() | MethodWrapperType():
                yield self._form(thing.__self__)
            case staticmethod() | classmethod():
                yield self._form(thing.__func__)
            case property():
                yield self._form(thing.fget)
            case type():
                yield from self._of_class(thing)
            case _ if is_own(thing):
                yield from self._of_class(type(thing))
                yield from sorted(self._pairs(_attributes(thing)))
            case _ if isinstance(wrapped := _entries(thing).get("__wrapped__"), FunctionType):
                yield self._form(wrapped)

    def _of_function(self, function: FunctionType) -> Iterator[str]:
        values = [*(function.__defaults__ or ()), *_contents(function.__closure__)]
        yield from map(self._form, values)
        yield from self._pairs(sorted((function.__kwdefaults__ or {}).items()))
        yield from self._pairs(sorted(_entries(function).items()))

    def _of_class(self, owner: type) -> Iterator[str]:
        """Yield the values of the classes that a function has made. A file has the others."""
        for one in owner.__mro__:
            if "<" in one.__qualname__:
                found = vars(one).items()
                # Python itself makes some entries, which differ between its versions.
                known = [pair for pair in found if pair[0][:2] != "__" or callable(pair[1])]
                yield from sorted(self._pairs(known))

    def _relocated(self, text: str) -> str:
        return text.replace(self._here, ".") if len(self._here) > 1 else text


def _name(thing: Any) -> str:
    """Return the name of a function or a class. A function may contain several of one name."""
    named = thing if isinstance(thing, _NAMED) else type(thing)
    name = f"{getattr(named, '__module__', None)}.{named.__qualname__}"
    if isinstance(thing, FunctionType) and "<" in name:
        return f"{name}:{thing.__code__.co_firstlineno}"
    return name


def _entries(thing: Any) -> dict[str, Any]:
    found = getattr(thing, "__dict__", None)
    return found if isinstance(found, dict) else {}


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, including those that its class has no dictionary for."""
    yield from _entries(thing).items()
    for owner in type(thing).__mro__:
        slots = vars(owner).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(AttributeError):
                yield name, object.__getattribute__(thing, name)


def _contents(cells: tuple[CellType, ...] | None) -> Iterator[Any]:
    for cell in cells or ():
        with suppress(ValueError):  # It is still empty.
            yield cell.cell_contents


def _join(name: str, parts: Iterable[str]) -> str:
    """Return one text for several ones, which can be told apart in it."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{name}({text})" if name else text
