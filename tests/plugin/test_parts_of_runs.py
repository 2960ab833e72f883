"""One part of the dialogues, ``--dst-shard``: all that fails any run fails a part, too."""

from __future__ import annotations

import pytest

HALF = "--dst-shard=1/2"
#: Some shares of the sample are empty.
MANY = 400


def run(bot: pytest.Pytester, *options: str) -> pytest.RunResult:
    return bot.runpytest_inprocess("--dst-variants=1", *options)


def test_a_part_that_holds_passes(bot: pytest.Pytester) -> None:
    done = run(bot, "--dst-model=mybot:steady", "--dst-turns=12", HALF)
    assert done.ret == 0
    assert 0 < done.parseoutcomes()["passed"] < 12


@pytest.mark.parametrize("number", range(1, 4))
def test_a_part_without_dialogues_passes(bot: pytest.Pytester, number: int) -> None:
    done = run(bot, "--dst-model=mybot:steady", "--dst-turns=1", f"--dst-shard={number}/{MANY}")
    assert "passed" not in done.parseoutcomes()
    assert done.ret == 0


def test_a_part_whose_tests_are_all_skipped_fails(bot: pytest.Pytester) -> None:
    bot.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.skip)\n"
    )
    done = run(bot, "--dst-model=mybot:steady", "--dst-turns=12", HALF)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["failed: no turn was tested*"])


def test_a_part_whose_tests_are_all_deselected_fails(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_other="def test_other(): pass")
    done = run(bot, "--dst-model=mybot:steady", "--dst-turns=12", HALF, "-k", "test_other")
    assert done.ret == 1


def test_a_part_on_which_the_tracker_fails_passes_no_gate(bot: pytest.Pytester) -> None:
    done = run(
        bot, "--dst-model=mybot:second_turn_fails", "--dst-turns=20", HALF, "--dst-fail-on=gate"
    )
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*the tracker failed on * turns, more than 5 %*"])


def test_a_part_with_constant_answers_fails(bot: pytest.Pytester) -> None:
    done = run(bot, "--dst-model=mybot:steady", "--dst-turns=120", HALF)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["failed: the clean answers to all * turns are the same*"])
