"""Training of SimpleTOD from a data set to a model that can be shipped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

import torch

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.seeding import derive
from pytest_dstfuzz.trackers.runs import best, check_output
from pytest_dstfuzz.trackers.simpletod.augment import Spoken, spoken
from pytest_dstfuzz.trackers.simpletod.config import (
    SimpleTodEpoch,
    SimpleTodResult,
    SimpleTodTrainingConfig,
)
from pytest_dstfuzz.trackers.simpletod.model import SimpleTodReading, new_model, save
from pytest_dstfuzz.trackers.simpletod.sequences import TreeSequence
from pytest_dstfuzz.trackers.simpletod.texts import MARKS, belief_words, value_words
from pytest_dstfuzz.trackers.simpletod.trainer import Progress, SimpleTodTrainer


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
