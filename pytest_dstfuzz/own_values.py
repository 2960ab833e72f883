"""The identity of the values that a user's object holds, such as those of a closure."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import inspect
import os
import re
import secrets
import sys
import threading
import warnings
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from numbers import Integral, Real
from pathlib import Path, PurePath
from types import (
    BuiltinMethodType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final, TypeAlias

from pytest_dstfuzz.own_code import CACHED, attributes_of, closed_over, is_of_python, is_own

__all__ = ["digest_with_values", "hint_of", "values_of"]

#: Types whose ``repr`` shows all of a value, and always in the same way.
_SHOWN: Final = (
    *(type(None), bool, bytes, complex, range, type(...), type(NotImplemented)),
    *(date, time, timedelta, Decimal, Fraction),
)
_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_COLLECTIONS: Final = (list, tuple, deque, set, frozenset, dict, MappingProxyType, *_VIEWS)
_BUILTIN: Final = frozenset({str, int, float, *_SHOWN, *_COLLECTIONS, defaultdict})
#: Objects with a name that stands for what they do.
_NAMED: Final = (
    *(FunctionType, type, BuiltinMethodType, MethodDescriptorType),
    *(MethodWrapperType, WrapperDescriptorType, ClassMethodDescriptorType),
    *(GetSetDescriptorType, MemberDescriptorType),
)
#: Objects that `exec` makes.
_MADE: Final = (FunctionType, type)
#: Objects without values.
_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))
#: Packages whose objects lead to the whole run, or have other values in each process.
_NEVER_KNOWN: Final = frozenset({"_pytest", "pluggy", "torch"})
#: Longer forms of objects are replaced by a digest, because other forms contain them.
_LONG: Final = 200
#: The number of texts that are made for objects in circles, and of objects in a value.
_MOST_TEXTS: Final = 1_000_000
_MOST_OBJECTS: Final = 200_000
#: Entries of classes that Python itself makes, which differ between its versions, and those of
#: pydantic, which differ in each process.
_BY_PYTHON: Final = frozenset(
    {
        *("__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__"),
        *("__dict__", "__doc__", "__firstlineno__", "__module__", "__qualname__"),
        *("__static_attributes__", "__weakref__", "_abc_impl"),
        *("__pydantic_core_schema__", "__pydantic_decorators__"),
        *("__pydantic_serializer__", "__pydantic_validator__"),
    }
)
#: Attributes of members that `Enum` itself makes.
_BY_ENUM: Final = frozenset({"__objclass__", "_name_", "_sort_order_", "_value_"})
#: Distinguishes this process, or all workers of this session, from others.
_RUN: Final = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(8)
#: The beginning of a digest of values that are not known.
_UNKNOWN: Final = "unknown-"
_NAME_OF_UNKNOWN: Final = re.compile(rf"{_UNKNOWN}([\w.]+)-[0-9a-f]{{12}}\b")


def values_of(thing: object) -> str:
    """Return a digest of the values that a user's function or object holds; ``""`` if of none.

    These are the values of a closure, the defaults and attributes of a function, the arguments of a
    `functools.partial`, and the attributes of an object. Functions and classes of packages count by
    their names, and other objects of packages by the values that `copy` would copy. The path of the
    working folder in a text or a path counts as ``.``. The attributes of a class and global names
    do not count: a program may count or keep something there while it runs. A user's object or
    function with an attribute ``fingerprint``, a text, counts by this text instead of its values.

    Some objects, such as threads and open files, have no such values. Then the digest differs in
    each run, and `hint_of` explains it.

    A run may change the values. So call this before the object is used.
    """
    forms = _Forms()
    text = forms.held_by(thing)
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest() if text else ""
    return f"{_UNKNOWN}{forms.unknown}-{digest[:12]}" if forms.unknown else digest


def digest_with_values(text: str, values: str) -> str:
    """Return 12 hexadecimal digits of a digest of a text and of a result of `values_of`.

    If the values are not known, their digest follows, for `hint_of`.
    """
    known = _hide(values)
    digest = hashlib.sha256(f"{text}{known}".encode("utf-8", "replace")).hexdigest()[:12]
    return f"{digest}-{known}" if known.startswith(_UNKNOWN) else digest


@functools.lru_cache(maxsize=256)
def _hide(values: str) -> str:
    """Return a digest that is slow to compute: a value may be a secret, and baselines are read."""
    if not values or values.startswith(_UNKNOWN):
        return values
    secret = values.encode()
    return hashlib.scrypt(secret, salt=b"values", n=1 << 14, r=8, p=1, dklen=16).hex()


def hint_of(*texts: object) -> str:
    """Return why a value is not known, if one of the texts has such a digest, or ``""``."""
    for found in map(_NAME_OF_UNKNOWN.search, map(str, texts)):
        if found:
            return (
                f" (it holds a {found[1]}, whose values cannot be compared with those of another "
                "run: give your object or function an attribute fingerprint, a text that names "
                "all that decides)"
            )
    return ""


#: The form of a value: a text, the number of an object, or the forms of its parts.
_Form: TypeAlias = "str | int | _Parts"


@dataclass(frozen=True, slots=True)
class _Parts:
    """The form of a value with parts."""

    name: str
    parts: tuple[_Form, ...]
    ordered: bool = True

    def text(self, known: Mapping[int, str]) -> str:
        """Return the text of the form, with the known texts of objects."""
        found = [_text(part, known) for part in self.parts]
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


def _resolve(forms: Sequence[_Form]) -> tuple[Mapping[int, str], list[str]]:
    """Return the text of each object's form, and those of objects in circles, sorted.

    The text of an object in a circle tells only of the objects near to it.
    """
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
    return known | circles, sorted(circles.values())


class _Forms:
    """The forms of values."""

    def __init__(self) -> None:
        self._here = str(Path.cwd())
        #: ``id()`` -> number of the object.
        self._numbers: dict[int, int] = {}
        #: Each object, and the function that makes its form. An object is kept, so that no id is
        #: used again.
        self._objects: list[tuple[Any, Callable[[Any], _Form]]] = []
        #: The type of the first object whose values are not known, or ``""``.
        self.unknown = ""

    def held_by(self, thing: Any) -> str:
        """Return the forms of the values that an object holds, without the object itself."""
        whole = self._made(thing, lambda given: _Parts("", tuple(self._parts(given))))
        # The list grows meanwhile.
        forms = [self._made(value, form) for value, form in self._objects]
        known, circles = _resolve(forms)
        text = _text(whole, known)
        return _Parts(text, tuple(circles)).text({}) if circles else text

    def _made(self, value: Any, form: Callable[[Any], _Form]) -> _Form:
        if len(self._objects) > _MOST_OBJECTS:
            return self._unknown(value)
        try:
            return form(value)
        except Exception:  # noqa: BLE001 - a user's object may raise anything if it is looked at
            return self._unknown(value)

    def _unknown(self, value: Any) -> str:
        """Return a form that differs in each run."""
        kind = type(value)
        self.unknown = self.unknown or f"{kind.__module__}.{kind.__name__}".removeprefix(
            "builtins."
        )
        return f"{kind.__qualname__} of the run {_RUN}"

    def _form(self, value: Any) -> _Form:
        """Return a form that differs for different values."""
        # `isinstance` would ask a proxy for the class of its object.
        plain = issubclass(type(value), Enum) or type(value) in _BUILTIN
        if not plain and (is_own(value) or type(value) in _NAMED):
            return self._once(value, self._object)
        return self._plain(value)

    def _plain(self, value: Any) -> _Form:
        """Return the form of a value without its attributes."""
        form = _written(value, self._relocated)
        # An object of a package may have attributes besides its text or its number.
        if form is not None and (type(value) in _BUILTIN or not _attributes(value)):
            return form
        if isinstance(value, Enum):
            return self._once(value, self._member)
        if isinstance(value, CodeType):
            return self._once(value, self._code)
        is_collection = type(value) in _BUILTIN
        return self._once(value, self._collection if is_collection else self._object)

    def _once(self, value: Any, form: Callable[[Any], _Form]) -> int:
        """Return the number of an object, whose form is made only once."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append((value, form))
        return number

    def _collection(self, value: Any) -> _Form:
        if isinstance(value, dict | MappingProxyType):
            # The order may come from a set, and then it differs in each process.
            items = dict.items(value) if isinstance(value, dict) else value.items()
            pairs = _Parts("{}", self._pairs(items), ordered=False)
            if not isinstance(value, defaultdict):
                return pairs
            return _Parts("default", (self._form(value.default_factory), pairs))
        # A subclass may show other elements than it has.
        kind: Any = next(one for one in _COLLECTIONS if isinstance(value, one))
        found = tuple(map(self._form, kind.__iter__(value)))
        if kind in (set, frozenset, *_VIEWS):
            return _Parts("set", found, ordered=False)
        return _Parts(f"[] {value.maxlen}" if isinstance(value, deque) else "[]", found)

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> tuple[_Form, ...]:
        pairs = tuple(items)
        # A vectorizer of scikit-learn has the id of its stop words as an attribute.
        named = {id(value): value for _, value in pairs}
        return tuple(
            _Parts("id", (self._form(name), self._form(named[value])))
            if type(value) is int and value in named
            else _Parts("", (self._form(name), self._form(value)))
            for name, value in pairs
        )

    def _member(self, value: Enum) -> _Form:
        """Return the form of a member of an `Enum`. Its value may come from a setting."""
        name = f"{_name(type(value))}.{value.name}"
        if not is_own(value):
            return name
        attributes = attributes_of(value).items()
        given = {name: one for name, one in attributes if name not in _BY_ENUM}
        pairs = self._pairs({**given, "": value.value}.items())
        return _Parts(name, (*pairs, *self._of_class(type(value))), ordered=False)

    def _object(self, value: Any) -> _Form:
        return _Parts(_name(value), tuple(self._parts(value)))

    def _parts(self, thing: Any) -> Iterator[_Form]:
        """Yield the forms of the values that an object holds."""
        kind = type(thing)
        given = _fingerprint(thing)
        held = next((values for one, values in _HELD if issubclass(kind, one)), None)
        if given is not None:
            yield self._form(given)
        elif issubclass(kind, FunctionType):
            yield from self._of_function(thing)
        elif issubclass(kind, type):
            yield from self._of_class(thing)
        elif held is not None:
            yield from map(self._form, held(thing))
            if is_own(kind):
                yield from self._of_class(kind)
                yield self._form(attributes_of(thing))
        else:
            yield from (self._of_object if is_own(thing) else self._reduced)(thing)

    def _of_function(self, function: FunctionType) -> Iterator[_Form]:
        values = [*(function.__defaults__ or ()), *closed_over(function)]
        yield from map(self._form, values)
        for named in (function.__kwdefaults__ or {}, attributes_of(function)):
            if named:
                yield _Parts("", self._pairs(named.items()), ordered=False)
        code, known = function.__code__, function.__globals__
        if is_own(function):
            yield from [code.co_qualname] if code.co_qualname != function.__qualname__ else []
            # A file may define a function twice, for example after ``except ImportError``.
            lines = _lines_of(code.co_filename, code.co_qualname)
            # The file may have changed since then.
            earlier = sum(line < code.co_firstlineno for line in lines)
            yield from [str(earlier)] if len(lines) > 1 else []
        # `dataclasses` makes functions such as `__init__` from the text of the file.
        written = function.__name__[:2] == "__" and function.__name__ != "__call__"
        if written:
            return
        used = {name: known[name] for name in sorted(_names_in(code).intersection(known))}
        if _is_made(function):
            yield self._form(code)
            # The same text may have made other functions.
            used_code = {name: one for name, one in used.items() if isinstance(one, _MADE)}
            yield from self._pairs(used_code.items())
        if "__spec__" not in known:  # They are no names of a module.
            yield from self._pairs(used.items())

    def _code(self, code: CodeType) -> _Form:
        """Return the form of code that no file has."""
        return _Parts("code", tuple(map(self._form, (code.co_code, code.co_names, code.co_consts))))

    def _of_object(self, thing: Any) -> Iterator[_Form]:
        yield from self._of_class(type(thing))
        yield _Parts("", self._pairs(attributes_of(thing).items()), ordered=False)
        # Its class may be derived from one of Python.
        if isinstance(thing, _COLLECTIONS):
            yield self._collection(thing)
        elif (form := _written(thing, self._relocated)) is not None:
            yield form
        elif any(_has_hidden_values(one) for one in type(thing).__mro__):
            yield from self._reduced(thing)

    def _of_class(self, owner: type) -> Iterator[_Form]:
        """Yield the values of the classes that a function has made. A file has the others."""
        if is_own(owner):
            # A setting may have chosen a base, or the metaclass.
            yield from map(_name, owner.__mro__)
            yield from map(self._form, owner if issubclass(owner, Enum) else ())
        if is_own(type(owner)):
            yield self._form(type(owner))
        for one in owner.__mro__:
            if _is_local(one):
                known = [pair for pair in vars(one).items() if pair[0] not in _BY_PYTHON]
                yield _Parts("", self._pairs(known), ordered=False)
            elif is_own(one):
                twins = [pair for pair in vars(one).items() if _is_twin(pair[1])]
                yield from self._pairs(sorted(twins))

    def _reduced(self, thing: Any) -> Iterator[_Form]:
        """Yield the values that an object of Python or of a package is copied from."""
        if type(thing).__module__.partition(".")[0] in _NEVER_KNOWN:
            yield self._unknown(thing)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reduce = copyreg.dispatch_table.get(type(thing))
            made = reduce(thing) if reduce else thing.__reduce_ex__(4)
        if isinstance(made, str):
            yield _public_name(thing, made) or self._unknown(thing)
            return
        maker, given, *state = made
        yield from map(self._form, (maker, given, *state[:1]))
        # The last parts are iterators over the elements.
        yield from (self._form(list(one)) for one in state[1:3] if one is not None)

    def _relocated(self, text: str) -> str:
        return text.replace(self._here, ".") if len(self._here) > 1 else text


