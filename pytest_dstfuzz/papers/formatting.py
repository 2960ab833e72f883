"""Formats the tables of the research pages, and computes bootstrap intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.campaign.figures import binomial_interval
from pytest_dstfuzz.seeding import stream

RESAMPLES: Final = 2_000
_EDGES: Final = (2.5, 97.5)

Floats = npt.NDArray[np.float64]
#: Dialogue -> (part, whole), for one run.
Tally = Mapping[str, tuple[float, float]]


class Rate(NamedTuple):
    """A number and its 95 % interval over dialogues."""

    value: float | None  #: ``None`` if nothing was counted.
    #: ``None`` if fewer than two dialogues have data.
    interval: tuple[float, float] | None = None

    def scaled(self, factor: float) -> Rate:
        """Return the number and its interval times ``factor``."""
        if self.value is None or self.interval is None:
            return Rate(None if self.value is None else self.value * factor, self.interval)
        return Rate(self.value * factor, (self.interval[0] * factor, self.interval[1] * factor))


class Resamples:
    """Bootstrap samples of the dialogues, drawn by seed and with replacement."""

    def __init__(self, dialogues: Sequence[str], seed: int) -> None:
        self._dialogues = tuple(dialogues)
        count = len(self._dialogues)
        drawn = stream(seed, "resamples").integers(0, count, size=(RESAMPLES, count))
        # The first row is the original sample.
        self._weights = np.ones((RESAMPLES + 1, count))
        for row, places in enumerate(drawn, start=1):
            self._weights[row] = np.bincount(places, minlength=count)

    def rate(self, runs: Sequence[Tally]) -> Rate:
        """Return the mean over runs of sum(part) / sum(whole).

        If the rate is 0 or 1, all bootstrap samples agree. The interval then comes from the number
        of dialogues; see `binomial_interval`.
        """
        parts, wholes = self._columns(runs)
        rates = self._rates(parts, wholes)
        if np.isnan(rates[0]):
            return Rate(None)
        used: npt.NDArray[np.bool_] = np.any(wholes, axis=0)
        if used.sum() < 2:
            return Rate(float(rates[0]))
        if not parts.any() or (parts == wholes).all():
            count = float(used.sum())
            return Rate(float(rates[0]), binomial_interval(rates[0] * count, count))
        return Rate(float(rates[0]), interval_of(rates[1:]))

    def ratio(self, runs: Sequence[Tally], others: Sequence[Tally]) -> Rate:
        """Return the rate of ``runs`` divided by the rate of ``others``, with its interval.

        If only the rate of ``others`` is 0 in a bootstrap sample, the ratio of this sample is
        infinite.
        """
        columns, theirs = self._columns(runs), self._columns(others)
        one, other = self._rates(*columns), self._rates(*theirs)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = one / other
        if not np.isfinite(ratios[0]):
            return Rate(None)
        if (columns[1].any(axis=0) & theirs[1].any(axis=0)).sum() < 2:
            return Rate(float(ratios[0]))
        return Rate(float(ratios[0]), interval_of(ratios[1:]))

    def difference(self, runs: Sequence[Tally], others: Sequence[Tally]) -> Rate:
        """Return the rate of ``runs`` minus the rate of ``others``, with its interval."""
        columns, theirs = self._columns(runs), self._columns(others)
        found = self._rates(*columns) - self._rates(*theirs)
        if np.isnan(found[0]):
            return Rate(None)
        if (columns[1].any(axis=0) & theirs[1].any(axis=0)).sum() < 2:
            return Rate(float(found[0]))
        return Rate(float(found[0]), interval_of(found[1:]))

    @property
    def weights(self) -> Floats:
        """How often each sample draws each dialogue: [1 + resamples, dialogues].

        Row 0 is all ones.
        """
        return self._weights

    def _columns(self, runs: Sequence[Tally]) -> tuple[Floats, Floats]:
        """Return the parts and the wholes of a rate as arrays, each [runs, dialogues]."""
        table = np.array([[run.get(name, (0, 0)) for name in self._dialogues] for run in runs])
        table = table.reshape(len(runs), len(self._dialogues), 2).astype(np.float64)
        return table[:, :, 0], table[:, :, 1]

    def _rates(self, parts: Floats, wholes: Floats) -> Floats:
        """Return the rate in every bootstrap sample. Samples without any count give NaN."""
        sums, totals = self._weights @ parts.T, self._weights @ wholes.T
        counted = totals > 0
        rates = np.divide(sums, totals, out=np.zeros_like(sums), where=counted)
        runs = counted.sum(axis=1)
        nothing = np.full(len(rates), np.nan)
        mean: Floats = np.divide(rates.sum(axis=1), runs, out=nothing, where=runs > 0)
        return mean


def interval_of(values: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval. NaN values are left out, infinite values count."""
    numbers = values[~np.isnan(values)]
    # No interpolation, because there is no value between a number and infinity.
    low = np.percentile(numbers, _EDGES[0], method="lower")
    high = np.percentile(numbers, _EDGES[1], method="higher")
    return float(low), float(high)


#: Column name -> function that returns the cell of a row.
Columns = Mapping[str, Callable[[Any], object]]

#: A cell without a value.
NONE = "n/a"


def number(rate: Rate, decimals: int = 1, unit: str = "") -> str:
    """Format a number with its interval: ``26.9 [20.1, 33.0]``."""
    if rate.value is None:
        return NONE
    text = f"{rate.value:.{decimals}f}{unit}"
    if rate.interval is None:
        return text
    low, high = rate.interval
    return f"{text} [{low:.{decimals}f}, {high:.{decimals}f}]"


def rate_text(rate: Rate, decimals: int = 1) -> str:
    """Format a share with its interval: ``97.7 % [97.4, 98.1]``."""
    return number(rate.scaled(100), decimals, " %")


def share(value: float | None, decimals: int = 1) -> str:
    """Format a share without its interval."""
    return rate_text(Rate(value), decimals)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def format_published(text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the section of a page with published numbers, as lines of Markdown."""
    return ["", "## Published", "", text, "", *markdown_table(head, rows)]


def rate_columns(name: str, rate: Callable[[Any], Rate | None]) -> Columns:
    """Return the CSV columns of a rate and its limits. Cells without a value are empty."""

    def cell(place: int, row: Any) -> str:
        value, interval = rate(row) or Rate(None)
        return csv_number((value, *(interval or (None, None)))[place])

    return {f"{name}{end}": partial(cell, place) for place, end in enumerate(("", "_low", "_high"))}


def csv_number(value: float | None, decimals: int = 4) -> str:
    """Round a number for a CSV file, or return ``""`` for ``None``."""
    return "" if value is None else str(round(value, decimals))


def csv_text(columns: Columns, rows: Iterable[object]) -> str:
    """Return the text of a CSV file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(row) for cell in columns.values()] for row in rows)
    return buffer.getvalue()


def yes_no(value: bool) -> str:
    """Return ``yes`` or ``no``."""
    return "yes" if value else "no"
