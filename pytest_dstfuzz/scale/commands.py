"""The commands for large campaigns: campaign, merge, sweep and results."""

from __future__ import annotations

import shlex
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import (
    Command,
    EstimateLine,
    ProgressLine,
    build_given_settings,
    check_output,
    print_page,
    terminal_page,
)
from pytest_dstfuzz.config import (
    OPTIONS,
    OutputSettings,
    Settings,
    input_files,
    mask_command_line,
    shard_text,
)
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_apart, check_outside, check_own, check_writable
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.ray import RayOptions
    from pytest_dstfuzz.scale.results import ResultFolder
    from pytest_dstfuzz.scale.sweeps import SweepCell, SweepPlan, SweptCell


#: Names of the Ray options in parsed arguments.
RAY_OPTIONS: Final = ("ray", "ray_actors", "ray_gpus")


def ray_options(parser: Parser, meaning: str = "") -> None:
    """Add the options for Ray to a parser. ``meaning`` is appended to the help of ``--ray``."""
    parser.option(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run with Ray actors, each with its own tracker: on this machine, or on the "
        "cluster with this address (HOST:PORT of its head node, or auto)" + meaning,
    )
    parser.value(
        "--ray-actors",
        _actors,
        "N",
        help="number of actors (default: one for each accelerator, or for each core if there is "
        "no accelerator)",
    )
    parser.value(
        "--ray-gpus",
        _gpus,
        "SHARE",
        help="number of accelerators for each actor; with 0.5, two actors share one; with 0, none "
        "is used (default: 1 if there are any)",
    )


def read_ray_options(given: Namespace) -> RayOptions | None:
    """Return the options for Ray, or ``None`` if ``--ray`` is not given.

    Raises:
        UserError: an option for actors is given without ``--ray``.
    """
    if given.ray is None:
        for name in RAY_OPTIONS[1:]:
            if getattr(given, name) is not None:
                raise UserError(
                    f"--{name.replace('_', '-')} applies only to --ray: add --ray, or leave it out"
                )
        return None
    from pytest_dstfuzz.scale.ray import RayOptions  # noqa: PLC0415 - help should not wait

    return RayOptions(given.ray, given.ray_actors, given.ray_gpus)


