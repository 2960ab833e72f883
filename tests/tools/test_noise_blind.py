"""The sheet to judge blind: what is on it, where it comes from, and how judgements are counted."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_dstfuzz.noise.evidence import Evidence, SlipEvidence, Text, TextCounts, part_of
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import plain
from tools.noise import blind, build
from tools.noise.blind_score import write_key, write_sheet
from tools.noise.sources import read_slips

#: All stand in the list of slips, or sentences with them would count as clean.
SLIPS = {"restaurant": "resturant", "their": "thier", "want": "wnat", "a lot": "alot"}
#: Some more slips and their words. From the few above, a model learns too few letters.
MORE = [(words[0], typed) for typed, words in [*read_slips().items()][::40] if typed.isalpha()]
CLEAN = (
    "i need a restaurant in the centre please.",
    "their museum is different from the other museum.",
    "book a table for tomorrow because i want to eat there!",
    "thank you a lot for the information.",
    "is there a hotel near it?",
    *(f"{word} is fine." for word, _ in MORE),
)
#: Two slips in one sentence: none of them is shown.
TWICE = "thier resturant is closed."
HEAD = "# Dialogue ID\tTurn Index\tLast Turn\tSystem Response\tUser Utterance\thotel-area"
DIALOGUES = 500
ITEMS = 8


def slipped(text: str) -> str:
    """Return a text with its slip."""
    for word, typed in SLIPS.items():
        text = text.replace(word, typed)
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    rows = [HEAD]
    dialogues = []
    for number in range(DIALOGUES):
        clean = [CLEAN[number % 5], CLEAN[(number + 1) % 5]]
        texts = [slipped(clean[0]) if number % 4 == 0 else clean[0], clean[1]]
        if number % 4 == 1:
            texts.append(TWICE)
        word, typed = MORE[number % len(MORE)]
        texts.append(f"{typed if number % 4 == 3 else word} is fine.")
        rows.append(f"D{number}\t0\tTrue\t\t{' '.join(texts)}\tnone")
        if number % 2:
            said = [{"speaker": "USER", "utterance": text.capitalize()} for text in texts]
            dialogues.append({"dialogue_id": f"{number}", "turns": said})
        else:
            said = [{"speaker": "SYSTEM", "utterance": slipped(clean[1]).capitalize()}]
            dialogues.append({"dialogue_id": f"{number}", "turns": said})
    with zipfile.ZipFile(folder / "trade-tsv.zip", "w") as archive:
        archive.writestr("train.tsv", "\n".join(rows) + "\n")
    with zipfile.ZipFile(folder / "train.zip", "w") as archive:
        archive.writestr("train/dialogues_001.json", json.dumps(dialogues))
    content = plain(NoiseModel.load("typing").file)
    # Often enough for few sentences.
    (folder / "model.json").write_text(json.dumps({**content, "slip_rate": 0.1}))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[..., Path]:
    def run(output: str, *more: str, status: int = 0) -> Path:
        arguments = [
            f"--multiwoz={folder / 'trade-tsv.zip'}",
            f"--sgd={folder / 'train.zip'}",
            f"--model={folder / 'model.json'}",
            f"--items={ITEMS}",
            f"--output={folder / output}",
            *more,
        ]
        assert blind.main(arguments) == status
        return folder / output

    return run


@pytest.fixture(scope="module")
def output(run: Callable[..., Path]) -> Path:
    """The folder of a sheet and its key."""
    return run("out")


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_item_is_a_sentence_with_one_slip(output: Path):
    sheet, key = rows_of(output / "sheet.csv"), rows_of(output / "key.csv")
    assert list(sheet[0]) == ["id", "sentence", "judgement"]
    assert [row["id"] for row in sheet] == [str(n) for n in range(1, 2 * ITEMS + 1)]
    for row, known in zip(sheet, key, strict=True):
        assert row["id"] == known["id"]
        assert row["judgement"] == ""
        found = re.fullmatch(r"(.*)\[\[(.+)\]\](.*)", row["sentence"])
        assert found is not None
        assert found[2].lower() == known["typed"] != known["word"]
        mended = f"{found[1]}{known['word']}{found[3]}".lower()
        assert mended in CLEAN
        if known["kind"] == "real":
            assert (known["word"], known["typed"]) in {*SLIPS.items(), *MORE}
    assert {row["kind"] for row in key[:ITEMS]} == {"real", "made"}


def test_both_halves_are_of_the_same_sources_and_of_dialogues_held_out(output: Path):
    key = rows_of(output / "key.csv")
    of = {
        kind: Counter(row["source"] for row in key if row["kind"] == kind)
        for kind in ("real", "made")
    }
    assert of["real"] == of["made"]
    assert of["real"].keys() == {"multiwoz", "sgd"}
    assert of["real"].total() == ITEMS
    dialogues = [row["dialogue"] for row in key]
    assert len(set(dialogues)) == len(dialogues)
    assert {part_of(dialogue, build.FOLDS) for dialogue in dialogues} == {blind.PART}


def test_the_seed_says_what_is_chosen(output: Path, run: Callable[..., Path]):
    same, other = run("same"), run("other", "--seed=1")
    for name in ("sheet.csv", "key.csv"):
        assert (output / name).read_bytes() == (same / name).read_bytes()
        assert (output / name).read_bytes() != (other / name).read_bytes()


def test_made_ones_may_be_of_the_sort_that_is_found(run: Callable[..., Path]):
    made = [
        row for row in rows_of(run("findable", "--findable") / "key.csv") if row["kind"] == "made"
    ]
    assert len(made) == ITEMS
    for row in made:
        assert len(row["typed"]) >= 4
        assert row["typed"].isalpha()
        assert row["typed"] not in " ".join(CLEAN).split()


def test_the_model_knows_nothing_of_the_part_that_is_left_out():
    sources = [f"multiwoz {number}" for number in range(40)]
    inside = [source for source in sources if part_of(source, build.FOLDS) == blind.PART]
    outside = [source for source in sources if source not in inside]
    texts = [Text(source, "a museum for tomorrow") for source in sources]
    slips = [
        *(SlipEvidence("museum", "musaeum", source) for source in inside),
        *(SlipEvidence("tomorrow", "tommorow", source) for source in outside),
    ]
    counts = TextCounts.of(t.text for t in texts)
    evidence = Evidence(counts, slips, {}, {"m": "n"}, {"museum"}.__contains__)
    forms = build.model_without(evidence, texts, blind.PART).file.tables.words["misspelling"]
    assert "tommorow" in forms["tomorrow"]
    assert "museum" not in forms


def test_what_cannot_be_made(run: Callable[..., Path], capsys: pytest.CaptureFixture[str]):
    run("none", "--items=1000", status=2)
    assert "held-out dialogues, not in 1000" in capsys.readouterr().err
    run("none", "--model=casual", status=2)
    assert "casual is no model of typing: it has apostrophe" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        blind.main(["--model=typing"])
    assert "or --score" in capsys.readouterr().err


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Path]:
    """Return a sheet with three of four judged rightly, and its key."""
    sheet, key = tmp_path / "sheet.csv", tmp_path / "key.csv"
    write_sheet(sheet, ["a [[slpi]]", 'a, "b" [[alot]]', "the [[tabel]]", "a [[hottel]]"])
    text = sheet.read_text(encoding="utf-8")
    for said in ("real", " Made", "real", "real"):
        text = re.sub(r",(\n|$)", rf",{said}\1", text, count=1)
    sheet.write_text(text, encoding="utf-8")
    kinds = [("real", "swap"), ("made", "blank"), ("real", "swap"), ("made", "repeat")]
    write_key(key, [(kind, "sgd", f"sgd {what}", what, "w", "t") for kind, what in kinds])
    return sheet, key


def test_the_share_told_apart(judged: tuple[Path, Path], capsys: pytest.CaptureFixture[str]):
    assert blind.main(["--score", *map(str, judged)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| all | 4 | 3 | 75.0 % | 19.4 % to 99.4 % |",
        "| real | 2 | 2 | 100.0 % | 15.8 % to 100.0 % |",
        "| made | 2 | 1 | 50.0 % | 1.3 % to 98.7 % |",
        "| a letter twice | 1 | 0 | 0.0 % | 0.0 % to 97.5 % |",
        "| two letters swapped | 2 | 2 | 100.0 % | 15.8 % to 100.0 % |",
        "| a blank missing | 1 | 1 | 100.0 % | 2.5 % to 100.0 % |",
    ]


def test_judgements_that_are_none(
    judged: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    sheet, key = judged
    text = sheet.read_text(encoding="utf-8")
    for broken, says in (
        (text.replace(",real", ",", 1), "the judgement of 1 is ''; real or made is expected"),
        (text.replace("\n4,", "\n5,"), "is not the key of"),
        (text.replace("judgement", "kind"), "the columns id, sentence, judgement are expected"),
        (text + "5,a\n", "row 5 has 2 columns, not 3"),
    ):
        sheet.write_text(broken, encoding="utf-8")
        assert blind.main(["--score", str(sheet), str(key)]) == 2
        assert says in capsys.readouterr().err
    assert blind.main(["--score", str(tmp_path / "none.csv"), str(key)]) == 2
    assert "cannot read" in capsys.readouterr().err
