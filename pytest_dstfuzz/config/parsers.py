"""The form of an option, and from its text to its value, rates included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from pytest_dstfuzz.config.secret import (
    MASK,
    Header,
    OwnKey,
    masked,
    shown_value,
    without_credentials,
)
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.selection import written_edits
from pytest_dstfuzz.transformations import TRANSFORMATIONS, transformation_names

__all__ = ["choice", "integer", "percent", "points", "positive"]


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


ATTACKS = ("non-cumulative", "cumulative", "hybrid")
FAIL_ON = ("violation", "gate")
INCONCLUSIVE = ("warn", "fail", "allow")
WHEN = ("auto", "yes", "no")
#: Suffixes of the forms that a report may have.
REPORT_FORMS = (".json", ".html", ".md")
SPLITS = ("train", "val", "test")
#: What files and people call a split, in lower case -> split.
SPLIT_ALIASES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}

#: Part of `Settings` -> what help calls its options.
PARTS = {
    "tracker": "what is tested",
    "data": "dialogues and turns",
    "variant": "what is done to a turn",
    "reply": "bots that reply, assistants that call tools",
    "budget": "how much may be asked for",
    "output": "what is shown and written",
    "gate": "what fails a run",
}
#: What an option is about:
#:
#: - ``test``: a marker may set it for one test.
#: - ``session``: a whole session; repeating one test does not apply it again.
#: - ``path``: it names a file or folder; of an ini file, relative to that.
#: - ``written``: a path that need not exist yet.
#: - ``baseline``: it does nothing without a baseline.
#: - ``place``: where something lies or how it is reached; in a report it is in ``run``.
#: - ``decides``: which variants are made, and what is a violation; builds that are compared
#:   have the same.
#: - ``ini``: pytest has no option for it: an ini file sets it, or ``-o dst_NAME=VALUE``.
Scope = Literal["test", "session", "path", "written", "baseline", "place", "decides", "ini"]


class Value(NamedTuple):
    """What an option takes."""

    parse: Callable[[str], Any]
    #: What stands for it in help.
    metavar: str = ""
    #: What a TOML table may hold beside a text.
    holds: type = str
    #: What parts several values in one text; ``""`` = it takes one value.
    separator: str = ""


class Option(NamedTuple):
    """One setting as the user sees it.

    ``name`` is the field of its part of `Settings`; pytest spells it ``--dst-<name>`` and
    ``dst_<name>`` (ini), the ``dstfuzz`` command ``--<name>``, a marker ``<name>``,
    with dashes or underscores as is usual there.
    """

    name: str
    value: Value
    help: str
    scopes: tuple[Scope, ...] = ()
    #: The option that it is a key of, such as ``--dst-relation=NAME:KEY=VALUE``; ``""`` = of none.
    of: str = ""
    #: The names that have it there, or the kinds of address of a tracker; empty = all.
    kinds: tuple[str, ...] = ()
    #: How it is called there; ``""`` = ``NAME:VALUE`` gives it, and of a tracker, as its name.
    key: str = ""
    #: The part of `Settings` that holds it.
    part: str = ""

    @property
    def flag(self) -> str:
        """The name with dashes."""
        return self.name.replace("_", "-")

    @property
    def has_flag(self) -> bool:
        """Whether pytest has an option of this name."""
        return not self.of and "ini" not in self.scopes

    @property
    def has_ini(self) -> bool:
        """Whether an ini file has a key of this name."""
        return not self.of or "ini" in self.scopes

    @property
    def spelled(self) -> str:
        """How messages call it: as an option of pytest, or by its key of an ini file."""
        if self.of == "tracker":
            return f"--dst-tracker={self.flag}"
        if self.of:
            name = self.kinds[0] if self.kinds else "NAME"
            return f"--dst-{self.of}={name}:{self.key or self.value.metavar}"
        return f"--dst-{self.flag}" if self.has_flag else f"dst_{self.name}"

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return self.value is SWITCH

    @property
    def repeated(self) -> bool:
        """Whether it may be given several times: a list of texts, which grows each time."""
        return self.value.separator == "\n" or (
            self.value.separator == "," and self.value.holds is str
        )

    def text_of(self, value: object) -> str | None:
        """Spell a value of Python or TOML as the option would be written, for the one parser.

        ``None`` where the option takes no value of that type.
        """
        if isinstance(value, bool):
            # True is an int to Python, but it is no number of variants.
            return ("no", "yes")[value] if self.is_switch else None
        if isinstance(value, str | int | float):
            return str(value)
        if self.value.separator and isinstance(value, list | tuple):
            kinds = (str,) if self.value.holds is str else (str, int, float)
            parts = [str(part) for part in value if isinstance(part, kinds)]
            return self.value.separator.join(parts) if len(parts) == len(value) else None
        return None


#: A value in double quotes; what parts names or keys may stand in it.
_QUOTED = r'(?<![^:=,])"[^"]*"(?=[:,]|\Z)'
_ENTRY = re.compile(rf"(?:{_QUOTED}|[^,])+")
_PART = re.compile(rf"(?:{_QUOTED}|(?!:[a-z][a-z_-]*=).)+", re.DOTALL)
#: What to do where a value holds what parts names or keys.
QUOTES = 'put a value that holds a comma or ":word=" in double quotes, NAME:"VALUE"'


def entries(value: str) -> list[str]:
    """Return the parts of a list with commas between them; a comma in double quotes parts nothing.

    >>> entries('frozen:"a,b.jsonl", gold')
    ['frozen:"a,b.jsonl"', 'gold']
    """
    return [part.strip() for part in _ENTRY.findall(value) if part.strip()]


def entry_parts(entry: str) -> list[str]:
    """Return ``NAME:VALUE`` and each ``KEY=VALUE`` of an entry ``NAME:VALUE:KEY=VALUE``.

    >>> entry_parts('ids:cited="K:nr=[0-9]+"')
    ['ids', 'cited="K:nr=[0-9]+"']
    """
    head, *keys = _PART.findall(entry)
    return [head, *(key.removeprefix(":") for key in keys)]


def is_word(name: str) -> bool:
    """Whether a name looks like one, and not like the end of a value with a comma in it."""
    return re.fullmatch(r"[\w-]+", name) is not None


def unquoted(value: str) -> str:
    """Return a value without the double quotes around it, if it has any."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def text(value: str) -> str:
    """Take any text that is not empty."""
    if not value.strip():
        raise ValueError("is empty")
    return value


