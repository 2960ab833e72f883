"""Options and the parsers of their values, with the format of rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from pytest_dstfuzz.config.secret import (
    Header,
    OwnKey,
    mask_value,
    without_credentials,
)
from pytest_dstfuzz.errors import MASK, UserError, mask_credentials, unknown_name
from pytest_dstfuzz.selection import simplify_names
from pytest_dstfuzz.transformations import TRANSFORMATIONS, transformation_names

__all__ = ["choice", "integer", "per_1000", "percent", "points", "positive"]


#: Decimals of a percentage.
_DECIMALS = 2
#: Largest difference between a rate and the percentage shown for it.
_ROUNDING = 0.5 * 10.0 ** -(_DECIMALS + 2)
#: Smaller positive numbers per 1,000 are shown as ``< 0.01``.
_LEAST = 0.01


def percent(rate: float | None, decimals: int = _DECIMALS) -> str:
    """Return a rate as a percentage, or ``n/a`` if it is ``None``.

    A rate that is not exactly 0 or 1 is never shown as 0 % or 100 %.

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
    """Return whether a rate exceeds its limit.

    If a user copies the figure of `percent` from a report as a limit, the rate does not exceed it.
    Limits of 0 and 1 are exact.

    >>> over(4 / 47, 0.0851), over(4 / 47, 0.085), over(1e-9, 0.0)
    (False, True, True)
    """
    exact = limit in (0.0, 1.0)
    # The small constant allows for rounding errors of the subtraction.
    return rate - limit > (0.0 if exact else _ROUNDING + 1e-12)


def under(rate: float, limit: float) -> bool:
    """Return whether a rate is below its limit, with the tolerance of `over`.

    >>> under(43 / 47, 0.9149), under(43 / 47, 0.915), under(1 - 1e-9, 1.0)
    (False, True, True)
    """
    return over(1 - rate, 1 - limit)


def per_1000(number: float) -> str:
    """Return a number per 1,000 in few digits.

    >>> [per_1000(number) for number in (1000.0, 7.7938, 0.0521, 0.001, 0.0)]
    ['1,000.0', '7.8', '0.052', '< 0.01', '0']
    """
    if number >= 1:
        return f"{number:,.1f}"
    if number >= _LEAST:
        return f"{number:.2g}"
    return f"< {_LEAST}" if number > 0 else "0"


def rise_per_1000(difference: float) -> str:
    """Return a difference of numbers per 1,000.

    >>> [rise_per_1000(difference) for difference in (4.53, 0.11, -0.0521, 0.0001)]
    ['+4.5', '+0.1', '-0.052', '0.0']
    """
    if abs(difference) < _LEAST:
        return "0.0"
    return f"{difference:+,.1f}" if abs(difference) >= 10 * _LEAST else f"{difference:+.2g}"


def over_per_1000(number: float, limit: float) -> bool:
    """Return whether a number per 1,000 exceeds its limit.

    A number never exceeds the value that a report displays for it.

    >>> over_per_1000(7.84, 7.8), over_per_1000(7.84, 7.7), over_per_1000(1e-9, 0.0)
    (False, True, True)
    """
    shown = float(f"{number:.1f}" if number >= 1 else f"{number:.2g}")
    return min(number, shown) > limit


