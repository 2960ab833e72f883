"""The frozen settings of a campaign, in parts by role."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from pytest_dstfuzz.config.options import (
    KEYS,
    OPTIONS,
    PROFILES,
    ReplySettings,
    option,
    parse_option,
    refuse_without_judge,
    refuse_without_replies,
    rule_lines,
)
from pytest_dstfuzz.config.parsers import (
    QUOTES,
    entries,
    entry_parts,
    parse_weight,
    unquote_value,
)
from pytest_dstfuzz.config.secret import (
    Address,
    Header,
    OwnKey,
    without_credentials,
)
from pytest_dstfuzz.errors import DataError, UserError, mask_credentials, unknown_name
from pytest_dstfuzz.files import check_path, refuse_address
from pytest_dstfuzz.selection import Selection, select
from pytest_dstfuzz.transformations import EXTRA, TRANSFORMATIONS

#: Options that imply ``fail_on=gate``.
_GATING = ("max_failure_rate", "max_estimated_failures", "baseline")
#: Options whose value may be an address.
_ADDRESSES = ("model", "judge")
#: Options that name objects with keys.
NAMED = ("relation", "compare")
#: Text that may follow an address and a comma: the name of a comparison, or a module.
_NAME = re.compile(r"[\w.-]+")
#: The value of the setting ``cache`` that switches the cache off.
NO_CACHE = "no"


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """The tested system, and the options for its requests."""

    model: str | None = None
    checkpoint: str | None = None
    device: str = "cpu"
    batch_size: int = 64
    repeatable: bool | None = None
    votes: int = 3
    #: Answers to each unmodified turn before its variants, under a sequential test.
    noise_floor: int | None = None
    #: False-positive and false-negative rate of the sequential test. An empty tuple means one
    #: answer for each context. If this and ``noise_floor`` are ``None``, a majority vote decides.
    error_rate: tuple[float, ...] | None = None
    timeout: float = 30.0
    retries: int = 4
    dead_after: int = 20
    concurrency: int = 16
    rate_limit: float | None = None
    header: tuple[Header, ...] = ()
    opening: Literal["assistant", "system"] = "assistant"
    #: Descriptions of the messages of a service with its own JSON.
    request: str | None = None
    response: str | None = None
    #: The same for sessions that the service begins: a request, and a pointer to the id.
    start: str | None = None
    session: str | None = None
    slot_map: str | None = None
    service_model: str | None = None
    prompt: str | None = None
    prices: tuple[float, float] | None = None
    stream: bool = False
    tool_choice: str | None = None
    #: Keys for the tracker's factory.
    tracker: tuple[OwnKey, ...] = ()

    def __post_init__(self) -> None:
        # Outputs show the address of a service without its credentials.
        if self.model is not None:
            object.__setattr__(self, "model", without_credentials(self.model))


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The dialogues and turns to test."""

    suite: str = "auto"
    data: str = "sample"
    split: str = "test"
    #: Number of turns, or ``None`` for all.
    turns: int | None = 300
    #: Number of the shard to run, from 1, and the number of shards. ``None`` means all.
    shard: tuple[int, int] | None = None
    domains: tuple[str, ...] = ()
    #: Slots to ask for and compare. Empty means those of the data.
    slots: tuple[str, ...] = ()
    #: File of tools, for dialogues without tools.
    tools: str | None = None
    #: File of rewritten turns, for the relation ``frozen``.
    frozen: str | None = None
    #: File or folder of rewritten tools, for the relation ``tools-paraphrase``.
    tools_paraphrase: str | None = None


