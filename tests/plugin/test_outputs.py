"""What a run leaves behind: pages, properties of the suite, annotations, the job summary."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("jinja2")

# Loaded before any inner run, which forgets what it was the first to load.
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.report.view import views_of

FEW = ("--dst-turns=4", "--dst-variants=2")
FRAGILE = ("--dst-model=mybot:fragile", *FEW)


def test_the_page_is_that_of_the_json_report(bot: pytest.Pytester) -> None:
    bot.runpytest_inprocess(*FRAGILE, "--dst-report=out/page.html", "--dst-report=out/report.json")
    page = (bot.path / "out" / "page.html").read_text(encoding="utf-8")
    assert "tested turns break" in page
    assert page == html_text(read_report(bot.path / "out" / "report.json"))


@pytest.mark.nightly
def test_the_page_under_workers(bot: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = bot.runpytest_subprocess(
        *FRAGILE, "-n2", "--dst-report=page.html", "--junitxml=junit.xml", "--dst-annotations=yes"
    )
    assert result.ret == 1
    assert "tested turns break" in (bot.path / "page.html").read_text(encoding="utf-8")
    assert suite_properties(bot.path / "junit.xml")["dst_verdict"] == "violation"
    assert sum(line.startswith("::error ") for line in result.outlines) > 1


def test_an_ini_file_names_the_page_beside_it(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\ndst_report = pages/page.html\n")
    bot.mkdir("below")
    bot.runpytest_inprocess(*FRAGILE, "--rootdir=.", "below", "-c", "tox.ini")
    assert (bot.path / "pages" / "page.html").is_file()


def test_a_missing_extra_is_found_before_the_run(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = bot.runpytest_inprocess(*FRAGILE, "--dst-report=page.html")
    assert result.ret == 4
    result.stderr.fnmatch_lines(['ERROR: the HTML report needs *"pytest-dstfuzz[[]report[]]"'])
    assert "collected" not in result.stdout.str()


def test_a_page_that_cannot_be_written_is_found_before_the_run(bot: pytest.Pytester) -> None:
    bot.mkdir("page.html")
    result = bot.runpytest_inprocess(*FRAGILE, "--dst-report=page.html")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: cannot write *page.html: it is a folder"])


def suite_properties(path: Path) -> dict[str, str]:
    found = ET.parse(path).getroot().iterfind("testsuite/properties/property")  # noqa: S314 - ours
    return {item.attrib["name"]: item.attrib["value"] for item in found}


def test_junit_properties_of_the_session(bot: pytest.Pytester) -> None:
    # Enough turns for a sixth dialogue.
    more = ("--dst-turns=40", "--junitxml=junit.xml", "--dst-report=report.json")
    bot.runpytest_inprocess(*FRAGILE, *more)
    summary = json.loads((bot.path / "report.json").read_text(encoding="utf-8"))["summary"]
    found = suite_properties(bot.path / "junit.xml")
    assert found["dst_verdict"] == "violation"
    assert float(found["dst_failure_rate"]) == summary["failure_rate"]
    bounds = [float(found[f"dst_failure_rate_{end}"]) for end in ("low", "high")]
    assert bounds == summary["failure_rate_interval"]
    assert int(found["dst_dialogues"]) == summary["dialogues_tested"] >= 6
    assert int(found["dst_violations"]) == summary["violations"] > 0
    bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW, "--junitxml=junit.xml")
    assert suite_properties(bot.path / "junit.xml")["dst_verdict"] == "held"
    bot.runpytest_inprocess(*FRAGILE, "--dst-max-failure-rate=1%", "--junitxml=junit.xml")
    assert suite_properties(bot.path / "junit.xml")["dst_verdict"] == "regression"


def test_other_suites_have_no_such_properties(bot: pytest.Pytester) -> None:
    bot.makepyfile("def test_other(): pass")
    bot.runpytest_inprocess("--junitxml=junit.xml")
    assert suite_properties(bot.path / "junit.xml") == {}


@pytest.mark.parametrize(
    ("actions", "option", "shown"),
    [
        (None, None, False),
        ("true", None, True),
        ("false", None, False),
        ("true", "no", False),
        (None, "yes", True),
        (None, "auto", False),
    ],
)
def test_when_there_are_annotations(
    bot: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    actions: str | None,
    option: str | None,
    shown: bool,
) -> None:
    if actions is not None:
        monkeypatch.setenv("GITHUB_ACTIONS", actions)
    options = () if option is None else (f"--dst-annotations={option}",)
    result = bot.runpytest_inprocess(*FRAGILE, *options, "-q")
    commands = [line for line in result.outlines if line.startswith("::")]
    assert (2 <= len(commands) <= 4) if shown else commands == []
    assert all(line.startswith("::error title=sample-test-") for line in commands)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_annotations_name_the_line_of_the_test(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    tests = bot.mkdir("suite") / "test_mine.py"
    tests.write_text("\n\ndef test_state(dst_turn):\n    dst_turn.assert_unchanged()\n")
    options = (*FRAGILE, "--dst-annotations=yes", *workers)
    for root, file in ((None, "suite/test_mine.py"), ("suite", "test_mine.py")):
        if root is not None:
            monkeypatch.setenv("GITHUB_WORKSPACE", str(bot.path / root))
        result = bot.runpytest_inprocess(*options, "suite")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        commands = [line for line in result.outlines if line.startswith("::")]
        assert commands
        for line in commands:
            assert line.startswith(f"::error file={file},line=3,title=sample-test-")


def test_the_summary_of_a_step(bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bot.path / "step.md"
    path.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    bot.runpytest_inprocess(*FRAGILE, "--dst-report=report.json")
    text = markdown_text(views_of(read_report(bot.path / "report.json")))
    assert path.read_text(encoding="utf-8") == "before\n" + text
    bot.runpytest_inprocess(*FRAGILE, "--dst-annotations=no")
    assert path.read_text(encoding="utf-8") == "before\n" + text


def test_a_summary_that_cannot_be_written_fails_nothing(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(bot.path / "missing" / "step.md"))
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["the job summary was not written: cannot write *"])


def test_the_switch_is_explained(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(*FRAGILE, "--dst-annotations=always")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--dst-annotations: *Valid: auto, no, yes.*"])
