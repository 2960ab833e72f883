"""Replies, entities and intents of a Rasa bot, and the payloads of buttons."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rasa_server import RasaServer, serving

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.rasa.tracker import create
from pytest_dstfuzz.trackers.replies import StatefulReply
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web import sessions

DATA = DialogueSet("own", "test", ())
PAYLOAD = json.dumps({"role": "user", "content": '/inform{"cuisine": "chinese"}'})
#: A button between two utterances.
PRESSED = Context(
    (Exchange("", "I would like to eat"), Exchange("Where?", "in the north")),
    transcript=Transcript(before=(None, (PAYLOAD,))),
)
SENT = ["I would like to eat", '/inform{"cuisine": "chinese"}', "in the north"]


def test_replies_are_those_of_the_channel() -> None:
    context = Context((Exchange("", "Hello"), Exchange("Yes?", "Chinese food")))
    settings = Settings.of(outcome="reply")
    with serving(RasaServer(slots=(), status={"model_id": "7"})) as server:
        tracker = create(Address(server.url), ServiceSettings(), DATA, settings)
        (answer,) = tracker.predict([context])
        assert server.complaints == []
    assert isinstance(answer, Prediction)
    assert answer.reply == "Which part of town?"
    assert tracker.fingerprint


def test_the_payload_of_a_button_is_sent() -> None:
    with serving(RasaServer()) as server:
        tracker = create(Address(server.url), ServiceSettings(), DATA, Settings())
        (answer,) = tracker.predict([PRESSED])
        request = '/webhooks/rest/webhook {"sender": "$session", "message": "$text"}'
        described = Settings.of(outcome="reply", tracker=[f"request={request}", "response=/*/text"])
        other = sessions.create(Address(server.url), ServiceSettings(), described)
        (reply,) = other.predict([PRESSED])
        assert server.said() == [SENT, SENT]
    assert isinstance(answer, Prediction)
    assert answer.state["restaurant_area"] == "north"
    assert isinstance(reply, Prediction)
    assert reply.reply == "Anything else?"


def test_examples_of_the_nlu_are_parsed_in_place_of_a_conversation() -> None:
    examples = replace(DATA, layout="rasa-nlu")
    two = Context((Exchange("", "Chinese or Italian food"), Exchange("", "Hello")))
    one = Context((Exchange("", "Italian food"),))
    mapped = Settings.of(tracker=["slot-map=slots.toml"])
    with serving(RasaServer(slots=(), status={"model_id": "7"}, actions=("action_pay",))) as server:
        tracker = create(Address(server.url), ServiceSettings(), examples, Settings())
        first, second = tracker.predict([two, one])
        (wrong,) = tracker.predict([Context((Exchange("", "/greet"),))])
        with pytest.raises(UserError, match="slot-map"):
            create(Address(server.url), ServiceSettings(), examples, mapped)
        assert server.said() == []
        assert sorted(server.parsed) == ["Chinese or Italian food", "Hello", "Italian food"]
    assert isinstance(first, Prediction)
    assert isinstance(second, Prediction)
    assert isinstance(wrong, TrackerError)
    assert dict(first.state) == {"intent": "greet", "cuisine": '["chinese", "italian"]'}
    assert dict(second.state) == {"intent": "inform", "cuisine": "italian"}
    # The action server does not change what the NLU understands.
    assert tracker.fingerprint


def test_an_object_that_replies_gets_the_payload() -> None:
    heard: list[str] = []

    class Bot:
        def reset(self) -> None:
            heard.clear()

        def reply(self, user: str) -> str:
            heard.append(user)
            return "Yes."

    StatefulReply(Bot()).predict([PRESSED])
    assert heard == SENT


def test_a_run_on_replies(pytester: pytest.Pytester) -> None:
    line = json.dumps({"dialogue_id": "d", "users": ["I would like Chinese food to go"]})
    (pytester.path / "talks.jsonl").write_text(line, encoding="utf-8")
    with serving(RasaServer(as_described=False)) as server:
        ran = pytester.runpytest_inprocess(
            f"--dst-model=rasa+{server.url}",
            "--dst-data=talks.jsonl",
            "--dst-outcome=reply",
            "--dst-fail-on=gate",
        )
    ran.assert_outcomes(passed=1)
