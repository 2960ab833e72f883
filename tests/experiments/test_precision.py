"""The judging sheet hides what it must, and the score counts what was judged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.experiments import precision_score, precision_sheet
from pytest_dstfuzz.experiments.decoys import KINDS
from pytest_dstfuzz.experiments.precision import (
    draw_sheet,
    read_jsonl,
    score,
    score_lines,
    wilson,
    write_sheet,
)

Turns = tuple[TurnResult, ...]


def test_the_draw(turns: Turns) -> None:
    sheet = draw_sheet(turns, violations=8, decoys=10, seed=3)
    kinds = Counter(row["kind"] for row in sheet.key)
    assert kinds == {"violation": 8, **dict.fromkeys(KINDS, 2)}
    real = [row["turn"] for row in sheet.key if row["kind"] == "violation"]
    assert len({name.rsplit("-", 1)[0] for name in real}) == 8
    assert len({row["turn"] for row in sheet.key}) == 18
    assert sheet == draw_sheet(tuple(reversed(turns)), violations=8, decoys=10, seed=3)
    assert sheet != draw_sheet(turns, violations=8, decoys=10, seed=4)


def test_rows_tell_nothing(turns: Turns) -> None:
    sheet = draw_sheet(turns, violations=200, decoys=5)
    assert Counter(row["kind"] == "violation" for row in sheet.key) == {True: 10, False: 5}
    assert {tuple(row) for row in sheet.rows} == {("id", "earlier", "system", "clean", "perturbed")}
    assert [row["id"] for row in sheet.rows] == [row["id"] for row in sheet.key]
    assert [row["id"] for row in sheet.rows] == [f"q{n:03d}" for n in range(1, 16)]
    earlier = [row["earlier"] for row in sheet.rows if row["earlier"]]
    assert earlier
    assert all(one[0]["perturbed"] == f"uh {one[0]['clean']}" for one in earlier)


def test_other_kinds_fill_the_places(turns: Turns) -> None:
    first = tuple(turn for turn in turns if turn.turn_index == 0)
    sheet = draw_sheet(first, violations=1, decoys=10)
    kinds = Counter(row["kind"] for row in sheet.key)
    assert "negation_removed" not in kinds
    assert kinds["value"] > 2


def test_where_every_dialogue_broke_its_turns_serve(turns: Turns) -> None:
    broken = tuple(turn for turn in turns if turn.outcome == "violation")
    assert sum(row["kind"] != "violation" for row in draw_sheet(broken, decoys=5).key) == 5


def test_nothing_to_draw(turns: Turns) -> None:
    with pytest.raises(UserError, match="no violation"):
        draw_sheet([turn for turn in turns if turn.outcome == "held"])
    with pytest.raises(UserError, match=r"decoys only, not 500"):
        draw_sheet(turns, decoys=500)


def key() -> list[dict[str, Any]]:
    kinds = ["violation"] * 4 + ["value", "value", "dropped"]
    return [{"id": f"q{n}", "kind": kind} for n, kind in enumerate(kinds)]


def test_the_score() -> None:
    same = [True, True, True, False, False, True, False]
    judged = [{"id": f"q{n}", "same": answer} for n, answer in enumerate(same)]
    result = score(key(), judged)
    assert (result.same, result.violations, result.caught, result.decoys) == (3, 4, 2, 3)
    assert result.by_kind == {"value": (1, 2), "dropped": (1, 1)}
    assert score_lines(result) == [
        (
            "precision: 3 of 4 violations keep the meaning = 75.0% "
            "(95 % Wilson interval 30.1% to 95.4%)"
        ),
        "decoys caught: 2 of 3",
        "  value: 1 of 2",
        "  dropped: 1 of 1",
        "judged to change the meaning: q3",
        "decoys let pass: q5",
    ]


def test_only_decoys() -> None:
    result = score([{"id": "q0", "kind": "value"}], [{"id": "q0", "same": False}])
    assert result.precision is None
    assert result.interval is None
    assert score_lines(result) == ["decoys caught: 1 of 1", "  value: 1 of 1"]


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        ([{"id": "q9", "same": True}], "'q9', which the key does not have"),
        ([{"id": "q0", "same": True}] * 2, "'q0' is judged twice"),
        ([{"id": "q0", "same": "yes"}], "must be true or false, not 'yes'"),
        ([{"id": "q0"}], "must be true or false, not None"),
        ([{"id": "q0", "same": True}], "6 rows are not judged, the first is 'q1'"),
    ],
)
def test_bad_judgements(judged: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        score(key(), judged)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (195, 200, 0.9428, 0.9893)],
)
def test_wilson(hits: int, trials: int, low: float, high: float) -> None:
    assert wilson(hits, trials) == pytest.approx((low, high), abs=1e-4)


def test_sheet_and_key_as_files(turns: Turns, tmp_path: Path) -> None:
    report = {
        "schema_version": 1,
        "summary": {},
        "settings": {},
        "turns": [turn.to_json() for turn in turns],
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    sheet = write_sheet(path, tmp_path / "s.jsonl", tmp_path / "k.jsonl", violations=5, decoys=5)
    assert read_jsonl(tmp_path / "s.jsonl") == list(sheet.rows)
    assert read_jsonl(tmp_path / "k.jsonl") == list(sheet.key)
    with pytest.raises(UserError, match="the same file"):
        write_sheet(path, tmp_path / "x", tmp_path / "." / "x")


def test_separators_inside_a_text_end_no_line(turns: Turns, tmp_path: Path) -> None:
    odd = [replace(turn, system="one\u2028two\u0085three\x1cfour") for turn in turns]
    report = {
        "schema_version": 1,
        "summary": {},
        "settings": {},
        "turns": [turn.to_json() for turn in odd],
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    sheet = write_sheet(path, tmp_path / "s.jsonl", tmp_path / "k.jsonl", violations=5, decoys=0)
    assert read_jsonl(tmp_path / "s.jsonl") == list(sheet.rows)
    assert sheet.rows[0]["system"] == odd[0].system


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        (b"\xff", "cannot read"),
        (b'\n{"id": "a"}\n{', "line 3: not JSON"),
        (b"[1]", "line 1: must be an object with a text 'id'"),
        (b'{"id": 1}', "must be an object with a text 'id'"),
    ],
)
def test_bad_lines(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "judged.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_jsonl(path)


def test_the_commands(turns: Turns, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = {"schema_version": 1, "summary": {}, "settings": {}}
    path, sheet, secret = (tmp_path / name for name in ("r.json", "s.jsonl", "k.jsonl"))
    path.write_text(json.dumps({**report, "turns": [turn.to_json() for turn in turns]}))
    drawn = ["--sheet", str(sheet), "--key", str(secret), "--violations", "4", "--decoys", "5"]
    assert precision_sheet.main([str(path), *drawn, "--seed", "2"]) == 0
    assert "9 rows, of which 4 are violations and 5 decoys" in capsys.readouterr().out
    judged = [{"id": row["id"], "same": row["kind"] == "violation"} for row in read_jsonl(secret)]
    answers = tmp_path / "a.jsonl"
    answers.write_text("\n".join(map(json.dumps, judged)))
    assert precision_score.main([str(secret), str(answers)]) == 0
    out = capsys.readouterr().out
    assert "precision: 4 of 4" in out
    assert "decoys caught: 5 of 5" in out
    with pytest.raises(DataError, match="has no kind: is it a key"):
        precision_score.main([str(sheet), str(answers)])
    with pytest.raises(UserError, match="--decoys: '-1' must be a whole number"):
        precision_sheet.main([str(path), "--decoys", "-1"])