def parse_per_1000(text: str) -> float:
    """Parse a number per 1,000."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1000.0:
        raise ValueError(
            "must be a number from 0 to 1000, counted in 1,000 user turns, such as 5 or 7.5"
        )
    return number


def parse_rate(text: str) -> float:
    """Parse a rate from 0 to 1, or a percentage."""
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
    """Parse a rate above 0. At a slip rate of 0, there are no slips and nothing to test."""
    number = parse_rate(text)
    if not number:
        raise ValueError(
            "must be above 0, such as 2%: if the slip rate is 0, there is nothing to test"
        )
    return number


def parse_error_rates(text: str) -> tuple[float, ...]:
    """Parse the rates of false positives and negatives. One rate means both, ``no`` means ``()``.

    >>> parse_error_rates("5%"), parse_error_rates("0.01,0.1")
    ((0.05, 0.05), (0.01, 0.1))
    """
    if text == "no":
        return ()
    parts = text.split(",")
    if len(parts) > 2:
        raise ValueError("must be one or two rates, such as 5% or 1%,10%, or the word no")
    found = [parse_limit(part) for part in parts]
    if not all(0 < rate < 0.5 for rate in found):
        raise ValueError("must be above 0 and below 50%, such as 5%")
    return found[0], found[-1]


def parse_limit(text: str) -> float:
    """Parse the limit of a rate: a share such as 0.05, or a percentage.

    The number 1 is rejected because it is ambiguous. As a share, no rate exceeds it. But a user who
    writes 1 next to limits such as 5 % means 1 %.
    """
    number = parse_rate(text)
    if number == 1.0 and not text.strip().endswith("%"):
        raise ValueError("is ambiguous: write 1% or 100%")
    return number


def parse_points(text: str) -> float:
    """Parse a difference of rates from 0 to 1, in percentage points (2pp) or per cent (2%)."""
    written = text.strip()
    number = written.removesuffix("pp").rstrip()
    try:
        found = parse_rate(f"{number}%" if number != written else written)
    except ValueError:
        raise ValueError("must be a difference between 0 and 1, such as 0.02, 2% or 2pp") from None
    if found == 1.0 and number == written and not written.endswith("%"):
        raise ValueError("is ambiguous: write 1pp or 100pp")
    return found


ATTACKS = ("non-cumulative", "cumulative", "hybrid")
FAIL_ON = ("violation", "gate")
INCONCLUSIVE = ("warn", "fail", "allow")
WHEN = ("auto", "yes", "no")
#: Suffixes of reports.
REPORT_FORMS = (".json", ".html", ".md")
SPLITS = ("train", "val", "test")
#: Name of a split in files or by users, in lower case -> split.
SPLIT_ALIASES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}

#: Part of `Settings` -> heading of its options in the help.
PARTS = {
    "tracker": "tracker or assistant to test",
    "data": "dialogues and turns",
    "variant": "variants, search and relations",
    "reply": "replies and tool calls",
    "budget": "budgets and cache",
    "output": "reports and regressions",
    "gate": "gates: when a run fails",
}
#: The scopes of an option:
#:
#: - ``test``: a marker may set it for one test.
#: - ``session``: it applies to a whole session, and not to a repeated single test.
#: - ``path``: it names a file or directory. In an ini file, the path is relative to that file.
#: - ``written``: a path that need not exist yet.
#: - ``baseline``: it has no effect without a baseline.
#: - ``place``: a location or a way of access. A report shows it in ``run``.
#: - ``decides``: it affects the variants or the verdicts. Compared builds must have the same value.
#: - ``neutral``: it decides no result, such as the time limit of a request. Every other option of
#:   the tracker, the data, the variants and the replies does, see `identity`.
#: - ``content``: its value may contain the path of a file, which counts by its content.
#: - ``ini``: pytest has no flag for it. It is set in an ini file, or by ``-o dst_NAME=VALUE``.
Scope = Literal[
    "test",
    "session",
    "path",
    "written",
    "baseline",
    "place",
    "decides",
    "neutral",
    "content",
    "ini",
]


class Value(NamedTuple):
    """The kind of value that an option takes."""

    parse: Callable[[str], Any]
    #: Placeholder in the help.
    metavar: str = ""
    #: Type of the value in a TOML table, if it is not a text.
    holds: type = str
    #: Separator of several values in one text. ``""`` means a single value.
    separator: str = ""


class Option(NamedTuple):
    """One setting as the user sees it.

    ``name`` is the field in its part of `Settings`. In pytest, it becomes ``--dst-<name>`` and
    ``dst_<name>`` (ini). In the ``dstfuzz`` command, it becomes ``--<name>``, and in a marker
    ``<name>``. Dashes and underscores are as usual.
    """

    name: str
    value: Value
    help: str
    scopes: tuple[Scope, ...] = ()
    #: The option that this is a key of, such as ``--dst-relation=NAME:KEY=VALUE``, or ``""``.
    of: str = ""
    #: The names, or the address schemes of a tracker, that have this key. Empty means all.
    kinds: tuple[str, ...] = ()
    #: Name of the key. If it is ``""``, a key of a tracker has the name of the option, and for
    #: other owners the option is the ``VALUE`` in ``NAME:VALUE``.
    key: str = ""
    #: The environment variable with the token for an address that is its value.
    variable: str = ""
    #: The part of `Settings` with its field.
    part: str = ""

    @property
    def flag(self) -> str:
        """The name with dashes."""
        return self.name.replace("_", "-")

    @property
    def has_flag(self) -> bool:
        """Whether pytest has a flag for this option."""
        return not self.of and "ini" not in self.scopes

    @property
    def has_ini(self) -> bool:
        """Whether an ini file can have this option."""
        return not self.of or "ini" in self.scopes

    @property
    def spelled(self) -> str:
        """The spelling in messages, as a pytest flag or as an ini key."""
        if self.of == "tracker":
            return f"--dst-tracker={self.flag}"
        if self.of:
            name = self.kinds[0] if self.kinds else "NAME"
            return f"--dst-{self.of}={name}:{self.key or self.value.metavar}"
        return f"--dst-{self.flag}" if self.has_flag else f"dst_{self.name}"

    @property
    def is_switch(self) -> bool:
        """Whether the value of the option is yes or no."""
        return self.value is SWITCH

    @property
    def repeated(self) -> bool:
        """Whether the option may be repeated, so that its values form a list of texts."""
        return self.value.separator == "\n" or (
            self.value.separator == "," and self.value.holds is str
        )

    def text_of(self, value: object) -> str | None:
        """Return the text of a Python or TOML value, for the option's parser.

        Return ``None`` if the option does not take values of this type.
        """
        if isinstance(value, bool):
            # Reject True for numbers, because it is an int in Python.
            return ("no", "yes")[value] if self.is_switch else None
        if isinstance(value, str | int | float):
            return str(value)
        if self.value.separator and isinstance(value, list | tuple):
            kinds = (str,) if self.value.holds is str else (str, int, float)
            parts = [str(part) for part in value if isinstance(part, kinds)]
            return self.value.separator.join(parts) if len(parts) == len(value) else None
        return None


#: A value in double quotes, which may contain separators.
_QUOTED = r'(?<![^:=,])"[^"]*"(?=[:,]|\Z)'
_ENTRY = re.compile(rf"(?:{_QUOTED}|[^,])+")
_PART = re.compile(rf"(?:{_QUOTED}|(?!:[a-z][a-z_-]*=).)+", re.DOTALL)
#: Advice if a value contains a separator of names or keys.
QUOTES = 'put a value with a comma or ":word=" in double quotes, NAME:"VALUE"'


def entries(value: str) -> list[str]:
    """Split a list at its commas, except those in double quotes.

    >>> entries('frozen:"a,b.jsonl", gold')
    ['frozen:"a,b.jsonl"', 'gold']
    """
    return [part.strip() for part in _ENTRY.findall(value) if part.strip()]


def entry_parts(entry: str) -> list[str]:
    """Split an entry ``NAME:VALUE:KEY=VALUE`` into ``NAME:VALUE`` and each ``KEY=VALUE``.

    >>> entry_parts('ids:cited="K:nr=[0-9]+"')
    ['ids', 'cited="K:nr=[0-9]+"']
    """
    head, *keys = _PART.findall(entry)
    return [head, *(key.removeprefix(":") for key in keys)]


def is_word(name: str) -> bool:
    """Return whether a text can be a name. Otherwise it is the rest of a value with a comma."""
    return re.fullmatch(r"[\w-]+", name) is not None


def unquote_value(value: str) -> str:
    """Return a value without surrounding double quotes."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def text(value: str) -> str:
    """Parse a non-empty text."""
    if not value.strip():
        raise ValueError("is empty")
    return value


