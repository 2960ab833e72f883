"""The training loop of TRADE: one epoch, one step, and the state between epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.devices import move
from pytest_dstfuzz.trackers.runs import EMA, ResumableTrainer, RunState, learning_rate
from pytest_dstfuzz.trackers.trade.config import TradeEpoch, TradeTrainingConfig
from pytest_dstfuzz.trackers.trade.loss import batch_loss
from pytest_dstfuzz.trackers.trade.network import TradeNetwork
from pytest_dstfuzz.trackers.trade.rows import LabelledTurn, TurnBatch, bucket, collate
from pytest_dstfuzz.trackers.trade.storage import build_network
from pytest_dstfuzz.trackers.trade.vocabulary import PAD, UNKNOWN, Vocabulary

Progress = Callable[[str], None]


def mask_words(words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Return ``words`` with a share of ``rate`` read as unknown; padding stays."""
    hidden = torch.rand(words.shape, generator=generator, device=words.device) < rate
    return words.masked_fill(hidden & (words != PAD), UNKNOWN)


class TradeTrainer(ResumableTrainer[TradeEpoch]):
    """One training run: network, optimiser, average, and where it stands."""

    def __init__(
        self, config: TradeTrainingConfig, vocabulary: Vocabulary, rows: Sequence[LabelledTurn]
    ) -> None:
        """Build a fresh run; the network's start depends on the seed alone."""
        self.config, self.vocabulary, self.rows = config, vocabulary, rows
        generator = torch.Generator().manual_seed(derive(config.seed, "weights") % 2**63)
        network = build_network(
            vocabulary, config.embedding, config.hidden, config.dropout, generator
        )
        self.network = move(network, config.device, "TRADE")
        self.network.fast = config.bfloat16
        self.parameters = list(self.network.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=config.learning_rate, fused=True)
        self.average = EMA(self.parameters, config.average_decay)
        named = list(self.network.named_parameters())
        super().__init__(
            config, TradeEpoch, RunState(config.output, named, self.average, self.optimiser)
        )
        self.steps_per_epoch = -(-len(rows) // config.batch_size)

    def set_vectors(self, vectors: np.ndarray) -> None:
        """Start from these word vectors ``[words, embedding]``."""
        with torch.no_grad():
            self.network.embedding.copy_(torch.from_numpy(vectors))
        self.average.restart(self.parameters)

    def epoch(self, progress: Progress) -> tuple[float, float]:
        """Train one epoch; returns mean gate and value loss a turn."""
        config, number = self.config, len(self.history)
        lengths = [len(row.words) for row in self.rows]
        batches = bucket(lengths, config.batch_size, stream(config.seed, "epoch", number))
        # Seeded anew each epoch, a resumed run repeats what an uninterrupted one does.
        seed = derive(config.seed, "noise", number) % 2**63
        generator = torch.Generator(config.device).manual_seed(seed)
        self.network.generator = generator
        self.network.train()
        total = config.epochs * self.steps_per_epoch
        sums = np.zeros(2)
        start = time.monotonic()
        for index, chosen in enumerate(batches):
            step = number * self.steps_per_epoch + index
            batch = collate([self.rows[row] for row in chosen]).to(config.device)
            sums += self.step(batch, self._rate(step, total), generator)
            self.average.update(self.parameters, step + 1)
            done = index + 1
            if done % config.report_every == 0 or done == len(batches):
                speed = done / (time.monotonic() - start)
                left = (len(batches) - done + (config.epochs - number - 1) * len(batches)) / speed
                gate, value = sums / done
                progress(
                    f"epoch {number + 1}/{config.epochs} step {done}/{len(batches)} "
                    f"loss {gate:.3f} + {value:.3f} {speed * config.batch_size:.0f} turns/s "
                    f"ETA {left / 60:.0f} min"
                )
        gate, value = sums / len(batches)
        return float(gate), float(value)

    def _rate(self, step: int, total: int) -> float:
        return learning_rate(step, total, self.config.learning_rate, self.config.warmup_steps)

    def step(self, batch: TurnBatch, rate: float, generator: torch.Generator) -> np.ndarray:
        """Make one step; returns gate and value loss."""
        words = mask_words(batch.words, self.config.word_mask, generator)
        loss = batch_loss(self.network, batch, words)
        self.optimiser.zero_grad(set_to_none=True)
        loss.total().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_clip)
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()
        return np.array([float(loss.gate.detach()), float(loss.value.detach())])

    def averaged_network(self) -> TradeNetwork:
        """Return a network in evaluation mode with the averaged weights."""
        network = build_network(self.vocabulary, self.config.embedding, self.config.hidden)
        names = [name for name, _ in self.network.named_parameters()]
        network.load_state_dict(dict(zip(names, self.average.values, strict=True)))
        return network.to(self.config.device).eval()

    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""
        return {
            **self.config.fixed(),
            "number of training turns": len(self.rows),
            "vocabulary": self.vocabulary.fingerprint(),
        }
