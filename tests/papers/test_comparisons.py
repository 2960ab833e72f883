"""The commands that compare searches on held-out dialogues, on the shipped ones."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers import rq2, rq3

HERE = Path(__file__).parent
COMMON = ["--model", "memory_bot:track", "--split", "test", "--max-dialogues", "3"]
COMMON += ["--k", "1,3", "--output", "out"]
RQ3 = [*COMMON, "--seeds", "0,1", "--searches", "random,greedy,near-value", "--budgets", "2"]
RQ3 += ["--validity", "edit-rate", "--until-broken", "yes"]
RQ2 = [*COMMON, "--seeds", "3,4", "--search", "own=near-value", "--variants", "2"]
MODULES: dict[str, Any] = {"rq2": rq2, "rq3": rq3}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the tracker in it."""
    shutil.copy(HERE / "memory_bot.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_searches_at_equally_many_variants(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rq3.main(RQ3) == 0
    out, err = capsys.readouterr()
    assert out == (place / "out" / "rq3.md").read_text(encoding="utf-8")
    for part in (
        "right at every turn of 72 dialogues; the searches use 3, with ",
        "turns, without those that an agent was trained on; at",
        "; at most 3, drawn by seed",
        "dstfuzz experiment rq3 --model memory_bot:track --split test --max-dialogues 3",
        "a duplicate or invalid is drawn again, up to 8 times; seeds 0, 1",
        "## `edit-rate`, 2 variants a turn, until broken",
        "| near-value / search |",
        "| profile | counting | budget | random | greedy |",
        "| TRADE | 23.5 % | 99.1 % | 33.3 % | 70.1 % |",
    ):
        assert part in out
    # Every k with the first seed; the second at the best k alone.
    assert "5 campaigns, 0 finished before" in err
    assert "3 campaigns, 0 finished before" in err
    assert "written: out/rq3.csv" in err

    rows = read(place / "out" / "rq3.csv")
    assert [(row["search"], row["k"]) for row in rows] == [
        ("random", "1"),
        ("random", "3"),
        ("greedy", ""),
        ("near-value", "1"),
        ("near-value", "3"),
    ]
    assert all(row["runs"] == ("2" if row["best_k"] == "yes" else "1") for row in rows)
    best = {row["search"]: row for row in rows if row["best_k"] == "yes"}
    assert set(best) == {"random", "greedy", "near-value"}
    rates = {name: float(row["broken_per_1000_calls"]) for name, row in best.items()}
    for name in ("random", "greedy"):
        assert float(best[name]["ratio"]) == pytest.approx(
            rates["near-value"] / rates[name], abs=1e-3
        )
        assert float(best[name]["ratio_low"]) <= float(best[name]["ratio"])
        assert 0 <= float(best[name]["broken_alone"]) <= 1
    assert best["near-value"]["ratio"] == best["near-value"]["broken_alone"] == ""
    causes = [float(best["random"][f"cause_{name}"]) for name in ("turn", "context", "both")]
    assert sum(causes) == pytest.approx(1.0, abs=1e-3)
    assert float(best["random"]["strict_vetoes_with_context"]) >= float(
        best["random"]["strict_vetoes"]
    )

    # The same command again only makes the table.
    assert rq3.main(RQ3) == 0
    again, err = capsys.readouterr()
    assert again == out
    assert "5 campaigns, 5 finished before" in err


def test_ways_of_counting_and_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*COMMON[:-2], "--k", "2", "--max-dialogues", "2", "--budgets", "1"]
    arguments += ["--searches", "random", "--seeds", "0"]
    assert rq3.main(arguments) == 0
    out = capsys.readouterr().out
    assert "## `strict`, 1 variant a turn, until broken" in out
    assert "## `strict`, 1 variant a turn, whole" in out
    assert "vetoed" not in out
    assert "by k" not in out


