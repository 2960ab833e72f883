"""The weaknesses shown are there: the trackers are asked again for each conversation."""

from __future__ import annotations

import re

import pytest
from pages_of_docs import texts

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Tracker
from tools.docs.gallery import SHOWN, marked, weaknesses

SHOWN_ONE = re.compile(
    r"^### (TRADE|SimpleTOD) .*?`\n\n.*?dialogue\s`(\w+)`,\sturn\s(\d+):\n\n```text\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
DATA = load_dialogues("sample", "test")
DIALOGUES: dict[str, Dialogue] = {dialogue.id: dialogue for dialogue in DATA.dialogues}


@pytest.mark.parametrize("name", ["TRADE", "SimpleTOD"])
def test_each_weakness_is_there(name: str) -> None:
    pytest.importorskip("torch" if name == "TRADE" else "transformers")
    found = [
        shown for shown in SHOWN_ONE.findall(texts()["gallery/weaknesses.md"]) if shown[0] == name
    ]
    assert len(found) == SHOWN
    contexts, told = [], []
    for _, dialogue_id, turn, text in found:
        dialogue, index = DIALOGUES[dialogue_id], int(turn)
        lines = re.split(
            r"^(system:|user:|does:) +", re.sub(r"\n +", " ", text), flags=re.MULTILINE
        )[1:]
        said = list(zip(lines[::2], (line.strip() for line in lines[1::2]), strict=True))
        *_, (_, user), (_, does) = said
        clean = re.sub(r"\[-(.*?)-\]|\{\+.*?\+\}", r"\1", user)
        assert " ".join(clean.split()) == " ".join(dialogue.turns[index].user.split())
        changed = re.sub(r"\[-.*?-\]|\{\+(.*?)\+\}", r"\1", user)
        contexts += [dialogue.context(index), dialogue.context(index, {index: changed})]
        told.append(re.fullmatch(r"([\w -]+): (.+) -> (.+)", does))
    states = [prediction.state for prediction in tracker(name).predict(contexts)]
    for match, before, after in zip(told, states[::2], states[1::2], strict=True):
        assert match is not None
        assert (before.get(match[1]) or "none") == match[2], match[0]
        assert (after.get(match[1]) or "none") == match[3], match[0]


def tracker(name: str) -> Tracker:
    """The shipped tracker of that name."""
    return resolve_tracker(name.lower(), batch_size=8)


def test_a_change_is_marked_word_by_word() -> None:
    assert (
        marked("with free parking.", "with free patking.") == "with free [-parking.-]{+patking.+}"
    )
    assert marked("to leave after", "to leaveafter") == "to [-leave after-]{+leaveafter+}"
    assert marked("nice", "nice please") == "nice {+please+}"


def test_an_example_has_a_likely_edit_and_a_right_clean_answer() -> None:
    def turn(
        index: int, operator: str, label: str, said: tuple[str, str] = ("nice", "nyce")
    ) -> dict[str, object]:
        change = {"slot": "hotel-area", "before": "north", "after": None, "carried": False}
        minimal = {"edits": [{"operator": operator}], "context_edits": [], "text": said[1]}
        minimal["changed_slots"] = [change]
        return {
            "id": str(index),
            "label": {"hotel-area": label},
            "user": said[0],
            "variants": [{"minimal": minimal}],
        }

    unlikely, wrong = turn(0, "look_alike", "north"), turn(1, "misspelling", "south")
    letter = turn(3, "keyboard", "north", ("I, too", "J, too"))
    good = turn(2, "misspelling", "north")
    (found,) = weaknesses({"turns": [unlikely, wrong, letter, good]})
    assert (found.kind, found.turn["id"], found.violations, found.turns) == ("lost", "2", 4, 4)
    assert weaknesses({"turns": [unlikely, wrong, letter]}) == []
