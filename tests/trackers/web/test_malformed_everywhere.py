"""One malformed answer among good ones: asked for again and counted, whatever the door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Asked, Says, Service

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.trackers.tracker import Prediction

Serve = Callable[[Callable[[Asked], Says]], Service]
TALKS = [
    Dialogue(
        place,
        (Turn(0, "", f"could you book a table near the {place} please", BeliefState({})),),
        (Tool("book_table", "Book a table."),),
    )
    for place in ("station", "market", "river")
]


def calling(arguments: str) -> dict[str, Any]:
    call = {"function": {"name": "book_table", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


#: Kind of answer -> a good one and malformed ones, as a function returns them.
ANSWERS: dict[str, tuple[Any, list[Any]]] = {
    "state": ({"hotel-area": "north"}, ["north", {"hotel-area": {"of": "town"}}]),
    "reply": ("It is booked.", [7]),
    "tool-calls": (calling('{"people": 2}'), [calling('{"people": 2'), 7]),
}
CASES = [(kind, bad) for kind, (_, wrong) in ANSWERS.items() for bad in wrong]


class Now:
    """Gives the malformed answer at each call whose number is a multiple of ``every``."""

    def __init__(self, kind: str, bad: Any, every: int) -> None:
        self.kind, self.bad, self.every = kind, bad, every
        self.asked = 0

    def answer(self) -> Any:
        self.asked += 1
        return self.bad if self.asked % self.every == 0 else ANSWERS[self.kind][0]


def function(now: Now, _: Serve) -> tuple[Any, list[str]]:
    return (lambda context: now.answer()), []  # noqa: ARG005 - the name says what is given


def async_function(now: Now, _: Serve) -> tuple[Any, list[str]]:
    async def bot(context: object) -> Any:  # noqa: ARG001 - the name says what is given
        await asyncio.sleep(0)
        return now.answer()

    return bot, []


def batches(now: Now, _: Serve) -> tuple[Any, list[str]]:
    def made() -> Any:
        found = now.answer()
        if now.kind == "reply":
            return Prediction(BeliefState(), reply=found)
        return found

    class Batched:
        def predict(self, contexts: Any) -> list[Any]:
            return [made() for _ in contexts]

    return Batched(), []


def body(now: Now) -> Any:
    found = now.answer()
    return found if now.kind == "tool-calls" else {now.kind: found}


def service(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    return serve(lambda asked: Says(body(now)) if asked.method == "POST" else Says({})).url, []


def grouped(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    def answer(asked: Asked) -> Says:
        if asked.method != "POST":
            return Says({"dialogues": 8})
        count = len(asked.body["dialogues"]) if "dialogues" in asked.body else 0
        return Says({"answers": [body(now) for _ in range(count)]} if count else body(now))

    return serve(answer).url, []


def described(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    found = serve(lambda _: Says({"said": now.answer()}))
    return found.url, ['request={"text": "$text"}', "response=/said"]


def cut_off(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    """Describe a service whose malformed answers are no JSON."""
    good = ANSWERS[now.kind][0]

    def answer(_: Asked) -> Says:
        found = now.answer()
        return Says({"said": found} if found == good else b'{"said": {')

    return serve(answer).url, ['request={"text": "$text"}', "response=/said"]


def rasa(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    def answer(asked: Asked) -> Says:
        if "/tracker" not in asked.path:
            slots = {"hotel-area": {"type": "text"}}
            return Says([] if asked.method == "POST" else {"model_id": "7", "slots": slots})
        return Says({"slots": now.answer(), "events": [{"event": "user"}]})

    return "rasa+" + serve(answer).url, []


def chat(now: Now, serve: Serve) -> tuple[Any, list[str]]:
    def answer(_: Asked) -> Says:
        found = now.answer()
        if now.kind == "tool-calls":
            message = found if isinstance(found, dict) else {"tool_calls": found}
        elif now.kind == "reply":
            message = {"content": found}
        else:
            message = {"content": json.dumps(found)}
        return Says({"choices": [{"message": message}]})

    return "openai+" + serve(answer).url, ["service-model=small"]


DOORS = [function, async_function, batches, service, grouped, described, cut_off, rasa, chat]


def run(door: Any, now: Now, serve: Serve) -> dict[str, Any]:
    bot, keys = door(now, serve)
    slots = {"slots": "hotel-area"} if now.kind == "state" else {}
    settings = Settings.of(outcome=now.kind, repeatable=False, variants=3, tracker=keys, **slots)
    campaign = Campaign(bot, TALKS, settings)
    turns = list(campaign)
    return build_report(turns, campaign.settings, RunInfo.of(campaign.data))


def allowed(door: Any, kind: str) -> bool:
    if door is rasa:
        return kind == "state"
    return kind != "tool-calls" or door not in (batches, described, cut_off)


GIVEN = [
    pytest.param(door, kind, bad, id=f"{door.__name__}-{kind}-{number}")
    for door in DOORS
    for number, (kind, bad) in enumerate(CASES)
    if allowed(door, kind)
]


@pytest.mark.parametrize(("door", "kind", "bad"), GIVEN)
def test_it_is_asked_for_again_and_counted(door: Any, kind: str, bad: Any, serve: Serve) -> None:
    report = run(door, Now(kind, bad, every=9), serve)
    assert report["summary"]["malformed"] > 0
    assert report["summary"]["errors"] == 0


@pytest.mark.parametrize(("door", "kind", "bad"), GIVEN)
def test_a_bot_that_gives_nothing_else_is_refused(
    door: Any, kind: str, bad: Any, serve: Serve
) -> None:
    with pytest.raises(UserError, match="cannot be tested"):
        run(door, Now(kind, bad, every=1), serve)
