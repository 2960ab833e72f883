"""The tracker against a service on loopback: negotiation, counts, and every way to fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from chat_server import asked_about, chat, completion, format_of, prompt_of, refusal, said, state
from loopback import FAULTS, Asked, Says, Service

from pytest_dstfuzz.config import build_settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange, Ontology
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.chat.tracker import ChatTracker
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Disagreement, Prediction, usage_of
from pytest_dstfuzz.trackers.validation import preflight

DATA = DialogueSet(
    "toy", "test", (), Ontology({"hotel-area": ("north", "south"), "hotel-stars": ("3", "4")})
)
CONTEXTS = [Context((Exchange("", f"number {number} north"),)) for number in range(20)]


def tracker_of(service: Service, **given: Any) -> ChatTracker:
    settings = build_settings({"model": f"openai+{service.url}", "timeout": 60.0, **given})
    tracker = tracker_for(settings, DATA)
    assert isinstance(tracker, ChatTracker)
    return tracker


def states(answers: Sequence[Prediction | TrackerError]) -> list[dict[str, str] | str]:
    return [
        str(answer) if isinstance(answer, TrackerError) else dict(answer.state)
        for answer in answers
    ]


def echo(asked: Asked) -> Says:
    """Answer with the number that was said."""
    return state(hotel_area="north", hotel_stars=said(asked)[-1].split()[1])


def test_answers_are_in_the_order_of_the_contexts() -> None:
    with chat(echo) as service:
        found = states(tracker_of(service).predict(CONTEXTS))
    assert found == [{"hotel-area": "north", "hotel-stars": str(n)} for n in range(20)]


def test_a_request_is_what_the_api_describes() -> None:
    with chat(echo) as service:
        tracker_of(service).predict(CONTEXTS[:1])
    (asked,) = asked_about(service)
    assert set(asked.body) == {"model", "messages", "temperature", "response_format"}
    assert (asked.body["model"], asked.body["temperature"]) == ("tiny", 0)
    schema = asked.body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["hotel-area", "hotel-stars"]
    assert "hotel-stars (known: 3, 4)" in prompt_of(asked)


@pytest.mark.parametrize(
    ("taken", "tried"),
    [
        ("json_schema", ["json_schema"]),
        ("json_object", ["json_schema", "json_object"]),
        ("prompt", ["json_schema", "json_object", "prompt"]),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_the_strictest_format_that_the_service_takes_is_used(
    taken: str, tried: list[str], status: int
) -> None:
    def reply(asked: Asked) -> Says:
        if format_of(asked) != taken:
            return refusal(status, f"response_format: {format_of(asked)} is not supported here")
        return state(hotel_area="north")

    with chat(reply) as service:
        tracker = tracker_of(service)
        assert states(tracker.predict(CONTEXTS[:1])) == [{"hotel-area": "north"}]
        assert [format_of(asked) for asked in asked_about(service)] == tried
        # It is remembered.
        tracker.predict(CONTEXTS[1:4])
        assert [format_of(asked) for asked in asked_about(service)] == [*tried, *[taken] * 3]


def test_requests_at_once_settle_on_one_format() -> None:
    def reply(asked: Asked) -> Says:
        if format_of(asked) != "prompt":
            return refusal(400, "unknown field response_format")
        return state(hotel_area="north")

    with chat(reply) as service:
        tracker = tracker_of(service)
        assert states(tracker.predict(CONTEXTS)) == [{"hotel-area": "north"}] * 20
        tracker.predict(CONTEXTS[:1])
        assert format_of(asked_about(service)[-1]) == "prompt"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "this model's maximum context length is 128 tokens"),
        (401, "no such key"),
        (404, "the model does not exist; response_format"),
    ],
)
def test_other_refusals_are_failures_and_no_negotiation(status: int, message: str) -> None:
    with chat(lambda _: refusal(status, message)) as service:
        tracker = tracker_of(service)
        (found,) = states(tracker.predict(CONTEXTS[:1]))
        assert len(asked_about(service)) == 1
        tracker.predict(CONTEXTS[1:2])
        assert format_of(asked_about(service)[-1]) == "json_schema"
    assert f"answered {status}" in str(found)
    assert message in str(found)


def test_a_service_that_refuses_even_the_plain_prompt_fails() -> None:
    with chat(lambda _: refusal(400, "response_format!")) as service:
        (found,) = states(tracker_of(service).predict(CONTEXTS[:1]))
        assert len(asked_about(service)) == 3
    assert "response_format!" in str(found)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            completion("I would say north."),
            "not a belief state: it contains no JSON object; it begins with 'I would say north.'",
        ),
        (completion("x " * 200), "it begins with 'x x x"),
        (completion('{"hotel-area": "nor', finish="length"), "was cut off"),
        (completion(None), "has no text"),
        (
            completion(
                None,
                choices=[{"message": {"content": None, "refusal": "I cannot help with hotels."}}],
            ),
            "the model refused to answer: I cannot help with hotels.",
        ),
    ],
)
def test_what_is_no_state_is_an_error_and_is_not_asked_again(answer: Says, message: str) -> None:
    with chat(lambda _: answer) as service:
        (found,) = states(tracker_of(service).predict(CONTEXTS[:1]))
        assert len(asked_about(service)) == 1
    assert message in str(found)
    assert len(str(found)) < 200


FAULTY = {**FAULTS, "no choices": Says({"choices": []}), "no object": Says(b"[]")}


@pytest.mark.parametrize("fault", [*FAULTY, "each in turn"])
def test_a_service_that_fails_at_every_tenth_request_loses_no_turn(fault: str) -> None:
    kinds = list(FAULTY)

    def reply(asked: Asked) -> Says:
        # By what was said, so that the same requests fail whatever the order.
        number = int(said(asked)[-1].split()[1])
        if number % 10 == 3 and asked.number == 0:
            return FAULTY[kinds[number // 10 % len(kinds)] if fault == "each in turn" else fault]
        return echo(asked)

    many = 10 * len(kinds) if fault == "each in turn" else 20
    contexts = [Context((Exchange("", f"number {n} north"),)) for n in range(many)]
    # A machine that is busy may miss a short timeout where it should not: more retries.
    late = {"timeout": 1.0, "retries": 8} if fault in ("slow", "silent", "each in turn") else {}
    with chat(reply) as service:
        assert states(tracker_of(service, **late).predict(contexts)) == [
            {"hotel-area": "north", "hotel-stars": str(n)} for n in range(many)
        ]
        assert late or len(asked_about(service)) == many + many // 10


def test_what_retries_cannot_save_is_an_error_of_its_context_alone() -> None:
    def reply(asked: Asked) -> Says:
        broken = said(asked)[-1] == CONTEXTS[3].user
        return refusal(503, "busy") if broken else echo(asked)

    with chat(reply) as service:
        found = states(tracker_of(service, retries=1).predict(CONTEXTS))
    assert "answered 503" in str(found[3])
    assert "after 2 tries" in str(found[3])
    assert [item for item in found if isinstance(item, str)] == [found[3]]


def test_tokens_and_money_are_counted() -> None:
    def reply(asked: Asked) -> Says:
        if said(asked)[-1] == CONTEXTS[1].user:
            return completion("{}", usage=None)
        # Nothing that can be used, but it is paid for.
        return completion("no idea") if said(asked)[-1] == CONTEXTS[2].user else echo(asked)

    with chat(reply) as service:
        tracker = tracker_of(service, prices=(2.0, 10.0))
        tracker.predict(CONTEXTS)
    usage = usage_of(tracker)
    assert usage is not None
    assert (usage.answers, usage.uncounted) == (20, 1)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.tokens) == (190, 95, 285)
    assert usage.cost == pytest.approx((190 * 2.0 + 95 * 10.0) / 1e6)
    with chat(echo) as service:
        tracker = tracker_of(service)
        tracker.predict(CONTEXTS[:1])
        assert tracker.usage.cost is None


def test_the_only_model_needs_no_name() -> None:
    with chat(echo, ["gpt-a"]) as service:
        tracker_of(service).predict(CONTEXTS[:1])
        assert asked_about(service)[0].body["model"] == "gpt-a"
        tracker_of(service, service_model="gpt-b").predict(CONTEXTS[:1])
        assert asked_about(service)[1].body["model"] == "gpt-b"


@pytest.mark.parametrize(
    ("models", "message"),
    [(["b", "a"], r"at http://127\.0\.0\.1:\d+/v1 lists a, b"), ([], "lists no models")],
)
def test_one_of_several_models_has_to_be_named(models: list[str], message: str) -> None:
    with (
        chat(echo, models) as service,
        pytest.raises(
            UserError, match=f"{message}: name the model with --dst-tracker service-model=NAME"
        ),
    ):
        tracker_of(service)


def test_options_of_chat_models_are_refused_for_others() -> None:
    for name, value in (("service_model", "x"), ("prompt", "x"), ("prices", (1.0, 2.0))):
        settings = build_settings({"model": "trade", name: value})
        shown = name.replace("_", "-")
        with pytest.raises(
            UserError, match=rf"{shown} applies only to chat models \(openai\+http://"
        ):
            tracker_for(settings, DATA)


def test_disagreement_is_measured_before_a_run() -> None:
    def reply(asked: Asked) -> Says:
        # Two of eight contexts get another answer the second time.
        odd = said(asked)[-1] in (CONTEXTS[1].user, CONTEXTS[6].user) and asked.number == 1
        return state(hotel_area="south" if odd else "north")

    with chat(reply) as service:
        tracker = tracker_of(service)
        measured = preflight(tracker, CONTEXTS, ontology=DATA.ontology)
        assert measured == Disagreement(contexts=8, answers=3, differed=2)
        assert len(asked_about(service)) == 24 == tracker.usage.answers


def test_contexts_without_three_sound_answers_are_left_out_of_the_measure() -> None:
    def reply(asked: Asked) -> Says:
        if said(asked)[-1] == CONTEXTS[2].user:
            return completion("no idea")
        if said(asked)[-1] == CONTEXTS[4].user:
            return state(hotel_aera="north")  # An unknown slot.
        return state(hotel_area="north")

    with chat(reply) as service:
        measured = preflight(tracker_of(service), CONTEXTS, ontology=DATA.ontology)
    assert measured == Disagreement(contexts=6, answers=3, differed=0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (completion("no idea"), "it begins with 'no idea'"),
        (state(hotel_aera="north"), "the slot 'hotel-aera'.*did you mean 'hotel-area'"),
    ],
)
def test_a_service_without_one_sound_answer_is_refused(answer: Says, message: str) -> None:
    with (
        chat(lambda _: answer) as service,
        pytest.raises(UserError, match=f"the tracker cannot be tested: .*{message}"),
    ):
        preflight(tracker_of(service), CONTEXTS, ontology=DATA.ontology)


def test_an_address_that_is_none() -> None:
    with pytest.raises(UserError, match="'http://\\[::1' is not the address of a service"):
        tracker_for(build_settings({"model": "openai+http://[::1"}), DATA)


def test_the_api_may_be_under_any_path() -> None:
    with chat(echo) as service:
        settings = build_settings({"model": f"openai+{service.url}/v1/", "service_model": "m"})
        assert states(tracker_for(settings, DATA).predict(CONTEXTS[:1]))[0] != ""
        assert asked_about(service)[0].path == "/v1/chat/completions"
