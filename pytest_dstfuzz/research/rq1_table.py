"""The table of `rq1_measure` as Markdown and CSV, beside the figures that the thesis published."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from pytest_dstfuzz import __version__
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.action import uniform_inertia
from pytest_dstfuzz.research.rq1_measure import Interval, Rq1Row, Rq1Table

#: Failure rates of random parameters in the thesis (tables 4.3 and 4.4; k not stated).
PUBLISHED = (
    ("TRADE, MultiWOZ 2.1", "7.51 %"),
    ("TRADE, MultiWOZ 2.2", "7.14 %"),
    ("SimpleTOD, MultiWOZ 2.1", "7.79 %"),
    ("SimpleTOD, MultiWOZ 2.2", "5.29 %"),
)
#: Dialogues right throughout in validation and test, MultiWOZ 2.1, for TRADE.
PUBLISHED_DIALOGUES = 393
COLUMNS = (
    "validity",
    "k",
    "turns",
    "generated",
    "valid",
    "violations",
    "carried",
    "improved",
    "errors",
    "valid_rate",
    "valid_rate_low",
    "valid_rate_high",
    "failure_rate",
    "failure_rate_low",
    "failure_rate_high",
    "thesis_failure_rate",
    "thesis_failure_rate_low",
    "thesis_failure_rate_high",
    "yield",
    "yield_low",
    "yield_high",
    "calls",
    "turns_broken",
    "broken_per_1000_calls",
    "inertia",
    "inertia_share",
)


def write_rq1(table: Rq1Table, folder: Path) -> tuple[Path, Path]:
    """Write ``rq1.md`` and ``rq1.csv`` into ``folder``, which is made where it is missing.

    Raises:
        UserError: the files cannot be written.
    """
    markdown, figures = folder / "rq1.md", folder / "rq1.csv"
    write_text(markdown, markdown_text(table))
    write_text(figures, csv_text(table))
    return markdown, figures


def markdown_text(table: Rq1Table) -> str:
    """Return the table with its header and notes."""
    lines = ["# Random perturbations of a tracker (RQ1)", "", *_header(table)]
    for validity in table.config.validities:
        lines += ["", f"## Validity profile `{validity}`", ""]
        lines += [
            (
                "| k | valid rate | failure rate | counted the thesis' way | yield "
                "| turns broken per 1,000 calls | inertia (share of D/12) |"
            ),
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_markdown_row(row) for row in table.rows if row.validity == validity]
    lines += ["", "## Published", ""]
    lines += [
        (
            "Failure rate of random parameters in the thesis (tables 4.3 and 4.4, k not stated), "
            "which counts carried changes:"
        ),
        "",
        "| tracker and data | failure rate |",
        "| --- | --- |",
        *(f"| {name} | {rate} |" for name, rate in PUBLISHED),
    ]
    return "\n".join(lines) + "\n"


def csv_text(table: Rq1Table) -> str:
    """Return one line a row, rates rounded to 4 decimals."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table.rows:
        counts = row.counts
        rates = (
            (counts.valid_rate, row.valid_interval),
            (counts.failure_rate, row.failure_interval),
            (counts.thesis_failure_rate, row.thesis_interval),
            (counts.yield_rate, row.yield_interval),
        )
        bounds = [value for rate, ends in rates for value in (rate, *(ends or (None, None)))]
        numbers = [*bounds, row.calls, row.turns_broken, row.broken_per_1000_calls]
        numbers += [row.inertia, row.inertia_share]
        writer.writerow(
            [
                row.validity,
                row.k,
                row.turns,
                counts.generated,
                counts.valid,
                counts.violations,
                counts.carried,
                counts.improved,
                counts.errors,
                *(round(number, 4) if number is not None else "" for number in numbers),
            ]
        )
    return buffer.getvalue()


def _header(table: Rq1Table) -> list[str]:
    config = table.config
    tracker = config.model + (f", checkpoint `{config.checkpoint}`" if config.checkpoint else "")
    lines = [
        f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
        f"- tracker: {tracker}",
        f"- data: `{config.data}`, values normalised as `{table.normalisation}`",
    ]
    lines += [
        f"  - split {item.split} ({layout} layout): {item.dialogues:,} dialogues, {item.turns:,} "
        f"turns, joint goal accuracy {item.joint_goal_accuracy:.2%}, "
        f"{len(item.right_dialogues):,} dialogues right at every turn"
        for item, layout in zip(table.evaluations, table.layouts, strict=True)
    ]
    flat = " in short utterances too" if config.flat_edit_rate else ""
    drawn = "" if config.max_dialogues is None else f" (at most {config.max_dialogues}, by seed)"
    lines += [
        (
            f"- perturbed: {table.dialogues:,} dialogues right at every turn{drawn}, "
            f"{table.turns:,} turns; the thesis had {PUBLISHED_DIALOGUES} dialogues for TRADE, "
            "MultiWOZ 2.1"
        ),
        (
            f"- search {config.search}, attack {config.attack}, {config.variants} variants a turn, "
            f"edit rates up to {config.max_edit_rate:g}{flat}, seed {config.seed}"
        ),
        (
            f"- inertia of uniform sampling: {table.dimension}/12 = "
            f"{uniform_inertia(table.dimension):.2f}"
        ),
        (
            "- in brackets 95 % intervals over dialogues; failure rate = violations "
            "/ valid, counted the thesis' way = (violations + carried) / valid, yield = "
            "violations / generated"
        ),
    ]
    return lines


def _markdown_row(row: Rq1Row) -> str:
    counts = row.counts
    per_calls = row.broken_per_1000_calls
    cells = (
        str(row.k),
        _rate(counts.valid_rate, row.valid_interval),
        _rate(counts.failure_rate, row.failure_interval),
        _rate(counts.thesis_failure_rate, row.thesis_interval),
        _rate(counts.yield_rate, row.yield_interval),
        "n/a" if per_calls is None else f"{per_calls:.1f}",
        f"{row.inertia:.2f} ({row.inertia_share:.1%})",
    )
    return f"| {' | '.join(cells)} |"


def _rate(rate: float | None, interval: Interval) -> str:
    if rate is None:
        return "n/a"
    bounds = "" if interval is None else f" [{100 * interval[0]:.2f}, {100 * interval[1]:.2f}]"
    return f"{100 * rate:.2f} %{bounds}"
