"""Commands of Python in processes of their own, without the time that Python takes to start.

One process loads pytest and the package, and makes a copy of itself for each command. So a command
has its own modules, working folder, environment and standard streams, and begins at once. A
command finds the modules of `LOADED` loaded. Tests of loaded modules, of the seed of hashes or of
signals start Python themselves.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from _pytest import config

from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.registry import RELATIONS

#: Neither torch nor what pytest would rewrite.
LOADED = (
    *("numpy.random", "unittest", "pytest", "pytest_dstfuzz.plugin.hooks", "pytest_dstfuzz.cli"),
    # Scipy takes longer than all else together. Httpx is not here: it loads anyio, whose plugin
    # pytest would rewrite.
    *("scipy.stats", "jinja2"),
)
#: Runs within tests do without the plugin of hypothesis: to load it is three quarters of what
#: starting pytest takes, and there are many hundreds of them.
LIGHT = "-p no:hypothesispytest"
#: Variables that would change a run within a test: under `CI` the short summary of pytest repeats
#: whole messages, and the others add options, colour or a proxy.
OUTSIDE = (
    *("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR", "PY_COLORS", "COLUMNS"),
    *("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"),
    # The transport of services reads these.
    *("DSTFUZZ_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
#: Python reads these when it starts: commands for which one differs start Python themselves.
_AT_THE_START = ("PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8", "LANG", "LC_ALL")
#: coverage measures a process that a test starts if this is set there.
COVERAGE = "COVERAGE_PROCESS_CONFIG"


def run_python(
    *words: str | os.PathLike[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    with_torch: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``python *words``: ``-m`` and a module, ``-c`` and code, or a file, with arguments.

    ``with_torch`` is for commands that load torch anyway, which takes seconds.
    """
    given = [os.fspath(word) for word in words]
    surroundings = {"PYTEST_ADDOPTS": LIGHT, **(os.environ if env is None else env)}
    if not hasattr(os, "fork") or any(
        surroundings.get(name) != os.environ.get(name) for name in _AT_THE_START
    ):
        return subprocess.run(
            [sys.executable, *given],
            cwd=cwd,
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("out", "err")]
        request = {
            "words": given,
            "cwd": os.fspath(cwd),
            "env": surroundings,
            "streams": [str(path) for path in streams],
        }
        server = _server(os.getpid(), with_torch)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = server.stdout.readline()
        assert status, "the process that starts commands ended"
        out, err = (path.read_text(encoding="utf-8") for path in streams)
    return subprocess.CompletedProcess([sys.executable, *given], int(status), out, err)


@functools.cache
def _server(owner: int, with_torch: bool) -> subprocess.Popen[str]:
    """Return the process that makes copies of itself for commands of the process ``owner``."""
    surroundings = {name: value for name, value in os.environ.items() if name != COVERAGE}
    server = subprocess.Popen(
        [sys.executable, __file__, *(["torch"] if with_torch else [])],
        env=surroundings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, server, owner)
    return server


def _end(server: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() == owner:
        server.communicate()


def _serve(requests: IO[str], answers: IO[str]) -> None:
    for name in (*LOADED, *sys.argv[1:]):
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for name in config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    assert RELATIONS.shipped
    assert load_lexicon()
    theirs = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in sys.path if path not in theirs]
    for line in requests:
        child = os.fork()
        if child == 0:
            requests.close()
            answers.close()
            _run(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()


def _run(request: dict[str, Any]) -> NoReturn:
    """Be the process of one command, and end."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, path in enumerate(["/dev/null", *request["streams"]]):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        os.dup2(os.open(path, flags), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    status = 1
    try:
        if COVERAGE in os.environ:
            importlib.import_module("coverage").process_startup(force=True)
        status = _ended(request["words"])
    except BaseException:  # noqa: BLE001 - Python itself prints whatever ends a command
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _ended(words: Sequence[str]) -> int:
    """Run a command as Python does, and return its exit status."""
    first, *rest = words
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    try:
        if first in ("-m", "-c"):
            sys.path.insert(0, "" if first == "-c" else str(Path.cwd()))
            sys.argv = [first, *rest[1:]]
            if first == "-m":
                runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
            else:
                exec(rest[0], {"__name__": "__main__"})  # noqa: S102 - code of a test
        else:
            sys.path.insert(0, str(Path(first).absolute().parent))
            sys.argv = list(words)
            runpy.run_path(first, run_name="__main__")
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    return 0


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, which commands do not have
    _serve(os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w"))
