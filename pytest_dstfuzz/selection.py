"""The transformations and operators of a run, selected by name.

The option ``--dst-edits`` takes a list of names. A run uses the names without a sign and no others.
If every name has a sign, the run starts from the names of the validity profile. ``+NAME`` adds a
name, and ``-NAME`` removes one. The order does not matter, because removals are applied last. A
name is

* a transformation: its own operators, or after a minus sign all its operators;
* ``TRANSFORMATION/OPERATOR``: this single operator of the transformation;
* ``OPERATOR``: the shipped operators with this name in all transformations. If no shipped operator
  has the name, it means the registered ones. If a transformation has the same name, the name means
  the transformation.
* ``all``: the six shipped transformations with their own operators.

For example, ``+texting`` adds the operator ``texting``. ``emoji`` uses only the operator ``emoji``,
and ``-emoji`` uses all operators of the profile except ``emoji``.
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

    #: Word level first; within a level the shipped ones first.
    transformations: tuple[Transformation, ...]
    #: For each transformation, the operators in use: its own in order, then others by name.
    operators: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the transformations."""
        return tuple(item.name for item in self.transformations)

    @property
    def written(self) -> tuple[str, ...]:
        """The shortest list of names that gives this selection, see `select`."""
        found: list[str] = []
        for item, operators in zip(self.transformations, self.operators, strict=True):
            whole = operators[: len(item.operators)] == item.operators
            rest = operators[len(item.operators) :] if whole else operators
            found += [item.name] * whole + [f"{item.name}/{name}" for name in rest]
        return tuple(found)

    @property
    def shipped(self) -> Selection:
        """The shipped part of this selection. The shipped agents can choose only these edits."""
        found = [
            (item, own)
            for item, operators in zip(self.transformations, self.operators, strict=True)
            if item in SHIPPED and (own := tuple(n for n in operators if n in item.operators))
        ]
        return Selection(tuple(item for item, _ in found), tuple(own for _, own in found))


class Edits(NamedTuple):
    """The names of the option, grouped by sign."""

    only: tuple[str, ...]
    added: tuple[str, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Edits:
        """Group the names by their signs."""
        return cls(
            tuple(name for name in names if name[:1] not in ("+", "-")),
            tuple(name[1:] for name in names if name[:1] == "+"),
            tuple(name[1:] for name in names if name[:1] == "-"),
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The names in use. Names with a minus sign may still remove some of them."""
        return (*self.only, *self.added)


@lru_cache(maxsize=128)
def select(edits: tuple[str, ...] = (), base: tuple[str, ...] = (ALL,)) -> Selection:
    """Return the selected transformations and operators for a list of names.

    Args:
        edits: the names, as described above. A hyphen within a name stands for an underscore. A
            name with a minus sign need not be in use.
        base: the names to start from if all names in ``edits`` have a sign; by default, the six
            shipped transformations.

    Raises:
        UserError: a name is unknown, its registration is broken, or nothing is left.
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
            f"no edit is left that could change a turn: edits={','.join(edits)} excludes all of "
            f"{','.join(parts.named or base)}"
        )
    transformations = sorted(map(find_transformation, chosen), key=_order)
    operators = []
    for item in transformations:
        own = [name for name in item.operators if name in chosen[item.name]]
        operators.append((*own, *sorted(chosen[item.name].difference(own))))
    return Selection(tuple(transformations), tuple(operators))


def simplify_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the shortest equivalent list of names, without duplicates, in order of application.

    >>> simplify_names(("-char-drop", "emoji", "-char_drop/any", "+filler", "-word_drop"))
    ('word_insert/filler', 'word_insert/emoji', '-word_drop', '-char_drop')

    Raises:
        UserError: See `select`.
    """
    parts = Edits.of(names)
    named = select(parts.named).written if parts.named else ()
    found = dict.fromkeys(_named(parts.left_out))
    kept = [(name, part) for name, part in found if not part or (name, "") not in found]
    kept.sort(key=lambda pair: (_order(find_transformation(pair[0])), _rank(*pair)))
    left_out = [f"-{name}/{part}" if part else f"-{name}" for name, part in kept]
    return (*(named if parts.only else [f"+{name}" for name in named]), *left_out)


def _named(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name as a pair (transformation, operator).

    The operator ``""`` means all operators of the transformation itself.
    """
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
    """Return the transformations that have an operator with this name.

    If any of the operators are shipped, only their transformations are returned.
    """
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
    """Return the sort key of an operator within a transformation."""
    own = find_transformation(name).operators
    return own.index(part) if part in own else len(own) if part else -1, part


def _order(item: Transformation) -> tuple[bool, int, str]:
    """Return the sort key of a transformation, which does not depend on other registrations."""
    shipped = TRANSFORMATIONS.index(item.name) if item in SHIPPED else len(SHIPPED)
    return item.level != "word", shipped, item.name
