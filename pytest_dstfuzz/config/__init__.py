"""Settings of a campaign, and the one option table that pytest and the command share."""

from __future__ import annotations

from pytest_dstfuzz.config.option import Option
from pytest_dstfuzz.config.options import (
    MARKER_NAMES,
    OPTION_NAMES,
    OPTIONS,
    option,
    option_text,
    parse_option,
)
from pytest_dstfuzz.config.parsers import canonical_split
from pytest_dstfuzz.config.secret import MASK, Address, Header, masked, masked_words, revealed
from pytest_dstfuzz.config.settings import (
    ADAPTER,
    ATTACKS,
    NO_CACHE,
    SERVICE,
    SPLIT_ALIASES,
    SPLITS,
    VALIDITIES,
    Settings,
    build_settings,
    check_variant,
    settings_json,
)

__all__ = [
    "ADAPTER",
    "ATTACKS",
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
    "Header",
    "Option",
    "Settings",
    "build_settings",
    "canonical_split",
    "check_variant",
    "masked",
    "masked_words",
    "option",
    "option_text",
    "parse_option",
    "revealed",
    "settings_json",
]
