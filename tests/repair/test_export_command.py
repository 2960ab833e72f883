"""``dstfuzz export`` as its users run it: on the JSON report of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hotel_talks import write_run, write_talks

from pytest_dstfuzz import UserError, load_dialogues
from pytest_dstfuzz.repair.commands import EXPORT

ROWS = ("--rows", "10")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The report of a bot with rules, in the folder of the bot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return write_run(tmp_path, re.sub(r"\W", "_", request.node.name))


def export(
    *reports: Path, form: str = "jsonl", measured: str = "no", options: tuple[str, ...] = ()
) -> Path:
    path = reports[0].with_name("out.jsonl")
    words = ["--form", form, "--output", str(path), "--measured", measured]
    EXPORT.run([*map(str, reports), *words, *options])
    return path


def test_rows_have_their_origin_and_their_number(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(report, options=ROWS)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(lines) == 10
    turns = {
        (turn["id"], one["index"]): one["outcome"]
        for turn in json.loads(report.read_text("utf-8"))["turns"]
        for one in turn["variants"]
    }
    for line in lines:
        about = line["provenance"]
        assert turns[about["turn"], about["variant"]] == "violation"
        assert line["dialogue_id"].startswith(about["turn"])
    out = capsys.readouterr().out
    assert "10 examples of" in out
    assert all(line["provenance"]["weakness"] in out for line in lines)
    assert len(load_dialogues(path, "train").dialogues) == 10


def test_the_same_report_gives_the_same_bytes(report: Path) -> None:
    first = export(report, options=ROWS).read_bytes()
    assert export(report, options=ROWS).read_bytes() == first
    assert export(report, options=(*ROWS, "--seed", "1")).read_bytes() != first
    # A second copy of the report adds nothing.
    again = report.with_name("again.json")
    again.write_bytes(report.read_bytes())
    assert export(report, again, options=ROWS).read_bytes() == first


def test_the_measured_split_is_refused_by_id_and_by_text(report: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'r0"):
        export(report, measured=str(report.with_name("rooms.jsonl")))
    folder = tmp_path / "other"
    folder.mkdir()
    copied = write_talks(folder)
    text = copied.read_text("utf-8").replace('"r', '"z').replace("I would", "i WOULD")
    copied.write_text(text, "utf-8")
    with pytest.raises(UserError, match="'z"):
        export(report, measured=str(copied))
    copied.write_text(text.replace("i WOULD", "\uff49 WOULD"), "utf-8")
    with pytest.raises(UserError, match="'z"):
        export(report, measured=str(copied))
    assert not report.with_name("out.jsonl").exists()
    copied.write_text(text.replace("i WOULD like", "i want"), "utf-8")
    assert export(report, measured=str(copied)).exists()


@pytest.mark.parametrize("form", ["multiwoz", "trade"])
def test_slots_that_a_form_lacks_are_refused(report: Path, form: str) -> None:
    with pytest.raises(UserError, match="slots of MultiWOZ"):
        export(report, form=form)


@pytest.mark.parametrize("name", ["report.json", "rooms.jsonl", "measured.jsonl"])
def test_inputs_are_not_overwritten(report: Path, name: str) -> None:
    path, measured = report.with_name(name), report.with_name("measured.jsonl")
    measured.write_text('{"dialogue_id": "m", "users": ["hello"]}\n', "utf-8")
    before = path.read_bytes()
    words = ["--form", "jsonl", "--output", str(path), "--measured", str(measured)]
    with pytest.raises(UserError, match="same file"):
        EXPORT.run([str(report), *words])
    assert path.read_bytes() == before


def test_a_file_in_the_folder_of_the_measured_data_is_not_overwritten(report: Path) -> None:
    folder = report.with_name("measured")
    folder.mkdir()
    path = folder / "test.jsonl"
    path.write_text('{"dialogue_id": "m", "users": ["hello"]}\n', "utf-8")
    words = ["--form", "jsonl", "--output", str(path), "--measured", str(folder)]
    with pytest.raises(UserError, match="same file"):
        EXPORT.run([str(report), *words])
    assert "hello" in path.read_text("utf-8")


def test_reports_with_other_seeds_are_joined(report: Path) -> None:
    alone = len(export(report).read_text("utf-8").splitlines())
    kept = report.rename(report.with_name("first.json"))
    write_run(report.parent, "other_seed_bot", seed=1)
    path = export(kept, report)
    # The readers refuse ids that are not unique.
    assert len(load_dialogues(path, "train").dialogues) > alone


def test_redacted_reports_are_refused(report: Path) -> None:
    content = json.loads(report.read_text("utf-8"))
    content["settings"]["redact"] = True
    report.write_text(json.dumps(content), "utf-8")
    with pytest.raises(UserError, match="--dst-redact"):
        export(report)
