"""Which variants two builds share, and where they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gate_cases import baseline, build, paired, saved, turn, variant
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.gate.baseline import Tally
from pytest_dstfuzz.gate.verdict import Part

LETTERS = st.text("hvcied", min_size=1, max_size=4)
BUILDS = st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=4)


def test_each_dialogue_is_tallied() -> None:
    pairing = paired(baseline("hhv hv", "vvh"), build("hvv hv", "hhh"))
    assert pairing.by_dialogue() == {"D000": Tally(5, 2, 3), "D001": Tally(3, 2, 0)}
    assert pairing.share == 1.0
    assert pairing.new == (("sample-test-D000-t0", 1),)
    assert pairing.gone == (("sample-test-D001-t0", 0), ("sample-test-D001-t0", 1))


def test_only_violations_count() -> None:
    pairing = paired(baseline("hhhvvv"), build("vcihci"))
    assert pairing.by_dialogue() == {"D000": Tally(6, 3, 1)}


def test_what_a_build_has_no_answer_to_is_not_compared() -> None:
    # An error in either build, and a variant that was not run in either, say nothing.
    pairing = paired(baseline("hehdd"), build("vhedh"))
    assert pairing.by_dialogue() == {"D000": Tally(1, 0, 1)}
    # Variants 0 to 2 and the last were run by one of them at least.
    assert pairing.shared.possible == 4


def test_a_variant_with_another_text_is_another() -> None:
    one = build("hhh")
    other = {"only": [turn("D000", 0, [variant(0, "v"), variant(1, "v", text="x")])]}
    pairing = paired(saved(one), other)
    assert pairing.by_dialogue() == {"D000": Tally(1, 0, 1)}
    assert pairing.share == pytest.approx(1 / 3)


def test_turns_of_one_build_alone_are_counted_apart() -> None:
    late = replace(turn("D001", 0, ""), outcome="skipped")
    pairing = paired(baseline("h h", "h"), {"only": [turn("D000", 0, "h"), late]})
    assert (pairing.turns, pairing.only_baseline, pairing.only_run) == (1, 2, 0)
    assert paired(baseline("h"), build("h h")).only_run == 1


def test_one_group_is_the_same_under_any_name() -> None:
    renamed = {"renamed": build("v")["only"]}
    assert paired(baseline("h"), renamed).by_dialogue() == {"D000": Tally(1, 0, 1)}


def test_of_several_groups_those_of_one_name_are_compared_first() -> None:
    old = saved({name: [turn("A", 0, answers)] for name, answers in zip("abd", "hvh", strict=True)})
    run = {name: [turn("A", 0, answers)] for name, answers in zip("bce", "vhh", strict=True)}
    both = paired(old, run)
    # The names a and c differ, and so do d and e.
    assert both.by_dialogue() == {"A": Tally(3, 1, 1)}
    assert (both.turns, both.only_baseline, both.only_run) == (3, 0, 0)


def test_a_new_test_renames_no_other_group() -> None:
    old = saved({"b[] steps=1": [turn("A", 0, "hh")], "b[] steps=2": [turn("A", 0, "h")]})
    # The groups are now named after the new test, which sorts first.
    names = {"a[] steps=1": "hv", "a[] steps=2": "v", "a[] steps=3": "v"}
    both = paired(old, {name: [turn("A", 0, answers)] for name, answers in names.items()})
    assert both.by_dialogue() == {"A": Tally(3, 0, 2)}
    assert (both.only_baseline, both.only_run) == (0, 1)


@pytest.mark.parametrize("search", ["random", "greedy"])
def test_tests_with_other_settings_are_compared(search: str) -> None:
    names = ("a[] steps=1", "b[] steps=2", "c[] steps=3")
    old = saved({f"{name} random": [turn("A", 0, "hhh")] for name in names})
    # The settings of two tests differ, or those of all.
    after = dict(zip(names, ("hhh", "hvvv", "hvvv"), strict=True))
    same, *others = after.items()
    run = {f"{same[0]} {search}": same[1], **{f"{name}0 {search}": one for name, one in others}}
    both = paired(old, {name: [turn("A", 0, answers)] for name, answers in run.items()})
    assert both.by_dialogue() == {"A": Tally(9, 0, 4)}
    assert (both.only_baseline, both.only_run) == (0, 0)


def test_the_groups_with_the_most_variants_in_common_are_the_same() -> None:
    old = saved(
        {
            "a": [turn("A", 0, [variant(0, "h"), variant(1, "h", text="x")])],
            "b": [turn("A", 0, [variant(0, "v"), variant(1, "v", text="y")])],
        }
    )
    run = {
        "c": [turn("A", 0, [variant(0, "v"), variant(1, "v", text="y")])],
        "d": [turn("A", 0, [variant(0, "h"), variant(1, "h", text="x")])],
        "e": [turn("A", 0, "v")],
    }
    assert paired(old, run).by_dialogue() == {"A": Tally(4, 2, 2)}


def test_a_group_does_not_hide_behind_another_name() -> None:
    old = saved({"a": [turn("A", 0, "h")], "b": [turn("A", 0, "h")]})
    both = paired(old, {"b": [turn("A", 0, "h")], "c": [turn("A", 0, "v")]})
    assert both.by_dialogue() == {"A": Tally(2, 0, 1)}
    assert (both.turns, both.only_baseline, both.only_run) == (2, 0, 0)


def test_a_part_counts_the_variants_that_put_it_at_stake() -> None:
    # Both slots of the clean state are at stake; the violation is of the one that changed.
    pairing = paired(
        baseline("hv", slot="hotel-area"), build("vv", slot="hotel-name", cause="context")
    )
    assert pairing.by_dialogue(Part("slot", "hotel-area")) == {"D000": Tally(2, 1, 0)}
    assert pairing.by_dialogue(Part("slot", "hotel-name")) == {"D000": Tally(2, 0, 2)}
    assert pairing.by_dialogue(Part("domain", "hotel")) == {"D000": Tally(2, 1, 2)}
    assert pairing.by_dialogue(Part("domain", "train")) == {"D000": Tally(2, 0, 0)}
    assert pairing.by_dialogue(Part("domain", "hot")) == {}
    # A transformation answers for what its own edits caused.
    assert pairing.by_dialogue(Part("transformation", "char_drop")) == {"D000": Tally(2, 1, 0)}
    assert pairing.by_dialogue(Part("transformation", "word_drop")) == {}


def test_a_carried_change_puts_its_slot_at_stake_and_is_no_violation() -> None:
    pairing = paired(baseline("h", slot="taxi-leaveat"), build("c", slot="taxi-leaveat"))
    assert pairing.by_dialogue(Part("slot", "taxi-leaveat")) == {"D000": Tally(1, 0, 0)}


@given(BUILDS)
def test_every_part_adds_up_as_it_does_alone(texts: list[tuple[str, str]]) -> None:
    olds, news = zip(*texts, strict=True)
    pairing = paired(baseline(*olds), build(*news))
    for part, tally in pairing.by_part().items():
        alone = pairing.by_dialogue(part).values()
        assert tally == tuple(map(sum, zip(*alone, strict=True)))


@given(BUILDS)
def test_swapping_the_builds_swaps_their_tallies(texts: list[tuple[str, str]]) -> None:
    olds, news = zip(*texts, strict=True)
    one = paired(baseline(*olds), build(*news))
    other = paired(baseline(*news), build(*olds))
    swapped = {
        name: Tally(t.variants, t.after, t.before) for name, t in other.by_dialogue().items()
    }
    assert one.by_dialogue() == swapped
    assert (one.new, one.shared.possible) == (other.gone, other.shared.possible)


@given(BUILDS, st.integers(1, 1000))
def test_the_names_of_dialogues_say_nothing(texts: list[tuple[str, str]], step: int) -> None:
    olds, news = zip(*texts, strict=True)
    plain = paired(baseline(*olds), build(*news)).by_dialogue()

    def named(builds: dict[str, list[object]]) -> dict[str, list[object]]:
        return {
            name: [
                replace(t, dialogue_id=f"{int(t.dialogue_id[1:]) * step % 1009:04}", id=f"x{t.id}")  # type: ignore[attr-defined,type-var]  # a TurnResult
                for t in turns
            ]
            for name, turns in builds.items()
        }

    old = saved(named(build(*olds)))  # type: ignore[arg-type]  # likewise
    renamed = paired(old, named(build(*news)))  # type: ignore[arg-type]  # likewise
    assert sorted(renamed.by_dialogue().values()) == sorted(plain.values())
