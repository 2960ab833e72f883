"""The part of the plugin that every pytest run loads: options, marker and fixtures.

This module imports the rest of the package only when a run uses the plugin: a ``--dst-`` option, a
``dst_`` ini key, the marker or a ``dst_`` fixture. The module `hooks` imports numpy, the readers
and the campaign, so it is loaded for the first robustness test only. The option table comes from a
data file. A test checks that the file equals the table of `config`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache, partial, reduce
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from operator import or_
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

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
#: Whether an ini key may have a string or a number in a TOML table. pytest before 9.2 refuses a
#: number there, with a message that shows how to write it.
_UNIONS = pytest.version_tuple >= (9, 2)
#: Present if a run uses the plugin.
_SESSION: pytest.StashKey[SessionHooks] = pytest.StashKey()
_PLAIN_IMPORTS: pytest.StashKey[PlainImports] = pytest.StashKey()


@cache
def _always() -> dict[str, Any]:
    """Return the ini keys with their types and help, and the options of the marker."""
    with _TABLE.open(encoding="utf-8") as file:
        line: dict[str, Any] = json.loads(file.readline())
    return line


@cache
def _table() -> dict[str, Any]:
    """Return the whole option table. Only runs that may use options need it."""
    text = _TABLE.read_text(encoding="utf-8").partition("\n")[2]
    table: dict[str, Any] = json.loads(text)
    return table


class Hooks:
    """The hooks of this plugin, for conftest files and other plugins."""

    @pytest.hookspec
    def pytest_dstfuzz_limits(self, config: pytest.Config) -> Sequence[Limit]:
        """Return additional limits for ``[tool.dstfuzz.gates]``."""
        raise NotImplementedError

    @pytest.hookspec
    def pytest_dstfuzz_report_section(
        self, config: pytest.Config, totals: Totals
    ) -> tuple[str, Sequence[str]] | None:
        """Return the title and the lines of an additional section in each tracker's reports."""
        raise NotImplementedError


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register hooks with which conftest files and other plugins add limits and sections."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register all ini keys. Register options only if one may be given or help is requested.

    Registering sixty options takes most of the time that an unused plugin costs. Without registered
    options, ``config.getoption`` finds no value. All defaults are ``None``, so that the plugin can
    tell which options were given.
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
    # The controller of xdist sends its workers the values of options, not the arguments.
    known = any(value is not None for name, value in vars(config.option).items() if "dst_" in name)
    if known or "_ARGCOMPLETE" in os.environ:
        return True
    try:
        written = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    except ValueError:
        return True  # pytest has not read its settings yet, or will refuse them.
    return _may_hold_options([*written, *map(str, config.invocation_params.args)])


def _may_hold_options(arguments: list[str]) -> bool:
    """Return whether arguments may have an option of the plugin, request help, or name a file."""
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
    """Stores the value of a switch from any of its forms: --no-dst-NAME, --dst-NAME=yes."""

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
    """Return the type of an ini key: a list of lines, a string, or a string or a number."""
    if kinds == "linelist":
        return "linelist"
    return reduce(or_, (_KINDS[kind] for kind in kinds.split())) if _UNIONS else "string"


