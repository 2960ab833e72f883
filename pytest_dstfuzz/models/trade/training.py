"""Training of TRADE from a data set to a model that can be shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.models.neural import move
from pytest_dstfuzz.models.run_settings import TrainingRun
from pytest_dstfuzz.models.runs import Progress, ResumableTrainer, begin, best
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.models.trade.checkpoint import TradeReading, build_network, save_model
from pytest_dstfuzz.models.trade.config import TradeEpoch, TradeTrainingConfig
from pytest_dstfuzz.models.trade.loss import batch_loss, row_accuracy
from pytest_dstfuzz.models.trade.rows import LabelledTurn, bucket, collate, make_rows
from pytest_dstfuzz.models.trade.vocabulary import (
    PAD,
    UNKNOWN,
    Vocabulary,
    training_vocabulary,
)
from pytest_dstfuzz.seeding import derive

#: Turns decoded together while measuring.
_MEASURE_BATCH = 64


def word_vectors(
    dialogues: Sequence[Dialogue], vocabulary: Vocabulary, size: int, seed: int
) -> np.ndarray:
    """Return skip-gram vectors ``[words, size]``, 0.1 in standard deviation.

    Words that nobody says get random vectors of that size. One thread is used, so that a seed
    gives the same vectors again.
    """
    with needs_extra("training word vectors", "lexicon", "gensim"):
        from gensim.models import Word2Vec  # noqa: PLC0415 - optional
    turns = (turn for dialogue in dialogues for turn in dialogue.turns)
    model = Word2Vec(
        # An exchange each: contexts may reach across the speakers.
        [[*tokenise(turn.system), *tokenise(turn.user)] for turn in turns],
        vector_size=size,
        window=5,
        min_count=1,
        sg=1,
        negative=8,
        sample=1e-3,
        epochs=15,
        workers=1,
        seed=derive(seed, "word2vec") % 2**31,
    )
    rng = np.random.Generator(np.random.PCG64(derive(seed, "missing vectors")))
    result = rng.normal(0, 1, (len(vocabulary.words), size)).astype(np.float32)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    found = np.stack([model.wv[vocabulary.words[number]] for number in known])
    result[known] = (found - found.mean(0)) / found.std()
    return result * np.float32(0.1)


def mask_words(words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Return ``words`` with a share of ``rate`` read as unknown; padding stays."""
    hidden = torch.rand(words.shape, generator=generator, device=words.device) < rate
    return words.masked_fill(hidden & (words != PAD), UNKNOWN)


class TradeTrainer(ResumableTrainer[TradeEpoch, LabelledTurn]):
    """A training run of TRADE; the network's start depends on the seed alone."""

    FIGURES = TradeEpoch
    LOSSES = ("gate_loss", "value_loss")
    UNIT = "turns"

    def __init__(
        self,
        config: TradeTrainingConfig,
        vocabulary: Vocabulary,
        rows: Sequence[LabelledTurn],
        heldout: Sequence[LabelledTurn],
        reading: TradeReading,
    ) -> None:
        self.config, self.vocabulary, self.rows = config, vocabulary, rows
        self._heldout, self._reading = heldout, reading
        generator = torch.Generator().manual_seed(derive(config.seed, "weights") % 2**63)
        network = build_network(
            vocabulary, config.embedding, config.hidden, config.dropout, generator
        )
        self.network = move(network, config.device, "TRADE")
        self.network.fast = config.bfloat16
        weights = self.network.parameters()
        optimiser = torch.optim.Adam(weights, lr=config.learning_rate, fused=True)
        super().__init__(config, self.network, optimiser)

    def groups(self, rng: np.random.Generator) -> list[list[LabelledTurn]]:
        """Return batches of turns of similar length."""
        lengths = [len(row.words) for row in self.rows]
        batches = bucket(lengths, self.config.batch_size, rng)
        return [[self.rows[place] for place in chosen] for chosen in batches]

    @contextmanager
    def noise(self, seed: int) -> Iterator[None]:
        """Draw dropout and masked words from a generator of the network's own."""
        self.network.generator = torch.Generator(self.config.device).manual_seed(seed)
        yield

    def losses(self, group: Sequence[LabelledTurn]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the loss of an average turn, and its gate and value part."""
        batch = collate(group).to(self.config.device)
        words = mask_words(batch.words, self.config.word_mask, self.network.generator)
        gate, value = batch_loss(self.network, batch, words)
        return gate + value, [gate.detach(), 1, value.detach(), 1]

    def measure(self) -> dict[str, float]:
        """Return joint goal accuracy and slot accuracy on the validation split."""
        joint, slot = row_accuracy(self.network, self._heldout, _MEASURE_BATCH, self.config.device)
        return {"joint_goal_accuracy": joint, "slot_accuracy": slot}

    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the network as it is."""
        weights, shape = self.network.state_dict(), self.network.shape
        save_model(self.config.output, weights, shape, self.vocabulary, self._reading, about)

    def impatient(self) -> bool:
        """Whether too many epochs were no better than the best."""
        return self.history[-1].epoch - best(self.history).epoch >= self.config.patience

    def identity(self) -> dict[str, Any]:
        """Return what must not change between the parts of a run."""
        return {
            **self.config.fixed(),
            "number of training turns": len(self.rows),
            "vocabulary": self.vocabulary.fingerprint(),
        }


def train_trade(config: TradeTrainingConfig, progress: Progress) -> TrainingRun:
    """Train TRADE on the training split, its vocabulary and vectors too; see `ResumableTrainer`."""
    train, valid = begin(config)
    vocabulary = training_vocabulary(train.dialogues)
    rows = make_rows(train.dialogues, vocabulary, config.history_limit)
    heldout = make_rows(valid.dialogues, vocabulary, config.history_limit)
    progress(
        f"{len(rows)} training turns, {len(heldout)} validation turns, "
        f"{len(vocabulary.words)} words, {vocabulary.outputs} of them in values"
    )
    reading = TradeReading(config.history_limit, train.normalisation)
    trainer = TradeTrainer(config, vocabulary, rows, heldout, reading)
    if config.pretrained_vectors and not config.resume:
        progress("training word vectors")
        vectors = word_vectors(train.dialogues, vocabulary, config.embedding, config.seed)
        with torch.no_grad():
            trainer.network.embedding.copy_(torch.from_numpy(vectors))
        trainer.average.restart(trainer.parameters)
    return trainer.run(progress)
