"""Values that are lists, and marks that people type in several ways.

A slot may have several values at once, ``["wifi", "window"]``. In a belief state such a list is
one text, JSON, so that it is compared as a whole. Order does not count, and the text has the
members sorted; how often a member stands there counts. A list of one member is that member.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

#: Marks that keyboards and word processors write in the place of those of ASCII.
_MARKS: Final = str.maketrans(
    {
        **dict.fromkeys("’‘‚‛′ʼ`´＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        # Hyphens, non-breaking too, figure dash, en dash, em dash, bar, minus signs.
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        # Soft hyphen, zero-width space, word joiner, byte order mark: nobody sees them.
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", None),
    }
)


def plain_marks(text: str) -> str:
    r"""Return a text in NFC, with the quotes, dashes and single blanks of ASCII.

    >>> plain_marks("“Joe’s” 5\u201310\u00a0km"), plain_marks("cafe\u0301")
    ('"Joe\'s" 5-10 km', 'café')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_MARKS))
    elif "`" in text:
        text = text.translate(_MARKS)
    return " ".join(text.split())


def list_text(members: Iterable[str]) -> str:
    """Return the text of a list, as a belief state holds it.

    >>> list_text(["window", "wifi"])
    '["wifi", "window"]'
    """
    return json.dumps(sorted(members), ensure_ascii=False)


@lru_cache(maxsize=1 << 14)
def members_of(text: str) -> tuple[str, ...]:
    """Return the members of a list, or a text that is no list as the only one.

    >>> members_of('["wifi", "window"]'), members_of("wifi"), members_of("[wifi]")
    (('wifi', 'window'), ('wifi',), ('[wifi]',))
    """
    found = parsed_list(text)
    if found is None or not all(isinstance(one, str) for one in found):
        return (text,)
    return tuple(map(str, found))


def parsed_list(text: str) -> list[object] | None:
    """Return the list that a text is in JSON; ``None`` = it is none."""
    if not (text[:1] == "[" and text[-1:] == "]"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # Of brackets in brackets, thousands deep.
        return None
    return found if isinstance(found, list) else None


def shown_value(value: str | None) -> str:
    """Return a value for people: lists with commas, ``none`` where there is none.

    >>> shown_value('["wifi", "window"]'), shown_value(None), shown_value("none")
    ('wifi, window', 'none', '"none"')
    """
    if value is None or value == "":
        return "none"
    return '"none"' if value == "none" else ", ".join(members_of(value))
