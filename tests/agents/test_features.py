"""Features: their sizes and bounds, what they depend on, and that they mean what they say."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
from chatterbots import ONTOLOGY
from hypothesis import HealthCheck, given
from hypothesis import settings as laws
from hypothesis import strategies as st

from pytest_dstfuzz.agents.policies import (
    IMPURITY_SCALE,
    SLOT_BUCKETS,
    STATE_SIZE,
    Trace,
    TurnView,
    find_edited_words,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.perturb.engine import ActionSpace, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SPACE = ActionSpace()
KINDS = tuple(itertools.product(("strict", "edit-rate"), ("reading", "distance")))
TEXT = "could you please find me a lovely chinese place in the north of town"
TEXTS = (TEXT, "", "ok", "?!", "😀 north", "thank you !", "i am leaving from the north " * 9)
LAWS = laws(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
UTTERANCES = st.sampled_from(TEXTS) | st.text(max_size=40)
PREDICTIONS = st.none() | st.builds(
    Prediction,
    st.dictionaries(st.sampled_from(["hotel-area", "a-b", "c-d"]), st.just("north")).map(
        BeliefState
    ),
    st.none() | st.dictionaries(st.sampled_from(["hotel-area", "a-b"]), st.floats(0, 0.99)),
)


@lru_cache
def perturber_of(validity: str = "strict", order: str = "distance") -> Perturber:
    return Perturber(load_lexicon(), validity=validity, ontology=ONTOLOGY, order=order)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    for kind in KINDS:
        perturber_of(*kind)


def view_of(
    text: str = TEXT,
    clean: Prediction | None = None,
    system: str = "",
    turn: int = 0,
    kind: tuple[str, str] = ("strict", "distance"),
) -> TurnView:
    perturber = perturber_of(*kind)
    source = perturber.prepare(text, (), system)
    return TurnView(source, perturber.menus(source), clean, system, turn)


def trace_of(view: TurnView, attempts: int, seed: int = 0) -> Trace:
    """Return what some random attempts would have shown."""
    rng = np.random.default_rng(seed)
    trace = Trace(len(view.source.words))
    for _ in range(attempts):
        variant = perturber_of().apply(view.source, SPACE.sample(rng, 2))
        answered = bool(rng.random() < 0.7)
        trace.add(
            view.source, variant, float(rng.normal(0, 0.1)), answered=answered, changes=attempts % 3
        )
    return trace


@LAWS
@given(
    UTTERANCES,
    PREDICTIONS,
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from(KINDS),
    st.data(),
)
def test_sizes_and_bounds(
    text: str,
    clean: Prediction | None,
    turn: int,
    attempts: int,
    kind: tuple[str, str],
    data: st.DataObject,
) -> None:
    view = view_of(text, clean, data.draw(st.sampled_from(["", "which area ?"])), turn, kind)
    trace = trace_of(view, attempts)
    k = data.draw(st.integers(1, 6))
    state = view.state(trace, k)
    assert state.shape == (STATE_SIZE,)
    assert view.available.shape == (6,)
    menus = perturber_of(*kind).menus(view.source)
    assert view.available.tolist() == [bool(menus[name].operators) for name in TRANSFORMATIONS]
    assert state.dtype == np.float32
    assert np.isfinite(state).all()
    assert np.abs(state).max(initial=0) <= IMPURITY_SCALE


def test_documented_size() -> None:
    assert 16 + len(TRANSFORMATIONS) + SLOT_BUCKETS == STATE_SIZE


def test_traces_add_up() -> None:
    view = view_of()
    source = view.source
    trace = Trace(len(source.words))
    empty = view.state(trace, 3)
    rng = np.random.default_rng(1)
    variants = [perturber_of().apply(source, SPACE.sample(rng, 2)) for _ in range(6)]
    for variant in variants:
        trace.add(source, variant, 0.9, answered=False, changes=1)
    # What was not answered is counted, and shows nothing.
    assert (trace.attempts, trace.changed, trace.impurities) == (6, 0, [])
    assert not trace.touched.any()
    for number, variant in enumerate(variants):
        trace.add(source, variant, 0.01 * (number - 2), answered=True, changes=number % 2)
    assert (trace.attempts, trace.changed) == (12, 3)
    assert trace.impurities == pytest.approx([0.01 * (n - 2) * IMPURITY_SCALE for n in range(6)])
    touched = {word for variant in variants for word in find_edited_words(source, variant)}
    assert set(np.flatnonzero(trace.touched)) == touched
    assert (view.state(trace, 3) != empty).any()
    # The trace alone moves with the attempts.
    assert (view.state(trace, 3)[6:] == empty[6:]).all()


def test_they_depend_on_the_dialogue_and_the_prediction_alone() -> None:
    clean = Prediction(BeliefState({"hotel-area": "north"}), {"hotel-area": 0.2, "a-b": 0.1})
    same = Prediction(BeliefState({"hotel-area": "north"}), {"a-b": 0.1, "hotel-area": 0.2})
    other = Perturber(load_lexicon(), validity="strict", ontology=ONTOLOGY, order="distance")
    source = other.prepare(TEXT, (), "")
    twin = TurnView(source, other.menus(source), same, "", 0)
    view = view_of(clean=clean)
    assert (view.state(trace_of(view, 2), 1) == twin.state(trace_of(twin, 2), 1)).all()
    plain = view.state(Trace(13), 1)
    for changed in (
        view_of(),
        view_of(clean=Prediction(clean.state, {"hotel-area": 0.3})),
        view_of(clean=Prediction(BeliefState({"x-y": "z"}), clean.impurities)),
        view_of(clean=clean, turn=3),
        view_of(clean=clean, system="which area ?"),
        view_of("well then", clean=clean),
    ):
        assert (changed.state(Trace(len(changed.source.words)), 1) != plain).any()
    assert (view.state(Trace(13), 2) != plain).any()


def test_the_values_of_a_prediction_do_not_show() -> None:
    """A slot is known by its name, so that the agent need not learn a domain's values."""
    north, south = (Prediction(BeliefState({"hotel-area": area})) for area in ("north", "south"))
    assert (
        view_of(clean=north).state(Trace(13), 1) == view_of(clean=south).state(Trace(13), 1)
    ).all()


def digest() -> str:
    """Return what the features of some turns come to."""
    found = hashlib.sha256()
    clean = Prediction(BeliefState({"a-b": "1", "c-d": "2", "e-f": "3"}), {"a-b": 0.2, "c-d": 0.1})
    for text in TEXTS:
        view = view_of(text, clean)
        trace = trace_of(view, 4)
        found.update(view.state(trace, 2).tobytes())
    return found.hexdigest()


def test_the_same_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", "import test_features; print(test_features.digest())"],
            cwd=__file__.rpartition("/")[0],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {digest()}
