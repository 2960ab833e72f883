"""Typing errors of one choice are judged as those of several are."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_dstfuzz.perturb.operators import TypoTable
from pytest_dstfuzz.transformations import Typo

TABLE = TypoTable({"hotel", "the", "north", "noth", "i'm"}.__contains__, ["nine", "not"])
WORDS = st.one_of(
    st.sampled_from(["hotel", "ten", "I", "I'm", "don’t", "a", "Nine", "nothing", "x" * 41]),
    st.text("abehinort'’- .,9", min_size=1, max_size=8),
)


@example("I'm", (0, 1), "j")
@example("hotel", (5, 5), "!")
@example("North", (2, 3), "")
@example("I", (0, 1), "i")
@given(WORDS, st.tuples(st.integers(0, 8), st.integers(0, 2)), st.text("aeinot'.9 ", max_size=2))
def test_a_word_takes_what_is_kept_of_one_choice(
    word: str, place: tuple[int, int], after: str
) -> None:
    start = min(place[0], len(word))
    typo = Typo(start, min(start + place[1], len(word)), (after,))
    for table in (TABLE, TypoTable()):
        assert table.takes(word, typo) == bool(table.kept(word, [typo]))
