"""``dstfuzz report``: pages from the JSON report of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from pytest_dstfuzz import cli
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.report.info import RunInfo
from pytest_dstfuzz.report.json_report import build_report, write_report


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a report in it, as the working folder."""
    info = RunInfo("sample", "test", "multiwoz", "original", 72, 366)
    report = build_report([], summarise([]), Settings(), info)
    write_report(tmp_path / "report.json", report)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_both_are_written_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["report", "report.json", "--html", "out/page.html", "--markdown", "summary.md"]
    assert cli.main(line) == 0
    assert capsys.readouterr().out.splitlines() == ["out/page.html", "summary.md"]
    assert "Nothing was tested" in (folder / "out" / "page.html").read_text(encoding="utf-8")
    assert "Nothing was tested" in (folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report", "required: REPORT"),
        ("report report.json", "nothing to write: give --html PATH, --markdown PATH, or both"),
        ("report report.json --htlm x", "did you mean --html?"),
        ("report missing.json --html x.html", "cannot read the report missing.json"),
        ("report half.json --html x.html", "this is no whole report: data, run missing"),
        ("report report.json --html .", "cannot write .: it is a folder"),
    ],
)
def test_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    (folder / "half.json").write_text(
        '{"schema_version": 1, "summary": {}, "settings": {}, "turns": []}', encoding="utf-8"
    )
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "x.html").exists()
