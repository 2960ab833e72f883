"""Each page of a relation is found from the list of all of them."""

from __future__ import annotations

import re

from pages_of_docs import ROOT

FOLDER = ROOT / "docs" / "relations"
PAGES = sorted(path.name for path in FOLDER.glob("*.md") if path.stem != "index")


def test_the_list_has_every_page() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[([a-z-]+)\]\(([a-z-]+\.md)\) \|", text, re.MULTILINE)
    assert sorted(page for _, page in listed) == PAGES
    assert all(page == f"{name}.md" for name, page in listed)
