"""The ``experiment`` command, which repeats a published experiment."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable

from pytest_dstfuzz.cli.command import Command
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice

#: Experiment -> description. The module of that name in `pytest_dstfuzz.papers` has a ``main``
#: function, which takes the arguments after the name.
EXPERIMENTS = {
    "rq1": "test random variants with 1 to 6 transformations, as in the thesis",
    "rq2": (
        "compare the agent with random variants of 1 to 6 transformations, on held-out dialogues"
    ),
    "rq3": (
        "compare searches at the same number of variants, by their rates and by the turns broken "
        "per call"
    ),
    "curves": (
        "compare searches at the same number of calls, by the weaknesses and broken turns found"
    ),
    "relations": (
        "test one tracker with all relations: how often do its answers change too much or too "
        "little"
    ),
    "hardening": (
        "compare a tracker with hardened ones: right answers, typing errors, all relations"
    ),
    "negotiation": "attack trained negotiators, and measure the effect of adversarial training",
}


def _experiment_options(parser: Parser) -> None:
    known = choice("experiment", EXPERIMENTS)
    about = "the name of the experiment; its own options come after the name"
    parser.add_argument("name", metavar="NAME", type=known, help=about)


def _experiment(given: Namespace) -> int:
    main: Callable[[list[str]], int] = importlib.import_module(
        f"pytest_dstfuzz.papers.{given.name}"
    ).main
    return main(given.rest)


EXPERIMENT = Command(
    "experiment",
    "repeat a published experiment",
    "with --output, the finished campaigns of rq2, rq3 and curves are kept, and the same command "
    "continues; any other experiment leaves no result",
    "  dstfuzz experiment rq1 --help",
    _experiment_options,
    _experiment,
    about="Run one of:\n" + "\n".join(f"  {name:<6} {what}" for name, what in EXPERIMENTS.items()),
    chooses=True,
)
