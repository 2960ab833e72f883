"""Commands that train, and compare what was trained: train-tracker, train-agent, experiment."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
import typing
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_dstfuzz.cli.command import Command, say
from pytest_dstfuzz.config import ADAPTER, VALIDITIES, canonical_split
from pytest_dstfuzz.config.command_line import Parser, adapter_options
from pytest_dstfuzz.config.parsers import choice, integer, positive
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.models.simpletod.config import SimpleTodTrainingConfig
from pytest_dstfuzz.models.trade.config import TradeTrainingConfig
from pytest_dstfuzz.scale.commands.ray import RAY_OPTIONS, given_ray, ray_options
from pytest_dstfuzz.transformations import TRANSFORMATIONS

ORDERS = ("distance", "reading")
REWARDS = ("broken", "gini")
DIALOGUES = ("right", "all")
_SHARED = (
    *("model", "checkpoint", "data", "slots", "attack", "seed", "device"),
    "batch_size",
)
#: Experiment -> what it does. The module of `pytest_dstfuzz.papers` of that name has a ``main``
#: that takes the arguments after the name.
EXPERIMENTS = {
    "rq1": "random sampling with 1 to 6 transformations, as in the thesis' table",
    "rq2": "the agent beside random sampling with 1 to 6 transformations, held-out dialogues",
    "rq3": "searches at equally many variants: rates and turns broken for every call",
    "curves": "searches at equal calls: weaknesses, turns broken and failing mass over calls",
    "relations": "each relation of one tracker: too sensitive here, too stable there",
    "negotiation": "who talks a trained negotiator into a bad deal, and what hardening helps",
}


#: What the settings do that all trainings have.
_COMMON = {
    "data": "dialogues with labels, in the splits train and val",
    "output": "folder for the model and for what a resumed run needs",
    "layout": "layout to read the data in; 'any' finds it by looking",
    "epochs": "most passes over the training dialogues",
    "learning_rate": "highest learning rate",
    "warmup_steps": "steps over which the learning rate rises",
    "gradient_clip": "longest gradient",
    "dropout": "share of activations that are dropped",
    "average_decay": "decay of the moving average of the weights",
    "max_minutes": "begin no epoch that would probably end later",
    "resume": "go on from the last epoch in the output folder",
    "max_dialogues": "take only so many dialogues of each split",
    "seed": "seed of every draw",
    "device": "cpu, cuda, ...",
    "bfloat16": "large products in 16 bits: only for processors that have bfloat16",
    "report_every": "steps between lines of progress",
}


@dataclasses.dataclass(frozen=True)
class Training:
    """How one tracker is trained.

    Attributes:
        config: dataclass of its settings; the command has an option for each.
        function: ``module:function`` that takes such a config and a callback for lines.
        help: what each setting does, `_COMMON` apart.
    """

    config: Any
    function: str
    help: Mapping[str, str]


TRAININGS: dict[str, Training] = {
    "trade": Training(
        TradeTrainingConfig,
        "pytest_dstfuzz.models.trade.training:train_trade",
        {
            "batch_size": "turns of one step",
            "hidden": "size of the recurrent layers",
            "embedding": "size of the word vectors",
            "word_mask": "share of words that are read as unknown",
            "history_limit": "words of history that are read",
            "patience": "epochs without a better validation accuracy before the end",
            "pretrained_vectors": (
                "start from word vectors learnt from the training split (gensim)"
            ),
        },
    ),
    "simpletod": Training(
        SimpleTodTrainingConfig,
        "pytest_dstfuzz.models.simpletod.training:train_simpletod",
        {
            "base": (
                "fine-tune this causal language model, a folder or a name on the hub, instead "
                "of training one from random weights"
            ),
            "batch_tokens": "tokens of one step",
            "dropout": "share of activations that are dropped, without --base",
            "vocabulary": "subwords, without --base",
            "hidden": "width, without --base",
            "layers": "layers, without --base",
            "heads": "attention heads, without --base",
            "positions": "tokens of context and belief together, without --base",
            "weight_decay": "weight decay of AdamW",
            "context_weight": "weight of the context's tokens in the loss; a belief's weigh 1",
            "exchange": "share of dialogues whose values are exchanged for others",
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
        help=f"one of {names}; each has options of its own: dstfuzz train-tracker TRACKER --help",
    )


def _train_tracker(given: Namespace) -> None:
    name: str | None = given.name
    if name is None:
        names = ", ".join(TRAININGS)
        raise UserError(
            f"a tracker to train is missing: {names} (see dstfuzz train-tracker --help)"
        )
    training = TRAININGS[name]
    parser = Parser(f"dstfuzz train-tracker {name}", f"Train {name} on labelled dialogues.")
    hints = typing.get_type_hints(training.config)
    texts = {**_COMMON, **training.help}
    for field in dataclasses.fields(training.config):
        _add_field(parser, field, hints[field.name], texts[field.name])
    config = training.config(**vars(parser.parse_all(given.rest)))
    module, _, function = training.function.partition(":")
    with needs_extra(f"training {name}", name, "torch", "transformers", "tokenizers"):
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
    """Return the type of a field, without the ``None`` that stands for no limit."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind: Callable[[str], Any] = next(kind for kind in kinds if kind is not types.NoneType)
    return kind


