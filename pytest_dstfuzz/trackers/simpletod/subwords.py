"""A subword vocabulary learnt from a training split, as a tokeniser of transformers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from pytest_dstfuzz.trackers.simpletod.texts import END_OF_BELIEF, MARKS, START


def learn_subwords(lines: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Learn at most ``size`` byte-level subwords from ``lines`` (words with blanks between).

    Every word is written with the blank before it, at the start of a text too, so that a
    word is the same subwords wherever it stands: a value is copied piece by piece.
    """
    model = Tokenizer(BPE())
    model.pre_tokenizer = ByteLevel(add_prefix_space=True)
    model.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=_marks(),
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(lines, trainer)
    tokeniser = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # theirs has no types
        tokenizer_object=model, eos_token=END_OF_BELIEF, pad_token=START
    )
    add_marks(tokeniser)
    return tokeniser


def add_marks(tokeniser: PreTrainedTokenizerBase) -> None:
    """Make each of SimpleTOD's marks one token; those that are there stay what they are."""
    tokeniser.add_tokens(_marks(), special_tokens=True)


def _marks() -> list[AddedToken]:
    # The blank before a mark belongs to it: otherwise it would be a token of its own.
    return [AddedToken(mark, lstrip=True, normalized=False, special=True) for mark in MARKS]
