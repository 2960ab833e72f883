"""Async functions of each kind: as many calls at once as the settings say, and equal reports."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.report.json_report import RunInfo, build_report

ASKED = ("could you book a table near the {} please", "is there a garden near the {} as well")
TALKS = [
    Dialogue(
        place,
        tuple(
            Turn(n, "Anything else?" if n else "", text.format(place), BeliefState({}))
            for n, text in enumerate(ASKED)
        ),
        (Tool("book_table", "Book a table."),),
    )
    for place in ("station", "market", "river")
]
#: Kind of answer, and the history that the bot gets.
DOORS = [
    ("state", "recorded"),
    ("reply", "recorded"),
    ("reply", "own"),
    ("tool-calls", "recorded"),
    ("tool-calls", "own"),
]


@dataclass
class Answers:
    """Answers by the letters of the last utterance; raises on some rewritten ones if ``fails``."""

    kind: str
    fails: bool = False
    now: int = 0
    most: int = 0
    clean: set[str] = field(
        default_factory=lambda: {turn.user for talk in TALKS for turn in talk.turns}
    )

    def to(self, text: str) -> Any:
        number = zlib.crc32(text.encode()) % 3
        if self.fails and number == 0 and text not in self.clean:
            raise ValueError("no such place")
        if self.kind == "state":
            return {"hotel-area": ("north", "south", "west")[number]}
        if self.kind == "reply":
            return f"There are {number} rooms."
        call = {"name": "book_table", "arguments": json.dumps({"people": number})}
        # The answer to a result of a call is a text.
        return {"role": "assistant", "content": None, "tool_calls": [{"function": call}]}

    def to_messages(self, messages: list[dict[str, Any]]) -> Any:
        last = messages[-1]
        return self.to(last["content"]) if last["role"] == "user" else "It is booked."

    async def counted(self, answer: Any, asked: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return answer(asked)


def bot_of(answers: Answers, is_async: bool) -> Any:
    async def track(context: Any) -> Any:
        return await answers.counted(answers.to, context.user)

    async def answer(messages: Any) -> Any:
        return await answers.counted(answers.to_messages, messages)

    if answers.kind == "state":
        return track if is_async else lambda context: answers.to(context.user)
    return answer if is_async else answers.to_messages


def report_of(
    answers: Answers, history: str, *, is_async: bool = True, concurrency: int | None = None
) -> dict[str, Any]:
    options: dict[str, Any] = {"variants": 4, "outcome": answers.kind}
    if answers.kind != "state":
        options["history"] = history
    if concurrency is not None:
        options["tracker"] = [f"concurrency={concurrency}"]
    campaign = Campaign(bot_of(answers, is_async), TALKS, Settings.of(**options))
    report = build_report(list(campaign), campaign.settings, RunInfo.of(campaign.data))
    # It names the setting itself.
    del report["run"]["concurrency"]
    return report


@pytest.mark.parametrize(("kind", "history"), DOORS)
def test_as_many_calls_run_at_once_as_the_settings_say(kind: str, history: str) -> None:
    expected = report_of(Answers(kind), history, is_async=False)
    for concurrency in (1, 3, None):
        answers = Answers(kind)
        found = report_of(answers, history, concurrency=concurrency)
        assert json.dumps(found) == json.dumps(expected)
        if concurrency is None:
            assert 3 < answers.most <= 16
        else:
            assert answers.most == concurrency


@pytest.mark.parametrize(("kind", "history"), DOORS)
def test_a_call_that_raises_fails_its_variant_alone(kind: str, history: str) -> None:
    plain, concurrent = (
        report_of(Answers(kind, fails=True), history, is_async=is_async)
        for is_async in (False, True)
    )
    assert json.dumps(plain) == json.dumps(concurrent)
    summary = plain["summary"]
    assert 0 < summary["errors"] < summary["calls"]
