"""The fixture ``dst_conformance``: what a suite asserts about its tracker as such."""

from __future__ import annotations

import pytest

CONFTEST = """
import mybot
import pytest

@pytest.fixture(scope="session")
def dst_model():
    return mybot.{name}
"""
SUITE = """
def test_it_can_be_tested(dst_conformance):
    dst_conformance.assert_passed()

def test_findings(dst_conformance):
    by_name = {finding.check: finding for finding in dst_conformance.findings}
    assert by_name["deterministic"].status == "passed"
    assert dst_conformance.report.asked > 40
"""


def test_a_sound_tracker_passes(bot: pytest.Pytester) -> None:
    bot.makeconftest(CONFTEST.format(name="steady"))
    bot.makepyfile(test_mine=SUITE)
    bot.runpytest("--dst-turns=40").assert_outcomes(passed=2)


def test_what_is_wrong_is_said_with_advice(bot: pytest.Pytester) -> None:
    bot.makeconftest(CONFTEST.format(name="SeesTheBatch()"))
    bot.makepyfile(test_mine=SUITE)
    result = bot.runpytest("--dst-turns=40")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "13 checks: * failed, *",
            "batch-alone: in batches of 2, a context gets another answer than alone (dialogue *",
            "  Mask the padding in attention, *",
        ]
    )
    result.stdout.no_fnmatch_line("*conformance.py:*")


def test_the_kit_runs_once_a_session(bot: pytest.Pytester) -> None:
    bot.makeconftest(CONFTEST.format(name="Counting()"))
    bot.makepyfile(
        mybot=(
            "class Counting:\n"
            "    asked = 0\n"
            "    def predict(self, contexts):\n"
            "        Counting.asked += len(contexts)\n"
            "        return [{'hotel-area': 'north'} for _ in contexts]\n"
        ),
        test_mine=SUITE,
        test_more=(
            "import mybot\n"
            "def test_again(dst_conformance):\n"
            "    assert mybot.Counting.asked == dst_conformance.report.asked\n"
        ),
    )
    bot.runpytest("--dst-turns=40").assert_outcomes(passed=3)


OPTIONS = ("--dst-model=mybot:steady", "--dst-turns=40")


def test_a_run_that_checks_the_adapter_alone_is_a_run(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_mine=SUITE)
    result = bot.runpytest(*OPTIONS)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK


def test_it_is_one_in_a_worker_too(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_mine=SUITE)
    result = bot.runpytest_subprocess(*OPTIONS, "-n1")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK


def test_a_gate_still_wants_turns(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_mine=SUITE)
    result = bot.runpytest(*OPTIONS, "--dst-max-failure-rate=5%")
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR)
    result.stdout.fnmatch_lines(["*no turn was tested*"])


def test_what_is_no_tracker_is_one_message(bot: pytest.Pytester) -> None:
    bot.makeconftest(CONFTEST.format(name="nothing"))
    bot.makepyfile(test_mine=SUITE)
    result = bot.runpytest()
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*int 3 is not a tracker: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
