"""Answers that cannot be read, as language models write them now and then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Exchange, Turn
from pytest_dstfuzz.errors import MalformedAnswerError, UserError
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.trackers.calls import as_caller
from pytest_dstfuzz.trackers.tracker import BatchInterrupt, Prediction
from pytest_dstfuzz.trackers.validation import ask_malformed_again, preflight

WHOLE, HALF = '{"people": 2}', '{"people": 2'
CONTEXTS = [Context((Exchange("", f"a table for {n}"),)) for n in ("two", "six", "ten")]
TALKS = [
    Dialogue(f"d{n}", (Turn(0, "", f"could you book a table near the {n} please", None),))
    for n in ("station", "market", "river")
]


@dataclass
class Bot:
    """Writes half of the arguments at each call whose number is a multiple of ``every``."""

    every: int
    asked: int = 0

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        assert messages[-1]["role"] == "user"
        self.asked += 1
        text = HALF if self.asked % self.every == 0 else WHOLE
        call = {"function": {"name": "book_table", "arguments": text}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_a_malformed_answer_is_asked_for_again_and_counted() -> None:
    bot = Bot(every=2)
    tracker = as_caller(bot)
    asked = ask_malformed_again(tracker, CONTEXTS, tracker.predict(CONTEXTS))
    assert all(isinstance(answer, Prediction) for answer in asked.answers)
    assert asked.malformed == [0, 2, 0]
    assert bot.asked == 5


def test_what_stays_malformed_stands_in_the_place_of_its_answer() -> None:
    bot = Bot(every=1)
    tracker = as_caller(bot)
    asked = ask_malformed_again(tracker, CONTEXTS[:1], tracker.predict(CONTEXTS[:1]), retries=2)
    assert isinstance(asked.answers[0], MalformedAnswerError)
    assert (asked.malformed, bot.asked) == ([3], 3)


def test_an_interrupt_keeps_what_could_be_read() -> None:
    class Stopped:
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            assert list(contexts) == CONTEXTS[1:]
            raise BatchInterrupt({0: {"size": "late"}})

    given = [{"size": "one"}, MalformedAnswerError("no"), MalformedAnswerError("no")]
    with pytest.raises(BatchInterrupt) as stopped:
        ask_malformed_again(Stopped(), CONTEXTS, given)  # type: ignore[arg-type]
    assert stopped.value.answers == {0: {"size": "one"}, 1: {"size": "late"}}


@pytest.mark.parametrize("every", [2, 3, 7, 12])
def test_a_malformed_answer_before_a_run_does_not_refuse_it(every: int) -> None:
    assert preflight(as_caller(Bot(every)), CONTEXTS, repeatable=False, outcome="tool-calls")


def test_an_assistant_that_writes_nothing_else_is_refused() -> None:
    with pytest.raises(UserError, match="not valid JSON"):
        preflight(as_caller(Bot(1)), CONTEXTS, repeatable=False, outcome="tool-calls")


def run(bot: Bot) -> tuple[Campaign, list[Any]]:
    tool = Tool("book_table", "Book a table.")
    talks = [Dialogue(one.id, one.turns, (tool,)) for one in TALKS]
    settings = Settings.of(outcome="tool-calls", repeatable=False, variants=3, validity="strict")
    campaign = Campaign(bot, talks, settings)
    return campaign, list(campaign)


def test_a_run_goes_on_and_says_how_many_answers_could_not_be_read() -> None:
    campaign, turns = run(Bot(every=7))
    summary = campaign.summary()
    assert summary.errors == 0
    assert summary.malformed == sum(turn.malformed for turn in turns) > 0
    report = build_report(turns, campaign.settings, RunInfo.of(campaign.data))
    assert report["summary"]["malformed"] == summary.malformed
    told = [turn.get("malformed", 0) for turn in report["turns"]]
    assert sum(told) == summary.malformed
