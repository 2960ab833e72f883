"""Transformations and their operators as data, and the registration of new ones.

An action is a point of the action space. It chooses transformations of an utterance. The operators
of a transformation are the ways to carry it out. Names, counts, help and the action space derive
from `SHIPPED`.

A test suite adds its own transformations and operators with `register` and `operator`, for example
in a ``conftest.py``. A package adds them as entry points: ``NAME`` in the group
``pytest_dstfuzz.transformations``, and ``TRANSFORMATION/NAME`` in ``pytest_dstfuzz.operators``. A
run uses such an addition only if its options name it. The module `selection` describes the names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.registry import Registry

__all__ = [
    "SHIPPED",
    "TRANSFORMATIONS",
    "Operator",
    "Transformation",
    "Typo",
    "of_word_level",
    "operator",
    "register",
]

Level = Literal["word", "char"]
F = TypeVar("F", bound=Callable[..., Any])

#: The name for all shipped transformations.
ALL: Final = "all"
_LEVELS: Final = get_args(Level)
_PARAMETERS: Final = (("position", "operator", "choice"), ("position", "operator"))
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_OURS: Final = "pytest_dstfuzz."


@dataclass(frozen=True, slots=True)
class Transformation:
    """One kind of change in the action space.

    Attributes:
        name: lower-case letters, digits and underscores.
        level: ``word`` or ``char``. An action applies transformations of word level first. The edit
            rate ``edit_w`` counts their edits, and ``edit_c`` counts edits of char level.
        operators: the names of its own operators, in the order of the operator parameter.
        parameters: the names of the numbers from 0 to 1 that an action has for each repetition.
            These numbers choose the place, the operator, and one of several possible texts.
    """

    name: str
    level: Level
    operators: tuple[str, ...]
    parameters: tuple[str, ...] = ("position", "operator", "choice")


SHIPPED: Final = (
    Transformation("word_insert", "word", ("repeat", "filler", "emoji", "mlm")),
    Transformation("word_replace", "word", ("misspelling", "synonym", "neighbour")),
    Transformation("word_drop", "word", ("stop_word", "any_word"), ("position", "operator")),
    Transformation("char_insert", "char", ("repeat", "keyboard_insert", "punctuation")),
    Transformation("char_replace", "char", ("look_alike", "keyboard", "swap")),
    Transformation("char_drop", "char", ("blank", "any"), ("position", "operator")),
)
#: Further operators of shipped transformations. A run uses one only if its options or its validity
#: profile name it. These operators make the slips of a noise model, see `SLIP`.
EXTRA: Final = (
    "word_replace/texting",
    "word_replace/contraction",
    "word_replace/homophone",
    "char_insert/letter",
    "char_insert/blank",
    "char_replace/confusion",
    "char_replace/case",
    "char_drop/apostrophe",
    "char_drop/full_stop",
)
#: The names of the shipped transformations, in the order of application.
TRANSFORMATIONS: Final = tuple(item.name for item in SHIPPED)


class Typo(NamedTuple):
    """A place in a word: ``word[start:end]`` becomes one of ``choices``."""

    start: int
    end: int
    choices: tuple[str, ...]


class Kind(NamedTuple):
    """The signature of the functions of one kind of operator, and their level."""

    level: Level
    #: The names of the words that the function takes.
    takes: tuple[str, ...]
    #: Whether the function returns choices; otherwise it returns a boolean.
    chooses: bool = True


#: The kinds of operators. Words are in lower case, except for `typo` and `punctuate`.
KINDS: Final[Mapping[str, Kind]] = {
    "insert": Kind("word", ("left", "right")),
    "repeat": Kind("word", ("word",), chooses=False),
    "replace": Kind("word", ("word",)),
    "respell": Kind("word", ("word",)),
    "drop": Kind("word", ("word",), chooses=False),
    "typo": Kind("char", ("word",)),
    "punctuate": Kind("char", ("word",)),
    "join": Kind("char", ("left", "right"), chooses=False),
}
#: The kind of the operators in `EXTRA`: a noise model decides instead of a function.
SLIP: Final = "slip"


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to carry out a transformation. See `operator`.

    Attributes:
        transformation: the name of the transformation.
        name: the name in records of edits.
        kind: one of `KINDS`, or `SLIP`.
        function: returns the allowed changes. Its arguments are the words in `KINDS` and the
            `EditPolicy`.
        asks: whether the function takes words. Otherwise its result is equal at every place.
        policy: whether the function takes the `EditPolicy`.
    """

    transformation: str
    name: str
    kind: str
    function: Callable[..., Any]
    asks: bool
    policy: bool

    @property
    def label(self) -> str:
        """The transformation and the operator, as reports and options show them."""
        return f"{self.transformation}/{self.name}"

    @property
    def level(self) -> Level:
        """The level: ``word`` or ``char``."""
        if self.kind == SLIP:
            return find_transformation(self.transformation).level
        return KINDS[self.kind].level

    @property
    def shipped(self) -> bool:
        """Whether this package defines the operator."""
        return self.function.__module__.startswith(_OURS)


