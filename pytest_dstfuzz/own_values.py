"""The identity of the values that a user's object holds, such as those of a closure."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
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
from typing import Any, Final, TypeAlias

from pytest_dstfuzz.own_code import attributes_of, closed_over, held_by, is_own

__all__ = ["hide_values", "values_of"]

#: Types whose ``repr`` shows all of a value, and always in the same way.
_SHOWN: Final = (
    *(type(None), bool, bytes, complex, range, type(...)),
    *(date, time, timedelta, Decimal, Fraction),
)
_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_COLLECTIONS: Final = (list, tuple, deque, set, frozenset, dict, MappingProxyType, *_VIEWS)
_BUILTIN: Final = frozenset({str, int, float, *_SHOWN, *_COLLECTIONS})
#: Modules of Python whose objects are made from their values alone.
_REDUCED: Final = frozenset({"array", "builtins", "collections", "operator", "string", "types"})
#: Objects with a name that stands for what they do.
_NAMED: Final = (FunctionType, type, BuiltinMethodType, MethodDescriptorType)
#: Longer forms of objects are replaced by a digest, because other forms contain them.
_LONG: Final = 200
#: The form of a value without a stable form, and of a function without values.
_NOTHING: Final = ""
#: The number of texts that are made for objects in circles.
_MOST_TEXTS: Final = 1_000_000


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


#: The form of a value: a text, the number of an object, or the forms of its parts.
_Form: TypeAlias = "str | int | _Parts"


@dataclass(frozen=True, slots=True)
class _Parts:
    """The form of a value with parts. Parts without a form are left out."""

    name: str
    parts: tuple[_Form, ...]
    ordered: bool = True
    #: Whether the value has no form if no part has one.
    needs_one: bool = False
    #: Whether the value has no form if a part has none.
    needs_all: bool = False

    def text(self, known: Mapping[int, str]) -> str:
        """Return the text of the form, with the known texts of objects."""
        every = [_text(part, known) for part in self.parts]
        found = list(filter(None, every))
        if (self.needs_all and len(found) < len(every)) or (self.needs_one and not found):
            return _NOTHING
        text = "".join(f"{len(one)}:{one}" for one in (found if self.ordered else sorted(found)))
        return f"{self.name}({text})" if self.name else text

    def objects(self) -> Iterator[int]:
        """Yield the numbers of the objects in the form."""
        for part in self.parts:
            if isinstance(part, int):
                yield part
            elif isinstance(part, _Parts):
                yield from part.objects()


def _text(form: _Form, known: Mapping[int, str]) -> str:
    if isinstance(form, int):
        return known[form]
    text = form if isinstance(form, str) else form.text(known)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if len(text) > _LONG else text


def _resolve(forms: Sequence[_Form]) -> Mapping[int, str]:
    """Return the text of each object's form. Objects may refer to each other in circles."""
    parts = {n: form for n, form in enumerate(forms) if isinstance(form, _Parts)}
    order = TopologicalSorter({n: set(form.objects()) for n, form in parts.items()})
    known = {n: form for n, form in enumerate(forms) if isinstance(form, str)}
    with suppress(CycleError):
        order.prepare()
    while order.is_active():
        ready = order.get_ready()
        known |= {n: _text(forms[n], known) for n in ready if n not in known}
        order.done(*ready)
    # The texts of the others become more different in each round: color refinement, which does not
    # depend on the order of the objects.
    circles = dict.fromkeys(parts.keys() - known.keys(), "circle")
    for _ in range(min(len(circles), _MOST_TEXTS // max(len(circles), 1))):
        known |= circles
        told = {n: _text(forms[n], known) for n in circles}
        kinds = {len(set(one)) for one in (circles.values(), told.values())}
        same = kinds == {len({(text, told[n]) for n, text in circles.items()})}
        circles = told
        if same:
            break
    return known | circles


class _Forms:
    """The forms of values."""

    def __init__(self) -> None:
        self._here = str(Path.cwd())
        #: ``id()`` -> number of the object.
        self._numbers: dict[int, int] = {}
        #: Each object, and the function that makes its form. An object is kept, so that no id is
        #: used again.
        self._objects: list[tuple[Any, Callable[[Any], _Form]]] = []

    def held_by(self, thing: Any) -> str:
        """Return the forms of the values that an object holds, without the object itself."""
        whole = _Parts("", tuple(self._parts(thing)))
        # The list grows meanwhile.
        forms = [self._made(value, form) for value, form in self._objects]
        return whole.text(_resolve(forms))

    def _made(self, value: Any, form: Callable[[Any], _Form]) -> _Form:
        try:
            return form(value)
        except Exception:  # noqa: BLE001 - a user's object may raise anything if it is looked at
            return _NOTHING

    def _form(self, value: Any) -> _Form:
        """Return a form that differs for different values, or `_NOTHING`."""
        # `isinstance` would ask a proxy for the class of its object.
        plain = issubclass(type(value), Enum) or type(value) in _BUILTIN
        if not plain and (is_own(value) or _is_reduced(value)):
            return self._once(value, self._object)
        return self._plain(value)

    def _plain(self, value: Any) -> _Form:
        """Return the form of a value without its attributes."""
        form: _Form
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
                form = self._once(value, self._code)
            case re.Pattern():
                form = f"re {value.pattern!r} {value.flags}"
            case _ if isinstance(value, _COLLECTIONS):
                form = self._once(value, self._collection)
            case _:
                form = self._once(value, self._object)
        return form

    def _once(self, value: Any, form: Callable[[Any], _Form]) -> int:
        """Return the number of an object, whose form is made only once."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append((value, form))
        return number

    def _collection(self, value: Any) -> _Form:
        if isinstance(value, dict | MappingProxyType):
            # The order may come from a set, and then it differs in each process.
            pairs = _Parts("{}", self._pairs(value.items()), ordered=False)
            if not isinstance(value, defaultdict):
                return pairs
            return _Parts("default", (self._form(value.default_factory), pairs))
        found = tuple(map(self._form, value))
        if isinstance(value, (set, frozenset, *_VIEWS)):
            return _Parts("set", found, ordered=False)
        return _Parts("[]", found)

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> tuple[_Form, ...]:
        pairs = [(self._form(name), self._form(value)) for name, value in items]
        return tuple(_Parts("", pair, needs_all=True) for pair in pairs)

    def _member(self, value: Enum) -> _Form:
        """Return the form of a member of an `Enum`. Its value may come from a setting."""
        name = f"{_name(type(value))}.{value.name}"
        if not is_own(value):
            return name
        given = {name: one for name, one in attributes_of(value).items() if name[:1] != "_"}
        return _Parts(name, self._pairs({**given, "": value.value}.items()), ordered=False)

    def _object(self, value: Any) -> _Form:
        named = isinstance(value, _NAMED) or is_own(value)
        return _Parts(_name(value), tuple(self._parts(value)), needs_one=not named)

    def _parts(self, thing: Any) -> Iterator[_Form]:
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
                yield _Parts("", tuple(map(self._form, held_by(thing))), ordered=False)

    def _of_function(self, function: FunctionType) -> Iterator[_Form]:
        values = [*(function.__defaults__ or ()), *closed_over(function)]
        yield from map(self._form, values)
        for named in (function.__kwdefaults__ or {}, attributes_of(function)):
            yield _Parts("", self._pairs(named.items()), ordered=False)
        # `dataclasses` makes functions such as `__init__` from the text of the file.
        written = function.__name__[:2] == "__" and function.__name__ != "__call__"
        if _is_made(function) and not written:
            yield self._form(function.__code__)
            known = function.__globals__
            module = sys.modules.get(function.__module__ or "")
            if known is not getattr(module, "__dict__", None):
                names = sorted(_names_in(function.__code__).intersection(known))
                yield from self._pairs((name, known[name]) for name in names)

    def _code(self, code: CodeType) -> _Form:
        """Return the form of code that no file has."""
        return _Parts("code", tuple(map(self._form, (code.co_code, code.co_names, code.co_consts))))

    def _of_object(self, thing: Any) -> Iterator[_Form]:
        yield from self._of_class(type(thing))
        yield _Parts("", self._pairs(attributes_of(thing).items()), ordered=False)
        # Its class may be derived from one of Python.
        if isinstance(thing, _COLLECTIONS):
            yield self._collection(thing)
        elif isinstance(thing, (str, int, float, *_SHOWN)):
            yield self._plain(thing)

    def _of_class(self, owner: type) -> Iterator[_Form]:
        """Yield the values of the classes that a function has made. A file has the others."""
        for one in owner.__mro__:
            if "<" in one.__qualname__:
                found = vars(one).items()
                # Python itself makes some entries, which differ between its versions.
                known = [pair for pair in found if pair[0][:2] != "__" or callable(pair[1])]
                yield _Parts("", self._pairs(known), ordered=False)

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
