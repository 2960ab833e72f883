"""Settings of a campaign, and the one option table that pytest and the command share."""

from __future__ import annotations

from pytest_dstfuzz.config.options import (
    MARKER_NAMES,
    OPTION_NAMES,
    OPTIONS,
    Option,
    option,
    option_text,
    parse_option,
)
from pytest_dstfuzz.config.parsers import canonical_split
from pytest_dstfuzz.config.settings import (
    ATTACKS,
    RELATIONS,
    SPLIT_ALIASES,
    SPLITS,
    TRANSFORMATIONS,
    VALIDITIES,
    Settings,
    build_settings,
    check_variant,
    settings_json,
)

__all__ = [
    "ATTACKS",
    "MARKER_NAMES",
    "OPTIONS",
    "OPTION_NAMES",
    "RELATIONS",
    "SPLITS",
    "SPLIT_ALIASES",
    "TRANSFORMATIONS",
    "VALIDITIES",
    "Option",
    "Settings",
    "build_settings",
    "canonical_split",
    "check_variant",
    "option",
    "option_text",
    "parse_option",
    "settings_json",
]