_TRANSFORMATIONS: Final = Registry(
    "transformation", "pytest_dstfuzz.transformations", {item.name: item for item in SHIPPED}
)
#: Functions instead of `Operator` objects, since an entry point names a function.
_FUNCTIONS: Final[Registry[Callable[..., Any]]] = Registry(
    "operator", "pytest_dstfuzz.operators", {}
)
_OPERATORS: Final[dict[str, Operator]] = {}
_WORD_LEVEL: Final = {item.name: item.level == "word" for item in SHIPPED}


def operator(transformation: str, kind: str, *, name: str = "") -> Callable[[F], F]:
    """Return a decorator that makes a function an operator. The function stays unchanged.

    The function must be pure: the same words give the same result in every process. A run uses only
    results that pass the validity profile. A word that carries the meaning is locked. In the
    profile ``strict``, no edit changes a locked word or inserts a word that would be locked. The
    kinds are

    * ``insert``: takes the words on both sides of a gap (``""`` at an edge) and returns words to
      insert. A function without arguments returns the same words for every gap.
    * ``replace`` and ``respell``: takes a word and returns replacements. The replacements of
      ``respell`` are other spellings of the same word. They count as typing errors and must not be
      known words. They are also allowed for words that name the kind of a value (``restaurant`` in
      ``cheap restaurant``).
    * ``drop`` and ``repeat``: takes a word and returns whether it may be dropped or repeated.
    * ``typo`` and ``punctuate``: takes a word as the user typed it and returns `Typo` objects. A
      ``typo`` changes letters, and ``punctuate`` changes punctuation marks and blanks.
    * ``join``: takes two words and returns whether the blank between them may be dropped.

    If the function also takes ``policy``, it gets the `EditPolicy` of the validity profile.

    Args:
        transformation: the transformation of the operator. It may be a shipped transformation.
        kind: the kind. The first five kinds are for transformations of word level.
        name: the name in records of edits; by default the name of the function.

    Raises:
        UserError: an invalid name, a duplicate name, an unknown kind, or a function with the wrong
            arguments. An unknown transformation is reported when the operator is used.
    """

    def decorate(function: F) -> F:
        found = _operator(transformation, name or function.__name__, kind, function)
        ours = {item.name: item.operators for item in SHIPPED}
        own = found.name in ours.get(transformation, ()) or found.label in EXTRA
        if own and not found.shipped:
            raise UserError(f"{found.label} is an operator of pytest-dstfuzz: choose another name")
        known = _OPERATORS.setdefault(found.label, found)
        if _origin(known.function) != _origin(function):
            raise UserError(
                f"there are two operators {found.label}: {_place(known.function)} and "
                f"{_place(function)}; rename one"
            )
        _OPERATORS[found.label] = found
        _FUNCTIONS.register(found.label, function)
        return function

    return decorate


def register(transformation: Transformation) -> Transformation:
    """Register a transformation by its name, and return it.

    Raises:
        UserError: an invalid description, or another transformation with the same name.
    """
    name, operators = transformation.name, transformation.operators
    for part in (name, *operators):
        _check_name(part, "a transformation" if part == name else f"an operator of {name}")
    if transformation.level not in _LEVELS:
        raise unknown_name(f"level of the transformation {name}:", transformation.level, _LEVELS)
    if transformation.parameters not in _PARAMETERS:
        known = " or ".join(map(", ".join, _PARAMETERS))
        raise UserError(
            f"the transformation {name} has the parameters "
            f"{', '.join(transformation.parameters)}: it must have {known}"
        )
    if not operators or len(set(operators)) < len(operators):
        raise UserError(
            f"the transformation {name} needs at least one operator, and each only once"
        )
    other = _TRANSFORMATIONS.registered(name)
    if other is not None and other != transformation:
        raise UserError(f"there are two different transformations {name}: rename one")
    _TRANSFORMATIONS.register(name, transformation)
    return transformation


