"""``dstfuzz fetch``: download a named data set."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dstfuzz.cli.progress import ProgressLine
from pytest_dstfuzz.config.command_line import Parser

SUMMARY = "download a MultiWOZ version, verified, into the cache folder"
KEPT = "what was downloaded is kept, and the same command goes on from there"

_EXAMPLES = """\
  dstfuzz fetch multiwoz21
  pytest --dst-model=trade --dst-data=multiwoz21         uses what was fetched"""


def run(arguments: Sequence[str]) -> int:
    """Download the data set and print where it is."""
    from pytest_dstfuzz.dialogue.fetch import DATASETS, fetch  # noqa: PLC0415

    parser = Parser(
        "dstfuzz fetch",
        "Download a named data set from where it is published. The cache folder is\n"
        "$DSTFUZZ_CACHE, or else 'dstfuzz' in the user's cache folder.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(sorted(DATASETS))}")
    name = parser.parse_all(arguments).name
    shown: dict[str, ProgressLine] = {}

    def progress(file: str, received: int, size: int | None) -> None:
        shown.setdefault(file, ProgressLine(f"bytes of {file}"))(received, size)

    try:
        folder = fetch(name, progress=progress)
    finally:
        for line in shown.values():
            line.close()
    print(folder)
    return 0
