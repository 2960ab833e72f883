"""The fixture ``dst_game``: bounds that hold or fail, bad games, workers, what a session tells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# Loaded before any inner run: such a run forgets the modules that it was the first to load, and
# the classes of selections must not be there twice.
import pytest_dstfuzz.games.fixture  # noqa: F401

EXAMPLE = Path(__file__).parents[2] / "examples" / "refund_bot"
SUITE = """
import pytest
from refund_bot import RefundBot, TiredRefundBot
from pytest_dstfuzz.games import GoalSelection, RefundGame

FEW = dict(games=20, budget=300)

@pytest.mark.parametrize("kind", [RefundBot, TiredRefundBot])
def test_bound(dst_game, kind):
    dst_game.play(kind(), RefundGame(), **FEW).assert_advantage_below(0)

def test_memory(dst_game, tmp_path):
    path, game = tmp_path / "games.json", RefundGame()
    report = dst_game.play(TiredRefundBot(), game, adversaries=["climb"], **FEW)
    report.remember(path)
    assert all(one.still_won for one in dst_game.replay(TiredRefundBot(), game, path))
    dst_game.replay(RefundBot(), game, path)

def test_bad(dst_game):
    class Silent(RefundBot):
        def reply(self, history):
            return ""
    dst_game.play(Silent(), RefundGame(), **FEW)
"""


def told(pytester: pytest.Pytester, *options: str) -> tuple[pytest.RunResult, str]:
    pytester.makepyfile(
        refund_bot=(EXAMPLE / "refund_bot.py").read_text(encoding="utf-8"), test_shop=SUITE
    )
    found = pytester.runpytest_inprocess("-q", *options)
    text = found.stdout.str()
    return found, text[text.index("dstfuzz games ") :].partition("= short test summary")[0]


def test_games_are_played_judged_and_told(pytester: pytest.Pytester) -> None:
    found, alone = told(pytester)
    found.assert_outcomes(passed=1, failed=3)
    found.stdout.fnmatch_lines(
        [
            "*AssertionError: the advantage is not below 0: *climb 10.00*",
            "*contains no game of the agent 'RefundBot' in 'refund'",
            "*the agent 'Silent', in scenario 'order-0000', returned an empty utterance: *",
        ]
    )
    assert "Traceback" not in found.stdout.str()
    assert alone.count(" games against each adversary, budget 300, seed 0") == 3
    assert "decided by 'all of my', said 3 times" in alone
    # Workers end in any order, and what is told is the same, byte by byte.
    pytest.importorskip("xdist")
    workers, together = told(pytester, "-n2")
    workers.assert_outcomes(passed=1, failed=3)
    rules = re.compile("^=+|=+$", re.MULTILINE)
    assert rules.sub("", together) == rules.sub("", alone)


def test_the_seed_of_the_session_is_that_of_the_games(pytester: pytest.Pytester) -> None:
    _, first = told(pytester, "--dst-seed=5", "-k", "RefundBot")
    assert "budget 300, seed 5" in first
