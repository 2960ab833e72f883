"""The build of the noise models: a whole one of tiny sources, and the list that was read."""

from __future__ import annotations

import csv
import json
import math
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.noise.evidence import SlipEvidence
from pytest_dstfuzz.noise.model import SHIPPED, NoiseModel
from pytest_dstfuzz.noise.tables import NoiseKind
from tools.noise import build, sources
from tools.noise.likelihood import Score, scores

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
    assert "| all that uniform edits make |" in said
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


def test_a_kind_that_uniform_edits_foresee_better_gets_a_higher_share():
    shares = {"inserted": 0.2, "confusion": 0.2, "missing": 0.5, "split": 0.1}
    kinds = [NoiseKind(name, share, 1.0) for name, share in shares.items()]
    trials = [
        Score("inserted", 10.0, 9.0, 0.0),
        Score("confusion", 7.9, 8.0, 0.0),
        Score("missing", 3.0, 8.0, 0.0),
        Score("missing", math.inf, 8.0, 0.0),
        # Uniform edits do not make it.
        Score("split", 12.0, math.inf, 0.0),
    ]
    raised = {kind.name: kind.share for kind in build.with_raised_shares(kinds, trials)}
    assert math.isclose(math.fsum(raised.values()), 1.0)
    # One bit is a factor of two.
    assert raised["inserted"] == 2 * shares["inserted"]
    # The others shrink by a quarter, so that this kind falls below uniform edits, too.
    assert math.isclose(raised["confusion"], shares["confusion"] * 2**-0.1)
    assert raised["missing"] / shares["missing"] == pytest.approx(raised["split"] / shares["split"])
    assert raised["split"] < shares["split"]


def test_uniform_edits_make_texts_one_letter_away():
    model = NoiseModel.load("typing")
    pairs = [("hotel", "hotl"), ("hotel", "ho tel"), ("cambridge", "cambrdgee"), ("a lot", "alot")]
    found = scores(model, [SlipEvidence(*pair, "") for pair in pairs])
    assert [score.what for score in found] == ["missing", "split", "two", "blank"]
    assert [math.isfinite(score.uniform) for score in found] == [True, False, False, True]


def test_slips_without_a_probability_do_not_choose_the_prior():
    impossible = Score("two", math.inf, math.inf, 0.0)
    bits = {1.0: 6.0, 3.0: 5.0, 10.0: 7.0}
    trials = {kappa: [impossible, Score("swap", model, 8.0, 0.0)] for kappa, model in bits.items()}
    assert build.best_prior(trials) == 3.0


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
