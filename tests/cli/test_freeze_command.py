"""The command ``dstfuzz freeze``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.relations import sources


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


@pytest.mark.parametrize("meanwhile", ["a verdict", "another source", "a removed line"])
def test_changes_of_the_file_stay_that_are_made_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    path = tmp_path / "frozen.jsonl"
    assert freeze(path, "--source", "phrase-table", "--each", "1") == 0
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    other = {**rows[0], "text": "in other words", "source": "mine"}
    changed = {
        "a verdict": [{**rows[0], "verdict": "changes", "reviewer": "ann"}, *rows[1:]],
        "another source": [*rows, other],
        "a removed line": rows[1:],
    }[meanwhile]
    find = sources.candidate_rows

    def change(*given: Any, **more: Any) -> Any:
        text = "\n".join([head, *map(json.dumps, changed)])
        path.write_text(f"{text}\n", encoding="utf-8")
        return find(*given, **more)

    monkeypatch.setattr(sources, "candidate_rows", change)
    assert freeze(path, "--source", "phrase-table", "--each", "2") == 0
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    assert found[: len(changed)] == changed
    assert len(found) > len(changed)
    assert meanwhile != "a removed line" or rows[0] not in found


def called(people: int) -> dict[str, str]:
    return {"name": "book", "arguments": json.dumps({"people": people})}


def test_the_turns_of_dialogues_with_tools_in_another_file_are_found_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talks = [
        {
            "id": str(people),
            "messages": [
                {"role": "user", "content": f"I need a table for {people}."},
                {"role": "assistant", "tool_calls": [{"function": called(people)}]},
            ],
        }
        for people in (2, 3)
    ]
    tool = {"name": "book", "parameters": {"properties": {"people": {"type": "integer"}}}}
    data, tools, path = (tmp_path / name for name in ("talks.jsonl", "tools.json", "f.jsonl"))
    data.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    tools.write_text(json.dumps([{"type": "function", "function": tool}]), encoding="utf-8")
    given = ["--data", str(data), "--outcome", "tool-calls", "--tools", str(tools)]
    assert main(["freeze", *given, "--source", "phrase-table", "--output", str(path)]) == 0
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    kept = [json.dumps({**json.loads(row), "verdict": "keeps", "reviewer": "ann"}) for row in rows]
    assert len(kept) > 1
    path.write_text("\n".join([head, *kept, ""]), encoding="utf-8")
    capsys.readouterr()
    assert main(["relations", f"frozen:{path}", *given]) == 0
    assert "to 2 of 2 turns" in capsys.readouterr().out


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
