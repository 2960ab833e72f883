"""The selection of tests: named files and ids, markers, and the built-in suite.

Loads no large modules, because every run with an option imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.config import MARKER_NAMES, OPTION_NAMES, option, parse_option
from pytest_dstfuzz.config.options import rule_lines
from pytest_dstfuzz.errors import UserError, nearest, unknown_name
from pytest_dstfuzz.plugin.options import GivenOption
from pytest_dstfuzz.printable import format_list

#: In place of the path in the ids of the plugin's tests: the same on every machine.
NODE = "dstfuzz"
#: Fixtures of tests that replace the built-in suite.
_OWN_SUITE = ("dst_turn", "dst_conformance", "dst_proposer")
#: Options of pytest that exclude tests.
_NARROWING = ("keyword", "markexpr", "lf", "deselect", "stepwise")
#: Options of pytest that exclude files.
_IGNORING = ("ignore", "ignore_glob", "lf", "pyargs")
_MOST_NAMED = 3
#: Options of pytest that list tests or fixtures and run no test.
_LISTING = ("collectonly", "showfixtures", "show_fixtures_per_test")


def only_lists(config: pytest.Config) -> bool:
    """Return whether a run only lists tests or fixtures and executes none."""
    return any(config.getoption(name, default=False) for name in _LISTING)


@dataclass(frozen=True, slots=True)
class RunSelection:
    """The selection of tests on the command line.

    Attributes:
        ids: ids of tests that the plugin adds, as pytest prints them.
        files: files and tests on the command line. Folders and the ``testpaths`` of an ini file do
            not count.
        narrowed: whether some tests are excluded, for example by ``-k``.
        places: files and folders that are collected only for the fixtures of the ``ids``.
        everywhere: whether pytest collects all test files: no file or folder is named or ignored.
    """

    ids: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    narrowed: bool = False
    places: tuple[str, ...] = ()
    everywhere: bool = True

    @classmethod
    def take(cls, config: pytest.Config) -> RunSelection:
        """Read the arguments of ``config``. Remove ids of tests that the plugin adds.

        No file contains these tests, so pytest would report "file or directory not found".
        """
        ids = {argument: _own_id(argument, config) for argument in config.args}
        config.args[:] = [argument for argument, node in ids.items() if node is None]
        files: list[str] = []
        folder = config.invocation_params.dir
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS or any(
            config.rootpath.is_relative_to(normpath(folder / argument)) for argument in config.args
        )
        everywhere = whole and not any(config.getoption(name, default=None) for name in _IGNORING)
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            files = [one for one in config.args if not (folder / one).is_dir()]
        narrowed = any(config.getoption(name, default=None) for name in _NARROWING)
        own = tuple(node for node in ids.values() if node)
        places: list[str] = []
        if not config.args:
            named = dict.fromkeys(filter(None, map(_place_of, own)))
            places = config.args[:] = [str(config.rootpath / place) for place in named]
        return cls(own, tuple(files), narrowed, tuple(places), everywhere)

    @property
    def by_name(self) -> bool:
        """Whether files or tests are named."""
        return bool(self.ids or self.files)

    @property
    def selects(self) -> bool:
        """Whether the selection contains only part of a file or folder, by id or by a rule."""
        return self.narrowed or bool(self.ids) or any("::" in file for file in self.files)

    def adds_suite(self, given: Sequence[GivenOption], has_own: bool) -> bool:
        """Return whether the run includes the built-in suite."""
        named = {option.name: option for option in given}
        suite = named.get("suite")
        wanted = "auto" if suite is None else suite.value
        if "results" in named:
            return False
        if self.ids:
            return True
        if "model" not in named or wanted == "no":
            return False
        if wanted == "yes":
            # Two options on the command line are explicit, but an ini file applies to all runs.
            return not self.files or (suite is not None and suite.on_command_line)
        return named["model"].on_command_line and not has_own and not self.files

    def why_no_suite(self, given: Sequence[GivenOption], own: Sequence[str]) -> str:
        """Return the message that a suite's tests replace the built-in tests, or ``""``."""
        if not own or not self.adds_suite(given, has_own=False):
            return ""
        names = format_list(
            list(dict.fromkeys(name.partition("[")[0] for name in own)), _MOST_NAMED
        )
        return (
            f"the built-in suite does not run, because you have your own tests ({names}): run both "
            "with --dst-suite=yes"
        )

    def keep(self, items: list[pytest.Item]) -> None:
        """Remove the plugin's tests that were not selected by id."""
        if not self.ids:
            return
        added = [item for item in items if item.nodeid.startswith(f"{NODE}::")]
        for node in self.ids:
            if not any(_is_of(item, node) for item in added):
                raise pytest.UsageError(_missing(node, [item.nodeid for item in added]))
        items[:] = [
            item
            for item in items
            if not (self.places or item.nodeid.startswith(f"{NODE}::"))
            or any(_is_of(item, node) for node in self.ids)
        ]

    def untested(self, given: Iterable[GivenOption], has_fixtures: bool) -> str:
        """Return a warning if a run had no robustness test, or ``""``.

        Such a run passes, although the user gave a tracker or another option. ``has_fixtures`` says
        whether a test used a fixture of the plugin.
        """
        named = {option.name: option for option in given}
        model, suite = named.get("model"), named.get("suite")
        if "results" in named or (suite is not None and suite.value == "no"):
            return ""
        if model is None:
            typed = [option.shown_as for option in named.values() if option.on_command_line]
            if not typed or has_fixtures or self.by_name or self.narrowed:
                return ""
            return (
                "no robustness test ran: no bot is named, only "
                f"{format_list(typed, _MOST_NAMED)}. Name it, such as --dst-model=my_bot:answer "
                "or --dst-model=http://localhost:8000, or write tests with the fixtures dst_model "
                "and dst_turn"
            )
        if model.on_command_line and self.files:
            return (
                f"no robustness test ran: {', '.join(self.files[:_MOST_NAMED])} has none, and the "
                "built-in suite is not added if files or tests are named: add it with "
                "--dst-suite=yes"
            )
        # An ini file also applies to runs of other tests, which need no warning.
        if model.on_command_line or self.by_name or self.narrowed:
            return ""
        return (
            f"no robustness test ran: {model.shown_as} names a tracker, but no collected test uses "
            "dst_turn. Add the built-in suite with dst_suite = yes in the ini file or with "
            "--dst-suite=yes, or hide this line with dst_suite = no"
        )