def _layout(text: str) -> str | None:
    return None if text == "any" else text


def _agent_options(parser: Parser) -> None:
    parser.shared(*_SHARED, *ADAPTER, required=("model", "data"))
    parser.option("--output", type=Path, required=True, metavar="DIR", help="folder for the policy")
    value = parser.value
    value("--split", _splits, "NAME,...", dest="splits", help="splits (default: val,test)")
    profile = choice("validity profile", VALIDITIES)
    value(
        "--validity",
        profile,
        "PROFILE",
        help="validity profile to learn in: strict (default), natural or edit-rate",
    )
    value(
        "--order",
        choice("order of positions", ORDERS),
        "NAME",
        help="what position parameters count through: distance from a slot value (default) or "
        "reading order",
    )
    value(
        "--reward",
        choice("reward", REWARDS),
        "NAME",
        help="broken (pays for turns broken; default) or gini (the thesis')",
    )
    value(
        "--calls",
        integer(1),
        "N",
        help="contexts that the tracker may be asked for (default: 40000)",
    )
    value(
        "--max-minutes",
        positive("minutes"),
        "M",
        help="begin no round that would probably end later",
    )
    value("--attempts", integer(1), "N", help="attempts at each turn (default: 8)")
    value(
        "--ks",
        _ks,
        "K,...",
        help="transformations associated in one variant; one of these is drawn for each dialogue "
        "(default: 1,2,3,4,5,6)",
    )
    taken = "take only so many dialogues of each split"
    value("--max-dialogues", integer(1), "N", help=taken)
    value(
        "--dialogues",
        choice("choice of dialogues", DIALOGUES),
        "NAME",
        help="train on those that the tracker gets right at every turn (right; default) or on "
        "all; the ones held out are the same",
    )
    goes_on = "go on from the last round in the output folder"
    parser.option("--resume", action="store_true", help=goes_on)
    parser.option("--tensorboard", type=Path, metavar="DIR", help="write TensorBoard events there")
    ray_options(parser, "; the agent then learns after each round, and not between attempts")


def _train_agent(options: Namespace) -> None:
    on_ray = given_ray(options)
    given = {name: value for name, value in vars(options).items() if value is not None}
    for name in RAY_OPTIONS:
        given.pop(name, None)
    with needs_extra("training an agent", "train", "torch"):
        from pytest_dstfuzz.agents.training.train_agent import AgentRun, train_agent  # noqa: PLC0415
        from pytest_dstfuzz.agents.training.trainer import TrainingConfig  # noqa: PLC0415
    names = ("calls", "attempts", "reward", "ks", "seed")
    config = TrainingConfig(**{name: given.pop(name) for name in names if name in given})
    adapter = adapter_options(given)
    run = AgentRun(**given, adapter=adapter, training=config)
    if on_ray is None:
        result = train_agent(run, say)
    else:
        from pytest_dstfuzz.scale.cluster.rounds import rounds_on_ray  # noqa: PLC0415 - needs numpy

        # While Ray is there, what is printed is taken for Ray's own.
        shown = partial(print, file=sys.stdout, flush=True)
        with rounds_on_ray(on_ray) as rollouts:
            result = train_agent(run, shown, rollouts=rollouts)
    attempts = sum(item.attempts for item in result.history)
    rounds = "1 round" if len(result.history) == 1 else f"{len(result.history)} rounds"
    print(
        f"{rounds}, {attempts:,} attempts (ended by {result.ended_by}); "
        f"use it with --dst-search=agent:{result.policy}"
    )


def _bandit_options(parser: Parser) -> None:
    names = [name for name in _SHARED if name != "attack"]
    parser.shared(*names, *ADAPTER, required=("model", "data"))
    parser.option("--output", type=Path, required=True, metavar="DIR", help="folder for the scorer")
    value = parser.value
    value("--split", _splits, "NAME,...", dest="splits", help="splits (default: val)")
    profile = choice("validity profile", VALIDITIES)
    learned_in = "validity profile to learn in: natural (default), strict or edit-rate"
    value("--validity", profile, "PROFILE", help=learned_in)
    calls = "contexts that the tracker may be asked for (default: 100000)"
    value("--calls", integer(1), "N", help=calls)
    value("--max-minutes", positive("minutes"), "M", help="begin no dialogues later")
    value("--attempts", integer(1), "N", help="attempts at each turn (default: 12)")
    taken = "take only so many dialogues of each split"
    value("--max-dialogues", integer(1), "N", help=taken)


