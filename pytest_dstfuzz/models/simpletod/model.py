"""The language model and the tokeniser of SimpleTOD: creating, loading and saving them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import read_json, write_json
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.models.neural import write_tensors
from pytest_dstfuzz.models.simpletod.config import SimpleTodTrainingConfig
from pytest_dstfuzz.models.simpletod.texts import END_OF_BELIEF, MARKS, START

# A mark includes the space before it, which would be a separate token otherwise.
_MARKS = [AddedToken(mark, lstrip=True, normalized=False, special=True) for mark in MARKS]


def learn_subwords(lines: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Learn at most ``size`` byte-level subwords from ``lines`` of words separated by spaces.

    Every word includes the space before it, even at the start of a text. A word then has the same
    subwords everywhere, so that the model can copy values.
    """
    model = Tokenizer(BPE())
    model.pre_tokenizer = ByteLevel(add_prefix_space=True)
    model.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=_MARKS,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(lines, trainer)
    tokeniser = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # untyped
        tokenizer_object=model, eos_token=END_OF_BELIEF, pad_token=START
    )
    add_marks(tokeniser)
    return tokeniser


def add_marks(tokeniser: PreTrainedTokenizerBase) -> None:
    """Add a token for each mark of SimpleTOD. Existing tokens keep their ids."""
    tokeniser.add_tokens(_MARKS, special_tokens=True)


#: Settings that transformers does not store: the formats of texts and values.
READING_FILE = "simpletod.json"
#: File name of the weights in transformers.
MODEL_FILE = "model.safetensors"
FORMAT_VERSION = 1
#: Exceptions of transformers if a model is missing or damaged.
_UNREADABLE = (OSError, ValueError, KeyError, ImportError, SafetensorError)


@dataclass(frozen=True)
class SimpleTodReading:
    """The text formats of a model's training. The tracker must use the same formats."""

    common: bool  #: Whether utterances are in the form of `texts.utterance_words`.
    normalisation: str  #: Normalisation of labels and predictions.
    slots: tuple[str, ...]  #: Slots of the training data.
    #: Words of a value joined by spaces -> the value in the labels.
    spellings: Mapping[str, str]


def new_model(
    config: SimpleTodTrainingConfig, lines: Iterable[str], seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a model to train, with its tokeniser.

    If ``config.base`` names a model, it is loaded. Otherwise the weights are random, and the
    subwords are learned from ``lines``.
    """
    if config.base is not None:
        model, tokeniser = read_pretrained(config.base)
        add_marks(tokeniser)
        with seed_torch(seed):
            model.resize_token_embeddings(len(tokeniser))
        return model, tokeniser
    tokeniser = learn_subwords(lines, config.vocabulary)
    sizes = GPT2Config(
        vocab_size=len(tokeniser),
        n_positions=config.positions,
        n_embd=config.hidden,
        n_layer=config.layers,
        n_head=config.heads,
        # The same function as in GPT-2, in one operation instead of eight.
        activation_function="gelu_pytorch_tanh",
        resid_pdrop=config.dropout,
        embd_pdrop=config.dropout,
        attn_pdrop=0.0,
        bos_token_id=tokeniser.pad_token_id,
        eos_token_id=tokeniser.eos_token_id,
        pad_token_id=tokeniser.pad_token_id,
    )
    with seed_torch(seed):
        return GPT2LMHeadModel(sizes), tokeniser


def read_pretrained(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a causal language model in 32 bits and its tokeniser, from a folder or the hub."""
    try:
        with _without_progress_bar():
            tokeniser = AutoTokenizer.from_pretrained(
                name, padding_side="left", trust_remote_code=False
            )
            model = AutoModelForCausalLM.from_pretrained(
                name, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
            )
    except Exception as error:
        # A damaged tokeniser raises a plain Exception.
        if not isinstance(error, _UNREADABLE) and type(error) is not Exception:
            raise
        first = " ".join(str(error).split())[:300]
        raise UserError(
            f"{name!r} is not a causal language model that transformers can load, neither a "
            f"folder nor a name on the hub (weights must be safetensors): {first}"
        ) from error
    return model, tokeniser


def positions_of(model: PreTrainedModel) -> int:
    """Return the maximum number of tokens of a model, or 1,024 if the model states no maximum."""
    return getattr(model.config, "max_position_embeddings", None) or 1024


def save(
    folder: Path,
    model: PreTrainedModel,
    tokeniser: PreTrainedTokenizerBase,
    reading: SimpleTodReading,
    about: Mapping[str, Any],
) -> None:
    """Write a model with 16-bit weights in the format of transformers, and its text formats.

    The model itself does not change. ``about`` describes data, settings and results.
    """
    # `model.save_pretrained` shows a progress bar, and may leave a partial file.
    write_tensors(folder / MODEL_FILE, _distinct(model), half=True, about={"format": "pt"})
    model.config.save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    write_json(
        folder / READING_FILE,
        {
            "format": "simpletod",
            "version": FORMAT_VERSION,
            **to_json(reading),
            "about": dict(about),
        },
    )


def _distinct(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the weights by name. Shared weights are listed once."""
    seen: set[int] = set()
    found: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            found[name] = tensor
    return found


def read_reading(folder: Path) -> SimpleTodReading | None:
    """Return the formats that `save` wrote, or ``None`` if another program saved the model."""
    path = folder / READING_FILE
    if not path.is_file():
        return None
    try:
        value = read_json(path, "description of a SimpleTOD model")
        version = value.get("version") if isinstance(value, dict) else None
        if version != FORMAT_VERSION:
            raise UserError(
                f"{path} has the version {version!r}, but this release reads {FORMAT_VERSION}: "
                "train the model again"
            )
        return from_json(SimpleTodReading, value)
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error})") from error


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    """Switch off the progress bars of transformers, which appear even without a terminal."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # untyped


@contextmanager
def seed_torch(seed: int) -> Iterator[None]:
    """Seed the random numbers of torch. Restore the global state afterwards.

    This is necessary because models of transformers draw from the global generator.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
