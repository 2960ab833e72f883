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

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from pytest_dstfuzz.config import OPTIONS, parse_option, rates
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.dialogues import domains_of_slots
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import read_table
from pytest_dstfuzz.transformations import transformation_names

if TYPE_CHECKING:
    from pytest_dstfuzz.campaign.expected import ExpectedFailures
    from pytest_dstfuzz.kinds.kind import AnswerKind
    from pytest_dstfuzz.totals.totals import Totals

Kind = Literal["domain", "slot", "transformation", "relation"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: By how much the failure rate may rise over the baseline, where nobody says.
DEFAULT_MAX_REGRESSION: Final = 0.02
NO_ESTIMATE: Final = "the search does not estimate them, --dst-search=noise does"
_TABLE: Final = "[tool.dstfuzz.gates]"


class Part(NamedTuple):
    """A part of a session that has limits of its own."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Figure(NamedTuple):
    """A figure that a limit is about."""

    #: ``None`` where nothing was counted.
    value: float | None
    #: The figure in words, with its value; or why there is none.
    text: str
    #: Its 95 % interval over so many dialogues; ``None`` dialogues = it never has one.
    interval: tuple[float, float] | None = None
    dialogues: int | None = None
    #: What comes between the figure and the limit.
    joint: str = ""


class Unit(NamedTuple):
    """How the values of a limit are read, compared and shown."""

    parse: Callable[[str], float]
    over: Callable[[float, float], bool]
    under: Callable[[float, float], bool]
    show: Callable[[float], str]
    show_limit: Callable[[float], str]


UNITS: Final = {
    "share": Unit(rates.parse_limit, rates.over, rates.under, percent, percent),
    "per 1,000": Unit(
        rates.parse_per_1000, rates.over_per_1000, operator.lt, rates.per_1000, "{:g}".format
    ),
    "number": Unit(float, operator.gt, operator.lt, "{:g}".format, "{:g}".format),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One row of the table of limits.

    Options, the table of ``pyproject.toml``, messages, JSON and JUnit follow from it.
    """

    #: As the table spells it, such as ``max-failure-rate``.
    name: str
    #: Of all that was found; a plain number is shown after ``what``. ``None`` = it is judged for
    #: each relation and part, or against a baseline.
    figure: Callable[[Totals], Figure | float | None] | None = None
    #: Name of the figure, such as ``the share of empty answers``.
    what: str = ""
    unit: Literal["share", "per 1,000", "number"] = "share"
    #: Whether it is the lowest value that may be, and not the highest.
    least: bool = False
    #: Whether relations, domains, slots and transformations may have their own.
    of_parts: bool = False
    #: Whether it says nothing without a baseline.
    baseline: bool = False
    #: Whether it says how often the bot may fail: tests do not fail for each violation then.
    of_violations: bool = True

    @property
    def key(self) -> str:
        """Name of its option, in code."""
        return self.name.replace("-", "_")

    def figure_of(self, totals: Totals) -> Figure:
        """Return its figure of all that was found."""
        found = None if self.figure is None else self.figure(totals)
        if isinstance(found, Figure):
            return found
        if found is None:
            return Figure(None, f"there is no figure of {self.what}")
        return Figure(found, f"{self.what} {UNITS[self.unit].show(found)}")

    def parse(self, value: object, at: str) -> float:
        """Read a value of the table, as the option of this name reads it if there is one."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            message = f"{at}: {self.name} must be a number or a text such as '5%', not {value!r}"
            raise UserError(message)
        text, shown_as = str(value), f"{at}: {self.name}"
        if any(item.name == self.key for item in OPTIONS):
            found: float = parse_option(self.key, text, shown_as)
            return found
        try:
            return UNITS[self.unit].parse(text)
        except ValueError as error:
            raise UserError(f"{shown_as}: {text!r} {error}") from None


def right_answers(right: int, labelled: int, kind: AnswerKind) -> Figure:
    """Return the share of the labelled turns whose clean answer is right."""
    what, of, label = kind.words.accuracy
    if not labelled:
        return Figure(None, f"there is no {what}: no turn that was tested has a {label}")
    share, counts = right / labelled, f"{right:,} of {labelled:,} turns with {label}s"
    return Figure(share, f"the {what} of the {of} {percent(share)} ({counts})")


def failing_turns(found: ExpectedFailures | None, dialogues: int) -> Figure:
    """Return the expected failures of 1,000 user turns, of a search that estimates them."""
    if found is None or found.per_1000 is None:
        why = NO_ESTIMATE if found is None else found.reason
        return Figure(None, f"there is no figure of expected failures: {why}")
    text = f"{rates.per_1000(found.per_1000)} of 1,000 user turns are expected to fail"
    return Figure(found.per_1000, text, found.interval, dialogues, ", which")


def _accuracy(totals: Totals) -> Figure:
    # Clean answers are the same under each relation, but some ask about few of the turns.
    summary = totals.widest.summary
    return right_answers(summary.clean_right, summary.clean_labelled, totals.kind)


def _expected_failures(totals: Totals) -> Figure:
    # None are expected of turns that relations edit by themselves.
    noisy = (one for one in totals.in_order if one.slip_rates)
    summary = next(noisy, totals.widest).summary
    return failing_turns(summary.expected_failures, summary.dialogues_tested)


#: All limits that ship.
LIMITS: Final = (
    Limit(name="max-failure-rate", of_parts=True),
    Limit(name="max-regression", of_parts=True, baseline=True),
    Limit(name="max-clean-drift", baseline=True),
    Limit(name="min-accuracy", figure=_accuracy, least=True, of_violations=False),
    Limit(name="max-expected-failures", figure=_expected_failures, unit="per 1,000"),
    Limit(name="max-expected-rise", unit="per 1,000", baseline=True),
    Limit(name="max-new-weaknesses", unit="number", baseline=True),
    Limit(name="max-new-violations", unit="number", baseline=True),
)


class Limits(dict[str, float]):
    """What a session, or a part of it, may do at the most, by the key of the limit."""

    def __init__(
        self,
        max_failure_rate: float | None = None,
        max_regression: float | None = None,
        **others: float | None,
    ) -> None:
        """Take limits by their keys; ``None`` = no limit."""
        given = {"max_failure_rate": max_failure_rate, "max_regression": max_regression, **others}
        super().__init__({key: value for key, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Gates:
    """All limits of a session."""

    whole: Limits = field(default_factory=Limits)
    #: In the order of the table.
    parts: Mapping[Part, Limits] = field(default_factory=dict)
    #: Those that may be given.
    known: tuple[Limit, ...] = LIMITS

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return any((self.whole, *self.parts.values()))

    @property
    def without_baseline(self) -> Gates:
        """The limits that a run without a baseline has: the others decide nothing there."""
        return self._only(lambda limit: not limit.baseline)

    @property
    def of_expected(self) -> bool:
        """Whether any limit is about expected failures."""
        return "max_expected_failures" in self.whole or "max_expected_rise" in self.whole

    @property
    def of_violations(self) -> bool:
        """Whether any limit says how many violations there may be."""
        return self._only(lambda limit: limit.of_violations).given

    def _only(self, wanted: Callable[[Limit], bool]) -> Gates:
        keys = {limit.key for limit in self.known if wanted(limit)}

        def own(limits: Limits) -> Limits:
            return Limits(**{key: value for key, value in limits.items() if key in keys})

        parts = {part: own(limits) for part, limits in self.parts.items()}
        return replace(self, whole=own(self.whole), parts=parts)


def read_gates(path: Path, known: tuple[Limit, ...] = LIMITS) -> Gates:
    """Read the table ``[tool.dstfuzz.gates]`` of a ``pyproject.toml``; without one, no limits."""
    table = read_table(path, _TABLE)
    try:
        return _gates(table, known)
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


def _gates(table: object, limits: tuple[Limit, ...]) -> Gates:
    of_parts = tuple(limit for limit in limits if limit.of_parts)
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
            parts[Part(kind, known)] = _limits(_entries(value, inner), inner, of_parts)
    return Gates(_limits(whole, _TABLE, limits, KINDS), parts, limits)


def _limits(
    entries: Mapping[str, Any], at: str, limits: Sequence[Limit], also: Sequence[str] = ()
) -> Limits:
    known = {limit.name: limit for limit in limits}
    for name in entries:
        if name not in known:
            raise unknown_name(f"key of {at}", name, (*known, *also))
    return Limits(**{known[name].key: known[name].parse(one, at) for name, one in entries.items()})


def _entries(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{at} must be a table, not {value!r}")
    return value
