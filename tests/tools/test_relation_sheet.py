"""Sheets of rewrites for blind judges, and what is made of their verdicts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.should_change.relations import ValueSwap
from tools.relations import precision, sheet


class Swap(ValueSwap):
    """As the shipped one, under a name that is free."""

    name = "swap-for-sheets"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    register_relation(Swap())
    shown, key = (tmp_path_factory.mktemp(name) for name in ("sheet", "key"))
    given = ["--relation", Swap.name, "--data", "sample", "--rewrites", "8", "--decoys", "4"]
    assert sheet.main([*given, "--output", str(shown), "--key", str(key)]) == 0
    return shown, key


def rows_of(made: tuple[Path, Path]) -> list[tuple[dict[str, object], dict[str, str]]]:
    shown, key = made
    lines = [json.loads(line) for line in (shown / "sheet.jsonl").read_text("utf-8").splitlines()]
    return list(zip(lines, precision.read(key / "key.tsv", "\t"), strict=True))


def test_each_row_is_of_another_dialogue_and_decoys_are_hidden(made: tuple[Path, Path]) -> None:
    rows = rows_of(made)
    assert len({key["dialogue"] for _, key in rows}) == len(rows) == 12
    assert sorted(key["decoy"] for _, key in rows if key["decoy"]) == sorted(sheet.DECOYS)
    assert all(set(row) == set(rows[0][0]) for row, _ in rows)
    assert (made[0] / "INSTRUCTIONS.md").is_file()
    assert not (made[0] / "key.tsv").exists()


def test_a_decoy_states_something_else_than_the_relation(made: tuple[Path, Path]) -> None:
    for row, key in rows_of(made):
        if key["decoy"] == "unchanged":
            assert row["stated"] == "nothing changes"
        else:
            assert isinstance(row["stated"], dict)
            assert row["about"] == ""


def test_precision_counts_what_all_readers_say(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    key = made[1]
    decoys = [row["decoy"] for row in precision.read(key / "key.tsv", "\t")]
    real = decoys.index("")
    for name, doubted in (("a", None), ("b", real)):
        with (key / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "verdict", "note"])
            for n, decoy in enumerate(decoys):
                writer.writerow([n + 1, "wrong" if decoy or n == doubted else "right", ""])
    assert precision.main([str(key)]) == 0
    assert "| 7 of 8 | 52.9 to 97.8 % | 8, 7 | 4 of 4 | 4, 4 |" in capsys.readouterr().out
    (key / "c.csv").write_text("row,verdict,note\n1,perhaps,\n", "utf-8")
    assert precision.main([str(key)]) == 2
    assert "says neither right nor wrong of the rows 1, 2" in capsys.readouterr().err


def test_too_few_dialogues_are_told(
    tmp_path: Path, made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    del made
    given = ["--relation", Swap.name, "--data", "sample", "--rewrites", "9999"]
    folders = ["--output", str(tmp_path / "sheet"), "--key", str(tmp_path / "key")]
    assert sheet.main([*given, *folders]) == 2
    assert "ask for fewer than 10014 rewrites and decoys" in capsys.readouterr().err
