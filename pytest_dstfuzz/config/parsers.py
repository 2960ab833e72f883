"""What an option is, and from its text to its value; a ``ValueError`` says what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, NamedTuple

from pytest_dstfuzz.config.secret import Header, OwnKey, without_credentials
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.selection import written_edits
from pytest_dstfuzz.transformations import TRANSFORMATIONS, transformation_names

__all__ = ["choice", "integer", "positive"]

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
        """Whether it may be given several times, one value each time."""
        return self.value.separator == "\n"

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


#: What parts the keys of a name from it and from each other, in ``NAME:VALUE:KEY=VALUE``.
KEY = re.compile(r":(?=[a-z][a-z_-]*=)")


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
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found:
        raise ValueError("names nothing: leave the option out for 'metamorphic'")
    if len(found) > 1 and "all" in found:
        raise ValueError("names others beside 'all', which stands alone")
    return once(found)


def once(entries: Sequence[str]) -> str:
    """Return entries ``NAME``, or ``NAME:...`` with keys, in one text; each may stand once."""
    names = [KEY.split(entry)[0] for entry in entries]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f"names {twice[0]!r} twice")
    return ",".join(entries)


def noise_models(value: str) -> tuple[str, ...]:
    """Take names of noise models with commas between them, each with a weight or without."""
    found = names(value)
    for part in found:
        weighed(part)
    return found


def weighed(text: str) -> tuple[str, float]:
    """Return the name and the weight of ``NAME:WEIGHT``; the weight is 1 if it has none.

    >>> weighed("typing:3"), weighed("casual")
    (('typing', 3.0), ('casual', 1.0))
    """
    name, parted, weight = text.rpartition(":")
    if not parted:
        return text, 1.0
    return name, positive("shares of the slips")(weight)


def reports(value: str) -> tuple[str, ...]:
    """Take paths of reports, one a line, whose suffix says which form each has."""
    found = lines(value)
    if not found:
        raise ValueError("is empty")
    for path in found:
        if not path.lower().endswith(REPORT_FORMS):
            raise ValueError(
                f"is no path of a report: its name must end in {', '.join(REPORT_FORMS)}"
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
