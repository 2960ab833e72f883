"""A service behind an address: what it said is used again only under the version it declares."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Asked, Says, Service

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import BatchInterrupt

Serve = Callable[[Callable[[Asked], Says]], Service]
OPTIONS = ("--dst-turns=8", "--dst-variants=2", "--dst-fail-on=gate", "--dst-report=out.json")


class Bot:
    """Says in which build it was made; a build that is deployed may declare a version."""

    def __init__(self) -> None:
        self.build = "first"
        self.version: str | None = None
        self.posts = 0

    def __call__(self, asked: Asked) -> Says:
        if asked.method == "GET":
            return Says({"name": "bot", **({"version": self.version} if self.version else {})})
        self.posts += 1
        return Says({"state": {"hotel-name": self.build}})


def states(pytester: pytest.Pytester, url: str) -> set[str]:
    """Run pytest in this process; return what the service believed at the clean turns."""
    pytester.runpytest_inprocess(f"--dst-model={url}", *OPTIONS)
    found: dict[str, Any] = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    return {turn["clean_state"]["hotel-name"] for turn in found["turns"]}


@pytest.mark.parametrize("version", [None, " "])
def test_without_a_version_a_new_build_is_asked_all_over(
    pytester: pytest.Pytester, serve: Serve, version: str | None
) -> None:
    bot = Bot()
    bot.version = version
    service = serve(bot)
    assert states(pytester, service.url) == {"first"}
    before, bot.build = bot.posts, "second"
    assert states(pytester, service.url) == {"second"}
    assert bot.posts == 2 * before


def test_a_version_decides_whether_a_service_is_asked_again(
    pytester: pytest.Pytester, serve: Serve
) -> None:
    bot = Bot()
    bot.version = "1"
    service = serve(bot)
    assert states(pytester, service.url) == {"first"}
    before = bot.posts
    assert states(pytester, service.url) == {"first"}
    assert bot.posts == before
    bot.build, bot.version = "second", "2"
    assert states(pytester, service.url) == {"second"}
    assert bot.posts > before


def test_a_version_that_is_deployed_during_a_run_leaves_no_answer(
    pytester: pytest.Pytester, serve: Serve
) -> None:
    bot = Bot()
    bot.version = "1"

    def deployed(asked: Asked) -> Says:
        if bot.posts == 5:
            bot.build, bot.version = "second", "2"
        return bot(asked)

    service = serve(deployed)
    result = pytester.runpytest_inprocess(f"--dst-model={service.url}", *OPTIONS)
    result.stdout.fnmatch_lines(["*changed its version from 1 to 2 during the run*"])
    assert result.ret != 0
    bot.build, bot.version, bot.posts = "first", "1", 6
    assert states(pytester, service.url) == {"first"}


def test_answers_of_a_service_that_hides_its_version_do_not_count(
    pytester: pytest.Pytester, serve: Serve
) -> None:
    bot = Bot()
    bot.version = "1"

    def deployed(asked: Asked) -> Says:
        if bot.posts == 5:
            bot.build = "second"
        # The gateway does not know the new description.
        hidden = bot.build == "second" and asked.method == "GET"
        return Says(how="hang-up") if hidden else bot(asked)

    service = serve(deployed)
    result = pytester.runpytest_inprocess(f"--dst-model={service.url}", *OPTIONS)
    result.stdout.fnmatch_lines(["*unknown whether the service still has version 1*"])
    bot.build, bot.posts = "first", 6
    assert states(pytester, service.url) == {"first"}


@pytest.mark.parametrize(("version", "kept"), [("1", True), ("2", False)])
def test_ctrl_c_keeps_no_answer_of_another_version(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, version: str, kept: bool
) -> None:
    # The time for the version after Ctrl-C. On a busy machine, the usual 2 seconds may be too few.
    monkeypatch.setattr("pytest_dstfuzz.trackers.web.transport._LATE", 60.0)
    bot = Bot()
    bot.version = "1"

    def deployed(asked: Asked) -> Says:
        if bot.posts == 3:
            bot.version = version
            os.kill(os.getpid(), signal.SIGINT)
        return bot(asked)

    tracker = tracker_for(
        Settings.of(model=serve(deployed).url, concurrency=1), DialogueSet("d", "test", ())
    )
    contexts = [Context((Exchange("", f"user {number}"),)) for number in range(9)]
    with pytest.raises(BatchInterrupt) as stopped:
        tracker.predict(contexts)
    assert bool(stopped.value.answers) == kept


def test_two_services_may_have_the_same_version(pytester: pytest.Pytester, serve: Serve) -> None:
    one, other = Bot(), Bot()
    one.version = other.version = "1"
    other.build = "other"
    assert states(pytester, serve(one).url) == {"first"}
    assert states(pytester, serve(other).url) == {"other"}