def tracker(value: str) -> str:
    """Parse the name or the address of a tracker."""
    return without_credentials(text(value))


def names(value: str) -> tuple[str, ...]:
    """Parse names, separated by commas."""
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found:
        # An empty tuple would mean everything.
        raise ValueError("contains no name: leave the option out to use all")
    return found


def relations(value: str) -> str:
    """Parse names of relations, separated by commas. The result has no blanks."""
    found = entries(value)
    if not found:
        raise ValueError("contains no name: leave the option out to use 'metamorphic'")
    if len(found) > 1 and "all" in found:
        raise ValueError("combines 'all' with other names: use 'all' alone")
    return once(found)


def once(listed: Sequence[str]) -> str:
    """Join entries ``NAME`` or ``NAME:...``. Raise a ``ValueError`` if a name occurs twice."""
    names = [entry_parts(entry)[0] for entry in listed]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f"names {mask_credentials(twice[0])!r} twice")
    return ",".join(listed)


def noise_models(value: str) -> tuple[str, ...]:
    """Parse names of noise models, separated by commas. Each model may have a weight."""
    for part in (found := entries(value)):
        parse_weight(part)
    if not found:
        raise ValueError("contains no name: leave the option out to use 'typing' and 'casual'")
    return tuple(found)


def parse_weight(text: str) -> tuple[str, float]:
    """Return name and weight of ``NAME:WEIGHT``. The default weight is 1.

    >>> parse_weight("typing:3"), parse_weight("C:/noise.json"), parse_weight('"a:1,b.json":2')
    (('typing', 3.0), ('C:/noise.json', 1.0), ('a:1,b.json', 2.0))
    """
    name, parted, weight = text.rpartition(":")
    # A colon after a drive letter or inside quotes is not a separator.
    if not parted or any(sign in weight for sign in '/\\"'):
        return unquote_value(text), 1.0
    return unquote_value(name), positive("shares of the slips")(weight)


