"""Operators by their names alone: which are used, and which are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.selection import left_out, select
from pytest_dstfuzz.strategies import actions
from pytest_dstfuzz.transformations import (
    SHIPPED,
    Transformation,
    operator,
    register,
)

pytestmark = pytest.mark.usefixtures("operators_as_before")

TEXT = "please give me some more information about a movie, we are several people and thanks"
SIX = tuple(item.name for item in SHIPPED)


def made(*, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> set[str]:
    perturber = Perturber(load_lexicon(), validity="strict", only=only, without=without)
    source, rng = perturber.prepare(TEXT), np.random.default_rng(0)
    drawn = [perturber.apply(source, perturber.space.sample(rng, 3)) for _ in range(400)]
    return {f"{edit.transformation}/{edit.operator}" for variant in drawn for edit in variant.edits}


def test_operators_alone() -> None:
    assert made(only=("emoji", "look-alike")) == {"word_insert/emoji", "char_replace/look_alike"}
    assert made(only=("repeat",)) == {"word_insert/repeat", "char_insert/repeat"}


def test_operators_left_out() -> None:
    everything = made()
    out = {"word_insert/emoji", "char_replace/look_alike", "word_insert/filler"}
    assert out < everything
    assert made(without=("emoji", "look_alike", "filler")) == everything - out
    assert made(without=("repeat",)) == everything - {"word_insert/repeat", "char_insert/repeat"}
    rest = made(only=("word_insert", "char_drop"), without=("char_drop/any", "emoji", "swap"))
    assert rest == {
        "char_drop/blank",
        "word_insert/filler",
        "word_insert/mlm",
        "word_insert/repeat",
    }


def test_names_that_are_left_out() -> None:
    assert left_out(("blank", "char_drop/any", "word_drop")) == (
        *("word_drop", "char_drop/blank", "char_drop/any"),
    )
    assert left_out(("char_drop/any", "char-drop")) == ("char_drop",)
    assert left_out(("all",)) == SIX
    # Whether it is in use does not matter: a session's may stand beside a marker's.
    assert select(("char_drop",), ("emoji", "word_drop")) == select(("char_drop",))
    assert select((), ("stop_word", "any_word")).names == tuple(n for n in SIX if n != "word_drop")


@pytest.mark.parametrize(
    "names", [{"without": "all"}, {"only": "emoji,filler", "without": "word_insert"}]
)
def test_nothing_left_is_one_clear_error(names: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"nothing is left .* without=\S+ takes out all of only="):
        Settings.of(**names)
    with pytest.raises(UserError, match="nothing is left"):
        actions(**{name: tuple(value.split(",")) for name, value in names.items()})


def _upper(word: str) -> tuple[str, ...]:
    return (word.upper(),)


def test_operators_of_others_by_their_names() -> None:
    _upper.__module__ = "theirs"
    operator("word_replace", "replace", name="shout")(_upper)
    register(Transformation("dialect", "word", ("shout", "drawl")))
    operator("dialect", "replace", name="shout")(_upper)
    operator("dialect", "replace", name="drawl")(_upper)
    assert select(("shout",)).written == ("word_replace/shout", "dialect/shout")
    assert select(("all", "shout"), ("word_replace",)).names == (
        *("word_insert", "word_drop", "dialect", "char_insert", "char_replace", "char_drop"),
    )
    assert select(("dialect",), ("shout",)).written == ("dialect/drawl",)
    with pytest.raises(UserError, match="Did you mean 'shout'"):
        select(("shoot",))


def test_what_is_added_takes_no_shipped_name() -> None:
    """An operator of others is not used by the name of a shipped one; a transformation is."""
    before = select(("emoji",))
    _upper.__module__ = "theirs"
    operator("word_replace", "replace", name="emoji")(_upper)
    select.cache_clear()
    assert select(("emoji",)) == before
    assert select(("word_replace/emoji",)).written == ("word_replace/emoji",)
    register(Transformation("filler", "word", ("emoji",)))
    operator("filler", "replace", name="emoji")(_upper)
    assert select(("filler",)).names == ("filler",)
