"""What every pytest run loads of the plugin: options, marker and fixtures.

It imports nothing else of the package until something of it is used: a ``--dst-`` option, a
``dst_`` ini key, the marker, a ``dst_`` fixture. What tests then need (`hooks`, and with it
numpy, the readers, the campaign) is loaded by the first that needs it. The option table is
read from a file of data, which is as the table of `config` is: a test holds that.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from functools import cache, partial, reduce
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from operator import or_
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_dstfuzz.gate.verdict import Limit
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.plugin.hooks import SessionHooks
    from pytest_dstfuzz.plugin.turn import DstConformance, DstProposer, DstReport, DstTurn
    from pytest_dstfuzz.totals.totals import Totals

__all__ = ["dst_compare", "dst_conformance", "dst_lexicon", "dst_model"]
__all__ += ["dst_outcome", "dst_proposer", "dst_relation", "dst_report", "dst_search", "dst_turn"]
__all__ += ["pytest_addhooks", "pytest_addoption", "pytest_collection_modifyitems"]
__all__ += ["pytest_configure"]
__all__ += ["pytest_generate_tests", "pytest_load_initial_conftests", "pytest_sessionstart"]
__all__ += ["pytest_terminal_summary"]

_OURS = f"{__name__.partition('.')[0]}."
_TABLE = Path(__file__).with_name("options.json")
_KINDS = {"bool": bool, "float": float, "int": int, "str": str}
#: Whether an ini key may be a text or a number in a TOML table. Before pytest 9.2 it may not,
#: and a number there is refused with a message that says how to write it.
_UNIONS = pytest.version_tuple >= (9, 2)
#: Present in a run in which something of the plugin is used.
_SESSION: pytest.StashKey[SessionHooks] = pytest.StashKey()
_PLAIN_IMPORTS: pytest.StashKey[PlainImports] = pytest.StashKey()


@cache
def _always() -> dict[str, Any]:
    """Return the ini keys with what they hold and are for, and the names that the marker takes."""
    with _TABLE.open(encoding="utf-8") as file:
        line: dict[str, Any] = json.loads(file.readline())
    return line


@cache
def _table() -> dict[str, Any]:
    """Return the whole table, for runs in which an option may be given."""
    text = _TABLE.read_text(encoding="utf-8").partition("\n")[2]
    table: dict[str, Any] = json.loads(text)
    return table


class Hooks:
    """The hooks of this plugin, for conftest files and other plugins."""

    @pytest.hookspec
    def pytest_dstfuzz_limits(self, config: pytest.Config) -> Sequence[Limit]:
        """Return limits that ``[tool.dstfuzz.gates]`` may hold beside those of the package."""
        raise NotImplementedError

    @pytest.hookspec
    def pytest_dstfuzz_report_section(
        self, config: pytest.Config, totals: Totals
    ) -> tuple[str, Sequence[str]] | None:
        """Return the title and the lines of a section that every report of a tracker has."""
        raise NotImplementedError


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let conftest files and other plugins add limits and sections."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register every ini key, and every option where one may be given or help is asked for.

    Telling argparse of sixty options is most of what an unused plugin would cost. Where none is
    given they are unset: that is what ``config.option`` and ``config.getoption`` say of them.
    All defaults are ``None``: what was not given must be told apart from what was.
    """
    keys, help_ = _always()["ini"], _always()["help"]
    types = {holds: _ini_type(holds) for holds in set(keys.values())}
    for name, holds in keys.items():
        about = help_.get(name, f"same as --dst-{name.replace('_', '-')}")
        parser.addini(f"dst_{name}", about, types[holds], default=None)
    config: pytest.Config | None = pluginmanager.get_plugin("pytestconfig")
    if config is None or _may_be_given(config):
        _add_options(parser)
    else:
        unset = vars(config.option)
        for name in (name for name in keys if name not in help_):
            unset[f"dst_{name}"] = unset[f"--dst-{name.replace('_', '-')}"] = None


def _may_be_given(config: pytest.Config) -> bool:
    # The controller of xdist gives its workers the values of options, not the arguments.
    known = any(value is not None for name, value in vars(config.option).items() if "dst_" in name)
    if known or "_ARGCOMPLETE" in os.environ:
        return True
    try:
        written = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    except ValueError:
        return True  # pytest did not read its settings yet, or it is going to refuse them.
    return _may_hold_options([*written, *map(str, config.invocation_params.args)])


def _may_hold_options(arguments: list[str]) -> bool:
    """Whether an option of the plugin is among some arguments, or help, or a file with more."""
    return any(
        word.startswith(("--dst-", "--no-dst-", "--help", "@"))
        or (word.startswith("-") and not word.startswith("--") and "h" in word)
        for word in arguments
    )


