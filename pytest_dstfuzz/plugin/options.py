"""Options and ini keys, made from the one option table; loads nothing heavy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from pytest_dstfuzz.config import OPTIONS, Option, Settings, build_settings, parse_option

_GROUP = "dstfuzz: robustness of dialogue state trackers"
#: Options that hold a path. Of an ini file it is relative to the file, as with pytest's own.
_PATHS = ("data", "checkpoint", "report")
#: Options that concern a whole session: repeating one test must not apply them again.
_SESSION_ONLY = ("report", "max_seconds", "max_calls", "max_failure_rate", "fail_on")


class Given(NamedTuple):
    """One option that the user gave a value."""

    name: str
    value: str
    #: How the user spelled the option, for messages.
    shown_as: str
    on_command_line: bool


def add_options(parser: pytest.Parser) -> None:
    """Register every option of the table for the command line and the ini file.

    All defaults are ``None``: what was not given must be told apart from what was.
    """
    group = parser.getgroup("dstfuzz", _GROUP)
    for item in OPTIONS:
        several = _may_repeat(item)
        group.addoption(
            f"--dst-{item.flag}",
            dest=f"dst_{item.name}",
            action="append" if several else "store",
            metavar=item.metavar,
            default=None,
            help=item.help.replace("%", "%%"),
        )
        kind: Literal["linelist", "string"] = "linelist" if several else "string"
        parser.addini(f"dst_{item.name}", f"same as --dst-{item.flag}", kind, default=None)


def given_options(config: pytest.Config) -> tuple[Given, ...]:
    """Return the options that the command line or else the ini file gives a value."""
    found = (_given(config, item) for item in OPTIONS)
    return tuple(given for given in found if given is not None)


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of the session: command line before ini before default.

    Raises:
        UserError: an option has a value that it does not take.
    """
    values: dict[str, Any] = {}
    for given in given_options(config):
        value = parse_option(given.name, given.value, given.shown_as)
        if given.name in _PATHS and not given.on_command_line:
            value = _beside_ini(config, given.name, value)
        values[given.name] = value
    return build_settings(values)


def repeat_options(config: pytest.Config, seed: int) -> str:
    """Return the options, quoted for a shell, under which one test repeats what it did."""
    words = [
        f"--dst-{given.name.replace('_', '-')}={value}"
        for given in given_options(config)
        if given.on_command_line and given.name not in (*_SESSION_ONLY, "seed")
        for value in given.value.splitlines()
    ]
    return shlex.join([*words, f"--dst-seed={seed}"])


def _given(config: pytest.Config, item: Option) -> Given | None:
    typed = config.getoption(f"dst_{item.name}", default=None)
    if typed is not None:
        return Given(item.name, _joined(typed), f"--dst-{item.flag}", on_command_line=True)
    written = config.getini(f"dst_{item.name}")
    if written is None:
        return None
    return Given(item.name, _joined(written), f"dst_{item.name} (ini)", on_command_line=False)


def _may_repeat(item: Option) -> bool:
    # A lock may be a regular expression with commas in it, so it is given one at a time.
    return item.name == "lock"


def _joined(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "\n".join(value)


def _beside_ini(config: pytest.Config, name: str, value: str) -> str:
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    path = folder / Path(value).expanduser()
    # A data set may be given by name as well, and then there is no such file.
    return str(path) if name == "report" or path.exists() else value
