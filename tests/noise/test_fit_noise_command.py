"""``dstfuzz fit-noise``: what it reads, what it writes, and the mistakes that it explains."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from noisy_logs import noisy_turns

from pytest_dstfuzz import cli
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.noise.fit import read_log
from pytest_dstfuzz.noise.model import NoiseModel


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_lines(path: Path, values: list[object]) -> None:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")


def run(line: str) -> int:
    return cli.main(["fit-noise", *line.split()])


def test_a_model_of_logs_is_one_to_use(
    folder: Path, typing: NoiseModel, capsys: pytest.CaptureFixture[str]
):
    turns = noisy_turns(typing, 400, 0.1)
    write_lines(folder / "logs.jsonl", [{"text": turn.text, "user": 7} for turn in turns])
    assert run("logs.jsonl --output own.json") == 0
    said = capsys.readouterr().out
    assert "user turns: 400;" in said
    assert "written to own.json" in said
    model = NoiseModel.load("own.json")
    assert model.name == "own"
    assert 0.02 < model.slip_rate < 0.2
    assert "slips per word" in said
    assert math.isfinite(model.log_probability("I need a taxi.", "i need a taxi.", 0.02))
    assert math.isfinite(model.log_probability("a restaurant", "a resturant", 0.02))
    # The same logs give the same bytes, and words of the logs alone are in them.
    first = (folder / "own.json").read_bytes()
    assert run("logs.jsonl --output own.json") == 0
    assert (folder / "own.json").read_bytes() == first


def test_dialogues_are_read_too(folder: Path, capsys: pytest.CaptureFixture[str]):
    dialogue = {"dialogue_id": "a", "turns": [{"system": "hi thier", "user": "a taxi"}]}
    write_lines(folder / "talks.jsonl", [dialogue])
    assert run("talks.jsonl --output own.json") == 0
    said = capsys.readouterr().out
    assert "user turns: 1; words: 2; typing slips found: 0" in said
    assert "in lower case" in said
    assert "do not end with punctuation" in said
    assert "no apostrophes" in said
    assert "fewer than 100 typing slips" in said


def test_what_logs_do_not_tell_is_left_out(folder: Path):
    write_lines(folder / "small.jsonl", ["book a table please"] * 30)
    assert run("small.jsonl --output own.json") == 0
    kinds = {kind.name for kind in NoiseModel.load("own.json").file.kinds}
    assert not kinds & {"lower_i", "lower_first", "full_stop", "apostrophe"}
    assert {"missing", "swap", "texting", "blank"} <= kinds


def test_names_are_no_slips(folder: Path):
    turns = ["I have been in Beem, and it has been good.", "It has been good to have been in Beem."]
    write_lines(folder / "logs.jsonl", [*turns] * 40)
    log = read_log(folder / "logs.jsonl", "test")
    assert "beem" in log.names
    assert "been" not in log.names


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "For logs without dialogues, give a .jsonl file"),
        ('{"text": 5}\n', 'line 1 has no text: it needs the key "text"'),
        ('{"text": "a taxi"}\n{"txt": "a"}\n', 'line 2 has no text: it needs the key "text"'),
        ('"a taxi"\n{"text": \n', "line 2 is not valid JSON, perhaps cut off"),
        ('"…"\n', "has no user turn with a word"),
        ("a taxi please\n", "line 1 is not valid JSON"),
    ],
)
def test_damaged_logs_are_one_message(folder: Path, content: str, message: str):
    (folder / "logs.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_log(Path("logs.jsonl"), "test")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "required: LOGS, --output (see dstfuzz fit-noise --help)"),
        ("logs.jsonl", "required: --output"),
        (
            "nothing.jsonl --output own.json",
            "no such file or folder: 'nothing.jsonl'. Did you mean 'logs.jsonl'?",
        ),
        ("logs.jsonl --output logs.jsonl", "--output and the logs are the same file"),
        ("logs.jsonl --ouput own.json --output x", "did you mean --output?"),
        ("logs.jsonl --output own.json --split tset", "Did you mean 'test'?"),
        ("logs.jsonl --output .", "cannot write .: it is a folder"),
    ],
)
def test_mistakes(folder: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]):
    write_lines(folder / "logs.jsonl", ["a taxi"])
    assert run(line) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "own.json").exists()


def test_help_teaches(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        run("--help")
    said = capsys.readouterr().out
    assert "examples:\n  dstfuzz fit-noise" in said
    assert "exactly as users typed them" in said


GOOD = {
    "format": 1,
    "name": "own",
    "slip_rate": 0.02,
    "sources": [],
    "kinds": [{"name": "missing", "share": 1.0, "per_word": 4.0}],
    "tables": {},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "has the format 3, but this package reads 2: update"),
        ({"format": None}, "it has no 'format'"),
        ({"slip_rate": "much"}, "slip_rate: 'much' instead of a number"),
        ({"slip_rate": 2.0}, "slip_rate is 2, but must be at least 0 and at most 1"),
        ({"kinds": []}, "the shares add up to 0.000"),
        (
            {"kinds": [{"name": "mising", "share": 1.0, "per_word": 1.0}]},
            "unknown kind 'mising'; did you mean 'missing'?",
        ),
        ({"kinds": GOOD["kinds"] * 2}, "'missing' is there twice"),
        ({"tables": {"factors": {"missing": {"first": -1.0}}}}, "'first' of 'missing' is -1"),
        ({"tables": {"words": {"texting": {"you": {"u": -1.0}}}}}, "'you' -> 'u' of 'texting'"),
    ],
)
def test_a_damaged_model_is_one_message(folder: Path, change: dict[str, object], message: str):
    (folder / "own.json").write_text(json.dumps(GOOD), encoding="utf-8")
    assert NoiseModel.load("own.json").slips("taxi")[0]
    (folder / "own.json").write_text(json.dumps({**GOOD, **change}), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        NoiseModel.load("own.json")
    assert message in str(caught.value)


def test_a_name_that_is_none():
    with pytest.raises(UserError, match=r"unknown noise model 'typng'\. Did you mean 'typing'\?"):
        NoiseModel.load("typng")
