"""Questions asked in other orders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.contexts import (
    PERTURBATIONS,
    list_asked,
    register_perturbation,
    sequences,
    without_opening,
)

ALL = ("DRS", "DRR", "DRD", "DSR", "DSD")
#: Rounds that each has, of ``n``.
SIZES = {
    "DRS": lambda n: n,
    "DRR": lambda n: n - max(1, round(0.3 * n)),
    "DRD": lambda n: n + max(1, round(0.2 * n)),
}
SIZES |= {"DSR": SIZES["DRR"], "DSD": SIZES["DRD"]}


@given(st.sampled_from(ALL), st.integers(1, 14), st.integers(0, 1 << 20))
def test_each_has_its_rounds(name: str, rounds: int, seed: int):
    order = PERTURBATIONS.find(name)(rounds, np.random.default_rng(seed))
    if order is None:
        assert rounds < (3 if name in ("DRR", "DSR") else 2)
        return
    assert len(order) == SIZES[name](rounds)
    if name == "DRS":
        assert sorted(order) == list(range(rounds)) != list(order)
    if name in ("DRR", "DSR"):
        assert len(set(order)) == len(order)
    if name in ("DRD", "DSD"):
        assert set(order) == set(range(rounds))
    if name == "DRR":
        assert list(order) == sorted(order)


def test_sequences_are_the_dialogues_own(harbour: Dialogue):
    found = list(sequences(harbour, ALL, 2, 0))
    assert [one.case for one in found] == [f"{name}-{draw}" for draw in (0, 1) for name in ALL]
    # One that is left out moves no other.
    assert [one for one in found if one.perturbation != "DRR"] == list(
        sequences(harbour, ("DRS", "DRD", "DSR", "DSD"), 2, 0)
    )
    assert found != list(sequences(harbour, ALL, 2, 1))


def test_a_question_takes_its_answer_along(harbour: Dialogue):
    assert list_asked(harbour, (3, 5, 0)).exchanges == (
        Exchange("Lerwick harbour\nHistory", "What did Bergen send?"),
        Exchange("Timber and forty masons.", "How long did that last?"),
        Exchange("I don't know.", "Who built the harbour?"),
    )
    clean = tuple(range(len(harbour.turns)))
    assert list_asked(harbour, clean) == harbour.context(clean[-1])
    assert without_opening(harbour).context(0).exchanges == (Exchange("", harbour.turns[0].user),)


def test_one_of_a_suite_is_checked(harbour: Dialogue):
    register_perturbation("backwards", lambda rounds, rng: tuple(range(rounds))[::-1])  # noqa: ARG005
    assert next(sequences(harbour, ("backwards",), 1, 0)).order == (6, 5, 4, 3, 2, 1, 0)
    register_perturbation("beyond", lambda rounds, rng: (rounds,))  # noqa: ARG005
    with pytest.raises(UserError, match=r"'beyond' returned \(7,\) for 7 rounds"):
        list(sequences(harbour, ("beyond",), 1, 0))
    with pytest.raises(UserError, match="DRS"):
        register_perturbation("DRS", lambda rounds, rng: (0,))  # noqa: ARG005
