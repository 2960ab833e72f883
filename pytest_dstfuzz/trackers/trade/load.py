"""Reading a model from disk, with one clear message for everything that may be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.devices import move
from pytest_dstfuzz.trackers.fingerprint import files_fingerprint
from pytest_dstfuzz.trackers.trade.network import TradeNetwork
from pytest_dstfuzz.trackers.trade.storage import (
    CONFIG_FILE,
    FORMAT_VERSION,
    MODEL_FILE,
    VOCABULARY_FILE,
    TradeReading,
    build_network,
)
from pytest_dstfuzz.trackers.trade.tracker import TradeTracker
from pytest_dstfuzz.trackers.trade.vocabulary import SPECIAL_WORDS, Vocabulary

#: The model that ships with the package.
SHIPPED = Path(__file__).parents[2] / "resources" / "trade"


def load_trade(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> TradeTracker:
    """Return the tracker saved in folder ``checkpoint``.

    Args:
        checkpoint: folder with ``model.safetensors``, ``config.json`` and
            ``vocabulary.json`` (or the path of one of them); ``None`` is the shipped model.
        device: where to compute, as torch names it.
        batch_size: contexts that are computed together.

    Raises:
        UserError: something is missing, damaged, of another version, or does not fit
            together; or there is no such device. Nothing is ever unpickled.
    """
    folder = SHIPPED if checkpoint is None else Path(checkpoint)
    if folder.name in {MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE}:
        folder = folder.parent
    config = _config(folder)
    vocabulary = _vocabulary(folder, config)
    network = build_network(vocabulary, config["embedding"], config["hidden"])
    _fill(network, _weights(folder / MODEL_FILE), folder / MODEL_FILE)
    reading = TradeReading(config["history_limit"], config["normalisation"])
    network = move(network, device, "TRADE")
    return TradeTracker(
        network,
        vocabulary,
        reading,
        device=device,
        batch_size=batch_size,
        fingerprint=files_fingerprint(
            [folder / name for name in (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE)],
            Path(__file__).parent,
            torch.__version__,
            torch.device(device).type,
        ),
    )


def _bad(path: Path, reason: str) -> UserError:
    return UserError(f"{path} is no TRADE checkpoint: {reason}")


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(
            f"no TRADE checkpoint at {path.parent}: {path.name} is missing; expected a folder "
            f"with {MODEL_FILE}, {CONFIG_FILE} and {VOCABULARY_FILE}"
        )
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise _bad(path, f"not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise _bad(path, "not a JSON object")
    return value


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    config = _json(path)
    if config.get("format") != "trade":
        raise _bad(path, 'no "format": "trade"')
    if config.get("version") != FORMAT_VERSION:
        raise _bad(path, f"version {config.get('version')!r}, this release reads {FORMAT_VERSION}")
    for name in ("embedding", "hidden", "history_limit"):
        if type(config.get(name)) is not int or not 0 < config[name] <= 2**16:
            raise _bad(path, f"{name} must be a whole number greater than 0")
    if config.get("normalisation") not in NORMALISATIONS:
        raise _bad(path, f"normalisation must be one of {', '.join(NORMALISATIONS)}")
    if not _strings(config.get("slots")):
        raise _bad(path, "slots must be a list of strings")
    return config


def _vocabulary(folder: Path, config: dict[str, Any]) -> Vocabulary:
    path = folder / VOCABULARY_FILE
    value = _json(path)
    words, outputs, spellings = value.get("words"), value.get("outputs"), value.get("spellings")
    if not _strings(words) or tuple(words[: len(SPECIAL_WORDS)]) != SPECIAL_WORDS:
        raise _bad(path, f"words must be a list of strings starting with {SPECIAL_WORDS}")
    if not isinstance(outputs, int) or not len(SPECIAL_WORDS) <= outputs <= len(words):
        raise _bad(path, f"outputs must be a whole number up to {len(words)}")
    if not isinstance(spellings, dict) or not all(isinstance(v, str) for v in spellings.values()):
        raise _bad(path, "spellings must map strings to strings")
    return Vocabulary(tuple(words), outputs, tuple(config["slots"]), spellings)


def _strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"no TRADE checkpoint at {path.parent}: {path.name} is missing") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    # Zip archives and pickles are how torch.save writes; they may run code when read.
    if content[:2] in {b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05"}:
        raise _bad(path, "a pickle, which is never loaded; save the weights as safetensors")
    try:
        return load_tensors(content)
    except SafetensorError as error:
        raise _bad(path, f"truncated or no safetensors file ({error})") from error


def _fill(network: TradeNetwork, weights: dict[str, Tensor], path: Path) -> None:
    """Copy the weights into the network, as 32-bit numbers."""
    expected = network.state_dict()
    for name, tensor in expected.items():
        if name not in weights:
            raise _bad(path, f"{name} is missing")
        if weights[name].shape != tensor.shape:
            raise _bad(
                path,
                f"{name} has shape {list(weights[name].shape)}, the configuration asks for "
                f"{list(tensor.shape)}",
            )
        if not weights[name].isfinite().all():
            raise _bad(path, f"{name} holds numbers that are not finite")
    if extra := sorted(set(weights) - set(expected)):
        raise _bad(path, f"unknown weights {', '.join(extra)}")
    network.load_state_dict({name: weights[name].float() for name in expected})
