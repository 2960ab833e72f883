"""Reads and writes the files of a TRADE model, with a clear message for each error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import is_pickled, read_json, write_json
from pytest_dstfuzz.models.neural import write_tensors
from pytest_dstfuzz.models.trade.files import CONFIG_FILE, MODEL_FILE, VOCABULARY_FILE
from pytest_dstfuzz.models.trade.network import Shape, TradeNetwork
from pytest_dstfuzz.models.trade.vocabulary import SPECIAL_WORDS, Vocabulary

#: Increase when the meaning of the files changes.
FORMAT_VERSION = 1


@dataclass(frozen=True)
class TradeReading:
    """Settings of the training that the tracker must also use."""

    history_limit: int  #: Maximum number of history words. Older words are cut.
    normalisation: str  #: Name of the normalisation of labels and predictions.


def save_model(
    folder: Path,
    weights: Mapping[str, Tensor],
    shape: Shape,
    vocabulary: Vocabulary,
    reading: TradeReading,
    about: Mapping[str, Any],
) -> None:
    """Write a model with 16-bit weights. ``about`` describes data, settings and results."""
    write_tensors(folder / MODEL_FILE, weights, half=True)
    words = {"words": vocabulary.words, "outputs": vocabulary.outputs}
    words |= {"merges": vocabulary.merges} if vocabulary.merges else {}
    words |= {"counts": dict(vocabulary.counts)} if vocabulary.counts else {}
    write_json(folder / VOCABULARY_FILE, {**words, "spellings": dict(vocabulary.spellings)})
    write_json(
        folder / CONFIG_FILE,
        {
            "format": "trade",
            "version": FORMAT_VERSION,
            "embedding": shape.embedding,
            "hidden": shape.hidden,
            **asdict(reading),
            "slots": vocabulary.slots,
            "about": dict(about),
        },
    )


def build_network(
    vocabulary: Vocabulary,
    embedding: int,
    hidden: int,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> TradeNetwork:
    """Build a network for ``vocabulary`` with weights drawn from ``generator``."""
    domains, names = vocabulary.domains, vocabulary.names
    parts = [slot.partition("-") for slot in vocabulary.slots]
    shape = Shape(
        words=len(vocabulary.words),
        outputs=vocabulary.outputs,
        domains=len(domains),
        names=len(names),
        embedding=embedding,
        hidden=hidden,
    )
    slots = [(domains.index(domain), names.index(name)) for domain, _, name in parts]
    return TradeNetwork(shape, slots, dropout, generator or torch.Generator().manual_seed(0))


def _bad(path: Path, reason: str) -> UserError:
    return UserError(f"{path} is not a TRADE checkpoint: {reason}")


def _object(path: Path) -> dict[str, Any]:
    value = read_json(path, "TRADE checkpoint")
    if not isinstance(value, dict):
        raise _bad(path, "it is not a JSON object")
    return value


def read_config(folder: Path) -> dict[str, Any]:
    """Return the validated configuration of the model in a folder."""
    path = folder / CONFIG_FILE
    config = _object(path)
    if config.get("format") != "trade":
        raise _bad(path, 'it lacks "format": "trade"')
    if config.get("version") != FORMAT_VERSION:
        raise _bad(
            path,
            f"it has the version {config.get('version')!r}, but this release reads "
            f"{FORMAT_VERSION}",
        )
    for name in ("embedding", "hidden", "history_limit"):
        if type(config.get(name)) is not int or not 0 < config[name] <= 2**16:
            raise _bad(path, f"{name} must be a whole number greater than 0")
    if config.get("normalisation") not in NORMALISATIONS:
        raise _bad(path, f"normalisation must be one of {', '.join(NORMALISATIONS)}")
    if not _strings(config.get("slots")):
        raise _bad(path, "slots must be a list of strings")
    return config


def read_vocabulary(folder: Path, config: dict[str, Any]) -> Vocabulary:
    """Return the vocabulary of the model in a folder."""
    path = folder / VOCABULARY_FILE
    value = _object(path)
    words, outputs, spellings = value.get("words"), value.get("outputs"), value.get("spellings")
    if not _strings(words) or tuple(words[: len(SPECIAL_WORDS)]) != SPECIAL_WORDS:
        raise _bad(
            path, f"words must be a list of strings that begins with {', '.join(SPECIAL_WORDS)}"
        )
    if not isinstance(outputs, int) or not len(SPECIAL_WORDS) <= outputs <= len(words):
        raise _bad(path, f"outputs must be a whole number up to {len(words)}")
    if not isinstance(spellings, dict) or not all(isinstance(v, str) for v in spellings.values()):
        raise _bad(path, "spellings must map strings to strings")
    merges = value.get("merges", [])
    if not isinstance(merges, list) or not all(_strings(one) and len(one) == 2 for one in merges):
        raise _bad(path, "merges must be a list of pairs of strings")
    pairs = tuple((first, second) for first, second in merges)
    counts = value.get("counts", {})
    if not isinstance(counts, dict) or not all(type(one) is int for one in counts.values()):
        raise _bad(path, "counts must map words to whole numbers")
    return Vocabulary(tuple(words), outputs, tuple(config["slots"]), spellings, pairs, counts)


def _strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file. A pickle is never loaded."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if is_pickled(content):
        raise _bad(path, "it is a pickle, which is never loaded; save the weights as safetensors")
    try:
        return load_tensors(content)
    except SafetensorError as error:
        raise _bad(path, f"it is truncated or not a safetensors file ({error})") from error


def fill_network(network: TradeNetwork, weights: dict[str, Tensor], path: Path) -> None:
    """Copy the weights into the network as 32-bit numbers."""
    expected = network.state_dict()
    for name, tensor in expected.items():
        if name not in weights:
            raise _bad(path, f"{name} is missing")
        if weights[name].shape != tensor.shape:
            raise _bad(
                path,
                f"{name} has the shape {list(weights[name].shape)}, but the configuration "
                f"requires {list(tensor.shape)}",
            )
        if not weights[name].isfinite().all():
            raise _bad(path, f"{name} has values that are not finite")
    if extra := sorted(set(weights) - set(expected)):
        raise _bad(path, f"it has unknown weights {', '.join(extra)}")
    network.load_state_dict({name: weights[name].float() for name in expected})
