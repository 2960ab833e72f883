"""Training of TRADE from a data set to a model that can be shipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Dialogue
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.trackers.runs import best, check_output
from pytest_dstfuzz.trackers.trade.config import TradeEpoch, TradeResult, TradeTrainingConfig
from pytest_dstfuzz.trackers.trade.encode import tokenise
from pytest_dstfuzz.trackers.trade.measure import row_accuracy
from pytest_dstfuzz.trackers.trade.rows import LabelledTurn, make_rows
from pytest_dstfuzz.trackers.trade.storage import TradeReading, save_model
from pytest_dstfuzz.trackers.trade.trainer import Progress, TradeTrainer
from pytest_dstfuzz.trackers.trade.vectors import word_vectors
from pytest_dstfuzz.trackers.trade.vocabulary import Vocabulary, build_vocabulary

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
