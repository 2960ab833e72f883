"""Reads values of options and ini keys by the option table. Imports no large modules."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pytest_dstfuzz.config import (
    KEYS,
    NAMED,
    NO_CACHE,
    OPTIONS,
    GateSettings,
    Option,
    OwnKey,
    Settings,
    build_settings,
    mask_command_line,
    names_of,
    option,
    parse_option,
    split_named,
)
from pytest_dstfuzz.config.options import TABLE as KEY_TABLE
from pytest_dstfuzz.config.options import (
    check_sections,
    check_tables,
    table_keys,
    table_rules,
    table_synonyms,
)
from pytest_dstfuzz.dialogue.calls import TOOL_CALLS
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.files import check_path, read_table, refuse_address
from pytest_dstfuzz.gate.verdict import LIMITS, Gates, Limits, check_added, read_gates
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.search.registry import default_search

__all__ = ["read_settings"]

#: Options with a path. In an ini file it is relative to the file, as for pytest's own options.
_PATHS = names_of("path")
#: Options whose file need not exist yet.
_WRITTEN = names_of("written")


class GivenOption(NamedTuple):
    """An option with a value from the user."""

    name: str
    value: str
    #: The user's spelling of the option, for messages.
    shown_as: str
    on_command_line: bool


def given_options(config: pytest.Config) -> tuple[GivenOption, ...]:
    """Return the options with a value from the command line or the ini file."""
    items = (item for item in OPTIONS if item.has_ini)
    found = [given for item in items if (given := _given(config, item)) is not None]
    return (*found, *_shipped_assistant(found))


def unknown_key(config: pytest.Config, name: str) -> UserError:
    """Return the error for a key of the ini file or of ``-o`` that no plugin has registered."""
    keys = [f"dst_{item.name}" for item in OPTIONS if item.has_ini]
    overridden = config.getoption("override_ini", None) or ()
    typed = any(word.partition("=")[0] == name for word in overridden)
    return unknown_name("key of -o:" if typed else f"key in {config.inipath}:", name, keys)


def _shipped_assistant(found: Sequence[GivenOption]) -> Iterator[GivenOption]:
    """Yield the shipped assistant if the command line tests tool calls but names no bot or data."""
    named = {given.name: given for given in found}
    outcome = named.get("outcome")
    asked = outcome is not None and outcome.on_command_line and outcome.value == TOOL_CALLS
    if outcome is not None and asked and named.keys().isdisjoint(("model", "data", "results")):
        yield GivenOption("model", "assistant", f"{outcome.shown_as}={TOOL_CALLS}", True)


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of the session: command line before ini file before defaults."""
    keys = _keys_of_tracker(config)
    own = [given for given in keys if given.name not in KEYS]
    plain = [given for given in given_options(config) if given.name != "tracker"]
    named, more = _without_keys(plain)
    found = (*named, *(given for given in keys if given.name in KEYS), *more)
    # The keys of a name in an ini file must not override -o.
    found = tuple(sorted(_of_names(config, found), key=lambda given: given.on_command_line))
    values: dict[str, Any] = {}
    for given in found:
        value = parse_option(given.name, given.value, given.shown_as)
        values[given.name] = _placed(config, given, value) if given.name in _PATHS else value
    if own:
        if own[0].on_command_line and "model" not in values:
            raise UserError(f"{own[0].shown_as} needs a tracker: name one with --dst-model")
        values["tracker"] = tuple(OwnKey(given.name, given.value) for given in own)
    settings = _settings_of(values, (*found, *own))
    _refuse_without_baseline(config, settings.gate)
    if "fail_on" not in values and gates_of(config, settings).of_violations:
        settings = settings.replace_options(fail_on="gate")
    if "search" in values or settings.output.results is not None:
        return settings
    return settings.replace_options(search=default_search(settings))


def _settings_of(values: Mapping[str, Any], given: Sequence[GivenOption]) -> Settings:
    """Return the settings for parsed values. Stored results include their own settings."""
    if "results" not in values:
        return build_settings(values)
    # Loads the readers of results.
    from pytest_dstfuzz.plugin.stored import load_stored_settings  # noqa: PLC0415 - few runs need it

    return load_stored_settings(
        values, {one.name: one.shown_as for one in given if one.on_command_line}
    )


