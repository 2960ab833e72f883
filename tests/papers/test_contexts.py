"""Checks of contexts against rewrites, on questions that were written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.papers.canard import Rewrites, half_of, load_rewrites
from pytest_dstfuzz.papers.contexts import main
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.contexts import AskedQuestion
from tests.relations.contexts.harbour import entries, write

#: Of the harbour and of Ada Quill, so often that both halves have both.
COPIES = 3


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copies = [
        {**entry, "QuAC_dialog_id": f"{entry['QuAC_dialog_id']}_{copy}"}
        for copy in range(COPIES)
        for entry in entries()
    ]
    return write(tmp_path_factory.mktemp("canard"), copies)


@pytest.fixture(scope="module")
def gold(path: Path) -> Rewrites:
    return load_rewrites(path, load_lexicon())


def equivalent(gold: Rewrites, dialogue: Dialogue, *order: int) -> bool:
    return gold.equivalent(AskedQuestion(dialogue, order, len(order) - 1, gold.lexicon))


def test_what_a_rewrite_adds_is_needed_as_far_as_the_context_has_it(gold: Rewrites):
    harbour, bakery = gold.data.dialogues[:2]
    assert gold.needed(harbour, 0) == frozenset()
    assert gold.needed(harbour, 1) == {"magnus", "troup", "harbour"}
    assert gold.needed(bakery, 1) == {"ada", "quill", "rye", "loaf"}
    assert gold.needed(bakery, 2) == {"ada", "quill"}
    assert equivalent(gold, harbour, 0, 1)
    assert not equivalent(gold, harbour, 3, 1)
    assert equivalent(gold, bakery, 2)  # The title says her name.
    assert gold.differs(harbour, 1)
    assert not gold.differs(harbour, 0)


def test_the_tables_are_the_same_each_time(path: Path, gold: Rewrites, tmp_path: Path):
    assert {half_of(dialogue) for dialogue in gold.data.dialogues} == {0, 1}
    for name in ("one", "other"):
        assert main(["--canard", str(path), "--out", str(tmp_path / name)]) == 0
    found = (tmp_path / "one" / "contexts.md").read_text(encoding="utf-8")
    assert found.replace("--out one", "--out other") == (
        tmp_path / "other" / "contexts.md"
    ).read_text(encoding="utf-8")
    assert "| `needed` | half 1 |" in found
    rows = (tmp_path / "one" / "contexts.csv").read_text(encoding="utf-8").splitlines()
    row = next(one for one in rows if one.startswith("asked,semantic,half 0,needed: recall,"))
    part, whole = row.split(",")[4:6]
    assert 0 < int(part) <= int(whole)