def tracker(value: str) -> str:
    """Take the name or the address of a tracker."""
    return without_credentials(text(value))


def names(value: str) -> tuple[str, ...]:
    """Take names with commas between them."""
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found:
        # Nothing would be taken as everything.
        raise ValueError("names nothing: leave the option out for all")
    return found


def relations(value: str) -> str:
    """Take names of relations with commas between them; the result has no blanks."""
    found = entries(value)
    if not found:
        raise ValueError("names nothing: leave the option out for 'metamorphic'")
    if len(found) > 1 and "all" in found:
        raise ValueError("names others beside 'all', which stands alone")
    return once(found)


def once(listed: Sequence[str]) -> str:
    """Return entries ``NAME``, or ``NAME:...`` with keys, in one text; each may stand once."""
    names = [entry_parts(entry)[0] for entry in listed]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f"names {masked(twice[0])!r} twice")
    return ",".join(listed)


def noise_models(value: str) -> tuple[str, ...]:
    """Take names of noise models with commas between them, each with a weight or without."""
    for part in (found := entries(value)):
        weighed(part)
    if not found:
        raise ValueError("names nothing: leave the option out for typing and casual")
    return tuple(found)


def weighed(text: str) -> tuple[str, float]:
    """Return the name and the weight of ``NAME:WEIGHT``; the weight is 1 if it has none.

    >>> weighed("typing:3"), weighed("C:/noise.json"), weighed('"a:1,b.json":2')
    (('typing', 3.0), ('C:/noise.json', 1.0), ('a:1,b.json', 2.0))
    """
    name, parted, weight = text.rpartition(":")
    # The colon of a drive stands before a path, and one within quotes is of a name.
    if not parted or any(sign in weight for sign in '/\\"'):
        return unquoted(text), 1.0
    return unquoted(name), positive("shares of the slips")(weight)


def reports(value: str) -> tuple[str, ...]:
    """Take paths of reports, one a line, whose suffix says which form each has."""
    found = lines(value)
    if not found:
        raise ValueError("is empty")
    for path in found:
        if PurePath(path).suffix.lower() not in REPORT_FORMS:
            raise ValueError(
                "is no path of a report: write a name that ends in "
                f"{', '.join(REPORT_FORMS)}, such as report.html"
            )
    return found


def lines(value: str) -> tuple[str, ...]:
    """Take one text a line."""
    # A regular expression may hold a comma, so ini files give one lock a line.
    return tuple(line.strip() for line in value.splitlines() if line.strip())


def choice(kind: str, valid: Collection[str]) -> Callable[[str], str]:
    """Return a parser of one of ``valid``; ``kind`` says what they are."""

    def parse(value: str) -> str:
        if value not in valid:
            raise unknown_name(kind, value, valid)
        return value

    return parse


def canonical_split(name: str) -> str:
    """Return the split of that name or alias, in any case; without one, a ``UserError``."""
    if name.strip().lower() not in SPLIT_ALIASES:
        raise unknown_name("split", name, SPLITS)
    return SPLIT_ALIASES[name.strip().lower()]


def edits(value: str) -> tuple[str, ...]:
    """Take names of transformations and operators, with or without a sign."""
    return written_edits(names(value))


def switch(value: str) -> bool:
    """Take yes or no."""
    if value not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return value == "yes"


