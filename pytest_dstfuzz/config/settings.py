"""What a campaign does: the frozen settings, and the names that they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pytest_dstfuzz.errors import UserError

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
