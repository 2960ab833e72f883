"""Rates as people write and read them, the same in every option, message and report.

What takes one from a text raises a ``ValueError`` that says what would be right.
"""

from __future__ import annotations

import math

__all__ = ["percent", "points"]

#: Digits after the point of a percentage.
_DECIMALS = 2
#: By how much a rate may differ from the percentage that is shown of it.
_ROUNDING = 0.5 * 10.0 ** -(_DECIMALS + 2)
#: Below this a number of 1,000 is not written out.
_LEAST = 0.01


def percent(rate: float | None, decimals: int = _DECIMALS) -> str:
    """Return a rate as a percentage, or ``n/a`` where nothing was counted.

    What is not quite none or all does not look like it.

    >>> percent(0.0851063), percent(0.00001), percent(0.99999), percent(None)
    ('8.51 %', '< 0.01 %', '> 99.99 %', 'n/a')
    """
    if rate is None:
        return "n/a"
    shown = f"{100 * rate:.{decimals}f}"
    step = 10.0**-decimals
    if rate > 0 and float(shown) == 0:
        return f"< {step:.{decimals}f} %"
    if rate < 1 and float(shown) == 100:
        return f"> {100 - step:.{decimals}f} %"
    return f"{shown} %"


def points(difference: float | None) -> str:
    """Return a difference of rates in percentage points.

    >>> points(0.0123), points(None)
    ('+1.23 pp', 'n/a')
    """
    return "n/a" if difference is None else f"{100 * difference + 0.0:+.{_DECIMALS}f} pp"


def over(rate: float, limit: float) -> bool:
    """Say whether a rate is over its limit.

    The figure that `percent` shows of a rate is no lower limit than the rate itself: who copies
    it from a report means this very rate. A limit of 0 or 1 is meant as it is written.

    >>> over(4 / 47, 0.0851), over(4 / 47, 0.085), over(1e-9, 0.0)
    (False, True, True)
    """
    exact = limit in (0.0, 1.0)
    # Some hundred units in the last place, for the arithmetic of the subtraction itself.
    return rate - limit > (0.0 if exact else _ROUNDING + 1e-12)


def under(rate: float, limit: float) -> bool:
    """Say whether a rate is under its limit, as `over`.

    >>> under(43 / 47, 0.9149), under(43 / 47, 0.915), under(1 - 1e-9, 1.0)
    (False, True, True)
    """
    return over(1 - rate, 1 - limit)


def per_1000(number: float) -> str:
    """Return how many of 1,000 something is, in few digits.

    >>> [per_1000(number) for number in (1000.0, 7.7938, 0.0521, 0.001, 0.0)]
    ['1,000.0', '7.8', '0.052', '< 0.01', '0']
    """
    if number >= 1:
        return f"{number:,.1f}"
    if number >= _LEAST:
        return f"{number:.2g}"
    return f"< {_LEAST}" if number > 0 else "0"


def rise_per_1000(difference: float) -> str:
    """Return by how many of 1,000 something rose.

    >>> [rise_per_1000(difference) for difference in (4.53, 0.11, -0.0521, 0.0001)]
    ['+4.5', '+0.1', '-0.052', '0.0']
    """
    if abs(difference) < _LEAST:
        return "0.0"
    return f"{difference:+,.1f}" if abs(difference) >= 10 * _LEAST else f"{difference:+.2g}"


def over_per_1000(number: float, limit: float) -> bool:
    """Say whether a number of 1,000 is over its limit; what is shown of it is no lower limit.

    >>> over_per_1000(7.84, 7.8), over_per_1000(7.84, 7.7), over_per_1000(1e-9, 0.0)
    (False, True, True)
    """
    shown = float(f"{number:.1f}" if number >= 1 else f"{number:.2g}")
    return min(number, shown) > limit


def parse_per_1000(text: str) -> float:
    """Take a number of 1,000."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1000.0:
        raise ValueError("must be a number of 1,000 user turns, such as 5 or 7.5")
    return number


def parse_rate(text: str) -> float:
    """Take a rate from 0 to 1, or a percentage."""
    written = text.strip()
    try:
        share = written.endswith("%")
        number = float(written[:-1]) / 100 if share else float(written)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        hint = f": did you mean {written}%?" if 1.0 < number <= 100.0 and not share else ""
        raise ValueError(f"must be a rate between 0 and 1, or a percentage such as 5%{hint}")
    return number


def parse_slip_rate(text: str) -> float:
    """Take a rate above 0 as `parse_rate` does: at 0 nobody slips, and nothing can be tested."""
    number = parse_rate(text)
    if not number:
        raise ValueError("must be above 0, such as 2%: at a slip rate of 0 nobody slips")
    return number


def parse_error_rates(text: str) -> tuple[float, ...]:
    """Take one rate of errors for both kinds, or two with a comma between them; none for ``no``.

    >>> parse_error_rates("5%"), parse_error_rates("0.01,0.1")
    ((0.05, 0.05), (0.01, 0.1))
    """
    if text == "no":
        return ()
    parts = text.split(",")
    if len(parts) > 2:
        raise ValueError("must be one rate or two, such as 5% or 1%,10%, or no")
    found = [parse_limit(part) for part in parts]
    if not all(0 < rate < 0.5 for rate in found):
        raise ValueError("must be above 0 and below 50%, such as 5%")
    return found[0], found[-1]


def parse_limit(text: str) -> float:
    """Take the limit of a rate: a share such as 0.05, or a percentage.

    A bare 1 is refused: who writes it after limits such as 5 % means one per cent, and would
    get a gate that lets everything through.
    """
    number = parse_rate(text)
    if number == 1.0 and not text.strip().endswith("%"):
        raise ValueError("could be one per cent or all of them: write 1% or 100%")
    return number


def parse_points(text: str) -> float:
    """Take a difference of rates from 0 to 1, in percentage points (2pp) or per cent (2%)."""
    written = text.strip()
    number = written.removesuffix("pp").rstrip()
    try:
        found = parse_rate(f"{number}%" if number != written else written)
    except ValueError:
        raise ValueError("must be a difference between 0 and 1, such as 0.02, 2% or 2pp") from None
    if found == 1.0 and number == written and not written.endswith("%"):
        raise ValueError("could be one point or all of them: write 1pp or 100pp")
    return found
