"""The files of a TRADE model, and its network by their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pytest_dstfuzz.files import write_json
from pytest_dstfuzz.trackers.storage import write_tensors
from pytest_dstfuzz.trackers.trade.network import Shape, TradeNetwork
from pytest_dstfuzz.trackers.trade.vocabulary import Vocabulary

#: Raised when the files of a model change their meaning.
FORMAT_VERSION = 1
MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = "model.safetensors", "config.json", "vocabulary.json"


@dataclass(frozen=True)
class TradeReading:
    """What a model was trained with and has to be used with."""

    #: Words of history that are read; older ones are cut.
    history_limit: int
    #: Name of the normalisation of the labels, and so of the predictions.
    normalisation: str


def save_model(
    folder: Path,
    weights: Mapping[str, Tensor],
    shape: Shape,
    vocabulary: Vocabulary,
    reading: TradeReading,
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
