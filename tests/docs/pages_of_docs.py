"""The README and the pages of ``docs/`` as the site shows them, for the tests beside this file."""

from __future__ import annotations

import re
from functools import cache

from tools.docs.pages import DOCS, ROOT, Block, blocks, body, expand, page_of, sources
from tools.docs.reference import GENERATED

__all__ = ["DOCS", "ROOT", "all_blocks", "blocks", "case", "of", "texts", "title"]


@cache
def texts() -> dict[str, str]:
    """Text of each page by its name, with files included and generated parts left out."""
    nothing = dict.fromkeys(GENERATED, str)
    found = {"README.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    for path in sources():
        name = page_of(path)
        found[name] = expand(body(path.read_text(encoding="utf-8")), name, nothing)
    return found


@cache
def all_blocks() -> list[tuple[str, Block]]:
    """Every code block with the page that it stands on."""
    return [(page, block) for page, text in texts().items() for block in blocks(text)]


def title(block: Block) -> str:
    """Name of the file that a block is to be saved as, or ``""``."""
    named = re.search(r'title="([^"]+)"', block.info)
    return named[1] if named else ""


def of(*languages: str) -> list[tuple[str, Block]]:
    """Blocks of some languages, with their pages."""
    return [(page, block) for page, block in all_blocks() if block.language in languages]


def case(value: object) -> str:
    """Id of a parametrised block."""
    return f"L{value.line}" if isinstance(value, Block) else str(value)
