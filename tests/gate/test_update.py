"""A run of some of the turns writes a baseline: the others stay, or nothing is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from gate_cases import BOT, CAMPAIGN, Contents, baseline, build, saved

# Loaded before any inner run, which forgets the modules that it was the first to load.
import pytest_dstfuzz.gate.comparison
import pytest_dstfuzz.plugin.hooks  # noqa: F401
from pytest_dstfuzz.gate.baseline import Baseline, Suite, Update, update_all

OLD, SOME = ("hv", "hh", "vh"), ("hh",)
CONTENTS = Contents(build(*OLD))
OTHER = {**CAMPAIGN, "seed": 7}


def update(
    old: Baseline, new: Baseline, contents: Mapping[str, Sequence[str]], *, narrowed: bool
) -> Update:
    return update_all({"": old}, {"": new}, contents, Suite(all_tests=not narrowed))


def letters(found: Update) -> dict[str, list[str]]:
    """Return the outcomes of the variants of each turn, by dialogue."""
    return {
        turn.dialogue: [variant.outcome for variant in turn.variants]
        for turns in found.baselines[""].groups.values()
        for turn in turns
    }


@pytest.mark.parametrize("narrowed", [True, False])
def test_turns_that_were_not_run_stay(narrowed: bool) -> None:
    found = update(baseline(*OLD), baseline(*SOME), CONTENTS, narrowed=narrowed)
    assert (found.kept, found.refused) == (2, "")
    assert letters(found) == {
        "D000": ["held", "held"],
        "D001": ["held", "held"],
        "D002": ["violation", "held"],
    }
    (weakness,) = found.baselines[""].weaknesses or ()
    assert (weakness.count, weakness.turns) == (1, 1)


def test_all_turns_take_the_place_of_the_old_ones() -> None:
    new = baseline("hh", "hh", "hh")
    found = update(baseline(*OLD), new, CONTENTS, narrowed=True)
    assert (found.baselines, found.kept) == ({"": new}, 0)


def test_a_selection_under_other_settings_writes_nothing() -> None:
    new = saved(build(*SOME), OTHER)
    found = update(baseline(*OLD), new, CONTENTS, narrowed=True)
    assert "seed: 0 in the baseline, 7 now" in found.refused
    whole = update(baseline(*OLD), new, CONTENTS, narrowed=False)
    assert (whole.baselines, whole.refused) == ({"": new}, "")


def test_digests_and_values_are_never_in_one_file() -> None:
    new = replace(baseline(*SOME), hidden=True)
    assert "--dst-redact" in update(baseline(*OLD), new, CONTENTS, narrowed=True).refused


def test_turns_that_the_data_has_no_more_go_with_a_whole_run() -> None:
    fewer = {name: CONTENTS[name] for name in Contents(build(*OLD[:2]))}
    whole = update(baseline(*OLD), baseline(*SOME), fewer, narrowed=False)
    assert sorted(letters(whole)) == ["D000", "D001"]
    selected = update(baseline(*OLD), baseline(*SOME), fewer, narrowed=True)
    assert sorted(letters(selected)) == ["D000", "D001", "D002"]


def test_a_test_under_another_name_is_the_same() -> None:
    new = saved({"renamed": build(*SOME)["only"]})
    found = update(baseline(*OLD), new, CONTENTS, narrowed=False)
    assert [(name, len(turns)) for name, turns in found.baselines[""].groups.items()] == [
        ("renamed", 3)
    ]


def test_a_selection_updates_the_group_with_its_settings() -> None:
    old = saved({"a[] steps=1": build(*OLD)["only"], "a[] steps=2": build(*OLD)["only"]})
    new = saved({"b[] steps=2": build(*SOME)["only"]})
    found = update(old, new, CONTENTS, narrowed=True)
    assert set(found.baselines[""].groups) == {"a[] steps=1", "b[] steps=2"}


@pytest.mark.parametrize("changed", ["a[] steps=2", "a[] steps=1 relation=value-swap"])
def test_a_selection_whose_settings_differ_is_refused(changed: str) -> None:
    old = saved({"a[] steps=1": build(*OLD)["only"]})
    new = saved({changed: build(*SOME)["only"]})
    found = update(old, new, CONTENTS, narrowed=True)
    assert "a marker, a fixture or the relation gives a test other settings" in found.refused
    assert not update(old, new, CONTENTS, narrowed=False).refused


def test_a_selection_leaves_other_trackers_alone() -> None:
    slots, texts = saved({"slots": build(*OLD)["only"]}), saved({"texts": build(*OLD)["only"]})
    both, new = {"slots": slots, "texts": texts}, saved({"slots": build(*SOME)["only"]})
    found = update_all(both, {"": new}, CONTENTS, Suite(all_tests=False))
    assert (sorted(found.baselines), found.kept) == (["slots", "texts"], 5)
    assert found.baselines["texts"] == texts
    other = saved({"replies": build(*SOME)["only"]})
    assert update_all(both, {"": other}, CONTENTS, Suite(all_tests=False)).refused
    whole = update_all(both, {"": other}, CONTENTS, Suite())
    assert whole.baselines == {"": other}


def test_a_whole_run_drops_tests_that_the_suite_no_longer_has() -> None:
    old = saved({"a[]": build(*OLD)["only"], "a[] relation=value-swap": build(*OLD)["only"]})
    new = saved({"a[]": build(*SOME)["only"]})
    found = update(old, new, CONTENTS, narrowed=False)
    assert {name: len(turns) for name, turns in found.baselines[""].groups.items()} == {"a[]": 3}
    assert (found.kept, found.dropped) == (2, 3)


@pytest.mark.parametrize("changed", ["a[] steps=2", "a[] steps=1 relation=value-swap"])
def test_results_under_other_settings_are_never_in_one_group(changed: str) -> None:
    old = saved({"a[] steps=1": build(*OLD)["only"]})
    new = saved({changed: build(*SOME)["only"]})
    assert update(old, new, CONTENTS, narrowed=False) == Update({"": new})


OPTIONS = ("--dst-turns=9", "--dst-variants=2", "--dst-baseline=base.json", "-pno:cacheprovider")


def turns(folder: Path) -> set[tuple[str, int]]:
    found = json.loads((folder / "base.json").read_text("utf-8"))["turns"]
    return {(turn["dialogue"], turn["turn"]) for turn in found}


@pytest.mark.parametrize("how", ["keyword", "id", "fewer turns"])
def test_a_selection_keeps_the_rest_of_the_file(pytester: pytest.Pytester, how: str) -> None:
    pytester.makepyfile(mybot=BOT)

    def run(model: str, *options: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(f"--dst-model=mybot:{model}", *OPTIONS, *options)

    assert run("steady", "--dst-update-baseline").ret == 0
    all_turns = turns(pytester.path)
    dialogue, turn = min(all_turns)
    chosen = {
        "keyword": ("-k", f"{dialogue}-t{turn}"),
        "id": (f"dstfuzz::test_belief_state_survives[sample-test-{dialogue}-t{turn}]",),
        "fewer turns": ("--dst-turns=1",),
    }[how]
    result = run("fragile", "--dst-update-baseline", *chosen)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["the baseline * now has the outcomes of 2 variants; 8 turns *"])
    assert turns(pytester.path) == all_turns
    # The other turns are still those of the build before.
    assert run("fragile").ret == 8
    assert run("steady", "--dst-update-baseline", "--dst-seed=1", *chosen).ret == (
        0 if how == "fewer turns" else 1
    )
