"""What every page is made of: templates, and one style, script and data that it may run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pytest_dstfuzz.report.html.embed import content_policy, script_json

_TEMPLATES: Final = Path(__file__).with_name("templates")


def environment(**more: Any) -> Environment:
    """Return what renders the templates, every text escaped; ``more`` is for jinja2."""
    loader = FileSystemLoader(_TEMPLATES)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **more)


def insides(script: str, data: Any) -> dict[str, Any]:
    """Return style, script, data and content policy of a page, by their names in templates.

    Args:
        script: name of its file.
        data: what the script draws.
    """
    parts = {"style": _file("style.css"), "script": _file(script)}
    return {
        **{name: trusted(text) for name, text in parts.items()},
        "data": trusted(script_json(data)),
        "policy": content_policy({"script": parts["script"], "style": parts["style"]}),
    }


def trusted(text: str) -> Markup:
    """Let a text into a page as it is: one that this package made, and that is safe there."""
    return Markup(text)  # noqa: S704 - style, script and plots are ours, the data is escaped


def _file(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")