def _keys_of_tracker(config: pytest.Config) -> list[GivenOption]:
    """Return the keys of the tracker: command line before ini file before pyproject.toml."""
    item = option("tracker")
    path = _pyproject(config)
    if path.is_file():
        check_tables(path)
    if config.inipath is not None and config.inipath != path:
        check_sections(config.inipath)
    _refuse_table_elsewhere(config, path)
    _refuse_unread_settings(config)
    if _is_off(config, item.name):
        return []
    table = table_keys(path) if path.is_file() else {}
    keys = [GivenOption(name, text, f"{KEY_TABLE} {name}", False) for name, text in table.items()]
    for given in (_in_ini(config, item), _typed(config, item)):
        keys += [] if given is None else _as_keys(given)
    return list({one.name: one for one in keys}.values())


def _refuse_table_elsewhere(config: pytest.Config, read: Path) -> None:
    """Raise an error if only another ``pyproject.toml`` of the project has ``[tool.dstfuzz]``.

    Its limits would not apply, and nothing would say so.
    """
    if _table_in(read) is not None:
        return
    here = config.invocation_params.dir
    named = [here / arg.partition("::")[0] for arg in config.args]
    folders = [config.rootpath, here, *_folders_of_project(read), *named]
    paths = dict.fromkeys(folder / read.name for folder in folders if folder != read.parent)
    if path := next(filter(_table_in, paths), None):
        raise UserError(
            f"{path}: [tool.dstfuzz] has no effect, because pytest reads its settings from "
            f"{read.parent}: move the table to {read}, or the ini file of pytest to "
            f"{path.parent}; to run without these limits, add an empty [tool.dstfuzz] to {read}"
        )


#: File of pytest's settings -> the sections that it may have there.
_SECTIONS: Final = {
    **dict.fromkeys(("pytest.ini", ".pytest.ini", "tox.ini"), ("pytest",)),
    "setup.cfg": ("tool:pytest",),
}


def _refuse_unread_settings(config: pytest.Config) -> None:
    """Raise an error for options of this plugin in a file beside the one that pytest reads."""
    read = config.inipath
    if read is None:
        return
    for name in ("pyproject.toml", "pytest.toml", ".pytest.toml", *_SECTIONS):
        path = read.parent / name
        if path == read or not path.is_file():
            continue
        if found := sorted(key for key in _keys_in(path) if key.startswith("dst_")):
            raise UserError(
                f"{path}: {found[0]} has no effect, because pytest reads its settings from {read}: "
                f"move it to {read.name}"
            )


def _keys_in(path: Path) -> Iterator[str]:
    """Yield the names of the settings of pytest in a file. An unreadable file has none."""
    if path.suffix == ".toml":
        table = read_table(path, "[tool.pytest]" if path.name == "pyproject.toml" else "[pytest]")
        inner = table.get("ini_options") if isinstance(table, Mapping) else None
        for one in (table, inner):
            yield from one if isinstance(one, Mapping) else ()
        return
    sections = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    with suppress(ConfigError, UnicodeDecodeError):  # Pytest does not read this file.
        sections.read(path, encoding="utf-8")
    for name in _SECTIONS[path.name]:
        yield from sections[name] if sections.has_section(name) else ()


def _folders_of_project(file: Path) -> Sequence[Path]:
    """Return the folders above a file up to its repository, or two without a repository."""
    folders = file.parents
    depth = next((at for at, one in enumerate(folders, 1) if (one / ".git").exists()), 2)
    return folders[:depth]


def _table_in(path: Path) -> Any:
    """Return the table ``[tool.dstfuzz]`` of a file, or ``None`` if the file has none."""
    try:
        tools = read_table(path, "[tool]") if path.is_file() else {}
    except DataError:  # A file of another project. The file that is read is checked elsewhere.
        return None
    return tools.get("dstfuzz") if isinstance(tools, Mapping) else None


def _as_keys(given: GivenOption) -> list[GivenOption]:
    """Convert keys in the option ``tracker`` to options."""
    keys: dict[str, GivenOption] = {}
    for key in parse_option(given.name, given.value, given.shown_as):
        several = key.name in KEYS and option(key.name).repeated and key.name in keys
        text = f"{keys[key.name].value}\n{key.value}" if several else key.value
        shown = f"{given.shown_as} {key.name}"
        keys[key.name] = GivenOption(key.name, text, shown, given.on_command_line)
    return list(keys.values())


