"""How far two predictions are apart: by impurity, else by the slots that differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.search.protocol import impurity_difference
from pytest_dstfuzz.trackers.tracker import Prediction

SLOTS = st.sampled_from(["a-x", "a-y", "b-x", "b-y"])
STATES = st.dictionaries(SLOTS, st.sampled_from(["1", "2"])).map(BeliefState)
IMPURITIES = st.dictionaries(SLOTS, st.floats(0, 0.999))
PREDICTIONS = st.builds(Prediction, STATES, st.none() | IMPURITIES)


def said(impurities: dict[str, float] | None = None, **state: str) -> Prediction:
    return Prediction(
        BeliefState({f"s-{name}": value for name, value in state.items()}), impurities
    )


def test_with_impurities_it_is_the_difference_of_their_means() -> None:
    clean = said({"a": 0.1, "b": 0.3}, a="1")
    perturbed = said({"a": 0.5, "b": 0.1}, a="2")
    assert impurity_difference(clean, perturbed) == pytest.approx(0.1)
    assert impurity_difference(perturbed, clean) == pytest.approx(-0.1)
    # Each mean is over the slots that it knows.
    assert impurity_difference(clean, said({"c": 0.9}, a="1")) == pytest.approx(0.7)


@pytest.mark.parametrize("nothing", [None, {}])
def test_what_generated_nothing_has_no_impurity(nothing: dict[str, float] | None) -> None:
    """SimpleTOD has impurities of the slots that it writes, and may write none."""
    sure, torn = said(nothing), said({"a": 0.5, "b": 0.1}, a="2")
    assert impurity_difference(sure, torn) == pytest.approx(0.3)
    assert impurity_difference(torn, sure) == pytest.approx(-0.3)


@pytest.mark.parametrize(("clean", "perturbed"), [(None, None), ({}, {}), (None, {})])
def test_without_them_it_is_the_share_of_slots_that_differ(
    clean: dict[str, float] | None, perturbed: dict[str, float] | None
) -> None:
    before = said(clean, a="1", b="2", c="3")
    assert impurity_difference(before, said(perturbed, a="1", b="5", d="4")) == pytest.approx(3 / 4)
    assert impurity_difference(before, said(perturbed, a="1", b="2", c="3")) == 0
    assert impurity_difference(said(clean), said(perturbed)) == 0
    assert impurity_difference(said(clean), said(perturbed, a="1")) == 1


@given(PREDICTIONS, PREDICTIONS)
def test_bounds(clean: Prediction, perturbed: Prediction) -> None:
    found = impurity_difference(clean, perturbed)
    assert -1 < found <= 1
    assert impurity_difference(clean, clean) == 0
    if not clean.impurities and not perturbed.impurities:
        assert found >= 0
        assert (found == 0) == (clean.state == perturbed.state)
        assert found == impurity_difference(perturbed, clean)
    else:
        assert found == -impurity_difference(perturbed, clean)
