"""The sheet of violations to group blind, and how far groupings agree."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.trackers.adapters import as_tracker
from tools.weaknesses import agreement, ours, sheet
from tools.weaknesses.agreement import adjusted_rand

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12)


def track(context: Context) -> dict[str, str]:
    """Understand two words as they are spelled."""
    words = " ".join(context.user_utterances).lower().split()
    heard = {"need": ("train-day", "friday"), "please": ("hotel-area", "north")}
    return dict(heard[word] for word in heard if word in words)


def by_pairs(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the index as it is defined: over pairs of things."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    first = [one[a] == one[b] for a, b in pairs]
    second = [other[a] == other[b] for a, b in pairs]
    expected = sum(first) * sum(second) / len(pairs)
    most = (sum(first) + sum(second)) / 2
    both = sum(a and b for a, b in zip(first, second, strict=True))
    return 1.0 if most == expected else (both - expected) / (most - expected)


@given(LABELS)
def test_the_index_counts_pairs(labels: list[tuple[int, int]]) -> None:
    one, other = zip(*labels, strict=True)
    assert adjusted_rand(one, other) == pytest.approx(by_pairs(one, other))
    assert adjusted_rand(one, other) == adjusted_rand(other, one)
    assert adjusted_rand(one, [f"group {label}" for label in one]) == 1.0


#: The shipped dialogues, and a profile that begins at once.
ARGUMENTS = ["--data", "sample", "--validity", "strict", "--model", f"{__name__}:track"]
ARGUMENTS += ["--each", "9"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folders of a sheet and its key, of two trackers that are one."""
    root = tmp_path_factory.mktemp("sheet")
    more = ["--variants", "3", "--output", str(root / "sheet"), "--key", str(root / "key")]
    assert sheet.main([*ARGUMENTS, *more]) == 0
    return root / "sheet", root / "key"


def test_a_sheet_has_one_violation_a_dialogue_and_nothing_of_our_groups(
    folders: tuple[Path, Path],
) -> None:
    lines = (folders[0] / "sheet.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["row"] for row in rows] == list(range(1, 10))
    said = {"row", "tracker", "dialogue", "system", "clean", "variant", "state", "changed"}
    assert {frozenset(row) for row in rows} == {frozenset(said)}
    for row in rows:
        users = [earlier["user"] for earlier in row["dialogue"]]
        assert any("[-" in text or "{+" in text for text in [*users, row["variant"]])
        assert row["changed"]
    ids = (folders[1] / "ids.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert len({line.split("\t")[2].rpartition("-t")[0] for line in ids}) == 9
    assert sorted(path.name for path in folders[0].iterdir()) == ["INSTRUCTIONS.md", "sheet.jsonl"]


def test_another_sheet_can_have_other_dialogues(folders: tuple[Path, Path], tmp_path: Path) -> None:
    seen = sheet.dialogues_of(folders[1] / "ids.tsv")
    assert len(seen) == 9
    arguments = [*ARGUMENTS, "--variants", "6", "--output", str(tmp_path), "--key", str(tmp_path)]
    assert sheet.main([*arguments, "--without", str(folders[1] / "ids.tsv")]) == 0
    assert sheet.dialogues_of(tmp_path / "ids.tsv").isdisjoint(seen)
    assert sheet.main([*arguments, "--without", str(tmp_path / "sheet.jsonl")]) == 2


def test_groups_are_compared_over_all_rows_and_by_tracker(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = folders[1]
    assert ours.main([str(key)]) == 0
    same = tmp_path / "same.csv"
    same.write_text((key / "ours.csv").read_text(encoding="utf-8"), encoding="utf-8")
    apart = tmp_path / "apart.csv"
    apart.write_text("row,group\n" + "".join(f"{n},{n}\n" for n in range(1, 10)), encoding="utf-8")
    files = [str(key / "ids.tsv"), str(key / "ours.csv"), str(same), str(apart)]
    assert agreement.main(files) == 0
    out = capsys.readouterr().out
    assert f"{key / 'ours.csv'} and {same}\t1.000\t1.000" in out
    assert f"groups of {apart}\t9\t9" in out
    apart.write_text("row,group\n1,1\n", encoding="utf-8")
    assert agreement.main(files) == 2
    assert "lacks rows" in capsys.readouterr().err


def test_a_draw_is_the_same_again() -> None:
    data = load_dialogues("sample", "test")
    settings = Settings.of(turns="all", validity="strict", variants=2)
    tracker = as_tracker(track, normalisation=data.normalisation)
    drawn = [sheet.draw(tracker, data, settings, 4) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert all(len(turn.variants) == len(turn.violations) == 1 for turn in drawn[0])
