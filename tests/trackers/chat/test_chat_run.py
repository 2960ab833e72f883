"""Chat models in whole runs of pytest: tokens and money, votes, failures, secrets."""

from __future__ import annotations

import json
import re
import zlib
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_server import (
    Reply,
    asked_about,
    chat,
    completion,
    format_of,
    prompt_of,
    refusal,
    said,
    state,
)
from loopback import FAULTS, Asked, Says
from loopback import Service as ChatService

from pytest_dstfuzz.config import build_settings
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.plugin.context import RunContext, TrackerFacts, TrackerPool
from pytest_dstfuzz.trackers.tracker import Usage

FEW = (
    "--dst-turns=6",
    "--dst-variants=3",
    "--dst-report=out.json",
    "--dst-max-failure-rate=100%",
    "--dst-seed=2",
)
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
TOKEN = "tok-4711-MARKER"  # noqa: S105 - what no text of a run may hold


def run(
    pytester: pytest.Pytester, service: ChatService, *options: str, few: tuple[str, ...] = FEW
) -> pytest.RunResult:
    return pytester.runpytest(f"--dst-model=openai+{service.url}", *few, *options)


def report_of(pytester: pytest.Pytester) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    return found


def calm(asked: Asked) -> Says:
    """Believe the first word of the newest utterance: some variants change it."""
    return state(hotel_name=said(asked)[-1].split()[0])


def moody(asked: Asked) -> Says:
    """As `calm`, but the first of three answers is an odd one for two of five contexts."""
    odd = zlib.crc32(" ".join(said(asked)).encode()) % 5 < 2 and asked.number % 3 == 0
    return state(hotel_name="acorn guest house") if odd else calm(asked)


def test_tokens_and_money_are_in_report_and_summary(pytester: pytest.Pytester) -> None:
    with chat(calm) as service:
        result = run(pytester, service, "--dst-tracker=prices=2,10")
        asked = len(asked_about(service))
    assert result.ret == pytest.ExitCode.OK
    report = report_of(pytester)
    assert report["run"]["usage"] == {
        "answers": asked,
        "uncounted": 0,
        "prompt_tokens": 10 * asked,
        "completion_tokens": 5 * asked,
        "cost": pytest.approx((10 * asked * 2 + 5 * asked * 10) / 1e6, abs=1e-4),
    }
    # The preflight asks three times for the first turns.
    assert report["run"]["disagreement"] == {"contexts": 6, "answers": 3, "differed": 0}
    assert report["run"]["contexts"]["asked"] == asked - 18
    tokens = f"tokens: {15 * asked:,} for {asked} answers: {10 * asked} of prompts, * by the prices"
    assert fnmatch(" ".join(result.stdout.str().split()), f"*; {tokens}*")
    assert "answers vary" not in result.stdout.str()


TALKS = [
    {"dialogue_id": f"d{number}", "users": ["A large one", "Make it thin", "At 8 pm please"]}
    for number in range(3)
]
LABELS = [{"size": "large"}, {"size": "large", "crust": "thin"}, {"size": "large", "crust": "thin"}]


def order(asked: Asked) -> Says:
    """Believe what was said, time included."""
    words = " ".join(said(asked)).lower()
    found = {"large": "size", "thin": "crust", "8 pm": "time"}
    return completion(json.dumps({slot: value for value, slot in found.items() if value in words}))


@pytest.mark.parametrize(
    ("labelled", "options", "listed", "format_name"),
    [
        (1, (), ["crust", "size"], "json_object"),
        (3, (), ["crust", "size"], "json_schema"),
        (1, ("--dst-slots=size,time",), ["size", "time"], "json_schema"),
        (0, ("--dst-slots=size,time,crust",), ["crust", "size", "time"], "json_schema"),
    ],
    ids=["some labels", "all labels", "slots and labels", "slots alone"],
)
def test_a_model_is_asked_for_the_slots_of_the_user(
    pytester: pytest.Pytester,
    labelled: int,
    options: tuple[str, ...],
    listed: list[str],
    format_name: str,
) -> None:
    talks = [
        {**talk, "states": LABELS} if place < labelled else talk for place, talk in enumerate(TALKS)
    ]
    path = pytester.path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    with chat(order) as service:
        result = run(pytester, service, "--dst-data=talks.jsonl", "-v", *options)
        asked = asked_about(service)
    prompt = prompt_of(asked[0])
    assert re.findall(r"^- ([a-z]+)(?: \(.*)?$", prompt, re.MULTILINE) == listed
    assert "hotel" not in prompt
    assert {format_of(item) for item in asked} == {format_name}
    some = labelled == 1 and not options
    assert ("There may be other slots" in prompt) is some
    printed = " ".join(result.stdout.str().split())
    assert ("3 of 9 turns have labels, in 1 of 3 dialogues" in printed) is (labelled == 1)
    if some:
        # What it answers is tested, whatever the labels name.
        states = [turn["clean_state"] for turn in report_of(pytester)["turns"]]
        assert {"crust": "thin", "size": "large", "time": "8 pm"} in states


