"""The job summary: what it says, that no text becomes markup, and its size."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.report.github import MOST_BYTES, append_summary, escape, markdown_text
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.report.wording import visible

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)
NASTY = (
    "a | b\n\n# head",
    "<script>alert(1)</script>",
    "![x](http://x.y/z)",
    "`code` **bold** ~~gone~~",
    "@someone #1 :tada: www.example.com https://example.com a@b.cd",
    "&lt;b&gt; &#124; \\| [x]: y",
    "1. - + > ---",
)


def build(results: list[TurnResult], settings: Settings | None = None) -> dict[str, Any]:
    return build_report(results, settings or Settings(), INFO)


def rendered(text: str) -> tuple[list[str], str]:
    """Return the tags and the text that a table with ``text`` in a cell is shown as."""
    markdown_it = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    html = parser.render(f"| head |\n| --- |\n| {escape(text)} |\n")
    cell = html.partition("<td>")[2].partition("</td>")[0]
    (inline,) = parser.parseInline(escape(text))
    shown = "".join(child.content for child in inline.children or [])
    return re.findall(r"<(\w+)", cell), shown


@settings(deadline=None)
@given(st.text(max_size=60) | st.sampled_from(NASTY))
def test_a_text_is_shown_as_it_is(text: str) -> None:
    tags, shown = rendered(text)
    assert tags == []
    assert shown.strip() == visible(text).strip()
    raw = escape(text)
    assert not set(raw) & set("|<>`*_~[]\\@\n:")
    assert "www." not in raw.lower()


def test_what_it_says(results: list[TurnResult]) -> None:
    text = markdown_text(views_of(build(results)))
    lines = text.splitlines()
    assert lines[0].startswith(
        "## \u274c Failed&#58; 1 of 3 tested turns breaks, and 1 variant got no answer"
    )
    assert "| unmodified | 100.00 % of the clean answers are right (3 of 3 with labels) |" in text
    assert "| failure rate | 14.29 % |" in text
    assert any(line.startswith("| accuracy | 100.00 % | ") for line in lines)
    assert "| violations | 1 | of 7 valid variants |" in lines
    assert "i am <del>leaving</del><ins>leaivng</ins> on friday from ely" in text
    assert "<br>train-day&#58; friday -&#62; none<br>" in text
    assert any(
        line.startswith("| char&#95;replace | 100.00 % | 100.00 % | n/a | 1 of 1") for line in lines
    )
    assert "### By domain" in text
    assert "| train-day | 14.29 % |" in text
    good = markdown_text(views_of(build([turn for turn in results if not turn.violations][1:])))
    assert good.startswith("## \u2705 Passed&#58; 0 of 1 tested turn break")
    assert "plainest" not in good


@pytest.mark.parametrize("text", NASTY)
def test_no_text_breaks_the_tables(broken: TurnResult, text: str) -> None:
    variant = replace(broken.violations[0], changed_slots=(Difference(text, text, None),))
    turn = replace(broken, id=text, variants=(variant,))
    lines = markdown_text(views_of(build([turn], Settings.of(model=text)))).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in rows} <= {3, 4, 6}
    assert not any(re.search(r"<(?!/?(del|ins|br|code)>)", line) for line in lines)
    assert not any(re.search(r"[`~\[\]]", line) for line in lines)


def test_each_weakness_and_violation_has_its_commands(sampled: list[TurnResult]) -> None:
    report = build(sampled)
    report["run"]["repeat"] = "pytest --dst-seed=0"
    lines = html.unescape(markdown_text(views_of(report))).splitlines()
    place = lines.index("### 1 weakness")
    assert place < lines.index("### The plainest violations") < len(lines)
    accept = "dstfuzz accept slip-in-key-word-value-wrong --reason '...'"
    assert lines[place + 2].split("<br>") == [
        "1. **slip in key word, value wrong: 2 turns, 2 of 1,000**",
        "user: i am <del>leaving</del><ins>leaivng</ins> on friday from ely",
        "train-day: friday -> none",
        f"to try: {report['weaknesses'][0]['to_try']}",
        "repeat: <code>pytest --dst-seed=0 --dst-variant=1 -k '[m-test-0-t1]'</code>",
        f"accept: <code>pytest --dst-seed=0 --dst-remember; {accept}</code>",
    ]
    violation = lines[lines.index("### The plainest violations") + 2]
    assert violation.endswith(
        "<br>repeat: <code>pytest --dst-seed=0 --dst-variant=1 -k '[m-test-0-t1]'</code>"
        "<br>accept: <code>pytest --dst-seed=0 -k '[m-test-0-t1]' --dst-remember; "
        "dstfuzz accept m-test-0-t1 --reason '...'</code>"
    )
    many = markdown_text(views_of({**report, "weaknesses": report["weaknesses"] * 12}))
    assert "### 12 weaknesses, the first 10" in many
    assert many.count("**slip in key word") == 10
    del report["weaknesses"]  # as in reports of earlier versions
    assert "weakness" not in markdown_text(views_of(report))


def test_it_ends_where_the_room_does(results: list[TurnResult]) -> None:
    whole = markdown_text(views_of(build(results)))
    for limit in (0, 40, 60, 300, 700, len(whole.encode()) - 1):
        text = markdown_text(views_of(build(results)), limit)
        assert len(text.encode()) <= limit
        assert not text or text.endswith("limits the size of a summary.\n")
        kept = text.rpartition("\nThe rest")[0]
        assert whole.startswith(kept)
    assert markdown_text(views_of(build(results)), len(whole.encode())) == whole


def test_the_file_of_a_step_is_added_to_and_not_overfilled(
    results: list[TurnResult], tmp_path: Path
) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    report = build(results)
    append_summary(path, views_of(report))
    assert path.read_text(encoding="utf-8") == "before\n" + markdown_text(views_of(report))
    path.write_bytes(b"x" * (MOST_BYTES - 400))
    append_summary(path, views_of(report))
    assert MOST_BYTES - 400 < path.stat().st_size <= MOST_BYTES
    with pytest.raises(UserError, match="cannot write"):
        append_summary(tmp_path / "missing" / "summary.md", views_of(report))
