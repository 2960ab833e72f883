"""Internal: Settings of a campaign, and the option table of pytest and the ``dstfuzz`` command."""

from __future__ import annotations

from pytest_dstfuzz.config.identity import TOO_LARGE as TOO_LARGE
from pytest_dstfuzz.config.identity import content_named_in as content_named_in
from pytest_dstfuzz.config.identity import identity_of as identity_of
from pytest_dstfuzz.config.identity import identity_of_address as identity_of_address
from pytest_dstfuzz.config.identity import input_files as input_files
from pytest_dstfuzz.config.identity import is_own_function as is_own_function
from pytest_dstfuzz.config.options import ADAPTER as ADAPTER
from pytest_dstfuzz.config.options import JUDGE as JUDGE
from pytest_dstfuzz.config.options import KEYS as KEYS
from pytest_dstfuzz.config.options import MARKER_NAMES as MARKER_NAMES
from pytest_dstfuzz.config.options import OPTION_NAMES as OPTION_NAMES
from pytest_dstfuzz.config.options import OPTIONS as OPTIONS
from pytest_dstfuzz.config.options import PROFILES as PROFILES
from pytest_dstfuzz.config.options import REPLY as REPLY
from pytest_dstfuzz.config.options import STATE as STATE
from pytest_dstfuzz.config.options import TOOL_CALLS as TOOL_CALLS
from pytest_dstfuzz.config.options import TRACKER_KEYS as TRACKER_KEYS
from pytest_dstfuzz.config.options import VALIDITIES as VALIDITIES
from pytest_dstfuzz.config.options import Profile as Profile
from pytest_dstfuzz.config.options import ReplySettings as ReplySettings
from pytest_dstfuzz.config.options import names_of as names_of
from pytest_dstfuzz.config.options import option as option
from pytest_dstfuzz.config.options import parse_option as parse_option
from pytest_dstfuzz.config.parsers import ATTACKS as ATTACKS
from pytest_dstfuzz.config.parsers import SPLIT_ALIASES as SPLIT_ALIASES
from pytest_dstfuzz.config.parsers import SPLITS as SPLITS
from pytest_dstfuzz.config.parsers import Option as Option
from pytest_dstfuzz.config.parsers import canonical_split as canonical_split
from pytest_dstfuzz.config.parsers import mask_command_line as mask_command_line
from pytest_dstfuzz.config.parsers import shard_text as shard_text
from pytest_dstfuzz.config.secret import Address as Address
from pytest_dstfuzz.config.secret import Header as Header
from pytest_dstfuzz.config.secret import OwnKey as OwnKey
from pytest_dstfuzz.config.secret import reveal_credentials as reveal_credentials
from pytest_dstfuzz.config.secret import split_address as split_address
from pytest_dstfuzz.config.settings import NAMED as NAMED
from pytest_dstfuzz.config.settings import NO_CACHE as NO_CACHE
from pytest_dstfuzz.config.settings import BudgetSettings as BudgetSettings
from pytest_dstfuzz.config.settings import GateSettings as GateSettings
from pytest_dstfuzz.config.settings import OutputSettings as OutputSettings
from pytest_dstfuzz.config.settings import Settings as Settings
from pytest_dstfuzz.config.settings import TrackerSettings as TrackerSettings
from pytest_dstfuzz.config.settings import VariantSettings as VariantSettings
from pytest_dstfuzz.config.settings import build_settings as build_settings
from pytest_dstfuzz.config.settings import check_variant as check_variant
from pytest_dstfuzz.config.settings import python_value as python_value
from pytest_dstfuzz.config.settings import settings_json as settings_json
from pytest_dstfuzz.config.settings import settings_of_json as settings_of_json
from pytest_dstfuzz.config.settings import split_named as split_named
from pytest_dstfuzz.errors import MASK as MASK
from pytest_dstfuzz.errors import mask_credentials as mask_credentials

__all__ = [
    "ADAPTER",
    "MASK",
    "OPTIONS",
    "PROFILES",
    "TOO_LARGE",
    "VALIDITIES",
    "Address",
    "Header",
    "OutputSettings",
    "OwnKey",
    "Settings",
    "TrackerSettings",
    "VariantSettings",
    "build_settings",
    "canonical_split",
    "content_named_in",
    "identity_of",
    "identity_of_address",
    "input_files",
    "is_own_function",
    "mask_command_line",
    "mask_credentials",
    "names_of",
    "parse_option",
    "python_value",
    "settings_json",
    "settings_of_json",
    "shard_text",
]
