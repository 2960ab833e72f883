"""Which transformations and operators a run uses, by their names.

The option ``--dst-edits`` takes a list. ``NAME`` uses only what is named so. ``+NAME`` adds to
that, or to what the validity profile uses if nothing is named so. ``-NAME`` leaves out. The order
does not matter: what is left out comes off last. A name is

* a transformation: with its own operators, and left out, with all;
* ``TRANSFORMATION/OPERATOR``: that operator, beside those that are named otherwise;
* ``OPERATOR``: the shipped ones of that name, in whichever transformations they are, else those of
  others; a transformation of that name goes first;
* ``all``: the six that are shipped, with their own operators.

So ``+texting`` adds an operator, ``emoji`` uses one alone, and ``-emoji`` all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.transformations import (
    ALL,
    SHIPPED,
    TRANSFORMATIONS,
    Transformation,
    find_operator,
    find_transformation,
    operator_names,
    transformation_names,
)


class Selection(NamedTuple):
    """The transformations of a run and their operators."""

    #: Word level first, the shipped ones of a level before the others.
    transformations: tuple[Transformation, ...]
    #: Those of each transformation that are in use: its own in its order, then others by name.
    operators: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the transformations."""
        return tuple(item.name for item in self.transformations)

    @property
    def written(self) -> tuple[str, ...]:
        """The shortest list of names that `select` makes this of."""
        found: list[str] = []
        for item, operators in zip(self.transformations, self.operators, strict=True):
            whole = operators[: len(item.operators)] == item.operators
            rest = operators[len(item.operators) :] if whole else operators
            found += [item.name] * whole + [f"{item.name}/{name}" for name in rest]
        return tuple(found)

    @property
    def shipped(self) -> Selection:
        """The part of it that every installation has: what a shipped agent knows."""
        found = [
            (item, own)
            for item, operators in zip(self.transformations, self.operators, strict=True)
            if item in SHIPPED and (own := tuple(n for n in operators if n in item.operators))
        ]
        return Selection(tuple(item for item, _ in found), tuple(own for _, own in found))


class Edits(NamedTuple):
    """What a list of names says, in three parts."""

    only: tuple[str, ...]
    added: tuple[str, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Edits:
        """Tell the names apart by their signs."""
        return cls(
            tuple(name for name in names if name[:1] not in ("+", "-")),
            tuple(name[1:] for name in names if name[:1] == "+"),
            tuple(name[1:] for name in names if name[:1] == "-"),
        )

    @property
    def named(self) -> tuple[str, ...]:
        """What is to be used, by its names."""
        return (*self.only, *self.added)


@lru_cache(maxsize=128)
def select(edits: tuple[str, ...] = (), base: tuple[str, ...] = (ALL,)) -> Selection:
    """Return what a list of names chooses.

    Args:
        edits: see above; hyphens within a name stand for underscores. What is left out need not be
            there.
        base: the names to use if none stands without a sign; the shipped six.

    Raises:
        UserError: an unknown name, one whose registration is broken, or nothing is left.
    """
    parts = Edits.of(edits)
    chosen: dict[str, set[str]] = {}
    for name, part in _named((*(parts.only or base), *parts.added)):
        own = [part] if part else find_transformation(name).operators
        chosen.setdefault(name, set()).update(own)
    for name, part in _named(parts.left_out):
        left = chosen.get(name, set()) - {part} if part else set()
        chosen[name] = left
    chosen = {name: operators for name, operators in chosen.items() if operators}
    if not chosen:
        raise UserError(
            f"nothing is left that could change a turn: edits={','.join(edits)} leaves out all of "
            f"{','.join(parts.named or base)}"
        )
    transformations = sorted(map(find_transformation, chosen), key=_order)
    operators = []
    for item in transformations:
        own = [name for name in item.operators if name in chosen[item.name]]
        operators.append((*own, *sorted(chosen[item.name].difference(own))))
    return Selection(tuple(transformations), tuple(operators))


def written_edits(names: Sequence[str]) -> tuple[str, ...]:
    """Return a list of names as short as it gets, each name once, in the order of application.

    >>> written_edits(("-char-drop", "emoji", "-char_drop/any", "+filler", "-word_drop"))
    ('word_insert/filler', 'word_insert/emoji', '-word_drop', '-char_drop')

    Raises:
        UserError: as `select`.
    """
    parts = Edits.of(names)
    named = select(parts.named).written if parts.named else ()
    found = dict.fromkeys(_named(parts.left_out))
    kept = [(name, part) for name, part in found if not part or (name, "") not in found]
    kept.sort(key=lambda pair: (_order(find_transformation(pair[0])), _rank(*pair)))
    left_out = [f"-{name}/{part}" if part else f"-{name}" for name, part in kept]
    return (*(named if parts.only else [f"+{name}" for name in named]), *left_out)


def _named(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the transformations and operators that names mean; ``""`` for all of its own."""
    found: list[tuple[str, str]] = []
    for given in names:
        name, _, part = given.replace("-", "_").partition("/")
        if part:
            if part not in find_transformation(name).operators:
                find_operator(name, part)
            found.append((name, part))
        elif name == ALL:
            found += [(item.name, "") for item in SHIPPED]
        elif name in TRANSFORMATIONS or name in transformation_names():
            found.append((name, ""))
        else:
            found += [(owner, name) for owner in _owners(name)]
    return found


def _owners(name: str) -> list[str]:
    """Return the transformations that have operators of a name: shipped ones, else others."""
    if owners := [item.name for item in SHIPPED if name in item.operators]:
        return owners
    known = operator_names()
    if owners := [owner for owner, operator in known if operator == name]:
        for owner in owners:
            find_operator(owner, name)
        return owners
    shipped = (operator for item in SHIPPED for operator in item.operators)
    valid = {ALL, *transformation_names(), *shipped, *(operator for _, operator in known)}
    raise unknown_name("transformation or operator", name, valid)


def _rank(name: str, part: str) -> tuple[int, str]:
    """Return what operators of a transformation are sorted by."""
    own = find_transformation(name).operators
    return own.index(part) if part in own else len(own) if part else -1, part


def _order(item: Transformation) -> tuple[bool, int, str]:
    """Return what transformations are sorted by: not when, or whether, others are registered."""
    shipped = TRANSFORMATIONS.index(item.name) if item in SHIPPED else len(SHIPPED)
    return item.level != "word", shipped, item.name
