"""The training loop of TRADE: one epoch, one step, and the state between epochs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.trade.config import CHANGEABLE, EpochFigures, TradeTrainingConfig
from pytest_dstfuzz.trackers.trade.loss import batch_loss
from pytest_dstfuzz.trackers.trade.network import TradeNetwork
from pytest_dstfuzz.trackers.trade.rows import Batch, Row, bucket, collate
from pytest_dstfuzz.trackers.trade.storage import build_network, move, write_tensors
from pytest_dstfuzz.trackers.trade.vocabulary import PAD, UNKNOWN, Vocabulary

#: What a resumed run needs; what is said about the run is in its metadata.
STATE_FILE = "training.safetensors"
_RUN = "dstfuzz.run"
Progress = Callable[[str], None]


class Averaged:
    """Exponential moving average of weights; young averages forget faster."""

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        """Start from the present values."""
        self.values = [parameter.detach().clone() for parameter in parameters]
        self.decay = decay

    def update(self, parameters: Sequence[Tensor], step: int) -> None:
        """Move towards ``parameters`` after optimiser step number ``step`` (from 1)."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.values, [p.detach() for p in parameters], weight)


def learning_rate(step: int, total: int, config: TradeTrainingConfig) -> float:
    """Return the rate of step number ``step`` (from 0) of ``total``: linear rise, cosine fall."""
    warmup = min(config.warmup_steps, max(1, total // 10))
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def mask_words(words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Return ``words`` with a share of ``rate`` read as unknown; padding stays."""
    hidden = torch.rand(words.shape, generator=generator, device=words.device) < rate
    return words.masked_fill(hidden & (words != PAD), UNKNOWN)


class Trainer:
    """One training run: network, optimiser, average, and where it stands."""

    def __init__(
        self, config: TradeTrainingConfig, vocabulary: Vocabulary, rows: Sequence[Row]
    ) -> None:
        """Build a fresh run; the network's start depends on the seed alone."""
        self.config, self.vocabulary, self.rows = config, vocabulary, rows
        generator = torch.Generator().manual_seed(derive(config.seed, "weights") % 2**63)
        network = build_network(
            vocabulary, config.embedding, config.hidden, config.dropout, generator
        )
        self.network = move(network, config.device)
        self.network.fast = config.bfloat16
        self.parameters = list(self.network.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=config.learning_rate, fused=True)
        self.average = Averaged(self.parameters, config.average_decay)
        self.history: list[EpochFigures] = []
        #: What each part of the run trained under that another part might change.
        self.parts: list[dict[str, Any]] = [self._part()]
        self.steps_per_epoch = -(-len(rows) // config.batch_size)

    def set_vectors(self, vectors: np.ndarray) -> None:
        """Start from these word vectors ``[words, embedding]``."""
        with torch.no_grad():
            self.network.embedding.copy_(torch.from_numpy(vectors))
        self.average = Averaged(self.parameters, self.config.average_decay)

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
            sums += self.step(batch, learning_rate(step, total, config), generator)
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

    def step(self, batch: Batch, rate: float, generator: torch.Generator) -> np.ndarray:
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

    def save(self) -> None:
        """Write all that a resumed run needs, as one file: it is whole or not there."""
        tensors: dict[str, Tensor] = {}
        for (name, parameter), mean in zip(
            self.network.named_parameters(), self.average.values, strict=True
        ):
            state = self.optimiser.state[parameter]
            tensors[f"weight.{name}"], tensors[f"average.{name}"] = parameter, mean
            tensors[f"first.{name}"], tensors[f"second.{name}"] = (
                state["exp_avg"],
                state["exp_avg_sq"],
            )
            tensors["step"] = state["step"]
        run = {
            "identity": self.identity(),
            "parts": self.parts,
            "history": [asdict(figures) for figures in self.history],
        }
        path = self.config.output / STATE_FILE
        write_tensors(path, tensors, about={_RUN: json.dumps(run)})

    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""
        return {
            **self.config.fixed(),
            "number of training turns": len(self.rows),
            "vocabulary": self.vocabulary.fingerprint(),
        }

    def restore(self) -> None:
        """Go back to the end of the last epoch that was saved.

        Raises:
            UserError: there is no such file, it is damaged, or the run is another one.
        """
        run, tensors = self._read()
        try:
            earlier = dict(run["identity"])
            parts = [dict(part) for part in run["parts"]]
            history = [EpochFigures(**figures) for figures in run["history"]]
        except (KeyError, TypeError, ValueError) as error:
            raise self._cannot_resume(f"{STATE_FILE} is damaged ({error!r})") from error
        for name, value in self.identity().items():
            if name not in earlier:
                raise self._cannot_resume(f"{STATE_FILE} does not say what {name} was")
            if earlier[name] != value:
                raise self._cannot_resume(f"{name} was {earlier[name]!r}, is now {value!r}")
        self._fill(tensors)
        self.history = history
        now = self._part()
        if not parts or any(parts[-1].get(name) != now[name] for name in CHANGEABLE):
            parts.append(now)
        self.parts = parts

    def _part(self) -> dict[str, Any]:
        return {"from_epoch": len(self.history), **self.config.changeable()}

    def _read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what the file of an earlier part says about its run, and its tensors."""
        try:
            with safe_open(self.config.output / STATE_FILE, "pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            run = json.loads(about.get(_RUN, "null"))
        except (OSError, ValueError, SafetensorError) as error:
            raise self._cannot_resume(str(error)) from error
        if not isinstance(run, dict):
            raise self._cannot_resume(
                f"{STATE_FILE} does not say what run it is of; an earlier version wrote it"
            )
        return run, tensors

    def _fill(self, tensors: dict[str, Tensor]) -> None:
        """Copy weights, their average and the optimiser's state."""
        kinds = ("weight", "average", "first", "second")
        shapes = {
            f"{kind}.{name}": parameter.shape
            for name, parameter in self.network.named_parameters()
            for kind in kinds
        }
        for name, shape in {**shapes, "step": torch.Size([])}.items():
            if name not in tensors:
                raise self._cannot_resume(f"{STATE_FILE} has no tensor {name!r}")
            if tensors[name].shape != shape:
                raise self._cannot_resume(
                    f"{name!r} has the shape {list(tensors[name].shape)}, not {list(shape)}"
                )
        with torch.no_grad():
            for number, (name, parameter) in enumerate(self.network.named_parameters()):
                parameter.copy_(tensors[f"weight.{name}"])
                self.average.values[number].copy_(tensors[f"average.{name}"])
                self.optimiser.state[parameter] = {
                    # The fused optimiser wants its count where the weights are.
                    "step": tensors["step"].clone().to(parameter.device),
                    "exp_avg": tensors[f"first.{name}"].to(parameter.device),
                    "exp_avg_sq": tensors[f"second.{name}"].to(parameter.device),
                }

    def _cannot_resume(self, reason: str) -> UserError:
        return UserError(f"cannot resume from {self.config.output}: {reason}")
