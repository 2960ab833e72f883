"""Training of TRADE from a data set to a model that can be shipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Dialogue
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, needs_extra
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
from pytest_dstfuzz.trackers.tokenise import tokenise
from pytest_dstfuzz.trackers.trade.checkpoint import TradeReading, build_network, save_model
from pytest_dstfuzz.trackers.trade.config import TradeEpoch, TradeResult, TradeTrainingConfig
from pytest_dstfuzz.trackers.trade.loss import batch_loss, row_accuracy
from pytest_dstfuzz.trackers.trade.network import TradeNetwork
from pytest_dstfuzz.trackers.trade.rows import LabelledTurn, TurnBatch, bucket, collate, make_rows
from pytest_dstfuzz.trackers.trade.vocabulary import PAD, UNKNOWN, Vocabulary, build_vocabulary


def word_vectors(
    sentences: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    size: int,
    seed: int,
    epochs: int = 15,
) -> np.ndarray:
    """Return skip-gram vectors ``[words, size]``, 0.1 in standard deviation.

    Words that the sentences do not hold get random vectors of that size. One thread
    is used, so that a seed gives the same vectors again.

    Args:
        sentences: words of each exchange.
        vocabulary: the words to return vectors of, in its order.
        size: length of a vector.
        seed: seed of the vectors.
        epochs: passes over the sentences.

    Raises:
        MissingExtraError: gensim is not installed.
    """
    with needs_extra("training word vectors", "lexicon", "gensim"):
        from gensim.models import Word2Vec  # noqa: PLC0415 - optional
    model = Word2Vec(
        [list(sentence) for sentence in sentences],
        vector_size=size,
        window=5,
        min_count=1,
        sg=1,
        negative=8,
        sample=1e-3,
        epochs=epochs,
        workers=1,
        seed=derive(seed, "word2vec") % 2**31,
    )
    rng = np.random.Generator(np.random.PCG64(derive(seed, "missing vectors")))
    result = rng.normal(0, 1, (len(vocabulary.words), size)).astype(np.float32)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    found = np.stack([model.wv[vocabulary.words[number]] for number in known])
    result[known] = (found - found.mean(0)) / found.std()
    return result * np.float32(0.1)


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


#: Turns decoded together while measuring.
_MEASURE_BATCH = 64


def train_trade(config: TradeTrainingConfig, progress: Callable[[str], None]) -> TradeResult:
    """Train TRADE on the training split, keep the epoch best on the validation split.

    After each epoch the run's state is written to ``config.output``, and the model too
    when it is the best so far. Vocabulary and vectors come from the training split alone.

    Args:
        config: data, output folder and settings.
        progress: called with one line at a time.

    Raises:
        UserError: bad settings or data, or nothing that the run could resume from.
    """
    check_output(config.output, resume=config.resume)
    train, normalisation = _read(config, "train")
    valid, _ = _read(config, "val")
    vocabulary = training_vocabulary(train)
    rows = make_rows(train, vocabulary, config.history_limit)
    valid_rows = make_rows(valid, vocabulary, config.history_limit)
    progress(
        f"{len(rows)} training turns, {len(valid_rows)} validation turns, "
        f"{len(vocabulary.words)} words, {vocabulary.outputs} of them in values"
    )
    trainer = TradeTrainer(config, vocabulary, rows)
    if config.resume:
        trainer.restore()
        progress(f"resumed after epoch {len(trainer.history)}")
    elif config.pretrained_vectors:
        progress("training word vectors")
        sentences = _sentences(train)
        trainer.set_vectors(word_vectors(sentences, vocabulary, config.embedding, config.seed))
    ended_by = _run(
        trainer, valid_rows, TradeReading(config.history_limit, normalisation), progress
    )
    chosen = best(trainer.history)
    return TradeResult(
        config.output, chosen.epoch, chosen.joint_goal_accuracy, tuple(trainer.history), ended_by
    )


def _run(
    trainer: TradeTrainer,
    valid_rows: Sequence[LabelledTurn],
    reading: TradeReading,
    progress: Progress,
) -> str:
    """Train epochs until one of the limits; returns which."""
    config = trainer.config
    begin, longest = time.monotonic(), 0.0
    while len(trainer.history) < config.epochs:
        if trainer.history and _impatient(trainer.history, config.patience):
            return "patience"
        start = time.monotonic()
        if config.max_minutes and start - begin + longest > config.max_minutes * 60 and longest:
            return "max_minutes"
        gate, value = trainer.epoch(progress)
        network = trainer.averaged_network()
        joint, slot = row_accuracy(network, valid_rows, _MEASURE_BATCH, config.device)
        seconds = time.monotonic() - start
        longest = max(longest, seconds)
        figures = TradeEpoch(len(trainer.history) + 1, gate, value, joint, slot, seconds)
        trainer.history.append(figures)
        progress(figures.line())
        if best(trainer.history) is figures:
            about = {
                "settings": config.fixed(),
                # The epochs decide the learning rate too, so each part tells its own.
                "parts": trainer.parts,
                "validation": asdict(figures),
                "history": [asdict(earlier) for earlier in trainer.history],
                "dialogues": "training split of " + config.data.name,
            }
            weights, shape = network.state_dict(), network.shape
            save_model(config.output, weights, shape, trainer.vocabulary, reading, about)
        trainer.save()
    return "epochs"


def training_vocabulary(dialogues: Sequence[Dialogue]) -> Vocabulary:
    """Build the vocabulary of labelled dialogues; slots are those that ever have a value."""
    states = [turn.state for dialogue in dialogues for turn in dialogue.turns if turn.state]
    return build_vocabulary(
        (text for d in dialogues for turn in d.turns for text in (turn.system, turn.user)),
        (value for state in states for value in state.values() if value != DONTCARE),
        {slot for state in states for slot in state},
    )


def _sentences(dialogues: Sequence[Dialogue]) -> list[list[str]]:
    """Return the words of each exchange: contexts may reach across the speakers."""
    return [
        [*tokenise(turn.system), *tokenise(turn.user)]
        for dialogue in dialogues
        for turn in dialogue.turns
    ]


def _read(config: TradeTrainingConfig, split: str) -> tuple[tuple[Dialogue, ...], str]:
    """Return the dialogues of a split and the name of their labels' normalisation."""
    found = load_dialogues(config.data, split, layout=config.layout)
    dialogues = found.dialogues[: config.max_dialogues]
    if not dialogues or not found.labelled:
        raise DataError(f"{config.data}: split {split!r} has no labelled dialogues to train on")
    return dialogues, found.normalisation


def _impatient(history: Sequence[TradeEpoch], patience: int) -> bool:
    return history[-1].epoch - best(history).epoch >= patience
