"""Where new violations are shown, and that known ones are not shown as news."""

from __future__ import annotations

import html
import re

import pytest

# Loaded before any inner run, which forgets the modules that it was the first to load.
import pytest_dstfuzz.gate.comparison
import pytest_dstfuzz.plugin.hooks  # noqa: F401
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.report.view import views_of

BOTS = """
from pytest_dstfuzz.dialogue.load import load_dialogues

CLEAN = {turn.user for each in load_dialogues("sample").dialogues for turn in each.turns}

def state(context, every):
    broken = context.user not in CLEAN and len(context.user) % every == 0
    name = {"hotel-name": "x"} if broken else {}
    return {"hotel-book stay": str(len(context.exchanges)), **name}

def old(context):
    return state(context, 4)

def new(context):
    return state(context, 2)
"""


def test_new_violations_come_first_and_known_ones_are_no_annotations(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(mybot=BOTS)

    def run(model: str, *options: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(
            f"--dst-model=mybot:{model}",
            *("--dst-baseline=base.json", "--dst-turns=12", "--dst-variants=3"),
            *("--dst-annotations=yes", "--dst-report=out.json", "-pno:cacheprovider"),
            *options,
        )

    assert run("old", "--dst-update-baseline").ret == 0
    same = run("old", "-v")
    assert same.ret == 0
    same.stdout.no_fnmatch_line("::*")
    same.stdout.fnmatch_lines(["*variant * (known: also in the baseline)"])
    worse = run("new")
    assert worse.ret == 1
    report = read_report(pytester.path / "out.json")
    names = report["gate"]["comparison"]["violations"]["new"]
    worse.stdout.fnmatch_lines([f"{len(names)} new violation* since the baseline*", "*user: *"])
    commands = [line for line in worse.outlines if line.startswith("::")]
    assert commands
    assert all(line.startswith("::error title=new violation") for line in commands)
    for text in (markdown_text(views_of(report)), html.unescape(html_text(report))):
        heading = f"{len(names)} new violation"
        shown = re.split(f"{heading}s? since the baseline", html.unescape(text))[-1]
        assert names[0].rpartition("-v")[0] in shown
        assert "--dst-baseline=base.json --dst-update-baseline" in re.sub("<[^>]*>", "", shown)
