"""The build of the noise models: a whole one of tiny sources, and the list that was read."""

from __future__ import annotations

import csv
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.noise.model import SHIPPED, NoiseModel
from tools.noise import build, sources

CLEAN = (
    "i need a restaurant in the centre please",
    "their museum is different from the other museum",
    "book a table for tomorrow because i want to eat there",
    "thank you a lot for the information",
)
SLIPS = {"restaurant": "resturant", "their": "thier", "tomorrow": "tomorow", "please": "plese"}
HEAD = "# Dialogue ID\tTurn Index\tLast Turn\tSystem Response\tUser Utterance\thotel-area"
CMU = ["there DH EH1 R", "their DH EH1 R", "inn IH1 N", "in IH0 N", "eye AY1", "ate(2) EY1 T"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [HEAD]
    dialogues = []
    for number in range(60):
        text = CLEAN[number % len(CLEAN)]
        if number % 3 == 0:
            text = " ".join(SLIPS.get(word, word) for word in text.split())
        rows.append(f"D{number}\t0\tTrue\t\t{text}\tnone")
        raw = f"{text[:1].upper()}{text[1:]}." if number % 5 else text.replace(" i ", " I ")
        turns = [
            {"speaker": "USER", "utterance": raw},
            {"speaker": "SYSTEM", "utterance": "Here is the the information."},
        ]
        dialogues.append({"dialogue_id": f"{number}", "turns": turns})
    with zipfile.ZipFile(tmp_path / "trade-tsv.zip", "w") as archive:
        archive.writestr("train.tsv", "\n".join(rows) + "\n")
    with zipfile.ZipFile(tmp_path / "train.zip", "w") as archive:
        archive.writestr("train/dialogues_001.json", json.dumps(dialogues))
        archive.writestr("train/schema.json", "[]")
    (tmp_path / "cmudict.dict").write_text("\n".join(CMU) + "\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, output: str) -> int:
    return build.main(
        [
            f"--multiwoz={folder / 'trade-tsv.zip'}",
            f"--sgd={folder / 'train.zip'}",
            f"--cmudict={folder / 'cmudict.dict'}",
            f"--output={folder / output}",
        ]
    )


def test_tiny_sources_make_three_models(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(folder, "out") == 0
    said = capsys.readouterr().out
    assert "| all |" in said
    models = {name: NoiseModel.load(str(folder / "out" / f"{name}.json")) for name in SHIPPED}
    known = models["typing"].file.tables.words["misspelling"]
    assert "resturant" in known["restaurant"]
    chance = models["typing"].log_probability("their restaurant", "thier restaurant", 0.02)
    assert chance > models["typing"].log_probability("their restaurant", "theur restaurant", 0.02)
    casual = {kind.name: kind.share for kind in models["casual"].file.kinds}
    assert casual["full_stop"] > casual["emoji"] > 0
    assert models["speech"].file.tables.words["homophone"] == {
        "their": {"there": 1.0},
        "there": {"their": 1.0},
    }
    # The same sources give the same bytes.
    assert run(folder, "again") == 0
    for name in SHIPPED:
        one, other = (folder / place / f"{name}.json" for place in ("out", "again"))
        assert one.read_bytes() == other.read_bytes()


def test_sources_that_are_none(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "train.zip").write_text("no archive", encoding="utf-8")
    assert run(folder, "out") == 2
    assert "cannot read the dialogues of" in capsys.readouterr().err
    with pytest.raises(DataError, match="cannot read"):
        sources.homophones(folder / "nothing", Counter(), build.load_lexicon(), ())


def test_the_list_that_was_read_is_whole():
    path = sources.FOLDER / "slips.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 2363
    assert sum(row["kept"] == "yes" for row in rows) == 1663
    for row in rows:
        assert (row["kept"] == "no") == bool(row["reason"]), row
        assert int(row["multiwoz"]) + int(row["sgd"]) > 0, row
        # Words, no sentences.
        assert len(row["word"].split()) <= 2, row
        assert row["word"] != row["slip"], row
    kept = sources.read_slips()
    assert kept["thier"] == ("their",)
    assert kept["alot"] == ("a lot",)
    assert "thats" not in kept


def test_the_shipped_models_are_small_and_have_the_kinds_that_the_card_names():
    folder = Path(build.__file__).parents[2] / "pytest_dstfuzz" / "resources" / "noise"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    for name in SHIPPED:
        assert f"`{name}.json`" in card
        assert NoiseModel.load(name).slip_rate == build.SLIP_RATE
