"""The page of an audit: blind, harmless, and its export is what the command reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from pytest_dstfuzz.audit.page import page_text
from pytest_dstfuzz.audit.record import Audit
from pytest_dstfuzz.audit.sample import Draw, draw_sample
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.cli import main

Turns = tuple[TurnResult, ...]


def embedded(page: str) -> Any:
    start = page.index(">", page.index('type="application/json"')) + 1
    return json.loads(page[start : page.index("</script>", start)])


def test_the_page_is_blind(turns: Turns, tmp_path: Path) -> None:
    audit = Audit(draw_sample(turns, Draw(decoys=5)), tmp_path / "a.json")
    audit.say("anna", {"q001": "changes"})
    data = embedded(page_text(audit, "ben"))
    assert data["verdicts"] == {}
    assert [row["id"] for row in data["rows"]] == [row.id for row in audit.sample.order("ben")]
    assert {frozenset(row) for row in data["rows"]} == {
        frozenset({"id", "said", "clean", "edited", "notes"})
    }
    assert embedded(page_text(audit, "anna"))["verdicts"] == {"q001": "changes"}
    assert page_text(audit, "ben") == page_text(audit, "ben")


def test_what_a_user_typed_is_no_markup(turns: Turns, tmp_path: Path) -> None:
    nasty = "</script><img src=x onerror=alert(1)>\u202e"
    odd = [replace(turn, system=nasty) for turn in turns]
    page = page_text(Audit(draw_sample(odd, Draw()), tmp_path / "a.json"), nasty)
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "&lt;img src=x onerror=alert(1)&gt;&lt;U+202E&gt;" in page


def test_judging_in_a_browser(browser: Any, report: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit.html"
    assert main(["audit", str(report), "--html", str(path), "--judge", "ben"]) == 0
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    assert page.locator("#row ins").count() >= 1
    page.keyboard.press("k")
    page.click("[data-verdict=changes]")
    page.keyboard.press("s")
    page.keyboard.press("k")
    page.keyboard.press("b")
    assert page.get_attribute("[data-verdict=keeps]", "aria-pressed") == "true"
    assert "Row 4 of 10" in page.inner_text("#progress")
    # What was answered is there after the page was closed.
    page.reload()
    assert "Row 3 of 10" in page.inner_text("#progress")
    with page.expect_download() as download:
        page.click("#export")
    exported = tmp_path / "ben.jsonl"
    download.value.save_as(exported)
    assert download.value.suggested_filename == "ben.jsonl"
    assert main(["audit", str(report), "--judge", "ben", "--judgements", str(exported)]) == 0
    found = json.loads(report.with_name("report.audit.json").read_text("utf-8"))["judges"]["ben"]
    assert sorted(found.values()) == ["changes", "keeps", "keeps"]
    assert complaints == []
