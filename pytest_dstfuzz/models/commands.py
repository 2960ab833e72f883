"""The ``train-tracker`` command, which trains a belief-state tracker."""

from __future__ import annotations

import dataclasses
import importlib
import types
import typing
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_dstfuzz.cli.command import Command, say
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, percent
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.models.simpletod.config import SimpleTodTrainingConfig
from pytest_dstfuzz.models.trade.files import TradeHardeningConfig, TradeTrainingConfig
from pytest_dstfuzz.repair.trainable import NOTHING

#: Settings of all trainings -> help.
_COMMON = {
    "data": "dialogues with labels, with the splits train and val",
    "output": "folder for the model and for the state of the training",
    "layout": "layout of the data; 'any' detects it",
    "epochs": "maximum number of passes over the training dialogues",
    "learning_rate": "maximum learning rate",
    "warmup_steps": "number of steps over which the learning rate rises",
    "gradient_clip": "maximum norm of the gradient",
    "dropout": "dropout: share of activations that are set to zero",
    "average_decay": "decay of the moving average of the weights",
    "max_minutes": (
        "maximum number of minutes: an epoch is not started if it would probably end later"
    ),
    "resume": "continue from the last epoch in the output folder",
    "max_dialogues": "maximum number of dialogues of each split",
    "seed": "seed of all random choices",
    "device": "device: cpu, cuda, ...",
    "bfloat16": "use 16 bits for large matrix products; only for processors with bfloat16",
    "report_every": "number of steps between two lines of progress",
}


@dataclasses.dataclass(frozen=True)
class Training:
    """The training of one kind of tracker, such as TRADE.

    Attributes:
        config: dataclass with the settings of the training. Each of its fields becomes an option.
        function: ``module:function``, called with the settings and a function that prints lines of
            progress.
        extra: the extra that installs the packages for it.
        help: help texts of the settings that are not in `_COMMON`.
    """

    config: Any
    function: str
    extra: str
    help: Mapping[str, str]


TRAININGS: dict[str, Training] = {
    "trade": Training(
        TradeTrainingConfig,
        "pytest_dstfuzz.models.trade.training:train_trade",
        "trade",
        {
            "batch_size": "number of turns in a step",
            "hidden": "size of the recurrent layers",
            "embedding": "size of the word vectors",
            "word_mask": "share of words that are replaced by the unknown word",
            "history_limit": "maximum number of words of the history",
            "patience": (
                "end the training after this number of epochs without a better validation accuracy"
            ),
            "pretrained_vectors": (
                "start from word vectors trained on the training split (needs gensim)"
            ),
            "subwords": (
                "split words into pieces, from this number of merges of byte-pair encoding; 0 "
                "keeps words whole"
            ),
        },
    ),
    "trade-hardened": Training(
        TradeHardeningConfig,
        "pytest_dstfuzz.models.trade.hardening:harden_trade",
        "trade",
        {
            "epochs": "maximum number of rounds of attack and training",
            "batch_size": "number of turns in a step",
            "word_mask": "share of words that are replaced by the unknown word",
            "patience": "end the training after this number of rounds without a better result",
            "start": "checkpoint to harden (default: the shipped one)",
            "measured": (
                "data whose test split will measure the tracker; its dialogues are not used for "
                f"training; {NOTHING} means none (default: as --data)"
            ),
            "relations": "relations that rewrite single turns",
            "rewrites": "number of rewrites of each relation in a round",
            "draws": (
                "number of rewrites to draw for each one that is used; rewrites that break the "
                "tracker come first"
            ),
            "replay": "number of clean turns for each rewrite",
            "answers": (
                "label of turns whose state should change: repaired is the state that the "
                "relation expects, old is the old state, margin makes the old state less "
                "likely than in the clean turn"
            ),
            "correct_spelling": (
                "read an unknown word of the user as the nearest word that the tracker knows"
            ),
            "first_weights": "share of the original weights in the mean that is saved",
            "loss_limit": (
                "maximum loss of joint goal accuracy on validation; of the rounds within this "
                "limit, the training keeps the best one on rewritten turns"
            ),
            "dialogues": "number of validation dialogues to measure clean turns on",
            "checked": "number of rewrites of each relation to measure on validation",
        },
    ),
    "simpletod": Training(
        SimpleTodTrainingConfig,
        "pytest_dstfuzz.models.simpletod.training:train_simpletod",
        "simpletod",
        {
            "base": (
                "fine-tune this causal language model, a folder or a name on the Hugging Face "
                "hub, instead of training one from random weights"
            ),
            "batch_tokens": "number of tokens in a step",
            "dropout": "dropout without --base: share of activations that are set to zero",
            "vocabulary": "number of subwords without --base",
            "hidden": "width of the model without --base",
            "layers": "number of layers without --base",
            "heads": "number of attention heads without --base",
            "positions": "maximum number of tokens of context and belief together without --base",
            "weight_decay": "weight decay of AdamW",
            "context_weight": (
                "weight of the tokens of the context in the loss; the tokens of the belief have "
                "weight 1"
            ),
            "exchange": "share of the dialogues whose values are replaced by other values",
        },
    ),
}