#: The first characters of options. Word processors make long dashes. The path of a file has none.
_DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Import this package without assertion rewriting, if the run uses it."""
    early_config.pluginmanager.register(_ExitStatus(), "dstfuzz-exit-status")
    if any(word.startswith(("--dst-", "--no-dst-")) for word in args) or _is_given(early_config):
        _use(early_config)
    yield
    # Other plugins may have added arguments.
    if _may_hold_options(args) and not hasattr(early_config.known_args_namespace, "dst_off"):
        _add_options(parser)
    if any(word[:1] in _DASHES and "dst" in word[:10].lower() for word in args):
        from pytest_dstfuzz.plugin.steps import refuse_misspelled_option  # noqa: PLC0415

        refuse_misspelled_option(parser, args)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and listen for results of tests."""
    # Cleanups run in reverse order, so this one comes after the last garbage collection of pytest.
    config.add_cleanup(partial(_unfreeze, config))
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
    """Raise an error for wrong options, data and trackers before collection.

    This hook is a wrapper, so that it runs before workers start and before the header is printed.
    """
    config = session.config
    if _PLAIN_IMPORTS not in config.stash:
        return (yield)
    from pytest_dstfuzz.plugin.steps import refuse_early_exit, refuse_mistakes  # noqa: PLC0415

    try:
        refuse_mistakes(config, _unknown_keys(config), partial(_started, config))
        return (yield)
    except pytest.exit.Exception as ended:
        if ended.returncode == pytest.ExitCode.OK:
            refuse_early_exit(config, ended.msg, config.stash.get(_SESSION, None))
        raise


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Check the markers of a test, and parametrise it by the sampled turns.

    If a test has other fixtures named ``dst_...``, the package is also imported without assertion
    rewriting.
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
    """Add the built-in suite if the run includes it, see `RunSelection.adds_suite`."""
    if _PLAIN_IMPORTS in config.stash:
        from pytest_dstfuzz.plugin.steps import complete  # noqa: PLC0415

        complete(session, items, config.stash.get(_SESSION, None), partial(_started, config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Warn if a tracker was named but not tested. Otherwise the passing run would mislead."""
    if _PLAIN_IMPORTS in config.stash:
        from pytest_dstfuzz.plugin.steps import why_untested  # noqa: PLC0415

        if text := why_untested(config, exitstatus, config.stash.get(_SESSION, None)):
            terminalreporter.write_line(f"dstfuzz: {text}", yellow=True)


@pytest.fixture(scope="session")
def dst_model(request: pytest.FixtureRequest) -> object:
    """The tracker under test, by default the tracker of --dst-model.

    A suite may override this fixture. It may return a tracker, an object with ``reset`` and
    ``update``, or a function from a context to ``{slot: value}``.
    """
    return _started(request.config).pool.tracker


@pytest.fixture(scope="session")
def dst_search(request: pytest.FixtureRequest) -> object:
    """The search for variants. A suite may return its name or a `Search`."""
    return _started(request.config).context.settings.variant.search


@pytest.fixture(scope="session")
def dst_relation(request: pytest.FixtureRequest) -> object:
    """The relation to test. A suite may return its name or a `Relation`.

    If an option or a marker names several relations, each item has one of them:
    ``dst_turn.result.relation``.
    """
    return _started(request.config).context.settings.variant.relation


@pytest.fixture(scope="session")
def dst_outcome(request: pytest.FixtureRequest) -> str:
    """The tested kind of answer, such as ``state`` or ``reply``. A suite may override it."""
    return _started(request.config).context.settings.reply.outcome


@pytest.fixture(scope="session")
def dst_compare(request: pytest.FixtureRequest) -> object:
    """The comparison of replies; ``None`` = the default.

    A suite may return names of comparisons, a function that returns whether two texts agree, or a
    `Comparison`.
    """
    return _started(request.config).context.settings.reply.compare


@pytest.fixture(scope="session")
def dst_lexicon(request: pytest.FixtureRequest) -> Lexicon:
    """The words for perturbations: the shipped lexicon.

    A suite may override this fixture and return ``load_lexicon().with_sources(...)`` with
    additional synonyms, neighbours or insertions.
    """
    return _started(request.config).context.lexicon


@pytest.fixture(scope="session")
def dst_proposer(
    request: pytest.FixtureRequest, dst_model: object, dst_lexicon: Lexicon
) -> Callable[[str], DstProposer]:
    """Variants from a search, without a campaign.

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
    """One turn of the data, with its variants and the tracker's answers to them."""
    chosen = {"outcome": dst_outcome, "search": dst_search, "relation": dst_relation}
    chosen["compare"] = dst_compare
    return _started(request.config).turn(request, dst_model, chosen, dst_lexicon)


@pytest.fixture(scope="session")
def dst_report(request: pytest.FixtureRequest) -> DstReport:
    """The results of the robustness tests of this process so far."""
    return _started(request.config).report()


@pytest.fixture(scope="session")
def dst_conformance(request: pytest.FixtureRequest, dst_model: object) -> DstConformance:
    """The results of the conformance kit for the tracker: ``assert_passed()``, ``findings``.

    The kit requests the turns of the session's data, some repeatedly. The tracker of --dst-model
    has passed the preflight before.
    """
    return _started(request.config).conformance(request, dst_model)


class _ExitStatus:
    """Replaces exit status 0 if a run has a gate and a hook ends pytest early.

    A hook of a conftest file may end pytest during configuration, session start, collection or at
    the end. This object therefore exists before pytest reads conftest files.
    """

    def __init__(self) -> None:
        self._tests_known = False
        self._left = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self) -> None:
        """Record that the session has robustness tests, so its hooks judge the run."""
        self._tests_known = True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that something ended the run with status 0."""
        status = getattr(excinfo.value, "returncode", None)
        self._left = status == pytest.ExitCode.OK and not self._tests_known

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, int, int]:
        """Return another status if a gate is set but did not pass or had no results."""
        ended: SystemExit | None = None
        status: int = pytest.ExitCode.OK
        try:
            status = yield
        except SystemExit as error:
            if error.code:
                raise
            ended = error
        if status == pytest.ExitCode.OK and not hasattr(config, "workerinput"):
            status = self._status(config)
        if ended is not None and status == pytest.ExitCode.OK:
            raise ended
        return status

    def _status(self, config: pytest.Config) -> int:
        """Return the status of a run that ended with 0."""
        started = config.stash.get(_SESSION, None)
        if not self._left and started is None:
            return pytest.ExitCode.OK
        from pytest_dstfuzz.plugin import steps  # noqa: PLC0415

        if self._left or started is None:
            return steps.early_exit_status(config)
        return steps.late_exit_status(started)


class _WorkerResults:
    """Receives results from the tests of other processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the result of a turn from the report of its test."""
        payload = getattr(report, "dstfuzz", None)
        # If a suite defines its own tracker, the controller learns only here that robustness tests
        # are running.
        if payload is not None:
            _started(self._config).collector.add(payload)


class PlainImports(MetaPathFinder):
    """Imports the modules of this package without pytest's assertion rewriting.

    The finder ignores other modules. It stays in ``sys.meta_path`` until the end of a run that uses
    the plugin.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of this package, and ``None`` for any other."""
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None

    def remove(self) -> None:
        """Remove this finder. A nested run may already have restored the list."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _unknown_keys(config: pytest.Config) -> list[str]:
    """Return misspelled plugin keys in the ini file or in ``-o``.

    Keys that another plugin or a conftest file has registered are left out.
    """
    # pytest offers no public list. Without it, an unknown key is only pytest's warning.
    parser = getattr(config, "_parser", None)
    known = {*getattr(parser, "_inidict", ()), *getattr(parser, "_ini_aliases", ())}
    written: Iterable[str] = getattr(config, "_get_unknown_ini_keys", list)()
    typed = (word.partition("=")[0] for word in config.getoption("override_ini", None) or ())
    return sorted(
        key
        for key in {*written, *typed}
        if key.lower().startswith(("dst_", "dst-")) and known and key not in known
    )


def _is_given(config: pytest.Config) -> bool:
    """Return whether the command line or the ini file sets an option of the plugin.

    A misspelled key also counts. Otherwise pytest would ignore the key, which may set a limit.
    """
    if _unknown_keys(config):
        return True
    names = [f"dst_{name}" for name in _always()["ini"]]
    try:
        return any(
            config.getoption(name, None) is not None or config.getini(name) is not None
            for name in names
        )
    except (TypeError, ValueError, pytest.UsageError):
        return True  # A value with a wrong type. Reading it later reports the error.


def _use(config: pytest.Config) -> None:
    """Import this package without assertion rewriting until the end of the run."""
    if _PLAIN_IMPORTS not in config.stash:
        imports = config.stash[_PLAIN_IMPORTS] = PlainImports()
        sys.meta_path.insert(0, imports)
        config.add_cleanup(imports.remove)
        # A conftest file may load code, or read files, that decide results.
        from pytest_dstfuzz.own_code import watch_loads  # noqa: PLC0415

        watch_loads()


def _unfreeze(config: pytest.Config) -> None:
    """Unfreeze all objects for the garbage collector, if the session's hooks froze them."""
    hooks = config.stash.get(_SESSION, None)
    if hooks is not None and hooks.has_frozen:
        gc.unfreeze()


def _started(config: pytest.Config) -> SessionHooks:
    """Return the session's hooks. They are loaded on first use."""
    started = config.stash.get(_SESSION, None)
    if started is None:
        _use(config)
        from pytest_dstfuzz.plugin.hooks import SessionHooks  # noqa: PLC0415

        started = config.stash[_SESSION] = SessionHooks(config)
        config.pluginmanager.register(started, "dstfuzz-session")
        config.pluginmanager.register(started.end, "dstfuzz-end")
    return started
