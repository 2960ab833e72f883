"""Suites change from day to day: what is common stays compared, and what is not is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gate_cases import Contents, build, saved, totals_of

from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    Session,
    campaign_identity,
    contents_of,
    make_baseline,
)
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.pairing import Matching, match_dialogues
from pytest_dstfuzz.gate.verdict import Gates, Judgement
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.trackers.adapters import as_tracker

SETTINGS = Settings.of(validity="strict", variants=3, shrink=False)
CITIES = (
    *("Bern", "Oslo", "Riga", "Rome", "Lima", "Cairo", "Quito", "Hanoi", "Delhi", "Tunis"),
    *("Paris", "Turin", "Milan", "Sofia", "Minsk", "Lyon", "Porto", "Basel"),
)


def travel_bot(context: Context) -> dict[str, str]:
    words = [word.strip(".,!?") for said in context.user_utterances for word in said.split()]
    found = [word for word in words if word in CITIES]
    return {"flight-to": found[-1].lower(), "flight-turn": str(len(context.exchanges))}


def conversation(number: int, name: str = "") -> dict[str, object]:
    city = CITIES[number]
    talk = [f"I would like to fly to {city} on a cheap morning plane, please.", "For how many?"]
    states = [{"flight-to": city}, {"flight-to": city}]
    return {
        "dialogue_id": name or f"day{number}",
        "utterances": [*talk, f"The whole family, so {number + 2} people travel together."],
        "states": states,
    }


def suite(folder: Path, conversations: list[dict[str, object]], file: str = "talks") -> DialogueSet:
    path = folder / f"{file}.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in conversations), encoding="utf-8")
    return load_dialogues(path)


def deaf_bot(context: Context) -> dict[str, str]:
    return {"flight-turn": str(len(context.exchanges)), "flight-from": context.user}


Bot = Callable[[Context], dict[str, str]]


def run(data: DialogueSet, track: Bot = travel_bot) -> dict[str, list[TurnResult]]:
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in data.dialogues]
    bot = as_tracker(track, normalisation=data.normalisation)
    return {"bot": list(CampaignEngine(SETTINGS, data, bot, load_lexicon(), plan=plan).run())}


def identity(data: DialogueSet) -> dict[str, object]:
    return campaign_identity(SETTINGS, data, lexicon="words", policy="", noise="")


def baseline_of(data: DialogueSet) -> Baseline:
    return make_baseline(run(data), identity(data), "bot", contents_of(data))


def compared(old: Baseline, data: DialogueSet, track: Bot = travel_bot) -> Judgement:
    groups = run(data, track)
    return judge(
        Session(groups, totals_of(groups), identity(data), contents_of(data), 0), Gates(), old
    )


def test_a_suite_that_grows_every_day_keeps_its_comparison(tmp_path: Path) -> None:
    first = [conversation(number) for number in range(8)]
    old = baseline_of(suite(tmp_path, first))
    for day in range(1, 11):
        talks = [conversation(number) for number in range(8 + day)]
        # New ones come first, so that nothing hangs on the order.
        judgement = compared(old, suite(tmp_path, talks[::-1], file=f"talks{day}"))
        assert judgement.verdict == "pass", judgement
        figures = judgement.comparison
        assert figures is not None
        assert (figures["dialogues"], figures["tested_dialogues"]) == (8, 8 + day)
        assert figures["suite"]["added"] == sorted(f"day{8 + number}" for number in range(day))
        assert figures["share"] == 1.0
        assert figures["clean"]["turns"] == 16
        assert figures["only_baseline"] == 0


def test_a_change_in_a_grown_suite_is_still_seen(tmp_path: Path) -> None:
    old = baseline_of(suite(tmp_path, [conversation(number) for number in range(8)]))
    grown = suite(tmp_path, [conversation(number) for number in range(18)])
    judgement = compared(old, grown, deaf_bot)
    assert judgement.verdict == "drift"
    assert "clean answers changed at 16 of 16 turns" in judgement.findings[0].reason


def test_dialogues_that_went_changed_or_have_another_name_are_named(tmp_path: Path) -> None:
    old = baseline_of(suite(tmp_path, [conversation(number) for number in range(10)]))
    changed = conversation(2)
    changed["utterances"] = [*conversation(2)["utterances"][:2], "Just me, I travel alone."]  # type: ignore[index]  # a list
    talks = [
        *(conversation(number) for number in range(3, 10)),
        conversation(1, name="oslo"),
        changed,
        conversation(11),
    ]
    judgement = compared(old, suite(tmp_path, talks, file="renamed"))
    assert judgement.verdict == "pass"
    figures = judgement.comparison
    assert figures is not None
    assert figures["suite"] == {
        "added": ["day11"],
        "removed": ["day0"],
        "changed": ["day2"],
        "renamed": [["day1", "oslo"]],
    }
    # Of the one that changed the first turn is the same; a name decides nothing but variants.
    assert figures["clean"]["turns"] == 7 * 2 + 2 + 1
    assert figures["dialogues"] == 9
    assert figures["share"] == 1.0


def matched(old: list[str], new: list[str]) -> Matching:
    turns = saved(build(*old)).groups["only"] if old else []
    return match_dialogues(turns, Contents(build(*new))).of_tested(
        {f"D{n:03}" for n in range(len(new))}
    )


def test_equal_dialogues_are_matched_by_name_first() -> None:
    turns = [replace(turn, key="same") for turn in saved(build("h", "h")).groups["only"]]
    contents = {"D001": ["same"], "X": ["same"], "Y": ["same"]}
    found = match_dialogues(turns, contents).of_tested(contents)
    assert found.known == {"D001": "D001", "D000": "X"}
    assert (found.renamed, found.added) == ((("D000", "X"),), ("Y",))


def test_a_dialogue_that_goes_on_is_the_same() -> None:
    assert matched(["h h", "h"], ["h h h", "h"]).to_json() == {
        "added": [], "removed": [], "changed": [], "renamed": [],
    }  # fmt: skip
    assert matched(["h", "h"], ["h"]).removed == ("D001",)
    assert matched([], ["h"]).added == ("D000",)
