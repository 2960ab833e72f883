"""Data and code inside a page: data that cannot end its script, code that is named by its hash."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: What could end a script element, begin a comment in it, or end a line of JavaScript.
_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def script_json(value: Any) -> str:
    r"""Return JSON that may stand in a script element: no ``<``, ``>`` or ``&`` is left in it.

    These occur in strings alone, where ``\u003c`` means the same. So do lone surrogates,
    which UTF-8 does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE).encode("utf-8", "backslashreplace").decode("utf-8")


def content_policy(parts: Mapping[str, str]) -> str:
    """Return a content security policy that lets nothing in but the given texts.

    Args:
        parts: ``script`` and ``style``, each with the text of its one element.
    """
    allowed = [f"{name}-src 'sha256-{_digest(text)}'" for name, text in parts.items()]
    return "; ".join(
        ["default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", "form-action 'none'"]
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
