"""Charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from pytest_dstfuzz.report.charts import Chart, ChartLine, DotPanel, dot_panels, line_charts

SVG = "{http://www.w3.org/2000/svg}"


def test_lines_intervals_and_labels() -> None:
    lines = [
        ChartLine("a < b", [(0.10, (0.05, 0.20)), (None, None), (0.15, None)]),
        ChartLine("other", [(0.0, None), (0.1, None), (0.2, None)]),
    ]
    root = ET.fromstring(line_charts([Chart("rate", (1, 2, 3), "k", lines)] * 2))  # noqa: S314
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
    text = line_charts([Chart("rate", (1,), "k", [ChartLine("a", [(None, None)])])])
    assert 'points=""' in text


def test_dots_of_every_row() -> None:
    valid = DotPanel("valid rate", [(1.0, (0.97, 1.0)), (None, None)], "valid", 90.0, 100.0)
    failure = DotPanel("failure rate", [(0.5, None), (0.0, None)], "failure", 0.0)
    root = ET.fromstring(dot_panels(["a <b> name too long", "b"], [valid, failure]))  # noqa: S314
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a <b> name to...", "b", "valid rate", "failure rate", "95 %", "40 %"} <= set(texts)
    dots = [dot.attrib for dot in root.iter(f"{SVG}circle")]
    assert [dot["class"] for dot in dots] == ["fill-valid", "fill-failure", "fill-failure"]
    # The best possible rate is at the right end of its scale, none at the left end of its own.
    assert float(dots[0]["cx"]) == 262.0
    assert float(dots[2]["cx"]) < float(dots[1]["cx"])
    assert float(dots[2]["cy"]) > float(dots[1]["cy"])
