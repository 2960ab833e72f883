"""Shared parts of the commands that measure trackers under noise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

from pytest_dstfuzz.errors import DstFuzzError


def run(
    about: str, lines: Callable[[argparse.Namespace], Iterable[str]], **numbers: tuple[int, str]
) -> int:
    """Write a table to standard output and return the exit status.

    Args:
        about: docstring of the module.
        lines: yields the lines, of the arguments.
        numbers: further options, each with its default and its help.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--model", required=True, help="what --dst-model takes")
    parser.add_argument("--data", required=True, help="what --dst-data takes")
    parser.add_argument("--split", default="test")
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    try:
        for line in lines(parser.parse_args()):
            print(line, flush=True)
    except DstFuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
