"""Small line charts as SVG, written by hand: no library is needed to see four lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from pytest_dstfuzz.research.resampling import Rate

#: Told apart by people with any colour vision (Okabe and Ito).
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_WIDTH, _HEIGHT = 380, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 30, 34
_LEGEND = 24
_APART = 5
_STEPS = (1, 2, 5, 10, 20, 25)


class ChartLine(NamedTuple):
    """One line: a share at each x; one that is not known is left out."""

    label: str
    rates: Sequence[Rate]


class Chart(NamedTuple):
    """Lines over common numbers, shares as percentages from 0 up."""

    title: str
    xs: Sequence[int]
    x_label: str
    lines: Sequence[ChartLine]


def charts_svg(charts: Sequence[Chart]) -> str:
    """Return an SVG of charts side by side, with one legend, as their lines are the same."""
    width, height = _WIDTH * len(charts), _HEIGHT + _LEGEND
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, chart in enumerate(charts):
        parts += [f'<g transform="translate({number * _WIDTH} 0)">', *_chart(chart), "</g>"]
    for number, line in enumerate(charts[0].lines):
        left, colour = _LEFT + 130 * number, _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<rect x="{left}" y="{_HEIGHT + 4}" width="12" height="4" fill="{colour}"/>'
            f'<text x="{left + 17}" y="{_HEIGHT + 10}">{escape(line.label)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _chart(chart: Chart) -> list[str]:
    highest = max((_top(rate) for line in chart.lines for rate in line.rates), default=0.0)
    step = next((step for step in _STEPS if highest <= 5 * step), _STEPS[-1])
    ticks = max(1, math.ceil(highest / step))
    bottom, plot = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - _TOP

    def x(place: int) -> float:
        return _LEFT + (place + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(chart.xs)

    def y(percent: float) -> float:
        return bottom - plot * percent / (ticks * step)

    parts = [f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>']
    for tick in range(ticks + 1):
        at = y(tick * step)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" '
            'stroke="#dddddd"/>'
            f'<text x="{_LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{tick * step} %</text>'
        )
    for place, value in enumerate(chart.xs):
        parts.append(
            f'<text x="{x(place):.1f}" y="{bottom + 15}" text-anchor="middle">{value}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{bottom + 29}" text-anchor="middle">{escape(chart.x_label)}</text>'
    )
    for number, line in enumerate(chart.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        # A little apart, so that one interval does not hide the other.
        aside = _APART * (number - (len(chart.lines) - 1) / 2)
        known = [
            (x(place) + aside, rate)
            for place, rate in enumerate(line.rates)
            if rate.value is not None
        ]
        points = [(at, y(100 * (rate.value or 0.0)), rate.interval) for at, rate in known]
        path = " ".join(f"{at:.1f},{high:.1f}" for at, high, _ in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for at, high, interval in points:
            parts.append(f'<circle cx="{at:.1f}" cy="{high:.1f}" r="3" fill="{colour}"/>')
            if interval is not None:
                low, top = (y(100 * end) for end in interval)
                parts.append(
                    f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{low:.1f}" y2="{top:.1f}" '
                    f'stroke="{colour}"/>'
                )
    return parts


def _top(rate: Rate) -> float:
    """Return the highest percentage that is drawn for a rate."""
    if rate.value is None:
        return 0.0
    return 100 * (rate.value if rate.interval is None else max(rate.value, rate.interval[1]))
