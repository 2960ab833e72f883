"""The slots that a user names, and what is said of labels that are not everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.ontology import partial_labels, with_slots
from pytest_dstfuzz.errors import UserError


def talks(folder: Path, labelled: int, **beside: object) -> DialogueSet:
    """Write and read four conversations of two turns, so many of them with labels."""
    states = [{"size": "big", "crust": "thin"}, {"size": "big", "crust": "thin", "time": "8 pm"}]
    lines = [
        {"dialogue_id": f"d{number}", "users": ["A big thin one", "At 8 pm"]}
        | ({"states": states} if number < labelled else {})
        for number in range(4)
    ]
    for name, content in beside.items():
        (folder / f"talks.{name}.json").write_text(json.dumps(content), encoding="utf-8")
    path = folder / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return load_dialogues(path)


def test_partial_labels_are_told(tmp_path: Path) -> None:
    data = talks(tmp_path, 1)
    assert partial_labels(data) == "2 of 8 turns have labels, in 1 of 4 dialogues"
    (note,) = data.notes
    assert note.startswith("2 of 8 turns have labels, in 1 of 4 dialogues; they name 3 slots")
    assert "--dst-slots" in note
    assert not data.says_slots


@pytest.mark.parametrize("labelled", [0, 4])
def test_none_and_all_are_not_partial(tmp_path: Path, labelled: int) -> None:
    data = talks(tmp_path, labelled)
    assert (partial_labels(data), data.notes) == ("", ())
    assert data.says_slots is (labelled == 4)


def test_an_ontology_says_which_slots_there_are(tmp_path: Path) -> None:
    data = talks(tmp_path, 1, ontology={"size": [], "crust": [], "time": [], "topping": []})
    assert data.notes == ()
    assert data.says_slots


def test_the_slots_that_are_named_are_all_there_are(tmp_path: Path) -> None:
    data = talks(tmp_path, 1)
    chosen = with_slots(data, ("Topping", "size"))
    assert chosen.ontology is not None
    assert dict(chosen.ontology.values) == {"size": ("big",), "topping": ()}
    assert chosen.ontology.complete
    assert chosen.says_slots
    # Labels of other slots could be neither right nor wrong; turns without one still have none.
    first, *others = chosen.dialogues
    assert [turn.state for turn in first.turns] == [{"size": "big"}, {"size": "big"}]
    assert others == list(data.dialogues[1:])


def test_without_names_nothing_changes(tmp_path: Path) -> None:
    data = talks(tmp_path, 4)
    assert with_slots(data, ()) is data


def test_a_slot_that_the_ontology_does_not_have_is_told(tmp_path: Path) -> None:
    data = talks(tmp_path, 0, ontology={"size": [], "crust": []})
    with pytest.raises(UserError, match=r"slots: unknown slot 'crusts'. Did you mean 'crust'\?"):
        with_slots(data, ("size", "crusts"))
    woz = load_dialogues("sample")
    with pytest.raises(UserError, match=r"slots: unknown slot 'hotel-aera'. Did you mean"):
        with_slots(woz, ("hotel-aera",))
    found = with_slots(woz, ("hotel-bookday",)).ontology
    assert found is not None
    assert found.slots == ("hotel-book day",)
