"""Which search breaks most turns for every call to the tracker, at equal budgets?

``dstfuzz experiment rq3 --model trade --data PATH --searches random,agent:PATH`` takes the
dialogues that the tracker gets right at every turn and that no agent was trained on. Every
search draws through the same masks and gets as many variants run at a turn as the others.
The table is printed; with ``--output`` it is written as ``rq3.md`` and ``rq3.csv``.

Policies of several training seeds stand for one search: ``agent:A,agent:B,agent:C`` are the
agent, and a name of your own tells others apart: ``other=agent:D,other=agent:E``. Each is
compared at the number of transformations at which it does best.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.research.comparing import begin, comparison_parser, say
from pytest_dstfuzz.research.contenders import parse_contenders
from pytest_dstfuzz.research.list_parsers import switches, whole_numbers
from pytest_dstfuzz.research.rq3_measure import Rq3Config, run_rq3
from pytest_dstfuzz.research.rq3_table import markdown, write_rq3

_EXAMPLES = """\
  dstfuzz experiment rq3 --model trade --data PATH --output DIR \\
      --searches random,near-value,greedy,dialtest,agent:A,agent:B,agent:C"""
_SEARCHES = "random,near-value,greedy,dialtest"


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name.

    Raises:
        UserError: an argument, the data or the tracker will not do.
    """
    given = vars(_parser().parse_all(arguments))
    contenders = given.pop("contenders") or parse_contenders(_SEARCHES)
    own = ("budgets", "until_broken", "ks", "validities")
    values = {name: value for name in own if (value := given.pop(name)) is not None}
    config = Rq3Config(contenders, **values)
    ground, folder = begin(given, contenders, "rq3", arguments)
    table = run_rq3(ground, config)
    print(markdown(table), end="")
    if folder is not None:
        for path in write_rq3(table, folder):
            say(f"written: {path}")
    return 0


def _parser() -> Parser:
    parser = comparison_parser("rq3", __doc__ or "", _EXAMPLES)
    parser.value(
        "--searches",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help=f"default: {_SEARCHES}",
        dest="contenders",
    )
    parser.value(
        "--budgets", whole_numbers(1), "N,...", help="variants run at a turn (default: 8,32)"
    )
    parser.value(
        "--until-broken",
        switches,
        "yes|no|yes,no",
        help="yes: leave a turn alone once broken; no: spend the budget (default: yes,no)",
    )
    return parser
