"""The command ``dstfuzz freeze``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main


def freeze(path: Path, *more: str) -> int:
    return main(["freeze", "--data", "sample", "--turns", "20", "--output", str(path), *more])


def test_candidates_are_added_and_verdicts_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "frozen.jsonl"
    assert freeze(path, "--source", "phrase-table", "--each", "1") == 0
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(head)["sources"]["phrase-table"].endswith("(MIT)")
    rows = [json.loads(line) for line in lines]
    assert f"new candidates of phrase-table: {len(rows):,}" in capsys.readouterr().out
    judged = json.dumps({**rows[0], "verdict": "keeps", "reviewer": "ann"})
    path.write_text("\n".join([head, judged, *lines[1:]]) + "\n", encoding="utf-8")
    assert freeze(path, "--source", "phrase-table", "--each", "2") == 0
    again = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in again[1 : len(lines) + 1]] == [
        json.loads(judged),
        *rows[1:],
    ]
    assert len(again) > len(lines) + 1
    # What it wrote is what the run and the list of relations read.
    assert main(["relations", f"frozen:{path}", "--data", "sample"]) == 0
    assert "to 1 of 366 turns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("phrase-tabel", "phrase-table"),
        ("value-swap", "does not paraphrase turns: use one of neighbour-swap"),
        ("frozen", "does not paraphrase turns"),
    ],
)
def test_other_sources_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, message: str
) -> None:
    assert freeze(tmp_path / "f.jsonl", "--source", source) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
