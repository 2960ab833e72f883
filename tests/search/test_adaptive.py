"""The adaptive search: it prefers what broke the bot, values what is new, and can be repeated."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from turns import Tasks

from pytest_dstfuzz.perturb.edits import source_spans
from pytest_dstfuzz.perturb.words import Variant
from pytest_dstfuzz.search.adaptive import (
    FEATURES,
    AdaptiveSearch,
    Belief,
    EditKey,
    EditView,
    Past,
    shipped_prior,
    sigmoid,
    threshold,
)
from pytest_dstfuzz.search.candidates import (
    Composer,
    candidates_of,
    compose,
    together,
    touched_words,
)
from pytest_dstfuzz.search.protocol import Feedback, Lesson, SearchTask, TriedVariant


def touched(task: SearchTask, variant: Variant) -> set[str]:
    """Return the words of the clean utterance that a variant edits."""
    spans = source_spans(variant.edits)
    places = {place for span in spans for place in touched_words(task.source, *span)}
    return {task.source.words[place].lower for place in places}


def lessons_on(tasks: list[SearchTask], word: str) -> list[Lesson]:
    """Return the results of a bot that breaks if and only if a word is mistyped."""
    found = []
    for task in tasks:
        tried = []
        for number in range(6):
            variant = AdaptiveSearch(number, 3).turn(task).propose(number, 0, ()).variant
            if variant.valid:
                tried.append(TriedVariant(variant.edits, word in touched(task, variant)))
        for edit in candidates_of(task.perturber, task.source, np.random.default_rng(0))[::9]:
            variant = together(task.perturber, task.source, [edit])
            if variant.valid:
                tried.append(TriedVariant(variant.edits, word in touched(task, variant)))
        found.append(Lesson(task._replace(variants=8), tuple(tried)))
    return found


def share_of(search: AdaptiveSearch, tasks: list[SearchTask], word: str) -> float:
    """Return how often the first variant of a turn that says ``word`` mistypes it."""
    about = [task for task in tasks if word in {one.lower for one in task.source.words}]
    assert len(about) > 3
    made = [search.turn(task).propose(0, 0, ()).variant for task in about]
    return float(
        np.mean([word in touched(task, one) for task, one in zip(about, made, strict=True)])
    )


def test_it_tries_again_what_broke_the_bot(tasks: Tasks) -> None:
    every = tasks("distance", 8, validity="natural")
    before = AdaptiveSearch(0, 3)
    after = before.learn(lessons_on(every[:20], "the"))
    assert share_of(after, every[20:], "the") > 0.8
    assert share_of(before, every[20:], "the") < 0.6
    # A search that has learned leaves the first one as it was.
    assert before.learned == "" != after.learned


def test_other_lessons_are_other_knowledge(tasks: Tasks) -> None:
    lessons = lessons_on(tasks("distance", 8, validity="natural")[:15], "need")
    search = AdaptiveSearch(0, 3)
    known = [
        search.learn(lessons).learned,
        search.learn(lessons[:4]).learned,
        search.learn([one._replace(tried=one.tried[1:]) for one in lessons]).learned,
        search.learn(lessons[:4]).learn(lessons[4:]).learned,
    ]
    assert len(set(known)) == 4
    assert search.learn(lessons).learned == known[0]


def test_it_is_a_function_of_its_arguments(tasks: Tasks) -> None:
    every = tasks("distance", 8, validity="natural")[:15]
    lessons = lessons_on(every[:5], "the")
    for task in every[5:9]:
        one, other = (AdaptiveSearch(3, 3).learn(lessons).turn(task) for _ in range(2))
        first = [one.propose(number, 0, ()) for number in range(3)]
        assert [other.propose(number, 0, ()) for number in (2, 0, 1)] == [
            first[number] for number in (2, 0, 1)
        ]


@pytest.mark.parametrize("validity", ["natural", "strict", "edit-rate"])
def test_its_variants_are_valid(tasks: Tasks, validity: str) -> None:
    statuses = Counter(
        AdaptiveSearch(1, 3).turn(task).propose(0, 0, ()).variant.status
        for task in tasks("distance", 5, validity=validity)
    )
    assert set(statuses) <= {"valid", "vacuous"}
    assert statuses["valid"] > statuses["vacuous"]


def test_what_was_tried_counts_in_later_attempts(tasks: Tasks) -> None:
    task = max(
        tasks("distance", 8, validity="natural")[:9], key=lambda task: len(task.source.words)
    )
    found = candidates_of(task.perturber, task.source, np.random.default_rng(0))
    view = EditView(task, found, Past().counts)
    tried = view.rows([[0], [0, 5]]) - view.rows([])
    names = {FEATURES[place] for place in np.flatnonzero(tried.any(axis=0))}
    assert names == {"tried word", "tried edit", "attempts"}
    assert (tried[:, FEATURES.index("tried edit")] > 0).nonzero()[0].tolist() == [0, 5]


def test_a_turn_that_broke_waits_unless_something_new_is_likely(tasks: Tasks) -> None:
    task = tasks("distance", 8, validity="natural")[0]._replace(variants=4)
    rare = Belief(shipped_prior().mean - 9 * np.eye(len(FEATURES))[0], 1e6 * np.eye(len(FEATURES)))
    turn = AdaptiveSearch(0, 3, rare).turn(task)
    # Nothing is likely, so the turn waits until the last pass.
    proposals = [turn.propose(number, 0, ()) for number in range(4)]
    assert [one.variant.status for one in proposals] == ["vacuous"] * 3 + ["valid"]
    broken = [Feedback(proposals[3], answered=True, broken=True)]
    assert turn.propose(3, 0, broken).variant.status == "vacuous"


def test_the_threshold_falls_to_zero_except_at_broken_turns() -> None:
    falling = [threshold(number, 5, broken=False) for number in range(5)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 0.0
    assert threshold(0, 1, broken=False) == 0.0
    assert threshold(4, 5, broken=True) > 0.0


def test_attempts_without_effect_lead_to_other_kinds_of_edits(tasks: Tasks) -> None:
    mean = np.zeros(len(FEATURES))
    mean[FEATURES.index("edit: letters")] = 1.0
    search = AdaptiveSearch(0, 3, Belief(mean, 1e6 * np.eye(len(FEATURES))))
    long = [one for one in tasks("distance", 8, validity="natural") if len(one.source.words) > 11]
    assert len(long) > 3
    for task in long[:4]:
        found = candidates_of(task.perturber, task.source, np.random.default_rng(0))
        view = EditView(task, found, Past().counts)
        turn, seen, kinds = search.turn(task), list[Feedback](), list[set[str]]()
        for number in range(3):
            proposal = turn.propose(number, 0, seen)
            seen.append(Feedback(proposal, answered=True))
            kinds.append({view.keys[place].act for place in view.made(proposal.variant.edits)})
        # Words without an edit are left, but two attempts mistyped letters in vain.
        assert kinds[0] == {"letters"}
        assert kinds[2] - {"letters"}


def test_a_turn_without_possible_edits_is_skipped(tasks: Tasks) -> None:
    task = tasks("distance", 1, validity="natural")[0]
    perturber = task.perturber
    other = task._replace(source=perturber.prepare("..."))
    assert candidates_of(perturber, other.source, np.random.default_rng(0)) == ()
    assert AdaptiveSearch(0, 3).turn(other).propose(0, 0, ()).variant.status == "vacuous"
    tried = Lesson(other, (TriedVariant((), broken=True),))
    assert AdaptiveSearch(0, 3).learn([tried]).past.variants == 1


@pytest.mark.parametrize("validity", ["natural", "strict", "edit-rate"])
def test_edits_are_combined_greedily(tasks: Tasks, validity: str) -> None:
    rng = np.random.default_rng(1)
    for task in tasks("distance", 8, validity=validity)[:12]:
        found = candidates_of(task.perturber, task.source, rng)
        composer = Composer(task, found)
        for _ in range(4):
            scores = rng.random(len(found))
            chosen, made = composer.compose(scores)
            assert (chosen, made) == compose(task, found, scores)
            # None of the best edits that were left out fits.
            picked, words = list[int](), 0
            for place in np.argsort(-scores, kind="stable")[:60].tolist():
                some = [found[other] for other in (*picked, place)]
                if any(found[place].meets(found[other]) for other in picked):
                    continue
                if words + len(found[place].words) > task.source.draft.quota:
                    continue
                if together(task.perturber, task.source, some).valid:
                    picked.append(place)
                    words += len(found[place].words)
            assert chosen == picked


def test_known_weaknesses_are_worth_less(tasks: Tasks) -> None:
    every = tasks("distance", 8, validity="natural")[:18]
    search = AdaptiveSearch(0, 3, Belief(np.zeros(len(FEATURES)), 1e6 * np.eye(len(FEATURES))))
    words = ("value", "number", "name", "cue", "polarity", "filler", "content")
    known = AdaptiveSearch(0, 3, search.belief)
    acts = ("letters", "blank", "mark", "added", "replaced", "dropped")
    known.past.found.update({EditKey(word, act, ""): 500 for word in words for act in acts})
    cases = Counter[str]()
    for task in every:
        for name, one in (("new", search), ("known", known)):
            for edit in one.turn(task).propose(0, 0, ()).variant.edits:
                cases[f"{name} {edit.operator == 'case'}"] += 1
    assert cases["known True"] > 3 * max(cases["new True"], 1)


def test_a_fit_finds_the_weights() -> None:
    rng = np.random.default_rng(0)
    true = np.array([-1.0, 2.0, 0.0])
    rows = np.column_stack([np.ones(4000), rng.integers(0, 2, (4000, 2))]).astype(float)
    labels = (rng.random(4000) < sigmoid(rows @ true)).astype(float)
    prior = Belief(np.zeros(3), np.eye(3))
    found = prior.fit(rows, labels, np.ones(4000))
    assert np.abs(found.mean - true).max() < 0.2
    # The draws are close to the mean, closer than those of the prior.
    drawn = np.array([found.draw(np.random.default_rng(seed)) for seed in range(50)])
    assert np.abs(drawn - found.mean).max() < 0.5
    assert np.array([prior.draw(np.random.default_rng(seed)) for seed in range(50)]).std() > 0.5
    # Evidence without weight changes nothing.
    assert np.abs(prior.fit(rows, labels, np.zeros(4000)).mean).max() == 0.0