@dataclass(frozen=True, slots=True)
class VariantSettings:
    """The edits of a turn, and the relations that must hold."""

    variants: int = 5
    #: Number of the only variant to run, from 0. ``None`` means all variants.
    variant: int | None = None
    transformations: int = 3
    redraws: int = 5
    stop_at_first: bool = False
    #: Names of transformations and operators, with or without a sign. See `selection`.
    edits: tuple[str, ...] = ()
    search: str = "random"
    attack: str = "hybrid"
    validity: str = "natural"
    #: Noise models, each with an optional weight as ``NAME:WEIGHT``.
    noise: tuple[str, ...] = ("typing", "casual")
    #: Slips per word, or ``None`` for the rate of the models.
    slip_rate: float | None = None
    max_edit_rate: float = 0.25
    flat_edit_rate: bool = False
    lock: tuple[str, ...] = ()
    relation: str = "metamorphic"
    shrink: bool = True
    seed: int = 0

    @property
    def selection(self) -> Selection:
        """The transformations and operators in use."""
        profile = PROFILES.get(self.validity)
        return select(self.edits, profile.operators) if profile else select(self.edits)

    @property
    def noisy(self) -> bool:
        """Whether the profile or a selected operator uses a noise model."""
        profile = PROFILES.get(self.validity)
        pairs = zip(*self.selection, strict=True)
        labels = (f"{item.name}/{name}" for item, names in pairs for name in names)
        return (profile is not None and profile.noise) or any(label in EXTRA for label in labels)


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Limits of requests and cost, and the cache of answers."""

    max_seconds: float | None = None
    preflight_seconds: float = 300.0
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    #: Cache file for later runs. ``None`` means a file in pytest's cache directory.
    cache: str | None = None
    cache_size: int = 500


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """Reports and other outputs."""

    #: Paths of reports. The suffix gives the format.
    report: tuple[str, ...] = ()
    annotations: str = "auto"
    redact: bool = False
    #: Directory of results to judge instead of a run.
    results: str | None = None
    remember: bool = False
    regressions: str | None = None
    replay: str | None = None


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The conditions for failing a run."""

    max_failure_rate: float | None = None
    min_accuracy: float | None = None
    #: Per 1,000 user turns.
    max_estimated_failures: float | None = None
    baseline: str | None = None
    update_baseline: bool = False
    max_regression: float | None = None
    #: Per 1,000 user turns.
    max_estimated_rise: float | None = None
    max_new_weaknesses: int | None = None
    max_new_violations: int | None = None
    max_clean_drift: float | None = None
    inconclusive: str = "warn"
    fail_on: str = "violation"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a campaign, in parts by role.

    Every field of a part is an option of that name, which the option table describes.

    >>> Settings.of(variants=3, edits="char-drop").variant.edits
    ('char_drop',)
    """

    tracker: TrackerSettings = field(default_factory=TrackerSettings)
    data: DataSettings = field(default_factory=DataSettings)
    variant: VariantSettings = field(default_factory=VariantSettings)
    reply: ReplySettings = field(default_factory=ReplySettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    output: OutputSettings = field(default_factory=OutputSettings)
    gate: GateSettings = field(default_factory=GateSettings)

    @classmethod
    def of(cls, **options: Any) -> Settings:
        """Return settings with the given options.

        Args:
            options: Python values, or texts as on a command line. Other options have their
                defaults.

        Raises:
            UserError: an option does not exist or does not take its value, or values contradict
                each other.
        """
        return cls().replace_options(**options)

    def replace_options(self, **options: Any) -> Settings:
        """Return these settings with some options replaced, see `of`."""
        return build_settings(
            {name: python_value(name, value) for name, value in options.items()}, self
        )

    def options(self) -> dict[str, Any]:
        """Return the value of every option, in the order of the option table."""
        return {item.name: getattr(getattr(self, item.part), item.name) for item in OPTIONS}

    def option(self, name: str) -> Any:
        """Return the value of one option."""
        return getattr(getattr(self, option(name).part), name)


def build_settings(given: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Return ``base`` (or the defaults) with the parsed values of ``given``."""
    given = _with_keys(given)
    if "tracker" in given:
        given = {**split_keys(given["tracker"], "tracker"), **given}
        given["tracker"] = tuple(key for key in given["tracker"] if key.name not in KEYS)
    for name, value in given.items():
        check_paths(name, value, option(name).spelled)
    settings = _with(base or Settings(), given)
    gated = any(given.get(name) is not None for name in _GATING)
    if gated and "fail_on" not in given:
        settings = _with(settings, {"fail_on": "gate"})
    if settings.budget.max_cost is not None and settings.tracker.prices is None:
        raise UserError(
            "--dst-max-cost needs prices: add --dst-tracker prices=IN,OUT, the prices of a "
            "million tokens of prompts and of answers"
        )
    if settings.data.shard is not None and settings.gate.update_baseline:
        raise UserError(
            "--dst-update-baseline needs the results of all dialogues, but --dst-shard runs only "
            "some of them: leave one out"
        )
    if settings.output.remember and settings.output.redact:
        raise UserError(
            "--dst-remember stores utterances and --dst-redact hides them: use only one"
        )
    if "variant" in given and "variants" in given:
        check_variant(settings.variant)
    _refuse_two_deciders(settings.tracker, given.get("votes"))
    if settings.tracker.repeatable:
        _refuse_test_without_wobble(settings.tracker)
    refuse_without_replies(settings.reply)
    refuse_without_judge(settings.reply, given)
    most = len({*TRANSFORMATIONS, *settings.variant.selection.names})
    if settings.variant.transformations > most:
        raise UserError(
            f"transformations must be a whole number from 1 to {most}, the number of available "
            f"transformations, not {settings.variant.transformations}"
        )
    return settings


