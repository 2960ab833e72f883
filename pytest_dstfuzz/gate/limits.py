"""Limits of a session and of its parts, and the table of ``pyproject.toml`` that holds them.

::

    [tool.dstfuzz.gates]
    max-failure-rate = "5%"
    max-regression = "2pp"
    max-clean-drift = "0%"
    min-accuracy = "60%"
    max-expected-failures = 5
    max-expected-rise = 2
    max-new-weaknesses = 0
    max-new-violations = 0

    [tool.dstfuzz.gates.domain.hotel]
    max-regression = "4pp"

    [tool.dstfuzz.gates.slot."hotel-book people"]
    max-failure-rate = 0.1

    [tool.dstfuzz.gates.transformation.char_drop]
    max-failure-rate = "8%"

    [tool.dstfuzz.gates.relation.value-swap]
    max-failure-rate = "20%"

Limits of the whole session hold for each relation by itself under which nothing may change; one of
these may have its own in their place. One under which the state must change has only its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from pytest_dstfuzz.config import option, parse_option
from pytest_dstfuzz.dialogue.dialogues import domains_of_slots
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import read_table
from pytest_dstfuzz.transformations import transformation_names

Kind = Literal["domain", "slot", "transformation", "relation"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: By how much the failure rate may rise over the baseline, where nobody says.
DEFAULT_MAX_REGRESSION: Final = 0.02
_TABLE: Final = "[tool.dstfuzz.gates]"


class Part(NamedTuple):
    """A part of a session that has limits of its own."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a session, or a part of it, may do at the most; ``None`` = no limit."""

    #: Failure rate, 0 to 1.
    max_failure_rate: float | None = None
    #: Rise of the failure rate over the baseline's on the same variants, 0 to 1.
    max_regression: float | None = None
    #: Share of the turns whose clean answer may differ from the baseline's, 0 to 1; of the whole
    #: session alone, as is the next.
    max_clean_drift: float | None = None
    #: Lowest share of clean answers that must be right by their labels, 0 to 1.
    min_accuracy: float | None = None
    #: Expected failures of 1,000 user turns; of the whole session alone, too.
    max_expected_failures: float | None = None
    #: Their rise over the baseline's, likewise.
    max_expected_rise: float | None = None
    #: Weaknesses that the baseline does not have, likewise.
    max_new_weaknesses: float | None = None
    #: Variants that held in the baseline and break now, likewise.
    max_new_violations: float | None = None


@dataclass(frozen=True, slots=True)
class Gates:
    """All limits of a session."""

    whole: Limits = Limits()
    #: In the order of the table.
    parts: Mapping[Part, Limits] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return any(limits != Limits() for limits in (self.whole, *self.parts.values()))

    @property
    def without_baseline(self) -> Gates:
        """The limits that a run without a baseline has: the others decide nothing there."""

        def own(limits: Limits) -> Limits:
            return replace(
                limits,
                max_regression=None,
                max_clean_drift=None,
                max_expected_rise=None,
                max_new_weaknesses=None,
                max_new_violations=None,
            )

        return Gates(own(self.whole), {part: own(limits) for part, limits in self.parts.items()})

    @property
    def of_expected(self) -> bool:
        """Whether any limit is about expected failures."""
        limits = (self.whole.max_expected_failures, self.whole.max_expected_rise)
        return any(limit is not None for limit in limits)

    @property
    def of_violations(self) -> bool:
        """Whether any limit says how many violations there may be."""
        return replace(self, whole=replace(self.whole, min_accuracy=None)).given


#: As the table spells them; parts have the first two.
_WHOLE: Final = tuple(item.name.replace("_", "-") for item in fields(Limits))
_OF_PARTS: Final = _WHOLE[:2]


def read_gates(path: Path) -> Gates:
    """Read the table ``[tool.dstfuzz.gates]`` of a ``pyproject.toml``; without one, no limits."""
    table = read_table(path, _TABLE)
    try:
        return _gates(table)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def check_relations(gates: Gates, known: Sequence[str]) -> None:
    """Refuse limits of relations that nobody knows; a session need not test all that it knows."""
    for part in gates.parts:
        if part.kind == "relation" and part.name not in known:
            raise unknown_name(f"relation in {_TABLE}", part.name, known)


def check_names(gates: Gates, slots: Sequence[str]) -> None:
    """Refuse limits of domains and slots that are not among all ``slots`` of the data."""
    valid: dict[Kind, Set[str]] = {"domain": domains_of_slots(slots), "slot": set(slots)}
    for part in gates.parts:
        if part.kind in valid and part.name not in valid[part.kind]:
            raise unknown_name(f"{part.kind} in {_TABLE}", part.name, valid[part.kind])


def _gates(table: object) -> Gates:
    entries = _entries(table, _TABLE)
    whole = {name: value for name, value in entries.items() if name not in KINDS}
    parts: dict[Part, Limits] = {}
    for kind in KINDS:
        at = f"{_TABLE[:-1]}.{kind}]"
        for name, value in _entries(entries.get(kind, {}), at).items():
            known = name.replace("-", "_") if kind == "transformation" else name
            if kind == "transformation" and known not in transformation_names():
                raise unknown_name(f"transformation in {_TABLE}", name, transformation_names())
            inner = f"{at[:-1]}.{name}]"
            parts[Part(kind, known)] = _limits(_entries(value, inner), inner, _OF_PARTS)
    return Gates(_limits(whole, _TABLE, _WHOLE, KINDS), parts)


def _limits(
    entries: Mapping[str, Any], at: str, known: Sequence[str], also: Sequence[str] = ()
) -> Limits:
    found: dict[str, float] = {}
    for name, value in entries.items():
        if name not in known:
            raise unknown_name(f"key of {at}", name, (*known, *also))
        limit = option(name.replace("-", "_"))
        if (text := limit.text_of(value)) is None:
            raise UserError(f"{at}: {name} must be a number or a text such as '5%', not {value!r}")
        found[limit.name] = parse_option(limit.name, text, f"{at}: {name}")
    return Limits(**found)


def _entries(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{at} must be a table, not {value!r}")
    return value
