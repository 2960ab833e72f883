"""Transformations and their operators as data, and the door for those of others.

A transformation is what an action of the action space chooses; its operators are the ways to
carry it out. Names, counts, help and the action space derive from `SHIPPED`. A package or a suite
adds its own with `operator` and `register`: in a ``conftest.py``, or as entry points
``pytest_dstfuzz.transformations`` (``NAME``) and ``pytest_dstfuzz.operators``
(``TRANSFORMATION/NAME``). What is added changes no variant of a run that does not name it; how it
is named says `selection`.
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

#: What stands for all shipped transformations.
ALL: Final = "all"
_LEVELS: Final = get_args(Level)
_PARAMETERS: Final = (("position", "operator", "choice"), ("position", "operator"))
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_OURS: Final = "pytest_dstfuzz."


@dataclass(frozen=True, slots=True)
class Transformation:
    """One kind of change, as the action space has it.

    Attributes:
        name: of lower-case letters, digits and underscores.
        level: ``word`` or ``char``. Those of word level go first, and ``edit_w`` counts their
            edits; ``edit_c`` counts those of char level.
        operators: names of its own operators, in the order in which the operator parameter
            counts them.
        parameters: what an action says about each repetition, from 0 to 1: which place, which
            operator and, but where there is nothing to choose, what is put there.
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
#: More operators of theirs, which only runs use that name them, or whose profile does. They do what
#: a noise model says, see `SLIP`.
EXTRA: Final = (
    "word_replace/texting",
    "word_replace/contraction",
    "word_replace/homophone",
    "char_replace/confusion",
    "char_replace/case",
    "char_drop/apostrophe",
    "char_drop/full_stop",
)
#: Their names, in the order in which they are applied.
TRANSFORMATIONS: Final = tuple(item.name for item in SHIPPED)


class Typo(NamedTuple):
    """One place in a word: ``word[start:end]`` becomes one of ``choices``."""

    start: int
    end: int
    choices: tuple[str, ...]


class Kind(NamedTuple):
    """What an operator does, and what its function is asked."""

    level: Level
    #: Names of the words that its function takes.
    takes: tuple[str, ...]
    #: Whether it answers with choices; else with yes or no.
    chooses: bool = True


