"""``dstfuzz experiment``: the comparisons of the method, as commands."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from pytest_dstfuzz.cli.parser import Parser
from pytest_dstfuzz.errors import unknown_name

SUMMARY = "repeat an experiment of the method"
KEPT = "an experiment that was cut short leaves no result"

#: Experiment -> the module of `pytest_dstfuzz.experiments` whose ``main`` runs it, and
#: what it does. ``main`` takes the arguments that come after the name.
EXPERIMENTS = {
    "rq1": ("rq1", "random sampling with 1 to 6 transformations, by the thesis' table"),
}
_EXAMPLES = """\
  dstfuzz experiment rq1 --help"""


def run(arguments: Sequence[str]) -> int:
    """Run the experiment that the first argument names.

    Raises:
        UserError: there is no such experiment, or its arguments will not do.
    """
    parser = Parser("dstfuzz experiment", "Run one of:\n" + _listed(), _EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the experiment; its options follow")
    name = parser.parse_all(arguments[:1]).name
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    module = importlib.import_module(f"pytest_dstfuzz.experiments.{EXPERIMENTS[name][0]}")
    main: Callable[[Sequence[str]], int] = module.main
    return main(arguments[1:])


def _listed() -> str:
    return "\n".join(f"  {name:<8} {what}" for name, (_, what) in EXPERIMENTS.items())
