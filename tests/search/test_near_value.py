"""Near-value: it prefers what is beside a slot value, and is a function of its arguments."""

from __future__ import annotations

import numpy as np
import pytest
from turns import Tasks

from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Edit, Variant
from pytest_dstfuzz.search.protocol import Feedback, Proposal, SearchTask
from pytest_dstfuzz.search.searches import NearValueSearch, RandomSearch, heuristic_score

TEXT = "i am leaving from ely and want something nice there please"


def variant_of(*edits: tuple[str, str, str, str]) -> Variant:
    """Return a variant by hand: transformation, operator, what is replaced and by what."""
    text, made = TEXT, []
    for transformation, operator, before, after in edits:
        start = text.index(before)
        made.append(Edit(transformation, operator, start, start + len(before), before, after))
        text = text.replace(before, after, 1)
    return Variant(TEXT, text, tuple(made), 0.1, 0.1, "valid")


@pytest.mark.parametrize(
    ("edit", "worth"),
    [
        # `from` says what `ely` is for, but is too short to be mistyped in strict.
        (("char_replace", "swap", "and", "adn"), 6.0),
        (("char_replace", "swap", "leaving", "leavnig"), 3.0),
        (("char_replace", "swap", "please", "plaese"), 1.5),
        (("word_drop", "any_word", " and", ""), 5.4),
        (("word_insert", "filler", "something", "well something"), 2.0),
        (("word_drop", "any_word", " please", ""), 0.5),
        (("word_replace", "misspelling", "please", "pleese"), 1.5),
    ],
)
def test_what_an_edit_promises(edit: tuple[str, str, str, str], worth: float) -> None:
    perturber = Perturber(load_lexicon(), validity="strict", order="distance")
    source = perturber.prepare(TEXT, ["ely"])
    assert heuristic_score(source, variant_of(edit)) == worth


def test_cue_words_beside_a_value_promise_most_and_edits_add_up() -> None:
    perturber = Perturber(load_lexicon(), validity="strict", order="distance")
    source = perturber.prepare(TEXT.replace("from ", ""), ["ely"])
    cue = Edit("char_replace", "swap", 5, 12, "leaving", "leavnig")
    stuck = Edit("char_insert", "punctuation", 12, 12, "", ",")
    far = Edit("word_drop", "any_word", 46, 53, " please", "")
    assert source.text[far.start : far.end] == far.before

    def worth(*edits: Edit) -> float:
        return heuristic_score(source, Variant(source.text, "x", edits, 0.1, 0.1, "valid"))

    assert worth(cue) == 15.8
    assert worth(stuck) == 10.6
    assert worth(far) == 0.5
    assert worth(far, cue) == pytest.approx(16.3)
    assert worth() == 0


def near_share(variants: list[Variant], all_tasks: list[SearchTask]) -> float:
    """Return the share of edits that touch a word at most one away from a value."""
    near = []
    for task, variant in zip(all_tasks, variants, strict=True):
        words = task.source.words
        distances = [token.distance for token in task.source.draft.tokens]
        for start, end in source_spans(variant.edits):
            beside = [
                d
                for w, d in zip(words, distances, strict=True)
                if w.start <= end and start <= w.end
            ]
            near.append(min(beside, default=99) <= 1)
    return float(np.mean(near))


def first(search: NearValueSearch | RandomSearch, all_tasks: list[SearchTask]) -> list[Variant]:
    return [search.turn(task).propose(0, 0, ()).variant for task in all_tasks]


@pytest.mark.parametrize("k", [1, 3])
def test_it_goes_beside_values_more_often_than_random(tasks: Tasks, k: int) -> None:
    every = [
        task
        for task in tasks("distance", 25)
        if min((t.distance for t in task.source.draft.tokens), default=99) == 0
    ]
    assert len(every) > 60
    near, uniform = first(NearValueSearch(0, k), every), first(RandomSearch(0, k), every)
    shares = near_share(near, every), near_share(uniform, every)
    assert shares[0] > shares[1] + 0.1
    worths = [
        float(np.mean([heuristic_score(t.source, v) for t, v in zip(every, found, strict=True)]))
        for found in (near, uniform)
    ]
    assert worths[0] > 1.5 * worths[1]
    assert np.mean([v.valid for v in near]) > np.mean([v.valid for v in uniform])


def test_it_is_a_function_of_its_arguments(tasks: Tasks) -> None:
    for task in tasks("distance", 2):
        turn = NearValueSearch(3, 2).turn(task)
        one = [turn.propose(number, 0, ()) for number in range(4)]
        other = NearValueSearch(3, 2).turn(task)
        assert [other.propose(number, 0, ()) for number in (3, 1, 0, 2)] == [
            one[number] for number in (3, 1, 0, 2)
        ]
        for proposal in one:
            assert task.perturber.apply(task.source, proposal.action) == proposal.variant


def test_another_seed_number_or_draw_draws_others(tasks: Tasks) -> None:
    task = max(tasks("distance", 2), key=lambda task: len(task.source.words))
    drawn = [
        NearValueSearch(seed, 2).turn(task).propose(number, draw, ()).action.vector
        for seed, number, draw in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    assert len(set(drawn)) == 4


def test_it_does_not_propose_what_is_there_already(tasks: Tasks) -> None:
    again = alone = 0
    for task in tasks("distance", 4):
        turn = NearValueSearch(0, 1).turn(task)
        seen: list[Feedback] = []
        for number in range(6):
            proposal = turn.propose(number, 0, seen)
            again += any(s.proposal.variant.text == proposal.variant.text for s in seen)
            seen.append(Feedback(proposal))
        texts = [turn.propose(number, 0, ()).variant.text for number in range(6)]
        alone += len(texts) - len(set(texts))
    assert again < alone / 2


def test_where_nothing_can_be_done_it_still_proposes(tasks: Tasks) -> None:
    task = tasks("distance", 1)[0]
    source = task.perturber.prepare("")
    proposal: Proposal = NearValueSearch(0, 3).turn(task._replace(source=source)).propose(0, 0, ())
    assert proposal.variant.status == "vacuous"
