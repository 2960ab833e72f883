"""Services with their own JSON, which a description tests without a line of Python."""

from __future__ import annotations

import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from loopback import Asked, Says, Service

from pytest_dstfuzz import Settings, UserError
from pytest_dstfuzz.config import Address
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import MalformedAnswerError
from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.tracker import create

Serve = Callable[[Callable[[Asked], Says]], Service]
SIZES = ("small", "medium", "large")
REQUEST = '{"user": {"id": "$session"}, "input": [{"text": "$text"}]}'


class Bot:
    """A pizza bot that keeps the sizes of a session."""

    def __init__(self) -> None:
        self.sizes: dict[str, list[str]] = defaultdict(list)

    def __call__(self, asked: Asked) -> Says:
        session, text = asked.body["user"]["id"], asked.body["input"][0]["text"]
        new = [word for word in text.lower().split() if word in SIZES]
        self.sizes[session] += new
        known = self.sizes[session]
        return Says(
            {
                "memory": {"pizza-size": known[-1] if known else None, "count": len(known)},
                "found": [{"type": "pizza-size", "value": word} for word in new],
                "say": [{"text": f"Sizes: {', '.join(known)}."}, {"image": "x"}, {"text": "Ok?"}],
            }
        )


def asked_of(
    service: Service, contexts: list[list[str]], outcome: str = "state", path: str = "", **keys: str
) -> list[Any]:
    settings = Settings.of(outcome=outcome, **keys)
    data = DialogueSet("own", "test", ())
    how = ServiceSettings(retries=2)
    tracker = create(Address(service.url + path), how, data, settings)
    found = [Context(tuple(Exchange("", text) for text in texts)) for texts in contexts]
    return list(tracker.predict(found))


def states(*args: Any, **keys: Any) -> list[dict[str, str]]:
    found = asked_of(*args, **keys)
    assert all(isinstance(one, Prediction) for one in found), found
    return [dict(one.state) for one in found]


TALKS = [["hello"], ["a small pizza", "no, a large one"], ["a small and a large one", "thanks"]]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            "/memory",
            [{"count": "0"}, {"pizza-size": "large", "count": "2"},
             {"pizza-size": "large", "count": "2"}],
        ),
        ('{"size": "/memory/pizza-size"}', [{}, {"size": "large"}, {"size": "large"}]),
        # Entities are those of one message, and two of a kind are a list.
        (
            '{"/found/*/type": "/found/*/value"}',
            [{}, {"pizza-size": "large"}, {"pizza-size": "small | large"}],
        ),
        ('{"said": "/found/*/value"}', [{}, {"said": "large"}, {}]),
        # As of Rasa's NLU: something of the last answer beside the entities of all.
        (
            '{"count": "/memory/count", "/found/*/type": "/found/*/value"}',
            [{"count": "0"}, {"count": "2", "pizza-size": "large"},
             {"count": "2", "pizza-size": "small | large"}],
        ),
    ],
)  # fmt: skip
def test_slots_and_entities_are_where_the_description_says(
    serve: Serve, response: str, expected: list[dict[str, str]]
) -> None:
    service = serve(Bot())
    found = states(service, TALKS, request=REQUEST, response=response)
    assert [{slot: " | ".join(_listed(v)) for slot, v in one.items()} for one in found] == expected
    # Each context is a session of its own, and its messages come in order.
    told: dict[str, list[str]] = defaultdict(list)
    for asked in service.asked:
        told[asked.body["user"]["id"]].append(asked.body["input"][0]["text"])
    assert sorted(told.values()) == sorted(TALKS)


def _listed(value: str) -> list[str]:
    return [str(one) for one in json.loads(value)] if value.startswith("[") else [value]


def test_replies_are_the_texts_of_the_last_answer(serve: Serve) -> None:
    found = asked_of(serve(Bot()), TALKS, "reply", request=REQUEST, response="/say/*/text")
    assert [one.reply for one in found] == [
        "Sizes: .\nOk?", "Sizes: small, large.\nOk?", "Sizes: small, large.\nOk?",
    ]  # fmt: skip


