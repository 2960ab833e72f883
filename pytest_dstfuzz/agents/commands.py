"""The commands that train a search: ``train-agent`` and ``train-bandit``."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

from pytest_dstfuzz.cli.command import Command, say
from pytest_dstfuzz.config import ADAPTER, VALIDITIES, canonical_split
from pytest_dstfuzz.config.command_line import Parser, adapter_options
from pytest_dstfuzz.config.parsers import choice, integer, positive
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.scale.commands import RAY_OPTIONS, ray_options, read_ray_options
from pytest_dstfuzz.transformations import TRANSFORMATIONS

ORDERS = ("distance", "reading")
REWARDS = ("broken", "gini")
DIALOGUES = ("right", "all")
_SHARED = (
    *("model", "checkpoint", "data", "slots", "attack", "seed", "device"),
    "batch_size",
)


def _agent_options(parser: Parser) -> None:
    parser.shared(*_SHARED, *ADAPTER, required=("model", "data"))
    parser.option("--output", type=Path, required=True, metavar="DIR", help="folder for the policy")
    value = parser.value
    value(
        "--split", _splits, "NAME,...", dest="splits", help="splits of the data (default: val,test)"
    )
    profile = choice("validity profile", VALIDITIES)
    value(
        "--validity",
        profile,
        "PROFILE",
        help="validity profile, which limits the edits during training: strict (default), natural "
        "or edit-rate",
    )
    value(
        "--order",
        choice("order of positions", ORDERS),
        "NAME",
        help="order in which the positions of edits are counted: distance from a slot value "
        "(default) or reading order",
    )
    value(
        "--reward",
        choice("reward", REWARDS),
        "NAME",
        help="reward of an attempt: broken (it breaks a turn; default) or gini (the reward of the "
        "thesis)",
    )
    _length_options(parser)
    goes_on = "continue from the last round in the output folder"
    parser.option("--resume", action="store_true", help=goes_on)
    parser.option("--tensorboard", type=Path, metavar="DIR", help="folder for TensorBoard events")
    ray_options(parser, "; the agent then learns after each round instead of between attempts")


def _length_options(parser: Parser) -> None:
    """Add the options that limit the training and its variants."""
    value = parser.value
    value(
        "--calls",
        integer(1),
        "N",
        help="maximum number of contexts (dialogues up to a turn) that are sent to the tracker "
        "(default: 40000)",
    )
    value(
        "--max-minutes",
        positive("minutes"),
        "M",
        help="maximum number of minutes: a round is not started if it would probably end later",
    )
    value(
        "--attempts",
        integer(1),
        "N",
        help="number of variants that the agent tries for each turn (default: 8)",
    )
    value(
        "--ks",
        _ks,
        "K,...",
        help="numbers of transformations that a variant may combine; one of them is drawn for "
        "each dialogue (default: 1,2,3,4,5,6)",
    )
    value("--max-dialogues", integer(1), "N", help="maximum number of dialogues of each split")
    value(
        "--dialogues",
        choice("choice of dialogues", DIALOGUES),
        "NAME",
        help="dialogues to train on: right (the tracker is correct at every turn; default) or "
        "all; the held-out dialogues are the same in both cases",
    )


def _train_agent(options: Namespace) -> None:
    on_ray = read_ray_options(options)
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
        from pytest_dstfuzz.scale.driver import rounds_on_ray  # noqa: PLC0415 - needs numpy

        # Bind stdout now: output to ``sys.stdout`` is attributed to Ray while it runs.
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
    value("--split", _splits, "NAME,...", dest="splits", help="splits of the data (default: val)")
    profile = choice("validity profile", VALIDITIES)
    learned_in = "validity profile during training: natural (default), strict or edit-rate"
    value("--validity", profile, "PROFILE", help=learned_in)
    calls = "maximum number of contexts that are sent to the tracker (default: 100000)"
    value("--calls", integer(1), "N", help=calls)
    value(
        "--max-minutes",
        positive("minutes"),
        "M",
        help="maximum number of minutes; no dialogue is started if they are over",
    )
    value(
        "--attempts",
        integer(1),
        "N",
        help="number of variants that are tried for each turn (default: 12)",
    )
    taken = "maximum number of dialogues of each split"
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
        raise ValueError(f"must be whole numbers from 1 to {highest}, separated by commas")
    return tuple(sorted({int(part) for part in parts}))


TRAIN_AGENT = Command(
    "train-agent",
    "train an agent, which chooses the edits of variants, against a tracker",
    "every finished round is saved, and the same command with --resume continues",
    """\
  dstfuzz train-agent --model trade --data multiwoz21 --split val,test --output my-agent
  dstfuzz train-agent --model trade --data multiwoz21 --output my-agent --resume
  dstfuzz train-agent --model trade --data multiwoz21 --output my-agent --ray --ray-actors 4
  dstfuzz train-agent --model mybot.tracker:track --data talks.jsonl --split test --output my-agent
  pytest --dst-model=trade --dst-search=agent:my-agent   tests with the trained agent""",
    _agent_options,
    _train_agent,
    about="Train an agent, which chooses the edits of variants, against a tracker.\n"
    "\n"
    "It is trained on 80 % of the dialogues in which the tracker is correct at every turn\n"
    "(with --dialogues all, also on the others). The other 20 % are held out, and the\n"
    "metadata of the policy names them. Turns without labels are compared with the tracker's\n"
    "own clean answers. With --ray, actors of Ray play the dialogues of a round, and the\n"
    "agent learns after each round. This gives another policy, which is the same for any\n"
    "number of actors.",
)

TRAIN_BANDIT = Command(
    "train-bandit",
    "train a scorer of edits for the search bandit against a tracker",
    "the scorer is fitted to the attempts so far, and saved",
    """\
  dstfuzz train-bandit --model trade --data multiwoz21 --output my-bandit
  dstfuzz train-bandit --model mybot.tracker:track --data talks.jsonl --output my-bandit
  pytest --dst-model=trade --dst-search=bandit:my-bandit   tests with the trained scorer""",
    _bandit_options,
    _train_bandit,
    about="Train a scorer of edits for the search bandit against a tracker.\n"
    "\n"
    "Every turn gets several attempts, which are random at first. The scorer learns which\n"
    "edits change which slots, without labels. It may use all dialogues of these splits. To\n"
    "compare searches afterwards, use dialogues of other splits.",
)
