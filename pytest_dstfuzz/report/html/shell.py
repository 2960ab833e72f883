"""What every page is made of: templates, and one style, script and data that it may run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["environment", "insides"]

#: What could end a script element, begin a comment in it, or end a line of JavaScript.
_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_TEMPLATES: Final = Path(__file__).with_name("templates")


def environment(**more: Any) -> Environment:
    """Return what renders the templates, every text escaped; ``more`` is for jinja2."""
    loader = FileSystemLoader(_TEMPLATES)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **more)


def insides(script: str = "", data: Any = None) -> dict[str, Any]:
    """Return style, script (a file), its data and the policy, by their names in templates.

    A page without a script runs none.
    """
    parts = {"style": _file("style.css")}
    if script:
        parts["script"] = _file(script)
    found: dict[str, Any] = {name: trusted(text) for name, text in parts.items()}
    found["policy"] = content_policy(dict(sorted(parts.items())))
    return found | {"data": trusted(script_json(data))} if script else found


def trusted(text: str) -> Markup:
    """Let a text into a page as it is: one that this package made, and that is safe there."""
    return Markup(text)  # noqa: S704 - style, script and plots are ours, the data is escaped


def _file(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def script_json(value: Any) -> str:
    r"""Return JSON that may stand in a script element: no ``<``, ``>`` or ``&`` is left in it.

    These occur in strings alone, where ``\u003c`` means the same. So do lone surrogates,
    which UTF-8 does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE).encode("utf-8", "backslashreplace").decode("utf-8")


def content_policy(parts: Mapping[str, str]) -> str:
    """Return a content security policy that lets in but the texts of script and style."""
    allowed = [f"{name}-src 'sha256-{_digest(text)}'" for name, text in parts.items()]
    return "; ".join(
        ["default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", "form-action 'none'"]
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
