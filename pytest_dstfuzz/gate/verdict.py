"""The verdict of the gate: its limits, and problems that prevent a verdict."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from pytest_dstfuzz.campaign.figures import TURNS, Counts, interval_name
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import OPTIONS, parse_option, parsers
from pytest_dstfuzz.config.parsers import over, over_per_1000, percent, points, rise_per_1000
from pytest_dstfuzz.dialogue.dialogues import domains_of_slots
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import read_table
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.registry import blame_errors
from pytest_dstfuzz.transformations import transformation_names

if TYPE_CHECKING:
    from pytest_dstfuzz.campaign.figures import EstimatedFailures
    from pytest_dstfuzz.kinds.kind import AnswerKind
    from pytest_dstfuzz.totals.totals import Totals


Kind = Literal["domain", "slot", "transformation", "relation"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: Default limit of the rise of the failure rate over the baseline.
DEFAULT_MAX_REGRESSION: Final = 0.02
NO_ESTIMATE: Final = "the search does not estimate them: use --dst-search=noise"
_TABLE: Final = "[tool.dstfuzz.gates]"


class Part(NamedTuple):
    """A part of a session with its own limits: a relation, domain, slot or transformation."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Figure(NamedTuple):
    """A figure of a run that a limit applies to, such as its failure rate."""

    #: ``None`` if nothing was counted.
    value: float | None
    #: The figure in words, with its value, or the reason why there is none.
    text: str
    #: The 95 % interval, and the number of dialogues behind it; ``None`` dialogues mean that this
    #: figure never has an interval.
    interval: tuple[float, float] | None = None
    dialogues: int | None = None
    #: The text between the figure and the limit.
    joint: str = ""


class Unit(NamedTuple):
    """The functions that parse, compare and format the values of a limit, such as shares."""

    parse: Callable[[str], float]
    over: Callable[[float, float], bool]
    under: Callable[[float, float], bool]
    show: Callable[[float], str]
    show_limit: Callable[[float], str]


def _number(text: str) -> float:
    """Read a plain non-negative number."""
    found = float(text)
    if not 0 <= found < math.inf:
        raise ValueError("must be a number of at least 0")
    return found


