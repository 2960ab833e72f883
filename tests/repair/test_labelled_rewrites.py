"""Rewrites of labelled turns: their labels follow the edit, and the draw is repeatable."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hotel_talks import write_talks

from pytest_dstfuzz import BeliefState, DialogueSet, UserError, load_dialogues
from pytest_dstfuzz.repair.rewrites import RewriteSource, mean_over_relations

NAMES = "metamorphic,value-swap,turn-back,random-input"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DialogueSet:
    return load_dialogues(str(write_talks(tmp_path_factory.mktemp("talks"))))


def test_the_label_follows_the_edit(data: DialogueSet) -> None:
    drawn = RewriteSource(data, NAMES, 0).draw(10)
    assert Counter(one.relation for one in drawn) == dict.fromkeys(NAMES.split(","), 10)
    for one in drawn:
        assert one.seen.exchanges != one.clean.exchanges
        assert one.holds(one.after)
        if one.relation == "metamorphic":
            assert one.after == one.before
            continue
        assert one.after != one.before
        assert not one.holds(one.before)
        changed = {slot for slot in one.before if one.after.get(slot) != one.before[slot]}
        assert changed == {delta.slot for delta in one.expected.deltas}
        for slot in changed:
            value = one.after.get(slot)
            said = " ".join(one.seen.user_utterances)
            assert value is None if one.relation == "random-input" else value in said


def test_a_turn_gives_one_rewrite_of_a_relation(data: DialogueSet) -> None:
    drawn = RewriteSource(data, "value-swap", 0).draw(1_000)
    assert 0 < len(drawn) <= data.turn_count()
    assert (
        len({one.clean for one in drawn}) == len({id(one) for one in drawn})
        or len({one.clean for one in drawn}) < data.turn_count()
    )


def test_the_draw_depends_on_the_seed_and_the_name_alone(data: DialogueSet) -> None:
    source = RewriteSource(data, NAMES, 0)
    one, other = source.draw(5, "round", 0), source.draw(5, "round", 1)
    assert source.draw(5, "round", 0) == one != other
    assert RewriteSource(data, NAMES, 0).draw(5, "round", 1) == other
    assert RewriteSource(data, NAMES, 1).draw(5, "round", 0) != one
    assert RewriteSource(data, "value-swap", 0).draw(5, "round", 0) == [
        drawn for drawn in one if drawn.relation == "value-swap"
    ]


def test_dialogues_without_all_labels_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "half.jsonl"
    lines = write_talks(tmp_path).read_text("utf-8").splitlines()
    path.write_text(
        "\n".join([lines[0], '{"dialogue_id": "x", "users": ["a single room"]}']) + "\n", "utf-8"
    )
    half = load_dialogues(str(path))
    drawn = RewriteSource(half, "metamorphic", 0).draw(50)
    texts = {turn.user for turn in half.dialogue("r00").turns}
    assert drawn
    assert {one.clean.user for one in drawn} <= texts


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("restart", "'restart' edits whole dialogues"),
        ("frozen", "'frozen' does not apply: "),
        ("negatoin", "unknown relation 'negatoin'"),
    ],
)
def test_relations_that_cannot_rewrite_are_refused(
    data: DialogueSet, names: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        RewriteSource(data, names, 0)


def test_each_relation_has_the_same_weight(data: DialogueSet) -> None:
    swaps = RewriteSource(data, "value-swap", 0).draw(4)
    slips = RewriteSource(data, "metamorphic", 0).draw(1)
    assert mean_over_relations([*swaps, *slips], [True, True, True, False, False]) == 0.375
    assert mean_over_relations([], []) == 0.0


def test_a_state_between_old_and_new_does_not_hold(data: DialogueSet) -> None:
    (one,) = RewriteSource(data, "value-swap", 0).draw(1)
    assert not one.holds(BeliefState())
