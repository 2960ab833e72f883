"""Limits and sections that hooks of a suite add, as the page on extending shows them."""

from __future__ import annotations

import json

import pytest

from tools.docs.pages import DOCS

PAGE = DOCS / "guides" / "extending.md"
BOT = """
def quiet(context):
    return {"hotel-area": "north"} if "north" in context.user.lower() else {}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite with the example of the page, whose limit stands in its pyproject.toml."""
    shown = PAGE.read_text(encoding="utf-8").partition('title="empty_answers.py"\n')[2]
    hooks = "pytest_dstfuzz_limits, pytest_dstfuzz_report_section"
    pytester.makepyfile(quietbot=BOT, empty_answers=shown.partition("```")[0])
    pytester.makeconftest(f"from empty_answers import {hooks}")
    return pytester


def run(suite: pytest.Pytester, limit: str, *options: str) -> pytest.RunResult:
    table = f"[tool.dstfuzz.gates]\nmax-empty-answers = {limit}\n"
    suite.path.joinpath("pyproject.toml").write_text(table, encoding="utf-8")
    return suite.runpytest_inprocess(
        "--dst-model=quietbot:quiet", "--dst-turns=8", "--dst-report=r.json", *options
    )


def test_a_limit_of_a_suite_decides(suite: pytest.Pytester) -> None:
    failed = run(suite, "'1%'", "--dst-fail-on=gate", "--junitxml=junit.xml")
    assert failed.ret == pytest.ExitCode.TESTS_FAILED
    report = json.loads(suite.path.joinpath("r.json").read_text(encoding="utf-8"))
    (finding,) = report["gate"]["findings"]
    assert (finding["gate"], finding["verdict"]) == ("max-empty-answers", "regression")
    assert finding["value"] == report["summary"]["clean_empty_share"] > 0.01
    assert finding["reason"] in suite.path.joinpath("junit.xml").read_text(encoding="utf-8")
    passed = run(suite, "'100%'", "--dst-fail-on=gate")
    assert passed.ret == pytest.ExitCode.OK


#: What code at the end of a session may do, and the name of its exception.
ENDS = [
    ("1 / 0", "ZeroDivisionError"),
    *((f"raises({name})", name) for name in ("KeyboardInterrupt", "SystemExit", "GeneratorExit")),
    ("pytest.exit('enough', returncode=0)", "enough"),
    ("pytest.skip('enough')", "enough"),
]
RAISES = """
import pytest

def raises(kind):
    raise kind
"""


@pytest.mark.parametrize(("code", "name"), ENDS)
def test_a_section_that_raises_costs_no_report(
    suite: pytest.Pytester, code: str, name: str
) -> None:
    suite.makeconftest(
        f"{RAISES}\ndef pytest_dstfuzz_report_section(totals): return ('Mine', [str({code})])"
    )
    suite.path.joinpath("pyproject.toml").write_text("", encoding="utf-8")
    found = suite.runpytest_inprocess(
        "--dst-model=quietbot:quiet", "--dst-turns=8", "--dst-report=r.json", "--dst-fail-on=gate"
    )
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    found.stdout.fnmatch_lines([f"*failed: *{name}*"])
    assert suite.path.joinpath("r.json").is_file()


@pytest.mark.parametrize(("code", "name"), ENDS)
def test_a_figure_that_raises_costs_no_report(suite: pytest.Pytester, code: str, name: str) -> None:
    suite.makeconftest(
        f"{RAISES}\nfrom pytest_dstfuzz import Limit\n"
        "def pytest_dstfuzz_limits():\n"
        f"    return [Limit(name='max-empty-answers', figure=lambda totals: {code})]"
    )
    found = run(suite, "'1%'", "--dst-fail-on=gate")
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    found.stdout.fnmatch_lines([f"*failed: *{name}*"])
    assert suite.path.joinpath("r.json").is_file()


def test_a_limit_that_judges_nothing_is_refused(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "from pytest_dstfuzz import Limit\n"
        "def pytest_dstfuzz_limits(): return [Limit(name='max-nothing')]"
    )
    found = suite.runpytest_inprocess("--dst-model=quietbot:quiet", "--dst-turns=8")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines(["ERROR: *'max-nothing' cannot judge a run*"])


def test_a_section_of_a_suite_is_in_every_report(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "summary.md"))
    found = run(suite, "'100%'", "--dst-report=page.html")
    report = json.loads(suite.path.joinpath("r.json").read_text(encoding="utf-8"))
    ((section),) = report["sections"]
    assert section["title"] == "Empty answers by relation"
    found.stdout.fnmatch_lines([section["title"], f"  {section['lines'][0]}"])
    for file in ("page.html", "summary.md"):
        text = suite.path.joinpath(file).read_text(encoding="utf-8")
        assert section["title"] in text
        assert "clean answers" in text.partition(section["title"])[2]


def test_a_mistake_in_a_limit_of_a_suite_is_named(suite: pytest.Pytester) -> None:
    refused = run(suite, "7")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*max-empty-answers: '7' must be a rate*"])


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("figure", ["math.nan", "math.inf", "'0.5'", "Figure(math.nan, 'it')"])
def test_a_figure_that_is_no_number_does_not_pass(
    suite: pytest.Pytester, figure: str, least: bool
) -> None:
    suite.makeconftest(
        "import math\n"
        "from pytest_dstfuzz import Limit\n"
        "from pytest_dstfuzz.gate.verdict import Figure\n"
        "def pytest_dstfuzz_limits():\n"
        f"    figure = lambda totals: {figure}\n"
        f"    return [Limit(name='max-empty-answers', figure=figure, what='it', least={least})]"
    )
    found = run(suite, "'1%'", "--dst-fail-on=gate")
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    found.stdout.fnmatch_lines(["*the figure of the limit 'max-empty-answers' is *"])
