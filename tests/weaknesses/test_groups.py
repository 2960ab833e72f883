"""Groups of violations: the same whatever else a run found, ranked by what a run knows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnNoise, TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.weaknesses.groups import (
    Key,
    Weakness,
    find_weaknesses,
    member_id,
    ranked,
    read,
)

TEXT = "I need a taxi from the station, leaving after 12:15 please."
TYPO = edit(TEXT, "char_replace/swap", "leaving", "leaivng")
SWAP = edit(TEXT, "char_replace/swap", "after", "atfer")
DROP = edit(TEXT, "word_drop/stop_word", "a ", "")
MARK = edit(TEXT, "char_drop/full_stop", ".", "")
LOST = {"taxi-leaveat": ("12:15", None)}
NOISE = TurnNoise("typing", 0.02, 0.1, 0.0, sampled=False)


def track(context: Context) -> dict[str, str]:
    """Hear words as they are spelled, and take what follows `the` for an area."""
    state = {}
    for text in context.user_utterances:
        words = text.lower().replace("?", "").replace(",", "").split()
        for word, slot in (("parking", "hotel-parking"), ("internet", "hotel-internet")):
            if word in words:
                state[slot] = "yes"
        if "need" in words:
            state["train-day"] = "friday"
        if "the" in words[:-1]:
            state["hotel-area"] = words[words.index("the") + 1]
    return state


def listed(found: tuple[Weakness, ...]) -> tuple[tuple[str, tuple[Weakness, ...]], ...]:
    return ranked(found, lambda one: one.expected)


@cache
def campaign(variants: int = 4) -> tuple[TurnResult, ...]:
    """Return the results of the shipped dialogues."""
    settings = Settings.of(turns=80, variants=variants, validity="natural")
    return tuple(Campaign(track, "sample", settings))


def ids(results: list[TurnResult]) -> dict[tuple[str, str, tuple[str, ...]], str]:
    """Return what was said in each violation -> id of its weakness."""
    found = violations(results)
    return {
        (found[name][0].id, found[name][1].text, found[name][1].context): weakness.id
        for weakness in find_weaknesses(results)
        for name in weakness.members
    }


def violations(results: Iterable[TurnResult]) -> dict[str, tuple[TurnResult, VariantResult]]:
    """Return the violations by their names."""
    return {member_id(turn, one): (turn, one) for turn in results for one in turn.violations}


@pytest.mark.nightly
@settings(max_examples=25)  # each puts three drafts of the 80 turns into groups
@given(st.data())
def test_groups_do_not_depend_on_order_or_on_other_violations(data: st.DataObject) -> None:
    whole = ids(list(campaign()))
    broken = [result for result in campaign() if result.violations]
    chosen = data.draw(st.lists(st.sampled_from(broken), unique_by=lambda result: result.id))
    part = [
        replace(result, variants=tuple(data.draw(st.permutations(result.variants))))
        for result in chosen
    ]
    found = ids(part)
    assert found == {said: whole[said] for said in found}
    assert found.keys() == {(one.id, v.text, v.context) for one in part for v in one.violations}
    ranked = [one.id for one in find_weaknesses(part)]
    assert [one.id for one in find_weaknesses(data.draw(st.permutations(part)))] == ranked


def test_an_id_is_that_of_the_key_of_each_member() -> None:
    found, known = find_weaknesses(campaign()), violations(campaign())
    assert len(found) >= 4
    assert len({one.id for one in found}) == len(found)
    for one in found:
        assert {read(*known[name]).key.id for name in one.members} == {one.id}
        assert one.count == len(one.members)
    members = [name for one in found for name in one.members]
    assert len(members) == len(set(members)) == sum(len(r.violations) for r in campaign())


def test_twice_the_variants_keep_the_ids_of_what_was_found() -> None:
    few, many = ids(list(campaign())), ids(list(campaign(8)))
    common = few.keys() & many.keys()
    assert len(common) > 20
    assert [few[said] for said in sorted(common)] == [many[said] for said in sorted(common)]
    assert {few[said] for said in common} <= set(many.values())


def test_without_a_noise_model_the_turns_broken_rank() -> None:
    once = [turn(TEXT, {}, violation(TEXT, [DROP], LOST), dialogue=name) for name in ("a", "b")]
    twice = turn(
        TEXT,
        {},
        *(violation(TEXT, [TYPO], LOST, index=index) for index in range(3)),
        dialogue="c",
    )
    found = find_weaknesses([twice, *once])
    assert [one.key.mechanism for one in found] == [
        "slip in unrelated word, value lost",
        "slip in key word, value wrong",
    ]
    assert [(one.turns, one.count) for one in found] == [(2, 2), (1, 3)]
    assert listed(found) == (("turns", found),)
    assert {one.expected for one in found} == {None}


def sampled() -> Iterator[TurnResult]:
    """Yield turns of a search by density, one duplicate among its variants."""
    noise = replace(NOISE, sampled=True)
    for number in range(40):
        typo = violation(TEXT, [TYPO], LOST, weight=0.02)
        again = replace(typo, index=1, outcome="duplicate", valid=False, weight=0.01)
        drop = violation(TEXT, [DROP], LOST, index=2, weight=0.02)
        elsewhere = replace(drop, index=3, cause="context", text="other words", weight=0.5)
        result = turn(TEXT, {}, typo, again, drop, elsewhere, dialogue=f"d{number}")
        yield replace(result, noise=noise)


def test_estimated_failures_of_weaknesses_add_up_to_those_of_the_run() -> None:
    results = list(sampled())
    found = find_weaknesses(results)
    figure = summarise(results).estimated_failures
    assert figure is not None
    assert listed(found) == (("estimated failures", found),)
    assert math.fsum(one.expected or 0.0 for one in found) == pytest.approx(figure.per_1000)
    assert [one.key for one in found] == [
        Key("slip in key word, value wrong"),
        Key("slip in unrelated word, value lost"),
    ]
    assert [one.expected for one in found] == pytest.approx([30.0, 20.0])


#: Words whose misspellings are two weaknesses: a cue beside the value, and a filler.
CUE, FILLER = [TYPO], [DROP]


def broken_by(words: list[Edit], count: int, **options: Any) -> VariantResult:
    return violation(TEXT, words, LOST, index=count, **options)


def order_of(*turns: Sequence[VariantResult]) -> list[str]:
    """Return the third words of the weaknesses of turns that are followed by many sound ones."""
    noise = replace(NOISE, sampled=True)
    sound = replace(violation(TEXT, [SWAP], {}, weight=0.02), outcome="held", changed_slots=())
    made = [turn(TEXT, {}, *each, dialogue=f"d{number}") for number, each in enumerate(turns)]
    rest = [turn(TEXT, {}, sound, dialogue=f"e{number}") for number in range(40)]
    found = find_weaknesses([replace(one, noise=noise) for one in (*made, *rest)])
    assert all(one.expected is not None for one in found)
    return [one.description.split()[2] for one in found]


def test_both_the_estimate_and_the_turns_broken_rank() -> None:
    drawn = broken_by(CUE, 0, weight=0.03)
    # All of the estimate, and one turn of two: three quarters of both shares.
    assert order_of([drawn], [broken_by(FILLER, 1)]) == ["key", "unrelated"]
    # A third of the estimate, and one turn of five.
    more = [[broken_by(FILLER, 1)] for _ in range(3)]
    assert order_of([drawn], [broken_by(FILLER, 0, weight=0.06)], *more) == ["unrelated", "key"]
    # By the estimate alone the key word would be first, by the turns alone the unrelated word.
    assert order_of([drawn], [broken_by(FILLER, 0, weight=0.02)], *more) == ["unrelated", "key"]
    assert order_of([drawn], [broken_by(FILLER, 0, weight=0.001)], more[0]) == ["key", "unrelated"]


def test_turns_that_earlier_turns_break_do_not_rank() -> None:
    drawn = [broken_by(CUE, 0, weight=0.02), broken_by(FILLER, 1, weight=0.02)]
    carried = [[broken_by(FILLER, 1, cause="context")] for _ in range(3)]
    own = [broken_by(CUE, 0)]
    assert order_of(drawn, own, *carried) == ["key", "unrelated"]


def test_the_example_is_the_plainest() -> None:
    more = violation(TEXT, [TYPO, MARK], LOST)
    short = "a taxi leaving at 12:15"
    plain = edit(short, "char_replace/swap", "leaving", "leaivng")
    results = [
        turn(TEXT, {}, violation(TEXT, [TYPO], LOST), dialogue="a"),
        turn(short, {}, violation(short, [plain], LOST), dialogue="b"),
        turn(TEXT, {}, more, dialogue="c"),
    ]
    (found,) = find_weaknesses(results)
    assert found.example.turn.dialogue_id == "b"
    assert found.words == ("leaving", "please")
    assert found.slots == ("taxi-leaveat",)


def test_the_example_was_right_before_the_edit_where_labels_know() -> None:
    right, wrong, unknown = (
        replace(turn(TEXT, {}, violation(TEXT, used, LOST), dialogue=name), label=label)
        for name, used, label in (
            ("a", (TYPO, SWAP), BeliefState({"taxi-leaveat": "12:15"})),
            ("b", (TYPO,), BeliefState({"taxi-leaveat": "12:30"})),
            ("c", (TYPO,), None),
        )
    )
    for turns, expected in (((right, wrong), "a"), ((right, unknown), "c"), ((wrong,), "b")):
        (found,) = find_weaknesses(turns)
        assert found.example.turn.dialogue_id == expected


def test_nothing_found() -> None:
    assert find_weaknesses([]) == ()
    assert listed(()) == ()
