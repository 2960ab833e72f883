"""The embedding that ships: what it says of texts, its file and its speed of loading nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.comparisons.embedding import (
    SameMeaning,
    distance,
    eps,
    load_shipped_vectors,
    tokens,
)
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ASKED = Context((Exchange("", "what about it"),))


def test_other_words_are_nearer_than_another_answer() -> None:
    reply = "Your parcel left our warehouse this morning."
    assert distance(reply, "We shipped your package this morning.") <= eps()
    assert distance(reply, "Our shop in the old town has a coffee bar.") > eps()
    assert distance(reply, reply) == 0


def test_what_differs_is_named_and_numbers_are_left_to_their_own_comparison() -> None:
    found = SameMeaning().compare("reply", "You fly to Oslo.", "You fly to Bergen.", ASKED)
    assert found.why == f"{found.distance:.2f} apart, {eps():g} allowed (oslo / bergen)"
    assert distance("It leaves at half past eight.", "It leaves at 9:15.") == 0


def test_a_threshold_takes_the_place_of_the_calibrated_one() -> None:
    strict = comparison_by_name("embedding", ReplySettings(threshold=0.01))
    assert strict.name == "embedding:shipped<=0.01"
    assert strict.identity != comparison_by_name("embedding", ReplySettings()).identity
    assert not strict.compare("reply", "It is open.", "It is open now.", ASKED).same


def test_two_replies_without_an_answer_are_one_and_none_is_an_answer() -> None:
    comparison = comparison_by_name("numbers,embedding", ReplySettings())
    against = comparison.compare("reply", "It leaves at 9:15.", "I don't know.", ASKED)
    assert against.why == "an answer / no answer"
    assert comparison.compare("reply", "I don't know.", "Could you rephrase that?", ASKED).same


@given(texts=st.tuples(st.text(max_size=80), st.text(max_size=80)))
def test_a_distance_is_from_0_to_2_and_the_same_in_both_orders(texts: tuple[str, str]) -> None:
    there = distance(*texts)
    assert 0 <= there <= 2
    assert there == pytest.approx(distance(*reversed(texts)), abs=2e-6)
    assert distance(texts[0], texts[0]) == 0


def test_long_and_odd_texts_have_vectors() -> None:
    for text in ("", "\n", "\U0001f600" * 50, "x" * 10_000, "word " * 2_000, "\ud800"):
        assert distance(text, "It is open.") > eps()
    assert tokens("can't won't isn’t it's e-mail") == [
        *("can", "not", "will", "not", "is", "not", "it", "e", "mail")
    ]


def test_the_file_is_small_and_needs_numpy_alone() -> None:
    file = resources.files("pytest_dstfuzz") / "resources" / "similarity" / "vectors.npz"
    assert len(file.read_bytes()) <= 4_500_000
    assert 0.2 < load_shipped_vectors().eps < 0.7
    code = (
        "import sys\n"
        "from pytest_dstfuzz.comparisons.embedding import distance\n"
        "assert distance('it is open', 'the train is late') > 0\n"
        "heavy = {'torch', 'scipy', 'transformers', 'sentence_transformers', 'httpx'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