def check_paths(name: str, value: object, shown_as: str) -> None:
    """Raise an error if the value of an option names a path that the system refuses.

    Args:
        name: the option.
        value: its parsed value. Values of options without files are not checked.
        shown_as: the user's spelling of the option, for the message.
    """
    scopes = option(name).scopes
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and "path" in scopes:
            check_path(one, shown_as)
            refuse_address(one, shown_as)
        elif isinstance(one, str) and "content" in scopes:
            # NAME, NAME:PATH or PATH:WEIGHT.
            path = parse_weight(one)[0] if name == "noise" else one.partition(":")[2] or one
            check_path(path, shown_as)


def _refuse_two_deciders(tracker: TrackerSettings, votes: int | None) -> None:
    """Reject settings that combine two of: a majority vote, a sequential test, single answers."""
    if tracker.error_rate == ():
        given = {"votes": votes not in (None, 1), "noise_floor": tracker.noise_floor is not None}
        for name in (option(name).spelled for name, is_given in given.items() if is_given):
            raise UserError(
                f"--dst-error-rate=no asks each context once, but {name} needs repeated answers: "
                "leave one out"
            )
    for name in ("noise_floor", "error_rate") if votes is not None else ():
        if getattr(tracker, name):
            raise UserError(
                f"dst_votes uses a majority vote, but {option(name).spelled} replaces it by a "
                "sequential test: leave one out"
            )


def _refuse_test_without_wobble(tracker: TrackerSettings) -> None:
    """Reject a sequential test if each context is requested only once."""
    for name in ("noise_floor", "error_rate"):
        if getattr(tracker, name):
            raise UserError(
                f"{option(name).spelled} is for answers that vary, but --dst-repeatable declares "
                "that they do not: leave one out, or use --dst-repeatable=no"
            )


def split_keys(keys: Iterable[OwnKey], shown_as: str) -> dict[str, Any]:
    """Return the parsed values of the tracker keys that are in the option table."""
    texts: dict[str, str] = {}
    for key in keys:
        if key.name in KEYS:
            several = option(key.name).repeated and key.name in texts
            texts[key.name] = f"{texts[key.name]}\n{key.value}" if several else key.value
    return {name: parse_option(name, text, f"{shown_as} {name}") for name, text in texts.items()}


