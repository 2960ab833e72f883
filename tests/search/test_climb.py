"""Greedy and DialTest: what a climb keeps, where it ends, and what it may do."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import Tasks

from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.search.protocol import Feedback, Proposal, SearchTask
from pytest_dstfuzz.search.searches import DIALTEST, GREEDY, HillClimb, HillClimbSearch
from pytest_dstfuzz.transformations import TRANSFORMATIONS

LAWS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
HEIGHTS = st.lists(
    st.floats(-0.2, 0.3).map(lambda score: round(score, 4)), min_size=20, max_size=20
)
RULES = pytest.mark.parametrize("rules", [GREEDY, DIALTEST], ids=lambda rules: rules.name)


def attempt(
    rules: HillClimb, task: SearchTask, heights: list[float], seed: int = 0
) -> list[Feedback]:
    """Play attempts at a turn; the tracker's impurity is given, invalid ones are not answered."""
    turn = HillClimbSearch(rules, seed).turn(task)
    seen: list[Feedback] = []
    for number, score in enumerate(heights):
        proposal = turn.propose(number, 0, seen)
        known = {item.proposal.variant.text for item in seen}
        new = proposal.variant.valid and proposal.variant.text not in known
        seen.append(
            Feedback(proposal, answered=True, impurity=score) if new else Feedback(proposal)
        )
    return seen


def longest(tasks: Tasks, only: tuple[str, ...] = ()) -> SearchTask:
    return max(tasks("reading", 4, only), key=lambda task: len(task.source.words))


@RULES
@LAWS
@given(heights=HEIGHTS, seed=st.integers(0, 99))
def test_a_step_adds_to_what_was_kept_and_only_rises_are_kept(
    tasks: Tasks, rules: HillClimb, heights: list[float], seed: int
) -> None:
    base: tuple[Edit, ...] = ()
    top, kept = 0.0, 0
    for number, item in enumerate(attempt(rules, longest(tasks), heights, seed)):
        if number % rules.steps == 0:
            base, top, kept = (), 0.0, 0
        edits = item.proposal.variant.edits
        assert edits[: len(base)] == base
        assert len(edits) <= len(base) + 1
        assert len(edits) <= rules.kept
        if item.answered and item.impurity > top + rules.threshold:
            base, top, kept = edits, item.impurity, kept + 1
        if kept == rules.kept:
            base, top, kept = (), 0.0, 0


@RULES
def test_every_climb_begins_at_the_clean_utterance(tasks: Tasks, rules: HillClimb) -> None:
    rising = [0.01 * (number + 1) for number in range(24)]
    seen = attempt(rules, longest(tasks), rising)
    counts = [len(item.proposal.variant.edits) for item in seen]
    assert max(counts[1:8]) > 1
    assert all(count <= 1 for count in counts[:: rules.steps])
    search = HillClimbSearch(rules, 0)
    assert [search.context_variant(number) for number in (0, 1, 7, 8, 9, 16)] == [0, 0, 0, 8, 8, 16]


@RULES
@pytest.mark.parametrize("margin", [-0.0001, 0.0001])
def test_the_threshold(tasks: Tasks, rules: HillClimb, margin: float) -> None:
    task = longest(tasks)
    first = attempt(rules, task, [0.0])[0].proposal
    assert first.variant.valid
    seen = [Feedback(first, answered=True, impurity=rules.threshold + margin)]
    following = [HillClimbSearch(rules, 0).turn(task).propose(1, draw, seen) for draw in range(12)]
    grown = [p.variant.edits[:1] == first.variant.edits and len(p.variant.edits) == 2
             for p in following]  # fmt: skip
    assert any(grown) == (margin > 0)
    # What the tracker was not asked about, or failed on, is never kept.
    not_run = [Feedback(first, answered=False, impurity=0.9)]
    assert len(HillClimbSearch(rules, 0).turn(task).propose(1, 0, not_run).variant.edits) <= 1


def test_dialtest_swaps_and_inserts_words_five_at_most(tasks: Tasks) -> None:
    rising = [0.01 * (number + 1) for number in range(24)]
    found: set[tuple[str, str]] = set()
    most = 0
    for task in tasks("reading", 8):
        for item in attempt(DIALTEST, task, rising):
            edits = item.proposal.variant.edits
            most = max(most, len(edits))
            found.update((edit.transformation, edit.operator) for edit in edits)
    assert {("word_replace", "synonym"), ("word_insert", "filler")} <= found
    assert found <= {
        ("word_replace", "synonym"),
        ("word_insert", "filler"),
        ("word_insert", "mlm"),
    }
    assert 1 < most <= 5


def test_dialtest_begins_again_after_five(tasks: Tasks) -> None:
    task = longest(tasks)
    task = task._replace(source=task.perturber.prepare(" ".join(["could you please help"] * 12)))
    turn = HillClimbSearch(DIALTEST, 0).turn(task)
    seen: list[Feedback] = []
    for number in range(5):
        for draw in range(50):
            proposal = turn.propose(number, draw, seen)
            if len(proposal.variant.edits) == number + 1 and proposal.variant.text not in {
                item.proposal.variant.text for item in seen
            }:
                break
        seen.append(Feedback(proposal, answered=True, impurity=0.1 * (number + 1)))
    assert len(seen[-1].proposal.variant.edits) == 5
    assert len(turn.propose(5, 0, seen).variant.edits) <= 1


def test_greedy_does_everything(tasks: Tasks) -> None:
    found = {
        edit.transformation
        for task in tasks("reading", 8)
        for item in attempt(GREEDY, task, [0.0] * 8)
        for edit in item.proposal.variant.edits
    }
    assert found == set(TRANSFORMATIONS)


@RULES
def test_nothing_depends_on_what_was_asked_before(tasks: Tasks, rules: HillClimb) -> None:
    task = longest(tasks)
    seen = attempt(rules, task, [0.02 * number for number in range(12)], seed=5)
    turn = HillClimbSearch(rules, 5).turn(task)
    for number in (11, 3, 7, 0, 8):
        assert turn.propose(number, 0, seen[:number]) == seen[number].proposal
    other = [HillClimbSearch(rules, 6).turn(task).propose(n, 0, seen[:n]) for n in range(12)]
    assert other != [item.proposal for item in seen]
    again = [turn.propose(0, draw, []).variant.text for draw in range(12)]
    assert len(set(again)) > 3


def test_with_few_transformations_the_places_still_vary(tasks: Tasks) -> None:
    task = longest(tasks, only=("char_drop",))
    turn = HillClimbSearch(GREEDY, 0).turn(task)
    proposals: list[Proposal] = [turn.propose(0, draw, []) for draw in range(30)]
    assert {e.transformation for p in proposals for e in p.variant.edits} == {"char_drop"}
    assert len({edit.start for p in proposals for edit in p.variant.edits}) > 5


def test_where_no_step_is_allowed_nothing_is_run(tasks: Tasks) -> None:
    task = longest(tasks, only=("char_drop",))
    seen = attempt(DIALTEST, task, [0.5] * 3)
    assert [item.proposal.variant.status for item in seen] == ["vacuous"] * 3
