"""Files of a model: safetensors and JSON, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.trade.network import Shape, TradeNetwork
from pytest_dstfuzz.trackers.trade.vocabulary import Vocabulary

#: Raised when the files of a model change their meaning.
FORMAT_VERSION = 1
MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = "model.safetensors", "config.json", "vocabulary.json"


@dataclass(frozen=True)
class Reading:
    """What a model was trained with and has to be used with."""

    #: Words of history that are read; older ones are cut.
    history_limit: int
    #: Name of the normalisation of the labels, and so of the predictions.
    normalisation: str


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` never holds a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    half: bool = False,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write tensors as safetensors, floating ones in 16 bits when ``half``.

    Args:
        path: the file.
        tensors: by name.
        half: whether to write floating ones in 16 bits.
        about: the file's metadata.
    """
    ready = {
        name: (tensor.half() if half and tensor.is_floating_point() else tensor)
        .detach()
        .cpu()
        .contiguous()
        for name, tensor in tensors.items()
    }
    write_whole(path, save(ready, dict(about) if about else None))


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    write_whole(path, (text + "\n").encode())


def save_model(
    folder: Path,
    weights: Mapping[str, Tensor],
    shape: Shape,
    vocabulary: Vocabulary,
    reading: Reading,
    about: Mapping[str, Any],
) -> None:
    """Write a model: weights in 16 bits, vocabulary, sizes and what is to say about it.

    Args:
        folder: made when missing.
        weights: state dictionary of the network.
        shape: sizes of the network.
        vocabulary: its words and slots.
        reading: how histories are read and values written.
        about: data, settings and figures; kept under the configuration's ``about``.
    """
    write_tensors(folder / MODEL_FILE, weights, half=True)
    write_json(
        folder / VOCABULARY_FILE,
        {
            "words": list(vocabulary.words),
            "outputs": vocabulary.outputs,
            "spellings": dict(vocabulary.spellings),
        },
    )
    write_json(
        folder / CONFIG_FILE,
        {
            "format": "trade",
            "version": FORMAT_VERSION,
            "embedding": shape.embedding,
            "hidden": shape.hidden,
            "history_limit": reading.history_limit,
            "normalisation": reading.normalisation,
            "slots": list(vocabulary.slots),
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


def move(network: TradeNetwork, device: str) -> TradeNetwork:
    """Return the network on ``device``.

    Raises:
        UserError: torch knows no such device, or cannot use it.
    """
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"TRADE cannot run on the device {device!r}: {reason}") from error
