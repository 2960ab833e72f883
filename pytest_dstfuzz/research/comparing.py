"""Options and running of the commands that compare searches on held-out dialogues."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config import ADAPTER, masked_words
from pytest_dstfuzz.config.command_line import Parser, adapter_options, whole_number
from pytest_dstfuzz.files import check_writable
from pytest_dstfuzz.research.comparison import Comparison, GroundConfig, prepare
from pytest_dstfuzz.research.contenders import Contender
from pytest_dstfuzz.research.list_parsers import ks, splits, validities, whole_numbers

_SHARED: Final = ("model", "checkpoint", "data", "device", "batch_size", "attack", *ADAPTER)
_SHARED_EDITS: Final = ("max_edit_rate", "flat_edit_rate", "redraws", "lock")


def comparison_parser(name: str, description: str, examples: str) -> Parser:
    """Return a parser with the options that all comparisons have."""
    parser = Parser(f"dstfuzz experiment {name}", description, examples)
    parser.shared(*_SHARED, *_SHARED_EDITS, required=("model",))
    parser.value(
        "--split",
        splits,
        "SPLIT,...",
        help="those that the agent was trained with (default: val,test)",
        dest="splits",
    )
    parser.value("--k", ks, "K,...", help="transformations (default: 1,2,3,4,5,6)", dest="ks")
    parser.value(
        "--validity", validities, "PROFILE,...", help="strict, edit-rate or both", dest="validities"
    )
    parser.value(
        "--seeds",
        whole_numbers(0),
        "N,...",
        help="seeds of the runs of a search; policies take turns with them (default: 0,1,2)",
    )
    parser.value("--max-dialogues", whole_number(1), "N", help="draw at most N held-out dialogues")
    parser.value("--jobs", whole_number(1), "N", help="processes (default: 1)")
    parser.value(
        "--output",
        Path,
        "DIR",
        help="write the table into this folder, and each campaign as soon as it is done: "
        "the same command goes on from there",
    )
    return parser


def begin(
    given: dict[str, Any],
    contenders: Sequence[Contender],
    name: str,
    arguments: Sequence[str],
) -> tuple[Comparison, Path | None]:
    """Find the held-out dialogues; what is used of ``given`` is taken out of it.

    Args:
        given: values of the options.
        contenders: the searches to compare.
        name: of the experiment.
        arguments: as the user typed them.

    Raises:
        UserError: an argument, the data or the tracker will not do.
    """
    folder: Path | None = given.pop("output")
    jobs = given.pop("jobs") or 1
    names = [item.name for item in fields(GroundConfig) if item.name in given]
    values = {name: value for name in names if (value := given.pop(name)) is not None}
    command = shlex.join(masked_words(["dstfuzz", "experiment", name, *arguments]))
    config = GroundConfig(**values, adapter=adapter_options(given), command=command)
    if folder is not None:
        check_writable(folder / f"{name}.md")
    searches = [search for item in contenders for search in item.searches]
    return prepare(config, searches, folder=folder, jobs=jobs, say=say), folder


def say(line: str) -> None:
    """Tell the user what is going on, beside the table."""
    print(line, file=sys.stderr, flush=True)
