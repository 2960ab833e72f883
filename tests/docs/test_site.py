"""The site builds strictly, and its pages load nothing from another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from pages_of_docs import DOCS, ROOT

#: What a page loads, as against what it links to.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?([^\"' >]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon|prefetch))"
    r"[^>]*\bhref=[\"']?([^\"' >]+)"
    r"|url\([\"']?(https?:[^)\"']+)"
)


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it.

    Only the nightly tests read the report of the demo, so the others have one of few turns.
    """
    for module in ("mkdocs", "material", "mkdocstrings", "torch", "jinja2"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    turns = "20" if "not nightly" in request.config.getoption("markexpr") else "300"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DEMO_TURNS": turns}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.nightly
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in (*pages, *site.rglob("*.css")):
        loaded = ["".join(found) for found in LOADED.findall(page.read_text(encoding="utf-8"))]
        elsewhere = [source for source in loaded if re.match(r"(?:https?:)?//", source)]
        assert elsewhere == [], page.relative_to(site)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the ids that links to a file may name: of what is no page, none."""
    if page.suffix != ".html":
        return frozenset([""])
    found = re.findall(r"""\bid=(?:"([^"]+)"|'([^']+)'|([^"' >]+))""", page.read_text("utf-8"))
    return frozenset(["", *("".join(groups) for groups in found)])


@pytest.mark.nightly
def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    broken = []
    for page in site.rglob("*.html"):
        if page.name in ("404.html", "report.html"):
            continue  # the first has addresses from the root, the second is a report of its own
        for target in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', page.read_text(encoding="utf-8")):
            place, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (page.parent / place).resolve() if place else page
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file() or anchor not in anchors(there):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_reference_pages_say_where_their_content_is_in_the_repository() -> None:
    texts = {page.name: page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md")}
    told = re.compile(r"If you read this page in the repository, it .*?`")
    # The table of the extension modules is in its page, and the page is in the repository.
    del texts["extension-modules.md"]
    for name, text in texts.items():
        before, mark, _ = text.partition("<!-- generated")
        assert mark, name
        assert told.search(" ".join(before.split())), name


@pytest.mark.nightly
def test_reference_pages_are_written_from_the_code(site: Path) -> None:
    shown = {
        name: (site / "reference" / f"{name}.html").read_text("utf-8")
        for name in ("options", "api")
    }
    assert "--dst-max-seconds" in shown["options"]
    assert 'id="pytest_dstfuzz.dialogue.dialogues.Context' in shown["api"]


def test_llms_txt_lists_each_page_with_its_markdown(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# pytest-dstfuzz\n\n> ")
    listed = re.findall(r"^- \[.+?\]\((\S+\.md)\): \S", text, re.MULTILINE)
    assert len(listed) > 40
    assert all((site / page).is_file() for page in listed)
