"""Byte-pair encoding for TRADE: merges, pieces, and a training with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.models.trade.subwords import Subwords, join_pieces, learn_merges
from pytest_dstfuzz.models.trade.vocabulary import SYSTEM_MARK, USER_MARK, training_vocabulary

COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def test_the_most_frequent_pairs_are_merged_first() -> None:
    merges = learn_merges(COUNTS, 4)
    # "st" and "es" occur nine times. Equally frequent pairs go by the alphabet, from its end.
    assert merges == (("##s", "##t"), ("##e", "##st"), ("l", "##o"), ("lo", "##w"))
    assert merges[:2] == learn_merges(COUNTS, 2)
    assert learn_merges(dict(reversed(COUNTS.items())), 4) == merges
    assert learn_merges({"one": 1}, 9) == ()


def test_words_are_split_by_the_merges() -> None:
    subwords = Subwords(learn_merges(COUNTS, 4))
    assert subwords.split("lowest") == ("low", "##est")
    assert subwords.split("lowset") == ("low", "##s", "##e", "##t")
    assert subwords.split("ŧ") == ("ŧ",)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="#"), min_size=1),
        max_size=5,
    )
)
def test_joined_pieces_are_the_words(words: list[str]) -> None:
    subwords = Subwords(learn_merges(COUNTS, 4))
    pieces = [piece for word in words for piece in subwords.split(word)]
    assert join_pieces(pieces) == " ".join(words)


def test_a_misspelt_word_has_known_pieces() -> None:
    pytest.importorskip("torch")
    from trade_data import dialogues  # noqa: PLC0415 - needs torch

    whole, pieces = training_vocabulary(dialogues()), training_vocabulary(dialogues(), 5)
    assert whole.encode(["northh", "soouth"]) == [1, 1]
    known = [number != 1 for number in pieces.encode(pieces.split(["northh", "soouth"]))]
    assert sum(known) > len(known) / 2
    assert pieces.split([SYSTEM_MARK, USER_MARK]) == (SYSTEM_MARK, USER_MARK)
    assert whole.fingerprint() != pieces.fingerprint()


def test_a_tracker_learns_from_pieces_and_is_loaded_again(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from trade_data import dialogues, silent, small_config  # noqa: PLC0415 - needs torch

    from pytest_dstfuzz.models.trade.tracker import load_trade  # noqa: PLC0415 - needs torch
    from pytest_dstfuzz.models.trade.training import train_trade  # noqa: PLC0415 - needs torch

    config = small_config(
        data, tmp_path, epochs=40, patience=40, dropout=0.0, word_mask=0.0, subwords=50
    )
    assert train_trade(config, silent).joint_goal_accuracy == 1.0
    tracker = load_trade(tmp_path)
    # Values such as "bridge" are generated piece by piece.
    assert any(word.startswith("##") for word in tracker.vocabulary.words)
    for dialogue in dialogues():
        contexts = [dialogue.context(turn.index) for turn in dialogue.turns]
        states = [prediction.state for prediction in tracker.predict(contexts)]
        assert states == [turn.state for turn in dialogue.turns]
