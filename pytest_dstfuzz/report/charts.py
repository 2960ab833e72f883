"""Small SVG charts of rates and their 95 % intervals, drawn without a library.

The same figures produce the same text. A colour is either a CSS colour (``#0072b2``) or a name from
the page's style sheet: ``failure`` uses the classes ``fill-failure`` and ``stroke-failure``. A name
can have different colours in light mode, in dark mode and in print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final, NamedTuple

from pytest_dstfuzz.report.wording import visible

__all__ = ["Chart", "ChartLine", "line_charts"]

#: A rate and its interval; ``None`` if unknown.
RateWithInterval = tuple[float | None, tuple[float, float] | None]

_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 30, 34
_LEGEND: Final = 24
#: Horizontal distance between the lines of a chart, so that intervals do not overlap.
_APART: Final = 5
#: Possible distances between grid lines, in per cent.
_STEPS: Final = (1, 2, 5, 10, 20, 25)
_ROW: Final = 30
#: Width of the row names, and the maximum number of letters that fit into it.
_NAMES, _LONGEST = 112, 16


class Theme(NamedTuple):
    """The colours of a chart."""

    ink: str
    quiet: str
    grid: str
    lines: Sequence[str]


#: Colours that people with any colour vision can distinguish (Okabe and Ito).
PLAIN: Final = Theme(
    *("#000000", "#000000", "#dddddd"),
    ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
)
PAGE: Final = Theme("ink", "quiet", "grid", ("failure", "second"))


class ChartLine(NamedTuple):
    """A line in a chart, with a rate at each position. Unknown rates are skipped."""

    label: str
    rates: Sequence[RateWithInterval]


class Chart(NamedTuple):
    """Lines over common positions. Rates are percentages, and the scale begins at 0."""

    title: str
    xs: Sequence[object]
    x_label: str
    lines: Sequence[ChartLine]


class DotPanel(NamedTuple):
    """A column of dots, one rate per row. Each panel has its own scale."""

    title: str
    rates: Sequence[RateWithInterval]
    colour: str
    #: The scale extends to the lowest interval, and at least down to this percentage.
    low: float
    #: The upper end of the scale; ``None`` = the highest interval.
    high: float | None = None


def line_charts(
    charts: Sequence[Chart], *, width: int = 380, theme: Theme = PLAIN, attributes: str = ""
) -> str:
    """Return one or more charts side by side, ``width`` points wide, with one legend.

    All charts have the same lines. ``attributes`` are added to the ``svg`` element.
    """
    height = 260
    parts = []
    for number, chart in enumerate(charts):
        place = f' transform="translate({number * width} 0)"' if number else ""
        parts += [f"<g{place}>", *_line_chart(chart, width, height, theme), "</g>"]
    for number, line in enumerate(charts[0].lines):
        left, colour = _LEFT + 130 * number, theme.lines[number % len(theme.lines)]
        fill = _paint("fill", colour)
        parts.append(f'<rect x="{left}" y="{height + 4}" width="12" height="4" {fill}/>')
        parts.append(_text(left + 17, height + 10, line.label, theme.ink))
    return _svg(width * len(charts), height + _LEGEND, parts, attributes)


def dot_panels(names: Sequence[str], panels: Sequence[DotPanel], attributes: str = "") -> str:
    """Return a chart for the page with a row per name and a dot in each panel."""
    theme = PAGE
    width, bottom = 150, _TOP + _ROW * max(len(names), 1)
    parts = []
    for row, name in enumerate(map(visible, names)):
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
        parts.append(_text(_NAMES - 8, _middle(row) + 4, short, theme.quiet, anchor="end"))
    for number, panel in enumerate(panels):
        left = _NAMES + number * (width + 2 * _RIGHT)
        ends = [100 * end for _, interval in panel.rates for end in interval or ()]
        ends += [100 * rate for rate, _ in panel.rates if rate is not None]
        low, high = min([panel.low, *ends]), panel.high or max([1.0, *ends])
        scale = _scale(low, high, left, left + width)
        parts.append(_text(left, 18, panel.title, theme.ink))
        for tick in _ticks(low, high, 3):
            x = scale(tick)
            parts.append(_line(x, _TOP, x, bottom, theme.grid))
            parts.append(_text(x, bottom + 15, f"{tick:g} %", theme.quiet, anchor="middle"))
        for row, (rate, interval) in enumerate(panel.rates):
            y = _middle(row)
            if interval is not None:
                at, to = (scale(100 * end) for end in interval)
                parts.append(_line(at, y, to, y, panel.colour, 2))
            if rate is not None:
                parts.append(_dot(scale(100 * rate), y, panel.colour))
    return _svg(_NAMES + len(panels) * (width + 2 * _RIGHT), bottom + 24, parts, attributes)


def _line_chart(chart: Chart, width: int, height: int, theme: Theme) -> list[str]:
    highest = max((_top(rated) for line in chart.lines for rated in line.rates), default=0.0)
    ticks = _ticks(0.0, max(highest, 1.0), 5)
    # The grid must end above the highest point.
    ticks += [ticks[-1] + ticks[1]] if ticks[-1] < highest else []
    bottom, right = height - _BOTTOM, width - _RIGHT
    y = _scale(0.0, ticks[-1], bottom, _TOP)
    parts = [_text(_LEFT, 18, chart.title, theme.ink, more=' font-weight="bold"')]
    for tick in ticks:
        parts.append(_line(_LEFT, y(tick), right, y(tick), theme.grid))
        parts.append(_text(_LEFT - 5, y(tick) + 4, f"{tick:g} %", theme.quiet, anchor="end"))
    places = [_LEFT + (n + 0.5) * (right - _LEFT) / len(chart.xs) for n in range(len(chart.xs))]
    for x, value in zip(places, chart.xs, strict=True):
        parts.append(_text(x, bottom + 15, str(value), theme.quiet, anchor="middle"))
    middle = (_LEFT + right) / 2
    parts.append(_text(middle, bottom + 29, chart.x_label, theme.quiet, anchor="middle"))
    for number, line in enumerate(chart.lines):
        colour = theme.lines[number % len(theme.lines)]
        aside = _APART * (number - (len(chart.lines) - 1) / 2)
        known = [
            (x + aside, y(100 * rate), interval)
            for x, (rate, interval) in zip(places, line.rates, strict=True)
            if rate is not None
        ]
        path = " ".join(f"{x:.1f},{at:.1f}" for x, at, _ in known)
        stroke = _paint("stroke", colour)
        parts.append(f'<polyline points="{path}" fill="none" {stroke} stroke-width="2"/>')
        for x, at, interval in known:
            parts.append(_dot(x, at, colour, square=number % 2 == 1))
            if interval is not None:
                low, high = (y(100 * end) for end in interval)
                parts.append(_line(x, low, x, high, colour))
    return parts


def _top(rated: RateWithInterval) -> float:
    """Return the highest percentage to draw for a rate, including its interval."""
    rate, interval = rated
    return 0.0 if rate is None else 100 * max(rate, interval[1] if interval else 0.0)


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return round percentages from ``low`` to ``high``, with about ``most`` steps."""
    step = next((step for step in _STEPS if high - low <= most * step), _STEPS[-1])
    first, last = math.ceil(low / step), math.floor(high / step + 1e-9)
    return [float(step * number) for number in range(first, last + 1)]


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return a function that maps ``low`` to ``start`` and ``high`` to ``end``."""
    return lambda value: start + (end - start) * (value - low) / (high - low)


def _middle(row: int) -> float:
    return _TOP + _ROW * (row + 0.5)


def _svg(width: int, height: int, parts: Sequence[str], attributes: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11"{attributes}>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _paint(what: str, colour: str) -> str:
    return f'{what}="{colour}"' if colour.startswith("#") else f'class="{what}-{colour}"'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: int = 1) -> str:
    stroke = _paint("stroke", colour)
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {ends} {stroke} stroke-width="{width}"/>'


def _dot(x: float, y: float, colour: str, *, square: bool = False) -> str:
    fill = _paint("fill", colour)
    if square:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" {fill}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {fill}/>'


def _text(
    x: float, y: float, text: str, colour: str, *, anchor: str = "start", more: str = ""
) -> str:
    fill = _paint("fill", colour)
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place} {fill}{more}>{escape(visible(text))}</text>"
