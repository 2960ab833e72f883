"""A sweep: every cell a campaign, gone on with after interruptions, one table and one page."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

from pytest_dstfuzz import register_tracker
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.scale.sweeps import SweepPlan, read_sweep, run_sweep
from pytest_dstfuzz.trackers.registry import TRACKERS

BOT = """
import time

WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}

def heard(context):
    said = " ".join(context.user_utterances).lower().split()
    return {slot: word for word, slot in WORDS.items() if word in said}

def last(context):
    return {slot: word for word, slot in WORDS.items() if word in context.user_utterances[-1]}

def slow(context):
    time.sleep(0.003)
    return heard(context)

def broken(context):
    raise RuntimeError("out of order")
"""
SWEEP = """
[settings]
turns = 30
variants = 3

[axes]
model = ["sweepbot:heard", "sweepbot:last"]
search = ["random", "near-value"]
relation = ["metamorphic", "value-swap"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sweepbot.py").write_text(BOT, encoding="utf-8")
    (tmp_path / "s.toml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pytest_dstfuzz.cli", "sweep", *words]


def swept(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_python(*command(*words)[1:], cwd=folder)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[str, bytes]:
    names = ("table.csv", "sweep.md", "index.html")
    return {name: (folder / name).read_bytes() for name in names}


def test_every_cell_has_its_rows(folder: Path) -> None:
    done = swept(folder, "s.toml", "--output=out", "--parquet")
    assert done.returncode == 0, done.stderr
    rows = table(folder / "out" / "table.csv")
    assert [(row["model"], row["search"], row["relation"]) for row in rows] == [
        (f"sweepbot:{model}", search, relation)
        for model in ("heard", "last")
        for search in ("random", "near-value")
        for relation in ("metamorphic", "value-swap")
    ]
    assert all(row["turns"] == "30" for row in rows)
    assert any(int(row["violations"]) for row in rows)
    first = contents(folder / "out")
    # What is done is not run again, and the same comes of it.
    started = time.monotonic()
    again = swept(folder, "s.toml", "--output=out", "--parquet")
    assert again.returncode == 0
    assert "an earlier call" not in again.stderr
    assert "an earlier call" in swept(folder, "s.toml", "--output=out").stderr
    assert contents(folder / "out") == first, time.monotonic() - started
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    read: list[dict[str, Any]] = pq.read_table(folder / "out" / "table.parquet").to_pylist()
    assert [str(one["violations"]) for one in read] == [row["violations"] for row in rows]
    page = (folder / "out" / "index.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    for link in (folder / "out" / "cells").glob("*.html"):
        assert f'href="cells/{link.name}"' in page


@pytest.mark.nightly
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGKILL])
def test_it_goes_on_after_an_interruption(folder: Path, with_signal: signal.Signals) -> None:
    text = SWEEP.replace("sweepbot:last", "sweepbot:slow")
    (folder / "s.toml").write_text(text, encoding="utf-8")
    started = subprocess.Popen(
        command("s.toml", "--output=out"),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    cells = folder / "out" / "cells"
    while not any(cells.glob("sweepbot-slow*/results-0001.jsonl")):
        assert started.poll() is None
        time.sleep(0.01)
    started.send_signal(with_signal)
    started.wait()
    done = swept(folder, "s.toml", "--output=out")
    assert done.returncode == 0, done.stderr
    assert swept(folder, "s.toml", "--output=whole").returncode == 0
    assert contents(folder / "out") == contents(folder / "whole")


def test_a_cell_that_cannot_be_run_is_told_and_the_others_go_on(folder: Path) -> None:
    text = SWEEP.replace("sweepbot:last", "sweepbot:broken").replace('"near-value"', '"greedy"')
    (folder / "s.toml").write_text(text, encoding="utf-8")
    done = swept(folder, "s.toml", "--output=out")
    assert done.returncode == 1
    assert "out of order" in done.stdout
    assert "Traceback" not in done.stderr
    rows = table(folder / "out" / "table.csv")
    assert [bool(row["problem"]) for row in rows] == [False] * 4 + [True] * 4
    # A file with other cells runs those alone.
    (folder / "s.toml").write_text(SWEEP, encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").glob("cells/*/*.jsonl")}
    assert swept(folder, "s.toml", "--output=out").returncode == 0
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_data_that_is_no_path_is_told_in_a_line(folder: Path) -> None:
    text = SWEEP.replace("turns = 30", f'turns = 30\ndata = "{"hello " * 60}"')
    assert text != SWEEP
    (folder / "s.toml").write_text(text, encoding="utf-8")
    done = swept(folder, "s.toml", "--output=out")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "no such file or folder" in done.stderr or "too long" in done.stderr


def test_a_refused_cell_shows_no_figures(folder: Path) -> None:
    text = SWEEP.replace(', "sweepbot:last"', "").replace(', "near-value"', "")
    (folder / "s.toml").write_text(text, encoding="utf-8")
    assert swept(folder, "s.toml", "--output=out").returncode == 0
    (folder / "sweepbot.py").write_text(BOT.replace(".lower()", ""), encoding="utf-8")
    assert swept(folder, "s.toml", "--output=out").returncode == 1
    rows = table(folder / "out" / "table.csv")
    assert rows
    for row in rows:
        assert "another run" in row["problem"]
        assert (row["turns"], row["failure_rate"]) == ("0", "")


#: A bot that cannot run.
BROKEN = {
    "import": lambda text: text + "def track(context) return",
    "first answer": lambda text: text.replace("    said", "    raise RuntimeError\n    said"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_cell_that_cannot_run_shows_no_figures_of_an_earlier_bot(
    folder: Path, change: Callable[[str], str]
) -> None:
    text = SWEEP.replace(', "sweepbot:last"', "").replace(', "near-value"', "")
    (folder / "s.toml").write_text(text, encoding="utf-8")
    assert swept(folder, "s.toml", "--output=out").returncode == 0
    (folder / "sweepbot.py").write_text(change(BOT), encoding="utf-8")
    assert swept(folder, "s.toml", "--output=out").returncode == 1
    rows = table(folder / "out" / "table.csv")
    assert rows
    for row in rows:
        assert row["problem"]
        assert (row["turns"], row["failure_rate"]) == ("0", "")
    # The folder still has them.
    (folder / "sweepbot.py").write_text(BOT, encoding="utf-8")
    assert swept(folder, "s.toml", "--output=out").returncode == 0


LATE = """
import importlib

def late(context):
    number = min(len(context.user_utterances), 2)
    return {"hotel-area": importlib.import_module(f"area_{number}").AREA}
"""


def test_a_sweep_says_which_cells_may_be_of_two_versions(folder: Path) -> None:
    (folder / "latebot.py").write_text(LATE, encoding="utf-8")
    for number in (1, 2):
        (folder / f"area_{number}.py").write_text("AREA = 'north'\n", encoding="utf-8")
    text = (
        '[settings]\nturns = 8\nvariants = 1\n[axes]\nmodel = ["latebot:late", "sweepbot:last"]\n'
    )
    (folder / "s.toml").write_text(text, encoding="utf-8")
    done = swept(folder, "s.toml", "--output=out")
    assert done.returncode == 0
    doubt = "two versions"
    lines = [line for line in done.stdout.splitlines() if ": done" in line]
    assert [doubt in line for line in lines] == [True, False]
    rows = table(folder / "out" / "table.csv")
    assert [doubt in row["doubt"] for row in rows] == [True, False]
    for name in ("sweep.md", "index.html"):
        assert doubt in (folder / "out" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("changed", ["file of a key", "dialogues"])
def test_a_cell_does_not_run_after_a_change_of_what_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Its tracker may have read the file before the change."""
    area, data = tmp_path / "area.txt", tmp_path / "data.jsonl"
    area.write_text("north", encoding="utf-8")
    said = {"messages": [{"role": "user", "content": "Hello, I want a hotel in the north"}]}
    data.write_text(json.dumps(said), encoding="utf-8")
    made = []

    def create(path: str) -> object:
        made.append(text := Path(path).read_text(encoding="utf-8"))
        return lambda _: {"hotel-area": text}

    monkeypatch.setattr(TRACKERS, "_registered", {})
    register_tracker("filed", create)
    file = tmp_path / "s.toml"
    file.write_text(
        f"[settings]\nmodel = 'filed'\ntracker = 'path={area}'\ndata = '{data}'\n"
        "turns = 2\nvariants = 1\n[axes]\nseed = [0, 1]\n",
        encoding="utf-8",
    )
    cells = run_sweep(read_sweep(file), tmp_path / "out", lambda *_: None)
    assert not next(cells).problem
    if changed == "dialogues":
        data.write_text(data.read_text(encoding="utf-8").replace("Hello", "Good"), encoding="utf-8")
    else:
        area.write_text("south", encoding="utf-8")
    second = next(cells)
    assert "since the sweep began" in second.problem
    assert second.folder is None
    # The same command then runs all cells, each in a new folder.
    again = list(run_sweep(read_sweep(file), tmp_path / "out", lambda *_: None))
    assert not any(one.problem for one in again)
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 3
    assert made[-1] == area.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no axis"),
        ('[axes]\nsearch = ["random"]\n', "names no tracker"),
        ('[axes]\nmodel = "trade"\n', "must be a list of at least one value"),
        ('[axes]\nmodel = ["trade"]\nserch = ["random"]\n', "Did you mean 'search'"),
        ('[axes]\nmodel = ["trade"]\nsearch = ["random"]\n[settings]\nsearch = 1\n', "leave one"),
        ('[axes]\nmodel = ["trade"]\nseed = ["first"]\n', "in the cell model = trade"),
        ('[axes]\nmodel = ["trade", "trade"]\n', "is listed twice"),
        ('[axis]\nmodel = ["trade"]\n', "Did you mean 'axes'"),
        ("axes = 3\n", "must be a table"),
        ("[axes\n", "not valid TOML"),
    ],
)
def test_mistakes_in_the_file_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_sweep(path)


def test_names_of_cells_hang_on_what_is_run(tmp_path: Path) -> None:
    def plan(text: str) -> SweepPlan:
        (tmp_path / "s.toml").write_text(text, encoding="utf-8")
        return read_sweep(tmp_path / "s.toml")

    one, other = plan(SWEEP), plan(SWEEP.replace("variants = 3", "variants = 4"))
    names = [cell.name for cell in one.cells]
    assert len(set(names)) == len(names) == 8
    assert not {cell.name for cell in other.cells} & set(names)
    assert [cell.name for cell in plan(SWEEP).cells] == names


@pytest.mark.parametrize("name", ["index.html", "sweep.md", "table.csv", "table.parquet"])
def test_a_sweep_replaces_no_file_of_others(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = folder / "out" / name
    kept.parent.mkdir()
    kept.write_text("cell,mine\n", encoding="utf-8")
    assert main(["sweep", str(folder / "s.toml"), "--output", str(kept.parent)]) == 2
    assert "is not a file of a sweep" in capsys.readouterr().err
    assert kept.read_text(encoding="utf-8") == "cell,mine\n"
    assert [path.name for path in kept.parent.iterdir()] == [name]


def test_a_cell_whose_bot_fails_or_answers_alike_has_a_problem(folder: Path) -> None:
    (folder / "oddbot.py").write_text(
        "import sweepbot\n"
        "def silent(context): return {}\n"
        "def half(context):\n"
        "    if len(context.user) % 2: raise RuntimeError('out of order')\n"
        "    return sweepbot.heard(context)\n",
        encoding="utf-8",
    )
    models = '["sweepbot:heard", "oddbot:silent", "oddbot:half"]'
    text = f"[settings]\nturns = 30\nvariants = 1\n[axes]\nmodel = {models}\n"
    (folder / "odd.toml").write_text(text, encoding="utf-8")
    done = swept(folder, "odd.toml", "--output=out")
    assert done.returncode == 1
    problems = {row["model"]: row["problem"] for row in table(folder / "out" / "table.csv")}
    assert not problems["sweepbot:heard"]
    assert "are empty" in problems["oddbot:silent"]
    assert "failed on" in problems["oddbot:half"]


def test_cells_without_a_dialogue_in_common_have_no_rates(folder: Path) -> None:
    talks = [
        {"dialogue_id": f"d{number}", "users": ["a cheap place in the north please"]}
        for number in range(12)
    ]
    (folder / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    text = (
        "[settings]\nmodel = 'sweepbot:heard'\ndata = 'talks.jsonl'\nturns = 'all'\nvariants = 2\n"
        "[axes]\nshard = ['1/2', '2/2']\n"
    )
    (folder / "parts.toml").write_text(text, encoding="utf-8")
    swept(folder, "parts.toml", "--output=out")
    page = (folder / "out" / "sweep.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if "(first: 1/2)" in line]
    assert line.count("n/a") == 3, page
