"""A service that takes several dialogues at once: asked in groups, and nothing lost by it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from loopback import FAULTS, Asked, Says, Service
from test_web_tracker import context, echo, web

from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.tracker import BatchInterrupt

Serve = Callable[[Callable[[Asked], Says]], Service]
Answer = Callable[[Asked], Says]
USERS = [f"user {number} {'really ' * (number * 7 % 10)}" for number in range(40)]


def grouping(most: int, together: Answer, alone: Answer = echo) -> Answer:
    """Declare how many dialogues a request may hold."""

    def answer(asked: Asked) -> Says:
        if asked.method == "GET":
            return Says({"dialogues": most})
        return (together if "dialogues" in asked.body else alone)(asked)

    return answer


def parts(asked: Asked) -> list[Any]:
    """Answer each dialogue of a group as a request for it alone."""
    return [echo(replace(asked, body={"dialogue": one})).body for one in asked.body["dialogues"]]


def echoes(asked: Asked) -> Says:
    return Says({"answers": parts(asked)})


def never(asked: Asked) -> Says:
    raise AssertionError(f"not to be asked: {asked}")


def sizes(service: Service) -> list[int]:
    """How many dialogues each request held, 0 where it was of the form for one."""
    posts = [asked.body for asked in service.asked if asked.method == "POST"]
    return [len(body.get("dialogues", ())) for body in posts]


@pytest.mark.parametrize(
    ("most", "concurrency", "count", "expected"),
    [
        # All connections are used, evenly.
        (64, 5, 40, [8] * 5),
        (64, 16, 40, [4] * 10),
        (64, 6, 40, [6, 6, 7, 7, 7, 7]),
        # No more than the service takes.
        (3, 2, 8, [2, 3, 3]),
        (1, 16, 4, [1] * 4),
        # Few are not worth a request each.
        (64, 16, 8, [4, 4]),
        (64, 16, 5, [2, 3]),
        (64, 16, 1, [1]),
        (64, 16, 0, []),
    ],
)
def test_groups_are_as_large_as_connections_and_service_want_them(
    serve: Serve, most: int, concurrency: int, count: int, expected: list[int]
) -> None:
    service = serve(grouping(most, echoes, alone=never))
    tracker = web(service, concurrency=concurrency)
    answers = tracker.predict([context("hi", user) for user in USERS[:count]])
    assert [answer.state for answer in answers] == [{"hotel-area": u} for u in USERS[:count]]
    assert sorted(sizes(service)) == expected


def test_a_group_is_of_similar_length(serve: Serve) -> None:
    service = serve(grouping(64, echoes))
    web(service, concurrency=8).predict([context(user) for user in USERS])
    spans = sorted(
        (min(lengths), max(lengths))
        for asked in service.asked
        if asked.method == "POST"
        for lengths in [[len(one[0]["user"]) for one in asked.body["dialogues"]]]
    )
    assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(spans))


def test_who_does_not_declare_it_is_asked_for_one_at_a_time(serve: Serve) -> None:
    service = serve(echo)
    web(service).predict([context(user) for user in USERS])
    assert sizes(service) == [0] * 40


def test_a_dialogue_that_fails_is_a_failure_of_its_own(serve: Serve) -> None:
    def together(asked: Asked) -> Says:
        failed = {"error": "the tracker\nfailed"}
        return Says(
            {"answers": [failed if USERS[3] in str(part) else part for part in parts(asked)]}
        )

    service = serve(grouping(64, together, alone=never))
    answers = web(service).predict([context(user) for user in USERS])
    assert [place for place, one in enumerate(answers) if isinstance(one, TrackerError)] == [3]
    assert str(answers[3]) == f"the service at {service.url} has no answer: the tracker failed"
    assert sum(sizes(service)) == 40


REFUSALS = {
    "400": Says({"error": "too long"}, 400),
    "413": Says(b"<html>too large</html>", 413),
    "422": Says({"error": "one of them fails"}, 422),
    "500": Says({"error": "out of memory"}, 500),
    "one answer": Says({"state": {}}),
    "too few": Says({"answers": []}),
    "malformed": Says({"answers": [{"state": {"hotel-area": 3}}] * 5}),
    "silent": FAULTS["silent"],
}


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_group_that_fails_is_asked_one_by_one(serve: Serve, fault: str) -> None:
    """With the retries of each; and who cannot do it is not asked for groups for ever."""

    def alone(asked: Asked) -> Says:
        return Says(status=503, headers={"Retry-After": "0"}) if asked.number == 0 else echo(asked)

    service = serve(grouping(5, lambda _: REFUSALS[fault], alone))
    tracker = web(service, timeout=0.5 if fault == "silent" else 30.0, retries=1, concurrency=4)
    for _ in range(2):
        answers = tracker.predict([context(user) for user in USERS[:10]])
        assert [answer.state for answer in answers] == [{"hotel-area": u} for u in USERS[:10]]
    tries = 1 if fault in ("400", "413", "422") else 2
    # Alone: twice in the first call, where the service is busy at first, and once in the second.
    assert sorted(sizes(service)) == [0] * 30 + sorted([3, 3, 4] * tries)


def test_groups_stay_where_one_dialogue_is_too_much_for_the_service(serve: Serve) -> None:
    def fragile(answer: Answer) -> Answer:
        return lambda asked: (
            Says({"error": "boom"}, 500) if USERS[3] in str(asked.body) else answer(asked)
        )

    service = serve(grouping(4, fragile(echoes), fragile(echo)))
    tracker = web(service, retries=0, concurrency=4)
    for _ in range(2):
        answers = tracker.predict([context(user) for user in USERS[:8]])
        assert [place for place, one in enumerate(answers) if isinstance(one, TrackerError)] == [3]
        assert str(answers[3]).startswith(f"the service at {service.url} answered 500")
    assert sorted(sizes(service)) == [0] * 8 + [4] * 4


def test_a_group_may_take_as_long_as_its_dialogues_alone(serve: Serve) -> None:
    def slow(asked: Asked) -> Says:
        time.sleep(0.3)
        return echoes(asked)

    service = serve(grouping(16, slow, alone=never))
    answers = web(service, timeout=0.2, concurrency=1).predict([context(u) for u in USERS[:16]])
    assert not any(isinstance(answer, TrackerError) for answer in answers)
    assert sizes(service) == [16]


@pytest.mark.skipif(sys.platform == "win32", reason="no signal for one thread there")
def test_an_interrupt_keeps_the_answers_of_groups_and_of_single_requests(serve: Serve) -> None:
    """The first group is answered, the second refused; its third dialogue interrupts.

    Requests are made one after another: that of the third goes out when the second is answered.
    """

    def together(asked: Asked) -> Says:
        return Says(status=400) if "user 4" in str(asked.body) else echoes(asked)

    def alone(asked: Asked) -> Says:
        if "user 6" not in str(asked.body):
            return echo(asked)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return replace(echo(asked), how="silence")

    service = serve(grouping(4, together, alone))
    tracker = web(service, concurrency=1)
    with pytest.raises(BatchInterrupt) as caught:
        tracker.predict([context(f"user {number}") for number in range(8)])
    assert sorted(caught.value.answers) == [0, 1, 2, 3, 4, 5]
