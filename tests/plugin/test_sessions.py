"""What the tests of one session share, and what they must not."""

from __future__ import annotations

import gc
import json
import os
from typing import Any

import pytest

FEW = ("--dst-turns=4", "--dst-variants=2", "--dst-report=out.json")
TEST = "def {name}(dst_turn):\n    dst_turn.assert_unchanged()\n"
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
#: Two trackers of one class, one after the other, of which the first changes its mind.
TWO = """
import pytest

class Bot:
    def __init__(self, version):
        self.version = version
    def __call__(self, context):
        return {"hotel-name": context.user if self.version == "old" else "el shaddai"}

"""
SESSION_PARAMS = (
    TWO
    + """
@pytest.fixture(scope="session", params=["old", "new"])
def dst_model(request):
    return Bot(request.param)

@pytest.mark.parametrize("other", [1, 2])
def test_state(dst_turn, other):
    dst_turn.assert_unchanged()

@pytest.mark.dst(variants=2)
def test_again(dst_turn):
    dst_turn.assert_unchanged()
"""
)
NEEDED_PARAMS = (
    TWO
    + """
@pytest.fixture(scope="session", params=["old", "new"])
def version(request):
    return request.param

@pytest.fixture(scope="session")
def dst_model(version):
    return Bot(version)

def test_state(dst_turn):
    dst_turn.assert_unchanged()
"""
)
MARKED = (
    TWO
    + """
BOTS = pytest.mark.parametrize("dst_model", [Bot("old"), Bot("new")])

@BOTS
def test_state(dst_turn):
    dst_turn.assert_unchanged()

@BOTS
def test_again(dst_turn):
    dst_turn.assert_unchanged()
"""
)
#: A fixture that makes another tracker, or other words, for each test.
ANEW = {
    "dst_model": """
import pytest
from mybot import Stateful

@pytest.fixture
def dst_model():
    return Stateful()
""",
    "dst_lexicon": """
import pytest
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

class Zebras:
    name = "zebras"
    def synonyms(self, word, pos=None):
        return ("zebra",)

@pytest.fixture
def dst_lexicon():
    return load_lexicon().with_sources(synonyms=Zebras())
""",
}


def read(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))


@WORKERS
@pytest.mark.parametrize("tests", [SESSION_PARAMS, NEEDED_PARAMS, MARKED])
def test_two_trackers_of_one_class_are_two(
    bot: pytest.Pytester, tests: str, workers: tuple[str, ...]
) -> None:
    bot.makepyfile(test_two=tests)
    bot.runpytest_inprocess(*FEW, "--dst-fail-on=gate", *workers)
    found = [one["summary"] for one in read(bot)["models"]]
    # Each turn counts once a tracker, however many tests ask for it.
    broken = sorted((summary["turns"], summary["turns_broken"]) for summary in found)
    assert broken == [(4, 0), (4, 4)]


def test_settings_of_markers_are_told_apart_and_told(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "import pytest\n"
        + TEST.format(name="test_a")
        + "@pytest.mark.dst(transformations=2, edits='char_drop')\n"
        + TEST.format(name="test_b")
        + "@pytest.mark.dst(lock=['a', 'b'])\n"
        + TEST.format(name="test_c")
    )
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", "-v", *FEW)
    report = read(bot)
    assert report["summary"]["turns"] == 12
    note = (
        "settings of tests by markers: lock=['a', 'b']; or transformations=2, edits=['char_drop']"
    )
    assert note in report["run"]["notes"]
    assert note in " ".join(result.stdout.str().split())


def test_two_searches_are_two(suite: pytest.Pytester) -> None:
    other = suite.mkdir("other")
    fixture = "import pytest\n@pytest.fixture(scope='session')\ndef dst_search(): return 'random'\n"
    (other / "test_other.py").write_text(fixture + TEST.format(name="test_other"))
    suite.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    assert read(suite)["summary"]["turns"] == 8


def test_the_fixture_dst_report_is_filled_in_a_worker_too(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        TEST.format(name="test_state")
        + "def test_z_report(dst_report):\n"
        + "    assert len(dst_report.results) == dst_report.summary.turns == 4\n"
    )
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW, "-n", "1")
    result.assert_outcomes(passed=5)
    assert read(bot)["summary"]["turns"] == 4


