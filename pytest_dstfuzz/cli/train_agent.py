"""``dstfuzz train-agent``: train the search ``agent`` against a tracker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.config import ADAPTER, canonical_split
from pytest_dstfuzz.config.command_line import Parser, adapter_options, one_of, whole_number
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SUMMARY = "train the agent that chooses what to change, against a tracker"
KEPT = "every finished round is kept; the same command with --resume goes on from there"

ORDERS = ("distance", "reading")
REWARDS = ("broken", "gini")
DIALOGUES = ("right", "all")
_SHARED = (
    *("model", "checkpoint", "data", "slots", "validity", "attack", "seed", "device"),
    "batch_size",
)

_ABOUT = (
    "It is trained on 80 % of the dialogues that the tracker gets right at every turn (with\n"
    "--dialogues all on those that it gets wrong too), and never sees the other 20 %; the\n"
    "policy's metadata names those. Turns without labels are judged by the tracker's own\n"
    "clean answers."
)
_EXAMPLES = """\
  dstfuzz train-agent --model trade --data multiwoz21 --split val,test --output my-agent
  dstfuzz train-agent --model trade --data multiwoz21 --output my-agent --resume
  dstfuzz train-agent --model mybot.tracker:track --data talks.jsonl --split test --output my-agent
  pytest --dst-model=trade --dst-search=agent:my-agent   tests with what was trained"""


def run(arguments: Sequence[str]) -> int:
    """Train the agent, printing a line a round."""
    options = vars(_parser().parse_all(arguments))
    given = {name: value for name, value in options.items() if value is not None}
    with needs_extra("training an agent", "train", "torch"):
        from pytest_dstfuzz.training.train_agent import AgentRun, train_agent  # noqa: PLC0415
        from pytest_dstfuzz.training.trainer import TrainingConfig  # noqa: PLC0415
    names = ("calls", "attempts", "reward", "ks", "seed")
    config = TrainingConfig(**{name: given.pop(name) for name in names if name in given})
    adapter = adapter_options(given)
    run = AgentRun(**given, adapter=adapter, training=config)
    result = train_agent(run, lambda line: print(line, flush=True))
    attempts = sum(item.attempts for item in result.history)
    rounds = "1 round" if len(result.history) == 1 else f"{len(result.history)} rounds"
    print(
        f"{rounds}, {attempts:,} attempts (ended by {result.ended_by}); "
        f"use it with --dst-search=agent:{result.policy}"
    )
    return 0


def _parser() -> Parser:
    parser = Parser("dstfuzz train-agent", f"{SUMMARY.capitalize()}.\n\n{_ABOUT}", _EXAMPLES)
    parser.shared(*_SHARED, *ADAPTER, required=("model", "data"))
    parser.option("--output", type=Path, required=True, metavar="DIR", help="folder for the policy")
    value = parser.value
    value("--split", _splits, "NAME,...", dest="splits", help="splits (default: val,test)")
    value(
        "--order",
        one_of("order of positions", ORDERS),
        "NAME",
        help="what position parameters count through: distance from a slot value (default) or "
        "reading order",
    )
    value(
        "--reward",
        one_of("reward", REWARDS),
        "NAME",
        help="broken (pays for turns broken; default) or gini (the thesis')",
    )
    value(
        "--calls",
        whole_number(1),
        "N",
        help="contexts that the tracker may be asked for (default: 40000)",
    )
    value("--max-minutes", _minutes, "M", help="begin no round that would probably end later")
    value("--attempts", whole_number(1), "N", help="attempts at each turn (default: 8)")
    value(
        "--ks",
        _ks,
        "K,...",
        help="transformations associated in one variant; one of these is drawn for each dialogue "
        "(default: 1,2,3,4,5,6)",
    )
    taken = "take only so many dialogues of each split"
    value("--max-dialogues", whole_number(1), "N", help=taken)
    value(
        "--dialogues",
        one_of("choice of dialogues", DIALOGUES),
        "NAME",
        help="train on those that the tracker gets right at every turn (right; default) or on "
        "all; the ones held out are the same",
    )
    goes_on = "go on from the last round in the output folder"
    parser.option("--resume", action="store_true", help=goes_on)
    parser.option("--tensorboard", type=Path, metavar="DIR", help="write TensorBoard events there")
    return parser


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


def _minutes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise ValueError("must be a number of minutes above 0")
    return number
