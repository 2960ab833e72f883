"""Whole runs of pytest against services: broken ones, slow ones, and TRADE behind the server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from loopback import FAULTS, Asked, Says, Service
from test_serve import served

from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.web.contract import About

Serve = Callable[[Callable[[Asked], Says]], Service]
OPTIONS = ("--dst-turns=12", "--dst-variants=3", "--dst-fail-on=gate", "--dst-report=out.json")
AREAS = ("north", "south", "east", "west", "centre")


def draw(asked: Asked) -> int:
    """Return a number from 0 to 99 that is always the same for a dialogue."""
    return int(hashlib.sha256(json.dumps(asked.body).encode()).hexdigest(), 16) % 100


def bot(asked: Asked) -> Says:
    """Believe the areas that were named, and a name that changes with every edit."""
    if asked.method == "GET":
        return Says({"name": "bot"})
    users = [exchange["user"].lower() for exchange in asked.body["dialogue"]]
    state = {"hotel-name": users[-1]}
    areas = [area for user in users for area in AREAS if area in user]
    if areas:
        state["hotel-area"] = areas[-1]
    return Says({"state": state, "impurities": dict.fromkeys(state, 1 / 3)})


def grouped(asked: Asked) -> Says:
    """Be the same bot, and take several dialogues at once."""
    if asked.method == "GET":
        return Says({"name": "bot", "dialogues": 8})
    if "dialogues" not in asked.body:
        return bot(asked)
    alone = [replace(asked, body={"dialogue": one}) for one in asked.body["dialogues"]]
    return Says({"answers": [bot(one).body for one in alone]})


def run(pytester: pytest.Pytester, model: str, *options: str) -> dict[str, Any]:
    """Run pytest in this process and return its report, without what may differ."""
    pytester.runpytest_inprocess(f"--dst-model={model}", *OPTIONS, *options)
    report = read_report(pytester.path / "out.json")
    del report["run"], report["settings"]["model"]
    return report


def without_malformed(found: Any) -> Any:
    """Return a report without its counts of malformed answers, which are asked for again."""
    if isinstance(found, dict):
        return {
            key: without_malformed(value)
            for key, value in found.items()
            if key not in ("malformed", "malformed_share")
        }
    return [without_malformed(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize(("answer", "percent"), [(bot, 10), (grouped, 30)])
def test_ten_percent_of_the_calls_fail_and_no_turn_is_lost(
    pytester: pytest.Pytester, serve: Serve, answer: Callable[[Asked], Says], percent: int
) -> None:
    """Of groups, more: there are fewer calls, and all ways to fail should be among them."""
    faults = list(FAULTS.values())

    def shaky(asked: Asked) -> Says:
        number = draw(asked)
        # Each of the ten ways to fail has its share, at the first attempt or the first two; a
        # reply of another shape is asked for only once more.
        fault = faults[number % 10]
        last = 0 if fault is FAULTS["another shape"] else number % 2
        failing = number < percent and asked.number <= last
        return fault if failing and asked.method == "POST" else answer(asked)

    service = serve(shaky)
    # A machine that is busy may miss a short timeout where it should not: more retries.
    found = run(pytester, service.url, "--dst-tracker=timeout=0.3", "--dst-tracker=retries=8")
    assert without_malformed(found) == without_malformed(run(pytester, serve(bot).url))
    assert found["summary"]["errors"] == 0
    assert len(found["turns"]) == 12
    posts = sum(asked.method == "POST" for asked in service.asked)
    assert posts > len(service.times)


def test_what_retries_cannot_save_is_reported_as_errors(
    pytester: pytest.Pytester, serve: Serve
) -> None:
    def dead(asked: Asked) -> Says:
        failing = asked.method == "POST" and draw(asked) < 10
        return Says({"error": "out of order"}, 500) if failing else bot(asked)

    service = serve(dead)
    found = run(pytester, service.url, "--dst-tracker=retries=1")
    whole = run(pytester, serve(bot).url)
    errors = 0
    for turn, right in zip(found["turns"], whole["turns"], strict=True):
        if turn["outcome"] == "error":
            assert "answered 500 Internal Server Error" in turn["reason"] + str(turn["variants"])
        for variant, other in zip(turn["variants"], right["variants"], strict=False):
            if variant["outcome"] == "error":
                errors += 1
                assert f"{service.url} answered 500" in variant["reason"]
                assert variant["reason"].endswith("after 2 tries")
            elif turn["outcome"] != "error" and not variant["context"]:
                # What would make it smaller may have failed.
                assert {**variant, "minimal": None} == {**other, "minimal": None}
    assert errors == found["summary"]["errors"] > 0


def test_groups_that_always_fail_lose_no_turn(pytester: pytest.Pytester, serve: Serve) -> None:
    def refusing(asked: Asked) -> Says:
        together = asked.method == "POST" and "dialogues" in asked.body
        return Says({"error": "too large"}, 413) if together else grouped(asked)

    assert run(pytester, serve(refusing).url) == run(pytester, serve(bot).url)


def test_a_service_that_is_down_ends_the_run_with_a_message(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(
        "--dst-model=http://127.0.0.1:9", "--dst-tracker=retries=0"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "ERROR: the service at http://127.0.0.1:9 cannot be reached: *refused"
    result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "openai+http://127.0.0.1:9/v1"])
def test_where_builds_are_compared_a_service_that_is_down_is_infrastructure(
    pytester: pytest.Pytester, address: str
) -> None:
    baseline = ("--dst-baseline=base.json", "--dst-update-baseline")
    result = pytester.runpytest_inprocess(
        f"--dst-model={address}", "--dst-tracker=retries=0", *baseline
    )
    assert result.ret == 6
    said = "\n".join([*result.outlines, *result.errlines])
    assert re.search(r"cannot be reached: .*refused.*\(verdict: .*\(infrastructure\)\)", said)


def test_workers_ask_the_same_service(pytester: pytest.Pytester, serve: Serve) -> None:
    service = serve(grouped)
    assert run(pytester, service.url, "-n", "2") == run(pytester, service.url)


@pytest.mark.nightly
def test_trade_behind_the_server_gives_the_same_report(pytester: pytest.Pytester) -> None:
    options = ("--dst-search=random",)
    # Made first: torch must not be loaded anew after an inner run.
    with served(resolve_tracker("trade"), about=About("trade")) as address:
        inside = run(pytester, "trade", *options)
        outside = run(pytester, address, *options)
    assert outside == inside
    assert outside["summary"]["violations"] > 0


#: What the base install with the extra ``http`` does not have.
ABSENT = ("torch", "transformers", "tokenizers", "nltk", "gensim", "hypothesis", "jinja2")
ABSENT += ("matplotlib", "starlette", "uvicorn", "tensorboard")


@pytest.mark.usefixtures("new_processes")
def test_the_agent_needs_no_torch(pytester: pytest.Pytester, serve: Serve) -> None:
    """With gini impurities of the service, and without any package of the other extras."""
    pytester.makepyfile(
        absent=f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n",
    )
    service = serve(bot)
    result = pytester.runpytest_subprocess(
        "-p",
        "absent",
        "-p",
        "no:hypothesispytest",
        f"--dst-model={service.url}",
        "--dst-search=agent",
        *OPTIONS,
    )
    result.assert_outcomes(passed=12)
    report = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    assert report["settings"]["search"] == "agent"
    assert report["data"]["policy"]
    assert report["summary"]["violations"] > 0
