"""Laws and looks of the marks that show what was edited."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.perturb.edits import apply_edits, undo_edits
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.wording import diff_spans, legend, mark_edits, shorten, visible

SOURCE = "i am leaving on friday to be there"


def edit(text: str, start: int, end: int, after: str) -> Edit:
    return Edit("char_replace", "swap", start, end, text[start:end], after)


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text and edits that are made on it one after the other."""
    alphabet = st.sampled_from("ab é\u0430\u200b🙂")
    source = text = draw(st.text(alphabet, max_size=20))
    edits = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        edits.append(edit(text, start, end, draw(st.text(alphabet, max_size=4))))
        text = apply_edits(text, edits[-1:])
    return source, edits


@given(edited())
def test_spans_join_to_both_texts(case: tuple[str, list[Edit]]) -> None:
    source, edits = case
    spans = diff_spans(source, edits)
    assert "".join(span.before for span in spans) == source
    assert "".join(span.after for span in spans) == apply_edits(source, edits)


@given(edited())
def test_no_span_is_empty_and_what_stayed_is_in_one_piece(case: tuple[str, list[Edit]]) -> None:
    spans = diff_spans(*case)
    assert all(one.changed or two.changed for one, two in itertools.pairwise(spans))
    assert all(span.before or span.after for span in spans)


@given(edited())
def test_undoing_edits_gives_the_source(case: tuple[str, list[Edit]]) -> None:
    source, edits = case
    assert undo_edits(apply_edits(source, edits), edits) == source


@given(edited())
def test_marks_show_nothing_that_cannot_be_seen(case: tuple[str, list[Edit]]) -> None:
    marked = mark_edits(*case)
    assert marked == visible(marked)


@pytest.mark.parametrize(
    ("changes", "marked"),
    [
        ([], SOURCE),
        ([(5, 12, "leaivng")], "i am [-leaving-]{+leaivng+} on friday to be there"),
        ([(7, 9, "va")], "i am [-leaving-]{+levaing+} on friday to be there"),
        (
            [(7, 9, "va"), (0, 0, "please ")],
            "{+please+} i am [-leaving-]{+levaing+} on friday to be there",
        ),
        ([(25, 26, "")], "i am leaving on friday [-to be-]{+tobe+} there"),
        ([(8, 8, " ")], "i am [-leaving-]{+lea ving+} on friday to be there"),
        ([(2, 2, " ")], "i {+<SPACE>+}am leaving on friday to be there"),
        (
            [(15, 15, " ok"), (19, 20, "")],
            "i am leaving on {+ok+} [-friday-]{+riday+} to be there",
        ),
        # Edits that touch are one change.
        ([(16, 16, "ok "), (19, 20, "")], "i am leaving on [-friday-]{+ok riday+} to be there"),
        ([(2, 5, "")], "i [-am-] leaving on friday to be there"),
        ([(34, 34, " ok")], "i am leaving on friday to be there {+ok+}"),
        ([(7, 8, "\u0430")], "i am [-leaving-]{+le<U+0430>ving+} on friday to be there"),
        ([(7, 8, "à")], "i am [-leaving-]{+leàving+} on friday to be there"),
        ([(9, 9, "\u200b")], "i am [-leaving-]{+leav<U+200B>ing+} on friday to be there"),
        ([(5, 5, "quick "), (5, 10, "swift")], "i am {+swift+} leaving on friday to be there"),
        ([(5, 5, "quick "), (5, 11, "")], SOURCE),
    ],
)
def test_marks(changes: list[tuple[int, int, str]], marked: str) -> None:
    text, edits = SOURCE, []
    for start, end, after in changes:
        edits.append(edit(text, start, end, after))
        text = apply_edits(text, edits[-1:])
    assert mark_edits(SOURCE, edits) == marked


def test_the_edited_one_of_two_equal_words_is_marked() -> None:
    source = "from new york to new orleans"
    assert mark_edits(source, [edit(source, 17, 20, "nwe")]) == (
        "from new york to [-new-]{+nwe+} orleans"
    )


def test_colour_comes_on_top_of_the_marks() -> None:
    marked = mark_edits(SOURCE, [edit(SOURCE, 5, 12, "leaivng")], colour=True)
    assert "\x1b[31m[-leaving-]\x1b[0m\x1b[32m{+leaivng+}\x1b[0m" in marked


def test_a_word_in_another_script_is_shown_as_it_is() -> None:
    assert mark_edits("привет", [edit("привет", 5, 6, "")]) == "[-привет-]{+приве+}"
    assert mark_edits("مرحبا بك", [edit("مرحبا بك", 0, 1, "")]) == "[-مرحبا-]{+رحبا+} بك"


def test_long_texts_are_shortened_around_the_edits() -> None:
    text = "hello " * 1000 + SOURCE + " x" * 2000
    marked = mark_edits(text, [edit(text, 6005, 6012, "leaivng")], margin=60)
    assert len(marked) < 300
    assert "i am [-leaving-]{+leaivng+} on friday" in marked
    assert marked.startswith("... (5,9")
    giant = "x" * 10_000
    assert len(mark_edits(giant, [edit(giant, 5_000, 5_001, "y")], margin=60)) < 700


def test_shorten_keeps_both_ends() -> None:
    assert shorten("ab\x1b[31m") == "ab<U+001B>[31m"
    short = shorten("a" * 5000 + "z")
    assert len(short) < 450
    assert short.startswith("aaa")
    assert short.endswith("z")


def test_the_legend_names_what_came_in() -> None:
    edits = [
        edit(SOURCE, 7, 8, "\u0430"),
        edit(SOURCE, 3, 3, "é\u200b"),
        edit(SOURCE, 0, 0, "🙂 "),
    ]
    assert legend(edits) == (
        "é <U+00E9> LATIN SMALL LETTER E WITH ACUTE",
        "\u0430 <U+0430> CYRILLIC SMALL LETTER A",
        "<U+200B> ZERO WIDTH SPACE",
        "🙂 <U+1F642> SLIGHTLY SMILING FACE",
    )
    assert legend([edit("é", 0, 1, "éé")]) == ()


def test_a_text_without_an_edit_keeps_both_ends():
    text = "Actually expensive please, it is our anniversary"
    assert mark_edits(text, (), margin=40) == text
    assert mark_edits(text, (), margin=8) == "Actually ... (32 characters) ... iversary"
