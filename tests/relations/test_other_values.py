"""Which other values a slot may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scenes import labelled_talk, scene_of

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.relations.relation import Inapplicable
from pytest_dstfuzz.relations.should_change.base import needs_values
from pytest_dstfuzz.relations.should_change.relations import ValueSwap
from pytest_dstfuzz.relations.values import ValueTable

CITIES = ("bath", "ely", "norwich", "oslo", "stevenage", "truro", "wells", "york")


def test_two_slots_with_the_same_values_do_not_hold_each_other_back() -> None:
    # By their names and values the first is an end of a journey, the other one a choice.
    data = labelled_talk(
        ("I start in ely", {"trip-origin": "ely"}),
        ontology=Ontology({"trip-origin": CITIES, "trip-goal": CITIES, "trip-inn": ("ely", "inn")}),
    )
    table = ValueTable.of(data)
    assert (table.kinds["trip-origin"], table.kinds["trip-goal"]) == ("end", "choice")
    assert set(table.others("trip-origin", "ely")) == {*CITIES} - {"ely"}
    assert set(table.others("trip-goal", "ely")) == {*CITIES} - {"ely"}
    found = ValueSwap().begin(scene_of(data))
    assert not isinstance(found, Inapplicable)


def test_a_name_does_not_become_a_value_of_another_slot() -> None:
    values = {"inn-name": ("old mill", "north", "north gate"), "inn-area": ("north", "south")}
    table = ValueTable.of(labelled_talk(("hello", {}), ontology=Ontology(values)))
    assert table.others("inn-name", "old mill") == ()


def test_amounts_keep_their_unit() -> None:
    values = {"bill-tip": ("0.2", "10 %", "15", "15 %", "20", "20 %", "none at all")}
    table = ValueTable.of(labelled_talk(("hello", {}), ontology=Ontology(values)))
    assert table.others("bill-tip", "15") == ("20",)
    assert table.others("bill-tip", "15 %") == ("10 %", "20 %")


@pytest.mark.parametrize(
    ("dialogues", "values", "reason"),
    [
        (20, 20, ""),
        (60, 60, "at least two values, each of them labelled in 3 dialogues"),
        (60, 2, ""),
        (60, 1, "neither an ontology nor labels with two values of one slot"),
    ],
)
def test_the_reason_names_the_labels_that_large_data_needs(
    tmp_path: Path, dialogues: int, values: int, reason: str
) -> None:
    talks = [
        {
            "dialogue_id": f"d{number}",
            "turns": [{"system": "", "user": "go", "state": {"trip-goal": f"x{number % values}"}}],
        }
        for number in range(dialogues)
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    found = needs_values("value-swap", load_dialogues(path))
    assert reason in found
    assert bool(found) == bool(reason)
