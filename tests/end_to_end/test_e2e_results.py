"""Folders of results, parts of a run, workers, the cache, and runs that end early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from seaside import CALLS, KINDS, REPLIES, STATES, VIOLATIONS, BotKind
from user_runs import Done, body, run_command, run_pytest

REPORT = "--dst-report=report.json"


def campaign(folder: Path, kind: BotKind, results: str, *options: str) -> Done:
    """Run `dstfuzz campaign` with the options that pytest has."""
    words = [option.replace("--dst-", "--") for option in kind.run_options()]
    return run_command(folder, "campaign", *words, "--results", results, *options)


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> BotKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def whole(kind: BotKind, new_folder: Callable[[], Path]) -> Done:
    """A folder with the report of a run of pytest, and with the same run in two parts."""
    done = run_pytest(new_folder(), *kind.run_options(), REPORT, "--dst-cache=no")
    for part in (1, 2):
        shard = campaign(done.folder, kind, f"part-{part}", "--shard", f"{part}/2")
        assert shard.status == 0
    return done


def test_a_campaign_reports_what_pytest_does(kind: BotKind, whole: Done) -> None:
    done = campaign(whole.folder, kind, "results", "--report", "campaign.json")
    assert done.status == 0
    assert body(whole.folder, "campaign.json") == body(whole.folder)
    # The folder is complete: the same command asks nothing more.
    campaign(whole.folder, kind, "results", "--report", "again.json")
    assert body(whole.folder, "again.json") == body(whole.folder)
    assert campaign(whole.folder, kind, "results", "--seed", "3").status == 2


def test_the_parts_of_a_run_make_the_whole(whole: Done) -> None:
    merge = ("merge", "part-2", "part-1", "--output", "merged", "--report", "merged.json")
    assert run_command(whole.folder, *merge).status == 0
    assert body(whole.folder, "merged.json") == body(whole.folder)
    judged = run_pytest(whole.folder, "--dst-results=merged", "--dst-report=judged.json")
    assert judged.status == 1
    assert body(whole.folder, "judged.json") == body(whole.folder)


def test_parts_share_the_dialogues_between_them(whole: Done) -> None:
    assert run_command(whole.folder, "merge", "part-1", "--output", "half").status == 2
    assert not (whole.folder / "half").exists()
    assert run_pytest(whole.folder, "--dst-results=part-1").status == 4


def test_a_folder_is_judged_by_limits_and_baselines(folder: Path) -> None:
    campaign(folder, STATES, "nightly")
    judge = ("--dst-results=nightly", REPORT)
    for limit, status in (("10%", 1), ("50%", 0)):
        done = run_pytest(folder, *judge, f"--dst-max-failure-rate={limit}")
        assert (done.status, len(done.json()["gate"]["findings"])) == (status, 1)
    baseline = (*judge, "--dst-baseline=nightly.json")
    assert run_pytest(folder, *baseline, "--dst-update-baseline").status == 0
    done = run_pytest(folder, *baseline)
    assert (done.status, done.json()["gate"]["verdict"]) == (0, "pass")
    assert done.json()["gate"]["comparison"]["variants"] == 75


def asked(folder: Path) -> int:
    return len((folder / "asked.txt").read_text(encoding="utf-8").splitlines())


def test_answers_are_kept_for_the_next_run(fresh: Path) -> None:
    run = ("--dst-model=statebot:Counted", "--dst-data=stays.jsonl", REPORT)
    first = run_pytest(fresh, *run)
    known = body(fresh)
    once = asked(fresh)
    contexts = first.json()["run"]["contexts"]
    assert (contexts["recalled"], 0 < contexts["asked"] <= once) == (0, True)
    again = run_pytest(fresh, *run)
    assert again.json()["run"]["contexts"] == {"asked": 0, "recalled": contexts["asked"]}
    assert (asked(fresh), body(fresh)) == (once, known)
    run_pytest(fresh, *run, "--dst-cache=no")
    assert (asked(fresh), body(fresh)) == (2 * once, known)
    run_pytest(fresh, *run, "--dst-cache=mine.cache")
    assert (fresh / "mine.cache").is_file()


BUDGET = (REPORT, "--dst-cache=no", "--dst-max-calls=40")


LIMIT = "--dst-max-failure-rate=50%"


@pytest.mark.parametrize(("limit", "verdict"), [((), None), ((LIMIT,), "pass")])
def test_a_budget_ends_a_run_in_the_middle(
    folder: Path, limit: tuple[str, ...], verdict: str | None
) -> None:
    done = run_pytest(folder, *STATES.run_options("sturdy"), *BUDGET, *limit)
    report = done.json()
    assert done.status == 0
    assert report["data"]["ended"]
    assert report["run"]["contexts"]["asked"] <= 40
    # Each turn has its first variant before one has its second.
    assert {len(turn["variants"]) for turn in report["turns"]} == {1, 2}
    assert all(len(turn["variants"]) + turn["left_out"] == 5 for turn in report["turns"])
    assert (report["gate"] or {}).get("verdict") == verdict


def test_a_budget_that_covers_few_turns_passes_no_gate(folder: Path) -> None:
    few = (REPORT, "--dst-cache=no", "--dst-max-calls=8", LIMIT)
    done = run_pytest(folder, *STATES.run_options("sturdy"), *few)
    assert (done.status, done.json()["gate"]["verdict"]) == (1, "infrastructure")


def test_a_budget_is_no_verdict_on_a_build(folder: Path) -> None:
    compared = (*STATES.run_options("sturdy"), "--dst-baseline=budget.json", REPORT)
    run_pytest(folder, *compared, "--dst-update-baseline")
    done = run_pytest(folder, *compared, "--dst-cache=no", "--dst-max-calls=8")
    assert (done.status, done.json()["gate"]["verdict"]) == (6, "infrastructure")


#: Words of users, and of answers, that stand in no name.
SAID = {
    "state": ("kosher", "parents", "harbour", "lovely"),
    "reply": ("included", "bathroom", "key card", "towels"),
    "tool-calls": ("thursday", "saturday", "coming", "look after the rooms"),
}


@pytest.mark.parametrize("kind_name", list(KINDS))
def test_a_redacted_run_says_nothing_that_was_said(fresh: Path, kind_name: str) -> None:
    files = ("report.json", "page.html", "junit.xml", "base.json")
    options = (
        *("--dst-redact", "--dst-report=report.json", "--dst-report=page.html"),
        *("--junitxml=junit.xml", "--dst-baseline=base.json", "--dst-update-baseline"),
        *("--dst-annotations=yes", "-v", "--dst-fail-on=violation"),
    )
    done = run_pytest(fresh, *KINDS[kind_name].run_options(), *options)
    assert done.status == 1
    texts = [done.printed, *(done.text(name) for name in files)]
    for said in SAID[kind_name]:
        assert not [text for text in texts if said in text.lower()], said
    assert done.json()["summary"]["violations"] > 0


def test_what_was_said_is_not_remembered_by_a_redacted_run(fresh: Path) -> None:
    done = run_pytest(fresh, *STATES.run_options(), "--dst-redact", "--dst-remember")
    assert done.status == 4
    assert not (fresh / ".dstfuzz").exists()


@pytest.mark.parametrize(
    ("kind", "bot", "options", "violations"),
    [
        (STATES, "moody", ["--dst-repeatable=no"], 0),
        (STATES, "moody", ["--dst-repeatable=no", "-odst_votes=5"], 0),
        (STATES, "moody", ["--dst-repeatable=no", "-odst_noise_floor=5"], 0),
        (STATES, "fragile", ["--dst-repeatable=no"], VIOLATIONS["state"]),
        (STATES, "fragile", ["--dst-repeatable=no", "--dst-error-rate=5%"], VIOLATIONS["state"]),
        (REPLIES, "reply", ["--dst-error-rate=5%"], 11),
        (CALLS, "answer", ["-odst_noise_floor=4"], VIOLATIONS["tool-calls"]),
    ],
)
def test_answers_that_vary_are_put_to_the_vote(
    folder: Path, kind: BotKind, bot: str, options: list[str], violations: int
) -> None:
    done = run_pytest(folder, *kind.run_options(bot), REPORT, *options)
    summary = done.json()["summary"]
    assert summary["violations"] == violations
    assert summary["noise"]["turns"] == summary["turns_tested"]
    assert (summary["noise"]["disagreement"] > 0) == (bot == "moody")
