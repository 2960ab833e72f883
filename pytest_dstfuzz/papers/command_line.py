"""Parts that the experiment commands share: options, lists of values and output."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from pytest_dstfuzz.config import ADAPTER, VALIDITIES, mask_command_line, parse_option
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.files import check_writable, write_text
from pytest_dstfuzz.papers.comparison import (
    Contender,
    GroundConfig,
    SearchComparison,
    common_settings,
    prepare,
)
from pytest_dstfuzz.transformations import TRANSFORMATIONS

T = TypeVar("T")
_SHARED: Final = (
    *("model", "checkpoint", "data", "device", "batch_size", "attack", *ADAPTER),
    *("max_edit_rate", "flat_edit_rate"),
)


def ground_parser(
    name: str,
    description: str,
    examples: str,
    splits_are: str = "splits of the data",
    default: str = "val,test",
) -> Parser:
    """Return a parser with the options for the tracker and the data."""
    parser = Parser(f"dstfuzz experiment {name}", description, examples)
    parser.shared(*_SHARED, required=("model",))
    help_ = f"{splits_are} (default: {default})"
    read_split = partial(parse_option, "split", shown_as="--split")
    parser.value("--split", several(read_split), "SPLIT,...", help=help_, dest="splits")
    return parser


def add_relation_options(parser: Parser, name: str) -> None:
    """Add the options of an experiment that measures relations one by one."""
    parser.shared("variants", "seed", "validity", "search", "lock")
    parser.value(
        "--relations",
        str,
        "NAME,...",
        help="relations to measure (default: all that apply to the data)",
    )
    most = "use at most N dialogues, drawn by seed"
    parser.value("--max-dialogues", integer(1), "N", help=most)
    output = f"write {name}.md and {name}.csv into this folder"
    parser.value("--output", Path, "DIR", help=output)


def experiment_parser(name: str, description: str, examples: str, splits_are: str) -> Parser:
    """Return a parser that also has options for lists of k and of profiles."""
    parser = ground_parser(name, description, examples, splits_are)
    parser.value(
        "--k",
        ks,
        "K,...",
        help="numbers of transformations in a variant (default: 1,2,3,4,5,6)",
        dest="ks",
    )
    parser.value(
        "--validity",
        validities,
        "PROFILE,...",
        help="validity profiles: strict, natural, edit-rate, or both (strict and edit-rate)",
        dest="validities",
    )
    return parser


def comparison_parser(name: str, description: str, examples: str) -> Parser:
    """Return a parser with the options that all comparisons of searches have."""
    parser = experiment_parser(
        name, description, examples, "splits whose dialogues the agent was trained on"
    )
    comparison_options(parser)
    parser.option(
        "--all-right",
        action="store_true",
        help="if no search was trained on the data, use all dialogues that the tracker gets right "
        "at every turn, not only the fifth that a training would hold out",
    )
    return parser


def comparison_options(parser: Parser) -> None:
    """Add the options that all comparisons of searches have."""
    parser.shared("redraws", "lock")
    parser.value(
        "--seeds",
        several(integer(0)),
        "N,...",
        help="seeds of the campaigns; each search runs once with each seed (default: 0,1,2)",
    )
    parser.value(
        "--max-dialogues", integer(1), "N", help="use at most N held-out dialogues, drawn by seed"
    )
    parser.value("--jobs", integer(1), "N", help="number of processes (default: 1)", default=1)
    parser.value(
        "--output",
        Path,
        "DIR",
        help="write the table and each finished campaign into this folder; after an interrupt, "
        "the same command continues",
    )


def begin(
    given: dict[str, Any],
    contenders: Sequence[Contender],
    name: str,
    arguments: Sequence[str],
) -> tuple[SearchComparison, Path | None]:
    """Find the held-out dialogues. Remove the options for them from ``given``."""
    folder = output_folder(given, name)
    jobs, ground = given.pop("jobs"), parse_arguments(given, GroundConfig)
    settings = common_settings(**given)
    config = GroundConfig(settings, **ground, command=command_line(name, arguments))
    searches = [search for item in contenders for search in item.searches]
    return prepare(config, searches, folder=folder, jobs=jobs, say=say), folder


def parse_arguments(given: dict[str, Any], kind: type) -> dict[str, Any]:
    """Remove the fields of a dataclass from the option values. Return those that the user set."""
    names = [item.name for item in fields(kind) if item.name in given]
    return {name: value for name in names if (value := given.pop(name)) is not None}


def command_line(name: str, arguments: Sequence[str]) -> str:
    """Return the command line as typed, with secrets masked."""
    return shlex.join(mask_command_line(["dstfuzz", "experiment", name, *arguments]))


def output_folder(given: dict[str, Any], name: str) -> Path | None:
    """Remove the output folder from the option values. Check and return it."""
    folder: Path | None = given.pop("output")
    if folder is not None:
        check_writable(folder / f"{name}.md")
    return folder


def hand_out(texts: Mapping[str, str], folder: Path | None) -> None:
    """Print the first of several texts. Write all texts to the folder, if there is one."""
    print(next(iter(texts.values())), end="")
    if folder is not None:
        for name, text in texts.items():
            write_text(folder / name, text)
            say(f"written: {folder / name}")


def hand_out_last(
    found: Iterable[T], texts_of: Callable[[T], Mapping[str, str]], folder: Path | None
) -> None:
    """Print the last of several tables. Each table has the rows of the previous table.

    With a folder, the texts of each table are written at once. So they survive if the run ends
    early.
    """
    texts: Mapping[str, str] = {}
    for table in found:
        texts = texts_of(table)
        if folder is not None:
            for name, text in texts.items():
                write_text(folder / name, text)
    hand_out(texts, folder)


def say(line: str) -> None:
    """Print a line of progress to standard error, apart from the tables."""
    print(line, file=sys.stderr, flush=True)


def several(parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return a parser of lists that are separated by commas. ``parse`` reads each item."""
    return lambda text: tuple(dict.fromkeys(parse(part.strip()) for part in text.split(",")))


def ks(text: str) -> tuple[int, ...]:
    """Read numbers of transformations, such as ``1,2,6``."""
    numbers = several(integer(1))(text)
    most = len(TRANSFORMATIONS)
    if any(number > most for number in numbers):
        raise ValueError(f"must be numbers from 1 to {most}, such as 1,2,{most}")
    return numbers


def validities(text: str) -> tuple[str, ...]:
    """Read names of profiles such as ``strict,edit-rate``. ``both`` means these two profiles."""
    names = several(choice("validity profile", (*VALIDITIES, "both")))(text)
    return ("edit-rate", "strict") if "both" in names else names


def switches(text: str) -> tuple[bool, ...]:
    """Read a list of truth values: ``yes``, ``no`` or ``yes,no``."""
    found = several(str)(text)
    if not set(found) <= {"yes", "no"}:
        raise ValueError("must be yes, no or yes,no")
    return tuple(part == "yes" for part in found)
