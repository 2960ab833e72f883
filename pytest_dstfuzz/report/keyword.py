"""Words by which ``pytest -k`` selects a turn, whatever its id is made of."""

from __future__ import annotations

import hashlib
import re

#: What pytest's -k takes as one word, and what it does not.
_WORD = re.compile(r"[\w:+\-.\[\]\\/]+")
_OTHER = re.compile(r"[^\w:+\-.\[\]\\/]+")
#: Words of -k's own language.
_RESERVED = ("and", "or", "not", "none", "true", "false")


def keyword(name: str) -> str:
    """Return the name itself where ``-k`` takes it as one word, or else a word like it.

    >>> keyword("sample-test-0001-t2")
    'sample-test-0001-t2'
    >>> keyword("calls-test-call 17 (monday)-t0")
    'calls-test-call_17_monday_-t0-7dbda4a8'
    """
    if _WORD.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return unlike(name)


def unlike(name: str) -> str:
    """Return a word that reads like the name, and that no other name has."""
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{_OTHER.sub('_', name)}-{digest[:8]}"