def _written(value: Any, relocate: Callable[[str], str]) -> str | None:
    """Return the form of a value without parts; ``None`` for others."""
    form = None
    match value:
        case Enum():
            pass
        case str() | PurePath():
            form = repr(relocate(str.__str__(value) if isinstance(value, str) else str(value)))
        case bytes() if len(value) > _LONG:
            form = hashlib.sha256(value).hexdigest()
        case datetime() | time() if value.tzinfo is not None:
            pass  # The user may have made the time zone.
        case _ if isinstance(value, _SHOWN):
            form = repr(value)
        case int() | float():
            # A subclass may show itself in another way, and so do the numbers of numpy.
            form = (int if isinstance(value, int) else float).__repr__(value)
        case Integral() | Real():
            form = repr(int(value) if isinstance(value, Integral) else float(value))
        case _ if type(value).__name__ == "Pattern" and not is_own(value):
            # Those of `re` and of the package `regex`.
            form = f"{_name(value)} {value.pattern!r} {value.flags}"
        case _ if isinstance(value, _LOCKS):
            form = _name(value)
    return form


def _name(thing: Any) -> str:
    """Return the name of a function or a class. A function may contain several of one name."""
    named = thing if isinstance(thing, _NAMED) else type(thing)
    name = f"{getattr(named, '__module__', None)}.{named.__qualname__}"
    found = _found(str(getattr(named, "__module__", "")), named.__qualname__)
    if isinstance(thing, FunctionType) and found is not thing:
        code = thing.__code__
        places = [at or 0 for line, _, at, _ in code.co_positions() if line == code.co_firstlineno]
        return f"{name}:{code.co_firstlineno}:{max(places, default=0)}"
    return name