def _tracker_options(parser: Parser) -> None:
    names = ", ".join(TRAININGS)
    parser.add_argument(
        "name",
        metavar="TRACKER",
        nargs="?",
        type=choice("tracker to train", TRAININGS),
        help=f"tracker to train: {names}. Each has its own options: dstfuzz train-tracker TRACKER "
        "--help",
    )


def _train_tracker(given: Namespace) -> None:
    name: str | None = given.name
    if name is None:
        names = ", ".join(TRAININGS)
        raise UserError(
            f"no tracker was named: choose one of {names} (see dstfuzz train-tracker --help)"
        )
    training = TRAININGS[name]
    parser = Parser(f"dstfuzz train-tracker {name}", f"Train {name} on labelled dialogues.")
    hints = typing.get_type_hints(training.config)
    texts = {**_COMMON, **training.help}
    for field in dataclasses.fields(training.config):
        _add_field(parser, field, hints[field.name], texts[field.name])
    config = training.config(**vars(parser.parse_all(given.rest)))
    module, _, function = training.function.partition(":")
    with needs_extra(f"training {name}", training.extra, "torch", "transformers", "tokenizers"):
        train = getattr(importlib.import_module(module), function)
    result = train(config, say)
    accuracy = percent(result.joint_goal_accuracy)
    print(
        f"best epoch {result.best_epoch}: joint goal accuracy {accuracy} on validation, "
        f"in {result.model} (ended by {result.ended_by})"
    )


def _add_field(parser: Parser, field: dataclasses.Field[Any], hint: Any, text: str) -> None:
    flag = "--" + field.name.replace("_", "-")
    required = field.default is dataclasses.MISSING
    how: dict[str, Any] = {"dest": field.name, "required": required, "help": text}
    if not required:
        how["default"] = field.default
        if field.default is not None:
            how["help"] += f" (default: {field.default})"
    if hint is bool:
        parser.option(flag, action=BooleanOptionalAction, **how)
        return
    kind = _kind(hint)
    convert = _layout if field.name == "layout" else kind
    parser.option(flag, type=convert, metavar=_METAVARS[kind], **how)


_METAVARS: dict[Callable[[str], Any], str] = {Path: "PATH", str: "NAME", int: "N", float: "X"}


def _kind(hint: Any) -> Callable[[str], Any]:
    """Return the type of a field, without ``None``, which means no limit."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind: Callable[[str], Any] = next(kind for kind in kinds if kind is not types.NoneType)
    return kind


def _layout(text: str) -> str | None:
    return None if text == "any" else text


TRAIN_TRACKER = Command(
    "train-tracker",
    "train TRADE or SimpleTOD on labelled dialogues",
    "every finished epoch is saved, and the same command with --resume continues",
    """\
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any --resume
  dstfuzz train-tracker trade-hardened --data multiwoz21 --output hardened --start my-trade
  dstfuzz train-tracker simpletod --data multiwoz21 --output my-simpletod --base distilgpt2
  pytest --dst-model=trade --dst-tracker=checkpoint=my-trade    tests the trained tracker""",
    _tracker_options,
    _train_tracker,
    chooses=True,
)