def test_a_model_that_can_be_told_of_no_slot_is_not_asked(pytester: pytest.Pytester) -> None:
    path = pytester.path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, TALKS)), encoding="utf-8")
    with chat(order) as service:
        result = run(pytester, service, "--dst-data=talks.jsonl")
        assert asked_about(service) == []
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = (line for line in result.stderr.str().splitlines() if line.startswith("ERROR"))
    assert "name the slots with the option slots (--dst-slots=" in line
    assert "If the model replies to users, add --dst-outcome=reply" in line


def test_other_trackers_have_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot="def track(context):\n    return {'hotel-area': 'north'}")
    result = pytester.runpytest("--dst-model=mybot:track", *FEW)
    report = report_of(pytester)
    assert (report["run"]["usage"], report["run"]["disagreement"]) == (None, None)
    result.stdout.no_fnmatch_line("tokens *")


@WORKERS
def test_a_service_that_disagrees_with_itself_is_put_to_the_vote(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    with chat(calm) as service:
        run(pytester, service)
        expected = report_of(pytester)
    with chat(moody) as service:
        result = run(pytester, service, *workers)
        asked = len(asked_about(service))
    report = report_of(pytester)
    # What the workers and the preflight of their controller took, together.
    assert report["run"]["usage"]["answers"] == asked
    measured = report["run"]["disagreement"]
    assert 0 < measured["differed"] < measured["contexts"] == 6
    result.stdout.fnmatch_lines(
        [f"answers vary *{measured['differed']} of 6 contexts got different answers*"]
    )
    # Every odd answer was outvoted, so that what is left are the violations of the calm one.
    violations = [
        (turn["id"], variant["index"], variant["changed_slots"])
        for found in (expected, report)
        for turn in found["turns"]
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
    ]
    half = len(violations) // 2
    assert half > 0
    assert violations[:half] == violations[half:]
    assert report["summary"]["calls"] > expected["summary"]["calls"]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (("--dst-max-tokens=1800",), "the budget of 1,800 tokens ended"),
        (
            ("--dst-max-cost=0.00084", "--dst-tracker=prices=0.3,0.8"),
            "the budget of 0.00084 (max-cost) ended",
        ),
    ],
)
def test_a_budget_of_tokens_or_money_ends_the_run_in_order(
    pytester: pytest.Pytester, limit: tuple[str, ...], reason: str
) -> None:
    many = ("--dst-turns=60", *FEW[1:])
    with chat(calm) as service:
        result = run(pytester, service, "--dst-batch-size=4", *limit, few=many)
    # A part of the turns never passes the gate that this run has.
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    report = report_of(pytester)
    assert report["data"]["ended"].startswith(f"{reason} before ")
    outcomes = [turn["outcome"] for turn in report["turns"]]
    assert 0 < outcomes.count("skipped") < len(outcomes)
    # All answers take the same here, so that the limit is met to the token.
    assert report["run"]["usage"]["answers"] == 120
    result.stdout.fnmatch_lines([f"*{reason}: the rest is skipped*"])