def _is_made(function: FunctionType) -> bool:
    """Return whether the code of a function was made while the program ran, as by `exec`."""
    name = function.__code__.co_filename
    if name.startswith("<frozen "):
        return False
    if not is_own(function):
        return not Path(name).is_absolute()
    return function.__code__ not in _codes_in(name)


@functools.lru_cache(maxsize=1_000)
def _codes_in(file: str) -> frozenset[CodeType]:
    """Return the code of all functions in a file; none if it is no file with Python code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting = [compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return frozenset()
    found = set()
    while waiting:
        code = waiting.pop()
        found.add(code)
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(found)


def _lines_of(file: str, name: str) -> list[int]:
    """Return the first lines of all functions and classes of one name in a file, sorted."""
    return sorted(one.co_firstlineno for one in _codes_in(file) if one.co_qualname == name)


def _is_twin(value: object) -> bool:
    """Return whether a file defines a function more than once, and the program chooses."""
    inner: Any = value.fget if isinstance(value, property) else value
    inner = inspect.unwrap(getattr(inner, "__func__", inner))
    if not isinstance(inner, FunctionType):
        return False
    code = inner.__code__
    return len(_lines_of(code.co_filename, code.co_qualname)) > 1


def _owner_of(method: Any) -> object:
    """Return the object of a method. The functions of a module have the module."""
    held = method.__self__
    return held.__name__ if isinstance(held, ModuleType) else held


def _names_of(module: ModuleType) -> dict[str, object]:
    """Return the names in a module that a program has made, for example to hold settings."""
    if sys.modules.get(module.__name__) is module or vars(module).get("__spec__") is not None:
        return {}
    return {name: one for name, one in vars(module).items() if name[:2] != "__"}


def _attributes(value: Any) -> dict[str, Any]:
    return {} if isinstance(value, PurePath) else attributes_of(value)


#: The values in objects of Python.
_HELD: Final[tuple[tuple[Any, Callable[[Any], tuple[object, ...]]], ...]] = (
    (functools.partial, lambda it: (it.func, it.args, it.keywords, attributes_of(it))),
    (MethodType, lambda it: (it.__func__, it.__self__)),
    (BuiltinMethodType | MethodWrapperType, lambda it: (_owner_of(it),)),
    (staticmethod | classmethod, lambda it: (it.__func__, attributes_of(it))),
    (property, lambda it: (it.fget, it.fset, it.fdel)),
    (CACHED, lambda it: (it.__wrapped__, it.cache_parameters(), attributes_of(it))),
    (ModuleType, lambda it: (it.__name__, _names_of(it))),
    (weakref.ref, lambda it: (it(),)),
    (_NAMED, lambda _: ()),
)


def _fingerprint(thing: Any) -> str | None:
    """Return the text by which a user's function or object identifies itself, if it has one.

    `functools.wraps` copies it to other functions, which it does not identify.
    """
    attributes = attributes_of(thing) if is_own(thing) else {}
    given = None if "__wrapped__" in attributes else attributes.get("fingerprint")
    return given if isinstance(given, str) else None


def _found(module: str, name: str) -> object:
    """Return the object that has a name in a module, or ``None``."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _public_name(thing: Any, name: str) -> str:
    """Return the first name of a package's object in the modules of the package, or ``""``."""
    owner = getattr(thing, "__module__", None) or type(thing).__module__
    top = str(owner).partition(".")[0]
    modules = sorted(one for one in sys.modules if one.partition(".")[0] == top)
    found = (one for one in modules if getattr(sys.modules[one], "__dict__", {}).get(name) is thing)
    return next((f"{one}.{name}" for one in found), "")


def _is_local(owner: type) -> bool:
    """Return whether a program has made a class: in a function, or without a text of its own.

    `functools.wraps` may have renamed it.
    """
    found = _found(owner.__module__, owner.__qualname__)
    if not is_own(owner):
        return found is not owner and is_of_python(owner)
    if found is not owner or "__wrapped__" in vars(owner):
        return True
    file = getattr(sys.modules[owner.__module__], "__file__", None) or ""
    return len(_lines_of(file, owner.__qualname__)) != 1


def _has_hidden_values(owner: type) -> bool:
    """Return whether the objects of a class may have values that are no attributes."""
    known = owner in (object, threading.local) or is_own(owner)
    return not known and not is_of_python(owner)


def _names_in(code: CodeType) -> set[str]:
    """Return the names that some code, and the functions in it, look up."""
    inner = (_names_in(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)
