"""The tracker with five planted faults, and the calls until a search has found them."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from tools.weaknesses import planted
from tools.weaknesses.planted_bot import FAULTS, PlantedBot, causes, dialogues, track

DATA = dialogues(16)
SEARCHES = ("random", "near-value", "greedy", "noise", "adaptive")


def test_every_clean_turn_is_understood_in_spite_of_the_faults() -> None:
    for dialogue in DATA.dialogues:
        for turn in dialogue.turns:
            assert track(dialogue.context(turn.index), FAULTS) == dict(turn.state or {})
    said = {slot for dialogue in DATA.dialogues for slot in dialogue.turns[-1].state or {}}
    assert said >= FAULTS.keys()
    assert len(FAULTS) == 5


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("We would like to arive by 10:15 because dinner starts then.", "train-arriveby"),
        ("Its for 5 people, and all of them are adults.", "train-people"),
        ("The last stop is the the Castle Museum and we meet there.", "taxi-destination"),
        ("My friend always recommends a hotel called Worth House", "hotel-name"),
        ("Our holiday willbe 4 nights long this time.", "hotel-stay"),
    ],
)
def test_each_fault_is_broken_by_a_slip_of_its_own(said: str, fault: str) -> None:
    context = Context((Exchange("", said),))
    assert causes(context) == (fault,)
    two = Context((*context.exchanges, Exchange("", "I want to travel on Fridy.")))
    assert causes(two) == (fault,)


def test_where_two_faults_break_at_once_mending_one_of_them_is_not_enough() -> None:
    both = "Its for 5 people, and we stay in a hotel called Worth House"
    assert causes(Context((Exchange("", both),))) == ()


@pytest.mark.parametrize("search", SEARCHES)
def test_calls_are_those_of_the_engine_and_nothing_but_the_faults_breaks(search: str) -> None:
    settings = Settings.of(validity="natural", search=search, variants=4, turns=None)
    results = tuple(Campaign(PlantedBot(), DATA, settings))
    found = planted.look(planted.rounds(results, DATA, settings), DATA)
    assert found.total == sum(turn.calls for turn in results)
    assert all(2 < calls <= found.total for calls in found.calls.values())
    spoken = {dialogue.id: dialogue for dialogue in DATA.dialogues}
    for turn in results:
        for variant in (one for one in turn.variants if one.valid):
            users = {**dict(enumerate(variant.context)), turn.turn_index: variant.text}
            context = spoken[turn.dialogue_id].context(turn.turn_index, users)
            assert track(context, ()) == dict(turn.label or {})


def test_what_is_found_earlier_costs_fewer_calls() -> None:
    few, many = (planted.play("random", 0, DATA, variants) for variants in (2, 6))
    assert few.total < many.total
    # The passes that both have are the same: later ones change nothing about them.
    assert {fault: many.calls[fault] for fault in few.calls} == few.calls


@pytest.mark.nightly
def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--searches", "random,noise", "--seeds", "2", "--variants", "3"]
    assert planted.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "16 dialogues, 80 turns, at most 3 variants of a turn, seeds 0 to 1."
    assert [line.split(" |")[0] for line in lines if "`random` |" in line] == [
        "| `random`",
        "| fault: median (seeds)",
    ]
    assert all(any(fault in line for line in lines) for fault in FAULTS.values())
    assert any("`slip-in-key-word-value-wrong` | `train-arriveby`" in line for line in lines)


def test_a_search_that_there_is_not_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert planted.main(["--searches", "randon", "--seeds", "1"]) == 2
    assert "randon" in capsys.readouterr().err
