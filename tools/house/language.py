"""Counts the habits of speech that make this project hard to read, in texts of all kinds.

Of 1,000 words of docstrings, pytest, hypothesis and httpx say *if* 5 to 11 times, and hardly
ever begin a clause with *what is*, *of which* or *where it*. ``python -m tools.house.language``
prints the same counts of this repository, by area. With ``--list`` and paths it prints each place.

    python -m tools.house.language
    python -m tools.house.language --list pytest_dstfuzz/gate docs/guides/gates.md

``--sample SEED`` prints 60 docstrings, 60 messages and 10 pages for a reader who marks each
sentence that had to be read twice.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
#: Habit -> what it looks like. The last three stand for a noun or an *if* that is missing.
HABITS: Final = {
    "if": re.compile(r"\bif\b", re.IGNORECASE),
    "what is": re.compile(r"\bwhat (?!if\b|about\b|you\b|we\b)[a-z]", re.IGNORECASE),
    "of which": re.compile(r"\bof (?:which|these|those|them|it|that|whose|whom)\b", re.IGNORECASE),
    "where it": re.compile(
        r"\bwhere (?:it|its|that|this|there|they|these|the|a|an|no|none|nothing|one|all|each|any"
        r"|some|both|only|he|she|his|nobody|somebody|several|many|more)\b",
        re.IGNORECASE,
    ),
}
#: The fewest or the most that is allowed of 1,000 words.
FEWEST: Final = {"if": 4.0}
MOST: Final = {"what is": 1.0, "of which": 1.2, "where it": 0.6}
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_FENCE: Final = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)


class Passage(NamedTuple):
    """A piece of prose, and the place where it stands."""

    file: Path
    line: int
    text: str


def docstrings(file: Path) -> Iterator[Passage]:
    """Yield the docstrings of a module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield Passage(file, node.body[0].lineno, text)


def messages(file: Path) -> Iterator[Passage]:
    """Yield the texts of a module with three words or more: errors, help and reports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in described
            and len(_WORD.findall(node.value)) >= 3
        ):
            yield Passage(file, node.lineno, node.value)


def comments(file: Path) -> Iterator[Passage]:
    """Yield the comments of a module. Comments on adjacent lines count as one."""
    lines: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type != tokenize.COMMENT:
            continue
        row = token.start[0]
        if lines and row != last + 1:
            yield Passage(file, first, "\n".join(lines))
            lines = []
        if not lines:
            first = row
        lines.append(token.string.lstrip("#: "))
        last = row
    if lines:
        yield Passage(file, first, "\n".join(lines))


def pages(file: Path) -> Iterator[Passage]:
    """Yield a page of Markdown without its code blocks, which become empty lines."""
    text = file.read_text(encoding="utf-8")
    yield Passage(file, 1, _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text))


#: Area -> the files, and how their prose is found.
AREAS: Final[dict[str, tuple[tuple[str, ...], Callable[[Path], Iterator[Passage]]]]] = {
    "docstrings": (("pytest_dstfuzz/**/*.py",), docstrings),
    "messages": (("pytest_dstfuzz/**/*.py",), messages),
    "comments": (("pytest_dstfuzz/**/*.py",), comments),
    "docs": (("*.md", "docs/**/*.md", "examples/**/*.md"), pages),
    "changelog": (("changelog.d/*.md",), pages),
    "tests and tools": (("tests/**/*.py", "tools/**/*.py", "examples/**/*.py"), comments),
}


def passages(area: str, within: tuple[Path, ...] = ()) -> Iterator[Passage]:
    """Yield the prose of an area, or only that of some files and folders."""
    patterns, find = AREAS[area]
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            if not within or any(file.is_relative_to(path) for path in within):
                yield from find(file)


def rates(found: list[Passage]) -> tuple[int, dict[str, float]]:
    """Return the number of words, and how often each habit occurs in 1,000 of them."""
    text = "\n".join(" ".join(passage.text.split()) for passage in found)
    words = len(_WORD.findall(text))
    return words, {
        habit: 1000 * len(pattern.findall(text)) / max(words, 1)
        for habit, pattern in HABITS.items()
    }


def places(found: list[Passage]) -> Iterator[str]:
    """Yield a line for each place with a habit that should be rare."""
    for file, line, text in found:
        for habit in MOST:
            for match in HABITS[habit].finditer(re.sub(r"\s", " ", text)):
                row = line + text.count("\n", 0, match.start())
                around = " ".join(text[max(match.start() - 40, 0) : match.end() + 60].split())
                yield f"{file.relative_to(ROOT)}:{row}: {habit}: ... {around} ..."


#: Area -> the size of a sample for a reader.
_SAMPLE: Final = {"docstrings": 60, "messages": 60, "docs": 10}
#: The fewest words of a message that a reader can judge.
_FEWEST_WORDS: Final = 6


def sample(seed: int) -> Iterator[str]:
    """Yield random docstrings, messages and pages, each with a number and its place."""
    draw = random.Random(seed)  # noqa: S311  # a sample for readers
    for area, size in _SAMPLE.items():
        found = [
            passage
            for passage in passages(area)
            if area != "messages" or len(_WORD.findall(passage.text)) >= _FEWEST_WORDS
        ]
        for number, (file, line, text) in enumerate(draw.sample(found, size), 1):
            yield f"=== {area} {number}: {file.relative_to(ROOT)}:{line}\n{text.strip()}\n"


def main(words: list[str]) -> int:
    """Print the counts, or the places."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print each place of a rare habit")
    parser.add_argument("--sample", type=int, metavar="SEED", help="print a sample for a reader")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders, default: all")
    given = parser.parse_args(words)
    if given.sample is not None:
        print("\n".join(sample(given.sample)))
        return 0
    within = tuple(path.resolve() for path in given.paths)
    print(f"{'area':16} {'words':>8}" + "".join(f" {habit:>9}" for habit in HABITS))
    for area in AREAS:
        found = list(passages(area, within))
        count, shares = rates(found)
        print(f"{area:16} {count:8,}" + "".join(f" {share:9.2f}" for share in shares.values()))
        if given.list:
            print("\n".join(places(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