def _without_keys(found: Sequence[GivenOption]) -> tuple[list[GivenOption], list[GivenOption]]:
    """Split options with keys into the plain names and one option for each key."""
    named, keys = [], []
    for given in found:
        if given.name in NAMED:
            # Parse the whole value first, for messages about it.
            text = parse_option(given.name, given.value, given.shown_as)
            names, texts = split_named(given.name, text)
            typed = given.on_command_line
            keys += [
                GivenOption(name, said, option(name).spelled, typed) for name, said in texts.items()
            ]
            given = given._replace(value=names)  # noqa: PLW2901 - the same but for its keys
        named.append(given)
    return named, keys


def _of_names(config: pytest.Config, found: Sequence[GivenOption]) -> Iterator[GivenOption]:
    """Yield the options. Skip those of an object that the command line replaces.

    For example, an ini file may set the threshold of a comparison. If the command line names other
    comparisons, that threshold is skipped.
    """
    typed = {one.name: set(one.value.split(",")) for one in found if one.on_command_line}
    typed |= {owner: set() for owner in NAMED if _is_off(config, owner)}
    for given in found:
        item = option(given.name)
        names = typed.get(item.of, set(item.kinds))
        if given.on_command_line or not item.kinds or not names.isdisjoint(item.kinds):
            yield given


def _placed(config: pytest.Config, given: GivenOption, value: Any) -> Any:
    """Convert a path, or several paths, to paths relative to the folder of the run."""
    if isinstance(value, tuple):
        return tuple(_placed(config, given, one) for one in value)
    if given.on_command_line:
        # A shell does not expand the tilde in --name=~/file.
        return os.path.expanduser(value)  # noqa: PTH111 - never fails, keeps ./ and ../
    return beside_ini(config, given.name, value)


def _pyproject(config: pytest.Config) -> Path:
    """Return the path of the ``pyproject.toml`` next to the ini file, or in the root folder."""
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    return folder / "pyproject.toml"


def gates_of(config: pytest.Config, settings: Settings) -> Gates:
    """Return the limits of a session. Options override the table ``[tool.dstfuzz.gates]``."""
    path = _pyproject(config)
    added = tuple(chain.from_iterable(config.hook.pytest_dstfuzz_limits(config=config)))
    check_added(added)
    known = (*LIMITS, *added)
    table = read_gates(path, known) if path.is_file() else Gates(known=known)
    given = {
        limit.key: value
        for limit in LIMITS
        if (value := settings.option(limit.key)) is not None or _is_off(config, limit.key)
    }
    gates = replace(table, whole=Limits(**{**table.whole, **given}))
    return gates if settings.gate.baseline is not None else gates.without_baseline


def types_gate(config: pytest.Config) -> bool:
    """Return whether a limit or a baseline was typed for this run.

    The ``addopts`` of an ini file apply to all runs, as its other keys do.
    """
    names = {"baseline", *(limit.key for limit in LIMITS)}
    kept = [*map(str, config.getini("addopts"))]
    words = [*map(str, config.invocation_params.args)]
    words += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))

    def spelled(given: GivenOption, where: Sequence[str]) -> bool:
        spellings = (f"--dst-{option(given.name).flag}", f"dst_{given.name}")
        return any(spelling in word for spelling in spellings for word in where)

    return any(
        given.name in names
        and given.on_command_line
        and (spelled(given, words) or not spelled(given, kept))
        for given in given_options(config)
    )


def table_rules_of(config: pytest.Config) -> list[str]:
    """Return the rules in the table ``[tool.dstfuzz.arguments]`` as ``ARGUMENT=RULE``."""
    path = _pyproject(config)
    return table_rules(path) if path.is_file() else []


def synonyms_of(config: pytest.Config) -> tuple[tuple[str, str], ...]:
    """Return the pairs of phrases in the table ``[tool.dstfuzz.synonyms]``."""
    path = _pyproject(config)
    return table_synonyms(path) if path.is_file() else ()


