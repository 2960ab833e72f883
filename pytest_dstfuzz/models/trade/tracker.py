"""The TRADE tracker, which predicts belief states with a measure of uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import torch

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import read_unchanged
from pytest_dstfuzz.models.neural import move, pad, threads
from pytest_dstfuzz.models.trade.checkpoint import (
    TradeReading,
    build_network,
    fill_network,
    read_config,
    read_vocabulary,
    read_weights,
)
from pytest_dstfuzz.models.trade.files import MODEL_FILE, fingerprint, folder_of
from pytest_dstfuzz.models.trade.network import (
    GATE_DONTCARE,
    LEAST_ROWS,
    DecodedValues,
    TradeNetwork,
    decode,
)
from pytest_dstfuzz.models.trade.vocabulary import (
    END,
    PAD,
    SPECIAL_WORDS,
    Vocabulary,
)
from pytest_dstfuzz.trackers.tracker import Prediction

#: Minimum padded length of histories, for the same reason as ``LEAST_ROWS``.
_LEAST_WORDS = 16

#: Smallest batch when batches are split among threads.
_LEAST_SHARE = 16


def load_trade(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> TradeTracker:
    """Load a TRADE network, and return its tracker.

    ``device`` is a torch device. ``checkpoint`` is a folder with ``model.safetensors``,
    ``config.json`` and ``vocabulary.json``, or the path of one of these files. ``None`` is the
    shipped model. Nothing is unpickled.
    """
    folder = folder_of(checkpoint)
    (network, vocabulary, reading), found = read_unchanged(
        partial(_read_model, folder), partial(fingerprint, folder, device), f"TRADE in {folder}"
    )
    network = move(network, device, "TRADE")
    return TradeTracker(
        network, vocabulary, reading, device=device, batch_size=batch_size, fingerprint=found
    )


def _read_model(folder: Path) -> tuple[TradeNetwork, Vocabulary, TradeReading]:
    config = read_config(folder)
    vocabulary = read_vocabulary(folder, config)
    network = build_network(vocabulary, config["embedding"], config["hidden"])
    fill_network(network, read_weights(folder / MODEL_FILE), folder / MODEL_FILE)
    return network, vocabulary, TradeReading(config["history_limit"], config["normalisation"])


class TradeTracker:
    """Predicts belief states with a trained network. `load_trade` makes it."""

    def __init__(
        self,
        network: TradeNetwork,
        vocabulary: Vocabulary,
        reading: TradeReading,
        *,
        device: str = "cpu",
        batch_size: int = 64,
        fingerprint: str | None = None,
    ) -> None:
        """Store a network that is on its device. Put it into evaluation mode."""
        if batch_size < 1:
            raise UserError(f"the batch size must be at least 1, not {batch_size}")
        self.network = network.eval()
        self.vocabulary = vocabulary
        self.reading = reading
        self.device = device
        self.batch_size = batch_size
        self.fingerprint = fingerprint

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return one prediction for each context. Equal histories are computed only once."""
        limit = self.reading.history_limit
        histories = [self.vocabulary.history(context, limit) for context in contexts]
        distinct = sorted(set(histories), key=lambda words: (len(words), words))
        # The products of one step are too small for several threads, which would wait for each
        # other thousands of times per batch. Threads compute separate batches instead.
        on_cpu = torch.device(self.device).type == "cpu"
        with threads(1) if on_cpu else nullcontext(1) as workers:
            share = max(_LEAST_SHARE, -(-len(distinct) // workers))
            size = min(self.batch_size, share)
            # Longest first, so that the threads end at about the same time.
            starts = range(0, len(distinct), size)[::-1]
            chunks = [distinct[start : start + size] for start in starts]
            found = self._predict_all(chunks, workers)
        return [found[words] for words in histories]

    def _predict_all(
        self, chunks: Sequence[Sequence[tuple[str, ...]]], workers: int
    ) -> dict[tuple[str, ...], Prediction]:
        found: dict[tuple[str, ...], Prediction] = {}
        # See LEAST_ROWS. The results of the repeated rows are not used.
        filled = [[*chunk, *[chunk[0]] * (LEAST_ROWS - len(chunk))] for chunk in chunks]
        with ThreadPoolExecutor(workers) as pool:
            several = workers > 1 and len(filled) > 1
            answers = (pool.map if several else map)(self._predict, filled)
            for chunk, answer in zip(filled, answers, strict=True):
                found.update(zip(chunk, answer, strict=True))
        return found

    def _predict(self, histories: Sequence[tuple[str, ...]]) -> list[Prediction]:
        vocabulary = self.vocabulary
        copied = [vocabulary.copy_numbers(words) for words in histories]
        with torch.inference_mode():
            decoded = decode(
                self.network,
                self._tensor([vocabulary.encode(words) for words in histories], PAD),
                self._tensor([numbers for numbers, _ in copied], -2),
                torch.tensor([len(words) for words in histories], device=self.device),
            )
        states = self._states(decoded, [local for _, local in copied])
        impurities = decoded.impurities.cpu().numpy().round(9)
        return [
            Prediction(
                normalise_state(state, self.reading.normalisation),
                dict(zip(vocabulary.slots, row.tolist(), strict=True)),
            )
            for state, row in zip(states, impurities, strict=True)
        ]

    def _tensor(self, rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
        padded = pad([np.array(row) for row in rows], fill, least=_LEAST_WORDS)
        return torch.from_numpy(padded).to(self.device)

    def _states(
        self, decoded: DecodedValues, local: Sequence[Sequence[str]]
    ) -> list[dict[str, str]]:
        """Return the states in the network's spelling. An empty value counts as no value."""
        slots = self.vocabulary.slots
        states: list[dict[str, str]] = [{} for _ in local]
        for row, slot in (decoded.gates == GATE_DONTCARE).nonzero().tolist():
            states[row][slots[slot]] = DONTCARE
        for (row, slot), numbers in zip(
            decoded.pairs.tolist(), decoded.words.tolist(), strict=True
        ):
            states[row][slots[slot]] = self.value(numbers, local[row])
        return states

    def value(self, numbers: Sequence[int], local: Sequence[str]) -> str:
        """Return the text of a value, given the copy indices of its words."""
        words, known = self.vocabulary.words, self.vocabulary.outputs
        ended = numbers[: numbers.index(END)] if END in numbers else numbers
        return self.vocabulary.value_text(
            [
                words[number] if number < known else local[number - known]
                for number in ended
                if number >= len(SPECIAL_WORDS)
            ]
        )
