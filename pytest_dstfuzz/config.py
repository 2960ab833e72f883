"""Settings of a campaign, and the one option table that pytest and the command share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pytest_dstfuzz.errors import UserError, unknown_name

#: The six transformations, word level first: the order in which they are applied.
TRANSFORMATIONS = (
    "word_insert",
    "word_replace",
    "word_drop",
    "char_insert",
    "char_replace",
    "char_drop",
)
ATTACKS = ("non-cumulative", "cumulative", "hybrid")
VALIDITIES = ("strict", "edit-rate")
RELATIONS = ("metamorphic", "gold")
FAIL_ON = ("violation", "gate")
SPLITS = ("train", "val", "test")
#: What files and people call a split, in lower case -> split.
SPLIT_ALIASES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign does; every field is an option of the same name."""

    model: str | None = None
    checkpoint: str | None = None
    data: str = "sample"
    split: str = "test"
    #: Number of turns; ``None`` = all.
    turns: int | None = 300
    domains: tuple[str, ...] = ()
    variants: int = 5
    #: Only the variant of this number, from 0; ``None`` = all of them.
    variant: int | None = None
    #: How many transformations are associated in one variant (k, 1 to 6).
    transformations: int = 3
    #: How often a variant that is vacuous, a duplicate or not valid is drawn again.
    redraws: int = 0
    #: Make no more variants of a turn once one of them breaks the relation.
    until_broken: bool = False
    only: tuple[str, ...] = ()
    search: str = "random"
    attack: str = "hybrid"
    validity: str = "strict"
    #: Limit of both edit rates.
    max_edit_rate: float = 0.25
    #: Hold short utterances to that limit too, as the thesis does: often no word can change.
    flat_edit_rate: bool = False
    lock: tuple[str, ...] = ()
    relation: str = "metamorphic"
    seed: int = 0
    device: str = "cpu"
    batch_size: int = 64
    max_seconds: float | None = None
    max_calls: int | None = None
    report: str | None = None
    max_failure_rate: float | None = None
    fail_on: str = "violation"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as the user sees it.

    ``name`` is the field of `Settings`; pytest spells it ``--dst-<name>`` and
    ``dst_<name>`` (ini), the ``dstfuzz`` command ``--<name>``, a marker ``<name>``,
    with dashes or underscores as is usual there.
    """

    name: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    #: Whether a marker may set it for one test.
    per_test: bool = False
    #: What parts several values in one text; ``""`` = it takes one value.
    separator: str = ""

    @property
    def flag(self) -> str:
        """The name with dashes."""
        return self.name.replace("_", "-")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value


def _names(value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(",") if part.strip())
    if not names:
        # Nothing would be taken as everything.
        raise ValueError("names nothing: leave the option out for all")
    return names


def _locks(value: str) -> tuple[str, ...]:
    # A regular expression may hold a comma, so ini files give one lock a line.
    return tuple(line.strip() for line in value.splitlines() if line.strip())


def _choice(kind: str, valid: tuple[str, ...]) -> Callable[[str], str]:
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


def _only(value: str) -> tuple[str, ...]:
    names = tuple(name.replace("-", "_") for name in _names(value))
    for name in names:
        if name not in TRANSFORMATIONS:
            raise unknown_name("transformation", name, TRANSFORMATIONS)
    return tuple(name for name in TRANSFORMATIONS if name in names)


def _switch(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return value == "yes"


def _integer(low: int, high: int | None = None) -> Callable[[str], int]:
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


def _turns(value: str) -> int | None:
    if value == "all":
        return None
    try:
        return _integer(1)(value)
    except ValueError:
        raise ValueError("must be a whole number of at least 1, or 'all'") from None


def _rate(value: str) -> float:
    text = value.strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise ValueError("must be a rate between 0 and 1, or a percentage such as 5%")
    return number


def _seconds(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise ValueError("must be a number of seconds above 0")
    return number


#: Every option, in the order in which help shows them.
OPTIONS: tuple[Option, ...] = (
    Option("model", _text, "NAME", "tracker: a registered name ('trade') or module:attribute"),
    Option("checkpoint", _text, "PATH", "weights of the tracker instead of the shipped ones"),
    Option(
        "data",
        _text,
        "PATH",
        "dialogues: a folder, a file, a zip, or a named data set (default: the shipped sample)",
    ),
    Option("split", canonical_split, "SPLIT", "train, val or test (default: test)"),
    Option("turns", _turns, "N|all", "turns to test, of dialogues drawn by seed (default: 300)"),
    Option("domains", _names, "NAME,...", "only dialogues that touch one of these", separator=","),
    Option("variants", _integer(1, 1000), "N", "variants of each turn (default: 5)", per_test=True),
    Option(
        "variant",
        _integer(0, 999),
        "I",
        "only the variant of this number, from 0: what a failure gives to repeat it",
        per_test=True,
    ),
    Option(
        "transformations",
        _integer(1, 6),
        "K",
        "transformations that one variant associates, 1 to 6 (default: 3)",
        per_test=True,
    ),
    Option(
        "redraws",
        _integer(0, 1000),
        "N",
        "draw a vacuous, duplicate or invalid variant again, up to N times (default: 0)",
        per_test=True,
    ),
    Option(
        "until_broken",
        _switch,
        "yes|no",
        "no more variants of a turn once one breaks it: to hunt, not for rates (default: no)",
        per_test=True,
    ),
    Option(
        "only",
        _only,
        "NAME,...",
        f"only these transformations: {', '.join(TRANSFORMATIONS)}",
        per_test=True,
        separator=",",
    ),
    Option(
        "search",
        _text,
        "NAME",
        "who chooses what to change: random, near-value, greedy, dialtest, agent (trained on "
        "the shipped tracker) or agent:PATH, a policy of your own (default: agent for the shipped "
        "trade in strict, random for all else)",
        per_test=True,
    ),
    Option(
        "attack",
        _choice("attack design", ATTACKS),
        "DESIGN",
        "earlier user turns as the tracker sees them: non-cumulative (clean), cumulative "
        "(perturbed) or hybrid (half of them; default)",
        per_test=True,
    ),
    Option(
        "validity",
        _choice("validity profile", VALIDITIES),
        "PROFILE",
        "strict (edit rates and locks on meaning; default) or edit-rate (edit rates alone)",
        per_test=True,
    ),
    Option("max_edit_rate", _rate, "R", "limit of both edit rates (default: 0.25)", per_test=True),
    Option(
        "flat_edit_rate",
        _switch,
        "yes|no",
        "hold short utterances to the word limit too, as the thesis does (default: no)",
        per_test=True,
    ),
    Option(
        "lock",
        _locks,
        "WORD|/REGEX/",
        "a word or /regular expression/ that no edit may touch; may be repeated (one a line "
        "in an ini file)",
        per_test=True,
        separator="\n",
    ),
    Option(
        "relation",
        _choice("relation", RELATIONS),
        "NAME",
        "metamorphic (prediction stays as on the clean turn; default) or gold (a right "
        "prediction stays right)",
        per_test=True,
    ),
    Option("seed", _integer(0, 2**63 - 1), "N", "seed of every draw (default: 0)", per_test=True),
    Option("device", _text, "NAME", "device of the tracker: cpu, cuda, cuda:1, ... (default: cpu)"),
    Option("batch_size", _integer(1, 65536), "N", "contexts predicted at once (default: 64)"),
    Option("max_seconds", _seconds, "S", "end the campaign in order after so many seconds"),
    Option("max_calls", _integer(1), "N", "end it in order after so many predicted contexts"),
    Option("report", _text, "PATH", "write the JSON report to this file"),
    Option(
        "max_failure_rate",
        _rate,
        "RATE",
        "gate: fail the session when the failure rate is above this (implies fail-on=gate)",
    ),
    Option(
        "fail_on",
        _choice("failure policy", FAIL_ON),
        "WHAT",
        "violation (each one fails its test; default) or gate (only the session's rate decides)",
    ),
)

OPTION_NAMES: tuple[str, ...] = tuple(option.name for option in OPTIONS)
MARKER_NAMES: tuple[str, ...] = tuple(option.name for option in OPTIONS if option.per_test)


def option(name: str) -> Option:
    """Return the option called ``name`` (a field of `Settings`)."""
    for candidate in OPTIONS:
        if candidate.name == name:
            return candidate
    raise unknown_name("option", name, OPTION_NAMES)


def parse_option(name: str, value: str, shown_as: str) -> Any:
    """Parse the text of one option.

    Args:
        name: field of `Settings`.
        value: what the user wrote.
        shown_as: how the user spelled the option, for the message.

    Raises:
        UserError: the value is not one that the option takes.
    """
    try:
        return option(name).parse(value)
    except UserError as error:
        raise UserError(f"{shown_as}: {error}") from None
    except ValueError as error:
        raise UserError(f"{shown_as}: {value!r} {error}") from None


def option_text(name: str, value: object) -> str | None:
    """Spell a value of Python or TOML as the option would be written, for the one parser.

    Returns:
        The text, or ``None`` where the option takes no value of that type.
    """
    item = option(name)
    if isinstance(value, bool):
        # True is an int to Python, but it is no number of variants.
        return ("no", "yes")[value] if item.parse is _switch else None
    if isinstance(value, str | int | float):
        return str(value)
    if item.separator and isinstance(value, list | tuple):
        parts = [part for part in value if isinstance(part, str)]
        return item.separator.join(parts) if len(parts) == len(value) else None
    return None


def build_settings(given: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Return ``base`` (or the defaults) with the parsed values of ``given`` put in.

    Raises:
        UserError: values that contradict each other.
    """
    settings = replace(base or Settings(), **dict(given))
    if given.get("max_failure_rate") is not None and "fail_on" not in given:
        settings = replace(settings, fail_on="gate")
    if "variant" in given and "variants" in given:
        check_variant(settings)
    return settings


def check_variant(settings: Settings, where: str = "") -> None:
    """Refuse the number of a variant that there is not.

    The number and how many there are may come from a session and from one of its tests,
    and only then do they have to agree when that test is run.

    Args:
        settings: those in use.
        where: who gave what, for the message.

    Raises:
        UserError: there are not so many variants.
    """
    if settings.variant is not None and settings.variant >= settings.variants:
        raise UserError(
            f"there is no variant {settings.variant} of {settings.variants}: they are numbered "
            f"from 0 to {settings.variants - 1}{where}"
        )


def settings_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain JSON values, in the order of the option table."""
    values = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
