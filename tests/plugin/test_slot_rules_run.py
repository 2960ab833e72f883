"""Rules of slots in a session: from the table, against a baseline, and in what is remembered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from processes import run_python

#: A tracker that writes a time in two ways, by how the user is heard, and one of the other build.
BOT = """
def track(context):
    polite = "please" in context.user.lower().split()
    return {"table-time": "19:00" if polite else "7pm", "table-extras": ["candle", "view"]}

def later(context):
    return track(context) | {"table-time": "7 p.m."}

def poorer(context):
    return track(context) | {"table-extras": ["view"]}
"""
TABLE = """
[tool.pytest.ini_options]
addopts = "-p no:cacheprovider"

[tool.dstfuzz.arguments]
table-time = "instant"
"book_table.people" = "number"
"""
ARGUMENTS = ("--dst-data=asked.jsonl", "--dst-fail-on=gate", "--dst-baseline=b.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slots")
    path.joinpath("bot.py").write_text(BOT, encoding="utf-8")
    path.joinpath("pyproject.toml").write_text(TABLE, encoding="utf-8")
    said = "please book us something nice with a candle and a view for seven in the evening"
    told = {"dialogue_id": "d", "users": [said]}
    path.joinpath("asked.jsonl").write_text(json.dumps(told), encoding="utf-8")
    slots = {"table-time": [], "table-extras": ["candle", "view"]}
    path.joinpath("asked.ontology.json").write_text(json.dumps(slots), encoding="utf-8")
    done = run(path, "track", "--dst-update-baseline")
    assert "now has the outcomes of" in done, done
    return path


def run(folder: Path, tracker: str, *words: str) -> str:
    model = f"--dst-model=bot:{tracker}"
    command = ("-m", "pytest", "--color=no", model, *ARGUMENTS, *words)
    done = run_python(*command, cwd=folder, env={**os.environ, "COLUMNS": "200"})
    return done.stdout + done.stderr


def test_a_value_in_other_words_is_no_change(folder: Path) -> None:
    told = run(folder, "later", "--dst-report=r.json")
    report = json.loads(folder.joinpath("r.json").read_text(encoding="utf-8"))
    assert report["summary"]["violations"] == 0
    assert report["outcome"] == {"kind": "state", "compared": "states,table-time=instant"}
    assert "drift" not in told, told


def test_a_list_that_lost_a_member_is_one(folder: Path) -> None:
    told = run(folder, "poorer")
    assert "table-extras: candle, view -> view" in told, told