def _add_options(parser: pytest.Parser) -> None:
    table = _table()
    own: set[str] = set()
    for item in table["options"]:
        name, flags, how = f"dst_{item['name']}", item["flags"], dict(item["command_line"])
        how["help"] = how["help"] or argparse.SUPPRESS
        if len(flags) > 1:
            own.update(flags)
            how["action"] = _Spelling
        parser.getgroup(*item["group"]).addoption(*flags, dest=name, default=None, **how)
    offs = [flag for flag in table["spellings"] if flag not in own]
    group = parser.getgroup("dstfuzz-gate")
    group.addoption(*offs, dest="dst_off", action=_Spelling, help=argparse.SUPPRESS)


class _Spelling(argparse.Action):
    """Puts down what a spelling without a value says: --no-dst-NAME, --dst-NAME=yes."""

    def __init__(self, option_strings: Sequence[str], dest: str, **how: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **how)

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - as argparse calls it
        namespace: argparse.Namespace,
        values: object,  # noqa: ARG002 - likewise
        option_string: str | None = None,
    ) -> None:
        name, said = _table()["spellings"][option_string]
        setattr(namespace, f"dst_{name}", said)


def _ini_type(kinds: str) -> Any:
    """Return what an ini key holds: lines, a text, or a text or a number."""
    if kinds == "linelist":
        return "linelist"
    return reduce(or_, (_KINDS[kind] for kind in kinds.split())) if _UNIONS else "string"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Let a conftest.py, too, import what the command line asks for without rewriting."""
    if any(word.startswith(("--dst-", "--no-dst-")) for word in args):
        _use(early_config)
    yield
    # Other plugins may have added arguments.
    if _may_hold_options(args) and not hasattr(early_config.known_args_namespace, "dst_off"):
        _add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and listen for results of tests."""
    names = ", ".join(_always()["marker"])
    config.addinivalue_line(
        "markers",
        "dst(name=value, ...): settings of one robustness test of a dialogue state tracker, such "
        f"as transformations=2, edits='char_drop', max_edit_rate=0.2. Names: {names}.",
    )
    config.pluginmanager.register(_WorkerResults(config), "dstfuzz-worker-results")
    if _is_given(config) or any("dstfuzz::" in word for word in config.args):
        _use(config)
        from pytest_dstfuzz.plugin.selection import selection_of  # noqa: PLC0415

        selection_of(config)


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None]:
    """Refuse wrong options, data and trackers before anything is collected.

    A wrapper, so that it runs before workers are started and the header is printed.
    """
    if _PLAIN_IMPORTS in session.config.stash:
        from pytest_dstfuzz.plugin.steps import refuse_mistakes  # noqa: PLC0415

        refuse_mistakes(session.config, partial(_started, session.config))
    return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Check the markers of a test, and make one item of it for each sampled turn.

    Packages with fixtures of their own, ``dst_...``, are loaded without rewriting, too.
    """
    markers = list(metafunc.definition.iter_markers("dst"))
    about_turns = "dst_turn" in metafunc.fixturenames
    if markers or about_turns:
        _use(metafunc.config)
        from pytest_dstfuzz.plugin.steps import check_test  # noqa: PLC0415

        check_test(metafunc, markers, partial(_started, metafunc.config) if about_turns else None)
    elif any(name.startswith("dst_") for name in metafunc.fixturenames):
        _use(metafunc.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the built-in suite where it belongs to the run; see `RunSelection.adds_suite`."""
    if _PLAIN_IMPORTS in config.stash:
        from pytest_dstfuzz.plugin.steps import complete  # noqa: PLC0415

        complete(session, items, config.stash.get(_SESSION, None), partial(_started, config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Say so where a tracker was named and nothing was tested: else green would mislead."""
    if _PLAIN_IMPORTS in config.stash:
        from pytest_dstfuzz.plugin.steps import why_untested  # noqa: PLC0415

        if text := why_untested(config, exitstatus, config.stash.get(_SESSION, None)):
            terminalreporter.write_line(f"dstfuzz: {text}", yellow=True)


@pytest.fixture(scope="session")
def dst_model(request: pytest.FixtureRequest) -> object:
    """The tracker under test: the one that --dst-model names.

    A suite may override this fixture. It may return a tracker, an object with ``reset``
    and ``update``, or a function from a context to ``{slot: value}``.
    """
    return _started(request.config).pool.tracker


@pytest.fixture(scope="session")
def dst_search(request: pytest.FixtureRequest) -> object:
    """Who chooses what to change; a suite may return the name of a search, or a `Search`."""
    return _started(request.config).context.settings.variant.search


@pytest.fixture(scope="session")
def dst_relation(request: pytest.FixtureRequest) -> object:
    """What must hold; a suite may return the name of a relation, or a `Relation`.

    Where an option or a marker names several, each item has one: ``dst_turn.result.relation``.
    """
    return _started(request.config).context.settings.variant.relation


@pytest.fixture(scope="session")
def dst_outcome(request: pytest.FixtureRequest) -> str:
    """What of an answer is tested: ``state``, or ``reply``, which a suite may return."""
    return _started(request.config).context.settings.reply.outcome


@pytest.fixture(scope="session")
def dst_compare(request: pytest.FixtureRequest) -> object:
    """When two replies say the same; ``None`` = by the default.

    A suite may return the names of comparisons, a function of two texts that says whether they do,
    or a `Comparison`.
    """
    return _started(request.config).context.settings.reply.compare


@pytest.fixture(scope="session")
def dst_lexicon(request: pytest.FixtureRequest) -> Lexicon:
    """The words that utterances are changed with: the shipped lexicon.

    A suite may override this fixture, and return ``load_lexicon().with_sources(...)`` with
    synonyms, neighbours or insertions of its own.
    """
    return _started(request.config).context.lexicon


@pytest.fixture(scope="session")
def dst_proposer(
    request: pytest.FixtureRequest, dst_model: object, dst_lexicon: Lexicon
) -> Callable[[str], DstProposer]:
    """Variants that a search proposes, without a campaign.

    ``dst_proposer("greedy").variants(dialogue, turn_index, count)``
    """
    return partial(_started(request.config).campaigns.proposer, dst_model, dst_lexicon)


@pytest.fixture
def dst_turn(
    request: pytest.FixtureRequest,
    dst_model: object,
    dst_search: object,
    dst_relation: object,
    dst_outcome: str,
    dst_compare: object,
    dst_lexicon: Lexicon,
) -> DstTurn:
    """One turn of the data, with the variants made of it and what the tracker said to them."""
    chosen = {"outcome": dst_outcome, "search": dst_search, "relation": dst_relation}
    chosen["compare"] = dst_compare
    return _started(request.config).turn(request, dst_model, chosen, dst_lexicon)


@pytest.fixture(scope="session")
def dst_report(request: pytest.FixtureRequest) -> DstReport:
    """What the robustness tests of this process have found so far."""
    return _started(request.config).report()


@pytest.fixture(scope="session")
def dst_conformance(request: pytest.FixtureRequest, dst_model: object) -> DstConformance:
    """What the conformance kit finds out about the tracker: ``assert_passed()``, ``findings``.

    It asks the tracker for the turns of the session's data, and for some of them again and
    again. A tracker that --dst-model names has passed the preflight before.
    """
    return _started(request.config).conformance(request, dst_model)


class _WorkerResults:
    """Takes in what the tests of other processes found out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of a turn that came with the report of a test."""
        payload = getattr(report, "dstfuzz", None)
        # The controller of a suite that brings its own tracker learns only here that
        # robustness tests are run.
        if payload is not None:
            _started(self._config).collector.add(payload)


class PlainImports(MetaPathFinder):
    """Finds the modules of this package as Python does, before pytest's finder is asked.

    It knows no other modules. It is in ``sys.meta_path`` of runs in which the plugin is used,
    until their end.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of this package is, and nothing of any other."""
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None

    def remove(self) -> None:
        """Let it be asked no more; a nested run may have put the list back as it was."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _is_given(config: pytest.Config) -> bool:
    """Whether the command line or the ini file gives an option of the plugin a value."""
    names = [f"dst_{name}" for name in _always()["ini"]]
    try:
        return any(
            config.getoption(name, None) is not None or config.getini(name) is not None
            for name in names
        )
    except (TypeError, ValueError, pytest.UsageError):
        return True  # A value of another type than the key takes: reading it says so.


def _use(config: pytest.Config) -> None:
    """Load what follows without pytest's rewriting, up to the end of the run."""
    if _PLAIN_IMPORTS not in config.stash:
        imports = config.stash[_PLAIN_IMPORTS] = PlainImports()
        sys.meta_path.insert(0, imports)
        config.add_cleanup(imports.remove)


def _started(config: pytest.Config) -> SessionHooks:
    """Return the session's object, loading it when it is used for the first time."""
    started = config.stash.get(_SESSION, None)
    if started is None:
        _use(config)
        from pytest_dstfuzz.plugin.hooks import SessionHooks  # noqa: PLC0415

        started = config.stash[_SESSION] = SessionHooks(config)
        config.pluginmanager.register(started, "dstfuzz-session")
        config.pluginmanager.register(started.end, "dstfuzz-end")
    return started