#: What an option takes that is on or off.
SWITCH = Value(switch)


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``low`` to ``high``."""
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
    """Return what an option takes that is a whole number."""
    return Value(integer(low, high), "N", int)


def associated(value: str) -> int:
    """Take a number of transformations: at most as many as there are."""
    known = len(TRANSFORMATIONS)
    number = integer(1)(value) if value.isdecimal() and int(value) else 0
    return integer(1, known if number <= known else len(transformation_names()))(value)


def votes(value: str) -> int:
    """Take an odd whole number."""
    number = integer(1, 99)(value)
    if not number % 2:
        near = f"{number - 1} or {number + 1}"
        raise ValueError(f"must be odd, so that there is a majority: {near}")
    return number


def turns(value: str) -> int | None:
    """Take a number of turns, or 'all'."""
    if value == "all":
        return None
    try:
        return integer(1)(value)
    except ValueError:
        raise ValueError("must be a whole number of at least 1, or 'all'") from None


def shard(value: str) -> tuple[int, int]:
    """Take the number of a part, from 1, and how many parts there are.

    >>> shard("3/16")
    (3, 16)
    """
    number, _, parts = value.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and int(parts)):
        raise ValueError("must be the number of a part and how many there are, such as 3/16")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(
            f"is no part of {int(parts)}: they go from 1/{int(parts)} to {parts}/{parts}"
        )
    return int(number), int(parts)


def shard_text(shard: tuple[int, int]) -> str:
    """Return a part as an option spells it.

    >>> shard_text((3, 16))
    '3/16'
    """
    return "/".join(map(str, shard))


def positive(what: str) -> Callable[[str], float]:
    """Return a parser of numbers above 0; ``what`` says of what."""

    def parse(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"must be a number of {what} above 0")
        return number

    return parse


#: What an option takes that is a time.
SECONDS = Value(positive("seconds"), "S", float)


def prices(value: str) -> tuple[float, float]:
    """Take two amounts of money with a comma between them."""
    try:
        first, second = (float(part) for part in value.split(","))
    except ValueError:
        first = second = math.nan
    if not all(price >= 0 and math.isfinite(price) for price in (first, second)):
        raise ValueError("must be two amounts of money with a comma between them, such as 0.15,0.6")
    return first, second


def headers(value: str) -> tuple[Header, ...]:
    """Take one header a line."""
    return tuple(Header.parse(line) for line in lines(value))


def tracker_keys(value: str) -> tuple[OwnKey, ...]:
    """Take one ``KEY=VALUE`` a line; dashes in a key are underscores."""
    found = []
    for line in lines(value):
        name, _, said = (part.strip() for part in line.partition("="))
        plain = name.replace("-", "_")
        if not said or not plain.isidentifier():
            # Without what was written: it may hold a credential.
            raise UserError("a key of a tracker is written KEY=VALUE, such as timeout=60")
        found.append(OwnKey(plain, said))
    return tuple(found)


#: The options whose values are masked by their grammar, not as one address.
_MASKED = ("tracker", "compare", "relation")
#: In a command line: ``--dst-tracker=``, ``--tracker=``, ``-o dst_tracker=``.
_OPTION = re.compile(rf"((?:-.*?|dst_)({'|'.join(_MASKED)})=)(.*)", re.DOTALL)
#: One of them as a word of its own, with the value in the next one.
_FLAG = re.compile(rf"--(?:dst-)?({'|'.join(_MASKED)})")
#: Keys of a tracker whose value is no credential: those of the option table but for headers.
_HARMLESS = frozenset(
    {"checkpoint", "device", "timeout", "retries", "dead_after", "concurrency", "rate_limit"}
    | {"slot_map", "service_model", "prompt", "prices", "stream", "tool_choice"}
)


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a shell's command line without what a report must not tell."""
    shown: list[str] = []
    before = ""
    for word in words:
        flag, option = _FLAG.fullmatch(before), _OPTION.fullmatch(word)
        if flag is not None:
            shown.append(_masked_value(flag[1], word))
        elif option is not None:
            shown.append(option[1] + _masked_value(option[2], option[3]))
        else:
            shown.append(masked(word))
        before = word
    return shown


def _masked_value(option: str, text: str) -> str:
    if option == "tracker":
        return _masked_keys(text)
    parts = ([_masked_part(part) for part in entry_parts(one)] for one in entries(text))
    return ",".join(map(":".join, parts))


def _masked_part(part: str) -> str:
    # The sign that ends a value is no part of an address in it.
    return masked(part.removesuffix('"')) + '"' * part.endswith('"')


def _masked_headers(text: str) -> str:
    """Return headers, one a line, with the values masked that are no names of variables."""
    shown = []
    for line in text.splitlines():
        try:
            shown.append(str(Header.parse(line)))
        except UserError:
            shown.append(MASK)
    return "\n".join(shown)


def _masked_keys(text: str) -> str:
    """Return keys of a tracker, one a line, with all values masked that may be a credential."""
    shown = []
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        plain = name.strip().replace("-", "_")
        if plain == "header":
            value = _masked_headers(value)
        elif plain not in _HARMLESS:
            value = shown_value(value) if sign else ""
        shown.append(f"{name}{sign}{masked(value)}" if sign else MASK)
    return "\n".join(shown)
