"""Sweeps: their file, cells, tables and pages."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz import Campaign, __version__
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import OPTIONS, Settings, default_search, names_of, settings_json
from pytest_dstfuzz.config.parsers import percent, points
from pytest_dstfuzz.errors import DataError, DstFuzzError, UserError, needs_extra, unknown_name
from pytest_dstfuzz.files import read_table, write_text
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.wording import visible
from pytest_dstfuzz.scale.results import ResultFolder, run_into
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.weaknesses.groups import find_weaknesses

#: Parts of the settings that a cell may have.
_PARTS: Final = ("tracker", "data", "variant", "reply", "budget")
_ALLOWED: Final = tuple(
    item.name
    for item in OPTIONS
    if item.part in _PARTS and item.name not in ("suite", "cache", "cache_size")
)
_PATHS: Final = frozenset(names_of("path"))
_PLACES: Final = frozenset(names_of("place"))
#: Characters of a value in the name of a folder.
_SHOWN: Final = 24


@dataclass(frozen=True)
class SweepCell:
    """One campaign of a sweep."""

    #: Of its folder: its values, and a digest of all that decides its results.
    name: str
    values: Mapping[str, str]
    settings: Settings


@dataclass(frozen=True)
class SweepPlan:
    """All campaigns of a sweep, in the order of the axes, the last of which changes first."""

    axes: Mapping[str, tuple[str, ...]]
    cells: tuple[SweepCell, ...]


def read_sweep(path: Path) -> SweepPlan:
    """Read a file with the tables ``[axes]`` and ``[settings]``, by the names of options.

    Paths are relative to the file. Whatever axis there is, ``model`` must be given.

    Raises:
        UserError: a name, a value or a combination of values that there is not.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}: a sweep is a TOML file with [axes], [settings]")
    content = read_table(path, "[]")
    if unknown := [name for name in content if name not in ("axes", "settings")]:
        raise UserError(f"{path}: {unknown_name('table', unknown[0], ('axes', 'settings'))}")
    axes, fixed = _tables(content, path)
    texts = {name: tuple(map(_text, values)) for name, values in axes.items()}
    for name, found in texts.items():
        if twice := [text for text in found if found.count(text) > 1]:
            raise UserError(f"{path}, [axes] {name}: {twice[0]!r} stands there twice")
    base = {name: _placed(name, value, path) for name, value in fixed.items()}
    cells = []
    for values in product(*axes.values()):
        own = {name: _placed(name, v, path) for name, v in zip(axes, values, strict=True)}
        shown = dict(zip(axes, map(_text, values), strict=True))
        cells.append(_make_cell(shown, {**base, **own}, path))
    return SweepPlan(texts, tuple(cells))


