"""A hand-made campaign about trains: many dialogues, two turns each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign.results import ContextEdits, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.packing import pack_turns

PLACES = ["cambridge", "ely", "norwich", "stevenage", "leicester", "birmingham"]
DAYS = ["monday", "tuesday", "wednesday", "thursday", "saturday"]
FIRST = "i need a train from {} to {} on {}"
SECONDS = ["i would like to leave after 10:{}", "i do not want to arrive before 10:{}"]


def _variant(
    index: int, user: str, state: dict[str, str], earlier: str | None, bad: bool
) -> VariantResult:
    context: tuple[str, ...] = ()
    edits: tuple[ContextEdits, ...] = ()
    if earlier is not None:
        context = (f"uh {earlier}",)
        edits = (ContextEdits(0, (Edit("word_insert", "filler", 0, 0, "", "uh "),)),)
    slot = min(state)
    after = {name: value for name, value in state.items() if name != slot}
    return VariantResult(
        index=index,
        text=f"{user} {'!' * (index + 1)}",
        context=context,
        edits=tuple(
            Edit("char_insert", "separator", len(user) + n, len(user) + n, "", "!" if n else " !")
            for n in range(index + 1)
        ),
        edit_w=0.0,
        edit_c=0.0123456,
        valid=True,
        reason="",
        outcome="violation" if bad else "held",
        state=BeliefState(after if bad else state),
        changed_slots=(Difference(slot, state[slot], None),) if bad else (),
        context_edits=edits,
        cause="turn" if bad else None,
    )


@pytest.fixture(scope="session")
def turns() -> tuple[TurnResult, ...]:
    """Thirty dialogues of two turns; every third one has violations."""
    results = []
    for number in range(30):
        here, there = PLACES[number % 6], PLACES[(number + 1 + number // 6) % 6]
        users = [
            FIRST.format(here, there, DAYS[number % 5]),
            SECONDS[number % 2].format(10 + number),
        ]
        state = {
            "train-departure": here,
            "train-destination": there,
            "train-day": DAYS[number % 5],
        }
        later = {**state, "train-leaveat": f"10:{10 + number}"}
        for index, (user, known) in enumerate(zip(users, (state, later), strict=True)):
            bad = number % 3 == 0
            variants = tuple(
                _variant(i, user, known, users[0] if index else None, bad and i != 1)
                for i in range(3)
            )
            results.append(
                TurnResult(
                    id=f"made-test-d{number:02d}-t{index}",
                    dialogue_id=f"d{number:02d}",
                    turn_index=index,
                    system="when?" if index else "",
                    user=user,
                    clean_state=BeliefState(known),
                    outcome="violation" if bad else "held",
                    variants=variants,
                    label=BeliefState(known) if number % 2 else None,
                    calls=4,
                )
            )
    return tuple(results)


@pytest.fixture
def report(turns: tuple[TurnResult, ...], tmp_path: Path) -> Path:
    """The campaign as a JSON report, as far as an audit reads it."""
    path = tmp_path / "report.json"
    plain = list(pack_turns(turn.to_json() for turn in turns))
    content = {"schema_version": 3, "summary": {}, "settings": {}, "turns": plain}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