def _actors(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError("must be a number of actors, such as 4")
    return int(text)


def _gpus(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    # More than one must be a whole number: Ray does not accept 1.5.
    if not (0 <= share <= 1 or (share > 1 and share.is_integer())):
        raise ValueError(
            "must be a share of an accelerator, such as 0.5, or a number of accelerators"
        )
    return share


#: Parts of the settings that apply to a campaign; the rest is only for pytest.
_PARTS: Final = ("tracker", "data", "variant", "reply")
_BUDGETS: Final = (
    *("max_seconds", "preflight_seconds", "max_calls", "max_tokens", "max_cost"),
    *("report", "redact"),
)
CAMPAIGN_OPTIONS: Final = (
    *(item.name for item in OPTIONS if item.part in _PARTS and item.name != "suite"),
    *_BUDGETS,
)


def _options(parser: Parser) -> None:
    parser.option(
        "--results",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder for the results. They are written during the run, and contain the utterances. "
        "If the folder has results of this run, the run continues",
    )
    ray_options(parser)
    parser.shared(*CAMPAIGN_OPTIONS, required=("model",))


def campaign_settings(given: Namespace) -> Settings:
    """Return the settings of a campaign.

    As in pytest, the default search depends on the tracker.
    """
    settings = build_given_settings(given, CAMPAIGN_OPTIONS)
    from pytest_dstfuzz.search.registry import default_search  # noqa: PLC0415 - needs numpy

    if given.search is None:
        settings = settings.replace_options(search=default_search(settings))
    return settings


def _campaign(given: Namespace) -> int:
    settings = campaign_settings(given)
    on_ray = read_ray_options(given)
    check_outputs(settings, given.results)
    line = EstimateLine("results")
    try:
        if on_ray is None:
            folder = _run_here(settings, given.results, line)
        else:
            from pytest_dstfuzz.scale.driver import run_on_ray  # noqa: PLC0415 - needs numpy

            folder = run_on_ray(settings, on_ray, given.results, line, command_line())
    finally:
        line.close()
    return print_results(folder, settings.output)


def _run_here(settings: Settings, results: Path, line: EstimateLine) -> ResultFolder:
    from pytest_dstfuzz import Campaign  # noqa: PLC0415 - needs numpy
    from pytest_dstfuzz.scale.runs import run_into  # noqa: PLC0415 - likewise

    campaign = Campaign(settings.tracker.model, settings=settings)
    return run_into(campaign, results, line, command_line())


def _merge_options(parser: Parser) -> None:
    parser.add_argument(
        "folders", metavar="DIR", type=Path, nargs="+", help="folder of one part of the run"
    )
    parser.option(
        "--output",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder of the whole run; it is written when all parts are complete",
    )
    parser.shared("report", "redact")


def _merge(given: Namespace) -> int:
    settings = build_given_settings(given, ("report", "redact"))
    check_outputs(settings, given.output)
    from pytest_dstfuzz.scale.merge import merge  # noqa: PLC0415
    from pytest_dstfuzz.scale.results import ResultFolder  # noqa: PLC0415

    folders = [ResultFolder.open(path) for path in given.folders]
    return print_results(merge(folders, given.output), settings.output)


def command_line() -> str:
    """Return the command line, with credentials masked."""
    return shlex.join(mask_command_line(["dstfuzz", *sys.argv[1:]]))


def check_outputs(settings: Settings, folder: Path) -> None:
    """Raise an error before the run if a report cannot be written or would replace a file."""
    from pytest_dstfuzz.report.forms import check_forms  # noqa: PLC0415 - help should not wait

    written = settings.output.report
    check_forms(written)
    outputs = {f"--report={path}": path for path in written}
    check_output(outputs, input_files(settings), {"--data": settings.data.data})
    check_apart({**outputs, "--results": folder}, {})
    check_outside(written, folder)
    for path in written:
        check_writable(Path(path))


def print_results(folder: ResultFolder, output: OutputSettings) -> int:
    """Print a folder's figures, write the requested reports, and return the exit status."""
    from pytest_dstfuzz.report.figures import undecided_text  # noqa: PLC0415 - help should not wait
    from pytest_dstfuzz.scale.results import FolderReport  # noqa: PLC0415 - likewise

    manifest = folder.manifest
    if not manifest.planned:
        text = f"part {shard_text(manifest.shard)} has no dialogues: {folder.path} is empty"
        print(printable(text))
        return 0
    report = FolderReport(folder, redact=output.redact)
    print_page(report.page(terminal_page()))
    for path in report.write(output, command=command_line()):
        print(printable(str(path)))
    if folder.was_finished:
        asked = manifest.asked - folder.asked_before
        again = f"asked {asked} turns again, to compare" if asked else "not asked"
        text = f"the tracker was {again}: {folder.path} has all results from earlier calls"
        print(printable(text))
    if not folder.complete:
        why = manifest.ended or "not finished"
        print(printable(f"{why}: run the same command to continue in {folder.path}"))
    undecided = "" if folder.judge is None else undecided_text(folder.judge)
    if undecided:
        print(printable(f"failed: {undecided}"))
    return 0 if folder.complete and not undecided else 1


CAMPAIGN = Command(
    "campaign",
    "test a tracker on any number of dialogues, with the results in a folder",
    "finished results are in the folder of --results, and the same command continues the run",
    """\
  dstfuzz campaign --model trade --turns all --results nightly
  dstfuzz campaign --model trade --data logs.jsonl --turns all --results logs --report logs.json
  dstfuzz campaign --model trade --turns all --results nightly --ray --ray-actors 4
The options are those of pytest without dst-. Memory does not grow with the number of dialogues.""",
    _options,
    _campaign,
)

MERGE = Command(
    "merge",
    "combine the parts of a run that were tested with --shard",
    "the folder of --output is either unchanged or complete",
    """\
  dstfuzz campaign --model trade --turns all --shard 1/2 --results part-1
  dstfuzz campaign --model trade --turns all --shard 2/2 --results part-2
  dstfuzz merge part-1 part-2 --output nightly --report nightly.json
Report, statistics and weaknesses are identical to those of a single run, except for `run`.""",
    _merge_options,
    _merge,
)


#: The file name of a sweep's table, without suffix.
TABLE: Final = "table"


class _Cells(ProgressLine):
    """Shows the progress of a sweep's cells and the remaining time."""

    def __init__(self, plan: SweepPlan) -> None:
        super().__init__("")
        self._cells = len(plan.cells)
        self._started = time.monotonic()

    def show(self, cell: SweepCell, number: int, done: int, total: int) -> None:
        """Show the progress of one cell, and the remaining time of the sweep."""
        share = (number - 1 + done / max(1, total)) / self._cells
        left = (time.monotonic() - self._started) * (1 - share) / share if share else 0.0
        of = f"cell {number} of {self._cells}, {cell.name}"
        self.what = f"results of {of}; about {left / 60:.0f} min left"
        self(done, total)


def _sweep_options(parser: Parser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE.toml",
        help="TOML file with the tables [axes] and [settings]",
    )
    parser.option(
        "--output",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder for all cells, their table and their page. If it has results of this sweep, "
        "the sweep continues",
    )
    parser.option("--parquet", action="store_true", help="also write the table as Parquet")


def _sweep(given: Namespace) -> int:
    # Imported late: help and usage errors should not wait for numpy.
    from pytest_dstfuzz.report.html import check_installed  # noqa: PLC0415
    from pytest_dstfuzz.scale.sweeps import (  # noqa: PLC0415
        SWEEP_FILES,
        read_sweep,
        run_sweep,
    )

    check_installed()
    if given.parquet:
        import pytest_dstfuzz.scale.parquet  # noqa: F401, PLC0415 - says which extra it needs
    plan = read_sweep(given.file)
    check_apart({"--output": given.output}, {"the file of the sweep": given.file})
    for name, mark in SWEEP_FILES.items():
        check_own(given.output / name, mark, "a file of a sweep")
    line = _Cells(plan)
    swept: list[SweptCell] = []
    try:
        for one in run_sweep(plan, given.output, line.show):
            swept.append(one)
            line.close()
            told = "; ".join(filter(None, (one.problem or "done", one.doubt)))
            print(printable(f"{one.cell.name}: {told}"), flush=True)
    finally:
        line.close()
        if swept:
            _write(given, plan, swept)
    return 1 if any(one.problem for one in swept) else 0


def _write(given: Namespace, plan: SweepPlan, swept: list[SweptCell]) -> None:
    """Write the reports of the cells, and the table and page of the sweep."""
    from pytest_dstfuzz.scale.results import FolderReport  # noqa: PLC0415 - as above
    from pytest_dstfuzz.scale.sweeps import (  # noqa: PLC0415 - as above
        SweepPage,
        columns_of,
        differences_of,
        link_to,
        record_of,
        rows_of,
        write_csv,
        write_pages,
    )

    output: Path = given.output
    links: dict[str, str] = {}
    for one in swept:
        folder = one.folder
        path = one.path.with_suffix(one.path.suffix + ".html")
        if folder is None or not len(folder):
            # The page of an earlier call would look like one of this call.
            path.unlink(missing_ok=True)
            continue
        FolderReport(folder).write(replace(OutputSettings(), report=(str(path),)))
        links[one.cell.name] = link_to(path, output)
    rows = [row for one in swept for row in rows_of(one)]
    axes = tuple(plan.axes)
    write_csv(output / f"{TABLE}.csv", rows, axes)
    parquet = output / f"{TABLE}.parquet"
    if given.parquet:
        from pytest_dstfuzz.scale.parquet import write_parquet  # noqa: PLC0415 - an extra

        write_parquet(parquet, columns_of(axes), map(record_of, rows))
    elif parquet.exists():
        old = (
            f"note: {parquet} is from an earlier call: write it again with --parquet, or remove it"
        )
        print(printable(old), file=sys.stderr)
    page = SweepPage(given.file.stem, plan.axes, rows, differences_of(plan.axes, swept), links)
    for path in write_pages(output, page):
        print(printable(str(path)))


def _results_options(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of --results")
    parser.option(
        "--parquet", type=Path, metavar="PATH", help="write a table with a row for each variant"
    )


def _results(given: Namespace) -> None:
    if given.parquet is None:
        raise UserError("nothing to write: add --parquet PATH (see dstfuzz results --help)")
    from pytest_dstfuzz.scale.parquet import VARIANT_COLUMNS, variant_rows, write_parquet  # noqa: PLC0415
    from pytest_dstfuzz.scale.results import ResultFolder  # noqa: PLC0415 - as above

    folder = ResultFolder.open(given.folder)
    rows = write_parquet(given.parquet, VARIANT_COLUMNS, variant_rows(folder.results))
    print(printable(f"wrote {given.parquet} (variants: {rows:,}, results: {len(folder):,})"))


SWEEP = Command(
    "sweep",
    "run campaigns over models, data, seeds, searches or relations, and compare them",
    "finished results are in the folder of --output, and the same command continues the sweep",
    """\
  dstfuzz sweep searches.toml --output searches
  dstfuzz sweep searches.toml --output searches --parquet    also a table for DuckDB and pandas
A file with two axes (names and values are those of the options):
  [settings]
  model = "trade"
  turns = 100
  [axes]
  search = ["random", "near-value"]
  seed = [0, 1]""",
    _sweep_options,
    _sweep,
    about="Run a campaign for each combination of the values of some options, and compare them in\n"
    "a table and a page.",
)

RESULTS = Command(
    "results",
    "write a folder of results as a Parquet table",
    "an existing file is unchanged",
    """\
  dstfuzz results nightly --parquet nightly.parquet""",
    _results_options,
    _results,
    about="Write a folder of results as a Parquet table with a row for each variant.",
)
