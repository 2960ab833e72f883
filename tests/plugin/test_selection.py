"""Which tests a run is about: the built-in suite, files that are named, ids that are pasted."""

from __future__ import annotations

import json
import re

import pytest

FEW = ("--dst-turns=4", "--dst-variants=2")
UNIT = "def test_unit(): pass"
INI = "[pytest]\ndst_model = mybot:steady\ndst_turns = 4\ndst_variants = 2\n"
WRITTEN = ("--dst-baseline=b.json", "--dst-update-baseline")
UNTESTED = "dstfuzz: no robustness test ran: *"


@pytest.fixture
def unit(bot: pytest.Pytester) -> pytest.Pytester:
    """A bot, and a test that is about something else."""
    bot.makepyfile(test_unit=UNIT)
    return bot


def failed_ids(result: pytest.RunResult) -> list[str]:
    return re.findall(r"^FAILED (\S+\]) - ", result.stdout.str(), re.MULTILINE)


# -- ids that are printed -----------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "worker"])
def test_the_id_of_a_failure_runs_when_it_is_pasted(
    unit: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    options = ("--dst-model=mybot:fragile", *FEW)
    first, second, *_ = failed_ids(unit.runpytest_inprocess(*options))
    assert first.startswith("dstfuzz::test_belief_state_survives[sample-test-")
    again = unit.runpytest_inprocess(first, *options, *workers)
    again.assert_outcomes(failed=1)
    assert failed_ids(again) == [first]
    both = unit.runpytest_inprocess(second, "test_unit.py", first, *options, *workers)
    both.assert_outcomes(failed=2, passed=1)
    assert set(failed_ids(both)) == {first, second}


def test_an_id_that_was_printed_in_another_folder_runs_there(unit: pytest.Pytester) -> None:
    unit.makeini("[pytest]\npythonpath = .\n")
    inner = unit.mkdir("inner")
    (inner / "test_inner.py").write_text(UNIT, encoding="utf-8")
    command = ("--rootdir=..", "-c../tox.ini", "--dst-model=mybot:fragile", *FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inner)
        first, *_ = failed_ids(unit.runpytest_subprocess(*command))
        assert first.startswith("../dstfuzz::")
        again = unit.runpytest_subprocess(first, *command)
    again.assert_outcomes(failed=1)
    assert failed_ids(again) == [first]


def test_the_name_of_the_test_is_the_whole_suite(unit: pytest.Pytester) -> None:
    result = unit.runpytest_inprocess(
        "dstfuzz::test_belief_state_survives", "--dst-model=mybot:steady", *FEW
    )
    result.assert_outcomes(passed=4)


def test_a_pasted_id_asks_the_tracker_of_an_ini_file(unit: pytest.Pytester) -> None:
    unit.makeini(INI.replace("steady", "fragile"))
    first, *_ = failed_ids(unit.runpytest_inprocess("--dst-suite=yes"))
    unit.runpytest_inprocess(first).assert_outcomes(failed=1)


def test_an_id_that_is_not_there_is_named_with_the_nearest(unit: pytest.Pytester) -> None:
    options = ("--dst-model=mybot:fragile", *FEW)
    first, *_ = failed_ids(unit.runpytest_inprocess(*options))
    wrong = first.replace("-t0]", "-t99]")
    result = unit.runpytest_inprocess(wrong, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    assert f"not found: {wrong}" in text
    assert "--dst-turns" in text
    assert "Did you mean dstfuzz::test_belief_state_survives[" in text


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("dstfuzz::regression[abc]", "no remembered violation of this data has that id"),
        ("dstfuzz::nothing", "regression and results"),
    ],
)
def test_other_ids_that_are_not_there(unit: pytest.Pytester, node: str, why: str) -> None:
    result = unit.runpytest_inprocess(node, "--dst-model=mybot:steady", *FEW)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"not found: {node}: " in result.stderr.str()
    assert why in result.stderr.str()


def test_a_pasted_id_needs_a_tracker(unit: pytest.Pytester) -> None:
    result = unit.runpytest_inprocess("dstfuzz::test_belief_state_survives", *FEW)
    assert result.ret != 0
    assert "no tracker to test: name one with --dst-model" in result.stdout.str()


# -- files that are named, and folders ----------------------------------------------------


def test_nothing_is_added_to_a_file_that_is_asked_for_by_name(unit: pytest.Pytester) -> None:
    for words in (["test_unit.py"], ["test_unit.py::test_unit"]):
        result = unit.runpytest_inprocess(*words, "--dst-model=mybot:fragile", *FEW)
        result.assert_outcomes(passed=1)
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"{UNTESTED}{words[0]} has none*--dst-suite=yes"])


