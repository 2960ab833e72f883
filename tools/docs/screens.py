"""Shows in the pages what their commands print now: ``python -m tools.docs.screens [PAGE ...]``.

Each shell block of a page is carried out in a new folder, with the files that the page gives. Each
line of the text block after it becomes the line of that output that resembles it most, in the
order of the output. So lines that a page leaves out stay left out. Read the changes before you
commit them: a line without a successor stays as it is, and the tests of the pages find it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from rapidfuzz import fuzz, process

from tools.docs.pages import ROOT, Block, blocks

#: Pages whose text blocks show what the block or the command in the text before them prints.
PAGES: Final = (
    "README.md",
    "docs/guides/report.md",
    "docs/tutorials/first-bot.md",
    "docs/tutorials/first-reply.md",
    "docs/tutorials/first-tool-calls.md",
    "docs/tutorials/into-ci.md",
    "docs/tutorials/neural-tracker.md",
    "docs/tutorials/own-conversations.md",
)
#: Minimum share of equal characters, in percent, of a line and its successor.
ALIKE: Final = 55
_COMMAND: Final = re.compile(r"^(?:pytest|dstfuzz) .*(?:\\\n.*)*", re.MULTILINE)
_INLINE: Final = re.compile(r"`((?:pytest|dstfuzz) [^`]*)`:\s*$")
_MODULES: Final = {"pytest": "pytest", "dstfuzz": "pytest_dstfuzz.cli"}


def main() -> None:
    """Carry out the commands of pages and show what they print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, help="pages (default: all with screens)")
    for page in parser.parse_args().pages:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        path.write_text(with_screens(text), encoding="utf-8")
        sys.stdout.write(f"{page}\n")


def with_screens(text: str) -> str:
    """Return a page whose text blocks show what its commands print now."""
    lines = text.splitlines(keepends=True)
    parts = blocks(text)
    printed: list[str] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(parts):
            if block.language == "shell" and "http://" not in block.text:  # A service would wait.
                for command in _COMMAND.findall(block.text):
                    printed = _run(command, Path(folder))
            elif block.language == "text":
                inline = _INLINE.search("".join(lines[: block.line - 1]))
                if inline:
                    printed = _run(inline[1], Path(folder))
                elif printed is None:  # The page shows the screen first.
                    commands = _COMMAND.findall("".join(part.text for part in parts[number:]))
                    printed = _run(commands[0], Path(folder)) if commands else []
                shown = block.text.splitlines()
                new = successors(shown, printed)
                for at, (old, line) in enumerate(zip(shown, new, strict=True), block.line):
                    lines[at] = lines[at].replace(old, line) if old else lines[at]
            elif title := re.search('title="(.*?)"', block.info):
                _save(Path(folder) / title[1], block)
    return "".join(lines)


def successors(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return for each line the printed line that replaces it, in the order of both.

    >>> successors(["cost 12 calls"], ["verdict failed", "cost 14 calls"])
    ['cost 14 calls']
    """
    if not printed:
        return [*shown]
    alike = process.cdist([*shown], [*printed], scorer=fuzz.ratio).astype(float)
    alike[alike < ALIKE] = -1
    best = np.zeros((len(shown) + 1, len(printed) + 1))
    for row in range(len(shown) - 1, -1, -1):
        for column in range(len(printed) - 1, -1, -1):
            both = alike[row, column] + best[row + 1, column + 1]
            best[row, column] = max(both, best[row + 1, column], best[row, column + 1])
    found, row, column = [*shown], 0, 0
    while row < len(shown) and column < len(printed):
        if best[row, column] == best[row, column + 1]:
            column += 1
        elif best[row, column] == best[row + 1, column]:
            row += 1
        else:
            found[row] = printed[column]
            row, column = row + 1, column + 1
    return found


def _save(path: Path, block: Block) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def _run(command: str, folder: Path) -> list[str]:
    """Return the lines that a command of ours prints in a terminal of 100 columns."""
    program, *words = shlex.split(command.replace("\\\n", " ").replace("\n", " "))
    plain = ["-p", "no:cacheprovider", "--color=no"] if program == "pytest" else []
    paths = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(  # noqa: S603  # the pages are our own
        [sys.executable, "-m", _MODULES[program], *plain, *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": paths},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return (done.stdout + done.stderr).splitlines()


if __name__ == "__main__":
    main()