def _tables(content: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes, and what all cells have."""
    axes = {
        _named(name, path, "axes"): value for name, value in _parse_table(content, "axes", path)
    }
    fixed = {
        _named(name, path, "settings"): v for name, v in _parse_table(content, "settings", path)
    }
    if twice := [name for name in axes if name in fixed]:
        raise UserError(f"{path}: {twice[0]!r} is in [axes] and in [settings]: leave one out")
    if not axes:
        raise UserError(f'{path} has no axis: [axes] with lists, such as search = ["random"]')
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"{path}, [axes] {name}: a list of values is expected, as an axis is")
    if "model" not in {**axes, **fixed}:
        raise UserError(f"{path} names no tracker: model, in [axes] or in [settings]")
    return axes, fixed


def _parse_table(content: Mapping[str, Any], name: str, path: Path) -> Sequence[tuple[str, Any]]:
    table = content.get(name, {})
    if not isinstance(table, Mapping):
        raise UserError(f"{path}: [{name}] is a table, {name} = ... is none")
    return tuple(table.items())


def _named(name: str, path: Path, table: str) -> str:
    spelled = name.replace("-", "_")
    if spelled not in _ALLOWED:
        raise UserError(f"{path}, [{table}]: {unknown_name('option', spelled, _ALLOWED)}")
    return spelled


def _placed(name: str, value: Any, path: Path) -> Any:
    """Return a value, and of a path that is there beside the file the one that is there."""
    if name in _PATHS and isinstance(value, str):
        beside = path.parent / value
        return str(beside) if beside.exists() else value
    return value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _make_cell(shown: Mapping[str, str], given: Mapping[str, Any], path: Path) -> SweepCell:
    try:
        settings = Settings.of(**given)
    except UserError as error:
        of = ", ".join(f"{name} = {value}" for name, value in shown.items())
        raise UserError(f"{path}: {error} (in the cell {of})") from None
    if "search" not in given:
        settings = settings.replace_options(search=default_search(settings))
    plain = {name: one for name, one in settings_json(settings).items() if name not in _PLACES}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    words = [
        re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.")[-_SHOWN:] for value in shown.values()
    ]
    return SweepCell("_".join([*filter(None, words), digest]), shown, settings)


CELLS: Final = "cells"

#: Told the cell that runs, its number from 1, and how many of its results there are.
SweepProgress = Callable[[SweepCell, int, int, int], None]


@dataclass(frozen=True)
class SweptCell:
    """A cell and what came of it."""

    cell: SweepCell
    path: Path
    #: Why it could not be run, or not to its end; ``""`` = it was.
    problem: str = ""

    @property
    def folder(self) -> ResultFolder | None:
        """Its results, also those of one that was not run to its end; ``None`` without any."""
        return ResultFolder.open(self.path) if ResultFolder.is_one(self.path) else None


def run_sweep(plan: SweepPlan, output: Path, progress: SweepProgress) -> Iterator[SweptCell]:
    """Run what is missing of each cell, in their order, and yield what came of it.

    A cell that cannot be run is told of, and the others go on. Whatever ends a sweep, the same
    call goes on with it; cells that a changed file still has are not run again.
    """
    known = _LastTracker()
    for number, cell in enumerate(plan.cells, start=1):
        path = output / CELLS / cell.name
        yield SweptCell(cell, path, _problem_of(cell, path, known, number, progress))


def _problem_of(
    cell: SweepCell, path: Path, known: _LastTracker, number: int, progress: SweepProgress
) -> str:
    """Run a cell, and return why that went wrong, if it did."""
    try:
        campaign = known.campaign(cell.settings)
        folder = run_into(campaign, path, lambda done, total: progress(cell, number, done, total))
    except DstFuzzError as error:
        return str(error)
    return "" if folder.complete else folder.manifest.ended or "not run to its end"


class _LastTracker:
    """The tracker of the last cell, for the next where that asks the same one."""

    def __init__(self) -> None:
        self._key: Any = None
        self._tracker: Tracker | None = None

    def campaign(self, settings: Settings) -> Campaign:
        """Return the campaign of a cell."""
        # What reads the data and how answers are asked for may be part of a tracker.
        key = settings.tracker, settings.data, settings.reply
        timed = settings.budget.max_seconds is not None
        if self._tracker is not None and key == self._key and not timed:
            return Campaign(self._tracker, settings=settings)
        campaign = Campaign(settings.tracker.model, settings=settings)
        self._key, self._tracker = (None, None) if timed else (key, campaign.tracker)
        return campaign


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """What came of one cell under one relation; rates are shares, bounds those of 95 %.

    A rate is ``None`` where nothing was answered, a bound where there were too few dialogues.
    """

    cell: str
    #: By axis.
    values: Mapping[str, str] = field(default_factory=dict)
    #: Why the cell was not run, or not to its end.
    problem: str = ""
    relation: str = ""
    dialogues: int = 0
    turns: int = 0
    valid: int = 0
    violations: int = 0
    errors: int = 0
    failure_rate: float | None = None
    failure_rate_low: float | None = None
    failure_rate_high: float | None = None
    turns_broken: int = 0
    turn_failure_rate: float | None = None
    turn_failure_rate_low: float | None = None
    turn_failure_rate_high: float | None = None
    clean_accuracy: float | None = None
    calls: int = 0
    minimiser_calls: int = 0
    weaknesses: int = 0
    #: Of 1,000 user turns; of a search by density alone.
    expected_failures: float | None = None


def rows_of(swept: SweptCell) -> Iterator[SweepRow]:
    """Yield the rows of a cell: one without a relation where nothing was run."""
    cell, folder = swept.cell, swept.folder
    about: dict[str, Any] = {
        "cell": cell.name,
        "values": dict(cell.values),
        "problem": swept.problem,
    }
    if folder is None or not len(folder):
        yield SweepRow(**about)
        return
    for relation in folder.manifest.relations:
        results = folder.results.of(relation)
        if not len(results):
            continue
        found = summarise(results)
        low, high = found.failure_rate_interval or (None, None)
        turn_low, turn_high = found.turn_failure_rate_interval or (None, None)
        expected = found.expected_failures
        yield SweepRow(
            **about,
            relation=relation,
            dialogues=found.dialogues_tested,
            turns=found.turns,
            valid=found.valid,
            violations=found.violations,
            errors=found.errors,
            failure_rate=found.failure_rate,
            failure_rate_low=low,
            failure_rate_high=high,
            turns_broken=found.turns_broken,
            turn_failure_rate=found.turn_failure_rate,
            turn_failure_rate_low=turn_low,
            turn_failure_rate_high=turn_high,
            clean_accuracy=found.clean_accuracy,
            calls=found.calls,
            minimiser_calls=found.minimiser_calls,
            weaknesses=len(find_weaknesses(results)),
            expected_failures=None if expected is None else expected.per_1000,
        )


def columns_of(axes: Sequence[str]) -> dict[str, type]:
    """Return the columns of the table and what they hold; each axis is one, as text."""
    found: dict[str, type] = {}
    for item in fields(SweepRow):
        if item.name == "values":
            found |= {_axis(name): str for name in axes}
        else:
            found[item.name] = next(
                kind for kind in (str, int, float) if item.type.startswith(kind.__name__)
            )
    return found


def record_of(row: SweepRow) -> dict[str, Any]:
    """Return a row by its columns."""
    plain = asdict(row)
    values = plain.pop("values")
    return {**plain, **{_axis(name): value for name, value in values.items()}}


def _axis(name: str) -> str:
    # There is a column of that name, which says under which relation.
    return f"axis_{name}" if name == "relation" else name


def write_csv(path: Path, rows: Sequence[SweepRow], axes: Sequence[str]) -> None:
    """Write the table as CSV, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns_of(axes)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(record_of, rows))
    write_text(path, text.getvalue())


