"""``dstfuzz experiment``: the comparisons of the method, as commands."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import unknown_name

SUMMARY = "repeat an experiment of the method"
KEPT = (
    "finished campaigns of rq2 and rq3 are kept where they had --output, and the same command "
    "goes on from there; any other experiment leaves no result"
)

#: Experiment -> what it does. The module of `pytest_dstfuzz.research` of that name, with
#: underscores, has a ``main`` that takes the arguments after the name.
EXPERIMENTS = {
    "rq1": "random sampling with 1 to 6 transformations, as in the thesis' table",
    "rq2": "the agent beside random sampling with 1 to 6 transformations, held-out dialogues",
    "rq3": "searches at equal budgets: turns broken for every call, on held-out dialogues",
}
_EXAMPLES = """\
  dstfuzz experiment rq1 --help"""


def run(arguments: Sequence[str]) -> int:
    """Run the experiment that the first argument names."""
    parser = Parser("dstfuzz experiment", "Run one of:\n" + _listed(), _EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the experiment; its options follow")
    name = parser.parse_all(arguments[:1]).name
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    module = importlib.import_module(f"pytest_dstfuzz.research.{name.replace('-', '_')}")
    main: Callable[[Sequence[str]], int] = module.main
    return main(arguments[1:])


def _listed() -> str:
    return "\n".join(f"  {name:<4} {what}" for name, what in EXPERIMENTS.items())
