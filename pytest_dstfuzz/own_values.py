"""The identity of the values that a user's object holds, such as those of a closure."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, Final

from pytest_dstfuzz.own_code import attributes_of, closed_over, held_by, is_own

__all__ = ["hide_values", "values_of"]

#: Types whose ``repr`` shows all of a value, and always in the same way.
_SHOWN: Final = (
    *(type(None), bool, bytes, complex, range, type(...)),
    *(date, time, timedelta, Decimal, Fraction),
)
_COLLECTIONS: Final = (list, tuple, deque, set, frozenset, dict, MappingProxyType)
_BUILTIN: Final = frozenset({str, int, float, *_SHOWN, *_COLLECTIONS})
#: Modules of Python whose objects are made from their values alone.
_REDUCED: Final = frozenset({"array", "builtins", "collections", "operator", "string", "types"})
#: Objects with a name that stands for what they do.
_NAMED: Final = (FunctionType, type, BuiltinMethodType, MethodDescriptorType)
#: Longer forms of objects are replaced by a digest, because other forms contain them.
_LONG: Final = 200
#: The form of a value without a stable form, and of a function without values.
_NOTHING: Final = ""


def values_of(thing: object) -> str:
    """Return a digest of the values that a user's function or object holds; ``""`` if of none.

    These are the values of a closure, the defaults and attributes of a function, the arguments of a
    `functools.partial`, and the attributes of an object of a user's class. Numbers, texts, bytes,
    compiled patterns, functions, and collections of these count. So does the code of a function
    that `exec` or `eval` made. All other values, such as paths and objects of packages, have no
    form that is the same in each run and on each machine, so they are left out, except for the
    user's functions and objects that they hold. The path of the working folder in a text counts as
    ``.``. The attributes of a class and global names do not count: a program may count or keep
    something there while it runs.

    A run may change the values. So call this before the object is used.
    """
    try:
        text = _Forms().held_by(thing)
    except Exception:  # noqa: BLE001 - a user's object may raise anything if it is looked at
        text = _NOTHING
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
        #: ``id()`` of the objects that are followed now.
        self._open: set[int] = set()
        #: ``id()`` -> form and object. The objects are kept, so that no id is used again.
        self._done: dict[int, tuple[str, object]] = {}

    def held_by(self, thing: Any) -> str:
        """Return the forms of the values that an object holds, without the object itself."""
        self._open.add(id(thing))
        return _join("", filter(None, self._parts(thing)))

    def _form(self, value: Any) -> str:
        """Return a text that differs for different values, or `_NOTHING`."""
        # `isinstance` would ask a proxy for the class of its object.
        plain = issubclass(type(value), Enum) or type(value) in _BUILTIN
        if not plain and (is_own(value) or _is_reduced(value)):
            return self._once(value, self._object)
        return self._plain(value)

    def _plain(self, value: Any) -> str:
        """Return the form of a value without its attributes."""
        match value:
            case Enum():
                form = self._once(value, self._member)
            case str():
                form = repr(self._relocated(str.__str__(value)))
            case _ if isinstance(value, _SHOWN):
                form = repr(value)
            case int() | float():
                # A subclass may show itself in another way.
                form = (int if isinstance(value, int) else float).__repr__(value)
            case Integral() | Real():
                # Such as a number of numpy.
                form = repr(int(value) if isinstance(value, Integral) else float(value))
            case CodeType():
                form = _join("code", self._made(value))
            case re.Pattern():
                form = f"re {value.pattern!r} {value.flags}"
            case defaultdict():
                form = _join("default", map(self._form, (value.default_factory, dict(value))))
            case _ if isinstance(value, _COLLECTIONS):
                form = self._once(value, self._collection)
            case _:
                form = self._once(value, self._object)
        return form

    def _once(self, value: Any, form: Callable[[Any], str]) -> str:
        """Return the form of an object, which is followed only once."""
        key = id(value)
        if key in self._done:
            return self._done[key][0]
        if key in self._open:
            return f"again {_name(value)}"
        self._open.add(key)
        try:
            found = form(value)
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - a user's object may raise anything if it is looked at
            found = _NOTHING
        finally:
            self._open.remove(key)
        if len(found) > _LONG:
            found = hashlib.sha256(found.encode(errors="replace")).hexdigest()
        self._done[key] = found, value
        return found

    def _collection(self, value: Any) -> str:
        if isinstance(value, dict | MappingProxyType):
            # The order may come from a set, and then it differs in each process.
            return _join("{}", sorted(self._pairs(value.items())))
        found = filter(None, map(self._form, value))
        if isinstance(value, set | frozenset):
            return _join("set", sorted(found))
        return _join("[]", found)

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> Iterator[str]:
        for name, value in items:
            key, form = self._form(name), self._form(value)
            if key and form:
                yield _join("", (key, form))

    def _member(self, value: Enum) -> str:
        """Return the form of a member of an `Enum`. Its value may come from a setting."""
        form = f"{_name(type(value))}.{value.name}"
        if is_own(value):
            given = {name: one for name, one in attributes_of(value).items() if name[:1] != "_"}
            form += _join("", sorted(self._pairs({**given, "": value.value}.items())))
        return form

    def _object(self, value: Any) -> str:
        parts = list(filter(None, self._parts(value)))
        named = isinstance(value, _NAMED) or is_own(value)
        return _join(_name(value), parts) if parts or named else _NOTHING

    def _parts(self, thing: Any) -> Iterator[str]:
        """Yield the forms of the values that an object holds."""
        if is_own(thing) and not isinstance(thing, (*_NAMED, MethodType, functools.partial)):
            yield from self._of_object(thing)
            return
        match thing:
            case FunctionType():
                yield from self._of_function(thing)
            case functools.partial():
                yield from map(self._form, (thing.func, thing.args, thing.keywords))
            case MethodType():
                yield from map(self._form, (thing.__func__, thing.__self__))
            case BuiltinMethodType() | MethodWrapperType():
                yield self._form(thing.__self__)
            case staticmethod() | classmethod() | property():
                yield self._form(thing.fget if isinstance(thing, property) else thing.__func__)
            case type():
                yield from self._of_class(thing)
            case _ if _is_reduced(thing):
                yield from map(self._form, _reduce(thing))
            case _:
                yield from sorted(map(self._form, held_by(thing)))

    def _of_function(self, function: FunctionType) -> Iterator[str]:
        values = [*(function.__defaults__ or ()), *closed_over(function)]
        yield from map(self._form, values)
        yield from self._pairs(sorted((function.__kwdefaults__ or {}).items()))
        yield from self._pairs(sorted(attributes_of(function).items()))
        # `dataclasses` makes functions such as `__init__` from the text of the file.
        written = function.__name__[:2] == "__" and function.__name__ != "__call__"
        if _is_made(function) and not written:
            yield from self._made(function.__code__)
            known = function.__globals__
            module = sys.modules.get(function.__module__ or "")
            if known is not getattr(module, "__dict__", None):
                names = sorted(_names_in(function.__code__).intersection(known))
                yield from self._pairs((name, known[name]) for name in names)

    def _made(self, code: CodeType) -> Iterator[str]:
        """Yield the forms of code that no file has."""
        yield self._form((code.co_code, code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from self._made(constant)
            else:
                yield self._form(constant)

    def _of_object(self, thing: Any) -> Iterator[str]:
        yield from self._of_class(type(thing))
        yield from sorted(self._pairs(attributes_of(thing).items()))
        # Its class may be derived from one of Python.
        if isinstance(thing, _COLLECTIONS):
            yield self._collection(thing)
        elif isinstance(thing, (str, int, float, *_SHOWN)):
            yield self._plain(thing)

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
        code = thing.__code__
        places = [at or 0 for line, _, at, _ in code.co_positions() if line == code.co_firstlineno]
        return f"{name}:{code.co_firstlineno}:{max(places, default=0)}"
    return name


def _is_made(function: FunctionType) -> bool:
    """Return whether `exec` or `eval` made a function from a text."""
    name = function.__code__.co_filename
    return name.startswith("<") and not name.startswith("<frozen ")


def _is_reduced(value: Any) -> bool:
    """Return whether an object of Python is made from its values alone."""
    unlike = (*_NAMED, CodeType, ModuleType, dict)
    return type(value).__module__ in _REDUCED and not issubclass(type(value), unlike)


def _reduce(thing: Any) -> Iterator[Any]:
    """Yield the values that an object of Python is made from, if it can be copied."""
    with suppress(AttributeError, TypeError):
        made = thing.__reduce_ex__(4)
        if isinstance(made, tuple):
            # The last parts are iterators over the elements.
            yield from made[1:3]
            yield from map(list, filter(None, made[3:5]))


def _names_in(code: CodeType) -> set[str]:
    """Return the names that some code, and the functions in it, look up."""
    inner = (_names_in(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _join(name: str, parts: Iterable[str]) -> str:
    """Return one text for several ones, which can be told apart in it."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{name}({text})" if name else text