def test_each_search_uses_its_k_of_another_table(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "val.csv").write_text(
        "validity,until_broken,budget,search,k,best_k\n"
        "strict,yes,1,random,2,no\n"
        "strict,yes,1,random,5,yes\n"
        "strict,yes,1,near-value,3,yes\n",
        encoding="utf-8",
    )
    arguments = [*COMMON[:4], "--max-dialogues", "2", "--budgets", "1", "--seeds", "0,1"]
    arguments += ["--output", "out", "--until-broken", "yes", "--k-from", "val.csv"]
    assert rq3.main([*arguments, "--searches", "random,greedy,near-value"]) == 0
    out = capsys.readouterr().out
    assert "Each search uses the best k in `val.csv`" in out
    assert "by k" not in out
    rows = read(place / "out" / "rq3.csv")
    assert [(row["search"], row["k"], row["runs"], row["best_k"]) for row in rows] == [
        ("random", "5", "2", "yes"),
        ("greedy", "", "2", "yes"),
        ("near-value", "3", "2", "yes"),
    ]
    with pytest.raises(UserError, match=r"val\.csv has no best k for --searches other"):
        rq3.main([*arguments, "--searches", "other=random,greedy"])
    with pytest.raises(UserError, match="exclude each other"):
        rq3.main([*arguments, "--k", "2"])


def test_all_right_dialogues_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", "memory_bot:track", "--split", "test", "--k", "1", "--budgets", "1"]
    arguments += ["--searches", "random", "--seeds", "0", "--until-broken", "yes"]
    used = []
    for more in ([], ["--all-right"]):
        assert rq3.main([*arguments, *more]) == 0
        found = re.search(
            r"the tracker is right at every turn of (\d+) .*the searches use (\d+)",
            capsys.readouterr().out,
        )
        assert found is not None
        used.append([int(number) for number in found.groups()])
    (right, some), (all_right, every) = used
    assert some < right == all_right == every


def test_locks_of_ones_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*COMMON, "--k", "2", "--max-dialogues", "2", "--budgets", "3", "--seeds", "0"]
    arguments += ["--searches", "random", "--until-broken", "no"]
    assert rq3.main([*arguments, "--lock", "I", "--lock", r"/[a-z]+/"]) == 0
    out = capsys.readouterr().out
    assert r"edit rates up to 0.25, no edit of `I`, `/[a-z]+/` under `strict`; a variant" in out
    (locked,) = read(place / "out" / "rq3.csv")
    # Without that lock it is another campaign, also where the tables are in the same folder.
    assert rq3.main(arguments) == 0
    out, err = capsys.readouterr()
    assert "no edit of" not in out
    assert "1 campaign, 0 finished before" in err
    (free,) = read(place / "out" / "rq3.csv")
    # Where every word is locked, what is left are insertions at the ends.
    assert float(locked["broken_per_1000_calls"]) < float(free["broken_per_1000_calls"])


def test_the_number_of_transformations(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rq2.main([*RQ2, "--validity", "strict"]) == 0
    out, err = capsys.readouterr()
    assert out == (place / "out" / "rq2.md").read_text(encoding="utf-8")
    assert "comparing own, random" in err
    for part in (
        "2 variants per turn, also after a violation",
        "![Rates over k, strict](rq2-strict.svg)",
        "| 3 | own (near-value) | 4 |",
        "| 6 | 23.5 % | 99.1 % | 2.06 | 3.36 |",
    ):
        assert part in out
    rows = read(place / "out" / "rq2.csv")
    assert [(row["k"], row["search"], row["run"], row["seed"]) for row in rows[:6]] == [
        ("1", "own", "all", ""),
        ("1", "own", "near-value", "3"),
        ("1", "own", "near-value", "4"),
        ("1", "random", "all", ""),
        ("1", "random", "random", "3"),
        ("1", "random", "random", "4"),
    ]
    for name in ("valid_rate", "failure_rate", "inertia_share", "edit_w", "calls"):
        mean, one, other = (float(row[name]) for row in rows[3:6])
        assert mean == pytest.approx((one + other) / 2, abs=1e-3)
    assert float(rows[3]["inertia_share"]) == pytest.approx(1.0, abs=0.1)
    chart = (place / "out" / "rq2-strict.svg").read_text(encoding="utf-8")
    assert "failure rate, strict" in chart
    assert ET.fromstring(chart).tag.endswith("svg")  # noqa: S314


def test_without_a_folder_there_are_no_charts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*COMMON[:-2], "--search", "random", "--variants", "1", "--seeds", "0", "--k", "1"]
    assert rq2.main([*arguments, "--validity", "edit-rate"]) == 0
    out = capsys.readouterr().out
    assert "svg" not in out
    assert "Each run" not in out
    assert "vetoed by `strict`" in out
    assert [path.name for path in place.iterdir() if not path.name.startswith("__")] == [
        "memory_bot.py"
    ]


