"""``dstfuzz train-tracker``: train a tracker that this package brings."""

from __future__ import annotations

import dataclasses
import types
import typing
from argparse import BooleanOptionalAction
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_dstfuzz.errors import MissingExtraError, unknown_name
from pytest_dstfuzz.experiments.arguments import Parser
from pytest_dstfuzz.trackers.trade.config import TradeTrainingConfig

SUMMARY = "train TRADE on labelled dialogues"
KEPT = "every finished epoch is kept; the same command with --resume goes on from there"

TRACKERS = ("trade",)
_EXAMPLES = """\
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any --resume
  pytest --dst-model=trade --dst-checkpoint=my-trade     tests what was trained"""

#: What each setting of the training does; the command has an option for each.
HELP = {
    "data": "dialogues with labels, in the splits train and val",
    "output": "folder for the model and for what a resumed run needs",
    "layout": "layout to read the data in; 'any' finds it by looking",
    "epochs": "most passes over the training dialogues",
    "batch_size": "turns of one step",
    "hidden": "size of the recurrent layers",
    "embedding": "size of the word vectors",
    "learning_rate": "highest learning rate",
    "warmup_steps": "steps over which the learning rate rises",
    "gradient_clip": "longest gradient",
    "dropout": "share of activations that are dropped",
    "word_mask": "share of words that are read as unknown",
    "average_decay": "decay of the moving average of the weights",
    "history_limit": "words of history that are read",
    "patience": "epochs without a better validation accuracy before the end",
    "pretrained_vectors": "start from word vectors learnt from the training split (gensim)",
    "max_minutes": "begin no epoch that would probably end later",
    "resume": "go on from the last epoch in the output folder",
    "max_dialogues": "take only so many dialogues of each split",
    "seed": "seed of every draw",
    "device": "cpu, cuda, ...",
    "bfloat16": "recurrent products in 16 bits: only for processors that have bfloat16",
    "report_every": "steps between lines of progress",
}


def run(arguments: Sequence[str]) -> int:
    """Train the tracker, printing a line now and then.

    Raises:
        UserError: an option or the data will not do, or the extra is not installed.
    """
    parser = Parser("dstfuzz train-tracker", f"{SUMMARY.capitalize()}.", _EXAMPLES)
    parser.add_argument("tracker", metavar="TRACKER", help=f"one of {', '.join(TRACKERS)}")
    hints = typing.get_type_hints(TradeTrainingConfig)
    for field in dataclasses.fields(TradeTrainingConfig):
        _add_field(parser, field, hints[field.name])
    options = vars(parser.parse_all(arguments))
    tracker = options.pop("tracker")
    if tracker not in TRACKERS:
        raise unknown_name("tracker to train", tracker, TRACKERS)
    config = TradeTrainingConfig(**options)
    try:
        from pytest_dstfuzz.trackers.trade.train import train_trade  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "models", error.name or "torch") from error
    result = train_trade(config, lambda line: print(line, flush=True))
    print(
        f"best epoch {result.best_epoch}: joint goal accuracy {result.joint_goal_accuracy:.2%} "
        f"on validation, in {result.model} (ended by {result.ended_by})"
    )
    return 0


def _add_field(parser: Parser, field: dataclasses.Field[Any], hint: Any) -> None:
    flag = "--" + field.name.replace("_", "-")
    required = field.default is dataclasses.MISSING
    how: dict[str, Any] = {"dest": field.name, "required": required, "help": HELP[field.name]}
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
    """Return the type of a field, without the ``None`` that stands for no limit."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind: Callable[[str], Any] = next(kind for kind in kinds if kind is not types.NoneType)
    return kind


def _layout(text: str) -> str | None:
    return None if text == "any" else text