def reports(value: str) -> tuple[str, ...]:
    """Parse paths of reports, one per line. The suffix gives the format of the report."""
    found = lines(value)
    if not found:
        raise ValueError("is empty")
    for path in found:
        if PurePath(path).suffix.lower() not in REPORT_FORMS:
            raise ValueError(
                "is not the path of a report: write a name that ends in "
                f"{', '.join(REPORT_FORMS)}, such as report.html"
            )
    return found


def lines(value: str) -> tuple[str, ...]:
    """Parse one text per line."""
    # Ini files list one lock per line, because a regular expression may contain a comma.
    return tuple(line.strip() for line in value.splitlines() if line.strip())


def choice(kind: str, valid: Collection[str]) -> Callable[[str], str]:
    """Return a parser that accepts only the names in ``valid``. Messages call a name ``kind``."""

    def parse(value: str) -> str:
        if value not in valid:
            raise unknown_name(kind, value, valid)
        return value

    return parse


def canonical_split(name: str) -> str:
    """Return the split for a name or alias in any case, or raise a `UserError`."""
    if name.strip().lower() not in SPLIT_ALIASES:
        raise unknown_name("split", name, SPLITS)
    return SPLIT_ALIASES[name.strip().lower()]


def edits(value: str) -> tuple[str, ...]:
    """Parse names of transformations and operators, with or without a sign."""
    return simplify_names(names(value))


def switch(value: str) -> bool:
    """Parse yes or no."""
    if value not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return value == "yes"


