"""The text of a failed test: at most 15 lines, whatever the kind of bot, the edits and the data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import ContextEdits, SeenRound, TurnResult, Votes
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome, reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Difference, diff_states
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Move
from pytest_dstfuzz.report.explain import MOST_LINES, explain, explain_in_a_line, weakness_of
from tests.report.rewritten import swap, turn, twice

LONG = "a word after another "
COMMAND = f"pytest -k it {'--dst-data=talks.jsonl ' * 8}--dst-seed=0"


def text(result: TurnResult, relation: str = "metamorphic") -> list[str]:
    return explain(
        result, Settings.of(relation=relation), command=COMMAND, weakness=weakness_of(result)
    ).splitlines()


def edited(source: str, every: int = 20) -> tuple[str, tuple[Edit, ...]]:
    """Return a text with a letter doubled in many places, and the edits."""
    places = range(0, len(source), every)
    edits = tuple(
        Edit("char_insert", "repeat", place + n, place + n, "", source[place])
        for n, place in enumerate(places)
    )
    return apply_edits(source, edits), edits


def giant(broken: TurnResult, kind: str) -> TurnResult:
    """Return a violation with long texts, many edits, changes, edited turns and votes."""
    said, edits = edited(LONG * 60)
    changes = {
        "state": tuple(Difference(f"train-{n}", LONG * 20, LONG * 19) for n in range(12)),
        "reply": (Difference("reply", LONG * 60, "Another one. " * 90, why=LONG * 20),),
        "tool-calls": tuple(
            diff_states(
                calls_outcome([ToolCall(f"book_{n}", {"name": LONG * 9}) for n in range(9)]),
                calls_outcome([]),
            )
        ),
    }[kind]
    clean = {"state": broken.clean_state, "reply": reply_outcome(LONG * 60), "tool-calls": None}
    one = replace(
        broken.violations[0],
        text=said,
        edits=edits,
        context=(said,) * 7,
        context_edits=tuple(ContextEdits(n, edits) for n in range(7)),
        changed_slots=changes,
        cause="both",
        votes=Votes(9, 7, 2, 2, 8, 1),
        repeated=False,
    )
    return replace(
        broken,
        user=LONG * 60,
        system=LONG * 60,
        variants=(one, replace(one, index=9)),
        outcome_kind=kind,  # type: ignore[arg-type]  # one of its names
        clean_state=clean[kind],
    )


@pytest.mark.parametrize("kind", ["state", "reply", "tool-calls"])
def test_a_giant_failure_has_15_lines(broken: TurnResult, kind: str) -> None:
    found = giant(broken, kind)
    lines = text(found)
    assert len(lines) <= MOST_LINES
    for name in ("  system:", "  user:", "  cause:", "  repeat with:", "  accept with:"):
        assert sum(line.startswith(name) for line in lines) == 1, name
    assert any(line.startswith(("  changed:", "  replied:")) for line in lines)
    assert max(len(line) for line in lines if COMMAND not in line) <= 110
    key = weakness_of(found)
    assert key is not None
    assert "\n" not in explain_in_a_line(found, key)
    assert len(explain_in_a_line(found, key)) <= 150


def test_rounds_that_moved_fit_too() -> None:
    rounds = tuple(SeenRound(LONG * 20, LONG * 20) for _ in range(30))
    moves = tuple(Move("repeat", number, number) for number in range(15))
    one = replace(twice(0, day="sunday"), exchanges=rounds, moves=moves, about="")
    lines = text(turn(one, relation="duplicate", side="should-not-change"), "duplicate")
    assert len(lines) <= MOST_LINES
    assert any(line.startswith("  said twice:") for line in lines)


def test_a_short_one_has_the_edit_and_the_answers(broken: TurnResult) -> None:
    assert text(broken)[2:6] == [
        "  system:    which day?",
        "  user:      i am [-leaving-]{+leaivng+} on friday from ely",
        "  changed:   train-day: friday -> none",
        "  cause:     the edits of this turn: slip in key word, value wrong",
    ]


def test_a_change_that_is_missing_says_what_was_expected() -> None:
    lines = text(turn(swap(0)), "value-swap")
    assert lines[2:6] == [
        "  rewrite:   train-destination: norwich -> ely",
        "  user:      a train to [-norwich-]{+ely+} on friday",
        "  changed:   train-destination stayed norwich, expected ely",
        "  cause:     new value ignored",
    ]


def test_the_label_is_shown_if_it_is_neither_value(broken: TurnResult) -> None:
    one = broken.violations[0]
    (change,) = one.changed_slots
    assert broken.label is not None
    labelled = replace(
        broken,
        label=type(broken.label)({**broken.label, "train-day": "sunday"}),
        variants=(replace(one, changed_slots=(replace(change, by_label="wrong-to-wrong"),)),),
    )
    assert any("the label is sunday" in line for line in text(labelled))


def test_an_error_without_variants_shows_the_turn(broken: TurnResult) -> None:
    failed = replace(broken, variants=(), outcome="error", reason="Boom: x", clean_state=None)
    lines = text(failed)
    assert len(lines) <= MOST_LINES
    assert "  user:      i am leaving on friday from ely" in lines


def test_both_parts_of_a_split_turn_are_shown(tmp_path: Path) -> None:
    def track(context: Context) -> dict[str, str]:
        return {"hotel-pricerange": "cheap"} if "cheap" in context.user else {}

    path = tmp_path / "split.jsonl"
    turn = {"system": "", "user": "I need a cheap campsite. It should have parking."}
    path.write_text(json.dumps({"dialogue_id": "a", "turns": [turn]}), encoding="utf-8")
    settings = Settings.of(relation="split", variants=1)
    (broken,) = Campaign(track, load_dialogues(path), settings)
    text = explain(broken, settings, command=None)
    assert re.search(r"^  first: +I need a cheap campsite\.$", text, re.MULTILINE)
    assert re.search(r"^  user: +It should have parking\.$", text, re.MULTILINE)
    assert "added:" not in text