def test_agents_meet_only_dialogues_that_they_were_not_trained_on(
    place: Path, capsys: pytest.CaptureFixture[str], untrained: Callable[..., Path]
) -> None:
    ids = [dialogue.id for dialogue in load_dialogues("sample", "test").dialogues]
    untrained(place / "one" / "agent.safetensors", held_out=(*ids[:3], "elsewhere"))
    untrained(place / "two", held_out=(*ids[1:4], ids[-1]))
    # Trained on other data: it has seen none of these.
    untrained(place / "three", held_out=("elsewhere",))
    arguments = ["--model", "memory_bot:track", "--split", "test", "--seeds", "0", "--k", "2"]
    arguments += ["--budgets", "2", "--until-broken", "yes", "--output", "out", "--searches"]
    assert rq3.main([*arguments, "agent:one,random,agent:two,agent:three"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"use 2, with \d+ turns, without .* an agent was trained on\n", out)
    assert "trained on the tracker memory_bot:track, sample test, profile strict" in out
    # Two agents with different rewards are different searches, so the table says which it was.
    assert "profile strict, reward broken, 1,234 calls, seed 5" in out
    rows = {row["search"]: row for row in read(place / "out" / "rq3.csv")}
    assert {name: row["runs"] for name, row in rows.items()} == {"agent": "3", "random": "1"}
    assert rows["agent"]["ratio"] == ""
    assert float(rows["random"]["ratio"]) > 0

    untrained(place / "four", held_out=(ids[5],))
    with pytest.raises(UserError, match="no dialogue is left to compare on"):
        rq3.main([*arguments, "agent:one,agent:four"])


@pytest.mark.parametrize("name", ["rq2", "rq3"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --model"),
        (["--model", "m", "--k", "7"], "--k: '7' must be numbers from 1 to 6"),
        (["--model", "m", "--seeds", "1,x"], "--seeds: '1,x' must be a whole number of at least 0"),
        (["--model", "m", "--jobs", "0"], "--jobs: '0' must be a whole number of at least 1"),
        (["--model", "m", "--validity", "strict,edt-rate"], "Did you mean 'edit-rate'"),
        (["--model", "m", "--split", "tset"], "unknown split 'tset'.*Did you mean 'test'"),
        (["--model", "m", "--redrws", "2"], "'--redrws'; did you mean --redraws?"),
        (["--model", "memory_bot:tack", "--split", "test"], "has no attribute 'tack'"),
        ([*COMMON[:-1], "/dev/null/x"], "cannot write"),
    ],
)
def test_mistakes(name: str, arguments: list[str], message: str) -> None:
    if name == "rq2":
        arguments = [*arguments, "--search", "random"]
    with pytest.raises(UserError, match=message):
        MODULES[name].main(arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("rq2", ["--search", "greedy"], "'greedy' does not use: compare it with rq3"),
        ("rq2", ["--search", ","], "--search: ',' must name at least one search"),
        ("rq2", ["--variants", "0"], "--variants: '0' must be"),
        ("rq3", ["--searches", "random,near-vale"], "Did you mean 'near-value'"),
        ("rq3", ["--searches", "x=agent:nowhere"], "nowhere"),
        ("rq3", ["--budgets", "8,0"], "--budgets: '8,0' must be a whole number of at least 1"),
        ("rq3", ["--until-broken", "maybe"], "--until-broken: 'maybe' must be yes, no or yes,no"),
        ("rq3", ["--k-from", "none.csv"], "--k-from: 'none.csv' must be an rq3.csv"),
        ("rq3", ["--k-from", "memory_bot.py"], "--k-from: 'memory_bot.py' must be an rq3.csv"),
    ],
)
def test_mistakes_of_one_of_them(name: str, arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MODULES[name].main(["--model", "memory_bot:track", *arguments])


@pytest.mark.parametrize("name", ["rq2", "rq3"])
def test_help_shows_the_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        MODULES[name].main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(flag in text for flag in ("--model", "--search", "--jobs", "--output", "--seeds"))
