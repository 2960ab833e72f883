"""Texts of failed tests: five of each weakness in full, and a line for each other one."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

SAID = "please would you find us some quiet rooms in the north for later"
#: Loses the area if the user says anything else.
BOT = f"""
def fragile(context):
    return {{"hotel-area": "north"}} if context.user == {SAID!r} else {{}}
"""
DIALOGUES = 8
ARGS = ("--dst-model=bots:fragile", "--dst-data=talks.jsonl", "--dst-search=random")
ARGS += ("--dst-validity=natural", "--dst-variants=2", "--dst-turns=all", "--dst-fail-on=violation")
# A slip in the value itself would be another weakness.
ARGS += ("--dst-edits=char-replace", "--dst-lock=north", "--junitxml=junit.xml")
LINE = re.compile(
    r"slip in unrelated word, value lost \| \w+ -> \w+ \| hotel-area: north -> none \| -v: in full"
)


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOT)
    turns = [{"system": "", "user": SAID}]
    talks = [{"dialogue_id": f"p{n}", "turns": turns} for n in range(DIALOGUES)]
    Path("talks.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    return pytester


def texts(result: pytest.RunResult) -> dict[str, str]:
    """Return the name of each failed turn with its text in the section of failures."""
    shown = result.stdout.str().partition("= FAILURES =")[2]
    shown = re.split(r"^(?:=+ [a-z ]+ =+|- generated .*)$", shown, flags=re.MULTILINE)[0]
    parts = re.split(r"^_+ \S*\[(\S+)\] _+$", shown, flags=re.MULTILINE)[1:]
    # With workers, pytest adds a line about each.
    found = (re.sub(r"^\[gw\d\].*\n", "", text.strip()) for text in parts[1::2])
    return dict(zip(parts[::2], found, strict=True))


def test_five_of_a_weakness_are_shown_in_full_whatever_the_order(folder: pytest.Pytester) -> None:
    found = texts(folder.runpytest(*ARGS))
    assert len(found) == DIALOGUES
    in_lines = sorted(name for name, text in found.items() if LINE.fullmatch(text))
    # A turn with violations of two weaknesses is shown in full for either.
    assert in_lines
    assert set(in_lines) <= {f"talks-test-p{n}-t0" for n in range(5, DIALOGUES)}
    for name, text in found.items():
        assert name in in_lines or 5 < len(text.splitlines()) <= 15
    spread = texts(folder.runpytest_subprocess(*ARGS, "-n", "2"))
    assert spread == found


def test_verbose_runs_and_junit_have_all_in_full(folder: pytest.Pytester) -> None:
    folder.runpytest(*ARGS)
    root = ET.parse("junit.xml").getroot()  # noqa: S314 - ours
    failures = [one.text or "" for one in root.iter("failure")]
    assert len(failures) == DIALOGUES
    assert all("repeat with: " in text for text in failures)
    shown = texts(folder.runpytest(*ARGS, "-v"))
    assert len(shown) == DIALOGUES
    assert all("repeat with: " in text for text in shown.values())


def test_a_regression_of_a_long_dialogue_fits_too(folder: pytest.Pytester) -> None:
    turns = [{"system": f"that is {n}", "user": f"and number {n}"} for n in range(12)]
    talk = {"dialogue_id": "long", "turns": [*turns, {"system": "well?", "user": SAID}]}
    Path("talks.jsonl").write_text(json.dumps(talk), encoding="utf-8")
    folder.runpytest(*ARGS, "--dst-remember")
    found = texts(folder.runpytest(*ARGS, "-k", "regression"))
    assert found
    for text in found.values():
        assert "is still broken" in text
        assert SAID in text
        assert text.count("dstfuzz accept ") == 2
        assert len(text.splitlines()) <= 15
