"""The ``experiment`` command, which repeats an experiment."""

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
    "rq1": "random sampling with 1 to 6 transformations, as in the thesis' table",
    "rq2": "the agent beside random sampling with 1 to 6 transformations, held-out dialogues",
    "rq3": "searches at equally many variants: rates and turns broken for every call",
    "curves": "searches at equal calls: weaknesses, turns broken and failing mass over calls",
    "relations": "each relation of one tracker: too sensitive here, too stable there",
    "negotiation": "who talks a trained negotiator into a bad deal, and what hardening helps",
}


def _experiment_options(parser: Parser) -> None:
    known = choice("experiment", EXPERIMENTS)
    about = "the experiment; its options follow"
    parser.add_argument("name", metavar="NAME", type=known, help=about)


def _experiment(given: Namespace) -> int:
    main: Callable[[list[str]], int] = importlib.import_module(
        f"pytest_dstfuzz.papers.{given.name}"
    ).main
    return main(given.rest)


EXPERIMENT = Command(
    "experiment",
    "repeat an experiment of the method",
    "finished campaigns of rq2, rq3 and curves are kept where they had --output, and the same "
    "command goes on from there; any other experiment leaves no result",
    "  dstfuzz experiment rq1 --help",
    _experiment_options,
    _experiment,
    about="Run one of:\n" + "\n".join(f"  {name:<6} {what}" for name, what in EXPERIMENTS.items()),
    chooses=True,
)
