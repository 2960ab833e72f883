"""New randomness of a build, which a vote hides, against the baseline's own spread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gate_cases import Contents, build, saved

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.gate.baseline import baseline_text, read_baseline
from pytest_dstfuzz.gate.pairing import pair_up
from pytest_dstfuzz.gate.verdict import LimitFinding

STEADY, SWAYED = (0, 0, 0), (0, 1, 0)


def answered(*votes: tuple[int, ...]) -> dict[str, list[TurnResult]]:
    turns = build(*("h" for _ in votes))["only"]
    return {
        "only": [replace(one, clean_votes=kinds) for one, kinds in zip(turns, votes, strict=True)]
    }


def judged(
    before: list[tuple[int, ...]], now: list[tuple[int, ...]], limit: float = 0.0
) -> LimitFinding | None:
    old, new = answered(*before), answered(*now)
    return pair_up(saved(old), new, Contents(new)).own.finding(limit, np.random.default_rng(0))


def test_a_build_that_begins_to_vary_drifts() -> None:
    found = judged([STEADY] * 12, [SWAYED] * 6 + [STEADY] * 6)
    assert found is not None
    assert (found.gate, found.verdict) == ("max-clean-drift", "drift")
    assert found.value == pytest.approx(1 / 6)
    assert "16.67 % of the repeated answers" in found.reason


def test_randomness_that_the_baseline_has_is_not_new() -> None:
    assert judged([SWAYED] * 12, [SWAYED] * 12) is None
    assert judged([SWAYED] * 12, [STEADY] * 12) is None
    mixed = judged([SWAYED, STEADY] * 6, [STEADY, SWAYED] * 6)
    assert mixed is None


def test_one_turn_or_a_share_that_is_allowed_is_no_drift() -> None:
    assert judged([STEADY] * 12, [SWAYED] + [STEADY] * 11) is None
    assert judged([STEADY] * 12, [SWAYED] * 6 + [STEADY] * 6, limit=0.3) is None


def test_too_few_dialogues_and_chance_are_inconclusive() -> None:
    few = judged([STEADY] * 3, [SWAYED] * 3)
    assert few is not None
    assert few.verdict == "inconclusive"
    chance = judged([STEADY] * 10 + [SWAYED] * 2, [SWAYED] * 3 + [STEADY] * 9)
    assert chance is not None
    assert chance.verdict == "inconclusive"


def test_what_was_asked_once_is_not_compared() -> None:
    assert judged([()] * 12, [SWAYED] * 12) is None
    assert judged([STEADY] * 12, [()] * 12) is None


def test_a_baseline_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    kept = saved(answered(STEADY, SWAYED, ()))
    path.write_text(baseline_text(kept), encoding="utf-8")
    assert [one.own for one in read_baseline(path).groups["only"]] == [(3, 0), (3, 1), None]
