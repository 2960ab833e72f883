"""Full rollouts: the assistant's own messages in the history, stubs for tools, end states."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import (
    Tool,
    ToolCall,
    calls_outcome,
    canonical,
    transcript_json,
    transcript_of_json,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.dialogue.sampling import end_state, roll_out
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.rolling import MOST_STEPS, NOT_RECORDED
from pytest_dstfuzz.trackers.tracker import Prediction, notes_of

FIND = Tool("find", "Finds a room.", '{"properties": {"view": {"default": "any"}}}', read_only=True)
BOOK = Tool("book", "Books a room.")
FOUND = ToolCall("find", {"city": "Oak Bay"})
BOOKED = ToolCall("book", {"room": "A1", "nights": 2})


def recorded(*calls: tuple[ToolCall, str], said: str) -> tuple[str, ...]:
    """Return the messages of one answer: each call with its result, then a text."""
    block: list[dict[str, Any]] = []
    for number, (call, result) in enumerate(calls):
        function = {"name": call.name, "arguments": canonical(dict(call.arguments))}
        name = f"id_{call.name}_{number}"
        block += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": name, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": name, "content": result},
        ]
    return tuple(map(canonical, [*block, {"role": "assistant", "content": said}]))


FIRST = recorded((FOUND, '{"room": "A1"}'), said="There is A1.")
SECOND = recorded((BOOKED, '{"done": true}'), said="Booked.")
TALK = Dialogue(
    "a",
    (
        Turn(0, "", "a room in Oak Bay with a view of the water", calls=calls_outcome([FOUND])),
        Turn(1, "There is A1.", "take it for 2 nights then", None, None, FIRST, end_state([], ())),
        Turn(2, "Booked.", "many thanks for your help", recorded=SECOND, calls=calls_outcome([])),
    ),
    (FIND, BOOK),
    recorded(said="Goodbye."),
)
DATA = DialogueSet("rooms", "test", (TALK,))
Messages = Sequence[Mapping[str, Any]]


class Clerk:
    """Looks a room up, books what came back, and notes down what it is given."""

    def __init__(self, find: ToolCall = FOUND) -> None:
        self.find = find
        self.asked: list[list[Mapping[str, Any]]] = []

    def __call__(self, messages: Messages, tools: Messages) -> object:
        """Answer the newest message."""
        assert [tool["function"]["name"] for tool in tools] == ["find", "book"]
        self.asked.append(list(messages))
        last = messages[-1]
        if last["role"] == "tool":
            return f"I got {last['content']}"
        said = sum(message["role"] == "user" for message in messages)
        if said == 1:
            return [self.find]
        if said == 2:
            rooms = [json.loads(m["content"]).get("room") for m in messages if m["role"] == "tool"]
            return [ToolCall("book", {"room": rooms[-1], "nights": 2})]
        return "You are welcome."


def rolled(assistant: object, turn: int = 2, data: DialogueSet = DATA) -> object:
    tracker = as_tracker(assistant, outcome="tool-calls", history="own")
    (answer,) = tracker.predict([roll_out(data).dialogues[0].context(turn)])
    return answer


def test_the_end_state_is_that_of_all_steps_and_reading_has_no_effect() -> None:
    clerk = Clerk()
    answer = rolled(clerk)
    assert getattr(answer, "state", None) == calls_outcome([BOOKED])
    roles = [message["role"] for message in clerk.asked[-1]]
    step = ["user", "assistant", "tool", "assistant"]
    assert roles == [*step, *step, "user"]
    calls, result = clerk.asked[-1][1:3]
    assert result["content"] == '{"room": "A1"}'
    assert result["tool_call_id"] == calls["tool_calls"][0]["id"]
    assert clerk.asked[-1][3]["content"] == 'I got {"room": "A1"}'


def test_what_a_rollout_needs_is_kept_with_a_violation() -> None:
    kept = roll_out(DATA).dialogues[0].context(1).transcript
    assert kept is not None
    assert transcript_of_json(transcript_json(kept)) == kept


def test_labels_are_the_end_states_of_the_recording() -> None:
    turns = roll_out(DATA).dialogues[0].turns
    booked = calls_outcome([BOOKED])
    assert [turn.calls for turn in turns] == [{}, booked, booked]
    assert roll_out(roll_out(DATA)) == roll_out(DATA)


def test_an_id_that_is_used_again_is_that_of_the_call_before_the_result() -> None:
    told = recorded((FOUND, "ref77"), (BOOKED, "ok"), said="Done.")
    block = (m.replace("id_find_0", "call_0").replace("id_book_1", "call_0") for m in told)
    talk = replace(TALK, closing=tuple(block))
    (dialogue,) = roll_out(replace(DATA, dialogues=(talk,))).dialogues
    assert [result for _, result in dialogue.results[-2:]] == ["ref77", "ok"]


def test_a_call_that_is_made_again_in_another_spelling_counts_once() -> None:
    again = ToolCall("book", {"room": " a1", "nights": "2", "late": None})
    assert end_state([BOOKED, again], (FIND, BOOK)) == calls_outcome([BOOKED])
    more = ToolCall("book", {"room": "A1", "nights": 3})
    assert end_state([BOOKED, more, again], (FIND, BOOK)) == calls_outcome([BOOKED, more])
    look = FIND._replace(read_only=False)
    anyhow = ToolCall("find", {"city": "oak bay", "view": "any"})
    assert end_state([FOUND, anyhow], (look,)) == calls_outcome([FOUND])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("find", {"city": " oak bay", "view": "Any", "stars": None}), '{"room": "A1"}'),
        (ToolCall("find", {"city": "Elm Hill"}), NOT_RECORDED),
        (ToolCall("look", {"city": "Oak Bay"}), NOT_RECORDED),
    ],
)
def test_a_call_returns_what_was_recorded_for_the_same_arguments(call: ToolCall, told: str) -> None:
    clerk = Clerk(call)
    rolled(clerk, 0)
    assert clerk.asked[-1][-1]["content"] == told


def test_one_that_never_speaks_is_stopped_and_identical_calls_count_once() -> None:
    asked = []

    def restless(messages: Messages) -> object:
        asked.append(messages)
        return [BOOKED]

    answer = rolled(restless, 0)
    assert len(asked) == MOST_STEPS
    assert getattr(answer, "state", None) == calls_outcome([BOOKED])


def test_beginnings_are_shared() -> None:
    clerk = Clerk()
    tracker = as_tracker(clerk, outcome="tool-calls", history="own")
    dialogue = roll_out(DATA).dialogues[0]
    contexts = [dialogue.context(turn) for turn in range(3)]
    first = tracker.predict([*contexts, contexts[2].saying("thx !"), contexts[2].again(1)])
    # Two for each of the first utterances, one for each end; a repetition begins anew.
    assert len(clerk.asked) == 2 + 2 + 1 + 1 + 5
    assert tracker.predict(contexts)[2] == first[2]
    assert any("end state" in note for note in notes_of(tracker))


class Failing:
    """Answers the first utterance of a dialogue alone."""

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        """Return a text, or why there is none."""
        none = calls_outcome([])
        answer = Prediction(none, reply="Yes?", calls=none)
        return [
            answer if len(context.exchanges) == 1 else TrackerError("too long")
            for context in contexts
        ]


def test_failures_are_told_with_where_they_were() -> None:
    assert str(rolled(Failing(), 1)) == "too long"
    assert str(rolled(Failing(), 2)) == "no answer to the earlier utterance 2: too long"


class Stammering(Clerk):
    """Writes arguments that are no JSON where the first utterance is not as it was recorded."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def __call__(self, messages: Messages, tools: Messages) -> object:
        """Answer the newest message, the first ``times`` times not so that it can be read."""
        answer = super().__call__(messages, tools)
        first = next(message["content"] for message in messages if message["role"] == "user")
        if isinstance(answer, list) and first != TALK.turns[0].user and self.left:
            self.left -= 1
            function = {"name": answer[0].name, "arguments": '{"room": '}
            calls = [{"id": "x", "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        return answer


@pytest.mark.parametrize(("times", "outcomes"), [(2, {"held"}), (10_000, {"error"})])
def test_a_malformed_answer_is_asked_for_again_and_counted(times: int, outcomes: set[str]) -> None:
    """Whether the utterance is the last one of a context or stands before it."""
    settings = Settings.of(
        outcome="tool-calls",
        history="own",
        turns="all",
        variants=1,
        attack="cumulative",
        repeatable=True,
    )
    found = list(Campaign(Stammering(times), DATA, settings))
    assert {one.outcome for turn in found for one in turn.variants} == outcomes
    assert all(turn.malformed for turn in found)


class Forgetful(Clerk):
    """Books a night more where the first utterance is not as it was recorded."""

    def __call__(self, messages: Messages, tools: Messages) -> object:
        """Answer the newest message."""
        answer = super().__call__(messages, tools)
        first = next(message["content"] for message in messages if message["role"] == "user")
        if isinstance(answer, list) and answer[0].name == "book" and first != TALK.turns[0].user:
            return [ToolCall("book", {**answer[0].arguments, "nights": 3})]
        return answer


def test_a_planted_fault_is_found_in_the_end_state() -> None:
    settings = Settings.of(
        outcome="tool-calls",
        history="own",
        turns="all",
        variants=6,
        attack="cumulative",
        repeatable=True,
    )
    clean = list(Campaign(Clerk(), DATA, settings))
    assert [one.is_right for one in clean] == [True] * 3
    assert not any(one.violations for one in clean)
    found = list(Campaign(Forgetful(), DATA, settings))
    changes = {str(c) for one in found for v in one.violations for c in v.changed_slots}
    assert changes == {"book[0].nights: 2 -> 3"}
    assert [bool(one.violations) for one in found] == [False, True, False]
    carried = {variant.outcome for variant in found[2].variants if variant.valid}
    assert "carried" in carried
