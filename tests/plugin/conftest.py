"""Trackers to test with, as a user would write them, and runs of pytest in this process."""

from __future__ import annotations

import pytest

# Loaded before any inner run: such a run forgets the modules that it was the first to
# load, and numpy must not be loaded twice.
import pytest_dstfuzz.plugin.hooks  # noqa: F401 - see above

TRACKERS = '''
"""Trackers with one property each."""
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.trackers.tracker import Prediction

def steady(context):
    return {"hotel-area": "north"}

def fragile(context):
    """Changes with every edit of the newest utterance."""
    return {"hotel-name": context.user}

def second_turn_fails(context):
    if len(context.exchanges) == 2:
        raise RuntimeError("no second turn please")
    return {"hotel-area": "north"}

class Stateful:
    def reset(self):
        self.state = {}
    def update(self, system, user):
        self.state["hotel-name"] = user
        return self.state

class NeedsArguments:
    def __init__(self, path):
        self.path = path

class Predicts:
    def predict(self, contexts):
        return [self.one(context) for context in contexts]

class Interrupting(Predicts):
    """As if Ctrl-C was hit after 150 contexts."""
    asked = 0
    def one(self, context):
        self.asked += 1
        if self.asked == 150:
            raise KeyboardInterrupt
        return Prediction(BeliefState({"hotel-name": context.user}))

class Short(Predicts):
    def predict(self, contexts):
        return []

class Wrong(Predicts):
    def one(self, context):
        return "north"

class NotANumber(Predicts):
    def one(self, context):
        return Prediction(BeliefState({"hotel-area": "north"}), {"hotel-area": float("nan")})

class UnknownSlot(Predicts):
    def one(self, context):
        return Prediction(BeliefState({"hotel-aera": "north"}))

class Raising(Predicts):
    def one(self, context):
        raise ZeroDivisionError("nothing works")

class Training(Predicts):
    training = True

class Random(Predicts):
    number = 0
    def one(self, context):
        Random.number += 1
        return Prediction(BeliefState({"hotel-area": str(Random.number)}))

class SeesTheBatch(Predicts):
    def predict(self, contexts):
        return [Prediction(BeliefState({"hotel-area": str(len(contexts))})) for _ in contexts]

nothing = 3
'''

SUITE = """
def test_state(dst_turn):
    dst_turn.assert_unchanged()
"""


@pytest.fixture
def bot(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the trackers above in ``mybot.py``, and no test."""
    pytester.makepyfile(mybot=TRACKERS)
    return pytester


@pytest.fixture
def suite(bot: pytest.Pytester) -> pytest.Pytester:
    """The same with a robustness test of three lines."""
    bot.makepyfile(test_mine=SUITE)
    return bot