def test_a_policy_that_was_given_holds_for_marked_tests(bot: pytest.Pytester) -> None:
    bot.makepyfile("import pytest\n@pytest.mark.dst(variants=2)\n" + TEST.format(name="test_state"))
    options = ("--dst-fail-on=violation", "--dst-max-failure-rate=100%")
    result = bot.runpytest_inprocess("--dst-model=mybot:fragile", *FEW, *options)
    result.assert_outcomes(failed=4)


@WORKERS
@pytest.mark.parametrize("fixture", ANEW)
def test_what_is_made_anew_for_each_test_is_refused(
    bot: pytest.Pytester, fixture: str, workers: tuple[str, ...]
) -> None:
    bot.makepyfile(test_mine=ANEW[fixture] + TEST.format(name="test_state"))
    model = () if fixture == "dst_model" else ("--dst-model=mybot:steady",)
    result = bot.runpytest_inprocess(*FEW, "--dst-turns=12", *model, *workers)
    assert result.ret == 4
    result.stdout.fnmatch_lines(
        [f"*fixture {fixture} has the scope 'function'*Make it session-scoped*"]
    )
    assert "Traceback" not in result.stdout.str()
    assert not (bot.path / "out.json").exists()


def test_one_tracker_may_come_from_a_fixture_of_any_scope(bot: pytest.Pytester) -> None:
    fixture = "import pytest, mybot\n@pytest.fixture\ndef dst_model(): return mybot.steady\n"
    bot.makepyfile(test_mine=fixture + TEST.format(name="test_state"))
    bot.runpytest_inprocess(*FEW).assert_outcomes(passed=4)


#: A fixture of two modules -> whether all its objects are one bot.
OF_MODULES = {
    "request.module.bot": False,
    "mybot.Stateful()": False,
    "mybot.steady": True,
    "{'a': mybot.steady}['a']": True,
}


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist=loadfile")], ids=["alone", "workers"])
@pytest.mark.parametrize("value", OF_MODULES)
def test_two_bots_of_one_fixture_are_refused(
    bot: pytest.Pytester, value: str, workers: tuple[str, ...]
) -> None:
    bot.makeconftest(
        "import pytest, mybot\n@pytest.fixture(scope='module')\n"
        f"def dst_model(request): return {value}\n"
    )
    for name, kind in (("a", "steady"), ("b", "fragile")):
        test = TEST.format(name="test_state")
        own = f"import mybot\ndef bot(context): return mybot.{kind}(context)\n"
        bot.makepyfile(**{f"test_{name}": own + test})
    result = bot.runpytest_inprocess(*FEW, *workers)
    if OF_MODULES[value]:
        result.assert_outcomes(passed=8)
    else:
        assert result.ret == 4
        printed = result.stdout.str() + result.stderr.str()
        assert "dst_model has the scope 'module'" in printed
        assert "session-scoped" in printed
        assert not (bot.path / "out.json").exists()


def test_two_trackers_share_one_budget(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_two=SESSION_PARAMS)
    result = bot.runpytest_inprocess(*FEW, "--dst-fail-on=gate", "--dst-max-calls=26")
    assert result.parseoutcomes()["skipped"] >= 3
    assert 0 < sum(one["summary"]["calls"] for one in read(bot)["models"]) <= 26


