"""Sweeps, which run a campaign for each combination of options: files, tables and pages."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz import Campaign, __version__
from pytest_dstfuzz.campaign.engine import data_digest
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import (
    MASK,
    OPTIONS,
    Header,
    OwnKey,
    Settings,
    identity_of,
    mask_credentials,
    names_of,
    python_value,
)
from pytest_dstfuzz.config.parsers import percent, points
from pytest_dstfuzz.errors import DataError, DstFuzzError, UserError, needs_extra, unknown_name
from pytest_dstfuzz.files import content_of, find_path, read_table, write_text
from pytest_dstfuzz.printable import format_list, printable
from pytest_dstfuzz.report.figures import undecided_text
from pytest_dstfuzz.report.wording import visible
from pytest_dstfuzz.scale.manifest import MOST_NAMED
from pytest_dstfuzz.scale.results import FolderReport, ResultFolder
from pytest_dstfuzz.scale.runs import Progress, run_into
from pytest_dstfuzz.search.registry import default_search
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.weaknesses.groups import find_weaknesses

#: Parts of the settings that a cell may set.
_PARTS: Final = ("tracker", "data", "variant", "reply", "budget")
_ALLOWED: Final = tuple(
    item.name
    for item in OPTIONS
    if item.part in _PARTS and item.name not in ("suite", "cache", "cache_size")
)
_PATHS: Final = frozenset(names_of("path"))
#: Options with dialogues and additions to them.
_READ: Final = tuple(item.name for item in OPTIONS if item.part == "data" and "path" in item.scopes)
#: Options whose values may be credentials.
_SECRET: Final = ("header", "tracker")
#: Maximum number of characters of a value in a folder name.
_SHOWN: Final = 24


@dataclass(frozen=True)
class SweepCell:
    """One campaign of a sweep, with its value for each axis."""

    #: The name of its folder: its values, and a digest of the settings that affect results.
    name: str
    values: Mapping[str, str]
    settings: Settings
    #: The identity of the settings when the sweep file was read, see `identity_of`.
    decided: Mapping[str, Any]
    #: Option -> the identity of the dialogues that it names.
    read: Mapping[str, str | None]

    def change_of(self, campaign: Campaign) -> str:
        """Say that a campaign of this cell has other settings than its folder's name, or ``""``."""
        now = campaign.identity
        found = {name for name, value in self.decided.items() if now[name] != value}
        read = _read_by(self.settings)
        found |= {name for name, value in self.read.items() if read[name] != value}
        if not found:
            return ""
        names = format_list(sorted(name.replace("_", "-") for name in found), MOST_NAMED)
        return (
            f"a file, a credential or an environment variable that {names} uses has changed since "
            "the sweep began, so cells before and after may be of two bots: run the same command "
            "again, which runs all cells with the change"
        )


@dataclass(frozen=True)
class SweepPlan:
    """All campaigns of a sweep in the order of the axes. The last axis varies fastest."""

    axes: Mapping[str, tuple[str, ...]]
    cells: tuple[SweepCell, ...]


def read_sweep(path: Path) -> SweepPlan:
    """Read a sweep file with the tables ``[axes]`` and ``[settings]``. Keys are option names.

    Paths are relative to the file. The option ``model`` is required in one of the tables.

    Raises:
        UserError: a name, a value or a combination of values is invalid.
    """
    if not path.is_file():
        raise DataError(
            f"there is no file {path}: write a TOML file with the tables [axes] and [settings]"
        )
    content = read_table(path, "[]")
    if unknown := [name for name in content if name not in ("axes", "settings")]:
        raise UserError(f"{path}: {unknown_name('table', unknown[0], ('axes', 'settings'))}")
    axes, fixed = _tables(content, path)
    texts: dict[str, tuple[str, ...]] = {}
    for name, found in axes.items():
        written = [_text(value) for value in found]
        shown = [_shown(name, value) for value in found]
        for place, text in enumerate(written):
            if text in written[:place]:
                raise UserError(
                    f"{path}, [axes] {name}: {shown[place]!r} is listed twice: remove one"
                )
        texts[name] = _numbered(shown)
    base = {name: _placed(name, value, path) for name, value in fixed.items()}
    cells = []
    for values in product(*(zip(texts[name], axes[name], strict=True) for name in axes)):
        own = {name: _placed(name, v, path) for name, (_, v) in zip(axes, values, strict=True)}
        labels = dict(zip(axes, (text for text, _ in values), strict=True))
        cells.append(_make_cell(labels, {**base, **own}, path))
    return SweepPlan(texts, tuple(cells))