def test_a_gate_is_not_passed_by_a_file_without_a_robustness_test(unit: pytest.Pytester) -> None:
    result = unit.runpytest_inprocess(
        "test_unit.py", "--dst-model=mybot:steady", "--dst-max-failure-rate=5%", *FEW
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines([UNTESTED])
    result.stdout.fnmatch_lines(["failed: no turn was tested*"])


#: A module whose robustness test is not collected.
NOT_COLLECTED = {
    "skipped": "pytest.importorskip('no_such_bot')\ndef test_bot(dst_turn): pass",
    "misnamed": "def tset_bot(dst_turn): pass",
}


@pytest.mark.parametrize("kind", NOT_COLLECTED)
@pytest.mark.parametrize(
    "options", [("--dst-max-failure-rate=5%",), ("-odst_min_accuracy=60%",), ("-n2",)]
)
def test_a_typed_gate_is_not_passed_without_a_robustness_test(
    unit: pytest.Pytester, kind: str, options: tuple[str, ...]
) -> None:
    unit.makepyfile(test_robust=f"import pytest\n{NOT_COLLECTED[kind]}")
    if options == ("-n2",):
        options = (*options, "--dst-max-failure-rate=5%")
    result = unit.runpytest_inprocess(*options, "--junitxml=j.xml")
    assert result.ret == 1
    text = (unit.path / "j.xml").read_text(encoding="utf-8")
    assert 'classname="dstfuzz" name="gate"' in text
    assert "no turn was tested" in text


def test_a_baseline_without_a_robustness_test_is_not_compared(unit: pytest.Pytester) -> None:
    assert unit.runpytest_inprocess(*FEW, "--dst-model=mybot:steady", *WRITTEN).ret == 0
    result = unit.runpytest_inprocess(*FEW, WRITTEN[0])
    assert result.ret not in (0, 1)


@pytest.mark.parametrize("line", ["dst_max_failure_rate=5%", "addopts=--dst-max-failure-rate=5%"])
def test_a_limit_of_an_ini_file_does_not_judge_other_tests(
    unit: pytest.Pytester, line: str
) -> None:
    unit.makeini(f"[pytest]\n{line}")
    assert unit.runpytest_inprocess().ret == 0


@pytest.mark.parametrize("words", [("test_unit.py", "--dst-suite=yes"), (".",), ("inner",)])
def test_to_a_folder_it_is_added_and_to_a_file_when_that_is_said(
    unit: pytest.Pytester, words: tuple[str, ...]
) -> None:
    (unit.mkdir("inner") / "test_inner.py").write_text(UNIT, encoding="utf-8")
    result = unit.runpytest_inprocess(*words, "--dst-model=mybot:steady", *FEW)
    result.stdout.fnmatch_lines(["verdict *0 of 4 tested turns break*"])
    assert result.ret == 0


def test_the_testpaths_of_an_ini_file_name_no_file(unit: pytest.Pytester) -> None:
    unit.makeini("[pytest]\ntestpaths = test_unit.py\n")
    result = unit.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    result.assert_outcomes(passed=5)


def test_without_the_suite_a_tracker_of_the_command_line_is_not_tested(
    unit: pytest.Pytester,
) -> None:
    result = unit.runpytest_inprocess("--dst-model=mybot:steady", "--dst-suite=no", *FEW)
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: no turn was tested*"])


# -- ini files ----------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "worker"])
def test_an_ini_file_whose_tracker_is_not_tested_says_so(
    unit: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    unit.makeini(INI)
    result = unit.runpytest_inprocess(*workers)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"{UNTESTED}dst_model (ini) names a tracker*dst_suite = yes*"])


def test_options_without_a_bot_say_so(unit: pytest.Pytester) -> None:
    words = ("--dst-outcome=tool-calls", "--dst-data=sample")
    result = unit.runpytest_inprocess(*words)
    result.assert_outcomes(passed=1)
    line = f"{UNTESTED}no bot is named, only --dst-data, --dst-outcome.*--dst-model=*"
    result.stdout.fnmatch_lines([line])
    for part in (["test_unit.py"], ["-k", "unit"], ["--dst-suite=no"]):
        unit.runpytest_inprocess(*words, *part).stdout.no_fnmatch_line(UNTESTED)
    unit.makepyfile(test_unit="def test_unit(dst_lexicon): pass")
    unit.runpytest_inprocess("--dst-seed=3").stdout.no_fnmatch_line(UNTESTED)