UNITS: Final = {
    "share": Unit(parsers.parse_limit, parsers.over, parsers.under, percent, percent),
    "per 1,000": Unit(
        parsers.parse_per_1000, parsers.over_per_1000, operator.lt, parsers.per_1000, "{:g}".format
    ),
    "number": Unit(_number, operator.gt, operator.lt, "{:g}".format, "{:g}".format),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One row of the table of limits.

    Options, the table of ``pyproject.toml``, messages, JSON and JUnit are derived from it.
    """

    #: The name in the table, such as ``max-failure-rate``.
    name: str
    #: Computes the figure from the totals; a plain number is shown after ``what``. ``None`` if the
    #: limit is judged per relation and part, or against a baseline.
    figure: Callable[[Totals], Figure | float | None] | None = None
    #: Name of the figure, such as ``the share of empty answers``.
    what: str = ""
    unit: Literal["share", "per 1,000", "number"] = "share"
    #: Whether the limit is a minimum rather than a maximum.
    least: bool = False
    #: Whether relations, domains, slots and transformations may have their own value.
    of_parts: bool = False
    #: Whether the limit needs a baseline.
    baseline: bool = False
    #: Whether the limit concerns failures of the bot. If such a limit is set, single violations do
    #: not fail tests.
    of_violations: bool = True

    @property
    def key(self) -> str:
        """The name of the limit's option in code, with underscores."""
        return self.name.replace("-", "_")

    def figure_of(self, totals: Totals) -> Figure:
        """Return the figure of the limit from the totals."""
        found = None
        if self.figure is not None:
            with blame_errors(f"the figure of the limit {self.name!r}"):
                found = self.figure(totals)
        value = found.value if isinstance(found, Figure) else found
        # A comparison with NaN is never true, so that every limit would hold.
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise UserError(
                f"the figure of the limit {self.name!r} is {describe(value)}: return a number"
            )
        if isinstance(found, Figure):
            return found
        if found is None:
            return Figure(None, f"there is no figure for {self.what}")
        return Figure(found, f"{self.what} {UNITS[self.unit].show(found)}")

    def parse(self, value: object, at: str) -> float:
        """Parse a limit in the TOML table like an option. ``at`` is its place."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            message = f"{at}: {self.name} must be a number or a text such as '5%', not "
            raise UserError(f"{message}{describe(value)}")
        text, shown_as = str(value), f"{at}: {self.name}"
        if any(item.name == self.key for item in OPTIONS):
            found: float = parse_option(self.key, text, shown_as)
            return found
        try:
            return UNITS[self.unit].parse(text)
        except ValueError as error:
            raise UserError(f"{shown_as}: {text!r} {error}") from None


def right_answers(right: int, labelled: int, kind: AnswerKind) -> Figure:
    """Return the share of labelled turns with a correct clean answer."""
    what, of, label = kind.words.accuracy
    if not labelled:
        return Figure(None, f"there is no {what}: no tested turn has a {label}")
    share, counts = right / labelled, f"{right:,} of {labelled:,} turns with {label}s"
    return Figure(share, f"the {what} of the {of} {percent(share)} ({counts})")


def failing_turns(found: EstimatedFailures | None, dialogues: int) -> Figure:
    """Return the estimated failures per 1,000 user turns, if the search estimates them."""
    if found is None or found.per_1000 is None:
        why = NO_ESTIMATE if found is None else found.reason
        return Figure(None, f"there is no figure for estimated failures: {why}")
    text = f"an estimated {parsers.per_1000(found.per_1000)} of 1,000 user turns fail"
    return Figure(found.per_1000, text, found.interval, dialogues, ", which")


def _accuracy(totals: Totals) -> Figure:
    # Clean answers are the same under each relation, but some relations ask about few turns.
    summary = totals.widest.summary
    return right_answers(summary.clean_right, summary.clean_labelled, totals.kind)


def _estimated_failures(totals: Totals) -> Figure:
    # There is no estimate for turns that relations edit by themselves.
    noisy = [one.summary for one in totals.in_order if one.slip_rates]

    def failing(summary: Summary) -> float:
        found = summary.estimated_failures
        return -1.0 if found is None or found.per_1000 is None else found.per_1000

    summary = max(noisy or [totals.widest.summary], key=failing)
    return failing_turns(summary.estimated_failures, summary.dialogues_tested)


#: All shipped limits.
LIMITS: Final = (
    Limit(name="max-failure-rate", of_parts=True),
    Limit(name="max-regression", of_parts=True, baseline=True),
    Limit(name="max-clean-drift", baseline=True),
    Limit(name="min-accuracy", figure=_accuracy, least=True, of_violations=False),
    Limit(name="max-estimated-failures", figure=_estimated_failures, unit="per 1,000"),
    Limit(name="max-estimated-rise", unit="per 1,000", baseline=True),
    Limit(name="max-new-weaknesses", unit="number", baseline=True),
    Limit(name="max-new-violations", unit="number", baseline=True),
)


def check_added(limits: Sequence[Limit]) -> None:
    """Check limits that a plugin adds.

    Raises:
        UserError: a limit has no figure, has ``of_parts``, or has the name of another limit.
    """
    names = [limit.name for limit in LIMITS]
    for limit in limits:
        hook = f"pytest_dstfuzz_limits: the limit {limit.name!r}"
        if limit.name in names:
            raise UserError(f"{hook} exists already: give it another name")
        if limit.figure is None or limit.of_parts:
            raise UserError(f"{hook} cannot judge a run: give it a figure, and leave of_parts out")
        names.append(limit.name)


class Limits(dict[str, float]):
    """Limits of a session or of a part, by key."""

    def __init__(
        self,
        max_failure_rate: float | None = None,
        max_regression: float | None = None,
        **others: float | None,
    ) -> None:
        """Store limits by their keys; ``None`` = no limit."""
        given = {"max_failure_rate": max_failure_rate, "max_regression": max_regression, **others}
        super().__init__({key: value for key, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Gates:
    """All limits of a session."""

    whole: Limits = field(default_factory=Limits)
    #: In the order of the table.
    parts: Mapping[Part, Limits] = field(default_factory=dict)
    #: The available limits.
    known: tuple[Limit, ...] = LIMITS

    @property
    def given(self) -> bool:
        """Whether any limit is set."""
        return any((self.whole, *self.parts.values()))

    @property
    def without_baseline(self) -> Gates:
        """The limits that do not need a baseline."""
        return self._only(lambda limit: not limit.baseline)

    @property
    def of_expected(self) -> bool:
        """Whether any limit concerns estimated failures."""
        return "max_estimated_failures" in self.whole or "max_estimated_rise" in self.whole

    @property
    def of_violations(self) -> bool:
        """Whether any limit concerns the number of violations."""
        return self._only(lambda limit: limit.of_violations).given

    def _only(self, wanted: Callable[[Limit], bool]) -> Gates:
        keys = {limit.key for limit in self.known if wanted(limit)}

        def own(limits: Limits) -> Limits:
            return Limits(**{key: value for key, value in limits.items() if key in keys})

        parts = {part: own(limits) for part, limits in self.parts.items()}
        return replace(self, whole=own(self.whole), parts=parts)


def read_gates(path: Path, known: tuple[Limit, ...] = LIMITS) -> Gates:
    """Read the table ``[tool.dstfuzz.gates]`` of a ``pyproject.toml``. No table means no limits."""
    table = read_table(path, _TABLE)
    try:
        return _gates(table, known)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def check_relations(
    gates: Gates, known: Sequence[str], families: Mapping[str, Sequence[str]]
) -> None:
    """Raise an error for limits of unknown relations, and of families of relations.

    A known relation need not be tested.
    """
    for name in (part.name for part in gates.parts if part.kind == "relation"):
        if name in families:
            raise UserError(
                f"[{_TABLE.strip('[]')}.relation.{name}] names several relations, and each has "
                f"limits of its own: write a table for each of {', '.join(families[name])}"
            )
        if name not in known:
            raise unknown_name(f"relation in {_TABLE}", name, known)


def check_names(gates: Gates, slots: Sequence[str], tools: Sequence[str] = ()) -> None:
    """Raise an error for limits of domains and slots that are not in the data.

    ``tools`` are the tools of the data, each of which is the domain of its calls.
    """
    domains = domains_of_slots(slots) | set(tools)
    valid: dict[Kind, Set[str]] = {"domain": domains, "slot": set(slots)}
    for part in gates.parts:
        if part.kind in valid and part.name not in valid[part.kind]:
            raise unknown_part(part, valid[part.kind])


def unknown_part(part: Part, known: Iterable[str]) -> UserError:
    """Return the error for a limit of an unknown slot or domain."""
    return unknown_name(f"{part.kind} in {_TABLE}", part.name, known)


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
        raise UserError(f"{at} must be a table, not {describe(value)}")
    return value


#: ``drift``: too many clean answers differ from the baseline's. ``regression``: the interval of the
#: difference is above 0 and the difference above the margin; or a rate is over (an accuracy under)
#: its limit; or the tracker gives the same answer to everything. ``pass``: every interval is below
#: its margin, and every rate within its limit. ``inconclusive``: neither passed nor failed.
#: ``not-compared``: only the clean answers could be compared with the baseline, because the
#: settings, word lists or data differ. ``infrastructure``: the tracker failed too often, or the run
#: ended early, after too few turns to pass and without a reason to fail it.
Verdict = Literal["pass", "drift", "regression", "inconclusive", "not-compared", "infrastructure"]

PASSED: Final = 0
FAILED: Final = 1
#: pytest's own statuses are 0 to 5, and since 9.1 also 6, for too many warnings
#: (``--max-warnings``).
INFRASTRUCTURE: Final = 6
INCONCLUSIVE: Final = 7
DRIFT: Final = 8
NOT_COMPARED: Final = 9
#: The exit status of each verdict on a build with a baseline, the worst last.
STATUSES: Final[dict[Verdict, int]] = {
    "pass": PASSED,
    "inconclusive": INCONCLUSIVE,
    "not-compared": NOT_COMPARED,
    "infrastructure": INFRASTRUCTURE,
    "regression": FAILED,
    "drift": DRIFT,
}


@dataclass(frozen=True, slots=True)
class LimitFinding:
    """The result of one limit."""

    #: ``None`` = the whole session.
    part: Part | None
    #: Name of the limit, or ``clean-answers`` or ``applies``.
    gate: str
    #: The limit: 0 to 1, failures per 1,000 user turns, or a number of weaknesses; ``None`` if no
    #: limit can be set.
    limit: float | None
    verdict: Verdict
    #: One sentence, without a full stop.
    reason: str
    #: The rate, the difference, the failures per 1,000 turns, or the weaknesses; ``None`` if
    #: nothing was counted.
    value: float | None = None
    #: The interval of the value.
    interval: tuple[float, float] | None = None
    #: Number of dialogues that would settle an inconclusive comparison.
    dialogues_needed: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        plain: dict[str, Any] = to_json(self)
        return {**plain, "part": None if self.part is None else self.part._asdict()}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a session, with all its reasons."""

    #: Why the figures are meaningless, regardless of the findings.
    troubles: tuple[str, ...] = ()
    findings: tuple[LimitFinding, ...] = ()
    #: Why the given baseline is not compared, one phrase each.
    not_compared: tuple[str, ...] = ()
    #: The ``comparison`` of the JSON report; ``None`` without a baseline.
    comparison: Mapping[str, Any] | None = None
    #: Why fewer turns were tested than planned, if too few were for a pass; otherwise ``""``.
    cut_short: str = ""
    #: The part that was judged, if a budget ended the session after enough turns or if violations
    #: count in no limit.
    covered: tuple[str, ...] = ()
    #: Names of the tested relations without a limit.
    not_judged: tuple[str, ...] = ()
    #: Relations named in the options that applied to only part of the turns, with the counts.
    partly_applied: tuple[str, ...] = ()
    #: If the tracker failed on too few turns to fail the session: the number, and the first
    #: failures.
    raised: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any limit. A run that was cut short does not pass."""
        if self.troubles:
            return "infrastructure"
        found = {finding.verdict for finding in self.findings}
        for worst in ("drift", "regression"):
            if worst in found:
                return worst
        if self.cut_short:
            return "infrastructure"
        if self.not_compared and not self._estimates_compared:
            return "not-compared"
        return "inconclusive" if "inconclusive" in found or self.not_compared else "pass"

    @property
    def _estimates_compared(self) -> bool:
        """Whether estimated failures were compared, which is possible even if variants are not."""
        expected = (self.comparison or {}).get("estimated_failures")
        return expected is not None and not expected["reason"]

    def exit_status(self, *, compared: bool, policy: str) -> int:
        """Return the exit status of the verdict.

        Args:
            compared: whether there is a baseline. Without one, a failure of the tracker's service
                has the same status 1 as any other failure.
            policy: the option ``dst_inconclusive``.
        """
        if self.verdict == "inconclusive" and policy != "fail":
            return PASSED
        if self.verdict == "not-compared" and policy == "allow":
            return PASSED
        if self.verdict == "infrastructure" and not compared:
            return FAILED
        return STATUSES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Return the object ``gate`` of the JSON report."""
        return {
            "verdict": self.verdict,
            "troubles": [*self.troubles, *filter(None, [self.cut_short])],
            "not_compared": list(self.not_compared),
            "not_judged": list(self.not_judged),
            "partly_applied": list(self.partly_applied),
            "raised": list(self.raised),
            "covered": list(self.covered),
            "findings": [finding.to_json() for finding in self.findings],
            "comparison": None if self.comparison is None else dict(self.comparison),
        }


def judge_figure(
    limit: Limit, bound: float, figure: Figure, part: Part | None = None
) -> LimitFinding:
    """Judge a figure of a session, or of a part, by its limit."""
    value, interval, unit = figure.value, figure.interval, UNITS[limit.unit]
    if value is None:
        return LimitFinding(part, limit.name, bound, "inconclusive", figure.text)
    failed = (unit.under if limit.least else unit.over)(value, bound)
    known = ""
    if interval is not None and figure.dialogues is not None:
        ends = " to ".join(map(unit.show, interval))
        known = f" ({interval_name(figure.dialogues)} {ends})"
    elif figure.dialogues is not None and part is None:
        known = " (too few dialogues for an interval)"
    side = "within" if not failed else "under" if limit.least else "over"
    shown = f"{figure.text}{known}{figure.joint}"
    reason = f"{shown} is {side} the limit of {unit.show_limit(bound)}"
    verdict: Verdict = "regression" if failed else "pass"
    return LimitFinding(part, limit.name, bound, verdict, reason, value, interval)


def failure_rate(part: Part | None, counts: Counts) -> Figure:
    """Return the failure rate of a session or part. Only sessions and relations have intervals."""
    rate = counts.failure_rate
    if rate is None:
        return Figure(None, f"no valid variant{_of(part)} was answered")
    shown = f"the failure rate{_of(part)} {percent(rate)}"
    if isinstance(counts, Summary):
        return Figure(rate, shown, counts.failure_rate_interval, counts.dialogues_tested)
    return Figure(rate, shown)


def judge_rise(limit: float, found: Mapping[str, Any] | None, needed: int | None) -> LimitFinding:
    """Judge the rise of estimated failures, like `judge_difference`.

    ``found`` is ``estimated_failures`` of a comparison, or ``None`` without estimates.
    """
    gate = "max-estimated-rise"
    why = NO_ESTIMATE if found is None else found["reason"]
    if found is None or why:
        reason = f"the estimated failures are not compared with the baseline: {why}"
        return LimitFinding(None, gate, limit, "inconclusive", reason)
    rise, ends = found["difference"], found["interval"]
    interval = None if ends is None else (ends[0], ends[1])
    verdict = _verdict_of(interval, limit, is_over=over_per_1000(rise, limit))
    known = "too few dialogues for an interval"
    if interval is not None:
        known = f"interval {' to '.join(map(rise_per_1000, interval))}"
    reason = (
        f"the estimated failures of {TURNS:,} user turns changed by {rise_per_1000(rise)} against "
        f"the baseline ({known}); {rise_per_1000(limit)} are allowed"
    )
    needed, more = _needed(verdict, needed)
    return LimitFinding(None, gate, limit, verdict, f"{reason}{more}", rise, interval, needed)


def judge_difference(
    part: Part | None,
    margin: float,
    difference: float,
    interval: tuple[float, float] | None,
    needed: int | None,
) -> LimitFinding:
    """Judge the difference of two failure rates on the same variants.

    The verdict is ``regression`` if the interval is above 0 and the difference above the margin. It
    is ``pass`` if the upper bound of the interval is at most the margin. Otherwise it is
    ``inconclusive``, with the number of dialogues that would settle the verdict. Too few dialogues
    give no interval.
    """
    verdict = _verdict_of(interval, margin, is_over=over(difference, margin))
    moved = f"the failure rate{_of(part)} changed by {points(difference)}"
    known = (
        "too few dialogues for an interval"
        if interval is None
        else f"interval {points(interval[0])} to {points(interval[1])}"
    )
    reason = f"{moved} against the baseline ({known}); {points(margin)} are allowed"
    needed, more = _needed(verdict, needed)
    return LimitFinding(
        part, "max-regression", margin, verdict, f"{reason}{more}", difference, interval, needed
    )


def _verdict_of(
    interval: tuple[float, float] | None, margin: float, *, is_over: bool
) -> Literal["pass", "regression", "inconclusive"]:
    """Return the verdict on a difference; ``is_over`` says whether it is above its margin."""
    if interval is not None and interval[0] > 0 and is_over:
        return "regression"
    return "pass" if interval is not None and interval[1] <= margin else "inconclusive"


def _needed(verdict: Verdict, dialogues: int | None) -> tuple[int | None, str]:
    """Return how many dialogues would decide an inconclusive verdict, as a number and a text."""
    if verdict != "inconclusive":
        return None, ""
    if dialogues is None:
        return None, "; more dialogues cannot decide, because the difference equals the limit"
    return dialogues, f"; about {dialogues:,} dialogues are needed to decide"


def _of(part: Part | None) -> str:
    return "" if part is None else f" of {part}"
