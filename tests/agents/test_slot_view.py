"""What the scorer sees of a turn: finite, bounded, and what attempts showed only after them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from utterances import SAID, TURNS, VALIDITIES, Said, perturber, source_of

from pytest_dstfuzz.agents import scorers
from pytest_dstfuzz.agents.scorers import (
    EDIT_SIZE,
    PAIR_SIZE,
    REST,
    SLOT_SIZE,
    ScoredAttempt,
    SlotView,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.search.candidates import candidates_of, together
from pytest_dstfuzz.trackers.tracker import Prediction

RINGS = scorers._RINGS
#: Where what attempts showed begins: attempts, touched, made, mean rise, most rise of those that
#: touched, most rise of all, changed, changed by this edit.
AT = PAIR_SIZE - scorers._TRIED
TEXT = "i need a taxi from ely to the museum of art at 17:15 please"
SAYS = BeliefState({"taxi-departure": "ely", "taxi-leaveat": "17:15", "hotel-area": "north"})
SURE = Prediction(SAYS, {"taxi-departure": 0.1, "taxi-leaveat": 0.0, "hotel-area": 0.3})
SLOTS = ("hotel-area", "taxi-departure", "taxi-leaveat", REST)

STATES = st.dictionaries(
    st.sampled_from([*SAYS, "hotel-stars", "wifi", "a.b-c_d", "-", "🙂-🙂"]),
    st.sampled_from(["ely", "yes", "dontcare", "17:15", "12", "the old museum of art", "🙂", "?"]),
)
PREDICTIONS = st.builds(
    lambda state, impurities: Prediction(BeliefState(state), impurities),
    STATES,
    st.none() | st.dictionaries(st.sampled_from([*SAYS, "wifi", "x-y"]), st.floats(0, 1)),
)


def view_of(
    said: Said, clean: Prediction, validity: str = "natural", system: str = "", turn: int = 0
) -> SlotView:
    source = source_of(said, validity)
    candidates = candidates_of(perturber(validity), source, np.random.default_rng(0))
    return SlotView(source, candidates, clean, system, turn)


@pytest.fixture(scope="module")
def view() -> SlotView:
    return view_of((TEXT, ("ely", "17:15"), ""), SURE)


def tried(view: SlotView, places: list[int], answer: Prediction | None) -> ScoredAttempt:
    """Return an attempt with the candidates at some places."""
    chosen = [view.candidates[place] for place in places]
    return ScoredAttempt(together(perturber("natural"), view._source, chosen), answer)


@settings(max_examples=60)
@given(
    said=SAID,
    validity=st.sampled_from(VALIDITIES),
    clean=PREDICTIONS,
    answers=st.lists(st.none() | PREDICTIONS, max_size=15),
    turn=st.integers(0, 40),
)
def test_all_features_are_finite_and_bounded(
    said: Said,
    validity: str,
    clean: Prediction,
    answers: list[Prediction | None],
    turn: int,
) -> None:
    view = view_of(said, clean, validity, said[2], turn)
    source = source_of(said, validity)
    attempts = [
        ScoredAttempt(
            together(perturber(validity), source, view.candidates[number : number + 1]), answer
        )
        for number, answer in enumerate(answers)
    ]
    slots, edits = len(view.slots), len(view.candidates)
    pairs = view.pairs(attempts)
    for features, shape, low, high in (
        (view.of_slots, (slots, SLOT_SIZE), 0.0, 2.0),
        (view.of_edits, (edits, EDIT_SIZE), 0.0, 1.2),
        (pairs, (slots, edits, PAIR_SIZE), -1.0, 1.0),
    ):
        assert features.shape == shape
        assert features.dtype == np.float32
        # What is not a number is in no range.
        assert ((features >= low - 1e-6) & (features <= high + 1e-6)).all()
    assert np.array_equal(pairs[:, :, :AT], view.pairs([])[:, :, :AT])


def test_slots_are_those_with_a_value_those_in_doubt_and_the_rest() -> None:
    doubts = {"hotel-area": 0.0, "hotel-stars": 0.02, "hotel-name": 0.019, "train-day": 0.5}
    clean = Prediction(BeliefState({"hotel-area": "north"}), doubts)
    view = view_of((TEXT, (), ""), clean)
    assert view.slots == ("hotel-area", "hotel-stars", "train-day", REST)
    nothing = view_of((TEXT, (), ""), Prediction(BeliefState()))
    assert nothing.slots == (REST,)


@pytest.mark.parametrize("validity", VALIDITIES)
def test_a_value_that_is_said_has_its_ring(validity: str) -> None:
    """Without locks there are edits of the value itself."""
    view = view_of((TEXT, ("ely", "17:15"), ""), SURE, validity)
    words = TEXT.split()
    pairs = view.pairs([])
    assert view.slots == SLOTS
    assert validity != "edit-rate" or any(5 in one.words for one in view.candidates)
    for slot, word in (("taxi-departure", "ely"), ("taxi-leaveat", "17:15")):
        mention, row = words.index(word), pairs[view.slots.index(slot)]
        rings = row[:, : 2 * RINGS + 1]
        assert (rings.sum(axis=1) == 1).all()
        for one, ring in zip(view.candidates, rings, strict=True):
            away = mention - one.words[-1] if one.words[-1] <= mention else one.words[0] - mention
            # Edits before the value are told from those behind it; from four words on all are far.
            side = 0 if one.words[-1] <= mention else RINGS
            assert ring.argmax() == side + min(away, 4)
    # Of a slot whose value is not said, and of the rest, there is no distance.
    for slot in ("hotel-area", REST):
        assert (pairs[view.slots.index(slot), :, 2 * RINGS] == 1).all()


def test_names_of_slots_and_domains_are_seen_where_they_are_said(view: SlotView) -> None:
    pairs = view.pairs([])
    taxi = TEXT.split().index("taxi")
    at_taxi = np.array([taxi in one.words for one in view.candidates])
    assert at_taxi.any()
    for slot in ("taxi-departure", "taxi-leaveat"):
        assert np.array_equal(pairs[view.slots.index(slot), :, 2 * RINGS + 2] == 1, at_taxi)
    assert not pairs[view.slots.index("hotel-area"), :, 2 * RINGS + 2].any()


def test_before_an_attempt_nothing_of_any_is_known(view: SlotView) -> None:
    assert not view.pairs([])[:, :, AT:].any()


def test_what_an_attempt_showed_is_seen_after_it(view: SlotView) -> None:
    far = view.candidates[-1]
    near = view.candidates[0]
    assert set(far.words).isdisjoint(near.words)
    state = BeliefState({**SAYS, "hotel-area": "south"})
    answer = Prediction(state, {"taxi-departure": 0.35, "taxi-leaveat": 0.0, "hotel-area": 0.05})
    seen = view.pairs([tried(view, [0], answer)])[:, :, AT:]
    area, departure = view.slots.index("hotel-area"), view.slots.index("taxi-departure")
    # The square root of the difference, with its sign.
    assert seen[departure, 0, 3] == pytest.approx(0.5)
    assert seen[area, 0, 3] == pytest.approx(-0.5)
    last = len(view.candidates) - 1
    assert seen[departure, last, 3] == 0
    # How it was at best is known of every edit.
    assert seen[departure, last, 5] == pytest.approx(0.5)
    assert (seen[area, :, 6] == 1).all()
    assert (seen[departure, :, 6] == 0).all()
    changed_by = np.flatnonzero(seen[area, :, 7])
    assert changed_by.tolist() == [0]
    touched = [not set(one.words).isdisjoint(near.words) for one in view.candidates]
    assert (seen[area, :, 1] > 0).tolist() == touched
    assert (seen[area, :, 2] > 0).tolist() == [one is near for one in view.candidates]


def test_an_attempt_without_an_answer_is_counted_alone(view: SlotView) -> None:
    seen = view.pairs([tried(view, [0], None)])[:, :, AT:]
    assert (seen[:, :, 0] > 0).all()
    assert not seen[:, :, 1:].any()
    more = [view.pairs([tried(view, [0], None)] * number)[0, 0, AT] for number in range(15)]
    assert more == sorted(more)
    # Training knows no more than twelve.
    assert more[12] == more[14] == 1


def test_a_tracker_without_probabilities_shows_what_changed(view: SlotView) -> None:
    unsure = view_of((TEXT, ("ely", "17:15"), ""), Prediction(SAYS))
    assert len(unsure.candidates) == len(view.candidates)
    lost = BeliefState({slot: value for slot, value in SAYS.items() if slot != "taxi-leaveat"})
    seen = unsure.pairs([tried(unsure, [0], Prediction(lost))])[:, :, AT:]
    assert not seen[:, :, 3:6].any()
    assert [bool(row[0, 6]) for row in seen] == [slot == "taxi-leaveat" for slot in unsure.slots]


def test_the_rest_changes_where_a_new_slot_appears(view: SlotView) -> None:
    assert view.changed(SURE) == [False] * 4
    other = Prediction(BeliefState({**SAYS, "train-day": "monday"}))
    assert view.changed(other) == [False, False, False, True]
    assert view.changed(Prediction(BeliefState())) == [True, True, True, False]


def test_features_know_no_name() -> None:
    """Renamed slots of the same hash look the same: nothing but the hash knows a name."""
    for turn in TURNS[:5]:
        states = [BeliefState({slot: "yes"}) for slot in ("zoo-a", "gym-a")]
        views = [view_of((turn.user, (), ""), Prediction(state)) for state in states]
        assert np.array_equal(views[0].of_slots, views[1].of_slots)
        assert np.array_equal(views[0].pairs([]), views[1].pairs([]))
