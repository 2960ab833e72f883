"""Files of long dialogues: each turn is in them once, and read back nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import SeenRound, TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import json_decoder, json_encoded
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.report.html.page import page_data
from pytest_dstfuzz.report.json_report import (
    SCHEMA_PATH,
    RunInfo,
    build_report,
    read_report,
    report_text,
    write_report,
)
from pytest_dstfuzz.report.packing import pack_turns, problems, unpack_turns
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.trackers.adapters import as_tracker

SETTINGS = Settings.of(variants=5, shrink=False)
SHORT, LONG = 10, 20
#: Twice the turns are to take hardly more than twice the room.
MOST_GROWTH = 2.3
_PLAIN = json_decoder(list[dict[str, Any]])


def track(context: Context) -> dict[str, str]:
    """Follow the last lamp that was ordered in so many words."""
    state = {}
    for number, text in enumerate(context.user_utterances):
        if "please send me the" in text.lower():
            state["shop-lamp"] = str(number)
    return state


def dialogue_of(turns: int, name: str = "lamps") -> Dialogue:
    days = ("monday", "friday", "sunday")
    said = (
        Turn(
            number,
            "" if not number else f"I have noted lamp {number} for you. Is there more?",
            f"Please send me the green lamp {number} on {days[number % 3]}, our guests like it",
        )
        for number in range(turns)
    )
    return Dialogue(name, tuple(said))


def run(*dialogues: Dialogue, settings: Settings = SETTINGS) -> list[TurnResult]:
    data = DialogueSet("shop", "test", dialogues)
    predictor = predictor_for(settings, data, as_tracker(track))
    plan = [(one, len(one.turns) - 1) for one in dialogues]
    return list(CampaignEngine(settings, data, predictor, load_lexicon(), plan=plan).run())


@pytest.fixture(scope="module")
def short() -> list[TurnResult]:
    return run(dialogue_of(SHORT))


@pytest.fixture(scope="module")
def long() -> list[TurnResult]:
    return run(dialogue_of(LONG))


def report_of(results: list[TurnResult]) -> dict[str, Any]:
    info = RunInfo("shop", "test", "plain", "jsonl", 1, len(results))
    return build_report(results, SETTINGS, info)


def test_twice_the_turns_take_twice_the_room(
    short: list[TurnResult], long: list[TurnResult]
) -> None:
    assert all(any(one.context_edits for one in turn.variants) for turn in long[5:])
    assert sum(len(turn.violations) for turn in long) > LONG // 4

    def sizes(results: list[TurnResult]) -> dict[str, int]:
        return {
            "report": len(report_text({"turns": report_of(results)["turns"]})),
            "page": len(json.dumps(page_data(results))),
        }

    few, many = sizes(short), sizes(long)
    growth = {name: many[name] / few[name] for name in few}
    assert max(growth.values()) <= MOST_GROWTH, growth


def test_a_report_is_read_as_it_was_built(long: list[TurnResult], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report = report_of(long)
    write_report(path, report)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(json.loads(path.read_bytes()), schema) == []
    assert read_report(path) == report


@pytest.mark.parametrize("chosen", [slice(7, 8), slice(5, None, 3), slice(None, None, -1)])
def test_turns_without_those_before_them_lose_nothing(
    long: list[TurnResult], chosen: slice
) -> None:
    turns = plain(long[chosen])
    assert list(unpack_turns(plain(pack_turns(turns)))) == turns


def test_dialogues_relations_and_trackers_are_told_apart(short: list[TurnResult]) -> None:
    other = [redact_turn(turn) for turn in short]
    results = [
        *short,
        *(replace(turn, model="other") for turn in other),
        # Another set of data with a dialogue of the name, and another under both names.
        *(replace(turn, id=f"web-{turn.id}") for turn in other),
        *other,
        *(replace(turn, relation="own") for turn in short),
        *(replace(turn, earlier_system=()) for turn in short),
    ]
    turns = plain(results)
    assert list(unpack_turns(plain(pack_turns(turns)))) == turns


def test_rounds_that_were_moved_lose_nothing(short: list[TurnResult]) -> None:
    last = short[-1]
    rounds = tuple(map(SeenRound, (*last.earlier_system, last.system), said(short)))
    moved = (*rounds[3:5], SeenRound("", "what a day"), *rounds[:2], rounds[1], rounds[-1])
    variant = replace(
        last.variants[0],
        exchanges=moved,
        reference=rounds,
        context=tuple(one.user for one in moved[:-1]),
        context_edits=(),
    )
    odd = replace(variant, context=("other",), index=1)
    turns = plain([*short[:-1], replace(last, variants=(variant, odd))])
    files = list(pack_turns(turns))
    assert list(unpack_turns(plain(files))) == turns
    assert len(json.dumps(files[-1]["variants"][0]["reference"])) < 40


def test_references_that_lead_nowhere_are_told(long: list[TurnResult], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(path, report_of(long))
    content = json.loads(path.read_bytes())
    del content["turns"][0]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match="keep the turns of a dialogue together"):
        read_report(path)


def plain(turns: object) -> list[dict[str, Any]]:
    """Return turns as JSON has them."""
    return _PLAIN(json_encoded(list(turns)))  # type: ignore[call-overload]


def said(turns: list[TurnResult]) -> list[str]:
    return [turn.user for turn in turns]
