"""Several days of the week in one phrase: `Monday to Friday`, `on weekdays`, `every day`."""

from __future__ import annotations

import re
from typing import Final

_WEEK: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?-i:Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun)"
)
#: The group ``days`` of a pattern that ignores case. An `every day except Monday` is left alone.
DAYS_PATTERN: Final = (
    rf"(?P<days>\b(?:(?P<first>{_DAY})"
    r"\s*(?:-|–|to|through|thru|until|till|up to(?: and including)?)"
    rf"\s*(?P<last>{_DAY})\b"
    rf"|(?<=between )(?P<from>{_DAY}) and (?P<upto>{_DAY})\b"
    r"|(?P<working>(?:(?:on|every|each|all) )?weekdays|(?:every|each|on any) weekday)\b"
    r"|(?P<free>(?:(?:at|on|over|during) (?:the )?|every |each )weekends?|weekends)\b"
    r"|(?P<all>(?:(?:every|each)(?: single)? day|7 days a week)\b"
    r"|daily\b(?=[,.;:!?]|\s*$| (?:from|at|between|until|till|to)\b)))"
    r"(?! (?:except|but|apart|other)))"
)


def days_of(match: re.Match[str]) -> tuple[str, ...]:
    """Return the days that a match of the pattern names, from Monday on.

    >>> days_of(re.search(DAYS_PATTERN, "Sat to Mon", re.IGNORECASE))
    ('mon', 'sat', 'sun')
    """
    if match["working"]:
        return _WEEK[:5]
    if match["free"]:
        return _WEEK[5:]
    if match["all"]:
        return _WEEK
    first, last = (
        _WEEK.index((match[name] or match[other])[:3].lower())
        for name, other in (("first", "from"), ("last", "upto"))
    )
    span = {(first + step) % 7 for step in range((last - first) % 7 + 1)}
    return tuple(day for place, day in enumerate(_WEEK) if place in span)
