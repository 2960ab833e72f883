"""Turns the pages of the documentation into their published form: includes, generated parts, links.

A page in ``docs/`` is plain Markdown that a code host shows as it is. Two kinds of comments,
each alone on its line, are replaced when the site is built and when the tests read the pages:

- ``<!-- generated: NAME -->`` by what `reference.GENERATED[NAME]` returns;
- ``<!-- included: PATH -->`` by the file of that path in the repository, without its first
  heading and with the others one level below the heading that the comment stands under.

Links may lead out of ``docs/`` to any file of the repository. In the site, such a link goes to the
page that includes the file. If no page includes it, the link goes to a copy of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Folder of the site that holds copies of files of the repository.
COPIES = "files"

_DIRECTIVE = re.compile(r"^<!-- (generated|included): (\S+) -->$")
_FENCE = re.compile(r"^ *(```+|~~~+)")
_HEADING = re.compile(r"^(#+)( .*)$")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced code block."""

    language: str
    text: str
    #: Line of its first fence, from 1, in the text that it was found in.
    line: int
    #: What follows the language on the fence, such as ``title="x.py"``.
    info: str = ""


def sources() -> list[Path]:
    """Return the pages of ``docs/``, sorted."""
    return sorted(DOCS.rglob("*.md"))


def body(text: str) -> str:
    """Return a page without its front matter."""
    return re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)


def page_of(path: Path) -> str:
    """Return the name of a page: its path below ``docs/``, with slashes."""
    return path.relative_to(DOCS).as_posix()


def lines_with_code(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield for each line its number (from 1), its text and whether it is code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if fence:
            yield number, line, True
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
            yield number, line, True
        else:
            # An indented block belongs to a paragraph of its own; lists are indented by less.
            yield number, line, line.startswith("    ") and not line.lstrip().startswith(("-", "|"))


def blocks(text: str) -> list[Block]:
    """Return the fenced code blocks of a Markdown text in order, without indentation."""
    found: list[Block] = []
    fence, words, body, start, indent = "", [""], [""], 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, start, body = mark[1], number, []
            indent = len(line) - len(line.lstrip())
            words = line.strip().removeprefix(fence).strip().split(maxsplit=1) or [""]
        elif fence and mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            code = "".join(f"{part[indent:]}\n" for part in body)
            found.append(Block(words[0], code, start, words[1] if len(words) > 1 else ""))
            fence = ""
        elif fence:
            body.append(line)
    return found


def expand(text: str, page: str, generated: Mapping[str, Callable[[], str]]) -> str:
    """Return the text of a page with its comments replaced.

    Args:
        text: Markdown as it stands in the repository.
        page: path of the page below ``docs/``.
        generated: for each name, a function that returns the text.

    Raises:
        KeyError: a comment names a text that is not generated.
        FileNotFoundError: an included file does not exist.
    """
    out: list[str] = []
    level = 1
    for _, line, code in lines_with_code(text):
        if not code and (heading := _HEADING.match(line)):
            level = len(heading[1])
        directive = None if code else _DIRECTIVE.match(line)
        if directive is None:
            out.append(line)
        elif directive[1] == "generated":
            out.append(generated[directive[2]]().strip("\n"))
        else:
            out.append(_included(directive[2], level, page))
    return "\n".join(out) + "\n"


def _included(path: str, level: int, page: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    out: list[str] = []
    for _, line, code in lines_with_code(text):
        heading = None if code else _HEADING.match(line)
        if heading is not None and len(heading[1]) == 1:
            continue
        out.append(
            line if heading is None else f"{'#' * (len(heading[1]) - 1 + level)}{heading[2]}"
        )
    here = PurePosixPath("docs", page).parent.as_posix()

    def moved(target: str) -> str:
        place, _, anchor = target.partition("#")
        if not place:
            return target
        there = os.path.normpath(PurePosixPath(path).parent / place)
        return os.path.relpath(there, here) + (f"#{anchor}" if anchor else "")

    return map_links("\n".join(out), moved).strip("\n")


def map_links(text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` to the target of each relative link in a Markdown text."""
    out = []
    for _, line, code in lines_with_code(text):
        if code:
            out.append(line)
            continue
        spans = [match.span() for match in _CODE.finditer(line)]

        def new(match: re.Match[str], spans: list[tuple[int, int]] = spans) -> str:
            inside = any(start < match.start() < end for start, end in spans)
            if inside or re.match(r"[a-z]+:", match[2]):
                return match[0]
            return f"{match[1]}{change(match[2])}{match[3]}"

        out.append(_LINK.sub(new, line))
    return "\n".join(out) + ("\n" if text.endswith("\n") else "")


def links(text: str) -> list[str]:
    """Return the relative targets of the links of a Markdown text."""
    found: list[str] = []

    def note(target: str) -> str:
        found.append(target)
        return target

    map_links(text, note)
    return found


@cache
def pages_that_include() -> dict[str, str]:
    """Return for each included file of the repository the page that includes it."""
    found: dict[str, str] = {"README.md": "index.md"}
    for path in sources():
        for _, line, code in lines_with_code(path.read_text(encoding="utf-8")):
            directive = None if code else _DIRECTIVE.match(line)
            if directive is not None and directive[1] == "included":
                found.setdefault(directive[2], page_of(path))
    return found


def outside(target: str, page: str) -> Path | None:
    """Return the file outside ``docs/`` to which a link of a page leads.

    Args:
        target: the target of the link, without an anchor.
        page: path of the page below ``docs/``.

    Returns:
        A path relative to the repository; of a folder that has one, its README. ``None`` = the
        link stays within ``docs/``.
    """
    there = Path(os.path.normpath(Path("docs", page).parent / target))
    if there.parts[:1] == ("docs",):
        return None
    readme = there / "README.md"
    return readme if (ROOT / readme).is_file() else there


def in_site(text: str, page: str) -> tuple[str, list[Path]]:
    """Return a page with the links of the site, and the files that have to be copied.

    Raises:
        ValueError: a link leads to Markdown that is on no page.
    """
    copies: list[Path] = []

    def change(target: str) -> str:
        place, _, anchor = target.partition("#")
        there = outside(place, page) if place else None
        if there is None:
            return target
        own = pages_that_include().get(there.as_posix())
        if own is None:
            if there.suffix == ".md":
                raise ValueError(f"{page}: no page includes {there}, which it links to")
            copies.append(there)
            own = f"{COPIES}/{there.as_posix()}"
            anchor = ""
        up = os.path.relpath(own, PurePosixPath(page).parent)
        return up + (f"#{anchor}" if anchor else "")

    return map_links(text, change), copies