def _tables(content: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of the axes, and the settings for all cells."""
    axes = {
        _named(name, path, "axes"): value for name, value in _parse_table(content, "axes", path)
    }
    fixed = {
        _named(name, path, "settings"): v for name, v in _parse_table(content, "settings", path)
    }
    if twice := [name for name in axes if name in fixed]:
        raise UserError(f"{path}: {twice[0]!r} is in [axes] and in [settings]: leave one out")
    if not axes:
        raise UserError(
            f'{path} has no axis: add a table [axes] with lists, such as search = ["random"]'
        )
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"{path}, [axes] {name}: must be a list of at least one value")
    if "model" not in {**axes, **fixed}:
        raise UserError(f"{path} names no tracker: add model to [axes] or to [settings]")
    return axes, fixed


def _parse_table(content: Mapping[str, Any], name: str, path: Path) -> Sequence[tuple[str, Any]]:
    table = content.get(name, {})
    if not isinstance(table, Mapping):
        raise UserError(f"{path}: {name} must be a table: write [{name}]")
    return tuple(table.items())


def _named(name: str, path: Path, table: str) -> str:
    spelled = name.replace("-", "_")
    if spelled not in _ALLOWED:
        raise UserError(f"{path}, [{table}]: {unknown_name('option', spelled, _ALLOWED)}")
    return spelled


def _placed(name: str, value: Any, path: Path) -> Any:
    """Resolve a path relative to the sweep file if it exists there. Other values stay."""
    if name in _PATHS and isinstance(value, str):
        beside = str(path.parent / value)
        return beside if find_path(beside) else value
    return value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _shown(name: str, value: Any) -> str:
    """Return a value of an axis as a text, with credentials masked."""
    text = _text(value)
    try:
        parsed = python_value(name, value)
    except UserError:  # The cell says what is wrong.
        parsed = None
    parts = parsed if isinstance(parsed, tuple) else (parsed,)
    if any(isinstance(part, Header | OwnKey) for part in parts):
        return ",".join(map(str, parts))
    if name in _SECRET and parsed is None:
        return MASK
    return mask_credentials(text)


def _read_by(settings: Settings) -> dict[str, str | None]:
    return {name: _named_file(settings.option(name)) for name in _READ}


def _named_file(path: str | None) -> str | None:
    """Return the identity of dialogues: a file's digest, or the name of a folder or data set.

    A folder may hold other files, too. If its dialogues changed, an error is raised when the
    results are continued.
    """
    found = None if path is None else find_path(path)
    if found is None or not found.is_file():
        return path and Path(path).name
    return content_of(found)


def _numbered(texts: Sequence[str]) -> tuple[str, ...]:
    """Number the texts that differ only in their masked credentials."""
    counts = Counter(texts)
    seen: Counter[str] = Counter()
    found = []
    for text in texts:
        seen[text] += 1
        found.append(f"{text} ({seen[text]})" if counts[text] > 1 else text)
    return tuple(found)


def _make_cell(shown: Mapping[str, str], given: Mapping[str, Any], path: Path) -> SweepCell:
    try:
        settings = Settings.of(**given)
    except UserError as error:
        of = ", ".join(f"{name} = {value}" for name, value in shown.items())
        raise UserError(f"{path}: {error} (in the cell {of})") from None
    if "search" not in given:
        settings = settings.replace_options(search=default_search(settings))
    decided, read = identity_of(settings), _read_by(settings)
    plain = [dict(shown), decided, read]
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    words = [
        re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.")[-_SHOWN:] for value in shown.values()
    ]
    return SweepCell("_".join([*filter(None, words), digest]), shown, settings, decided, read)


CELLS: Final = "cells"

#: Called with the running cell, its number from 1, and its number of results so far and in total.
SweepProgress = Callable[[SweepCell, int, int, int], None]


@dataclass(frozen=True)
class SweptCell:
    """A cell of a sweep, with the end of its campaign."""

    cell: SweepCell
    path: Path
    #: Why the cell failed or is incomplete; ``""`` if it is complete.
    problem: str = ""
    #: Whether the folder has results that this call did not accept as those of its bot.
    refused: bool = False

    @property
    def folder(self) -> ResultFolder | None:
        """The cell's results, possibly incomplete, or ``None`` without results."""
        if self.refused or not ResultFolder.is_one(self.path):
            return None
        return ResultFolder.open(self.path)

    @property
    def doubt(self) -> str:
        """Why the cell's results may be of two versions of the bot, or ``""``."""
        folder = self.folder
        return "" if folder is None else folder.manifest.doubt


def run_sweep(plan: SweepPlan, output: Path, progress: SweepProgress) -> Iterator[SweptCell]:
    """Run the missing part of each cell in order. Yield how each cell ended.

    If a cell fails, the failure is reported and the other cells still run. The same call continues
    an interrupted sweep. If the sweep file has changed, unchanged cells do not run again.
    """
    known = _LastTracker()
    for number, cell in enumerate(plan.cells, start=1):
        path = output / CELLS / cell.name
        yield _run_cell(cell, path, known, partial(progress, cell, number))


def _run_cell(cell: SweepCell, path: Path, known: _LastTracker, progress: Progress) -> SweptCell:
    """Run the missing part of a cell. Return how it ended."""
    # Without a new result, nothing shows that earlier results are of the present bot.
    refused = True

    def accepted(done: int, total: int) -> None:
        nonlocal refused
        refused = False
        progress(done, total)

    try:
        campaign = known.campaign(cell.settings)
        if problem := cell.change_of(campaign):
            return SweptCell(cell, path, problem, refused=True)
        folder = run_into(campaign, path, accepted)
    except DstFuzzError as error:
        return SweptCell(cell, path, str(error), refused=refused)
    if not folder.complete:
        return SweptCell(cell, path, folder.manifest.ended or "not finished")
    # A gate would not pass with these results either.
    totals = FolderReport(folder).totals
    undecided = "" if folder.judge is None else undecided_text(folder.judge)
    problems = (*totals.troubles.troubles(), *totals.one_answer, undecided)
    return SweptCell(cell, path, "; ".join(filter(None, problems)))


class _LastTracker:
    """The last cell's tracker. The next cell reuses it if its settings are equal."""

    def __init__(self) -> None:
        self._key: Any = None
        self._tracker: Tracker | None = None
        self._data = ""

    def campaign(self, settings: Settings) -> Campaign:
        """Return the campaign of a cell."""
        # A tracker may depend on the settings of data and replies, and on the dialogues.
        key = settings.tracker, settings.data, settings.reply
        timed = settings.budget.max_seconds is not None
        if self._tracker is not None and key == self._key and not timed:
            campaign = Campaign(self._tracker, settings=settings)
            if data_digest(campaign.data) == self._data:
                return campaign
        campaign = Campaign(settings.tracker.model, settings=settings)
        self._key, self._tracker = (None, None) if timed else (key, campaign.tracker)
        self._data = data_digest(campaign.data)
        return campaign


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """The results of one cell under one relation. Rates are fractions with 95 % intervals.

    A rate is ``None`` if the tracker answered nothing, and only a bound if there were too few
    dialogues.
    """

    cell: str
    #: Axis -> value.
    values: Mapping[str, str] = field(default_factory=dict)
    #: Why the cell failed or is incomplete.
    problem: str = ""
    #: Why its results may be of two versions of the bot.
    doubt: str = ""
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
    #: Estimated failures per 1,000 user turns; only for a search by density.
    estimated_failures: float | None = None

    @property
    def remark(self) -> str:
        """The problem and the doubt."""
        return "; ".join(filter(None, (self.problem, self.doubt)))


def rows_of(swept: SweptCell) -> Iterator[SweepRow]:
    """Yield the rows of a cell. A cell without results has one row without a relation."""
    cell, folder = swept.cell, swept.folder
    about: dict[str, Any] = {
        "cell": cell.name,
        "values": dict(cell.values),
        "problem": swept.problem,
        "doubt": swept.doubt,
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
        expected = found.estimated_failures
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
            estimated_failures=None if expected is None else expected.per_1000,
        )


def columns_of(axes: Sequence[str]) -> dict[str, type]:
    """Return the columns of the table with their types. Each axis is a column of text."""
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
    """Return a row as a mapping from column to value."""
    plain = asdict(row)
    values = plain.pop("values")
    return {**plain, **{_axis(name): value for name, value in values.items()}}


def _axis(name: str) -> str:
    # The column "relation" already exists; it has the relation of the results.
    return f"axis_{name}" if name == "relation" else name


#: Files in the folder of a sweep, each with a text at its beginning. A file of Parquet begins with
#: ``PAR1`` whoever writes it.
SWEEP_FILES: Final = {
    "index.html": "<title>Sweep: ",
    "sweep.md": "# Sweep: ",
    "table.csv": ",relation,dialogues,turns,valid,violations,",
    "table.parquet": "PAR1",
}


def write_csv(path: Path, rows: Sequence[SweepRow], axes: Sequence[str]) -> None:
    """Write the table as CSV, atomically."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns_of(axes)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(record_of, rows))
    write_text(path, text.getvalue())


_DRAWS: Final = 5_000
#: The number of draws in memory at once.
_SLICE: Final = 100
#: Minimum number of dialogues for an interval.
_FEWEST: Final = 8

Sums = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AxisDifference:
    """The share of broken turns for one value of an axis, compared with the axis' first value."""

    axis: str
    first: str
    value: str
    relation: str
    #: The number of dialogues with tested turns for both values.
    dialogues: int
    rate_first: float
    rate: float
    #: The 95 % interval of the difference over dialogues; ``None`` for fewer than 8.
    interval: tuple[float, float] | None
    #: The p-value of a test that swaps the values within dialogues, and its Holm correction over
    #: all differences of the sweep.
    p_value: float | None
    holm: float | None = None

    @property
    def difference(self) -> float:
        """The rate of this value minus the rate of the first value."""
        return self.rate - self.rate_first


def differences_of(
    axes: Mapping[str, Sequence[str]], swept: Iterable[SweptCell]
) -> tuple[AxisDifference, ...]:
    """Compare each value of each axis with the first value of its axis.

    For each dialogue, the turns of all cells with the value are added up. A cell is compared with
    the cell that differs only in having the first value. A pair counts only if both cells are
    complete.
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
            # Cells of the axis "relation" have no relation in common.
            names = dict.fromkeys(
                name for before, after in pairs for name in before if name in after
            )
            for name in names:
                before, after = _added(pairs, name)
                found.append(_difference(axis, values[0], value, name, before, after))
    return _with_holm(found)


def _by_relation(swept: SweptCell) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the numbers of broken and of tested turns, by relation and dialogue."""
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
    """Add up broken and tested turns by dialogue, for both compared values.

    Returns two arrays ``[dialogues, 2]``. Only dialogues with results for both values are kept.
    """
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
    """Return differences for resampled dialogues, and for dialogues with swapped values."""
    count = len(before)
    again = rng.integers(0, count, (_SLICE, count))
    moved = _rate(after[again].sum(1)) - _rate(before[again].sum(1))
    swap = rng.random((_SLICE, count, 1)) < 0.5
    one, other = (np.where(swap, *both).sum(1) for both in ((after, before), (before, after)))
    return moved, _rate(one) - _rate(other)


def _rate(sums: Sums) -> Sums:
    """Divide the broken by the tested turns of sums ``[..., 2]``."""
    rate: Sums = sums[..., 0] / np.maximum(sums[..., 1], 1)
    return rate


def _with_holm(found: Sequence[AxisDifference]) -> tuple[AxisDifference, ...]:
    """Add p-values corrected for multiple comparisons (Holm, 1979)."""
    known = sorted((one.p_value, at) for at, one in enumerate(found) if one.p_value is not None)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p_value, at) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p_value))
        adjusted[at] = highest
    return tuple(replace(one, holm=adjusted.get(at)) for at, one in enumerate(found))


