import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue import normalise
from pytest_dstfuzz.dialogue.dialogues import diff_states
from pytest_dstfuzz.dialogue.load import load_dialogues

pytestmark = pytest.mark.shared_data


def slots_of(dialogues: Any) -> set[str]:
    return {slot for d in dialogues.dialogues for turn in d.turns for slot in turn.state or ()}


def test_both_copies_of_the_2_1_test_split_agree(
    shared_data: Path, record_property: Callable[[str, object], None]
):
    folder = shared_data / "multiwoz21"
    original = load_dialogues(folder, "test")
    trade = load_dialogues(folder, "test", layout="trade")
    assert (original.layout, original.turn_count()) == ("original", 7372)
    assert (trade.layout, trade.turn_count()) == ("trade", 7368)
    by_id = {dialogue.id: dialogue for dialogue in original.dialogues}
    pairs = [
        (mine, theirs)
        for dialogue in trade.dialogues
        for mine, theirs in zip(by_id[dialogue.id].turns, dialogue.turns, strict=True)
    ]
    changes = [diff_states(mine.state, theirs.state) for mine, theirs in pairs]
    equal = sum(not change for change in changes) / len(pairs)
    record_property("label_agreement", round(equal, 4))
    assert len(pairs) == 7368
    # The rest are labels that the TRADE layout leaves out, not other spellings.
    assert equal >= 0.985
    assert sum(c.after is not None for change in changes for c in change) <= 1


@pytest.mark.parametrize(
    ("folder", "split", "layout", "dialogues", "turns"),
    [
        ("multiwoz21", "train", None, 7904, 54984),
        ("multiwoz21", "val", "trade", 1000, 7371),
        ("multiwoz21/val.json.zip", "val", None, 999, 7365),
        ("multiwoz20", "val", None, 999, 7365),
        ("multiwoz20", "test", None, 1000, 7372),
    ],
)
def test_published_files(
    shared_data: Path, folder: str, split: str, layout: str | None, dialogues: int, turns: int
):
    found = load_dialogues(shared_data / folder, split, layout=layout)
    assert (len(found.dialogues), found.turn_count()) == (dialogues, turns)
    assert found.labelled
    assert slots_of(found) == set(normalise.SLOTS)
    assert found.ontology is not None
    assert found.ontology.slots == normalise.SLOTS
    assert found.name == folder[:10]


def test_the_test_split_is_read_in_seconds(shared_data: Path):
    start = time.process_time()
    load_dialogues(shared_data / "multiwoz21", "test")
    assert time.process_time() - start < 10


def test_schema_of_2_2_brings_the_slots(
    shared_data: Path,
    write: Callable[[str, Any], Path],
    sharded: list[dict[str, Any]],
    tmp_path: Path,
):
    (tmp_path / "w").mkdir()
    schema = (shared_data / "multiwoz22" / "schema.json").read_bytes()
    (tmp_path / "w/schema.json").write_bytes(schema)
    found = load_dialogues(write("w/test/dialogues_001.json", sharded).parents[1])
    assert found.ontology is not None
    assert found.ontology.slots == normalise.SLOTS
    assert found.ontology.values["hotel-area"] == normalise.AREAS
