"""Several trackers in one session: figures, verdicts, baselines and pages of each."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, read_report
from pytest_dstfuzz.report.packing import problems, reports_of
from pytest_dstfuzz.report.view import views_of

FEW = ("--dst-turns=30", "--dst-variants=2", "--dst-report=out.json", "--dst-fail-on=gate")
#: Two bots that hear one word each, of which the second forgets it when a letter is missing.
BOTS = """
import pytest

class Bot:
    def __init__(self, name, forgets):
        self.name, self.forgets = name, forgets
    def __call__(self, context):
        words = [word for text in context.user_utterances for word in text.split()]
        count = len(words) if self.forgets else len(context.exchanges)
        return {"hotel-name": "a" if count % 2 else "b"}

@pytest.fixture(scope="session", params=NAMES)
def dst_model(request):
    return Bot(request.param, request.param == "brittle")
"""
TEST = "def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n"
BOTH = BOTS.replace("NAMES", "['steady', 'brittle']")
STEADY, BRITTLE = "dst_model[steady]", "dst_model[brittle]"


@pytest.fixture
def two(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of one test for two bots."""
    pytester.makeconftest(BOTH)
    pytester.makepyfile(test_two=TEST)
    return pytester


def read(pytester: pytest.Pytester, name: str = "out.json") -> Any:
    return json.loads((pytester.path / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_each_tracker_has_figures_and_turns_of_its_own(
    two: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    two.runpytest_inprocess(*FEW, *workers)
    report = read(two)
    models = {one["name"]: one["summary"] for one in report["models"]}
    assert sorted(models) == [BRITTLE, STEADY]
    assert models[STEADY]["failure_rate"] == 0 < models[BRITTLE]["failure_rate"]
    turns = Counter(turn["model"] for turn in report["turns"])
    assert turns == {name: summary["turns"] for name, summary in models.items()}
    assert turns[STEADY] == 30
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []


def test_one_tracker_is_reported_as_ever(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(BOTS.replace("NAMES", "['steady']"))
    pytester.makepyfile(test_one=TEST, test_again=TEST)
    pytester.runpytest_inprocess(*FEW)
    report = read(pytester)
    assert "models" not in report
    assert not any("model" in turn for turn in report["turns"])


def test_a_limit_that_the_sum_keeps_fails_the_tracker_that_breaks_it(two: pytest.Pytester) -> None:
    two.runpytest_inprocess(*FEW)
    rates = [one["summary"]["failure_rate"] for one in read(two)["models"]]
    limit = f"--dst-max-failure-rate={max(rates) * 0.75}"
    result = two.runpytest_inprocess(*FEW, limit)
    assert result.ret == 1
    report = read(two)
    assert {one["name"]: one["gate"]["verdict"] for one in report["models"]} == {
        BRITTLE: "regression",
        STEADY: "pass",
    }
    assert report["gate"]["verdict"] == "regression"
    result.stdout.fnmatch_lines([f"*{BRITTLE.replace('[', '[[]')}*", "verdict *", "failed: *"])


def test_each_tracker_is_compared_with_its_own_baseline(two: pytest.Pytester) -> None:
    keep = (*FEW, "--dst-baseline=base.json")
    assert two.runpytest_inprocess(*keep, "--dst-update-baseline").ret == 0
    assert two.runpytest_inprocess(*keep).ret == 0
    for one in read(two)["models"]:
        assert one["gate"]["comparison"]["turns"] == 30
    # The two change places: what one was is no excuse for the other.
    two.makeconftest(BOTH.replace('== "brittle"', '== "steady"'))
    result = two.runpytest_inprocess(*keep)
    assert result.ret != 0
    found = {one["name"]: one["gate"]["comparison"] for one in read(two)["models"]}
    assert found[STEADY]["new_violations"]
    assert not found[STEADY]["gone_violations"]
    assert found[BRITTLE]["gone_violations"]


def test_one_tracker_of_a_session_is_compared_with_the_file_of_several(
    two: pytest.Pytester,
) -> None:
    keep = (*FEW, "--dst-baseline=base.json")
    whole = two.runpytest_inprocess(*keep, "--dst-update-baseline")
    result = two.runpytest_inprocess(*keep, "-k", "brittle")
    note = "note: this run did not test all trackers of the baseline: *"
    result.stdout.fnmatch_lines([f"{note}steady* missing"])
    whole.stdout.no_fnmatch_line(note)
    report = read(two)
    assert report["gate"]["comparison"]["turns"] == 30
    assert report["gate"]["comparison"]["new_violations"] == []


def test_a_file_of_one_of_the_trackers_names_it(two: pytest.Pytester) -> None:
    keep = (*FEW, "--dst-baseline=base.json")
    two.runpytest_inprocess(*keep, "-k", "brittle", "--dst-update-baseline")
    assert [*read(two, "base.json")["models"]] == [BRITTLE]
    two.runpytest_inprocess(*keep)
    found = {one["name"]: one["gate"] for one in read(two)["models"]}
    assert found[BRITTLE]["comparison"]["turns"] == 30
    assert found[STEADY]["not_compared"]


def test_a_tracker_without_a_result_passes_no_gate(two: pytest.Pytester) -> None:
    two.makepyfile(
        test_two="import pytest\n\n"
        "def test_state(dst_turn, request):\n"
        "    if 'steady' in request.node.name:\n"
        "        pytest.skip('not today')\n"
        "    dst_turn.assert_unchanged()\n"
    )
    result = two.runpytest_inprocess(*FEW, "--dst-max-failure-rate=100%")
    assert result.ret == 1
    found = {one["name"]: one["gate"]["verdict"] for one in read(two)["models"]}
    assert found == {BRITTLE: "pass", STEADY: "infrastructure"}


def test_a_bot_with_slots_and_one_with_replies_are_two(pytester: pytest.Pytester) -> None:
    bots = "import pytest\n@pytest.fixture(scope='session')\ndef dst_model():\n    return {}\n"
    slots = bots.format("lambda context: {'hotel-name': str(len(context.exchanges) % 2)}")
    replies = bots.format("lambda messages: f'That is number {len(messages)}.'")
    outcome = "@pytest.fixture(scope='session')\ndef dst_outcome():\n    return 'reply'\n"
    pytester.makepyfile(test_of_slots=slots + TEST, test_of_talk=replies + outcome + TEST)
    pytester.runpytest_inprocess(*FEW)
    report = read(pytester)
    kinds = {one["name"]: one["outcome"]["kind"] for one in report["models"]}
    assert kinds["test_of_slots.py::dst_model"] == "state"
    assert sorted(kinds.values()) == ["reply", "state"]


def test_pages_show_each_tracker(two: pytest.Pytester) -> None:
    result = two.runpytest_inprocess(*FEW, "--dst-report=page.html")
    result.stdout.fnmatch_lines(["*-- dst_model?brittle? --*", "*-- dst_model?steady? --*"])
    page = (two.path / "page.html").read_text(encoding="utf-8")
    for number, name in enumerate((BRITTLE, STEADY), 1):
        assert f'href="page.{number}.html"' in page
        own = (two.path / f"page.{number}.html").read_text(encoding="utf-8")
        assert name in own
    report = read_report(two.path / "out.json")
    text = markdown_text(views_of(report))
    rates = [one["summary"]["failure_rate"] for one in reports_of(report).values()]
    assert [f"{100 * rate:.2f} %" in text for rate in rates] == [True, True]


def test_the_fixture_dst_report_adds_nothing_up(two: pytest.Pytester) -> None:
    two.makepyfile(
        test_two=TEST + "\n\ndef test_z_figures(dst_report):\n"
        "    found = dst_report.summaries()\n"
        f"    assert found[{STEADY!r}].failure_rate == 0 < found[{BRITTLE!r}].failure_rate\n"
        "\n\ndef test_z_sum(dst_report):\n"
        "    dst_report.summary\n"
    )
    result = two.runpytest_inprocess(*FEW)
    result.assert_outcomes(passed=61, failed=1)
    result.stdout.fnmatch_lines(["*dst_report.summaries()*"])
