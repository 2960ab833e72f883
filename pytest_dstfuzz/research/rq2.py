"""The thesis' second question: what does a trained agent add to random sampling?

``dstfuzz experiment rq2 --model trade --data PATH --search agent:PATH`` takes the dialogues
that the tracker gets right at every turn and that no agent was trained on, and runs the
agent and random sampling with k = 1 to 6 associated transformations. The tables are
printed; with ``--output`` they are written as ``rq2.md`` and ``rq2.csv``, with charts.

Policies of several training seeds stand for one search, see `rq3`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.research.comparing import begin, comparison_parser, say
from pytest_dstfuzz.research.contenders import AGENT, parse_contenders
from pytest_dstfuzz.research.rq2_measure import Rq2Config, run_rq2
from pytest_dstfuzz.research.rq2_table import markdown, write_rq2

_EXAMPLES = """\
  dstfuzz experiment rq2 --model trade --data PATH --output DIR \\
      --search agent:A,agent:B,agent:C
  dstfuzz experiment rq2 --model trade --data PATH --search agent:A,gini=agent:D"""


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name.

    Raises:
        UserError: an argument, the data or the tracker will not do.
    """
    given = vars(_parser().parse_all(arguments))
    contenders = given.pop("contenders") or parse_contenders(AGENT)
    own = ("variants", "ks", "validities")
    values = {name: value for name in own if (value := given.pop(name)) is not None}
    config = Rq2Config(contenders, **values)
    # A search that cannot be compared is found out before the tracker is measured.
    say(f"to compare: {', '.join(item.label for item in config.compared)}")
    ground, folder = begin(given, config.compared, "rq2", arguments)
    table = run_rq2(ground, config)
    print(markdown(table, charts=folder is not None), end="")
    if folder is not None:
        for path in write_rq2(table, folder):
            say(f"written: {path}")
    return 0


def _parser() -> Parser:
    parser = comparison_parser("rq2", __doc__ or "", _EXAMPLES)
    parser.shared("variants")
    parser.value(
        "--search",
        parse_contenders,
        "[LABEL=]SEARCH,...",
        help="default: agent; random is put beside them",
        dest="contenders",
    )
    return parser
