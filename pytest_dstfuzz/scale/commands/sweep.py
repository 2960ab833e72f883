"""Commands about many campaigns and their results as tables: sweep, results."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import Command, ProgressLine
from pytest_dstfuzz.config import OutputSettings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_apart
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.results.sweep_file import SweepCell, SweepPlan
    from pytest_dstfuzz.scale.results.sweeping import SweptCell

#: The table of a sweep, in its folder.
TABLE: Final = "table"


class _Cells(ProgressLine):
    """Shows how far all cells are, and when they will be done."""

    def __init__(self, plan: SweepPlan) -> None:
        super().__init__("")
        self._cells = len(plan.cells)
        self._started = time.monotonic()

    def show(self, cell: SweepCell, number: int, done: int, total: int) -> None:
        """Show how far one cell is."""
        share = (number - 1 + done / max(1, total)) / self._cells
        left = (time.monotonic() - self._started) * (1 - share) / share if share else 0.0
        of = f"cell {number} of {self._cells}, {cell.name}"
        self.what = f"results of {of}; about {left / 60:.0f} min left"
        self(done, total)


def _sweep_options(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.toml", help="tables [axes] and [settings]")
    parser.option(
        "--output",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder for all cells, their table and their page; one that is there is gone on with",
    )
    parser.option("--parquet", action="store_true", help="write the table as Parquet, too")


def _sweep(given: Namespace) -> int:
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.report.html import check_installed  # noqa: PLC0415
    from pytest_dstfuzz.scale.results.sweep_file import read_sweep  # noqa: PLC0415
    from pytest_dstfuzz.scale.results.sweeping import run_sweep  # noqa: PLC0415

    check_installed()
    if given.parquet:
        import pytest_dstfuzz.scale.results.parquet  # noqa: F401, PLC0415 - says which extra it needs
    plan = read_sweep(given.file)
    check_apart({"--output": given.output}, {"the file of the sweep": given.file})
    line = _Cells(plan)
    swept: list[SweptCell] = []
    try:
        for one in run_sweep(plan, given.output, line.show):
            swept.append(one)
            line.close()
            print(printable(f"{one.cell.name}: {one.problem or 'done'}"), flush=True)
    finally:
        line.close()
        if swept:
            _write(given, plan, swept)
    return 1 if any(one.problem for one in swept) else 0


def _write(given: Namespace, plan: SweepPlan, swept: list[SweptCell]) -> None:
    """Write the reports of the cells, the table and the page."""
    from pytest_dstfuzz.scale.results.report import FolderReport  # noqa: PLC0415 - as above
    from pytest_dstfuzz.scale.results.sweep_differences import differences_of  # noqa: PLC0415
    from pytest_dstfuzz.scale.results.sweep_page import SweepPage, link_to, write_pages  # noqa: PLC0415
    from pytest_dstfuzz.scale.results.sweep_table import (  # noqa: PLC0415
        columns_of,
        record_of,
        rows_of,
        write_csv,
    )

    output: Path = given.output
    links: dict[str, str] = {}
    for one in swept:
        folder = one.folder
        if folder is None or not len(folder):
            continue
        path = one.path.with_suffix(one.path.suffix + ".html")
        FolderReport(folder).write(replace(OutputSettings(), report=(str(path),)))
        links[one.cell.name] = link_to(path, output)
    rows = [row for one in swept for row in rows_of(one)]
    axes = tuple(plan.axes)
    write_csv(output / f"{TABLE}.csv", rows, axes)
    if given.parquet:
        from pytest_dstfuzz.scale.results.parquet import write_parquet  # noqa: PLC0415 - an extra

        write_parquet(output / f"{TABLE}.parquet", columns_of(axes), map(record_of, rows))
    page = SweepPage(given.file.stem, plan.axes, rows, differences_of(plan.axes, swept), links)
    for path in write_pages(output, page):
        print(printable(str(path)))


def _results_options(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of --results")
    parser.option("--parquet", type=Path, metavar="PATH", help="write a row for each variant")


def _results(given: Namespace) -> None:
    if given.parquet is None:
        raise UserError("nothing to write: give --parquet PATH (see dstfuzz results --help)")
    from pytest_dstfuzz.scale.results.folder import ResultFolder  # noqa: PLC0415 - as above
    from pytest_dstfuzz.scale.results.parquet import (  # noqa: PLC0415
        VARIANT_COLUMNS,
        variant_rows,
        write_parquet,
    )

    folder = ResultFolder.open(given.folder)
    rows = write_parquet(given.parquet, VARIANT_COLUMNS, variant_rows(folder.results))
    print(printable(f"{given.parquet}: {rows:,} variants of {len(folder):,} results"))


SWEEP = Command(
    "sweep",
    "campaigns over models, data, seeds, searches, relations; one table, one page",
    "what is done is in the folder of --output, and the same command goes on from there",
    """\
  dstfuzz sweep searches.toml --output searches
  dstfuzz sweep searches.toml --output searches --parquet    a table for DuckDB and pandas, too
A file of two axes (names and values are those of the options):
  [settings]
  model = "trade"
  turns = 100
  [axes]
  search = ["random", "near-value"]
  seed = [0, 1]""",
    _sweep_options,
    _sweep,
    about="Run campaigns over all values of some options, and compare them.",
)

RESULTS = Command(
    "results",
    "a folder of results as Parquet, a row a variant",
    "a file that was there is as it was",
    """\
  dstfuzz results nightly --parquet nightly.parquet""",
    _results_options,
    _results,
    about="Write what is in a folder of results as a table.",
)
