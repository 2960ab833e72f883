"""What systems say where they have no answer: `I do not know`, `What do you mean?`."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from typing import Final

#: Words that may stand before, in the same sentence.
_OPENING: Final = (
    r"(?:(?:sorry|oh|well|hmm+|hm|um|uh|oops|apologies|unfortunately|(?:i(?: am|'m) |my )?"
    r"(?:sorry|apologies|afraid)(?: about that| for that)?)(?:[,.!:;…-]|,? but)*\s+)*"
)
#: Sentences after the first one in which an answer is given up.
_LOOKED_AT: Final = 2


def is_fallback(text: str, more: tuple[str, ...] = ()) -> bool:
    """Say whether a reply gives no answer and says so, in its first or second sentence.

    Args:
        text: a reply.
        more: further regular expressions, looked for anywhere in it.

    >>> is_fallback("Sorry, I did not quite get that."), is_fallback("Sorry, we are full.")
    (True, False)
    """
    return _gives_up(text) or any(_compiled(one).search(text) for one in more)


@lru_cache(maxsize=1 << 14)
def _gives_up(text: str) -> bool:
    plain = " ".join(text.replace("’", "'").split())
    sentences = re.split(r"(?<=[.!?:])\s+", plain)[:_LOOKED_AT]
    return any(_shipped().match(sentence) for sentence in sentences)


@cache
def _shipped() -> re.Pattern[str]:
    file = resources.files("pytest_dstfuzz") / "resources" / "replies" / "fallbacks.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return re.compile(f"{_OPENING}(?:{'|'.join(patterns)})", re.IGNORECASE)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
