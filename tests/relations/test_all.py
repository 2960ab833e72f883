"""What all relations that ship keep to, on the shipped dialogues, and in other processes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Context, Settings
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name, relations_named
from pytest_dstfuzz.relations.relation import (
    Delta,
    Inapplicable,
    Relation,
    Replacement,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.testing import check_relation

NAMES = RELATIONS.shipped
SAMPLE = load_dialogues("sample")


def test_no_two_have_one_name() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert NAMES[:2] == ("metamorphic", "gold")


def test_all_makes_no_variant_twice() -> None:
    """Where the clean answer is right, gold makes those of metamorphic again."""
    names = [one.name for one in relations_named("all", SAMPLE)]
    assert names[0] == "metamorphic"
    assert "gold" not in names
    assert [one.name for one in relations_named("metamorphic,gold")] == ["metamorphic", "gold"]


@pytest.mark.parametrize("name", NAMES)
def test_the_relations_that_ship_are_sound(name: str) -> None:
    relation = relation_by_name(name)
    data = load_dialogues("sample", outcome=relation.on[0])
    if why := relation.impossible(data):
        with pytest.raises(UserError, match=re.escape(why)):
            check_relation(name, data)
        return
    found = check_relation(name, "sample")
    found.assert_passed()
    assert found.asked == found.applicable + sum(found.inapplicable.values())
    assert (found.rewrites > 0) == (relation.edits == "own" and found.applicable > 0)


def track(context: Context) -> dict[str, str]:
    """Follow some words wherever they stand."""
    said = " ".join(context.user_utterances).lower()
    values = {"north": "area", "centre": "area", "cheap": "pricerange", "expensive": "pricerange"}
    return {f"restaurant-{slot}": value for value, slot in values.items() if value in said}


def digest() -> str:
    """Return what tells the results of all relations from others."""
    settings = Settings.of(turns=12, variants=3, seed=11)
    found: list[Any] = [one.to_json() for one in Campaign(track, SAMPLE, settings, relation="all")]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


@pytest.mark.nightly
def test_results_are_the_same_in_another_process() -> None:
    code = "import test_all; print(test_all.digest())"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parent)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == digest()


class Faulty(Relation):
    """Breaks the rules that are chosen."""

    name = "faulty"
    edits = "own"
    side = "should-change"
    reasons = ("listed",)
    asked = 0

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def begin(self, scene: Scene) -> TurnStart:
        """Make one rewrite, or none."""
        self.asked += 1
        if self.fault == "reason":
            return Inapplicable("unlisted")
        old = "west" if self.fault == "before" else scene.now.get("a")
        new = f"east{self.asked}" if self.fault == "draw" else "east"
        delta = Delta("a", old, Admissible((new,)))
        return [scene.rewrite([Replacement(0, 1, "x", "x")], [delta])]


DATA = DialogueSet("d", "test", (Dialogue("d", (Turn(0, "", "hi", BeliefState({"a": "n"})),)),))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("reason", "'unlisted': the reason must be one of listed"),
        ("before", "its delta of a starts from west, but the value is n"),
        ("draw", "turn 0 of 'd': a second call returned another result"),
    ],
)
def test_what_is_wrong_is_told(fault: str, message: str) -> None:
    found = check_relation(Faulty(fault), DATA)
    assert found.passed == (not fault)
    if fault:
        with pytest.raises(AssertionError, match=message):
            found.assert_passed()