@WORKERS
def test_an_ini_file_that_names_a_tracker_leaves_other_tests_alone(
    bot: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    bot.makeini("[pytest]\ndst_model = nowhere:at_all\n")
    bot.makepyfile(test_other="def test_other(): pass")
    result = bot.runpytest_inprocess("test_other.py::test_other", *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("dstfuzz*")


def test_an_ini_file_that_names_a_tracker_leaves_selected_tests_alone(
    suite: pytest.Pytester,
) -> None:
    suite.makeini("[pytest]\ndst_model = nowhere:at_all\n")
    suite.makepyfile(test_other="def test_other(): pass")
    result = suite.runpytest_inprocess("-k", "test_other")
    assert result.ret == 0
    assert suite.runpytest_inprocess("-k", "neither").ret == 5


@WORKERS
def test_an_ini_file_names_the_tracker_of_a_suite(
    suite: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    suite.makeini("[pytest]\ndst_model = mybot:fragile\n")
    result = suite.runpytest_inprocess(*FEW, *workers)
    result.assert_outcomes(failed=4)
    assert result.ret == 1
    assert "verdict       failed: 4 of 4 tested turns break" in result.stdout.str()


@WORKERS
def test_the_tracker_of_an_ini_file_is_tested_first(
    suite: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    suite.makeini("[pytest]\ndst_model = mybot:Training\n")
    result = suite.runpytest_inprocess(*FEW, *workers)
    assert result.ret == 4
    # With workers they are the first to know that the tracker is going to be tested.
    shown = result.stdout if workers else result.stderr
    shown.fnmatch_lines(["*the tracker is in training mode*"])
    if not workers:
        assert "passed" not in result.stdout.str()


def test_a_run_that_was_cut_says_so(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--dst-model=mybot:fragile", "-x", *FEW)
    assert result.ret == 1
    line = "3 selected turns have no result (stopping after 1 failures)"
    result.stdout.fnmatch_lines([line, "ended early   stopping after 1 failures"])
    report = read(suite)
    assert report["data"]["ended"] == "stopping after 1 failures"
    assert len(report["turns"]) == 1


def test_a_run_that_was_cut_says_so_with_workers_too(suite: pytest.Pytester) -> None:
    options = ("-x", "-n", "2", "--dst-turns=40", "--dst-report=out.json")
    result = suite.runpytest_inprocess("--dst-model=mybot:fragile", *options)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["* selected turn* no result (stopping after *"])
    assert read(suite)["data"]["ended"].startswith("stopping after ")


def test_a_run_whose_worker_crashed_says_so(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "import os\n"
        "def test_state(dst_turn):\n"
        "    dst_turn.assert_unchanged()\n"
        "    if dst_turn.turn.index == 2:\n"
        "        os._exit(1)\n"
    )
    options = ("-n", "1", "--max-worker-restart=0", "--dst-turns=6", "--dst-report=out.json")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *options)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["* selected turn* no result (*"])
    assert read(bot)["data"]["ended"] != ""


def test_a_test_that_asks_for_no_result_cuts_nothing(bot: pytest.Pytester) -> None:
    bot.makepyfile("def test_state(dst_turn):\n    assert dst_turn.turn.index or dst_turn.result\n")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *FEW)
    assert result.ret == 0
    report = read(bot)
    left = 4 - len(report["turns"])
    assert left
    result.stdout.fnmatch_lines([f"{left} selected turn* no result"])
    assert report["data"]["ended"] == ""


FORKING = '''
import json, os
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run each test in a process of its own, as some plugins do."""
    hook, config = item.config.hook, item.config
    read, write = os.pipe()
    child = os.fork()
    if not child:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        plain = [hook.pytest_report_to_serializable(config=config, report=one) for one in reports]
        with os.fdopen(write, "wb") as file:
            file.write(json.dumps(plain).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        plain = json.loads(file.read())
    os.waitpid(child, 0)
    for one in plain:
        report = hook.pytest_report_from_serializable(config=config, data=one)
        item.ihook.pytest_runtest_logreport(report=report)
    return True
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_results_come_home_from_a_process_for_each_test(bot: pytest.Pytester) -> None:
    options = ("--dst-model=mybot:fragile", "--dst-turns=4", "--dst-fail-on=gate", "-q")
    summaries = []
    for name, conftest in (("one", ""), ("forked", FORKING)):
        bot.makeconftest(conftest)
        bot.runpytest_subprocess(*options, f"--dst-report={name}.json")
        report = json.loads((bot.path / f"{name}.json").read_text(encoding="utf-8"))
        summaries.append(report["summary"])
    assert summaries[0] == summaries[1]
    assert summaries[0]["turns"] == 4


def test_what_a_run_freezes_thaws_at_its_end(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        test_mine="""
        import gc

        def test_state(dst_turn):
            assert gc.get_freeze_count() > 1_000
        """
    )
    frozen = gc.get_freeze_count()
    # The conftest of these tests counts once.
    count = getattr(gc.get_freeze_count, "__wrapped__", gc.get_freeze_count)
    monkeypatch.setattr(gc, "get_freeze_count", count)
    gc.unfreeze()  # The conftest of these tests freezes what it has loaded.
    try:
        result = suite.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=1")
        result.assert_outcomes(passed=1)
        assert gc.get_freeze_count() == 0
    finally:
        if frozen:
            gc.freeze()
