"""Training of SimpleTOD from a data set to a model that can be shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pytest_dstfuzz.dialogue.dialogues import BeliefState, DialogueSet
from pytest_dstfuzz.models.neural import move
from pytest_dstfuzz.models.run_settings import TrainingRun
from pytest_dstfuzz.models.runs import Progress, ResumableTrainer, begin
from pytest_dstfuzz.models.simpletod.augment import SlotValueAugmenter, Spoken, spoken
from pytest_dstfuzz.models.simpletod.config import SimpleTodEpoch, SimpleTodTrainingConfig
from pytest_dstfuzz.models.simpletod.model import (
    SimpleTodReading,
    new_model,
    positions_of,
    save,
    seeded,
)
from pytest_dstfuzz.models.simpletod.sequences import (
    IGNORED,
    Encoder,
    SequenceBatch,
    TreeSequence,
    batches,
    collate,
)
from pytest_dstfuzz.models.simpletod.texts import MARKS, belief_words, value_words
from pytest_dstfuzz.models.tokenise import usual_spellings
from pytest_dstfuzz.seeding import derive


class SimpleTodTrainer(ResumableTrainer[SimpleTodEpoch, TreeSequence]):
    """A training run of SimpleTOD, of a model that is fresh or pretrained."""

    FIGURES = SimpleTodEpoch
    LOSSES = ("belief_loss", "context_loss")
    UNIT = "dialogues"

    def __init__(
        self,
        config: SimpleTodTrainingConfig,
        model: PreTrainedModel,
        tokeniser: PreTrainedTokenizerBase,
        train: DialogueSet,
        valid: DialogueSet,
    ) -> None:
        self.config, self.tokeniser = config, tokeniser
        self.model = move(model, config.device, "SimpleTOD")
        self.dialogues = [spoken(dialogue) for dialogue in train.dialogues]
        self.encoder = Encoder(tokeniser, positions_of(model))
        self._heldout = [self.encoder.encode(spoken(dialogue)) for dialogue in valid.dialogues]
        self._heldout_turns = valid.turn_count()
        self._reading = _reading(train)
        self._augment = SlotValueAugmenter(self.dialogues, config.exchange)
        # The weights of products decay; biases and norms do not.
        matrices = [weight for weight in model.parameters() if weight.dim() > 1]
        others = [weight for weight in model.parameters() if weight.dim() <= 1]
        optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            fused=True,
        )
        super().__init__(config, model, optimiser)

    def groups(self, rng: np.random.Generator) -> list[list[TreeSequence]]:
        """Return batches of dialogues of similar length, some values exchanged for others."""
        sequences = [self.encoder.encode(self._augment(item, rng)) for item in self.dialogues]
        chosen = batches(sequences, self.config.batch_tokens, rng)
        return [[sequences[place] for place in group] for group in chosen]

    def noise(self, seed: int) -> AbstractContextManager[object]:
        """Let dropout, which draws from torch's global generator, come from a seed."""
        return seeded(seed)

    def losses(self, group: Sequence[TreeSequence]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the weighted mean loss; and sums and numbers of tokens of beliefs and contexts."""
        batch = collate(group).to(self.config.device)
        logits, targets, in_context = self._logits(batch)
        losses = cross_entropy(logits.float(), targets, reduction="none")
        weights = torch.where(in_context, self.config.context_weight, 1.0)
        context = float(losses.detach()[in_context].sum())
        belief = float(losses.detach().sum()) - context
        of_context = int(in_context.sum())
        sums: list[Tensor | float] = [belief, len(targets) - of_context, context, of_context]
        return (losses * weights).sum() / weights.sum(), sums

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

    def measure(self) -> dict[str, float]:
        """Return the joint goal accuracy on the validation split."""
        return {"joint_goal_accuracy": self.accuracy(self._heldout, self._heldout_turns)}

    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the model as it is."""
        save(self.config.output, self.model, self.tokeniser, self._reading, about)

    def accuracy(self, sequences: Sequence[TreeSequence], turns: int) -> float:
        """Return the joint goal accuracy of the model as it is, in [0, 1].

        A belief is generated right exactly when each of its tokens is the likeliest one after
        the right ones before it, so nothing has to be generated to know. Of the ``turns`` in all
        those that were too long to encode count as wrong.
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


def train_simpletod(config: SimpleTodTrainingConfig, progress: Progress) -> TrainingRun:
    """Train SimpleTOD on the training split, its subwords too; see `ResumableTrainer`."""
    train, valid = begin(config)
    lines = _lines(spoken(dialogue) for dialogue in train.dialogues)
    model, tokeniser = new_model(config, lines, derive(config.seed, "weights") % 2**63)
    trainer = SimpleTodTrainer(config, model, tokeniser, train, valid)
    weights = sum(parameter.numel() for parameter in trainer.parameters)
    progress(
        f"{len(train.dialogues)} training dialogues, {len(valid.dialogues)} for validation, "
        f"{len(tokeniser)} subwords, {weights / 1e6:.1f} million weights"
    )
    return trainer.run(progress)


def _reading(train: DialogueSet) -> SimpleTodReading:
    """Return how a model that was trained on these labels writes them."""
    states = [
        turn.state or BeliefState() for dialogue in train.dialogues for turn in dialogue.turns
    ]
    values = Counter(value for state in states for value in state.values())
    return SimpleTodReading(
        common=True,
        slots=tuple(sorted({slot for state in states for slot in state})),
        normalisation=train.normalisation,
        spellings=usual_spellings(values, value_words),
    )


def _lines(dialogues: Iterable[Spoken]) -> Iterator[str]:
    """Yield what subwords are learnt from: every utterance, and each dialogue's last belief."""
    for dialogue in dialogues:
        for system, user, _ in dialogue.turns:
            yield " ".join(system)
            yield " ".join(user)
        last = {slot: " ".join(words) for slot, words in dialogue.turns[-1][2].items()}
        yield " ".join(word for word in belief_words(last) if word not in MARKS)
