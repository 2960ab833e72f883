"""Charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from pytest_dstfuzz.research.line_chart import Chart, ChartLine, charts_svg
from pytest_dstfuzz.research.resampling import Rate

SVG = "{http://www.w3.org/2000/svg}"


def test_lines_intervals_and_labels() -> None:
    lines = [
        ChartLine("a < b", [Rate(0.10, (0.05, 0.20)), Rate(None), Rate(0.15)]),
        ChartLine("other", [Rate(0.0), Rate(0.1), Rate(0.2)]),
    ]
    root = ET.fromstring(charts_svg([Chart("rate", (1, 2, 3), "k", lines)] * 2))  # noqa: S314
    left = root.find(f"{SVG}g")
    assert left is not None
    assert len(list(root.iter(f"{SVG}g"))) == 2
    # What is not known is left out.
    paths = [path.attrib["points"].split() for path in left.iter(f"{SVG}polyline")]
    assert [len(points) for points in paths] == [2, 3]
    heights = [float(point.split(",")[1]) for point in paths[1]]
    assert heights[0] == 226.0
    assert heights == sorted(heights, reverse=True)
    # 5 lines of the grid and one interval.
    assert len(list(left.iter(f"{SVG}line"))) == 6
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"rate", "k", "1", "3", "0 %", "20 %", "a < b", "other"} <= set(texts)


def test_nothing_is_known() -> None:
    text = charts_svg([Chart("rate", (1,), "k", [ChartLine("a", [Rate(None)])])])
    assert 'points=""' in text
