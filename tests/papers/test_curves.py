"""The command that compares searches at equal calls, on the shipped dialogues."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers import curves

HERE = Path(__file__).parent
GROUND = ["--model", "memory_bot:track", "--split", "test"]
COMMON = [*GROUND, "--max-dialogues", "3", "--k", "1", "--budgets", "2,4", "--output", "out"]
IDS = [dialogue.id for dialogue in load_dialogues("sample", "test").dialogues]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the tracker in it."""
    shutil.copy(HERE / "memory_bot.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.nightly
def test_curves_at_equal_calls(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*COMMON, "--seeds", "0,1", "--searches", "random,noise,near-value"]
    assert curves.main(arguments) == 0
    out, _ = capsys.readouterr()
    assert out == (place / "out" / "curves.md").read_text(encoding="utf-8")
    for part in (
        "right at every turn of 72 dialogues; the searches use 3, with ",
        "turns, without those that an agent was trained on; at",
        "; at most 3, drawn by seed",
        "- profile natural",
        "## 4 calls a turn",
        "| search | k | way | calls a turn | distinct weaknesses | near-value / search |",
        "| search | k | way | calls a turn | failing mass |",
        "Share of the violations / of the distinct weaknesses",
    ):
        assert part in out
    # Nothing was trained that could pay.
    assert "The training of" not in out

    points = read(place / "out" / "curves.csv")
    lines: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for point in points:
        key = (point["search"], point["seed"], point["until_broken"], point["budget"])
        lines.setdefault(key, []).append(point)
    # A search whose variants depend on how many there will be has a curve for each budget.
    assert sorted(lines) == sorted(
        (search, seed, until, budget)
        for search, budgets in {"random": "4", "noise": "24", "near-value": "4"}.items()
        for seed in "01"
        for until in ("yes", "no")
        for budget in budgets
    )
    for line in lines.values():
        for name in ("calls", "weaknesses", "turns_broken", "failing_mass"):
            values = [float(point[name]) for point in line]
            assert values == sorted(values)
        first = line[0]
        assert (first["calls_a_turn"], first["weaknesses"]) == ("1", "0.0")
        turns = float(first["calls"])
        assert all(float(p["calls"]) <= turns * float(p["calls_a_turn"]) + 0.1 for p in line)

    ratios = read(place / "out" / "curves-ratios.csv")
    assert len(ratios) == 2 * 3 * 3
    for row in ratios:
        if row["search"] == "near-value":
            assert row["ratio"] == ""
            assert row["found"] == row["subject_found"]
        elif row["measure"] == "failing_mass":
            assert row["ratio"] == ""
        elif row["ratio"]:
            times = float(row["subject_found"]) / float(row["found"])
            assert float(row["ratio"]) == pytest.approx(times, abs=1e-3)

    # The same command again only makes the tables.
    assert curves.main(arguments) == 0
    again, err = capsys.readouterr()
    assert again == out
    assert "[1/" not in err


def test_each_operator_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*COMMON, "--seeds", "0", "--searches", "near-value,random", "--budgets", "3"]
    arguments += ["--edits", "char_drop,char_insert/repeat", "--validity", "strict"]
    assert curves.main([*arguments, "--subject", "near-value", "--each-operator-out"]) == 0
    out = capsys.readouterr().out
    assert "## near-value / random with an operator left out" in out
    # Nobody knows what people type.
    assert "failing mass" not in out
    rows = read(place / "out" / "curves-ratios.csv")
    assert {(row["without"], row["measure"]) for row in rows if row["without"]} == {
        (operator, measure)
        for operator in ("char_drop/blank", "char_drop/any", "char_insert/repeat")
        for measure in ("weaknesses", "turns_broken")
    }
    assert all(row["search"] == "random" for row in rows if row["without"])


def test_trainings_and_the_dialogues_that_they_never_saw(
    place: Path, capsys: pytest.CaptureFixture[str], untrained: Callable[..., Path]
) -> None:
    untrained(place / "one", held_out=tuple(IDS[:9]), calls=1000)
    untrained(place / "two", held_out=("elsewhere",), calls=3000)
    arguments = [*GROUND, "--budgets", "2", "--seeds", "0", "--k", "3,random=1", "--searches"]
    (place / "ids.txt").write_text("\n".join(IDS[1:]), encoding="utf-8")
    arguments += ["random,agent:one,agent:two", "--leave-out", IDS[0], "--keep", "ids.txt"]
    assert curves.main(arguments) == 0
    out = capsys.readouterr().out
    assert "the searches use 8, with " in out
    assert " trained on, and 1 of --leave-out; only those of --keep\n" in out
    assert "The training of agent took 2,000 calls." in out
    assert "| 2 | agent | `agent:two` | 0 | 3,000 |" in out
    assert "| random | 1 |" in out
    assert "| agent | 3 |" in out


@pytest.mark.nightly
def test_all_right_dialogues_where_no_policy_has_one_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [*GROUND, "--budgets", "1", "--seeds", "0", "--searches", "random"]
    assert curves.main(arguments) == 0
    assert "the searches use 72, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--subject", "agent"], "unknown search 'agent'.*near-value, random"),
        (
            ["--each-operator-out", "--searches", "near-value"],
            "needs 'random': add it to --searches",
        ),
        (["--each-operator-out", "--subject", "random"], "needs a --subject other than 'random'"),
        (["--k", "random=7"], "--k: 'random=7' must be numbers from 1 to 6"),
        (["--keep", "NOBODY"], "--keep and --leave-out leave none"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        curves.main([*GROUND, *arguments])
