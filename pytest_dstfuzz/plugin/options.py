"""Options and ini keys of the one option table: what they are given; loads nothing heavy."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest

from pytest_dstfuzz.config import (
    NO_CACHE,
    OPTIONS,
    Option,
    Settings,
    build_settings,
    masked_words,
    option_text,
    parse_option,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.gate.limits import Gates, Limits, read_gates
from pytest_dstfuzz.transformations import select

#: The option table as data; ``python -m pytest_dstfuzz.plugin.options`` writes it anew.
TABLE = Path(__file__).with_name("options.json")
#: Options that hold a path. Of an ini file it is relative to the file, as with pytest's own.
_PATHS = (
    *("data", "checkpoint", "slot_map", "prompt", "cache", "report", "html", "baseline"),
    "regressions",
)
#: Those of them that may name a file that is not there yet.
_WRITTEN = ("cache", "report", "html", "baseline", "regressions")
#: The searches that were trained on the trackers that ship.
_AGENTS = {"trade": "agent", "simpletod": "agent:simpletod"}
#: Options that concern a whole session: repeating one test must not apply them again.
_SESSION_ONLY = (
    *("report", "html", "annotations", "max_seconds", "max_calls", "max_failure_rate", "fail_on"),
    *("max_tokens", "max_cost", "remember", "regressions", "replay"),
    *("baseline", "update_baseline", "max_regression", "inconclusive", "max_clean_drift"),
    "min_accuracy",
)
#: Options that do nothing without a baseline.
_WITH_BASELINE = ("update_baseline", "max_regression", "max_clean_drift")


class Given(NamedTuple):
    """One option that the user gave a value."""

    name: str
    value: str
    #: How the user spelled the option, for messages.
    shown_as: str
    on_command_line: bool


def option_table() -> list[dict[str, Any]]:
    """Return the option table as the plain values that every pytest run reads."""
    hints = get_type_hints(Settings)
    found = []
    for item in OPTIONS:
        kinds = {"action": "append" if item.separator == "\n" else "store"}
        if item.alone:
            kinds = {"action": "store_const", "const": item.alone}
        words = {"metavar": item.metavar, "help": item.help.replace("%", "%%")}
        found.append(
            {
                "name": item.name,
                "per_test": item.per_test,
                "ini": ["linelist"] if item.separator else _ini_kinds(hints[item.name]),
                "command_line": words | kinds,
            }
        )
    return found


def _ini_kinds(hint: Any) -> list[str]:
    """Return what an ini key holds, by the type of the setting: a text, or also a number."""
    kinds = {str, *(get_args(hint) or (hint,))} - {type(None)}
    if float in kinds:
        kinds.add(int)  # 0 is a rate too
    # A pair of numbers is written as a text.
    if not kinds <= {str, int, float, bool}:
        return ["str"]
    # The text first: what an ini file gives stays one, and the option table reads it.
    return [kind.__name__ for kind in sorted(kinds, key=lambda k: (k is not str, k.__name__))]


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
        if given.name in _PATHS and given.on_command_line:
            # A shell leaves the tilde of --name=~/file as it is.
            value = os.path.expanduser(value)  # noqa: PTH111 - never fails, keeps ./ and ../
        elif given.name in _PATHS:
            value = _beside_ini(config, given.name, value)
        values[given.name] = value
    settings = build_settings(values)
    _refuse_without_baseline(config, settings)
    if "fail_on" not in values and table_of(config).of_violations:
        settings = replace(settings, fail_on="gate")
    if "search" in values:
        return settings
    return replace(settings, search=default_search(settings))


def table_of(config: pytest.Config) -> Gates:
    """Return the limits of the table ``[tool.dstfuzz.gates]``.

    It is that of the ``pyproject.toml`` beside the ini file, or in pytest's root folder.

    Raises:
        UserError: the table has a name or a value that it does not take.
    """
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    path = folder / "pyproject.toml"
    return read_gates(path) if path.is_file() else Gates()


def gates_of(config: pytest.Config, settings: Settings) -> Gates:
    """Return the limits of a session: options go before the table."""
    table = table_of(config)
    given = {
        name: value
        for name in (item.name for item in fields(Limits))
        if (value := getattr(settings, name)) is not None
    }
    return replace(table, whole=replace(table.whole, **given))


def _refuse_without_baseline(config: pytest.Config, settings: Settings) -> None:
    """Refuse what does nothing without a baseline; an ini file may serve runs without one."""
    if settings.baseline is not None:
        return
    for given in given_options(config):
        if given.name in _WITH_BASELINE and given.on_command_line:
            raise UserError(f"{given.shown_as} needs a baseline: --dst-baseline=FILE names it")


def default_search(settings: Settings) -> str:
    """Return the search that is best for a tracker, where the user names none.

    The shipped agents were trained on the shipped trackers, in the profile ``strict``, and break
    most turns there (``examples/rq3``); what they are worth elsewhere nobody has measured.
    """
    its_own = settings.checkpoint is None and settings.validity == "strict"
    # They know none of the operators of others, which a user names to have them used.
    its_own = its_own and select(settings.only).shipped == select(settings.only)
    return _AGENTS.get(settings.model or "", settings.search) if its_own else settings.search


def repeat_options(config: pytest.Config, seed: int) -> str:
    """Return the options, quoted for a shell, under which one test repeats what it did."""
    words = [
        f"--dst-{given.name.replace('_', '-')}={value}"
        for given in given_options(config)
        if given.on_command_line and given.name not in (*_SESSION_ONLY, "seed")
        for value in given.value.splitlines()
    ]
    return shlex.join([*masked_words(words), f"--dst-seed={seed}"])


def _given(config: pytest.Config, item: Option) -> Given | None:
    typed = config.getoption(f"dst_{item.name}", default=None)
    if typed is not None:
        # A lock may be a regular expression with commas in it, so it is given one at a time.
        value = typed if isinstance(typed, str) else "\n".join(typed)
        return Given(item.name, value, f"--dst-{item.flag}", on_command_line=True)
    written = _written(config, item)
    if written is None:
        return None
    return Given(item.name, written, f"dst_{item.name} (ini)", on_command_line=False)


def _written(config: pytest.Config, item: Option) -> str | None:
    """Return what the ini file or the TOML table gives an option, as text.

    Raises:
        UserError: a value of a type that the option does not take there.
    """
    name = f"dst_{item.name}"
    try:
        value = config.getini(name)
        text = None if value is None else option_text(item.name, value)
        wrong = value is not None and text is None
    except (TypeError, ValueError, pytest.UsageError):
        # A type of TOML that pytest itself does not let through.
        wrong = True
    if wrong:
        how = 'a list of texts, ["...", "..."]' if item.separator else 'a text in quotes, "..."'
        raise UserError(f"{name} (ini): no value of a type that it takes; in TOML write {how}")
    return text


def _beside_ini(config: pytest.Config, name: str, value: str) -> str:
    if (name, value) == ("cache", NO_CACHE):
        return value
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    path = folder / Path(value).expanduser()
    # A data set may be given by name as well, and then there is no such file.
    return str(path) if name in _WRITTEN or path.exists() else value


def spelled(name: str, settings: Settings, marked: bool) -> str:
    """Return a setting as the user wrote it: in the marker of a test, or as an option."""
    text = f"{name}={getattr(settings, name)}"
    return f"@pytest.mark.dst({text})" if marked else f"--dst-{text}"


def table_text() -> str:
    """Return what the file of data holds: a line for each option."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in option_table())
    return f"[\n{rows}\n]\n"


if __name__ == "__main__":
    TABLE.write_text(table_text(), encoding="utf-8")
