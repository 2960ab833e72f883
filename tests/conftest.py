"""What all tests share: pytest's own tool to test plugins, and the surroundings they run in."""

from __future__ import annotations

import compileall
import functools
import gc
import importlib
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, settings
from once import do_once
from processes import ITSELF, LIGHT, OUTSIDE, Copy, begin_python, copied_workers

from pytest_dstfuzz.dialogue import load

# Nearly nothing that is loaded and collected is garbage, and to look for some took a fifth of the
# time of collecting the tests.
_SEARCHED_AFTER = gc.get_threshold()
gc.set_threshold(20_000)

# A run within a test forgets the modules that it was the first to load. These may not be
# loaded twice by one process: numpy and torch crash, scipy loads a part of numpy anew, and httpx
# knows the errors of the first httpcore alone. The others are those that each run would load anew.
_LOADED = ("pytest_dstfuzz.plugin.steps", "xdist.dsession", "xdist.workermanage", "xdist.remote")
for _name in ("numpy", "scipy.stats", "torch", "httpcore", *_LOADED):
    with suppress(ModuleNotFoundError):
        importlib.import_module(_name)

# Pytest gives its handlers to each logger that does not propagate, three times a test, and most
# are those of torch.
for _logger in logging.root.manager.loggerDict.values():
    if isinstance(_logger, logging.Logger) and _logger.name.startswith("torch"):
        _logger.propagate = True

# Where Python may keep no bytecode, each of the hundreds of processes that tests start would
# compile the package anew.
if sys.dont_write_bytecode and "PYTEST_XDIST_WORKER" not in os.environ:
    compileall.compile_dir(Path(load.__file__).parents[1], quiet=2)

# A machine under load is slow, and that is no failure; all else is as hypothesis has it there.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell that runs the tests in the background may ignore Ctrl-C, and so would the processes that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester"]

do_once()


@pytest.fixture(autouse=True)
def _same_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", LIGHT)
    # Tests write a module twice within the second that tells bytecode from a newer module.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.fixture(autouse=True)
def _own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that a test wrote and imported. Others write modules of the same names."""
    known = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture
def other_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin each process of a test with hashes other than here, and with nothing cached."""
    monkeypatch.setenv("PYTHONHASHSEED", "7")


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start Python itself for each process of a test, with hashes other than here."""
    monkeypatch.setenv(ITSELF, "yes")
    monkeypatch.setenv("PYTHONHASHSEED", "7")


@pytest.fixture(autouse=True)
def _copied_processes(_own_modules: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin runs and workers as copies of a process that has loaded the package."""
    # The first user of `monkeypatch`, which may put a module back before modules are forgotten.
    monkeypatch.setattr(pytest.Pytester, "popen", _begin)
    with copied_workers():
        yield


def _begin(
    self: pytest.Pytester, cmdargs: Sequence[str], stdin: object, stdout: IO[str], stderr: IO[str]
) -> subprocess.Popen[bytes] | Copy:
    """Begin ``python -mpytest`` and arguments: all that the tests start in this way."""
    assert stdin is self.CLOSE_STDIN
    assert list(cmdargs[:2]) == [sys.executable, "-mpytest"]
    path = filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    with Path(os.devnull).open(encoding="utf-8") as empty:
        streams = [stream.fileno() for stream in (empty, stdout, stderr)]
        return begin_python(["-m", "pytest", *cmdargs[2:]], streams, cwd=Path.cwd(), env=env)


@pytest.fixture(autouse=True)
def _no_run_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test one of whose runs of pytest ended in a traceback, whatever else it looks at."""
    # What `Pytester.runpytest` does comes down to one of these two.
    for name in ("runpytest_inprocess", "runpytest_subprocess"):
        monkeypatch.setattr(pytest.Pytester, name, _checked(getattr(pytest.Pytester, name)))


def _checked(run: Callable[..., pytest.RunResult]) -> Callable[..., pytest.RunResult]:
    @functools.wraps(run)
    def checked(self: pytest.Pytester, *args: Any, **options: Any) -> pytest.RunResult:
        # Its fixture takes the variable away.
        result = run(self, *LIGHT.split(), *args, **options)
        crashed = [line for line in result.outlines if line.startswith("INTERNALERROR>")]
        if result.ret == pytest.ExitCode.INTERNAL_ERROR or crashed:
            pytest.fail("a run of pytest within this test crashed, see what it printed")
        # A process that dies of a traceback has the exit status of a failed test.
        if any(line.startswith("Traceback (most recent") for line in result.errlines):
            pytest.fail("a run of pytest within this test printed a traceback")
        return result

    return checked


#: What Chromium is called, on the systems that have one.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        pytest.skip(f"no Chromium is installed ({', '.join(_BROWSERS)})")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program)
        yield started
        started.close()


def pytest_collection_finish() -> None:
    """Keep all that is there until the end from each search for garbage: items, modules, torch."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SEARCHED_AFTER)
    # Python counts them one by one, and each run of the plugin asks whether there are any.
    gc.get_freeze_count = functools.cache(gc.get_freeze_count)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write down what was measured: a worker that takes long to end is killed before it does."""
    module = sys.modules.get("coverage")
    if measuring := module and module.Coverage.current():
        measuring.save()
