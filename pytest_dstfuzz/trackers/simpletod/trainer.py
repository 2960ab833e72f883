"""The training loop of SimpleTOD: one epoch, one step, accuracy, and the state between epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.devices import move
from pytest_dstfuzz.trackers.runs import EMA, ResumableTrainer, RunState, learning_rate
from pytest_dstfuzz.trackers.simpletod.augment import SlotValueAugmenter, Spoken
from pytest_dstfuzz.trackers.simpletod.config import (
    SimpleTodEpoch,
    SimpleTodTrainingConfig,
)
from pytest_dstfuzz.trackers.simpletod.model import positions_of
from pytest_dstfuzz.trackers.simpletod.sequences import (
    IGNORED,
    Encoder,
    SequenceBatch,
    TreeSequence,
    batches,
    collate,
)

Progress = Callable[[str], None]


class SimpleTodTrainer(ResumableTrainer[SimpleTodEpoch]):
    """One training run: model, optimiser, average, and where it stands."""

    def __init__(
        self,
        config: SimpleTodTrainingConfig,
        model: PreTrainedModel,
        tokeniser: PreTrainedTokenizerBase,
        dialogues: Sequence[Spoken],
    ) -> None:
        """Take a fresh model into training."""
        self.config, self.tokeniser, self.dialogues = config, tokeniser, dialogues
        self.model = move(model, config.device, "SimpleTOD")
        self.encoder = Encoder(tokeniser, positions_of(model))
        self.exchange = SlotValueAugmenter(dialogues, config.exchange)
        named = list(model.named_parameters())
        self.parameters = [parameter for _, parameter in named]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=config.learning_rate, fused=True)
        self._set_decay(named)
        self.average = EMA(self.parameters, config.average_decay)
        super().__init__(
            config, SimpleTodEpoch, RunState(config.output, named, self.average, self.optimiser)
        )

    def epoch(self, progress: Progress) -> tuple[float, float]:
        """Train one epoch; returns the mean loss of a token of beliefs, and of contexts."""
        config, number = self.config, len(self.history)
        rng = stream(config.seed, "epoch", number)
        sequences = [self.encoder.encode(self.exchange(item, rng)) for item in self.dialogues]
        groups = batches(sequences, config.batch_tokens, rng)
        self.model.train()
        losses = np.zeros(4)
        start = time.monotonic()
        # Dropout draws from the global generator, which is given back as it was.
        with torch.random.fork_rng():
            torch.manual_seed(derive(config.seed, "noise", number) % 2**63)
            for index, group in enumerate(groups):
                # Epochs differ by a few batches; this one's number stands for all.
                total = config.epochs * len(groups)
                rate = learning_rate(
                    number * len(groups) + index, total, config.learning_rate, config.warmup_steps
                )
                batch = collate([sequences[place] for place in group]).to(config.device)
                losses += self.step(batch, rate)
                self.average.update(self.parameters, number * len(groups) + index + 1)
                done = index + 1
                if done % config.report_every == 0 or done == len(groups):
                    left = (total - number * len(groups) - done) * (time.monotonic() - start) / done
                    belief, context = _means(losses)
                    progress(
                        f"epoch {number + 1}/{config.epochs} step {done}/{len(groups)} "
                        f"loss {belief:.3f} (context {context:.3f}) ETA {left / 60:.0f} min"
                    )
        return _means(losses)

    def step(self, batch: SequenceBatch, rate: float) -> np.ndarray:
        """Make one step.

        Returns:
            sums of losses and numbers of tokens: of beliefs, and of contexts.
        """
        logits, targets, in_context = self._logits(batch)
        losses = cross_entropy(logits.float(), targets, reduction="none")
        weights = torch.where(in_context, self.config.context_weight, 1.0)
        self.optimiser.zero_grad(set_to_none=True)
        ((losses * weights).sum() / weights.sum()).backward()  # type: ignore[no-untyped-call]  # theirs has no types
        nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_clip)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        context = float(losses.detach()[in_context].sum())
        tokens, of_context = len(targets), int(in_context.sum())
        belief = float(losses.detach().sum()) - context
        return np.array([belief, tokens - of_context, context, of_context])

    def _logits(self, batch: SequenceBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits ``[N, V]`` of tokens that have a target, these, and which are context."""
        kind = torch.bfloat16 if self.config.bfloat16 else torch.float32
        hidden = torch.zeros(batch.mask.shape, dtype=kind, device=batch.mask.device)
        hidden.masked_fill_(~batch.mask, torch.finfo(kind).min)
        wanted = batch.targets != IGNORED
        device = torch.device(self.config.device).type
        with torch.autocast(device, torch.bfloat16, enabled=self.config.bfloat16):
            outputs = self.model.base_model(
                input_ids=batch.tokens, position_ids=batch.positions, attention_mask=hidden
            )
            head: nn.Module = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
            logits = head(outputs.last_hidden_state[wanted])
        return logits, batch.targets[wanted], batch.branches[wanted] == 0

    def accuracy(self, sequences: Sequence[TreeSequence], turns: int) -> float:
        """Return the joint goal accuracy of the model as it is, in [0, 1].

        A belief is generated right exactly when each of its tokens is the likeliest one after
        the right ones before it, so nothing has to be generated to know.

        Args:
            sequences: labelled dialogues.
            turns: turns in all; those that were too long to encode count as wrong.
        """
        self.model.train(mode=False)
        right = 0
        with torch.inference_mode():
            for group in batches(sequences, self.config.batch_tokens, None):
                batch = collate([sequences[place] for place in group]).to(self.config.device)
                logits, targets, in_context = self._logits(batch)
                wrong = (logits.argmax(-1) != targets) & ~in_context
                rows, columns = (batch.targets != IGNORED).nonzero(as_tuple=True)
                keys = torch.stack([rows, batch.branches[rows, columns]], 1)
                beliefs = torch.unique(keys[~in_context], dim=0)
                right += len(beliefs) - len(torch.unique(keys[wrong], dim=0))
        return right / turns

    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""
        return {
            **self.config.fixed(),
            "number of training dialogues": len(self.dialogues),
            "number of subwords": len(self.tokeniser),
        }

    def _set_decay(self, named: Sequence[tuple[str, Tensor]]) -> None:
        """Let the weights of products decay; biases and norms do not."""
        (group,) = self.optimiser.param_groups
        matrices = [parameter for _, parameter in named if parameter.dim() > 1]
        others = [parameter for _, parameter in named if parameter.dim() <= 1]
        group["params"], group["weight_decay"] = matrices, self.config.weight_decay
        self.optimiser.add_param_group({"params": others, "weight_decay": 0.0})


def _means(losses: np.ndarray) -> tuple[float, float]:
    belief, beliefs, context, contexts = losses.tolist()
    return belief / max(beliefs, 1), context / max(contexts, 1)