_DRAWS: Final = 5_000
#: Of them in memory at once.
_SLICE: Final = 100
#: Fewer dialogues give no interval worth showing.
_FEWEST: Final = 8

Sums = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AxisDifference:
    """Share of tested turns that break with one value of an axis, beside that of the first."""

    axis: str
    first: str
    value: str
    relation: str
    #: Dialogues that have tested turns with both values.
    dialogues: int
    rate_first: float
    rate: float
    #: 95 % interval of the difference over dialogues; ``None`` with fewer than 8.
    interval: tuple[float, float] | None
    #: Of a test that swaps the values within dialogues, and the same by Holm's method, over all
    #: differences of the sweep.
    p_value: float | None
    holm: float | None = None

    @property
    def difference(self) -> float:
        """The rate less that of the first value."""
        return self.rate - self.rate_first


def differences_of(
    axes: Mapping[str, Sequence[str]], swept: Iterable[SweptCell]
) -> tuple[AxisDifference, ...]:
    """Compare each value of each axis with the axis' first.

    Of the cells with the value, turns are added up by dialogue; only cells count whose
    counterpart with the first value was run to its end too.
    """
    done = {tuple(one.cell.values.items()): one for one in swept if not one.problem}
    sums = {key: _by_relation(one) for key, one in done.items()}
    found: list[AxisDifference] = []
    for axis, values in axes.items():
        for value in values[1:]:
            pairs = [
                (sums[other], own)
                for key, own in sums.items()
                if dict(key)[axis] == value
                and (other := tuple({**dict(key), axis: values[0]}.items())) in sums
            ]
            # Under the axis of relations no two cells have one in common.
            names = dict.fromkeys(
                name for before, after in pairs for name in before if name in after
            )
            for name in names:
                before, after = _added(pairs, name)
                found.append(_difference(axis, values[0], value, name, before, after))
    return _with_holm(found)


