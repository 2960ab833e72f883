"""Whole runs of pytest with the plugin: what is tested, and what the exit status says."""

from __future__ import annotations

import json
import re

import pytest

FEW = ("--dst-turns=4", "--dst-variants=2")


def test_without_tests_the_builtin_suite_is_run(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    result.assert_outcomes(passed=4)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["verdict *0 of 4 tested turns break*"])


def test_among_other_tests_the_builtin_suite_is_added(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_other="def test_other(): pass")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    result.assert_outcomes(passed=5)


def test_the_builtin_suite_is_found_under_other_naming_rules(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\npython_functions = check_*\n")
    bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW).assert_outcomes(passed=4)


def test_a_suite_of_ones_own_replaces_the_builtin_one(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:fragile", "-v", *FEW)
    result.stdout.fnmatch_lines(["test_mine.py::test_state[[]sample-test-*-t0[]] FAILED*"])
    result.stdout.no_fnmatch_line("*test_belief_state_survives*")
    assert result.ret == 1


def test_a_failure_reads_like_an_assertion(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:fragile", "--dst-seed=3", *FEW)
    options = "--dst-model=mybot:fragile --dst-turns=4 --dst-variants=2 --dst-seed=3 --dst-var*=?"
    result.stdout.fnmatch_lines(
        [
            "*valid variants change the belief state at turn 0 of dialogue *",
            "*changed:*hotel-name: *",
            f"*repeat with: pytest 'test_mine.py::test_state[[]sample-test-*-t0[]]' {options}",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_command_of_a_failure_repeats_just_that_variant(bot: pytest.Pytester) -> None:
    first = bot.runpytest_inprocess("--dst-model=mybot:fragile", *FEW)
    command = re.search(r"repeat with: pytest -k '(\S+)' (.*)", first.stdout.str())
    assert command is not None
    again = bot.runpytest_inprocess("-k", command[1], *command[2].split())
    again.assert_outcomes(failed=1, deselected=3)
    plainest = re.search(r"(?m)^ +changed: .*$", first.stdout.str())
    assert plainest is not None
    assert plainest[0] in again.stdout.str()


def test_the_model_may_come_from_a_fixture(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest, mybot\n"
        "@pytest.fixture(scope='session')\n"
        "def dst_model(): return mybot.Stateful()\n"
    )
    result = suite.runpytest_inprocess(*FEW)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["verdict *4 of 4 tested turns break*"])


def test_a_fixture_of_the_folder_reaches_the_builtin_suite(bot: pytest.Pytester) -> None:
    bot.makeconftest(
        "import pytest, mybot\n"
        "@pytest.fixture(scope='session')\n"
        "def dst_model(): return mybot.fragile\n"
    )
    bot.makeini("[pytest]\ndst_model = mybot:steady\ndst_suite = yes\n")
    assert bot.runpytest_inprocess(*FEW).ret == 1


def test_the_search_may_come_from_a_fixture(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest\n@pytest.fixture(scope='session')\ndef dst_search(): return 'ransom'\n"
    )
    result = suite.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    assert result.ret == 4
    result.stdout.fnmatch_lines(["unknown search 'ransom'. Did you mean 'random'?*"])


def test_without_any_tracker_the_session_ends_with_one_message(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess(*FEW)
    assert result.ret == 4
    assert result.stdout.str().count("no tracker to test: name one with --dst-model") == 1


def test_a_fixture_that_is_no_tracker_ends_the_session(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest\n@pytest.fixture(scope='session')\ndef dst_model(): return 3\n"
    )
    result = suite.runpytest_inprocess(*FEW)
    assert result.ret == 4
    result.stdout.fnmatch_lines(["int 3 is not a tracker*"])


def test_collecting_needs_no_tracker(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess("--dst-model=mybot:Raising", "--collect-only", "-q", *FEW)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["dstfuzz::test_belief_state_survives[[]sample-test-*-t0[]]"])


def test_a_run_that_names_a_model_and_tests_no_turn_fails(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_other="def test_other(): pass")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", "-k", "test_other", *FEW)
    result.assert_outcomes(passed=1, deselected=4)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: no turn was tested*"])


def test_a_run_without_a_valid_variant_fails(bot: pytest.Pytester) -> None:
    # Drawn often enough, a short utterance gets an edit that is no change by rate.
    once = ("--dst-max-edit-rate=0", "-odst_redraws=0")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *once, *FEW)
    result.assert_outcomes(skipped=4)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: no turn was tested (4 untested)"])


def test_last_failed_runs_the_failed_turns_again(bot: pytest.Pytester) -> None:
    options = ("--dst-model=mybot:second_turn_fails", "--dst-turns=6", "-p", "cacheprovider")
    first = bot.runpytest_inprocess(*options).parseoutcomes()
    again = bot.runpytest_inprocess("--lf", *options).parseoutcomes()
    assert again == {"failed": first["failed"], "deselected": first["passed"]}


def test_a_turn_at_which_the_tracker_fails_is_an_error(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:second_turn_fails", "--dst-turns=6")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "The tracker failed on * at turn 1 of dialogue *",
            "*no second turn please*",
            "failed: the tracker failed on 2 of 6 turns, more than 5 %; *-t1: *",
        ]
    )


def test_an_error_is_recorded_under_the_gate(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess(
        "--dst-model=mybot:second_turn_fails", "--dst-turns=6", "--dst-fail-on=gate", "-rs"
    )
    assert "failed" not in result.parseoutcomes()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["SKIPPED*the tracker failed: *no second turn please*"])


@pytest.mark.parametrize(("limit", "status"), [("100%", 0), ("0.5", 1)])
def test_the_gate_judges_the_rate(bot: pytest.Pytester, limit: str, status: int) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:fragile", f"--dst-max-failure-rate={limit}", *FEW
    )
    result.assert_outcomes(passed=4)
    assert result.ret == status
    failed = "failed: the failure rate * is over the limit of 50.00 %"
    (result.stdout.fnmatch_lines if status else result.stdout.no_fnmatch_line)(
        [failed] if status else failed
    )


def test_the_gate_alone_only_records(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess("--dst-model=mybot:fragile", "--dst-fail-on=gate", *FEW)
    result.assert_outcomes(passed=4)
    assert result.ret == 0


def test_the_budget_skips_what_is_left(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:steady", "--dst-max-calls=40", "--dst-turns=40", "-rs"
    )
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] >= 1
    assert outcomes["skipped"] >= 1
    result.stdout.fnmatch_lines(["SKIPPED*the budget of 40 calls ended before this turn was run"])


def test_relation_gold_says_nothing_where_the_tracker_is_wrong(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:fragile", "--dst-relation=gold", *FEW)
    result.assert_outcomes(skipped=4)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: no turn was tested (4 inapplicable)"])


def test_one_line_when_quiet(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess("-q", "--dst-model=mybot:fragile", "--dst-fail-on=gate", *FEW)
    assert [line for line in result.outlines if "violations in 4 of 4 turns" in line]
    result.stdout.no_fnmatch_line("*by transformation*")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_properties_for_junit(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    suite.runpytest_inprocess("--dst-model=mybot:fragile", "--junitxml=out.xml", *FEW, *workers)
    text = (suite.path / "out.xml").read_text(encoding="utf-8")
    assert text.count('<property name="dst_outcome" value="violation" />') == 4
    assert '<property name="dst_violations"' in text
    assert '<property name="dst_turn" value="sample-test-' in text


def test_the_fixture_dst_report_knows_what_was_found(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "def test_state(dst_turn):\n"
        "    assert dst_turn.dialogue.turns[dst_turn.turn.index] is dst_turn.turn\n"
        "    assert dst_turn.result.turn_index == dst_turn.turn.index\n"
        "    assert dst_turn.turn.user == dst_turn.result.user\n"
        "    assert str(dst_turn.turn.index) in repr(dst_turn)\n"
        "def test_z_report(dst_report):\n"
        "    assert dst_report.summary.turns == len(dst_report.results) == 4\n"
        "    assert dst_report.settings.variant.variants == 2\n"
    )
    result = bot.runpytest_inprocess("--dst-model=mybot:fragile", *FEW)
    result.assert_outcomes(passed=5)


def test_a_turn_is_no_value_to_ask_for(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "def test_state(request, dst_report):\n    request.getfixturevalue('dst_turn')\n"
    )
    result = bot.runpytest_inprocess("--dst-model=mybot:fragile", *FEW)
    result.stdout.fnmatch_lines(["*dst_turn must be an argument of the test function*"])
    assert result.ret == 1


def test_an_interrupt_keeps_what_was_done(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:Interrupting",
        "--dst-turns=30",
        "--dst-batch-size=4",
        "--dst-report=out.json",
        no_reraise_ctrlc=True,
    )
    assert result.ret == 2
    report = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))
    assert report["data"]["ended"] == "interrupted"
    assert 0 < len(report["turns"]) < 30
    result.stdout.fnmatch_lines(["ended early *interrupted"])


def test_an_interrupt_before_the_first_result_is_told_as_one(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:Interrupting",
        "--dst-turns=30",
        "--dst-report=out.json",
        "--dst-report=out.html",
        no_reraise_ctrlc=True,
    )
    assert result.ret == 2
    files = "the report out.json, the report out.html"
    result.stdout.fnmatch_lines(
        [
            "failed: no turn was tested (interrupted)",
            f"not written because nothing was tested: {files}",
        ]
    )
    assert not (bot.path / "out.json").exists()


def test_maxfail_keeps_what_was_done(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:fragile", "--maxfail=2", "--dst-report=out.json", *FEW
    )
    assert result.ret == 1
    report = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))
    assert len(report["turns"]) == 2


def test_an_interrupt_names_the_relations_that_were_not_run(bot: pytest.Pytester) -> None:
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:Interrupting",
        "--dst-turns=20",
        "--dst-batch-size=4",
        "--dst-relation=metamorphic,value-swap,negation",
        no_reraise_ctrlc=True,
    )
    unseen = "no results for value-swap, negation, because relations run in the given order"
    result.stdout.fnmatch_lines([f"* selected turns have no result (interrupted); {unseen}"])