#: The value of an option that is on or off.
SWITCH = Value(switch)


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser for whole numbers from ``low`` to ``high``."""
    bounds = f"from {low} to {high}" if high is not None else f"of at least {low}"

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number {bounds}") from None
        if number < low or (high is not None and number > high):
            raise ValueError(f"must be a whole number {bounds}")
        return number

    return parse


def count(low: int, high: int | None = None) -> Value:
    """Return the `Value` for an option that takes a whole number."""
    return Value(integer(low, high), "N", int)


def parse_associated(value: str) -> int:
    """Parse a number of transformations, at most as many as exist."""
    known = len(TRANSFORMATIONS)
    number = integer(1)(value) if value.isdecimal() and int(value) else 0
    return integer(1, known if number <= known else len(transformation_names()))(value)


def votes(value: str) -> int:
    """Parse an odd whole number."""
    number = integer(1, 99)(value)
    if not number % 2:
        near = f"{number - 1} or {number + 1}"
        raise ValueError(f"must be odd, so that there is a majority: write {near}")
    return number


def turns(value: str) -> int | None:
    """Parse a number of turns, or 'all'."""
    if value == "all":
        return None
    try:
        return integer(1)(value)
    except ValueError:
        raise ValueError("must be a whole number of at least 1, or 'all'") from None


def shard(value: str) -> tuple[int, int]:
    """Parse the number of a shard, from 1, and the number of shards.

    >>> shard("3/16")
    (3, 16)
    """
    number, _, parts = value.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and int(parts)):
        raise ValueError("must be the number of a part and the number of parts, such as 3/16")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(
            f"is out of range: parts are numbered from 1/{int(parts)} to {parts}/{parts}"
        )
    return int(number), int(parts)


def shard_text(shard: tuple[int, int]) -> str:
    """Return a shard in the spelling of the option.

    >>> shard_text((3, 16))
    '3/16'
    """
    return "/".join(map(str, shard))


def positive(what: str) -> Callable[[str], float]:
    """Return a parser for numbers above 0. ``what`` is the counted noun, for messages."""

    def parse(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"must be a number of {what} above 0")
        return number

    return parse


#: The value of an option that is a time.
SECONDS = Value(positive("seconds"), "S", float)


def prices(value: str) -> tuple[float, float]:
    """Parse two amounts of money with a comma between them."""
    try:
        first, second = (float(part) for part in value.split(","))
    except ValueError:
        first = second = math.nan
    if not all(price >= 0 and math.isfinite(price) for price in (first, second)):
        raise ValueError("must be two prices with a comma between them, such as 0.15,0.6")
    return first, second


def headers(value: str) -> tuple[Header, ...]:
    """Parse one header per line."""
    return tuple(Header.parse(line) for line in lines(value))


def tracker_keys(value: str) -> tuple[OwnKey, ...]:
    """Parse one ``KEY=VALUE`` per line. Dashes in a key become underscores."""
    found = []
    for line in lines(value):
        name, _, said = (part.strip() for part in line.partition("="))
        plain = name.replace("-", "_")
        if not said or not plain.isidentifier():
            # The message does not repeat the line, which may contain a credential.
            raise UserError("a key of a tracker must be written as KEY=VALUE, such as timeout=60")
        found.append(OwnKey(plain, said))
    return tuple(found)


#: Options whose values are masked part by part, and not as one address.
_MASKED = ("tracker", "compare", "relation")
#: The option in a command line: ``--dst-tracker=``, ``--tracker=``, ``-o dst_tracker=``.
_OPTION = re.compile(rf"((?:-.*?|dst_)({'|'.join(_MASKED)})=)(.*)", re.DOTALL)
#: The option as a separate word, with the value in the next word.
_FLAG = re.compile(rf"--(?:dst-)?({'|'.join(_MASKED)})")
#: Keys of a tracker whose value is never a credential: those of the option table except headers.
_HARMLESS = frozenset(
    {"checkpoint", "device", "timeout", "retries", "dead_after", "concurrency", "rate_limit"}
    | {"slot_map", "service_model", "prompt", "prices", "stream", "tool_choice"}
)


def mask_command_line(words: Sequence[str]) -> list[str]:
    """Mask the credentials in the words of a command line, for a report."""
    shown: list[str] = []
    before = ""
    for word in words:
        flag, option = _FLAG.fullmatch(before), _OPTION.fullmatch(word)
        if flag is not None:
            shown.append(_masked_value(flag[1], word))
        elif option is not None:
            shown.append(option[1] + _masked_value(option[2], option[3]))
        else:
            shown.append(mask_credentials(word))
        before = word
    return shown


def _masked_value(option: str, text: str) -> str:
    if option == "tracker":
        return _masked_keys(text)
    parts = ([_masked_part(part) for part in entry_parts(one)] for one in entries(text))
    return ",".join(map(":".join, parts))


def _masked_part(part: str) -> str:
    # The closing quote of a value is not part of an address in it.
    return mask_credentials(part.removesuffix('"')) + '"' * part.endswith('"')


def _masked_headers(text: str) -> str:
    """Mask the values of headers, one per line, unless they name environment variables."""
    shown = []
    for line in text.splitlines():
        try:
            shown.append(str(Header.parse(line)))
        except UserError:
            shown.append(MASK)
    return "\n".join(shown)


def _masked_keys(text: str) -> str:
    """Mask the values of tracker keys, one per line, that may be credentials."""
    shown = []
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        plain = name.strip().replace("-", "_")
        if plain == "header":
            value = _masked_headers(value)
        elif plain not in _HARMLESS:
            value = mask_value(value) if sign else ""
        shown.append(f"{name}{sign}{mask_credentials(value)}" if sign else MASK)
    return "\n".join(shown)