def _by_relation(swept: SweptCell) -> dict[str, dict[str, tuple[int, int]]]:
    """Return relation -> dialogue -> its turns that broke, and those that were tested."""
    sums: dict[str, dict[str, tuple[int, int]]] = {}
    folder = swept.folder
    for turn in () if folder is None else folder.results:
        of = sums.setdefault(turn.relation, {})
        broken, tested = of.get(turn.dialogue_id, (0, 0))
        of[turn.dialogue_id] = broken + bool(turn.violations), tested + turn.tested
    return sums


def _added(
    pairs: Sequence[tuple[Mapping[str, Mapping[str, tuple[int, int]]], ...]], relation: str
) -> tuple[Sums, Sums]:
    """Return the sums of the two values, each ``[dialogues, 2]``, of dialogues with both."""
    both: list[dict[str, Sums]] = [{}, {}]
    for pair in pairs:
        for side, of in enumerate(pair):
            for name, counts in of.get(relation, {}).items():
                both[side][name] = both[side].get(name, np.zeros(2)) + np.array(counts)
    names = [name for name in both[0] if name in both[1]]
    names = [name for name in names if both[0][name][1] and both[1][name][1]]
    first, second = (np.array([one[name] for name in names]).reshape(-1, 2) for one in both)
    return first, second


def _difference(
    axis: str, first: str, value: str, relation: str, before: Sums, after: Sums
) -> AxisDifference:
    count = len(before)
    if not count:
        return AxisDifference(axis, first, value, relation, 0, 0.0, 0.0, None, None)
    rates = _rate(before.sum(0)), _rate(after.sum(0))
    interval = p_value = None
    if count >= _FEWEST:
        rng = stream(0, "sweep", axis, value, relation)
        slices = [_drawn(before, after, rng) for _ in range(_DRAWS // _SLICE)]
        moved, swapped = (np.concatenate(part) for part in zip(*slices, strict=True))
        low, high = np.percentile(moved, [2.5, 97.5])
        interval = float(low), float(high)
        beyond = np.abs(swapped) >= abs(rates[1] - rates[0]) - 1e-12
        p_value = float((beyond.sum() + 1) / (len(swapped) + 1))
    return AxisDifference(
        axis, first, value, relation, count, float(rates[0]), float(rates[1]), interval, p_value
    )


def _drawn(before: Sums, after: Sums, rng: np.random.Generator) -> tuple[Sums, Sums]:
    """Return differences on dialogues drawn again, and with the values swapped within them."""
    count = len(before)
    again = rng.integers(0, count, (_SLICE, count))
    moved = _rate(after[again].sum(1)) - _rate(before[again].sum(1))
    swap = rng.random((_SLICE, count, 1)) < 0.5
    one, other = (np.where(swap, *both).sum(1) for both in ((after, before), (before, after)))
    return moved, _rate(one) - _rate(other)


def _rate(sums: Sums) -> Sums:
    """Return broken / tested of ``[..., 2]``."""
    rate: Sums = sums[..., 0] / np.maximum(sums[..., 1], 1)
    return rate


def _with_holm(found: Sequence[AxisDifference]) -> tuple[AxisDifference, ...]:
    """Put in the p-values that hold for all differences together (Holm, 1979)."""
    known = sorted((one.p_value, at) for at, one in enumerate(found) if one.p_value is not None)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p_value, at) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p_value))
        adjusted[at] = highest
    return tuple(replace(one, holm=adjusted.get(at)) for at, one in enumerate(found))


ABOUT: Final = (
    "Each value of an axis beside the axis' first, over all cells that have one of the two and are "
    "alike in all else: share of the tested turns that break, on the dialogues that both have. "
    "Intervals are of 95 %, dialogues drawn again; p is of a permutation test, Holm's over all "
    "rows of this table. Cells that were not run to their end are left out."
)
_HEAD: Final = ("relation", "turns", "failure rate", "turns broken", "accuracy", "calls")
_DIFFERENCES: Final = (
    *("axis", "value", "relation", "dialogues", "first", "rate", "difference", "interval", "p"),
    "p (Holm)",
)