def test_nobody_is_told_who_runs_a_part_or_said_no(unit: pytest.Pytester) -> None:
    unit.makeini(INI)
    for words in (["test_unit.py"], ["-k", "unit"], ["--dst-suite=no"], ["--collect-only"]):
        unit.runpytest_inprocess(*words).stdout.no_fnmatch_line(UNTESTED)


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "worker"])
def test_an_ini_file_may_add_the_suite(unit: pytest.Pytester, workers: tuple[str, ...]) -> None:
    unit.makeini(f"{INI}dst_suite = yes\n")
    result = unit.runpytest_inprocess(*workers)
    result.assert_outcomes(passed=5)
    result.stdout.no_fnmatch_line(UNTESTED)
    # Whoever works on a unit test waits for no tracker.
    unit.runpytest_inprocess("test_unit.py", *workers).assert_outcomes(passed=1)


def test_an_ini_file_that_adds_the_suite_tests_its_tracker_first(unit: pytest.Pytester) -> None:
    unit.makeini(f"{INI}dst_suite = yes\n".replace("steady", "Training"))
    result = unit.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    unit.runpytest_inprocess("-k", "test_unit").assert_outcomes(passed=1, deselected=4)


def test_the_suite_that_is_asked_for_comes_with_a_suite_of_ones_own(
    suite: pytest.Pytester,
) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:steady", "--dst-suite=yes", *FEW)
    result.assert_outcomes(passed=8)


def test_a_value_that_it_does_not_take_is_refused(unit: pytest.Pytester) -> None:
    unit.makeini(f"{INI}dst_suite = always\n")
    result = unit.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "dst_suite (ini)" in result.stderr.str()
    assert "auto, no, yes" in result.stderr.str()


def test_a_test_that_asks_for_the_bot_alone_leaves_the_built_in_suite(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        mybot="def steady(context):\n    return {'hotel-area': 'north'}\n",
        test_promoted="def test_one(dst_model):\n    assert dst_model is not None\n",
    )
    options = ("--dst-model=mybot:steady", "--dst-turns=4", "--dst-variants=2")
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=5)
    result.stdout.no_fnmatch_line("*the built-in suite does not run*")
    pytester.makepyfile(test_own="def test_own(dst_turn):\n    dst_turn.assert_unchanged()\n")
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["dstfuzz: the built-in suite does not run*test_own.py::test_own*"])
    result = pytester.runpytest_inprocess(*options, "--dst-suite=yes")
    result.assert_outcomes(passed=9)


def write_talks(unit: pytest.Pytester) -> None:
    """Write dialogues of two turns, and a bot that edits of the first turn break in both."""
    users = ["I want the north please", "and something cheap"]
    talks = [{"dialogue_id": f"d{n}", "users": users} for n in range(4)]
    unit.path.joinpath("d.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    unit.makepyfile(
        keen="def track(context):\n    text = ' '.join(context.user_utterances)\n"
        "    return {'area': 'north'} if 'the north please' in text else {}\n"
    )


@pytest.mark.parametrize("selected", ["t1", "t0 or t1"])
def test_a_gate_does_not_pass_if_the_turns_that_made_the_mistakes_are_not_tested(
    unit: pytest.Pytester, selected: str
) -> None:
    write_talks(unit)
    result = unit.runpytest_inprocess(
        "--dst-model=keen:track", "--dst-data=d.jsonl", "--dst-max-failure-rate=100%",
        "--dst-search=random", "--dst-variants=4", "-k", selected,
    )  # fmt: skip
    text = result.stdout.str()
    assert ("variants count as carried" in text) == (selected == "t1")
    assert (result.ret != 0) == (selected == "t1")


@pytest.mark.parametrize(("first", "counted"), [("variants=2", True), ("edits='word_drop'", False)])
def test_mistakes_count_at_earlier_turns_that_are_tested_in_the_same_way(
    unit: pytest.Pytester, first: str, counted: bool
) -> None:
    write_talks(unit)
    unit.makepyfile(
        test_turns="import pytest\n"
        f"@pytest.mark.dst({first})\n"
        "def test_first(dst_turn):\n"
        "    if dst_turn.turn.index: pytest.skip('tested below')\n"
        "    dst_turn.assert_unchanged()\n"
        "def test_second(dst_turn):\n"
        "    if not dst_turn.turn.index: pytest.skip('tested above')\n"
        "    dst_turn.assert_unchanged()\n",
    )
    result = unit.runpytest_inprocess(
        "--dst-model=keen:track", "--dst-data=d.jsonl", "--dst-max-failure-rate=100%",
        "--dst-search=random", "--dst-variants=4",
    )  # fmt: skip
    assert ("variants count as carried" in result.stdout.str()) != counted
