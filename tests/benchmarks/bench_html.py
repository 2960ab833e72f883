"""The page of 10,000 violations: how large it is, and how soon Chromium has it ready.

Run with ``make bench``. The violations are those of the shipped TRADE on the shipped
dialogues, repeated under other ids.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).parents[1] / "report" / "html"))

from html_pages import repeated

from pytest_dstfuzz.report.html.page import html_text

VIOLATIONS = 10_000
MOST_BYTES = 15_000_000
MOST_SECONDS = 2.0
ROUNDS = 5


def test_ten_thousand_violations_are_small_and_soon_there(browser: Any, tmp_path: Path) -> None:
    campaign = [
        *("-m", "pytest", "-q", "--dst-model=trade", "--dst-turns=all"),
        *("--dst-max-failure-rate=100%", "--dst-report=report.json"),
    ]
    subprocess.run([sys.executable, *campaign], cwd=tmp_path, check=True, capture_output=True)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    many = repeated(report, VIOLATIONS)
    begun = time.perf_counter()
    text = html_text(many)
    making = time.perf_counter() - begun
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    seconds = [_seconds_to_ready(browser, page) for _ in range(ROUNDS)]
    middle = statistics.median(seconds)
    size = page.stat().st_size
    print(f"\n{size / 1e6:.1f} MB, made in {making:.1f} s; ready in {middle:.2f} s", end=" ")
    print(f"({min(seconds):.2f} to {max(seconds):.2f} s, {ROUNDS} rounds)")
    assert size <= MOST_BYTES
    assert middle <= MOST_SECONDS


def _seconds_to_ready(browser: Any, page: Path) -> float:
    """Return how long it takes from the address to the first violations on the screen."""
    context = browser.new_context()
    tab = context.new_page()
    begun = time.perf_counter()
    tab.goto(page.as_uri(), wait_until="commit")
    tab.wait_for_selector("#list[aria-busy=false] article")
    tab.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    seconds = time.perf_counter() - begun
    context.close()
    return seconds
