"""The pytest plugin: options, marker and fixtures; everything else is loaded when it is used.

This module is imported by every pytest run of an environment that has the package, so it
imports nothing but the option table. What a robustness test needs (`session`, and with it
numpy, the readers, the campaign) is loaded by the first test that uses a ``dst_`` fixture,
or because a tracker was named.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin.marker import HELP, marker_values
from pytest_dstfuzz.plugin.options import Given, add_options, given_options, read_settings
from pytest_dstfuzz.plugin.selection import SELECTION, Selection

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.plugin.agent import DstAgent
    from pytest_dstfuzz.plugin.conformance import DstConformance
    from pytest_dstfuzz.plugin.session import DstSession
    from pytest_dstfuzz.plugin.turn import DstReport, DstTurn

_SESSION: pytest.StashKey[DstSession] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and listen for results of tests."""
    config.addinivalue_line("markers", HELP)
    config.stash[SELECTION] = Selection.take(config)
    config.pluginmanager.register(_Intake(config), "dstfuzz-intake")


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None]:
    """Refuse wrong options, data and trackers before anything is collected.

    A wrapper, so that it runs before workers are started and the header is printed.
    """
    try:
        given = given_options(session.config)
        if given:
            read_settings(session.config)
            if _is_for_us(session.config, given):
                _started(session.config).prepare()
    except UserError as error:
        started = session.config.stash.get(_SESSION, None)
        end = pytest.UsageError(str(error)) if started is None else started.gate.end(error)
        raise end from error
    except (pytest.skip.Exception, pytest.fail.Exception) as stopped:
        # Outside of a test, pytest would show them as an error of its own.
        how = "skip" if isinstance(stopped, pytest.skip.Exception) else "fail"
        raise pytest.UsageError(
            f"the tracker cannot be tested: it called pytest.{how}() before any test was run: "
            f"{stopped.msg}"
        ) from stopped
    return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Check the markers of a test, and make one item of it for each sampled turn."""
    markers = list(metafunc.definition.iter_markers("dst"))
    used = "dst_turn" in metafunc.fixturenames
    if not markers and not used:
        return
    try:
        values = marker_values(markers)
        if used:
            _started(metafunc.config).parametrise(metafunc, values)
    except UserError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from error


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the built-in suite where it belongs to the run; see `Selection.adds_suite`.

    Not where something could not be collected: that may have been the test that is about it.
    """
    selection = config.stash[SELECTION]
    has_own = any(_is_ours(item) for item in items)
    adds = not session.testsfailed and selection.adds_suite(given_options(config), has_own)
    started = _started(config) if adds else config.stash.get(_SESSION, None)
    if started is None:
        return
    if adds:
        items.extend(started.builtin_items(session))
    started.make_selectable(items)
    started.memory.collect(session, items)
    if started.problem is not None:
        raise pytest.UsageError(str(started.problem))
    selection.keep(items)


@pytest.fixture(scope="session")
def dst_model(request: pytest.FixtureRequest) -> object:
    """The tracker under test: the one that --dst-model names.

    A suite may override this fixture. It may return a tracker, an object with ``reset``
    and ``update``, or a function from a context to ``{slot: value}``.
    """
    return _started(request.config).tracker


@pytest.fixture(scope="session")
def dst_search(request: pytest.FixtureRequest) -> str:
    """The name of the search that chooses what to change; a suite may override it."""
    return _started(request.config).settings.search


@pytest.fixture(scope="session")
def dst_lexicon(request: pytest.FixtureRequest) -> Lexicon:
    """The words that utterances are changed with: the shipped lexicon.

    A suite may override this fixture, and return ``load_lexicon().with_sources(...)`` with
    synonyms, neighbours or insertions of its own.
    """
    return _started(request.config).lexicon


@pytest.fixture(scope="session")
def dst_agent(
    request: pytest.FixtureRequest, dst_model: object, dst_search: str, dst_lexicon: Lexicon
) -> DstAgent:
    """The trained agent: ``dst_agent.variants(dialogue, turn_index, count)`` proposes variants.

    Its policy is that of the search, where that is an agent, and otherwise the shipped one.
    """
    return _started(request.config).agent(dst_model, dst_search, dst_lexicon)


@pytest.fixture
def dst_turn(
    request: pytest.FixtureRequest, dst_model: object, dst_search: str, dst_lexicon: Lexicon
) -> DstTurn:
    """One turn of the data, with the variants made of it and what the tracker said to them."""
    return _started(request.config).turn(request, dst_model, dst_search, dst_lexicon)


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
    from pytest_dstfuzz.plugin.conformance import conformance  # noqa: PLC0415

    return conformance(_started(request.config), dst_model)


class _Intake:
    """Takes in what the tests of xdist's workers found out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of a turn that came with the report of a test."""
        payload = getattr(report, "dstfuzz", None)
        # The controller of a suite that brings its own tracker learns only here that
        # robustness tests are run.
        if payload is not None:
            _started(self._config).record.add(payload)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Say so where a tracker was named and nothing was tested: else green would mislead."""
        config, started = self._config, self._config.stash.get(_SESSION, None)
        idle = hasattr(config, "workerinput") or config.getoption("collectonly")
        if idle or exitstatus not in _ORDERLY or (started is not None and started.record.tested):
            return
        if text := config.stash[SELECTION].untested(given_options(config)):
            terminalreporter.write_line(f"dstfuzz: {text}", yellow=True)


#: Exit statuses of runs that were collected and run to their end.
_ORDERLY = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


def _started(config: pytest.Config) -> DstSession:
    """Return the session's object, loading it when it is used for the first time."""
    started = config.stash.get(_SESSION, None)
    if started is None:
        from pytest_dstfuzz.plugin.hooks import SessionHooks  # noqa: PLC0415
        from pytest_dstfuzz.plugin.session import DstSession  # noqa: PLC0415

        started = config.stash[_SESSION] = DstSession(config)
        config.pluginmanager.register(SessionHooks(started), "dstfuzz-session")
    return started


def _is_for_us(config: pytest.Config, given: tuple[Given, ...]) -> bool:
    """Whether this run will probably test a tracker, so that its data is worth reading.

    An ini file serves runs of unrelated tests too; those must not pay for it. With
    workers there is no later moment at which an error in it could be a usage error.
    """
    typed = any(option.on_command_line for option in given)
    return typed or getattr(config.option, "dist", "no") != "no"


def _is_ours(item: pytest.Item) -> bool:
    return any(name.startswith("dst_") for name in getattr(item, "fixturenames", ()))
