"""``dstfuzz relations``: what it lists, what it counts, and the mistakes that it explains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name
from pytest_dstfuzz.relations.rounds import Drop


def run(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["relations", *line.split()]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_all_relations_are_listed_with_their_side(capsys: pytest.CaptureFixture[str]):
    rows = {row[0]: row[1:] for row in map(str.split, run("", capsys).splitlines())}
    assert set(rows) == {"relation", *RELATIONS.shipped}
    assert rows["drop"] == ["should-change", "dialogue", "slots"]
    assert rows["metamorphic"] == ["should-not-change", "search", "all"]
    assert rows["tools-order"] == ["should-not-change", "turn", "tool", "calls"]


def test_one_says_what_it_expects_and_needs(capsys: pytest.CaptureFixture[str]):
    said = " ".join(run("phrase-table,drop", capsys).split())
    assert relation_by_name("phrase-table").source in said
    assert Drop.expects in said
    assert all(reason in said for reason in Drop.reasons)


def test_turns_are_counted_by_the_first_reason_that_ends_them(capsys: pytest.CaptureFixture[str]):
    lines = run("drop --data sample", capsys).splitlines()
    applies = next(line.split() for line in lines if "applies" in line)
    figures = [line.split()[-2:] for line in lines if any(r in line for r in Drop.reasons)]
    assert applies[4:6] == ["72", "dialogues"]
    assert sum(int(count) for count, _ in figures) + int(applies[2]) == 72
    assert figures[-1][1] == applies[2]


def test_the_table_counts_turns_and_dialogues(capsys: pytest.CaptureFixture[str]):
    said = run("--data sample --domains taxi", capsys)
    rows = {row[0]: row[1:] for row in map(str.split, said.splitlines()) if len(row) > 4}
    assert rows["restart"][2:] == ["20", "20", "100.0", "%", "slots,", "replies"]
    assert "tools-order" not in rows
    assert rows["metamorphic"][2:5] == ["102", "102", "100.0"]
    assert said.endswith("the labels in place of the tracker's answers.\n")


def test_tools_that_belong_to_the_data_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    call = {"id": "1", "function": {"name": "book", "arguments": '{"people": 2}'}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    talk = {"messages": [{"role": "user", "content": "A table for two"}, said]}
    (tmp_path / "own.jsonl").write_text(json.dumps(talk) + "\n")
    tools = [{"name": name, "description": f"{name} a table"} for name in ("book", "cancel")]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    line = f"tools-order --data {tmp_path / 'own.jsonl'} --outcome tool-calls"
    assert "no dialogue has tools" in " ".join(run(line, capsys).split())
    assert "to 1 of 1 turns" in run(f"{line} --tools {tmp_path / 'tools.json'}", capsys)


def test_data_without_labels_count_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    turns = [{"system": "", "user": "a pizza"}]
    (tmp_path / "own.jsonl").write_text(json.dumps({"dialogue_id": "a", "turns": turns}) + "\n")
    said = run(f"drop --data {tmp_path / 'own.jsonl'}", capsys)
    said = " ".join(said.split())
    assert "applies to an unknown number of dialogues: they have no labels" in said
    assert "no dialogue with a label at each turn, so nothing was counted. Without labels" in said
    rows = run(f"--data {tmp_path / 'own.jsonl'}", capsys).splitlines()
    assert next(row.split()[-4:] for row in rows if row.split()[:1] == ["drop"])[:3] == ["-"] * 3
    said = " ".join(run(f"value-swap --data {tmp_path / 'own.jsonl'}", capsys).split())
    assert "applies to no turn of the data: value-swap needs a slot with at least two" in said


def test_recorded_replies_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    said = ["I would like to cancel my order", "It is cancelled.", "Thank you", "Bye."]
    log = tmp_path / "own.jsonl"
    log.write_text(json.dumps({"dialogue_id": "a", "utterances": said}) + "\n")
    page = " ".join(run(f"synonyms --data {log} --outcome reply", capsys).split())
    assert " of 2 turns" in page
    assert "the answer stays as it is" in page
    assert "with the recorded replies in place of the bot's" in page
    log.write_text(json.dumps({"dialogue_id": "a", "users": said}) + "\n")
    page = " ".join(run(f"synonyms --data {log} --outcome reply", capsys).split())
    assert "they have no recorded answers" in page


def test_labelled_data_of_which_a_relation_says_nothing_are_not_called_unlabelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    turn = {"system": "", "user": "an olive pizza", "state": {"pizza-topping": "olive"}}
    (tmp_path / "own.jsonl").write_text(json.dumps({"dialogue_id": "a", "turns": [turn]}) + "\n")
    said = run(f"role-swap --data {tmp_path / 'own.jsonl'}", capsys)
    assert "applies  to no turn of the data" in said
    assert "no dialogue with a label" not in said
    assert "the labels in place of the tracker's answers." in said


def test_a_relation_of_a_conftest_is_known_to_be_out_of_reach(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["relations", "more-people"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "unknown relation 'more-people'" in said
    assert "This command reads no conftest.py" in said
    assert cli.main(["relations", "drop,drop"]) == 2
    assert "conftest.py" not in capsys.readouterr().err


def test_an_unknown_name_is_one_message(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["relations", "drp"]) == 2
    assert "unknown relation 'drp'. Did you mean 'drop'?" in capsys.readouterr().err
    assert cli.main(["relations", "drop,drop"]) == 2
    assert "names 'drop' twice" in capsys.readouterr().err
