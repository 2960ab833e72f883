"""A tracker behind an address: its answers, its failures and what it says about itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from loopback import FAULTS, Asked, Says, Service

from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange, Ontology
from pytest_dstfuzz.errors import MissingExtraError, UserError
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import BatchInterrupt, Prediction, Tracker

Serve = Callable[[Callable[[Asked], Says]], Service]
DATA = DialogueSet("d", "test", (), Ontology({"hotel-area": ("north",)}))


def context(*users: str) -> Context:
    return Context(tuple(Exchange("", user) for user in users))


def echo(asked: Asked) -> Says:
    """Answer with the newest utterance; say nothing about itself."""
    if asked.method == "GET":
        return Says({"detail": "not found"}, 404)
    return Says({"state": {"hotel-area": asked.body["dialogue"][-1]["user"]}})


def web(service: Service, **given: object) -> Tracker:
    return tracker_for(Settings.of(model=service.url, **given), DATA)  # type: ignore[arg-type]


def test_answers_come_in_the_order_of_the_contexts(serve: Serve) -> None:
    tracker = web(serve(echo), concurrency=5)
    users = [f"user {number}" for number in range(40)]
    answers = tracker.predict([context("hi", user) for user in users])
    assert [answer.state for answer in answers] == [{"hotel-area": user} for user in users]


def test_a_context_that_fails_is_a_failure_of_its_own(serve: Serve) -> None:
    """The others of its batch stand, and nobody is asked twice because of it."""

    def answer(asked: Asked) -> Says:
        bad = asked.method == "POST" and asked.body["dialogue"][-1]["user"] == "user 3"
        return Says({"error": "the tracker failed: boom"}, 422) if bad else echo(asked)

    service = serve(answer)
    predictor = Predictor(web(service), ontology=DATA.ontology)
    contexts = [context(f"user {number}") for number in range(8)]
    answers = predictor.predict(contexts)
    failed = [
        place for place, one in enumerate(contexts) if isinstance(answers[one], TrackerFailure)
    ]
    assert failed == [3]
    assert answers[contexts[3]] == TrackerFailure(
        f"the service at {service.url} answered 422 Unprocessable Entity "
        '({"error": "the tracker failed: boom"})'
    )
    assert sum(asked.method == "POST" for asked in service.asked) == 8


def test_an_interrupt_loses_no_answer() -> None:
    class Stopped:
        def predict(self, _: object) -> list[Prediction]:
            raise BatchInterrupt({1: {"hotel-area": "north"}})

    predictor = Predictor(Stopped())
    contexts = [context("a"), context("bb"), context("ccc")]
    with pytest.raises(KeyboardInterrupt) as caught:
        predictor.predict(contexts)
    assert type(caught.value) is KeyboardInterrupt
    assert list(predictor.known(contexts)) == [contexts[1]]
    assert predictor.calls == 1


NOTHING_SAID = {
    "404": Says({"detail": "not found"}, 404),
    "405": Says(None, 405),
    "a page": Says(b"<html>my bot</html>", headers={"Content-Type": "text/html"}),
    "another object": Says({"status": "ok"}),
    "no version": Says({"name": "my bot"}),
    "an empty version": Says({"version": ""}),
}


@pytest.mark.parametrize("said", NOTHING_SAID)
def test_a_service_without_a_version_has_no_fingerprint(serve: Serve, said: str) -> None:
    """It may be another one tomorrow behind the same address."""
    service = serve(lambda asked: NOTHING_SAID[said] if asked.method == "GET" else echo(asked))
    tracker = web(service)
    assert tracker.fingerprint is None  # type: ignore[attr-defined]
    assert tracker.predict([context("hi")])[0].state == {"hotel-area": "hi"}


def test_a_declared_version_is_the_fingerprint(serve: Serve) -> None:
    service = serve(lambda _: Says({"name": "bot", "version": "v7", "slots": ["hotel-area"]}))
    assert web(service).fingerprint == "v7, name=bot"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Says({}, 401), "answered 401 Unauthorized"),
        (Says({}, 403), "answered 403 Forbidden"),
        (Says({"version": 7}), 'says that its "version" is int 7; write a text'),
        (
            Says({"name": "pizza bot", "slots": ["order-size"]}),
            r"\(pizza bot\) has none of the slots of the data. Its slots: order-size. Those",
        ),
    ],
)
def test_a_service_that_cannot_be_tested(serve: Serve, said: Says, message: str) -> None:
    with pytest.raises(UserError, match=message):
        web(serve(lambda _: said), retries=0)


def test_a_slot_may_be_a_word_of_the_address(serve: Serve) -> None:
    service = serve(lambda _: Says({"slots": ["hotel-area"]}))
    about = tracker_for(Settings.of(model=f"{service.url}?domain=hotel"), DATA).about  # type: ignore[attr-defined]
    assert about.slots == ("hotel-area",)


def test_nobody_answers() -> None:
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9 cannot be reached: .*refused$"):
        tracker_for(Settings.of(model="http://127.0.0.1:9", retries=0), DATA)


# The service that answers with another shape may be one that is made for something else.
@pytest.mark.parametrize("fault", sorted({*FAULTS} - {"another shape"}))
def test_what_the_service_is_survives_an_accident(serve: Serve, fault: str) -> None:
    def answer(asked: Asked) -> Says:
        return FAULTS[fault] if asked.number == 0 else Says({"version": "v7"})

    service = serve(answer)
    assert web(service, timeout=0.5, retries=2).fingerprint == "v7"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("address", "guess"), [("htp://h", "http://"), ("rassa+http://h", "rasa\\+http://")]
)
def test_an_unknown_kind_of_address(address: str, guess: str) -> None:
    with pytest.raises(UserError, match=f"unknown kind of address .* Did you mean '{guess}'"):
        tracker_for(Settings.of(model=address), DATA)


@pytest.mark.parametrize("given", [{"checkpoint": "x"}, {"device": "cuda"}])
def test_weights_and_device_are_the_services_own(given: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"http://\*\*\*@h chooses its own"):
        tracker_for(Settings.of(model="http://u:p@h", **given), DATA)  # type: ignore[arg-type]


def test_no_tracker_is_named() -> None:
    with pytest.raises(UserError, match="no tracker is named"):
        tracker_for(Settings(), DATA)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415 - what it holds is what this test is about

    for name in [name for name in sys.modules if name.startswith("pytest_dstfuzz.trackers.web.t")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"http://\.\.\. needs .*pytest-dstfuzz\[http\]"):
        tracker_for(Settings.of(model="http://h"), DATA)
