"""Laws of edit lists: put on, taken out, traced back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.perturb.edits import apply_edits, hunks, source_spans, without
from pytest_dstfuzz.perturb.words import Edit

TEXT = st.text(alphabet="ab c", max_size=12)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text and edits made one after the other on it."""
    source = text = draw(TEXT)
    edits = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        after = draw(st.text(alphabet="xy ", max_size=3))
        if start == end and not after:
            after = "x"
        edits.append(Edit("char_insert", "repeat", start, end, text[start:end], after))
        text = apply_edits(text, edits[-1:])
    return source, edits


@given(histories())
def test_without_all_is_the_source_and_without_none_is_everything(
    history: tuple[str, list[Edit]],
) -> None:
    source, edits = history
    assert apply_edits(source, without(edits, range(len(edits)))) == source
    assert without(edits, ()) == tuple(edits)


@given(histories(), st.sets(st.integers(0, 4)))
def test_what_is_left_still_applies(history: tuple[str, list[Edit]], dropped: set[int]) -> None:
    source, edits = history
    indices = {index for index in dropped if index < len(edits)}
    left = without(edits, indices)
    assert len(left) <= len(edits) - len(indices)
    apply_edits(source, left)


@given(histories())
def test_hunks_hold_every_change(history: tuple[str, list[Edit]]) -> None:
    source, edits = history
    text = apply_edits(source, edits)
    rebuilt, position, new_position = "", 0, 0
    for hunk in hunks(edits):
        assert hunk.start >= position
        assert hunk.new_start >= new_position
        rebuilt += source[position : hunk.start] + text[hunk.new_start : hunk.new_end]
        assert len(rebuilt) == hunk.new_end
        position, new_position = hunk.end, hunk.new_end
    assert rebuilt + source[position:] == text


@given(histories())
def test_source_spans_lie_in_the_source_and_in_a_hunk(
    history: tuple[str, list[Edit]],
) -> None:
    source, edits = history
    changed = hunks(edits)
    for start, end in source_spans(edits):
        assert 0 <= start <= end <= len(source)
        assert any(hunk.start <= start and end <= hunk.end for hunk in changed)


def test_taking_an_edit_out_shifts_the_later_ones() -> None:
    first = Edit("word_insert", "filler", 0, 0, "", "um ")
    second = Edit("char_drop", "any", 5, 6, "a", "")
    assert without([first, second], [0]) == (Edit("char_drop", "any", 2, 3, "a", ""),)


def test_an_edit_of_inserted_text_goes_with_it() -> None:
    first = Edit("word_insert", "filler", 0, 0, "", "um ")
    second = Edit("char_drop", "any", 1, 2, "m", "")
    assert without([first, second], [0]) == ()


def test_an_edit_across_a_removal_depends_on_it() -> None:
    first = Edit("word_drop", "any", 1, 2, "b", "")
    second = Edit("char_replace", "swap", 0, 2, "ac", "ca")
    assert without([first, second], [0]) == ()


@pytest.mark.parametrize("edit", [Edit("w", "o", 0, 1, "x", ""), Edit("w", "o", 0, 2, "a", "")])
def test_an_edit_that_does_not_fit_is_refused(edit: Edit) -> None:
    with pytest.raises(ValueError, match="edit 0 expects"):
        apply_edits("abc", [edit])


def test_an_index_of_no_edit_is_refused() -> None:
    with pytest.raises(IndexError):
        without([], [0])
