"""The page's plots: SVG that matplotlib draws, in the colours of the page's style sheet.

The same figures give the same text. No colour is written into it: what is drawn in one
of the colours below gets a class instead, so that light, dark and print each have their own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pytest_dstfuzz.report.edits import visible
from pytest_dstfuzz.report.figures import EDIT_RATE_RANGES, Interval, RateRow
from pytest_dstfuzz.report.page import encodable

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType  # newer than the oldest matplotlib that will do

#: Colour that is drawn -> class of the style sheet that stands for it.
_CLASSES: Final = {
    "#000001": "ink",
    "#000002": "quiet",
    "#000003": "grid",
    "#000004": "failure",
    "#000005": "valid",
    "#000006": "second",
}
_INK, _QUIET, _GRID, _FAILURE, _VALID, _SECOND = _CLASSES
_SVG = "{http://www.w3.org/2000/svg}"
#: A style sheet in the figure would be refused by the page.
_LEFT_OUT = (f"{_SVG}metadata", f"{_SVG}style")
_LINK = "{http://www.w3.org/1999/xlink}href"
#: A parsed colour, and what is painted with it.
_PAINTS = ("fill", "stroke")
_REFERENCE = re.compile(r"#([\w.-]+)")
_STYLE: Final[dict[RcKeyType, Any]] = {
    "svg.hashsalt": "pytest-dstfuzz",  # else ids are drawn anew each time
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": _INK,
    "axes.labelcolor": _QUIET,
    "axes.edgecolor": _GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _GRID,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.parse_math": False,  # a dollar sign is one
}
_POINTS_PER_INCH: Final = 72
#: Letters of a label; the names of the six transformations are shorter.
_LONGEST: Final = 16


def transformation_plot(rows: Sequence[RateRow], label: str) -> str:
    """Return valid and failure rate by transformation, with 95 % intervals.

    Args:
        rows: one for each transformation.
        label: what the plot shows, for those who do not see it.
    """
    with rc_context(_STYLE):
        figure = _figure(440, 60 + 30 * max(len(rows), 1))
        valid, failure = figure.subplots(1, 2, sharey=True)
        places = list(range(len(rows)))[::-1]
        _dots(valid, places, [(row.counts.valid_rate, row.valid_interval) for row in rows], _VALID)
        rates = [(row.counts.failure_rate, row.failure_interval) for row in rows]
        _dots(failure, places, rates, _FAILURE)
        valid.set_yticks(places, [_label(row.name) for row in rows])
        for axes, title in ((valid, "valid rate"), (failure, "failure rate")):
            axes.set_title(title, loc="left", fontsize=11)
            axes.set_ylim(-0.6, len(rows) - 0.4)
            axes.grid(visible=False, axis="y")
            axes.xaxis.set_major_formatter(_percent)
            axes.locator_params(axis="x", nbins=4)
        valid.set_xlim(left=min([0.9, *_ends(rows, "valid_interval")]), right=1.005)
        failure.set_xlim(left=0)
        return _drawn(figure, "transformations", label)


def edit_rate_plot(series: Mapping[str, Mapping[str, RateRow]], label: str) -> str:
    """Return the failure rate by edit rate, with 95 % intervals: one line a level.

    Args:
        series: rows by range of the edit rate, for ``words`` and ``characters``.
        label: what the plot shows, for those who do not see it.
    """
    with rc_context(_STYLE):
        figure = _figure(440, 270)
        axes = figure.subplots()
        styles = ((_FAILURE, "o", -0.08), (_SECOND, "s", 0.08))
        for (level, rows), (colour, marker, aside) in zip(series.items(), styles, strict=True):
            known = [row for row in rows.values() if row.counts.failure_rate is not None]
            xs = [EDIT_RATE_RANGES.index(row.name) + aside for row in known]
            ys = [row.counts.failure_rate or 0.0 for row in known]
            for x, row in zip(xs, known, strict=True):
                if row.failure_interval is not None:
                    axes.vlines(x, *row.failure_interval, colors=colour, linewidth=1.5)
            axes.plot(xs, ys, color=colour, marker=marker, markersize=5, linewidth=1.2, label=level)
        names = [name.replace(" to ", "\u2013").removesuffix(" %") for name in EDIT_RATE_RANGES]
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.grid(visible=False, axis="x")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(_percent)
        axes.set_xlabel("edit rate in %")
        axes.set_title("failure rate", loc="left", fontsize=11)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
        return _drawn(figure, "edit-rates", label)


def _figure(width: int, height: int) -> Figure:
    """Return a figure of so many points."""
    size = (width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(wspace=0.1), facecolor="none")
    FigureCanvasSVG(figure)
    return figure


def _dots(
    axes: Axes,
    places: Sequence[int],
    rates: Sequence[tuple[float | None, Interval | None]],
    colour: str,
) -> None:
    for place, (rate, interval) in zip(places, rates, strict=True):
        if interval is not None:
            axes.hlines(place, *interval, colors=colour, linewidth=2)
        if rate is not None:
            axes.plot([rate], [place], color=colour, marker="o", markersize=6)


def _label(name: str) -> str:
    """Return a name in letters that the fonts of a plot have, and not too many of them."""
    text = encodable(visible(name), "ascii")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _ends(rows: Sequence[RateRow], name: str) -> list[float]:
    intervals: list[Interval | None] = [getattr(row, name) for row in rows]
    return [interval[0] for interval in intervals if interval is not None]


def _percent(value: float, _: object) -> str:
    return f"{100 * value:.3g} %"


def _drawn(figure: Figure, name: str, label: str) -> str:
    """Return the SVG element of a figure, its ids beginning with ``name``."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - what matplotlib has just written
    for parent in root.iter():
        for child in list(parent):
            if child.tag in _LEFT_OUT:
                parent.remove(child)
    for element in root.iter():
        _clean(element, name)
    _drop_unused_ids(root)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib.update({"class": "plot", "role": "img", "aria-label": label})
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, name: str) -> None:
    """Turn the style of an element into attributes, its colours into classes."""
    paints = dict(
        part.strip().split(": ", 1)
        for part in element.attrib.pop("style", "").split(";")
        if ": " in part
    )
    element.tag = element.tag.removeprefix(_SVG)  # In HTML an element has no namespace to name.
    paints.pop("font", None)  # The page has its own; sizes are those of its style sheet.
    classes = []
    for paint in _PAINTS:
        colour = paints.get(paint) or element.attrib.get(paint, "")
        if colour in _CLASSES:
            paints.pop(paint, None)
            element.attrib.pop(paint, None)
            classes.append(f"{paint}-{_CLASSES[colour]}")
    element.attrib.update(paints)
    if classes:
        element.set("class", " ".join(classes))
    if target := element.attrib.pop(_LINK, ""):
        element.set("href", target)
    for attribute in ("id", "href", "clip-path"):
        value = element.attrib.get(attribute)
        if value is not None:
            prefixed = f"{name}-{value}" if attribute == "id" else _prefixed(value, name)
            element.set(attribute, prefixed)


def _prefixed(reference: str, name: str) -> str:
    return _REFERENCE.sub(lambda match: f"#{name}-{match.group(1)}", reference)


def _drop_unused_ids(root: ET.Element) -> None:
    used = {
        target
        for element in root.iter()
        for attribute in ("href", "clip-path")
        for target in _REFERENCE.findall(element.attrib.get(attribute, ""))
    }
    for element in root.iter():
        if element.attrib.get("id") not in used:
            element.attrib.pop("id", None)