def operator_names() -> tuple[tuple[str, str], ...]:
    """Return the names of all known operators as pairs of transformation and operator."""
    labels = (label.partition("/") for label in (*EXTRA, *_FUNCTIONS.names))
    return tuple((transformation, name) for transformation, _, name in labels)


def _unasked() -> tuple[()]:
    """Return no changes, because the noise model makes the edits of this operator."""
    return ()


def transformation_names() -> tuple[str, ...]:
    """Return the names of all shipped, installed and registered transformations."""
    return _TRANSFORMATIONS.names


def find_transformation(name: str) -> Transformation:
    """Return a shipped, registered or installed transformation by its name."""
    found = _TRANSFORMATIONS.find(name)
    if not isinstance(found, Transformation) or found.name != name:
        named = getattr(found, "__qualname__", type(found).__name__)
        raise UserError(
            f"the transformation {name!r} of an installed package is {named}: this is not a "
            "Transformation with that name"
        )
    if name not in TRANSFORMATIONS and _TRANSFORMATIONS.registered(name) is None:
        register(found)
    return found


def find_operator(transformation: str, name: str) -> Operator:
    """Return an operator by the name of its transformation and its own name."""
    label, about = f"{transformation}/{name}", find_transformation(transformation)
    if label in EXTRA:
        return Operator(transformation, name, SLIP, _unasked, asks=False, policy=False)
    if label not in _OPERATORS:
        names = _FUNCTIONS.names
        if label not in names:
            own = (f"{transformation}/{known}" for known in about.operators)
            raise unknown_name("operator", label, {*names, *own, *EXTRA} - {label})
        function = _FUNCTIONS.find(label)
        if label not in _OPERATORS or _OPERATORS[label].function is not function:
            named = getattr(function, "__qualname__", type(function).__name__)
            raise UserError(
                f"the operator {label!r} of an installed package is {named}, which lacks the "
                f'decorator @operator("{transformation}", ...) with that name'
            )
    found = _OPERATORS[label]
    if found.level != about.level:
        fit = ", ".join(name for name, kind in KINDS.items() if kind.level == about.level)
        raise UserError(
            f"the operator {label} is of the kind {found.kind}, but {transformation} is of "
            f"{about.level} level and needs operators of the kinds {fit}"
        )
    return found


def operator_origin(label: str) -> str:
    """Return the module or the file that an operator comes from, ``""`` for a shipped one."""
    return _FUNCTIONS.origin(label)


def of_word_level(name: str) -> bool:
    """Return whether the edits of the transformation ``name`` are of word level."""
    known = _WORD_LEVEL.get(name)
    return find_transformation(name).level == "word" if known is None else known


def _operator(transformation: str, name: str, kind: str, function: Callable[..., Any]) -> Operator:
    import inspect  # noqa: PLC0415 - not for runs without operators

    label = f"{transformation}/{name}"
    _check_name(transformation, f"the transformation of {label}")
    _check_name(name, "an operator")
    if kind not in KINDS:
        raise unknown_name(f"kind of the operator {label}:", kind, KINDS)
    parameters = list(inspect.signature(function).parameters)
    words = [parameter for parameter in parameters if parameter != "policy"]
    takes = KINDS[kind].takes
    if len(words) != len(takes) and (words or kind != "insert"):
        raise UserError(
            f"the operator {label} of the kind {kind} must take ({', '.join(takes)}), or these "
            f"and policy, not ({', '.join(parameters)}): {_place(function)}"
        )
    return Operator(transformation, name, kind, function, bool(words), "policy" in parameters)


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name) or name == ALL:
        raise UserError(
            f"{name!r} cannot be the name of {what}: use lower-case letters, digits and "
            f"underscores, begin with a letter, and do not use {ALL!r}"
        )


def _origin(function: Callable[..., Any]) -> tuple[object, ...]:
    """Return the name and file of a function. They stay the same if its module is reloaded."""
    code = getattr(function, "__code__", None)
    return function.__qualname__, code.co_filename if code else function


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else function.__module__
    return f"{function.__qualname__} ({where})"
