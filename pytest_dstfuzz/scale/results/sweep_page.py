"""The comparison of a sweep's cells, for people: Markdown, and a page that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pytest_dstfuzz import __version__
from pytest_dstfuzz.config.rates import percent, points
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.edits import visible
from pytest_dstfuzz.scale.results.sweep_differences import AxisDifference
from pytest_dstfuzz.scale.results.sweep_table import SweepRow

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
        parts = [f"# Sweep: {self.name}", self.lead, _table(head, rows)]
        if self.differences:
            rows = list(map(_difference_texts, self.differences))
            parts += ["## Differences", ABOUT, _table(_DIFFERENCES, rows)]
        return "\n\n".join(map(printable, parts[:2])) + "\n\n" + "\n\n".join(parts[2:]) + "\n"

    def html(self) -> str:
        """Return the page; it needs the extra ``report``."""
        with needs_extra("the page of a sweep", "report", "jinja2", "markupsafe"):
            from pytest_dstfuzz.report.html.shell import (  # noqa: PLC0415 - needs jinja2
                environment,
                insides,
            )
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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return printable(text).replace("|", r"\|")