def test_workers_share_what_the_preflight_left_of_a_budget() -> None:
    spent = TrackerFacts(usage=Usage(24, 0, 240, 120, 0.4))
    given = {"dstfuzz": {"facts": to_json(spent), "ends": None}}
    for limit in ({"max_tokens": 960}, {"max_cost": 1.0, "prices": (1.0, 1.0)}):
        config: Any = SimpleNamespace(workerinput={**given, "workercount": 2})
        context = RunContext(config, build_settings(limit), model_on_command_line=True)
        budget = TrackerPool(context, lambda _: None).budget
        tracker = SimpleNamespace(usage=Usage(cost=0.0))
        budget.watch(tracker)
        tracker.usage = Usage(19, 0, 190, 95, 0.29)
        assert budget.ended == ""
        tracker.usage = Usage(20, 0, 200, 100, 0.3)
        assert budget.ended


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--dst-max-cost=1",),
            "--dst-max-cost needs prices: add --dst-tracker prices=IN,OUT*",
        ),
        (
            ("--dst-tracker=prices=1",),
            "--dst-tracker prices: '1' must be two prices*such as 0.15,0.6",
        ),
        (
            ("--dst-tracker=prices=1,-2",),
            "--dst-tracker prices: '1,-2' must be two prices*",
        ),
        (("--dst-max-tokens=0",), "--dst-max-tokens: '0' must be a whole number of at least 1"),
        (
            ("--dst-tracker=prompt=nowhere.jinja",),
            "cannot read the prompt nowhere.jinja: No such file*",
        ),
    ],
)
def test_mistakes_are_one_message(
    pytester: pytest.Pytester, options: tuple[str, ...], message: str
) -> None:
    with chat(calm) as service:
        result = run(pytester, service, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert len(result.stderr.lines) <= 2


def test_a_budget_that_cannot_be_kept_is_refused(pytester: pytest.Pytester) -> None:
    with chat(lambda _: completion("{}", usage=None)) as service:
        result = run(pytester, service, "--dst-max-tokens=900")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --dst-max-tokens cannot be enforced: the service does not report the tokens*"]
    )
    pytester.makepyfile(mybot="def track(context):\n    return {'hotel-area': 'north'}")
    result = pytester.runpytest("--dst-model=mybot:track", "--dst-max-tokens=900", *FEW)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --dst-max-tokens cannot be enforced: the tracker does not count tokens*"]
    )


def failing(kinds: dict[str, Says], *, for_good: bool) -> Reply:
    """Fail for one of ten contexts, at the first attempt or at all of them."""
    names = list(kinds)

    def reply(asked: Asked) -> Says:
        number = zlib.crc32(" ".join(said(asked)).encode())
        if len(said(asked)) > 1 and number % 10 == 3 and (for_good or asked.number == 0):
            return kinds[names[number // 10 % len(names)]]
        return calm(asked)

    return reply


def test_failures_that_pass_lose_no_turn_and_change_no_byte(pytester: pytest.Pytester) -> None:
    reports = []
    for reply in (calm, failing(FAULTS, for_good=False)):
        with chat(reply) as service:
            # A machine that is busy may miss a short timeout where it should not: more retries.
            result = run(pytester, service, "--dst-tracker=timeout=1", "--dst-tracker=retries=8")
            assert result.ret == pytest.ExitCode.OK
        reports.append({**report_of(pytester), "run": None, "settings": None})
    assert reports[0] == reports[1]
    assert reports[0]["summary"]["errors"] == 0


def test_failures_that_stay_are_errors_of_their_variants(pytester: pytest.Pytester) -> None:
    with chat(failing({"500": refusal(500, "broken")}, for_good=True)) as service:
        result = run(pytester, service, "--dst-tracker=retries=1")
    summary = report_of(pytester)["summary"]
    assert summary["errors"] > 0
    assert summary["held"] > 0
    result.stdout.fnmatch_lines(["error *answered 500 *"])


def test_a_token_appears_nowhere(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", TOKEN)

    def reply(asked: Asked) -> Says:
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        shouted = f"I know your key {asked.headers['authorization']}"
        if "book" in said(asked)[-1]:
            return refusal(401, shouted)
        return completion(shouted) if "the" in said(asked)[-1] else calm(asked)

    with chat(reply) as service:
        result = run(pytester, service, "-v", "--tb=long", "--junitxml=junit.xml", "-s")
        assert report_of(pytester)["summary"]["errors"] > 0
    assert "I know your key" in result.stdout.str()
    texts = [result.stdout.str(), result.stderr.str()]
    texts += [path.read_text("utf-8") for path in _files(pytester.path)]
    assert [text for text in texts if TOKEN in text or "MARKER" in text] == []


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def test_a_function_of_ones_own_may_say_that_it_varies(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        mybot="""
        import itertools
        counter = itertools.count()
        def track(context):
            return {"hotel-area": "south" if next(counter) % 5 == 0 else "north"}
        """
    )
    refused = pytester.runpytest("--dst-model=mybot:track", *FEW)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    with (pytester.path / "mybot.py").open("a", encoding="utf-8") as file:
        file.write("\ntrack.repeatable = False\n")
    result = pytester.runpytest_subprocess("--dst-model=mybot:track", *FEW)
    assert result.ret == pytest.ExitCode.OK
    measured = report_of(pytester)["run"]["disagreement"]
    assert measured["differed"] > 0
