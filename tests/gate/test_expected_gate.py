"""Estimated failures as a limit: what is judged, and what is refused before the run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from gate_cases import BOT, judged_figure

from pytest_dstfuzz.campaign.figures import EstimatedFailures
from pytest_dstfuzz.gate.verdict import LimitFinding, failing_turns
from pytest_dstfuzz.report.json_report import SCHEMA_PATH
from pytest_dstfuzz.report.packing import problems

FOUND = EstimatedFailures(
    per_1000=7.84,
    interval=(5.01, 11.52),
    effective_sample_size=879.0,
    slip_rate=0.02,
    noise="typing",
    turns=300,
    distorted_per_1000=160.0,
    locked_per_1000=20.0,
    unjudged_per_1000=0.0,
)


def judge_expected(limit: float, found: EstimatedFailures | None) -> LimitFinding:
    return judged_figure("max-estimated-failures", limit, failing_turns(found, 100))


NATURAL = ("--dst-validity=natural", "--dst-search=noise")


def test_the_figure_decides_and_the_interval_is_shown() -> None:
    passed, failed = judge_expected(7.8, FOUND), judge_expected(7.7, FOUND)
    assert (passed.verdict, failed.verdict) == ("pass", "regression")
    assert (failed.limit, failed.value, failed.interval) == (7.7, 7.84, (5.01, 11.52))
    assert failed.reason == (
        "an estimated 7.8 of 1,000 user turns fail (95 % interval 5.0 to 11.5), which is over "
        "the limit of 7.7"
    )


def test_without_an_interval_the_figure_decides_all_the_same() -> None:
    found = judge_expected(5.0, replace(FOUND, interval=None))
    assert found.verdict == "regression"
    assert "(too few dialogues for an interval)" in found.reason


def test_without_a_figure_nothing_is_decided_and_the_reason_is_named() -> None:
    none = replace(FOUND, per_1000=None, interval=None, reason="the sample is too small")
    found = judge_expected(5.0, none)
    assert (found.verdict, found.value) == ("inconclusive", None)
    assert found.reason == "there is no figure for estimated failures: the sample is too small"
    assert judge_expected(5.0, None).verdict == "inconclusive"


@pytest.fixture
def bot(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(mybot=BOT)
    return pytester


def run(bot: pytest.Pytester, *options: str) -> pytest.RunResult:
    return bot.runpytest_inprocess(
        *("--dst-model=mybot:fragile", "--dst-turns=40", "--dst-report=out.json"),
        *("--dst-shrink=no", "-p", "no:cacheprovider", *options),
    )


def test_a_run_over_the_limit_fails_and_one_within_passes(bot: pytest.Pytester) -> None:
    result = run(bot, *NATURAL, "-odst_max_estimated_failures=2.5")
    assert result.ret == 1
    result.assert_outcomes(passed=40)
    result.stdout.fnmatch_lines(["failed: * of 1,000 user turns fail * over the limit of 2.5"])
    report = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []
    (finding,) = report["gate"]["findings"]
    assert finding["value"] == report["summary"]["estimated_failures"]["per_1000"]
    bot.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-estimated-failures = 900\n")
    assert run(bot, *NATURAL).ret == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--dst-search=random",), "the search random does not use the probabilities of variants"),
        (
            ("--dst-validity=natural", "--dst-search=greedy"),
            "the search greedy does not use the probabilities of variants",
        ),
        (
            (*NATURAL, "--dst-stop-at-first"),
            "stop-at-first leaves out variants of a turn",
        ),
    ],
)
def test_a_session_without_a_density_is_refused_before_it_runs(
    bot: pytest.Pytester, options: tuple[str, ...], reason: str
) -> None:
    rise = ("--dst-baseline=b", "--dst-update-baseline", "-odst_max_estimated_rise=5")
    for given in (("-odst_max_estimated_failures=5",), rise, ()):
        result = run(bot, *options, *given)
        assert result.ret == 4
        needs = "need --dst-validity=natural and a search that samples"
        result.stderr.fnmatch_lines([f"ERROR: limits on estimated failures * {needs} *: {reason}*"])
        bot.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-estimated-failures = 5\n")
    assert run(bot, *options, "-odst_max_estimated_failures=").ret == 1  # violations fail


def test_a_search_of_others_that_has_a_density_will_do(bot: pytest.Pytester) -> None:
    bot.makeconftest(
        "from pytest_dstfuzz.search.searches import NoiseSearch\n"
        "from pytest_dstfuzz.search.registry import register_search\n"
        "class Mine(NoiseSearch):\n"
        "    name = 'mine'\n"
        "register_search('mine', Mine)\n"
    )
    options = ("--dst-search=mine", "-odst_max_estimated_failures=900")
    assert run(bot, *options, "--dst-validity=strict").ret == 4
    assert run(bot, *options).ret == 0


def test_one_variant_alone_is_repeated_whatever_the_limit(bot: pytest.Pytester) -> None:
    bot.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-estimated-failures = 5\n")
    result = run(bot, *NATURAL, "--dst-variant=1")
    assert result.ret == 0
    passes = "an inconclusive gate does not fail the run (with dst_inconclusive=fail: *"
    result.stdout.fnmatch_lines(
        ["inconclusive: there is no figure for estimated failures*", passes]
    )
    fails = run(bot, *NATURAL, "--dst-variant=1", "-odst_inconclusive=fail")
    assert fails.ret == 7
    fails.stdout.no_fnmatch_line(passes)


def test_markers_that_draw_otherwise_leave_no_figure(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        test_own="import pytest\n"
        "@pytest.mark.dst(search='random')\n"
        "def test_state(dst_turn):\n"
        "    dst_turn.assert_unchanged()\n"
    )
    result = run(bot, *NATURAL, "-odst_max_estimated_failures=5", "--dst-suite=no")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*inconclusive: *: the search does not estimate them: use --dst-search=noise"]
    )


DEAF = """
def track(context):
    said = " ".join(context.user_utterances)
    # The area does not matter: the answer is always north.
    areas = ("north", "south", "east", "west", "centre")
    return {"hotel-area": "north"} if any(word in said for word in areas) else {}
"""


def test_a_relation_without_an_estimate_does_not_pass(bot: pytest.Pytester) -> None:
    bot.makepyfile(deaf=DEAF)
    given = (
        "--dst-model=deaf:track",
        "--dst-relation=metamorphic,value-swap",
        "--dst-turns=all",
        "-kDSF0042",
        *NATURAL,
    )
    limit = "-odst_max_estimated_failures=900"
    result = run(bot, *given, limit)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["failed: value-swap makes its own edits, so there is no estimate*"]
    )
    bot.makepyprojecttoml('[tool.dstfuzz.gates.relation.value-swap]\nmax-failure-rate = "100%"\n')
    assert run(bot, *given, limit).ret == 0
