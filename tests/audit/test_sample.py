"""A sample is drawn by its seed, and its rows do not tell which of them are decoys."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from pytest_dstfuzz.audit.decoys import FINE_KINDS, KINDS
from pytest_dstfuzz.audit.sample import Draw, Sample, draw_sample
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.edits import apply_edits

Turns = tuple[TurnResult, ...]


def kinds(sample: Sample) -> Counter[str]:
    return Counter(row.kind for row in sample.rows)


def test_the_draw(turns: Turns) -> None:
    draw = Draw(violations=8, decoys=10, seed=3)
    sample = draw_sample(turns, draw)
    assert kinds(sample) == {"violation": 8, **dict.fromkeys(KINDS, 2)}
    assert len({row.dialogue for row in sample.rows if row.real}) == 8
    assert len({row.turn for row in sample.rows}) == 18
    assert sample == draw_sample(tuple(reversed(turns)), draw)
    assert sample.fingerprint != draw_sample(turns, replace(draw, seed=4)).fingerprint


def test_a_dialogue_gives_no_second_before_each_has_given_one(turns: Turns) -> None:
    assert draw_sample(turns, Draw(per_dialogue=1)).violations == 10
    sample = draw_sample(turns, Draw(violations=25, per_dialogue=3))
    counts = Counter(row.dialogue for row in sample.rows)
    assert sorted(counts.values()) == [2] * 5 + [3] * 5
    assert len({(row.turn, row.variant) for row in sample.rows}) == 25
    # Four violations a dialogue are all that there are.
    assert draw_sample(turns, Draw(per_dialogue=9)).violations == 40


def test_rows_tell_nothing(turns: Turns) -> None:
    sample = draw_sample(turns, Draw(decoys=5))
    assert kinds(sample).total() == 15
    assert [row.id for row in sample.rows] == [f"q{n:03d}" for n in range(1, 16)]
    shown = {"id", "earlier", "system", "clean", "perturbed", "changes"}
    assert {frozenset(row.shown()) for row in sample.rows} == {frozenset(shown)}
    assert not any(row.changes for row in sample.rows)
    # Without decoys there is nothing to give away.
    assert all(row.changes for row in draw_sample(turns, Draw()).rows)


def test_fine_decoys_are_drawn_besides(turns: Turns) -> None:
    draw = Draw(violations=8, decoys=5, seed=3)
    coarse = [row for row in draw_sample(turns, draw).rows if not row.real]
    sample = draw_sample(turns, replace(draw, fine_decoys=4))
    found = kinds(sample)
    assert all(found[kind] == 1 for kind in KINDS)
    assert sum(found[kind] for kind in FINE_KINDS) == 4
    assert len({row.turn for row in sample.rows}) == 17
    # The others are those that there are without them.
    texts = {row.perturbed for row in sample.rows}
    assert {row.perturbed for row in coarse} <= texts
    with pytest.raises(UserError, match=r"of 500 fine decoys"):
        draw_sample(turns, Draw(fine_decoys=500))


def test_edits_lead_to_what_is_shown(turns: Turns) -> None:
    for row in draw_sample(turns, Draw(decoys=10)).rows:
        assert apply_edits(row.clean, row.edits) == row.perturbed
        for turn in row.shown()["earlier"]:
            assert turn["perturbed"] == f"uh {turn['clean']}"


def test_every_judge_has_an_order(turns: Turns) -> None:
    sample = draw_sample(turns, Draw())
    one, two = sample.order("anna"), sample.order("ben")
    assert one == sample.order("anna")
    assert one != two
    assert sorted(row.id for row in one) == sorted(row.id for row in two)


def test_other_kinds_fill_the_places(turns: Turns) -> None:
    first = tuple(turn for turn in turns if turn.turn_index == 0)
    found = kinds(draw_sample(first, Draw(violations=1, decoys=10)))
    assert "negation_removed" not in found
    assert found["value"] > 2


def test_where_every_dialogue_broke_its_turns_serve(turns: Turns) -> None:
    broken = tuple(turn for turn in turns if turn.outcome == "violation")
    sample = draw_sample(broken, Draw(decoys=5))
    assert sum(not row.real for row in sample.rows) == 5


def test_nothing_to_draw(turns: Turns) -> None:
    with pytest.raises(UserError, match="no violation"):
        draw_sample([turn for turn in turns if turn.outcome == "held"], Draw())
    with pytest.raises(UserError, match=r"of 500 decoys"):
        draw_sample(turns, Draw(decoys=500))
