"""Operators by their names alone: which are used, and which are left out."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.selection import select, simplify_names
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


def made(*edits: str) -> set[str]:
    perturber = Perturber(load_lexicon(), validity="strict", edits=edits)
    source, rng = perturber.prepare(TEXT), np.random.default_rng(0)
    drawn = [perturber.apply(source, perturber.space.sample(rng, 3)) for _ in range(400)]
    return {f"{edit.transformation}/{edit.operator}" for variant in drawn for edit in variant.edits}


def test_operators_alone() -> None:
    assert made("emoji", "look-alike") == {"word_insert/emoji", "char_replace/look_alike"}
    assert made("repeat") == {"word_insert/repeat", "char_insert/repeat"}


def test_operators_left_out() -> None:
    everything = made()
    out = {"word_insert/emoji", "char_replace/look_alike", "word_insert/filler"}
    assert out < everything
    assert made("-emoji", "-look_alike", "-filler") == everything - out
    assert made("-repeat") == everything - {"word_insert/repeat", "char_insert/repeat"}
    rest = made("word_insert", "-char_drop/any", "char_drop", "-emoji", "-swap")
    assert rest == {
        "char_drop/blank",
        "word_insert/filler",
        "word_insert/mlm",
        "word_insert/repeat",
    }


def test_names_that_are_left_out() -> None:
    assert simplify_names(("-blank", "-char_drop/any", "-word_drop")) == (
        *("-word_drop", "-char_drop/blank", "-char_drop/any"),
    )
    assert simplify_names(("-char_drop/any", "-char-drop")) == ("-char_drop",)
    assert simplify_names(("-all",)) == tuple(f"-{name}" for name in SIX)
    # Whether it is in use does not matter.
    assert select(("char_drop", "-emoji", "-word_drop")) == select(("char_drop",))
    without = select(("-stop_word", "-any_word")).names
    assert without == tuple(name for name in SIX if name != "word_drop")


def test_what_is_added_stands_beside_what_is_used() -> None:
    assert select(("+texting",)) == select(("all", "texting"))
    assert select(("+texting",), ("char_drop",)) == select(("char_drop", "texting"))
    assert select(("emoji", "+texting")) == select(("emoji", "texting"))
    assert "word_replace/misspelling" in made("+emoji")


@pytest.mark.parametrize("names", ["-all", "emoji,filler,-word_insert"])
def test_nothing_left_is_one_clear_error(names: str) -> None:
    with pytest.raises(UserError, match=r"no edit is left .* edits=\S+ excludes all of"):
        Settings.of(edits=names, validity="strict")
    with pytest.raises(UserError, match="no edit is left"):
        actions(edits=names.split(","))


def _upper(word: str) -> tuple[str, ...]:
    return (word.upper(),)


def test_operators_of_others_by_their_names() -> None:
    _upper.__module__ = "theirs"
    operator("word_replace", "replace", name="shout")(_upper)
    register(Transformation("dialect", "word", ("shout", "drawl")))
    operator("dialect", "replace", name="shout")(_upper)
    operator("dialect", "replace", name="drawl")(_upper)
    assert select(("shout",)).written == ("word_replace/shout", "dialect/shout")
    assert select(("+shout", "-word_replace")).names == (
        *("word_insert", "word_drop", "dialect", "char_insert", "char_replace", "char_drop"),
    )
    assert select(("dialect", "-shout")).written == ("dialect/drawl",)
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
