"""What does a search find for its calls to the tracker? Searches at equal calls, as curves.

``dstfuzz experiment curves --model trade --data PATH --searches random,near-value,agent:PATH``
takes the dialogues that the tracker gets right at every turn and that no policy was trained on.
Each search gets as many calls to the tracker as the others, ``--budgets`` a turn on average, and
spends them in two ways: on every turn alike, or on those that are not broken yet. What counts are
distinct weaknesses (pairs of a weakness and a slot), turns broken and, under `natural`, how many
of 1,000 user turns are typed as a violation that was found.

Policies of several trainings stand for one search: ``agent:A,agent:B,agent:C`` are the agent, and
a name of your own tells others apart: ``other=agent:D,other=agent:E``. Each is listed, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.papers.command_line import (
    begin,
    comparison_options,
    ground_parser,
    hand_out,
    ks,
    several,
    taken,
)
from pytest_dstfuzz.papers.contenders import parse_contenders
from pytest_dstfuzz.papers.curve_tables import tables
from pytest_dstfuzz.papers.equal_calls import CurvesConfig, run_curves

_EXAMPLES = """\
  dstfuzz experiment curves --model trade --data PATH --split test --output DIR \\
      --searches random,near-value,agent:A,agent:B,agent:C"""
_SEARCHES = "random,near-value"


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name."""
    given = vars(_parser().parse_all(arguments))
    config = CurvesConfig(**taken(given, CurvesConfig))
    config.check()
    all_right = {"all_right": True, "shrink": True}
    ground, folder = begin({**given, **all_right}, config.contenders, "curves", arguments)
    hand_out(tables(run_curves(ground, config)), folder)
    return 0


def _parser() -> Parser:
    parser = ground_parser("curves", __doc__ or "", _EXAMPLES)
    parser.shared("validity", "noise", "slip_rate", "edits")
    comparison_options(parser)
    parser.value(
        "--searches",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help=f"default: {_SEARCHES}",
        dest="contenders",
        default=_SEARCHES,
    )
    parser.value("--subject", str, "LABEL", help="the search to compare with (default: the last)")
    budgets = "calls a turn, on average (default: 8,32)"
    parser.value("--budgets", several(integer(1)), "N,...", help=budgets)
    parser.value(
        "--k",
        _ks,
        "K,LABEL=K,...",
        help="transformations, and those of a search of its own, such as 3,random=6 (default: 3)",
        dest="ks",
    )
    parser.value("--keep", _ids, "IDS", help="only these dialogues: ids, or a file of ids")
    parser.value("--leave-out", _ids, "IDS", help="not these dialogues: ids, or a file of ids")
    parser.option(
        "--each-operator-out",
        action="store_true",
        help="compare with random once more for each operator, without it",
    )
    return parser


def _ks(text: str) -> Mapping[str, int]:
    """Read ``3,random=6``: label -> number of transformations, ``""`` = of all others."""
    found = {"": 3}
    for part in text.split(","):
        label, _, number = part.strip().rpartition("=")
        (found[label],) = ks(number)
    return found


def _ids(text: str) -> tuple[str, ...]:
    """Read ids of dialogues with commas between them, or the name of a file that has them."""
    path = Path(text)
    listed = read_text(path, "list of dialogues") if path.is_file() else text
    return tuple(dict.fromkeys(listed.replace(",", " ").split()))
