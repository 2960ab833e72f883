"""Links of the README and of the documentation lead somewhere, on a code host and in the site."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest
from pages_of_docs import DOCS, ROOT, texts

from tools.docs.pages import body, links, pages_that_include, sources
from tools.docs.reference import GENERATED

FILES = [ROOT / "README.md", *sources()]


@cache
def anchors(path: Path) -> frozenset[str]:
    """Anchors of a Markdown file as code hosts and the site make them of its headings."""
    name = path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else ""
    text = texts()[name] if name in texts() else path.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", body(text), flags=re.DOTALL | re.MULTILINE)
    made = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip()
        made.add(re.sub(r"[\s-]+", "-", slug.lower()))
    return frozenset(made)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target in links(path.read_text(encoding="utf-8")):
        place, _, anchor = target.partition("#")
        there = Path(os.path.normpath(path.parent / place)) if place else path
        if there == DOCS / "gallery" / "report.html":
            continue  # made when the site is built; test_site finds it there
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            broken.append(target)
    assert broken == []


def test_included_files_have_their_links_mapped() -> None:
    for page, text in texts().items():
        if page == "README.md":
            continue
        for target in links(text):
            place = target.partition("#")[0]
            there = Path(os.path.normpath(DOCS / Path(page).parent / place)) if place else DOCS
            assert there.exists() or there.name == "report.html", f"{page}: {target}"


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in sources())


def test_every_page_says_what_it_is_about() -> None:
    for path in sources():
        assert re.match(r"---\ndescription: .+\n---\n\n# .+\n", path.read_text("utf-8")), path


def test_tables_of_the_research_are_included() -> None:
    included = set(pages_that_include())
    found = (path.relative_to(ROOT) for path in (ROOT / "examples").rglob("*.md"))
    # What pytest leaves behind in a folder, it leaves in a hidden one.
    tables = {path.as_posix() for path in found if not re.search(r"(^|/)\.", path.as_posix())}
    assert tables <= included, tables - included


def test_anchors_of_options_exist() -> None:
    # Pages may point to one option; the table has an anchor for each.
    shown = set(re.findall(r"\{ #(dst-[a-z-]+) \}", GENERATED["options"]()))
    assert "dst-max-seconds" in shown
    assert len(shown) > 40


@pytest.mark.parametrize(
    ("page", "answer"),
    [
        ("guides/http.md", "--dst-model=http://localhost:8765"),
        ("concepts/statistics.md", "## `inconclusive`"),
        ("guides/extending.md", "## An operator"),
        ("guides/budgets.md", "--dst-max-seconds=600"),
        ("guides/gates.md", '[tool.dstfuzz.gates.slot."hotel-book people"]'),
    ],
)
def test_the_first_page_leads_to_what_newcomers_ask(page: str, answer: str) -> None:
    assert page in {target.partition("#")[0] for target in links(texts()["index.md"])}
    # Near the top, or under a heading of its own: found without reading the page to its end.
    text = texts()[page]
    assert answer.startswith("#") or text.index(answer) < 1600
    assert answer in text
