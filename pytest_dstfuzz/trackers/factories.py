"""Calling a factory of trackers with what it asks for, by the names of its parameters.

A factory declares by its signature what it takes: what is offered to all of its kind, and keys of
its own, which users write as ``KEY=VALUE``. Their values are texts, numbers and switches, by the
annotation: ``str`` (or none), ``int``, ``float``, ``bool`` (yes or no) or ``pathlib.Path``, each
also as ``... | None``::

    def create(address: str, *, voice: str = "plain", retries: int = 2) -> Tracker:
        ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import UserError, unknown_name

_SWITCH: Final = {"yes": True, "true": True, "no": False, "false": False}


#: Name of an annotation -> how a text is read, and what it must be.
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
    """Return what a factory makes.

    ``who`` it is begins messages. It need not take what is ``offered``; of the user's ``keys`` none
    may be left over.
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
            f"{who} needs {' and '.join(map(repr, missing))}: give it as "
            f"--dst-tracker {missing[0]}=VALUE, or give the parameter of its factory a default"
        )
    given = {name: value for name, value in offered.items() if takes(factory, name)}
    read = {key: _read(own[key], text, f"{who}: {key}={text}") for key, text in keys.items()}
    return factory(**given, **read)


def takes(factory: Callable[..., object], name: str) -> bool:
    """Whether a factory has a parameter for an argument that it is offered."""
    parameters = parameters_of(factory)
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def parameters_of(factory: Callable[..., object]) -> Mapping[str, Parameter]:
    """Return the parameters of a factory by their names."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # Of some objects that are not written in Python.
        return {}


def _read(parameter: Parameter, text: str, where: str) -> object:
    annotation = parameter.annotation
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    read, expected = _READERS.get(name.removesuffix(" | None").split(".")[-1], (str, ""))
    try:
        return read(text)
    except (ValueError, KeyError):
        raise UserError(f"{where} must be {expected}") from None