#: What operators do. Words are in lower case, but for `typo` and `punctuate`, as typed.
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
#: What those of `EXTRA` do: no function is asked where they may work, but the noise model.
SLIP: Final = "slip"


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to carry a transformation out; see `operator`.

    Attributes:
        transformation: name of the transformation.
        name: as edits record it.
        kind: one of `KINDS`, or `SLIP`.
        function: what may be done, of the words that `KINDS` says, and of the `EditPolicy`.
        asks: whether it is asked about words; else it says the same everywhere.
        policy: whether it takes the policy.
    """

    transformation: str
    name: str
    kind: str
    function: Callable[..., Any]
    asks: bool
    policy: bool

    @property
    def label(self) -> str:
        """Transformation and operator, as reports and options have them."""
        return f"{self.transformation}/{self.name}"

    @property
    def level(self) -> Level:
        """``word`` or ``char``."""
        if self.kind == SLIP:
            return find_transformation(self.transformation).level
        return KINDS[self.kind].level

    @property
    def shipped(self) -> bool:
        """Whether it is of this package."""
        return self.function.__module__.startswith(_OURS)


_TRANSFORMATIONS: Final = Registry(
    "transformation", "pytest_dstfuzz.transformations", {item.name: item for item in SHIPPED}
)
#: By their functions, which is what an entry point names.
_FUNCTIONS: Final[Registry[Callable[..., Any]]] = Registry(
    "operator", "pytest_dstfuzz.operators", {}
)
_OPERATORS: Final[dict[str, Operator]] = {}
_WORD_LEVEL: Final = {item.name: item.level == "word" for item in SHIPPED}


def operator(transformation: str, kind: str, *, name: str = "") -> Callable[[F], F]:
    """Return a decorator that makes a function an operator; the function stays as it is.

    The function is pure: the same words give the same answer, in every process. What it says is
    held to the validity profile: in ``strict`` no word that is locked is touched, and none that
    brings a lock with it is put in. Under the kind

    * ``insert`` it takes the words on both sides of a gap (``""`` at an edge) and returns words
      to put between them; without arguments it says the same for every gap;
    * ``replace`` and ``respell`` it takes a word and returns others for it; ``respell``, other
      spellings of the same word, is a typing error, which words that say what a value is for
      (``cheap restaurant``) may take too, and which makes no known word;
    * ``drop`` and ``repeat`` it takes a word and says whether it may go, or be said twice;
    * ``typo`` and ``punctuate`` it takes a word as typed and returns its `Typo` places: other
      letters, or marks and blanks;
    * ``join`` it takes two words and says whether the blank between them may go.

    One that has to know more of the validity profile takes ``policy``, the `EditPolicy`, too.

    Args:
        transformation: name of the one it belongs to, or of a shipped one that it is added to.
        kind: what it does; word-level transformations take the first five kinds.
        name: as edits record it; the name of the function where not given.

    Raises:
        UserError: a name that cannot be used or is taken, an unknown kind, or a function of other
            arguments; for an unknown transformation, when it is used.
    """

    def decorate(function: F) -> F:
        found = _operator(transformation, name or function.__name__, kind, function)
        ours = {item.name: item.operators for item in SHIPPED}
        own = found.name in ours.get(transformation, ()) or found.label in EXTRA
        if own and not found.shipped:
            raise UserError(f"{found.label} is an operator of pytest-dstfuzz: take another name")
        known = _OPERATORS.setdefault(found.label, found)
        if _origin(known.function) != _origin(function):
            raise UserError(
                f"there are two operators {found.label}: {_place(known.function)} and "
                f"{_place(function)}; give one of them another name"
            )
        _OPERATORS[found.label] = found
        _FUNCTIONS.register(found.label, function)
        return function

    return decorate


def register(transformation: Transformation) -> Transformation:
    """Make a transformation known by its name, and return it.

    Raises:
        UserError: it is described badly, or there is another one of that name.
    """
    name, operators = transformation.name, transformation.operators
    for part in (name, *operators):
        _check_name(part, "a transformation" if part == name else f"an operator of {name}")
    if transformation.level not in _LEVELS:
        raise unknown_name(f"level of the transformation {name}:", transformation.level, _LEVELS)
    if transformation.parameters not in _PARAMETERS:
        known = " or ".join(map(str, _PARAMETERS))
        raise UserError(
            f"the transformation {name} has the parameters {transformation.parameters}: it "
            f"takes {known}"
        )
    if not operators or len(set(operators)) < len(operators):
        raise UserError(f"the transformation {name} needs operators, each named once")
    other = _TRANSFORMATIONS.registered(name)
    if other is not None and other != transformation:
        raise UserError(
            f"there are two transformations {name}: {other} and {transformation}; give one of them "
            "another name"
        )
    _TRANSFORMATIONS.register(name, transformation)
    return transformation


def operator_names() -> tuple[tuple[str, str], ...]:
    """Return the names of all operators that are known, each after that of its transformation."""
    labels = (label.partition("/") for label in (*EXTRA, *_FUNCTIONS.names))
    return tuple((transformation, name) for transformation, _, name in labels)


def _unasked() -> tuple[()]:
    """Propose nothing: the noise model does."""
    return ()


def transformation_names() -> tuple[str, ...]:
    """Return the names of all transformations: shipped, installed and registered ones."""
    return _TRANSFORMATIONS.names


def find_transformation(name: str) -> Transformation:
    """Return a transformation by its name: a shipped, a registered or an installed one."""
    found = _TRANSFORMATIONS.find(name)
    if not isinstance(found, Transformation) or found.name != name:
        raise UserError(f"the transformation {name!r} of an installed package is {found!r}")
    if name not in TRANSFORMATIONS and _TRANSFORMATIONS.registered(name) is None:
        register(found)
    return found


def find_operator(transformation: str, name: str) -> Operator:
    """Return an operator by the names of its transformation and its own."""
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
            raise UserError(
                f"the operator {label!r} of an installed package is {function!r}, which has no "
                f'@operator("{transformation}", ...) of that name'
            )
    found = _OPERATORS[label]
    if found.level != about.level:
        fit = ", ".join(name for name, kind in KINDS.items() if kind.level == about.level)
        raise UserError(
            f"the operator {label} is of the kind {found.kind}, and {transformation} is of "
            f"{about.level} level: its operators are of the kinds {fit}"
        )
    return found


def of_word_level(name: str) -> bool:
    """Say whether the edits of the transformation ``name`` are of word level."""
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
            f"the operator {label} of the kind {kind} takes ({', '.join(takes)}), or those and "
            f"policy, not ({', '.join(parameters)}): {_place(function)}"
        )
    return Operator(transformation, name, kind, function, bool(words), "policy" in parameters)


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name) or name == ALL:
        raise UserError(
            f"{name!r} cannot be the name of {what}: lower-case letters, digits and "
            f"underscores, a letter first, and not {ALL!r}"
        )


def _origin(function: Callable[..., Any]) -> tuple[object, ...]:
    """Return where a function is from; the same for a module that is imported once more."""
    code = getattr(function, "__code__", None)
    return function.__qualname__, code.co_filename if code else function


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else function.__module__
    return f"{function.__qualname__} ({where})"
