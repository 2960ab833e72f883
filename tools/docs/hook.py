"""The functions that MkDocs calls while it builds the site. See `pages` for the form of pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, InclusionLevel

from tools.docs.gallery import demo_report
from tools.docs.pages import COPIES, ROOT, body, expand, in_site, page_of, sources
from tools.docs.reference import GENERATED

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

#: Text of each page as it is published.
_TEXTS: dict[str, str] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Prepare all pages, and add copies of the files that they link to and the demo's report."""
    copies: set[Path] = set()
    for path in sources():
        page = page_of(path)
        text = expand(body(path.read_text(encoding="utf-8")), page, GENERATED)
        _TEXTS[page], wanted = in_site(text, page)
        copies.update(wanted)
    for path in sorted(copies):
        files.append(
            File.generated(
                config,
                f"{COPIES}/{path.as_posix()}",
                content=(ROOT / path).read_bytes(),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    files.append(
        File.generated(
            config, "gallery/report.html", content=demo_report(config.extra["demo_turns"])
        )
    )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of the page that was prepared."""
    del markdown, config, files
    return _TEXTS[page.file.src_uri]


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Store the navigation. ``llms.txt`` lists it after all pages have been read."""
    del files
    config.extra["dstfuzz_nav"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write ``llms.txt``, and each page as Markdown beside its HTML file."""
    site = Path(config.site_dir)
    for page, text in _TEXTS.items():
        place = site / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for item in config.extra["dstfuzz_nav"].items:
        lines += _listed(item)
    (site / "llms.txt").write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _listed(item: Any) -> list[str]:
    """Return the lines of a section or of a page."""
    if item.is_page:
        about = item.meta.get("description", "")
        return [f"- [{item.title}]({item.file.src_uri})" + (f": {about}" if about else "")]
    lines = [line for child in item.children for line in _listed(child)]
    return ["", f"## {item.title}", "", *lines]
