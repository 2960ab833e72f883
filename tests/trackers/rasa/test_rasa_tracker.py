"""The Rasa adapter against a server that follows Rasa's published API description."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from rasa_server import TOKEN, RasaServer, serving

from pytest_dstfuzz.config import Header, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange, Ontology
from pytest_dstfuzz.errors import ChangedTrackerError, TrackerError, UserError
from pytest_dstfuzz.trackers.rasa.tracker import RasaTracker, create
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.transport import Transport

ONTOLOGY = Ontology(
    {
        "hotel-parking": ("no", "yes"),
        "restaurant-area": ("north", "west"),
        "restaurant-food": ("chinese", "italian"),
        "restaurant-book people": ("2", "4"),
        "restaurant-dish": ("rice", "soup"),
    }
)
DATA = DialogueSet("bookings", "test", (), ONTOLOGY)
SERVICE = ServiceSettings(timeout=5.0, retries=2, concurrency=4)
MAP = """
cuisine = "restaurant-food"
restaurant_area = "restaurant-area"
seats = "restaurant-book people"
dishes = "restaurant-dish"

[parking]
slot = "hotel-parking"
values = { true = "free" }
"""


@pytest.fixture
def server() -> Iterator[RasaServer]:
    with serving(RasaServer()) as running:
        yield running


@pytest.fixture
def lifelike() -> Iterator[RasaServer]:
    """A server that answers as servers do where the description says otherwise."""
    with serving(RasaServer(as_described=False, status={"model_id": "75a985b7"})) as running:
        yield running


@pytest.fixture
def slot_map(tmp_path: Any) -> str:
    path = tmp_path / "slots.toml"
    path.write_text(MAP, encoding="utf-8")
    return str(path)


def connect(server: RasaServer, slot_map: str | None = None, **service: Any) -> RasaTracker:
    asked = ServiceSettings(**{"timeout": 5.0, "retries": 2, "concurrency": 4} | service)
    return create(server.url, asked, DATA, Settings.of(slot_map=slot_map))


def context(*said: str) -> Context:
    return Context(tuple(Exchange("What the system said", user) for user in said))


def answers(tracker: RasaTracker, *contexts: Context) -> list[Any]:
    return [
        dict(answer.state) if isinstance(answer, Prediction) else str(answer)
        for answer in tracker.predict(contexts)
    ]


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("conversations/a/tracker?include_events=SOME", None, "is not one of"),
        ("conversations/a/tracker?include_events=NONE", None, "is not of type 'array'"),
        ("webhooks/rest/webhook", {"sender": "a", "message": "hi", "intent": "x"}, "Additional"),
        ("conversations/a/messages", {"text": "hi", "sender": "user"}, "PathNotFound"),
    ],
)
def test_the_server_sees_what_does_not_follow_the_descriptions(
    server: RasaServer,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: object,
    complaint: str,
) -> None:
    if path.endswith("NONE"):
        monkeypatch.setattr(server, "tracker", lambda _: {"slots": {"a": "b"}})
    with suppress(TrackerError):
        transport = Transport(server.url, ServiceSettings(retries=0))
        method = "GET" if body is None else "POST"
        transport.wait(transport.ask(method, path, body, read=lambda reply: reply))
    assert complaint in " ".join(server.complaints)


def test_the_slots_of_a_conversation_are_the_belief_state(
    server: RasaServer, slot_map: str
) -> None:
    tracker = connect(server, slot_map)
    talk = ("Chinese food, please", "in the north", "a table for 4, with soup and rice")
    assert answers(tracker, context(*talk)) == [
        {
            "restaurant-food": "chinese",
            # Only the form of the bot takes a bare area: its policies did run.
            "restaurant-area": "north",
            "restaurant-book people": "4",
            "restaurant-dish": '["rice", "soup"]',
        }
    ]
    assert server.said() == [list(talk)]
    assert server.complaints == []


def test_values_of_every_type_become_values_of_the_data(
    lifelike: RasaServer, slot_map: str
) -> None:
    tracker = connect(lifelike, slot_map)
    assert answers(
        tracker,
        context("Italian, a table for 2"),
        context("no parking"),
        context("parking, please"),
        context("rice and soup"),
        context("Hello"),
    ) == [
        {"restaurant-food": "italian", "restaurant-book people": "2"},
        {"hotel-parking": "no"},
        {"hotel-parking": "free"},
        {"restaurant-dish": '["rice", "soup"]'},
        {},
    ]
    assert lifelike.complaints == []


def test_each_context_is_a_conversation_of_its_own(server: RasaServer, slot_map: str) -> None:
    tracker, other = connect(server, slot_map), connect(server, slot_map)
    contexts = [context("Chinese food", *["again"] * number, f"{number}") for number in range(12)]
    first = answers(tracker, *contexts)
    assert answers(tracker, *contexts) == answers(other, *contexts) == first
    assert len(server.conversations) == 36
    assert all(name.startswith("dstfuzz-") for name in server.conversations)
    # In order within each, whatever ran beside it.
    expected = [list(made.user_utterances) for made in contexts] * 3
    assert sorted(server.said()) == sorted(expected)
    assert server.complaints == []


def test_an_utterance_that_looks_like_an_intent_is_never_sent(server: RasaServer) -> None:
    tracker = connect(server)
    told, sent = answers(
        tracker, context("Hello", ' /inform{"cuisine": "x"}'), context("this / that")
    )
    assert told.startswith("' /inform{")
    assert told.endswith(
        " was not sent: Rasa reads a message that begins with '/' as an intent, not as text"
    )
    assert sent == {}
    assert server.said() == [["this / that"]]


@pytest.mark.parametrize("fault", ["late", "lost", "page"])
def test_a_message_that_was_not_taken_in_once_begins_the_conversation_again(
    server: RasaServer, slot_map: str, fault: str
) -> None:
    tracker = connect(server, slot_map)
    server.faults.extend(["", fault])
    assert answers(tracker, context("Chinese", "in the north", "thanks")) == [
        {"restaurant-food": "chinese", "restaurant-area": "north"}
    ]
    spoilt = {"lost": ["Chinese", "thanks"]}.get(
        fault, ["Chinese", "in the north", "in the north", "thanks"]
    )
    assert server.said() == [spoilt, ["Chinese", "in the north", "thanks"]]


def test_a_bot_that_loses_every_message_is_an_error_of_that_context(
    server: RasaServer, slot_map: str
) -> None:
    tracker = connect(server, slot_map, concurrency=1)
    server.faults.extend(["lost"] * 3)
    assert answers(tracker, context("Chinese"), context("Italian")) == [
        "the bot's tracker has 0 user messages instead of 1; see the bot's log for the reason",
        {"restaurant-food": "italian"},
    ]


def test_a_bot_without_the_channel_is_told(server: RasaServer) -> None:
    tracker = connect(server)
    server.channel = False
    (told,) = answers(tracker, context("Hello"))
    assert "answered 404" in told
    assert told.endswith("the bot has no REST channel; add a line 'rest:' to its credentials.yml")


def test_a_token_of_the_environment_is_sent_as_a_bearer(
    server: RasaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", TOKEN)
    tracker = create(server.url.partition("?")[0], SERVICE, DATA, Settings())
    assert answers(tracker, context("Chinese", "north")) == [{"restaurant-area": "north"}]
    assert server.complaints == []


def test_a_wrong_token_is_told_without_the_token(server: RasaServer) -> None:
    url = server.url.replace(TOKEN, "wrong-token-99")
    with pytest.raises(UserError, match=r"answered 401 .* to the address as \?token=") as caught:
        create(url, SERVICE, DATA, Settings())
    assert "wrong-token-99" not in str(caught.value)


def test_another_server_is_told(server: RasaServer) -> None:
    elsewhere = server.url.replace("?", "/elsewhere?")
    with pytest.raises(UserError, match=r"404 .* Is it a Rasa server, .* --enable-api\?$"):
        create(elsewhere, SERVICE, DATA, Settings())


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"slots": "north", "events": []}, "'slots' are str 'north' instead of slot -> value"),
        ({"slots": [["a", "b"]], "events": []}, "'slots' are list"),
        ({"slots": {}}, "'events' are None instead of a list of events"),
        ([], r"list \[\] instead of a tracker of Rasa"),
    ],
)
def test_an_answer_that_is_no_tracker_is_told(
    lifelike: RasaServer, monkeypatch: pytest.MonkeyPatch, body: object, complaint: str
) -> None:
    tracker = connect(lifelike, retries=0)
    monkeypatch.setattr(lifelike, "tracker", lambda _: body)
    (answer,) = tracker.predict([context("Hello")])
    assert isinstance(answer, TrackerError)
    with pytest.raises(TrackerError, match=complaint):
        raise answer


def test_a_slot_that_holds_no_value_is_told(
    lifelike: RasaServer, slot_map: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = connect(lifelike, slot_map)
    body = {"slots": {"cuisine": {"a": 1}}, "events": [{"event": "user"}]}
    monkeypatch.setattr(lifelike, "tracker", lambda _: body)
    (told,) = answers(tracker, context("Hello"))
    assert told.startswith(
        "the bot returned an invalid state: the value of slot 'restaurant-food' must"
    )


def test_the_fingerprint_is_of_the_loaded_model_and_the_map(
    server: RasaServer, slot_map: str
) -> None:
    assert connect(server).fingerprint is None
    server.status = {"fingerprint": {"trained_at": 1.5, "version": "1.0.0"}}
    old = connect(server, slot_map).fingerprint
    server.status = {"model_id": "75a985b7", "model_file": "a.tar.gz"}
    new = connect(server, slot_map).fingerprint
    assert old is not None
    assert new is not None
    server.status["model_file"] = "elsewhere/a.tar.gz"
    assert connect(server, slot_map).fingerprint == new
    assert len({old, new, connect(server).fingerprint}) == 3
    assert server.complaints == []


def test_a_model_that_is_loaded_during_a_run_ends_it(server: RasaServer) -> None:
    server.status = {"model_id": "75a985b7"}
    tracker = connect(server)
    assert len(tracker.predict([context("cheap food")])) == 1
    server.status = {"model_id": "18b0fe2a"}
    with pytest.raises(ChangedTrackerError, match="its model from 75a985b7 to 18b0fe2a"):
        tracker.predict([context("cheap food")])


def test_answers_of_a_bot_that_hides_its_model_do_not_count(server: RasaServer) -> None:
    server.status = {"model_id": "75a985b7"}
    tracker = connect(server)
    server.status = {}
    with pytest.raises(ChangedTrackerError, match="its model from 75a985b7 to none"):
        tracker.predict([context("cheap food")])


def test_the_slots_that_are_ignored_are_told(server: RasaServer, slot_map: str) -> None:
    (note,) = connect(server, slot_map).notes
    assert note.startswith("slots of the bot: 5 compared, 2 ignored because the data does not have")
    assert note.endswith(" them: requested_slot, session_started_metadata")
    server.slots = ("cuisine", "restaurant_area", "seats", "dishes", "parking")
    assert connect(server, slot_map).notes == ()


def test_a_bot_without_slots_is_told(server: RasaServer) -> None:
    server.slots = ()
    with pytest.raises(
        UserError, match=r"^the bot at http://[0-9.:]+\S* has no slots, so there is"
    ):
        connect(server)


def test_answers_of_a_bot_with_actions_of_its_own_are_not_kept(server: RasaServer) -> None:
    server.status = {"model_id": "75a985b7"}
    server.actions = ("utter_bye",)
    assert connect(server).fingerprint is not None
    server.actions = ("action_price", "utter_bye")
    tracker = connect(server)
    assert tracker.fingerprint is None
    assert "does not cover its custom actions (action_price)" in tracker.notes[-1]


def test_a_bot_whose_actions_never_do_anything_has_failed(lifelike: RasaServer) -> None:
    lifelike.actions = ("action_price", "action_log")
    lifelike.acts = None
    tracker = connect(lifelike)
    (answer,) = tracker.predict([context("Chinese food")])
    assert isinstance(answer, TrackerError)
    assert "the bot ran action_log, action_price but got neither" in str(answer)
    # One that was seen to work may have nothing to say to a message.
    lifelike.acts = "It costs 10."
    assert isinstance(tracker.predict([context("Chinese food")])[0], Prediction)
    lifelike.acts = None
    assert isinstance(tracker.predict([context("Italian food")])[0], Prediction)


def test_the_domain_is_asked_for_as_the_server_wants(server: RasaServer) -> None:
    connect(server)
    with pytest.raises(UserError, match=r"answered 406"):
        connect(server, headers=(Header("accept", "text/html"),))
