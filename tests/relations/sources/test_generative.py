"""Generated candidates: from tiny models made here, which write nonsense but load for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import MissingExtraError, UserError
from pytest_dstfuzz.relations.generative import TextWriter, generative_source
from pytest_dstfuzz.relations.sources import candidate_rows

WORDS = ("<pad>", "</s>", "<unk>", "i", "want", "a", "hotel", "in", "the", "north", "thanks", ":")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a model with random weights."""
    folder = tmp_path_factory.mktemp("t5")
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)  # With some weights it writes nothing but the end.
    config = T5Config(
        vocab_size=len(WORDS),
        d_model=8,
        d_kv=4,
        d_ff=8,
        num_layers=1,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("form", ["t5:{0}", "marian:{0},{0}"])
def test_a_model_writes_candidates_the_same_each_time(model: str, form: str) -> None:
    data = load_dialogues("sample")
    turns = [(data.dialogues[0], 0), (data.dialogues[0], 1)]
    source = generative_source(form.format(model))
    rows = list(candidate_rows(source, data, turns, each=2, seed=0))
    assert rows
    assert {row.source for row in rows} == {form.format(model)}
    # What such a model writes keeps no value.
    assert all(row.lock for row in rows)
    again = generative_source(form.format(model))
    assert rows == list(candidate_rows(again, data, turns, each=2, seed=0))


def test_nothing_is_written_from_nothing(model: str) -> None:
    writer = TextWriter(model)
    assert writer.write(["", "  "], 2) == [[], []]
    first, second = writer.write(["", "the"], 2)
    assert first == []
    assert len(second) == 2


@pytest.mark.parametrize("text", ["t5:", "t5:a,b", "marian:a", "gpt:a", "marian:a,"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="t5:MODEL or marian:THERE,BACK"):
        generative_source(text)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot load"):
        generative_source(f"t5:{tmp_path}")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"a generative source needs .*\[simpletod\]"):
        generative_source("t5:anything")