def _refuse_without_baseline(config: pytest.Config, settings: GateSettings) -> None:
    """Raise an error if an option on the command line needs a baseline and none is named."""
    if settings.baseline is not None:
        return
    for given in given_options(config):
        if given.name in names_of("baseline") and given.on_command_line:
            raise UserError(f"{given.shown_as} needs a baseline: name it with --dst-baseline=FILE")


def repeat_options(config: pytest.Config, seed: int) -> str:
    """Return the options that repeat a test, quoted for a shell."""
    session = names_of("session")
    off = [
        f"--no-dst-{item.flag}"
        for item in OPTIONS
        if item.has_flag and item.name not in session and _is_off(config, item.name)
    ]
    words = [
        f"--dst-{option(given.name).flag}={value}"
        for given in given_options(config)
        if given.shown_as.startswith("--") and given.name not in (*session, "seed")
        for value in given.value.splitlines()
    ]
    keys = [
        word
        for name, value in _overridden(config).items()
        if name not in (*session, "seed")
        for word in ("-o", f"dst_{name}={value}")
    ]
    return shlex.join([*off, *mask_command_line([*words, *keys]), f"--dst-seed={seed}"])


def _overridden(config: pytest.Config) -> dict[str, str]:
    """Return the values of plugin keys in ``-o dst_NAME=VALUE``. The last value wins."""
    pairs = (word.partition("=") for word in config.getoption("override_ini", None) or ())
    return {key.removeprefix("dst_"): value for key, _, value in pairs if key.startswith("dst_")}


def _is_off(config: pytest.Config, name: str) -> bool:
    """Return whether the command line clears an option of an ini file or a table.

    This is done by ``--no-dst-NAME``, or by ``-o dst_NAME=`` with an empty value.
    """
    taken_back = config.getoption(f"dst_{name}", default=None) in (False, [])
    return taken_back or _overridden(config).get(name) == ""


def _given(config: pytest.Config, item: Option) -> GivenOption | None:
    if _is_off(config, item.name):
        return None
    return _typed(config, item) or _in_ini(config, item)


def _typed(config: pytest.Config, item: Option) -> GivenOption | None:
    """Return the value of an option on the command line."""
    typed = config.getoption(f"dst_{item.name}", default=None)
    if typed is None:
        return None
    # A conftest file may have set the value.
    value = item.text_of(typed)
    if value is None:
        raise UserError(
            f"--dst-{item.flag}: config.option.dst_{item.name} has the wrong type "
            f"({describe(typed)}): set a text, as on the command line"
        )
    return GivenOption(item.name, value, f"--dst-{item.flag}", True)


def _in_ini(config: pytest.Config, item: Option) -> GivenOption | None:
    """Return the value of an option in the ini file. ``-o`` overrides it."""
    written = _written(config, item)
    if written is None:
        return None
    if item.name in _overridden(config):
        return GivenOption(item.name, written, f"-o dst_{item.name}", True)
    return GivenOption(item.name, written, f"dst_{item.name} (ini)", False)


def _written(config: pytest.Config, item: Option) -> str | None:
    """Return the value of an option in the ini file or the TOML table, as text."""
    name = f"dst_{item.name}"
    try:
        value = config.getini(name)
        text = None if value is None else item.text_of(value)
        wrong = value is not None and text is None
    except (TypeError, ValueError, pytest.UsageError):
        # A TOML type that pytest refuses.
        wrong = True
    if wrong:
        several = item.value.separator
        how = 'a list of texts, ["...", "..."]' if several else 'a text in quotes, "..."'
        raise UserError(f"{name} (ini): the value has the wrong type; in TOML write {how}")
    return text


def beside_ini(config: pytest.Config, name: str, value: str) -> str:
    """Return the path of an option in an ini file, relative to the folder of the run."""
    if (name, value) == ("cache", NO_CACHE):
        return value
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    path = folder / os.path.expanduser(value)  # noqa: PTH111 - never fails
    check_path(path, f"dst_{name} (ini)")
    refuse_address(value, f"dst_{name} (ini)")
    # A data set may also be given by name, and then there is no such file.
    return str(path) if name in _WRITTEN or path.exists() else value


def spell_option(name: str, settings: Settings, marked: bool) -> str:
    """Return a setting as users write it: in the marker of a test, or as an option."""
    value = settings.option(name)
    return f"@pytest.mark.dst({name}={value})" if marked else f"{option(name).spelled}={value}"
