"""Training of SimpleTOD from a data set to a model that can be shipped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.neural import move
from pytest_dstfuzz.trackers.runs import (
    EMA,
    ResumableTrainer,
    RunState,
    best,
    check_output,
    learning_rate,
)
from pytest_dstfuzz.trackers.simpletod.augment import SlotValueAugmenter, Spoken, spoken
from pytest_dstfuzz.trackers.simpletod.config import (
    SimpleTodEpoch,
    SimpleTodResult,
    SimpleTodTrainingConfig,
)
from pytest_dstfuzz.trackers.simpletod.model import SimpleTodReading, new_model, positions_of, save
from pytest_dstfuzz.trackers.simpletod.sequences import (
    IGNORED,
    Encoder,
    SequenceBatch,
    TreeSequence,
    batches,
    collate,
)
from pytest_dstfuzz.trackers.simpletod.texts import MARKS, belief_words, value_words

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


def train_simpletod(
    config: SimpleTodTrainingConfig, progress: Callable[[str], None]
) -> SimpleTodResult:
    """Train SimpleTOD on the training split, keep the epoch best on the validation split.

    After each epoch the run's state is written to ``config.output``, and the model too
    when it is the best so far. Subwords are learnt from the training split alone.

    Args:
        config: data, output folder and settings.
        progress: called with one line at a time.

    Raises:
        UserError: bad settings or data, or nothing that the run could resume from.
    """
    check_output(config.output, resume=config.resume)
    train, valid = _read(config, "train"), _read(config, "val")
    dialogues = [spoken(dialogue) for dialogue in train.dialogues]
    seed = derive(config.seed, "weights") % 2**63
    model, tokeniser = new_model(config, _lines(dialogues), seed)
    trainer = SimpleTodTrainer(config, model, tokeniser, dialogues)
    heldout = [trainer.encoder.encode(spoken(dialogue)) for dialogue in valid.dialogues]
    if config.resume:
        trainer.restore()
        progress(f"resumed after epoch {len(trainer.history)}")
    weights = sum(parameter.numel() for parameter in trainer.parameters)
    progress(
        f"{len(dialogues)} training dialogues, {len(heldout)} for validation, "
        f"{len(tokeniser)} subwords, {weights / 1e6:.1f} million weights"
    )
    ended_by = _run(trainer, heldout, valid.turn_count(), _reading(train), progress)
    chosen = best(trainer.history)
    return SimpleTodResult(
        config.output, chosen.epoch, chosen.joint_goal_accuracy, tuple(trainer.history), ended_by
    )


def _run(
    trainer: SimpleTodTrainer,
    heldout: Sequence[TreeSequence],
    turns: int,
    reading: SimpleTodReading,
    progress: Progress,
) -> str:
    """Train epochs until one of the limits; returns which."""
    config = trainer.config
    begin, longest = time.monotonic(), 0.0
    while len(trainer.history) < config.epochs:
        start = time.monotonic()
        if config.max_minutes and longest and start - begin + longest > config.max_minutes * 60:
            return "max_minutes"
        belief, context = trainer.epoch(progress)
        with _averaged(trainer):
            joint = trainer.accuracy(heldout, turns)
            seconds = time.monotonic() - start
            longest = max(longest, seconds)
            figures = SimpleTodEpoch(len(trainer.history) + 1, belief, context, joint, seconds)
            trainer.history.append(figures)
            progress(figures.line())
            if best(trainer.history) is figures:
                about = {
                    "settings": config.fixed(),
                    "parts": trainer.parts,
                    "history": [asdict(earlier) for earlier in trainer.history],
                    "dialogues": "training split of " + config.data.name,
                }
                save(config.output, trainer.model, trainer.tokeniser, reading, about)
        trainer.save()
    return "epochs"


@contextmanager
def _averaged(trainer: SimpleTodTrainer) -> Iterator[None]:
    """Let the model have its averaged weights for a while."""
    kept = [parameter.detach().clone() for parameter in trainer.parameters]

    def take(values: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(trainer.parameters, values, strict=True):
                parameter.copy_(value)

    take(trainer.average.values)
    try:
        yield
    finally:
        take(kept)


def _read(config: SimpleTodTrainingConfig, split: str) -> DialogueSet:
    """Return a split, cut to as many dialogues as are wanted."""
    found = load_dialogues(config.data, split, layout=config.layout)
    if not found.dialogues or not found.labelled:
        raise DataError(f"{config.data}: split {split!r} has no labelled dialogues to train on")
    return replace(found, dialogues=found.dialogues[: config.max_dialogues])


def _reading(train: DialogueSet) -> SimpleTodReading:
    """Return how a model that was trained on these labels writes them."""
    spellings: dict[str, Counter[str]] = {}
    slots: set[str] = set()
    for dialogue in train.dialogues:
        for turn in dialogue.turns:
            for slot, value in (turn.state or {}).items():
                slots.add(slot)
                spellings.setdefault(" ".join(value_words(value)), Counter())[value] += 1
    usual = {
        joined: max(sorted(found), key=lambda value: found[value])
        for joined, found in sorted(spellings.items())
    }
    return SimpleTodReading(
        common=True,
        slots=tuple(sorted(slots)),
        normalisation=train.normalisation,
        spellings={joined: value for joined, value in usual.items() if joined != value},
    )


def _lines(dialogues: Sequence[Spoken]) -> Iterator[str]:
    """Yield what subwords are learnt from: every utterance, and each dialogue's last belief."""
    for dialogue in dialogues:
        for system, user, _ in dialogue.turns:
            yield " ".join(system)
            yield " ".join(user)
        last = {slot: " ".join(words) for slot, words in dialogue.turns[-1][2].items()}
        yield " ".join(word for word in belief_words(last) if word not in MARKS)
