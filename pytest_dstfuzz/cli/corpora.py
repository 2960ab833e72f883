"""What the commands about remembered violations share: where they are, and who has which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError

if TYPE_CHECKING:
    from pytest_dstfuzz.regressions.corpus import Corpus


def add_folder(parser: Parser) -> None:
    """Add the option that names the folder."""
    parser.option(
        "--regressions",
        type=Path,
        metavar="PATH",
        default=Path(".dstfuzz", "regressions"),
        help="folder of remembered violations (default: .dstfuzz/regressions)",
    )


def read_corpora(folder: Path) -> dict[Path, Corpus]:
    """Return what is remembered, by the file of each data set.

    Raises:
        UserError: there is no such file, or one that is broken.
    """
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.regressions.corpus import read_corpus  # noqa: PLC0415

    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise UserError(
            f"no regressions in {folder}: pytest --dst-remember writes them, --regressions PATH "
            "names another folder"
        )
    return {path: read_corpus(path) for path in paths}


def find_ids(corpora: Mapping[Path, Corpus], starts: Sequence[str]) -> dict[Path, list[str]]:
    """Return by file the ids that are named by their starts; one id may be in several files.

    Raises:
        UserError: an id begins with none of them, or with several.
    """
    from pytest_dstfuzz.regressions.corpus import full_id  # noqa: PLC0415 - as above

    known = {name for corpus in corpora.values() for name in corpus}
    names = dict.fromkeys(full_id(known, start) for start in starts)
    found = {path: [name for name in names if name in one] for path, one in corpora.items()}
    return {path: ids for path, ids in found.items() if ids}