def test_paths_and_queries_hold_the_message_too(serve: Serve) -> None:
    def wit(asked: Asked) -> Says:
        assert asked.method == "GET"
        query = parse_qs(urlsplit(asked.path).query)
        return Says({"entities": {"text": query["q"][0], "path": urlsplit(asked.path).path}})

    service = serve(wit)
    text = "what's 5 & 6? ü $session"
    (found,) = states(
        service, [[text]], path="/v2", request="/parse/$session?q=$text&v=1", response="/entities"
    )
    assert found["text"] == text
    assert found["path"].startswith("/v2/parse/dstfuzz-")


class OwnIds:
    """Makes its own session ids, refuses any other id, and keeps the sizes of each session."""

    def __init__(self, *, start: bool, changing: bool = False) -> None:
        self.start = start
        self.changing = changing
        #: Each valid id -> the sizes of its session.
        self.sizes: dict[object, list[str]] = {}
        self.refused: list[object] = []
        self._ids = itertools.count(1000)
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Says:
        with self._lock:
            return self._answer(asked)

    def _answer(self, asked: Asked) -> Says:
        new = next(self._ids)
        if asked.path == "/sessions":
            self.sizes[new] = []
            return Says({"data": {"id": new}})
        body = asked.body
        if self.start:
            old: object = int(asked.path.split("/")[2])
        else:
            old = body.get("conversation")
            if old is None and "conversation" not in body:
                self.sizes[old := new] = []
        if old not in self.sizes:
            self.refused.append(old)
            return Says({"error": "no such session"}, 404)
        known = self.sizes[old]
        known += [word for word in body["text"].lower().split() if word in SIZES]
        said = {"slots": {"sizes": " ".join(known)}}
        if self.start:
            return Says(said)
        if self.changing:
            self.sizes[new] = self.sizes.pop(old)
            old = new
        return Says({**said, "conversation": old})


OWN_IDS = {"request": '{"conversation": "$session", "text": "$text"}', "session": "/conversation"}
STARTED = {
    "start": '/sessions {"lang": "en"}',
    "session": "/data/id",
    "request": '/sessions/$session/messages {"text": "$text"}',
}
MANY = [["a small pizza"], ["a small pizza", "no, a large one"], ["hello", "medium", "large"]] * 6


@pytest.mark.parametrize(
    ("bot", "keys"),
    [
        (OwnIds(start=False), OWN_IDS),
        (OwnIds(start=False, changing=True), OWN_IDS),
        (OwnIds(start=True), STARTED),
    ],
    ids=["in the first answer", "in each answer", "by a request"],
)
def test_a_service_makes_the_ids_of_its_sessions(
    serve: Serve, bot: OwnIds, keys: dict[str, str]
) -> None:
    found = states(serve(bot), MANY, response="/slots", **keys)
    assert [one["sizes"] for one in found] == ["small", "small large", "medium large"] * 6
    assert not bot.refused


def test_an_unknown_id_or_none_is_told(serve: Serve) -> None:
    keys = {**OWN_IDS, "session": "/conversation_id"}
    found = asked_of(serve(OwnIds(start=False)), TALKS, response="/slots", **keys)
    assert all(isinstance(one, MalformedAnswerError) for one in found)
    assert "/conversation_id" in str(found[0])
    # Without the key, the plugin makes the ids, and this service does not know them.
    refusing = OwnIds(start=False)
    keys = {"request": OWN_IDS["request"]}
    found = asked_of(serve(refusing), TALKS, response="/slots", **keys)
    assert not any(isinstance(one, Prediction) for one in found)
    assert refusing.refused


