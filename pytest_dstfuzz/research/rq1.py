"""The thesis' first question: how often do random perturbations break a tracker?

``dstfuzz experiment rq1 --model trade --data PATH --split val,test`` takes the dialogues
that the tracker gets right at every turn, so that a failure is the perturbation's doing,
perturbs them by random sampling with k = 1 to 6 associated transformations, and prints
the table; with ``--output`` it is written as ``rq1.md`` and ``rq1.csv``.

`run_rq1` measures, `write_rq1` writes; `main` is the command.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.config import ADAPTER, masked_words
from pytest_dstfuzz.config.command_line import Parser, adapter_options, whole_number
from pytest_dstfuzz.files import check_writable
from pytest_dstfuzz.research.list_parsers import ks, splits, validities
from pytest_dstfuzz.research.rq1_measure import Rq1Config, Rq1Row, Rq1Table, run_rq1
from pytest_dstfuzz.research.rq1_table import markdown_text, write_rq1

__all__ = ["Rq1Config", "Rq1Row", "Rq1Table", "main", "run_rq1", "write_rq1"]

_SHARED = ("model", "checkpoint", "data", "device", "batch_size", "search", "attack", *ADAPTER)
_SHARED_NUMBERS = ("max_edit_rate", "flat_edit_rate", "variants", "seed")


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name.

    Raises:
        UserError: an argument, the data or the tracker will not do.
    """
    given = vars(_parser().parse_all(arguments))
    folder: Path | None = given.pop("output")
    adapter = adapter_options(given)
    config = Rq1Config(
        **{name: value for name, value in given.items() if value is not None},
        adapter=adapter,
        command=shlex.join(masked_words(["dstfuzz", "experiment", "rq1", *arguments])),
    )
    if folder is not None:
        check_writable(folder / "rq1.md")
    table = run_rq1(config, lambda line: print(line, file=sys.stderr, flush=True))
    print(markdown_text(table), end="")
    if folder is not None:
        for path in write_rq1(table, folder):
            print(f"written: {path}", file=sys.stderr)
    return 0


def _parser() -> Parser:
    parser = Parser("dstfuzz experiment rq1", __doc__ or "")
    parser.shared(*_SHARED, *_SHARED_NUMBERS, required=("model",))
    parser.value("--split", splits, "SPLIT,...", help="default: val,test", dest="splits")
    parser.value("--k", ks, "K,...", help="transformations (default: 1,2,3,4,5,6)", dest="ks")
    parser.value(
        "--validity",
        validities,
        "PROFILE",
        help="strict, edit-rate or both (default)",
        dest="validities",
    )
    parser.value("--max-dialogues", whole_number(1), "N", help="draw at most N dialogues by seed")
    parser.value("--output", Path, "DIR", help="write rq1.md and rq1.csv into this folder")
    return parser