@dataclass(frozen=True)
class SweepPage:
    """What is shown of a sweep."""

    name: str
    axes: Mapping[str, Sequence[str]]
    rows: Sequence[SweepRow]
    differences: Sequence[AxisDifference]
    #: By cell: the address of its own report, from the page.
    links: Mapping[str, str]

    @property
    def lead(self) -> str:
        """What it is, in a sentence."""
        cells = len({row.cell for row in self.rows})
        broken = len({row.cell for row in self.rows if row.problem})
        text = f"{cells} cells: {' x '.join(f'{len(v)} {n}' for n, v in self.axes.items())}"
        return f"{text}; {broken} of them not run to their end" if broken else text

    @property
    def shown_axes(self) -> list[str]:
        """The axes that have a column of their own: that of relations is there in any case."""
        return [name for name in self.axes if name != "relation"]

    def head(self) -> list[str]:
        """Return the heads of the table of cells."""
        return [*self.shown_axes, *_HEAD, "weaknesses"]

    def texts(self, row: SweepRow) -> list[str]:
        """Return the cells of a row."""
        rate = _between(row.failure_rate, row.failure_rate_low, row.failure_rate_high)
        turns = (row.turn_failure_rate, row.turn_failure_rate_low, row.turn_failure_rate_high)
        figures = [row.relation, f"{row.turns:,}", rate, _between(*turns)]
        figures += [percent(row.clean_accuracy), f"{row.calls:,}", f"{row.weaknesses:,}"]
        return [*(row.values[name] for name in self.shown_axes), *figures]

    def markdown(self) -> str:
        """Return tables of cells and of differences."""
        head = [*self.head(), "problem"]
        rows = [[*self.texts(row), row.problem] for row in self.rows]
        parts = [f"# Sweep: {self.name}", self.lead, _show_table(head, rows)]
        if self.differences:
            rows = list(map(_difference_texts, self.differences))
            parts += ["## Differences", ABOUT, _show_table(_DIFFERENCES, rows)]
        return "\n\n".join(map(printable, parts[:2])) + "\n\n" + "\n\n".join(parts[2:]) + "\n"

    def html(self) -> str:
        """Return the page; it needs the extra ``report``."""
        with needs_extra("the page of a sweep", "report", "jinja2", "markupsafe"):
            from pytest_dstfuzz.report.html.page import environment, insides  # noqa: PLC0415 - needs jinja2
        rows = [
            {
                "texts": [visible(text) for text in self.texts(row)],
                "link": self.links.get(row.cell, ""),
                "problem": visible(row.problem),
            }
            for row in self.rows
        ]
        differences: dict[str, Any] = {
            "head": _DIFFERENCES,
            "rows": [[visible(text) for text in _difference_texts(o)] for o in self.differences],
        }
        return (
            environment()
            .get_template("sweep.html.j2")
            .render(
                name=visible(self.name),
                tool=f"pytest-dstfuzz {__version__}",
                lead=visible(self.lead),
                names=len(self.shown_axes) + 1,
                cells={"head": self.head(), "rows": rows},
                about=ABOUT,
                differences=differences,
                **insides(),
            )
        )


def write_pages(folder: Path, page: SweepPage) -> tuple[Path, ...]:
    """Write ``sweep.md`` and ``index.html`` into a folder."""
    written = {folder / "sweep.md": page.markdown(), folder / "index.html": page.html()}
    for path, text in written.items():
        write_text(path, text)
    return tuple(written)


def link_to(path: Path, folder: Path) -> str:
    """Return the address of a file below a folder, from a page in it."""
    return quote(path.relative_to(folder).as_posix())


def _between(rate: float | None, low: float | None, high: float | None) -> str:
    if rate is None or low is None or high is None:
        return percent(rate)
    return f"{percent(rate)} [{percent(low)}, {percent(high)}]"


def _difference_texts(one: AxisDifference) -> list[str]:
    ends = one.interval
    return [
        one.axis,
        f"{one.value} (first: {one.first})",
        one.relation,
        f"{one.dialogues:,}",
        percent(one.rate_first),
        percent(one.rate),
        points(one.difference),
        "too few dialogues" if ends is None else f"{points(ends[0])} to {points(ends[1])}",
        "" if one.p_value is None else f"{one.p_value:.3g}",
        "" if one.holm is None else f"{one.holm:.3g}",
    ]


def _show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_show_cell, line))} |" for line in lines)


def _show_cell(text: str) -> str:
    return printable(text).replace("|", r"\|")
