"""What the commands about remembered violations share: where they are, and who has which."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.experiments.arguments import Parser

if TYPE_CHECKING:
    from pytest_dstfuzz.memory.corpus import Corpus


def add_folder(parser: Parser) -> None:
    """Add the option that names the folder."""
    parser.option(
        "--regressions",
        type=Path,
        metavar="PATH",
        default=Path(".dstfuzz", "regressions"),
        help="folder of remembered violations (default: .dstfuzz/regressions)",
    )


def corpus_with(folder: Path, name: str) -> tuple[Path, Corpus]:
    """Return the file that holds a violation, and all that is in it.

    Raises:
        UserError: there is no such folder, a file in it is broken, or none holds it.
    """
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.memory.corpus import read_corpus  # noqa: PLC0415

    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise UserError(
            f"no regressions in {folder}: pytest --dst-remember writes them, --regressions PATH "
            "names another folder"
        )
    corpora = {path: read_corpus(path) for path in paths}
    for path, corpus in corpora.items():
        if name in corpus:
            return path, corpus
    raise unknown_name("regression", name, [known for one in corpora.values() for known in one])