_SELECTION: pytest.StashKey[RunSelection] = pytest.StashKey()


def selection_of(config: pytest.Config) -> RunSelection:
    """Return the selection on the command line of a session."""
    if _SELECTION not in config.stash:
        config.stash[_SELECTION] = RunSelection.take(config)
    return config.stash[_SELECTION]


def own_suite(items: Iterable[pytest.Item]) -> list[str]:
    """Return the ids of a suite's tests that replace the built-in suite.

    A test that uses only the tracker or the lexicon does not count. Promoted violations are such
    tests.
    """
    return [
        item.nodeid
        for item in items
        if any(name in _OWN_SUITE for name in getattr(item, "fixturenames", ()))
    ]


def uses_fixtures(items: Iterable[pytest.Item]) -> bool:
    """Return whether a test uses a fixture of the plugin."""
    used = (name for item in items for name in getattr(item, "fixturenames", ()))
    return any(name.startswith("dst_") for name in used)


def marker_values(markers: Iterable[pytest.Mark]) -> dict[str, Any]:
    """Return the parsed settings of a test's ``dst`` markers. The closest marker wins."""
    values: dict[str, Any] = {}
    for marker in markers:
        if marker.args:
            raise UserError(
                "@pytest.mark.dst takes named arguments only, such as transformations=2, "
                f"not {marker.args[0]!r}"
            )
        values = {**_values(marker.kwargs), **values}
    return values


def _values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name in OPTION_NAMES and name not in MARKER_NAMES:
            raise UserError(
                f"@pytest.mark.dst does not take {name!r}, which applies to a whole session "
                f"({option(name).spelled}). Valid: {', '.join(sorted(MARKER_NAMES))}."
            )
        if name not in MARKER_NAMES:
            raise unknown_name("argument of @pytest.mark.dst", name, MARKER_NAMES)
    values = {}
    for name, value in arguments.items():
        where = f"@pytest.mark.dst({name}=...)"
        spelled: object = rule_lines(value, where) if name == "arguments" else value
        text = option(name).text_of(spelled)
        if text is None:
            raise UserError(f"{where}: {value!r} has the wrong type ({type(value).__name__})")
        values[name] = parse_option(name, text, where)
    return values


def _own_id(argument: str, config: pytest.Config) -> str | None:
    """Return the id of a test that the plugin adds, or ``None`` for other arguments."""
    path, _, name = argument.partition("::")
    if not name:
        return None
    # From another folder, pytest prints it relative to that folder: ../dstfuzz::...
    place = Path(normpath(config.invocation_params.dir / path))
    return f"{NODE}::{name}" if path == NODE or place == config.rootpath / NODE else None


def _place_of(node: str) -> str:
    """Return the file or folder in the id of a test that the plugin adds, or ``""``."""
    return node.partition("[")[0].partition("::")[2].rpartition("::")[0]


def _is_of(item: pytest.Item, node: str) -> bool:
    return item.nodeid == node or item.nodeid.startswith(f"{node}[")


def _missing(node: str, known: Sequence[str]) -> str:
    guess = nearest(node, known)
    hint = f" Did you mean {guess}?" if guess else ""
    name = node.partition("[")[0].rpartition("::")[2]
    *most, last = OWN_TESTS
    why = OWN_TESTS.get(name, f"the tests of the plugin are {', '.join(most)} and {last}")
    return f"not found: {node}: {why}.{hint}"


_NOT_DRAWN = (
    "this run does not have it (the earlier run may have had another --dst-data, --dst-split, "
    "--dst-turns, --dst-seed, --dst-domains or --dst-relation)"
)
_NO_REPLIES = f"{_NOT_DRAWN}; it needs --dst-outcome=reply"
_NO_CALLS = f"{_NOT_DRAWN}; it needs --dst-outcome=tool-calls"
#: Name of a test that the plugin adds -> why one of its ids may be missing.
OWN_TESTS = {
    "test_belief_state_survives": _NOT_DRAWN,
    "test_belief_state_follows": _NOT_DRAWN,
    "test_reply_survives": _NO_REPLIES,
    "test_reply_follows": _NO_REPLIES,
    "test_tool_calls_survive": _NO_CALLS,
    "test_tool_calls_follow": _NO_CALLS,
    "regression": "no remembered violation of this data has that id",
    "results": "the folder of --dst-results has no result under that relation",
}
