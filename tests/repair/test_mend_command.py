"""``dstfuzz mend`` as its users run it: on the JSON report of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hotel_talks import write_run

from pytest_dstfuzz import UserError
from pytest_dstfuzz.repair.commands import MEND


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The report of a bot with rules, in the folder of the bot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return write_run(tmp_path, re.sub(r"\W", "_", request.node.name), search="noise")


def changed(report: Path, **parts: Any) -> Path:
    content = json.loads(report.read_text("utf-8"))
    for name, value in parts.items():
        content[name] = {**content[name], **value} if isinstance(value, dict) else value
    path = report.with_name("other.json")
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_it_prints_both_halves_and_writes_words(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = report.with_name("words.txt")
    assert MEND.run([str(report), "--words", str(words)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"vocabulary, first half +\d+ of \d+", out)
    assert "put vocabulary before the bot" in out
    assert re.search(r"mended: \d.*holds", out)
    assert re.search(r"failures of 1,000 turns behind it: \d.*; second half \d", out)
    written = words.read_text("utf-8").splitlines()
    assert written == sorted(written)
    assert {"harbour", "zlorbine"} <= set(written)


def test_the_same_report_gives_the_same_bytes(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for _ in range(2):
        assert MEND.run([str(report), "--json", "--dialogues", "12"]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    figures = json.loads(found[0])
    assert figures["advised"] == "vocabulary"
    assert [one["first_half"]["dialogues"] for one in figures["remedies"]] == [6] * 4
    assert MEND.run([str(report), "--json", "--dialogues", "12", "--seed", "1"]) == 0
    assert capsys.readouterr().out != found[0]


def test_a_bot_that_needs_none_ends_with_status_1(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.with_name("deaf_bot.py").write_text("def track(context): return {}\n", "utf-8")
    assert MEND.run([str(report), "--model", "deaf_bot:track"]) == 1
    assert "no remedy" in capsys.readouterr().out


@pytest.mark.parametrize(("every", "status"), [(3, 1), (61, 0)])
def test_a_bot_that_fails_is_no_bot_that_breaks(
    report: Path, capsys: pytest.CaptureFixture[str], every: int, status: int
) -> None:
    name = json.loads(report.read_text("utf-8"))["settings"]["model"].partition(":")
    report.with_name("flaky_bot.py").write_text(
        f"import {name[0]}\n"
        "def track(context):\n"
        f"    if sum(map(ord, context.user)) % {every} == 0: raise OSError('out of order')\n"
        f"    return {name[0]}.{name[2]}(context)\n",
        "utf-8",
    )
    assert MEND.run([str(report), "--model", "flaky_bot:track"]) == status
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"\d+ turns? left out, because the bot failed on \d+ context", out)
    assert ("none: the bot failed on" in out) == (status == 1)
    left = MEND.run([str(report), "--model", "flaky_bot:track", "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert left == status
    assert figures["failures"] >= figures["left_out"] > 0
    assert bool(figures["trouble"]) == (status == 1)


def test_other_dialogues_are_refused(report: Path) -> None:
    other = report.with_name("rooms.jsonl")
    text = other.read_text("utf-8")
    other.write_text(text.replace("I would like", "I'd like"), "utf-8")
    with pytest.raises(UserError, match="--data"):
        MEND.run([str(report)])
    other.write_text(
        text.replace('"r0', '"s0').replace('"r1', '"s1').replace('"r2', '"s2'), "utf-8"
    )
    with pytest.raises(UserError, match="not in the data"):
        MEND.run([str(report)])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"settings": {"redact": True}}, "--dst-redact"),
        ({"models": [{}]}, "several bots"),
        ({"settings": {"model": None}}, "--model"),
    ],
)
def test_reports_that_cannot_be_used_are_refused(
    report: Path, part: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        MEND.run([str(changed(report, **part))])


@pytest.mark.parametrize("name", ["report.json", "rooms.jsonl"])
def test_inputs_are_not_overwritten(report: Path, name: str) -> None:
    path = report.with_name(name)
    before = path.read_bytes()
    with pytest.raises(UserError, match="same file"):
        MEND.run([str(report), "--words", str(path)])
    assert path.read_bytes() == before
