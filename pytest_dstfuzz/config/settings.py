"""What a campaign does: the frozen settings, and the names that they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pytest_dstfuzz.config.secret import Address, Header, without_credentials
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.transformations import TRANSFORMATIONS, select

ATTACKS = ("non-cumulative", "cumulative", "hybrid")
VALIDITIES = ("strict", "edit-rate")
FAIL_ON = ("violation", "gate")
INCONCLUSIVE = ("warn", "fail")
ANNOTATIONS = ("auto", "yes", "no")
SUITE = ("auto", "yes", "no")
#: What the setting ``cache`` says where nothing is to be kept.
NO_CACHE = "no"
#: Settings that say how a service is reached: its answers do not depend on them.
SERVICE = ("timeout", "retries", "dead_after", "concurrency", "rate_limit", "header")
#: Settings of a tracker that is a service: what an experiment takes over beside its name.
ADAPTER = (*SERVICE, "slot_map", "service_model", "prompt")
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
    #: Whether the built-in suite is added to the tests; see `plugin.selection`.
    suite: str = "auto"
    data: str = "sample"
    split: str = "test"
    #: Number of turns; ``None`` = all.
    turns: int | None = 300
    domains: tuple[str, ...] = ()
    #: The slots that are asked for and compared; empty = those of the data.
    slots: tuple[str, ...] = ()
    variants: int = 5
    #: Only the variant of this number, from 0; ``None`` = all of them.
    variant: int | None = None
    #: How many transformations are associated in one variant (k, 1 to the number in use).
    transformations: int = 3
    #: How often a variant that is vacuous, a duplicate or not valid is drawn again.
    redraws: int = 5
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
    #: Make violations smaller: leave out the edits that do not break the relation.
    minimise: bool = True
    seed: int = 0
    device: str = "cpu"
    batch_size: int = 64
    #: Whether the tracker must give the same answer each time; ``None`` = what it says of itself.
    repeatable: bool | None = None
    #: Answers of a vote, where it need not.
    votes: int = 3
    #: Of a tracker that is a service; see `trackers.web.settings`.
    timeout: float = 30.0
    retries: int = 4
    #: Requests in a row that nobody answered, after which it is taken for dead; 0 = never.
    dead_after: int = 20
    concurrency: int = 16
    rate_limit: float | None = None
    header: tuple[Header, ...] = ()
    #: File that says which slot of a Rasa bot is which slot of the data.
    slot_map: str | None = None
    #: Of a chat model: its name, the file of its prompt, money for a million tokens in and out.
    service_model: str | None = None
    prompt: str | None = None
    prices: tuple[float, float] | None = None
    #: File of predictions that later runs use; ``None`` = one in pytest's cache folder.
    cache: str | None = None
    #: Megabytes that it may take.
    cache_size: int = 500
    max_seconds: float | None = None
    #: Seconds that the tests of a tracker before a run may take.
    preflight_seconds: float = 300.0
    max_calls: int | None = None
    #: Limits of what a chat model's answers take; money in the currency of the prices.
    max_tokens: int | None = None
    max_cost: float | None = None
    report: str | None = None
    html: str | None = None
    #: Whether violations are shown to GitHub, as annotations and in a job summary.
    annotations: str = "auto"
    #: Whether texts and slot values are kept out of what is shown and reported.
    redact: bool = False
    #: Whether violations are added to the regressions, the folder of those, and the one to ask for.
    remember: bool = False
    regressions: str | None = None
    replay: str | None = None
    max_failure_rate: float | None = None
    #: Joint goal accuracy of the clean answers that a session needs, where there are labels.
    min_accuracy: float | None = None
    #: File of the outcomes that this build is compared with, or that it writes.
    baseline: str | None = None
    update_baseline: bool = False
    #: Rise of the failure rate over the baseline's that is allowed; `gate.limits` has the default.
    max_regression: float | None = None
    #: Share of the turns whose clean answer may differ from the baseline's; `gate.drift` has the
    #: default.
    max_clean_drift: float | None = None
    #: Whether it fails a session not to know.
    inconclusive: str = "warn"
    fail_on: str = "violation"

    def __post_init__(self) -> None:
        # What is printed and written of a service is its address without credentials.
        if self.model is not None:
            object.__setattr__(self, "model", without_credentials(self.model))


def build_settings(given: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Return ``base`` (or the defaults) with the parsed values of ``given`` put in.

    Raises:
        UserError: values that contradict each other.
    """
    settings = replace(base or Settings(), **dict(given))
    gated = any(given.get(name) is not None for name in ("max_failure_rate", "baseline"))
    if gated and "fail_on" not in given:
        settings = replace(settings, fail_on="gate")
    if settings.max_cost is not None and settings.prices is None:
        raise UserError(
            "--dst-max-cost needs --dst-prices=IN,OUT: money for a million tokens of prompts and "
            "of answers"
        )
    if settings.remember and settings.redact:
        raise UserError("remember writes what was said, redact keeps it back: choose one of them")
    if "variant" in given and "variants" in given:
        check_variant(settings)
    most = len({*TRANSFORMATIONS, *select(settings.only).names})
    if settings.transformations > most:
        raise UserError(
            f"transformations must be a whole number from 1 to {most}, the number of those that "
            f"there are to associate, not {settings.transformations}"
        )
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
        name: [_plain(part) for part in value] if isinstance(value, tuple) else _plain(value)
        for name, value in values.items()
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it, without credentials."""
    return str(value) if isinstance(value, Address | Header) else value
