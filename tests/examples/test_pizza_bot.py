"""The pizza bot: its suite runs as its README says, and its README tells the truth."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import run_python

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.load import load_dialogues

FOLDER = Path(__file__).parents[2] / "examples" / "pizza_bot"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^:]+): (.+) -> none` \|$", re.MULTILINE)

Track = Callable[[Context], dict[str, str]]


@pytest.fixture(scope="module")
def track() -> Track:
    spec = importlib.util.spec_from_file_location("pizza_tracker", FOLDER / "tracker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Track = module.track
    return found


def suite(report: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-q"]
    command += ["--dst-data=conversations.jsonl", f"--dst-report={report}", *options]
    return run_python(*command, cwd=FOLDER)


def test_the_suite_fails_where_an_order_is_lost(tmp_path: Path) -> None:
    run = suite(tmp_path / "report.json", "--dst-search=random")
    assert run.returncode == 1, run.stdout + run.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["summary"]["turns"] == 53
    assert report["summary"]["violations"] >= 5
    assert report["summary"]["errors"] == 0
    assert report["data"]["layout"] == "jsonl"
    assert report["data"]["normalisation"] == "plain"
    assert all(turn["label"] is None for turn in report["turns"])
    # By default variants that are not valid are drawn again, until hardly any is left out.
    without = [t for t in report["turns"] if not any(v["valid"] for v in t["variants"])]
    assert len(without) <= 1
    assert all(turn["outcome"] == "untested" for turn in without)
    told = re.search(r"with (\d+) variants, and (\d+) .*\s+There were (\d+) violations", README)
    assert told is not None
    names = ("generated", "valid", "violations")
    assert [int(figure) for figure in told.groups()] == [report["summary"][n] for n in names]


def test_the_suite_passes_under_its_gate(tmp_path: Path) -> None:
    run = suite(tmp_path / "report.json", "--dst-max-failure-rate=0.5")
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_tracker_follows_the_clean_orders(track: Track) -> None:
    orders = {
        dialogue.id: track(dialogue.context(len(dialogue.turns) - 1))
        for dialogue in load_dialogues(FOLDER / "conversations.jsonl").dialogues
    }
    assert len(orders) == 10
    for order in orders.values():
        assert {"order-size", "delivery-address", "payment-method"} <= set(order)
    assert orders["pizza-10"] == {
        "order-size": "large",
        "order-crust": "deep pan",
        "order-topping 1": "chicken",
        "delivery-address": "112 victoria park road",
        "delivery-time": "6:45 pm",
        "payment-method": "card",
    }


def test_the_violations_of_the_readme_are_real(track: Track) -> None:
    rows = ROW.findall(README)
    assert len(rows) == 5
    said = {
        turn.user: turn.system
        for dialogue in load_dialogues(FOLDER / "conversations.jsonl").dialogues
        for turn in dialogue.turns
    }
    for clean, perturbed, slot, value in rows:
        system = said[clean]
        assert track(Context((Exchange(system, clean),)))[slot] == value
        assert slot not in track(Context((Exchange(system, perturbed),)))
