"""Searches and relations of a suite: by fixtures, by registration, under xdist, in replay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from own_bot import BOT, OPTIONS, TEST

FIXTURES = """
from closed_slots import ClosedSlots
from vowel_search import VowelSearch

@pytest.fixture(scope="session")
def dst_search():
    return VowelSearch(seed=0, k=3)

@pytest.fixture(scope="session")
def dst_relation():
    return ClosedSlots()
"""
REGISTERED = """
from pytest_dstfuzz import register_relation, register_search
from closed_slots import ClosedSlots
from vowel_search import VowelSearch

register_search("vowels", VowelSearch)
register_relation(ClosedSlots)
"""
NAMED = ("--dst-search=vowels", "--dst-relation=closed-slots")


def report_of(suite: pytest.Pytester, *options: str) -> dict[str, Any]:
    """Run the suite in a process of its own, and return its report."""
    path = suite.path / "report.json"
    path.unlink(missing_ok=True)
    run = suite.runpytest_subprocess(*OPTIONS, f"--dst-report={path}", *options)
    assert path.is_file(), run.stdout.str() + run.stderr.str()
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


@pytest.mark.nightly
def test_fixtures_names_and_markers_do_the_same_and_reports_tell(
    suite: pytest.Pytester,
) -> None:
    suite.makeconftest(BOT + FIXTURES)
    by_fixture = report_of(suite, "-n2")
    suite.makeconftest(BOT + REGISTERED)
    by_name = report_of(suite, *NAMED)
    marked = "@pytest.mark.dst(search='vowels', relation='closed-slots')"
    suite.makepyfile(test_bot=f"import pytest\n\n{marked}\n{TEST}")
    assert report_of(suite, "-n2")["turns"] == by_name["turns"]
    suite.makepyfile(test_bot=TEST)
    plain = report_of(suite)
    for report in (by_fixture, by_name):
        names = {name: report["settings"][name] for name in ("search", "relation")}
        assert names == {"search": "vowels", "relation": "closed-slots"}
    assert by_fixture["turns"] == by_name["turns"]
    assert by_fixture["summary"]["violations"] > 0
    assert by_fixture["turns"] != plain["turns"]
    assert plain["settings"]["search"] == "random"


def test_what_broke_is_remembered_by_its_relation_and_asked_again(suite: pytest.Pytester) -> None:
    suite.makeconftest(BOT + FIXTURES)
    corpus = suite.path / "known" / "talks.jsonl"
    options = (*OPTIONS, "--dst-regressions=known", "--dst-fail-on=gate")
    suite.runpytest_subprocess(*options, "--dst-remember")
    entries = list(map(json.loads, corpus.read_text(encoding="utf-8").splitlines()))
    assert {entry["relation"] for entry in entries} == {"closed-slots"}
    again = suite.runpytest_subprocess(*options, f"--dst-replay={entries[0]['id']}")
    again.stdout.fnmatch_lines(["*regression * is still broken*"])
    # Without the fixture nobody knows what it was about.
    suite.makeconftest(BOT)
    unknown = suite.runpytest_subprocess(*options, f"--dst-replay={entries[0]['id']}")
    unknown.stdout.fnmatch_lines(["*unknown relation 'closed-slots'.*"])


@pytest.mark.parametrize(
    ("fixture", "value", "message"),
    [
        (
            "search",
            "7",
            "the fixture dst_search returned neither a name nor a search: int is not a sea",
        ),
        (
            "relation",
            "object()",
            "returned neither a name nor a relation: object is not a relation: it",
        ),
        ("relation", "'golden'", "unknown relation 'golden'. Did you mean 'gold'?"),
    ],
)
def test_a_wrong_fixture_is_told_once(
    suite: pytest.Pytester, fixture: str, value: str, message: str
) -> None:
    suite.makeconftest(
        f"{BOT}\n@pytest.fixture(scope='session')\ndef dst_{fixture}():\n    return {value}\n"
    )
    run = suite.runpytest_subprocess(*OPTIONS)
    text = run.stdout.str() + run.stderr.str()
    assert message in text
    assert "Traceback" not in text
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_a_search_that_raises_ends_the_session_with_its_place(suite: pytest.Pytester) -> None:
    broken = FIXTURES.replace(
        "return VowelSearch(seed=0, k=3)", "return VowelSearch(seed=0, k=None)"
    )
    suite.makeconftest(BOT + broken)
    run = suite.runpytest_subprocess(*OPTIONS)
    assert "propose() of the search 'vowels' raised" in run.stdout.str() + run.stderr.str()
    assert run.ret == pytest.ExitCode.USAGE_ERROR
