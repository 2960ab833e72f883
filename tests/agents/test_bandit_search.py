"""The bandit as a search: where its calls go, what it aims at, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import Tasks

from pytest_dstfuzz.agents.policies import Floats
from pytest_dstfuzz.agents.scorers import REST, ScoredAttempt, Scorer, SlotView
from pytest_dstfuzz.agents.searches import (
    BanditSearch,
    attempts_of,
    find_broken_slots,
    threshold,
    view_of,
    waiting,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.search.candidates import Candidate, compose
from pytest_dstfuzz.search.protocol import NO_ACTION, Feedback, Proposal, SearchTask, TurnSearch
from pytest_dstfuzz.trackers.tracker import Prediction

LAWS = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
VARIANTS = 6
AREA, FOOD = "hotel-area", "hotel-food"
CLEAN = Prediction(BeliefState({AREA: "north", FOOD: "thai"}))
#: Without the area, and without both.
NO_AREA, NEITHER = Prediction(BeliefState({FOOD: "thai"})), Prediction(BeliefState())


class RuledScorer(Scorer):
    """Gives each slot and edit the chance that a rule says."""

    def __init__(self, rule: Callable[[str, Candidate, int], float]) -> None:
        super().__init__({})
        self._rule = rule

    def chances(self, view: SlotView, attempts: Iterable[ScoredAttempt]) -> Floats:
        count = len(list(attempts))
        rows = [[self._rule(slot, one, count) for one in view.candidates] for slot in view.slots]
        return np.array(rows, np.float32).reshape(len(view.slots), len(view.candidates))


def by_length(slot: str, one: Candidate, attempts: int) -> float:
    """Return a chance that differs from edit to edit, and after every attempt."""
    return (one.edit.start * 7 + len(slot) * 3 + len(one.edit.after) + attempts) % 10 / 20


def first_word_of(chances: Mapping[str, tuple[int, float]]) -> Scorer:
    """Return a scorer that knows of each slot the one word that changes it, by how much."""

    def rule(slot: str, one: Candidate, _: int) -> float:
        place, chance = chances.get(slot, (-1, 0.0))
        return chance if place in one.words else 0.0

    return RuledScorer(rule)


def begin(scorer: Scorer, task: SearchTask, seed: int = 0) -> TurnSearch:
    return BanditSearch(scorer, seed).turn(task)


def told(proposal: Proposal, answer: Prediction = CLEAN, broken: bool = False) -> Feedback:
    """Return what a search is told of an attempt that was answered, or of one that waited."""
    if not proposal.variant.valid:
        return Feedback(proposal)
    return Feedback(proposal, answered=True, broken=broken, answer=answer)


def play(turn: TurnSearch, answers: Sequence[Prediction]) -> list[Feedback]:
    """Play as many attempts as there are answers; whatever differs from the clean one breaks."""
    seen: list[Feedback] = []
    for number, answer in enumerate(answers):
        seen.append(told(turn.propose(number, 0, seen), answer, answer != CLEAN))
    return seen


@pytest.fixture
def long_tasks(tasks: Tasks) -> list[SearchTask]:
    found = tasks("distance", 6, (), "natural")
    return [task._replace(clean=CLEAN, variants=VARIANTS) for task in found]


@pytest.fixture
def short(long_tasks: list[SearchTask]) -> SearchTask:
    """A turn of few words: a variant is one edit."""
    task = long_tasks[0]
    source = task.perturber.prepare("something near there please")
    assert source.draft.quota == 1
    return task._replace(source=source)


@given(st.integers(2, 60))
def test_the_threshold_falls_to_nothing(variants: int) -> None:
    falling = [threshold(number, variants) for number in range(variants)]
    assert 0 < falling[0] < 1
    assert falling[-1] == 0
    assert all(before > after for before, after in pairwise(falling))


def test_of_a_single_attempt_nothing_is_asked() -> None:
    assert threshold(0, 1) == 0


@pytest.mark.parametrize("text", ["", "?!"])
def test_a_turn_without_candidates_waits(short: SearchTask, text: str) -> None:
    task = short._replace(source=short.perturber.prepare(text))
    turn = begin(RuledScorer(by_length), task)
    for number in range(VARIANTS):
        assert turn.propose(number, 0, []) == waiting(task)
    assert waiting(task).variant.text == text
    assert waiting(task).variant.status == "vacuous"


def test_a_turn_where_the_tracker_failed_has_candidates(long_tasks: list[SearchTask]) -> None:
    task = long_tasks[0]._replace(clean=None)
    assert begin(RuledScorer(by_length), task).propose(VARIANTS - 1, 0, []).variant.valid


def test_what_promises_little_waits_until_its_pass(short: SearchTask) -> None:
    for chance in (0.5, 0.02, 0.0):
        turn = begin(first_word_of({AREA: (0, chance)}), short)
        made = [turn.propose(number, 0, []).variant.valid for number in range(VARIANTS)]
        assert made == [threshold(number, VARIANTS) <= chance for number in range(VARIANTS)]
        assert made[-1]


def test_the_best_edit_is_the_first_attempt(short: SearchTask) -> None:
    for place in range(4):
        turn = begin(first_word_of({FOOD: (place, 0.8), AREA: (3 - place, 0.5)}), short)
        proposal = turn.propose(0, 0, [])
        assert proposal.action == NO_ACTION
        assert words_of(short, proposal) == {place}


def words_of(task: SearchTask, proposal: Proposal) -> set[int]:
    """Return the words that a proposal touches."""
    view = view_of(task, 0)
    made = zip(view.candidates, view.made_of(proposal.variant), strict=True)
    return {word for one, is_made in made if is_made for word in one.words}


def test_slots_that_broke_are_not_aimed_at_again(short: SearchTask) -> None:
    turn = begin(first_word_of({AREA: (0, 0.9), FOOD: (3, 0.4)}), short)
    first = turn.propose(0, 0, [])
    assert words_of(short, first) == {0}
    after = {
        name: [words_of(short, turn.propose(1, draw, seen)) for draw in range(8)]
        for name, seen in (
            ("held", [told(first)]),
            ("broke", [told(first, NO_AREA, broken=True)]),
            # It was wrong before, or earlier turns had carried it in.
            ("carried", [told(first, NO_AREA)]),
            ("all broke", [told(first, NEITHER, broken=True)]),
        )
    }
    assert after["broke"] == [{3}] * 8
    assert {0} in after["held"]
    assert {0} in after["carried"]
    # Nothing is left to find, and the turn waits.
    assert after["all broke"] == [set()] * 8


def test_slots_that_broke(short: SearchTask) -> None:
    view = view_of(short, 0)
    assert view.slots == (AREA, FOOD, REST)
    variant = begin(RuledScorer(by_length), short).propose(VARIANTS - 1, 0, []).variant
    broken = ScoredAttempt(variant, NO_AREA, broken=True)
    held = ScoredAttempt(variant, NEITHER)
    assert find_broken_slots(view, []).tolist() == [False] * 3
    assert find_broken_slots(view, [held]).tolist() == [False] * 3
    assert find_broken_slots(view, [broken, held]).tolist() == [True, False, False]
    assert (
        find_broken_slots(view, [ScoredAttempt(variant, None, broken=True)]).tolist() == [False] * 3
    )


def test_attempts_are_those_that_were_made(short: SearchTask) -> None:
    made = begin(RuledScorer(by_length), short).propose(VARIANTS - 1, 0, [])
    seen = [Feedback(waiting(short)), told(made, NO_AREA, broken=True), Feedback(made)]
    assert attempts_of(seen) == [
        ScoredAttempt(made.variant, NO_AREA, broken=True),
        ScoredAttempt(made.variant, None, broken=False),
    ]


def test_it_is_a_function_of_its_arguments(long_tasks: list[SearchTask]) -> None:
    scorer, answers = RuledScorer(by_length), [CLEAN, NO_AREA, CLEAN, NEITHER]
    expected = [play(begin(scorer, task, 3), answers) for task in long_tasks]
    turns = {place: begin(scorer, task, 3) for place, task in enumerate(long_tasks)}
    # The other way round, and turns beside each other.
    for number in (3, 1, 0, 2):
        for place in reversed(turns):
            seen = expected[place]
            assert turns[place].propose(number, 0, seen[:number]) == seen[number].proposal


def test_as_many_attempts_that_showed_something_else_are_something_else(
    long_tasks: list[SearchTask],
) -> None:
    scorer = first_word_of({AREA: (0, 0.9), FOOD: (2, 0.9)})
    task = max(long_tasks, key=lambda task: len(task.source.words))
    turn = begin(scorer, task)
    first = turn.propose(0, 0, [])
    seen = [[told(first, answer, answer != CLEAN)] for answer in (CLEAN, NO_AREA, NEITHER)]
    fresh = [begin(scorer, task).propose(1, 0, some) for some in seen]
    assert [turn.propose(1, 0, some) for some in seen] == fresh
    assert fresh[2] == waiting(task)
    assert fresh[0] != fresh[2]


def test_later_attempts_and_redraws_differ(long_tasks: list[SearchTask]) -> None:
    task = max(long_tasks, key=lambda task: len(task.source.words))
    turn = begin(RuledScorer(by_length), task)
    last = VARIANTS - 1
    assert turn.propose(0, 0, []) == begin(RuledScorer(by_length), task, 1).propose(0, 0, [])
    assert len({turn.propose(last, draw, []).variant.text for draw in range(6)}) > 3
    assert len({turn.propose(number, 0, []).variant.text for number in range(6)}) > 3
    other = begin(RuledScorer(by_length), task, 1)
    assert other.propose(last, 0, []) != turn.propose(last, 0, [])


@LAWS
@given(
    number=st.integers(0, 50),
    seed=st.integers(0, 10**6),
    validity=st.sampled_from(["natural", "strict"]),
)
def test_what_is_composed_is_valid_and_within_the_quota(
    tasks: Tasks, number: int, seed: int, validity: str
) -> None:
    every = tasks("distance", 4, (), validity)
    task = every[number % len(every)]
    view = view_of(task._replace(clean=CLEAN), 0)
    rng = np.random.default_rng(seed)
    scores = rng.random(len(view.candidates)).astype(np.float32)
    chosen, variant = compose(task, view.candidates, scores)
    assert (variant is None) == (not chosen)
    some = [view.candidates[place] for place in chosen]
    assert sum(len(one.words) for one in some) <= task.source.draft.quota
    assert not any(one.meets(other) for one, other in combinations(some, 2))
    if variant is not None:
        assert variant.valid
        assert np.flatnonzero(view.made_of(variant)).tolist() == sorted(chosen)
        # Best first.
        assert scores[chosen].tolist() == sorted(scores[chosen].tolist(), reverse=True)
