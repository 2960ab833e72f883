"""The adapter against a real Rasa server, where the environment names one.

``DSTFUZZ_RASA`` is the address of a bot that was started with ``--enable-api`` and the REST
channel, such as ``http://localhost:5005``, and ``DSTFUZZ_RASA_SAYS`` a message at which it fills a
slot.
"""

from __future__ import annotations

import json
import os

import pytest
from rasa_server import RasaServer, serving

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.rasa.tracker import RasaTracker, create
from pytest_dstfuzz.trackers.schemes import Header, ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction

ADDRESS = os.environ.get("DSTFUZZ_RASA", "")
SAYS = os.environ.get("DSTFUZZ_RASA_SAYS", "")
DATA = DialogueSet("own", "test", ())

pytestmark = pytest.mark.skipif(
    not (ADDRESS and SAYS), reason="DSTFUZZ_RASA and DSTFUZZ_RASA_SAYS name no Rasa bot"
)


def connect(address: str, **service: object) -> RasaTracker:
    asked = ServiceSettings(**{"timeout": 30.0, "retries": 1} | service)  # type: ignore[arg-type]
    return create(address, asked, DATA, Settings())


def test_a_message_fills_a_slot_each_time_anew() -> None:
    tracker = connect(ADDRESS)
    context = Context((Exchange("", SAYS),))
    first, second = tracker.predict([context, context])
    assert isinstance(first, Prediction)
    assert isinstance(second, Prediction)
    assert first.state == second.state != {}


def test_the_server_of_the_tests_refuses_what_the_real_one_refuses() -> None:
    with serving(RasaServer(as_described=False)) as server:
        for address in (ADDRESS, server.url):
            for accepted in ("text/html", "*/*"):
                with pytest.raises(UserError, match="answered 406"):
                    connect(address, headers=(Header("Accept", accepted),))


def test_a_run_with_the_documented_options(pytester: pytest.Pytester) -> None:
    line = json.dumps({"dialogue_id": "d", "users": [SAYS]})
    (pytester.path / "bookings.jsonl").write_text(line, encoding="utf-8")
    ran = pytester.runpytest_inprocess(
        f"--dst-model=rasa+{ADDRESS}", "--dst-data=bookings.jsonl", "--dst-fail-on=gate", "-v"
    )
    ran.assert_outcomes(passed=1)