def test_a_lost_answer_begins_a_new_session(serve: Serve) -> None:
    bot, lost = Bot(), [True]

    def answer(asked: Asked) -> Says:
        says = bot(asked)
        if "large" in asked.body["input"][0]["text"] and lost:
            lost.pop()
            return Says(how="hang-up")
        return says

    service = serve(answer)
    (found,) = states(service, TALKS[1:2], request=REQUEST, response="/memory")
    assert found == {"pizza-size": "large", "count": "2"}
    assert len({asked.body["user"]["id"] for asked in service.asked}) == 2
    # A bot that is busy has not got the message.
    busy = [Says({}, 503, {"Retry-After": "0"})]
    patient = serve(lambda asked: busy.pop() if busy else Bot()(asked))
    states(patient, TALKS[:1], request=REQUEST, response="/memory")
    assert len({asked.body["user"]["id"] for asked in patient.asked}) == 1


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("/memori", ["without /memori", 'a key "memory"']),
        ("/memory/pizza-size", ["null"]),
        ("/say", ["a list"]),
        ('{"/found/*/type": "/say/*/text"}', ["0 names", "2 values"]),
    ],
)
def test_an_answer_of_another_form_is_told(serve: Serve, response: str, words: list[str]) -> None:
    (found,) = asked_of(serve(Bot()), TALKS[:1], request=REQUEST, response=response)
    assert isinstance(found, MalformedAnswerError)
    assert all(word in str(found) for word in words if word not in ("null", "a list"))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"request": REQUEST}, "request and response"),
        ({"response": "/slots"}, "request and response"),
        ({"request": "{text: $text}", "response": "/slots"}, "no JSON"),
        ({"request": '{"text": "text"}', "response": "/slots"}, r"without \$text"),
        ({"request": REQUEST, "response": "slots"}, "JSON pointer"),
        ({"request": REQUEST, "response": '{"size": "size"}'}, "JSON pointer"),
        ({"request": REQUEST, "response": '{"/a/*/b": "/c"}'}, "same number"),
        ({"request": REQUEST, "response": '{"size": "/a"}', "outcome": "reply"}, "one JSON"),
        ({"request": REQUEST, "response": "/a", "outcome": "tool-calls"}, "recorded calls"),
        ({"request": REQUEST, "response": "/a", "session": "id"}, "JSON pointer"),
        ({"request": '{"t": "$text"}', "response": "/a", "session": "/id"}, r"no \"\$session"),
        ({"request": REQUEST, "response": "/a", "start": "/new {"}, "no JSON"),
        ({"request": REQUEST, "response": "/a", "start": "/new?q=$text"}, "before the first"),
        ({"start": "/new {}"}, "request and response"),
    ],
)
def test_a_wrong_description_is_refused(serve: Serve, keys: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        asked_of(serve(Bot()), [], **keys)


@pytest.mark.parametrize("own_ids", [False, True])
def test_a_description_of_twelve_lines_tests_a_bot(
    pytester: pytest.Pytester, serve: Serve, *, own_ids: bool
) -> None:
    """Many sessions at once, with ids of the plugin or of the service."""
    refusing = OwnIds(start=True)
    bot = serve(refusing if own_ids else Bot())
    keys = {"request": REQUEST, "response": '{"pizza-size": "/memory/pizza-size"}'}
    if own_ids:
        keys = {**STARTED, "response": '{"pizza-size": "/slots/sizes"}'}
    described = "\n        ".join(f"{key} = '{value}'" for key, value in keys.items())
    talks = [
        {"dialogue_id": f"d{n}", "turns": [{"user": "hello"}, {"user": f"one {size} pizza please"}]}
        for n, size in enumerate(SIZES * 2)
    ]
    (pytester.path / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    description = f"""
        [tool.pytest.ini_options]
        dst_model = "{bot.url}"
        dst_data = "talks.jsonl"
        dst_suite = "yes"
        dst_fail_on = "gate"
        [tool.dstfuzz.tracker]
        {described}
    """
    assert len(description.split("\n")) <= 12
    pytester.makepyprojecttoml(description)
    result = pytester.runpytest_inprocess("--dst-report=out.json")
    result.assert_outcomes(passed=12)
    report = read_report(pytester.path / "out.json")
    assert report["turns"][1]["clean_state"] == {"pizza-size": "small"}
    assert report["summary"]["calls"] > 24
    assert not refusing.refused
    assert len(refusing.sizes) > 24 or not own_ids


def test_a_slot_that_no_answer_has_is_noted(pytester: pytest.Pytester, serve: Serve) -> None:
    talk = {"dialogue_id": "d", "users": ["hello", "one small pizza please"]}
    pytester.path.joinpath("talks.jsonl").write_text(json.dumps(talk), encoding="utf-8")

    def notes(response: str) -> str:
        pytester.runpytest_inprocess(
            f"--dst-model={serve(Bot()).url}",
            "--dst-data=talks.jsonl",
            f"--dst-tracker=request={REQUEST}",
            f"--dst-tracker=response={response}",
            "--dst-report=out.json",
        )
        return "\n".join(read_report(pytester.path / "out.json")["run"]["notes"])

    right = '"pizza-size": "/memory/pizza-size"'
    told = "No clean answer has a value for pizza-crust: are its pointers in response= right?"
    assert told not in notes(f"{{{right}}}")
    assert told in notes(f'{{{right}, "pizza-crust": "/memory/crusd"}}')