ABOUT: Final = (
    "Each value of an axis is compared with the first value of the axis, over all pairs of cells "
    "that otherwise have the same values. The rates are the shares of the tested turns that "
    "break, on the dialogues of both cells. The intervals are 95 % intervals over dialogues; p "
    "is from a permutation test, and p (Holm) is corrected for all rows of this table. "
    "Unfinished cells are left out."
)
_HEAD: Final = ("relation", "turns", "failure rate", "turns broken", "accuracy", "calls")
_DIFFERENCES: Final = (
    *("axis", "value", "relation", "dialogues", "first", "rate", "difference", "interval", "p"),
    "p (Holm)",
)


@dataclass(frozen=True)
class SweepPage:
    """The content of a sweep's report page."""

    name: str
    axes: Mapping[str, Sequence[str]]
    rows: Sequence[SweepRow]
    differences: Sequence[AxisDifference]
    #: Cell -> address of its report, relative to the page.
    links: Mapping[str, str]

    @property
    def lead(self) -> str:
        """A sentence with the number of cells and the axes."""
        cells = len({row.cell for row in self.rows})
        broken = len({row.cell for row in self.rows if row.problem})
        text = f"{cells} cells: {' x '.join(f'{len(v)} {n}' for n, v in self.axes.items())}"
        doubtful = len({row.cell for row in self.rows if row.doubt})
        text += f"; {broken} of them unfinished" if broken else ""
        return f"{text}; {doubtful} may belong to two versions of the bot" if doubtful else text

    @property
    def shown_axes(self) -> list[str]:
        """The axes with a separate column. The relation always has one."""
        return [name for name in self.axes if name != "relation"]

    def head(self) -> list[str]:
        """Return the headers of the table of cells."""
        return [*self.shown_axes, *_HEAD, "weaknesses"]

    def texts(self, row: SweepRow) -> list[str]:
        """Return the texts of a row's cells."""
        rate = _between(row.failure_rate, row.failure_rate_low, row.failure_rate_high)
        turns = (row.turn_failure_rate, row.turn_failure_rate_low, row.turn_failure_rate_high)
        figures = [row.relation, f"{row.turns:,}", rate, _between(*turns)]
        figures += [percent(row.clean_accuracy), f"{row.calls:,}", f"{row.weaknesses:,}"]
        return [*(row.values[name] for name in self.shown_axes), *figures]

    def markdown(self) -> str:
        """Return the tables of cells and differences as Markdown."""
        head = [*self.head(), "problem"]
        rows = [[*self.texts(row), row.remark] for row in self.rows]
        parts = [f"# Sweep: {self.name}", self.lead, _show_table(head, rows)]
        if self.differences:
            rows = list(map(_difference_texts, self.differences))
            parts += ["## Differences", ABOUT, _show_table(_DIFFERENCES, rows)]
        return "\n\n".join(map(printable, parts[:2])) + "\n\n" + "\n\n".join(parts[2:]) + "\n"

    def html(self) -> str:
        """Return the page as HTML. This needs the extra ``report``."""
        with needs_extra("the page of a sweep", "report", "jinja2", "markupsafe"):
            from pytest_dstfuzz.report.html.page import environment, insides  # noqa: PLC0415 - needs jinja2
        rows = [
            {
                "texts": [visible(text) for text in self.texts(row)],
                "link": self.links.get(row.cell, ""),
                "problem": visible(row.remark),
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
    """Write the page of a sweep as ``sweep.md`` and ``index.html``."""
    written = {folder / "sweep.md": page.markdown(), folder / "index.html": page.html()}
    for path, text in written.items():
        write_text(path, text)
    return tuple(written)


def link_to(path: Path, folder: Path) -> str:
    """Return the address of a file below a folder, relative to the folder."""
    return quote(path.relative_to(folder).as_posix())


def _between(rate: float | None, low: float | None, high: float | None) -> str:
    if rate is None or low is None or high is None:
        return percent(rate)
    return f"{percent(rate)} [{percent(low)}, {percent(high)}]"


def _difference_texts(one: AxisDifference) -> list[str]:
    ends = one.interval
    before, after = (one.rate_first, one.rate) if one.dialogues else (None, None)
    return [
        one.axis,
        f"{one.value} (first: {one.first})",
        one.relation,
        f"{one.dialogues:,}",
        percent(before),
        percent(after),
        points(one.difference) if one.dialogues else percent(None),
        "too few dialogues" if ends is None else f"{points(ends[0])} to {points(ends[1])}",
        "" if one.p_value is None else f"{one.p_value:.3g}",
        "" if one.holm is None else f"{one.holm:.3g}",
    ]


def _show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_show_cell, line))} |" for line in lines)


def _show_cell(text: str) -> str:
    return printable(text).replace("|", r"\|")
