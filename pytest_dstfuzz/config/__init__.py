"""Internal: Settings of a campaign, and the one option table that pytest and the command share."""

from __future__ import annotations

from pytest_dstfuzz.config.options import (
    MARKER_NAMES,
    OPTION_NAMES,
    OPTIONS,
    names_of,
    option,
    option_text,
    parse_option,
)
from pytest_dstfuzz.config.parsers import (
    ATTACKS,
    SPLIT_ALIASES,
    SPLITS,
    VALIDITIES,
    Option,
    canonical_split,
)
from pytest_dstfuzz.config.secret import (
    MASK,
    Address,
    Header,
    OwnKey,
    masked,
    masked_words,
    revealed,
)
from pytest_dstfuzz.config.settings import (
    NO_CACHE,
    BudgetSettings,
    DataSettings,
    GateSettings,
    OutputSettings,
    Settings,
    TrackerSettings,
    VariantSettings,
    build_settings,
    check_variant,
    settings_json,
    settings_of_json,
)
from pytest_dstfuzz.config.tracker_keys import ADAPTER, KEYS, SERVICE

__all__ = [
    "ADAPTER",
    "ATTACKS",
    "KEYS",
    "MARKER_NAMES",
    "MASK",
    "NO_CACHE",
    "OPTIONS",
    "OPTION_NAMES",
    "SERVICE",
    "SPLITS",
    "SPLIT_ALIASES",
    "VALIDITIES",
    "Address",
    "BudgetSettings",
    "DataSettings",
    "GateSettings",
    "Header",
    "Option",
    "OutputSettings",
    "OwnKey",
    "Settings",
    "TrackerSettings",
    "VariantSettings",
    "build_settings",
    "canonical_split",
    "check_variant",
    "masked",
    "masked_words",
    "names_of",
    "option",
    "option_text",
    "parse_option",
    "revealed",
    "settings_json",
    "settings_of_json",
]