def _with_keys(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parsed values with each key of a name, ``NAME:KEY=VALUE``, as an option."""
    for owner in (name for name in NAMED if given.get(name)):
        names, texts = split_named(owner, given[owner])
        keys = {
            name: parse_option(name, text, option(name).spelled) for name, text in texts.items()
        }
        given = {**given, **keys, owner: names}
    return given


def split_named(owner: str, text: str) -> tuple[str, dict[str, str]]:
    """Split names with keys into the plain names, and the values of the options behind the keys.

    The form is ``NAME:VALUE:KEY=VALUE``, in which the value and the keys are optional. Commas
    separate names. ``+`` separates the parts of a list in the value of a key. A value may be in
    double quotes.

    Args:
        owner: the option that contains the names, one of `NAMED`.
        text: its value.

    Raises:
        UserError: a name has no such key or occurs twice, or a setting has two values.

    >>> split_named("compare", "numbers,judge:openai+http://localhost:8000/v1:calls=500")
    ('numbers,judge', {'judge': 'openai+http://localhost:8000/v1', 'judge_calls': '500'})
    """
    names: list[str] = []
    texts: dict[str, str] = {}
    for entry in entries(text):
        head, *keys = entry_parts(entry)
        name, _, value = head.partition(":")
        if "://" in ",".join(texts.values()) and not _NAME.fullmatch(name):
            # Do not repeat the text, which may be the end of a password.
            raise UserError(f"--dst-{owner}: an address ends at the first comma: {QUOTES}")
        own = [item for item in OPTIONS if item.of == owner and name in (item.kinds or (name,))]
        known = {item.key: item for item in own}
        given = []
        if "" in known:
            head = name
            given = [(known[""], unquote_value(value))] if value else []
        elif '"' in head:
            raise UserError(f"--dst-{owner}: {name} takes no value in double quotes")
        for number, key in enumerate(keys):
            called, _, said = key.partition("=")
            found = known.get(called.replace("_", "-"))
            said = unquote_value(said)
            if found is None:
                raise _unknown_key(owner, name, entry, keys[number:], known)
            listed = found.value.separator == ","
            given.append((found, said.replace("+", ",") if listed else said))
        if head in names:
            raise UserError(f"--dst-{owner} names {mask_credentials(head)!r} twice: name it once")
        for found, said in given:
            if texts.setdefault(found.name, said) != said:
                raise UserError(
                    f"--dst-{owner}: {found.key or 'the value'} of {name} has two different "
                    "values: leave one out"
                )
        names.append(head)
    return ",".join(names), texts


def _unknown_key(
    owner: str, name: str, entry: str, keys: Sequence[str], known: Iterable[str]
) -> UserError:
    """Return the error for an entry with unknown keys. The error names the first one."""
    valid = sorted(filter(None, known))
    called = keys[0].partition("=")[0]
    rest = ":".join(keys)
    address = entry.removesuffix(rest)
    # The key may be part of a password or of a query in the address.
    if "://" in entry and ("@" in rest or set("?#") & set(address)):
        return UserError(
            f"--dst-{owner}: an unknown key of {name} follows its address. Valid: "
            f"{', '.join(valid)}. Or {QUOTES}."
        )
    return UserError(
        f"--dst-{owner}: {unknown_name(f'key of {name}:', called, valid)} Or {QUOTES}."
    )


def python_value(name: str, value: object) -> Any:
    """Convert a Python value to the value of an option. A text is parsed as on a command line."""
    item = option(name)
    if value is None and name in _may_be_none():
        return None
    if isinstance(value, Address):
        return value
    if value == () and isinstance(Settings().option(name), tuple):
        return ()
    if isinstance(value, Mapping) and name == "arguments":
        value = rule_lines(value, name)
    if isinstance(value, Mapping) and name == "tracker":
        pairs = ((key, part if isinstance(part, list) else [part]) for key, part in value.items())
        value = [f"{key}={one}" for key, part in pairs for one in part]
    if isinstance(value, tuple) and all(isinstance(one, OwnKey) for one in value):
        return value
    if isinstance(value, tuple) and name == "header":
        return tuple(one if isinstance(one, Header) else Header.parse(one) for one in value)
    found = item.text_of(os.fspath(value) if isinstance(value, os.PathLike) else value)
    if found is None:
        raise UserError(f"{name}: {value!r} has the wrong type ({type(value).__name__})")
    return parse_option(name, found, name)


@cache
def _may_be_none() -> frozenset[str]:
    """Return the names of the options that may be ``None``."""
    parts = get_type_hints(Settings)
    hints = {part: get_type_hints(kind) for part, kind in parts.items()}
    return frozenset(
        item.name for item in OPTIONS if type(None) in get_args(hints[item.part][item.name])
    )


def _with(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return settings with some values replaced in their parts."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        parts.setdefault(option(name).part, {})[name] = value
    changed: dict[str, Any] = {
        part: replace(getattr(settings, part), **new) for part, new in parts.items()
    }
    return replace(settings, **changed)


def check_variant(settings: VariantSettings, where: str = "") -> None:
    """Raise an error if the number of the chosen variant is too large.

    The two numbers may come from a session and from one of its tests, so they are compared only
    when that test runs. ``where`` names their origin for the message.
    """
    if settings.variant is not None and settings.variant >= settings.variants:
        raise UserError(
            f"there is no variant {settings.variant}: the variants are numbered from 0 to "
            f"{settings.variants - 1}{where}"
        )


def settings_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain JSON values by option, in the order of the option table."""
    return {
        name: [_plain(part) for part in value] if isinstance(value, tuple) else _plain(value)
        for name, value in settings.options().items()
    }


def settings_of_json(values: Mapping[str, Any]) -> Settings:
    """Return the settings that `settings_json` wrote. Unknown options are ignored."""
    defaults = Settings().options()
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name not in defaults:
            continue
        kept[name] = _of_plain(name, value)
        if defaults[name] is not None and not isinstance(kept[name], type(defaults[name]) | None):
            raise DataError(
                f"this is not a complete report: the setting {name!r} has the value {value!r}"
            )
    return _with(Settings(), kept)


def _of_plain(name: str, value: Any) -> Any:
    """Return the value of an option from the output of `_plain`, which masks credentials."""
    if isinstance(value, str) and name in _ADDRESSES:
        return without_credentials(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        if name == "header":
            return tuple(Header.parse(one) for one in value)
        if name == "tracker":
            return tuple(OwnKey(*one.split("=", 1)) for one in value if "=" in one)
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Return a value as plain JSON, without credentials."""
    return str(value) if isinstance(value, Address | Header | OwnKey) else value