def _train_bandit(options: Namespace) -> None:
    given = {name: value for name, value in vars(options).items() if value is not None}
    with needs_extra("training a bandit", "train", "torch"):
        from pytest_dstfuzz.agents.training.train_bandit import ScorerRun, train_bandit  # noqa: PLC0415
    run = ScorerRun(**{"adapter": adapter_options(given), **given})
    result = train_bandit(run, say)
    print(
        f"{result.attempts:,} attempts, {result.calls:,} calls (ended by {result.ended_by}); "
        f"use it with --dst-search=bandit:{result.scorer}"
    )


def _splits(text: str) -> tuple[str, ...]:
    splits = tuple(canonical_split(part) for part in text.split(","))
    if len(set(splits)) < len(splits):
        raise ValueError("names a split twice")
    return splits


def _ks(text: str) -> tuple[int, ...]:
    highest = len(TRANSFORMATIONS)
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= highest for part in parts):
        raise ValueError(f"must be whole numbers from 1 to {highest}, parted by commas")
    return tuple(sorted({int(part) for part in parts}))


def _experiment_options(parser: Parser) -> None:
    known = choice("experiment", EXPERIMENTS)
    about = "the experiment; its options follow"
    parser.add_argument("name", metavar="NAME", type=known, help=about)


def _experiment(given: Namespace) -> int:
    main: Callable[[list[str]], int] = importlib.import_module(
        f"pytest_dstfuzz.papers.{given.name}"
    ).main
    return main(given.rest)


COMMANDS = (
    Command(
        "train-tracker",
        "train TRADE or SimpleTOD on labelled dialogues",
        "every finished epoch is kept; the same command with --resume goes on from there",
        """\
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any
  dstfuzz train-tracker trade --data multiwoz21 --output my-trade --layout any --resume
  dstfuzz train-tracker simpletod --data multiwoz21 --output my-simpletod --base distilgpt2
  pytest --dst-model=trade --dst-checkpoint=my-trade     tests what was trained""",
        _tracker_options,
        _train_tracker,
        chooses=True,
    ),
    Command(
        "train-agent",
        "train the agent that chooses what to change, against a tracker",
        "every finished round is kept; the same command with --resume goes on from there",
        """\
  dstfuzz train-agent --model trade --data multiwoz21 --split val,test --output my-agent
  dstfuzz train-agent --model trade --data multiwoz21 --output my-agent --resume
  dstfuzz train-agent --model trade --data multiwoz21 --output my-agent --ray --ray-actors 4
  dstfuzz train-agent --model mybot.tracker:track --data talks.jsonl --split test --output my-agent
  pytest --dst-model=trade --dst-search=agent:my-agent   tests with what was trained""",
        _agent_options,
        _train_agent,
        about="Train the agent that chooses what to change, against a tracker.\n\n"
        "It is trained on 80 % of the dialogues that the tracker gets right at every turn (with\n"
        "--dialogues all on those that it gets wrong too), and never sees the other 20 %; the\n"
        "policy's metadata names those. Turns without labels are judged by the tracker's own\n"
        "clean answers. With --ray the dialogues of a round are played by actors of Ray, and the\n"
        "agent learns after each round: another policy, the same for any number of actors.",
    ),
    Command(
        "train-bandit",
        "train the scorer of edits that the search bandit takes, against a tracker",
        "interrupted, it is fitted to what was tried so far, and written",
        """\
  dstfuzz train-bandit --model trade --data multiwoz21 --output my-bandit
  dstfuzz train-bandit --model mybot.tracker:track --data talks.jsonl --output my-bandit
  pytest --dst-model=trade --dst-search=bandit:my-bandit   tests with what was trained""",
        _bandit_options,
        _train_bandit,
        about="Train the scorer of edits that the search bandit takes, against a tracker.\n\n"
        "Every turn gets some attempts, by chance at first; the scorer learns which edits change\n"
        "which slots. No labels are needed. Whoever compares searches afterwards does so on\n"
        "dialogues of other splits: all dialogues of these are played while the calls last.",
    ),
    Command(
        "experiment",
        "repeat an experiment of the method",
        "finished campaigns of rq2, rq3 and curves are kept where they had --output, and the same "
        "command goes on from there; any other experiment leaves no result",
        "  dstfuzz experiment rq1 --help",
        _experiment_options,
        _experiment,
        about="Run one of:\n"
        + "\n".join(f"  {name:<6} {what}" for name, what in EXPERIMENTS.items()),
        chooses=True,
    ),
)
