"""Commands of Python in processes of their own, without the time that Python takes to start.

One process loads pytest and the package, and makes a copy of itself for each command. So a command
has its own modules, working folder, environment and standard streams, and begins at once. A
command finds the modules of `LOADED` loaded. Runs of ``Pytester`` and workers of pytest-xdist begin
in the same way. All copies have the same seed of hashes. With another ``PYTHONHASHSEED``, such as
that of the fixture ``other_hashes``, commands are copies of a second process, which has run nothing
before. Tests of loaded modules use the fixture ``new_processes`` or start Python themselves.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest
from _pytest import config
from execnet import gateway_io
from once import do_once

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
#: The run of a process before it makes copies of itself, and its bot.
_OPTIONS = ("--dst-turns=30", "--dst-variants=3", "--dst-report=report.html")
_BOT = """
def answer(context):
    return {"hotel-name": context.user}
"""
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
_AT_THE_START = ("PYTHONIOENCODING", "PYTHONUTF8", "LANG", "LC_ALL")
#: Commands with this variable do, too.
ITSELF = "DSTFUZZ_TESTS_START_PYTHON"
_HASHES = "PYTHONHASHSEED"
#: In pages of 2 MiB, a copy of the process is made in a fourth of the time. Glibc asks Linux for
#: them, for what Python gets from malloc. Elsewhere this does nothing.
_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
#: Where the process listens of which this one is a copy.
_LISTENS_AT = ""
_HERE = dict(os.environ)
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
    with ExitStack() as opened:
        empty = opened.enter_context(Path(os.devnull).open(encoding="utf-8"))
        out, err = (
            opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(2)
        )
        streams = [stream.fileno() for stream in (empty, out, err)]
        begun = begin_python(given, streams, cwd=cwd, env=surroundings, with_torch=with_torch)
        status = begun.wait()
        told = []
        for stream in (out, err):
            stream.seek(0)
            told.append(stream.read())
    return subprocess.CompletedProcess([sys.executable, *given], status, *told)


def begin_python(
    words: Sequence[str],
    streams: Sequence[int],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    with_torch: bool = False,
) -> subprocess.Popen[bytes] | Copy:
    """Begin ``python *words`` with three standard streams, as a copy of a process if possible."""
    itself = ITSELF in env or not hasattr(os, "fork")
    if itself or any(env.get(name) != _HERE.get(name) for name in _AT_THE_START):
        stdin, stdout, stderr = streams
        return subprocess.Popen(
            [sys.executable, *words], cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr
        )
    request = {"words": list(words), "cwd": os.fspath(cwd), "env": dict(env)}
    address = _server(os.getpid(), with_torch, env.get(_HASHES))
    return Copy(address, request, streams)


class Copy:
    """A command that runs in a copy of a process: the part of `subprocess.Popen` that is used."""

    stdin = None

    def __init__(self, address: str, request: object, streams: Sequence[int]) -> None:
        self._asked = socket.socket(socket.AF_UNIX)
        self._asked.connect(address)
        text = json.dumps(request).encode()
        socket.send_fds(self._asked, [len(text).to_bytes(8)], streams)
        self._asked.sendall(text)
        self.pid = int.from_bytes(_all_of(self._asked, 8))
        self.returncode: int | None = None

    def __del__(self) -> None:
        self._asked.close()

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, as `subprocess.Popen` counts it."""
        if self.returncode is None:
            self._asked.settimeout(timeout)
            try:
                status = _all_of(self._asked, 8)
            except TimeoutError as error:
                raise subprocess.TimeoutExpired("python", timeout or 0) from error
            self.returncode = int.from_bytes(status, signed=True)
        return self.returncode

    def kill(self) -> None:
        """End the command."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _all_of(connection: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        more = connection.recv(length - len(got))
        assert more, "the process that starts commands ended"
        got += more
    return got


@contextmanager
def copied_workers() -> Iterator[None]:
    """Begin the workers of pytest-xdist as copies of a process too."""
    before = gateway_io.Popen2IOMaster.__init__
    gateway_io.Popen2IOMaster.__init__ = _begin_worker  # type: ignore[method-assign]
    try:
        yield
    finally:
        gateway_io.Popen2IOMaster.__init__ = before  # type: ignore[method-assign]


def _begin_worker(self: gateway_io.Popen2IOMaster, args: Sequence[str], execmodel: Any) -> None:
    stdin, to_worker = os.pipe()
    from_worker, stdout = os.pipe()
    words = args[args.index("-c") :]
    self.popen = begin_python(words, (stdin, stdout, 2), cwd=Path.cwd(), env=os.environ)
    os.close(stdin)
    os.close(stdout)
    streams = os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb")
    super(gateway_io.Popen2IOMaster, self).__init__(*streams, execmodel=execmodel)


@functools.cache
def _server(owner: int, with_torch: bool, hashes: str | None) -> str:
    """Return where the process listens that makes copies of itself for the process ``owner``.

    Args:
        owner: the id of the process.
        with_torch: whether the copies find torch loaded.
        hashes: the seed of hashes. With another seed than here, copies find nothing cached.
    """
    same = hashes == _HERE.get(_HASHES)
    if _LISTENS_AT and same and not with_torch:
        return _LISTENS_AT
    env = _HERE | _LARGE_PAGES | ({} if same else {_HASHES: hashes or "random"})
    folder = tempfile.mkdtemp()
    address = str(Path(folder, "commands"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(
            [
                *(sys.executable, __file__, str(listener.fileno()), "run" if same else "new"),
                *(["torch"] if with_torch else []),
            ],
            env={name: value for name, value in env.items() if name != COVERAGE},
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    atexit.register(_end, server, folder, owner)
    return address


def _run_once() -> None:
    """Run pytest with the package, so that copies find loaded and read what most runs need."""
    here, path, environment = Path.cwd(), [*sys.path], dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        nowhere = opened.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
        opened.enter_context(redirect_stdout(nowhere))
        os.chdir(folder)
        Path("a_bot.py").write_text(_BOT, encoding="utf-8")
        os.environ["PYTEST_ADDOPTS"] = LIGHT
        sys.path.insert(0, folder)
        status = pytest.main(["--dst-model=a_bot:answer", *_OPTIONS])
        os.chdir(here)
    assert status == pytest.ExitCode.TESTS_FAILED, f"pytest ended with {status}"
    del sys.modules["a_bot"]
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment)


def _end(server: subprocess.Popen[bytes], folder: str, owner: int) -> None:
    if os.getpid() == owner:
        server.communicate()
        shutil.rmtree(folder)


def _serve(listener: socket.socket, owner: IO[bytes], state: str, modules: Sequence[str]) -> None:
    """Answer requests until the owner ends. In the state ``run``, run pytest before."""
    for name in (*LOADED, *modules):
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for name in config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    assert RELATIONS.shipped
    do_once()
    if state == "run":
        _run_once()
    theirs = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in sys.path if path not in theirs]
    # Else each copy would get pages of its own of all that is loaded, once it looks for garbage.
    gc.collect()
    gc.freeze()
    # Python counts them one by one, and each run of the plugin asks whether there are any.
    gc.get_freeze_count = functools.cache(gc.get_freeze_count)
    gc.get_freeze_count()
    while owner not in select.select([listener, owner], [], [])[0]:
        asked, _ = listener.accept()
        with asked:
            length, streams, _, _ = socket.recv_fds(asked, 8, 3)
            request = json.loads(_all_of(asked, int.from_bytes(length)))
            if os.fork() == 0:
                listener.close()
                owner.close()
                _answer(asked, request, streams)
            for stream in streams:
                os.close(stream)
        # Those that ended since.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(asked: socket.socket, request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run a command, and send its process id and its exit status."""
    child = os.fork()
    if child == 0:
        asked.close()
        _run(request, streams)
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):  # who asked may have ended
        asked.sendall(child.to_bytes(8))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        asked.sendall(status.to_bytes(8, signed=True))
    os._exit(0)


def _run(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the process of one command, and end."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    status = 1
    try:
        if COVERAGE in os.environ:
            importlib.import_module("coverage").process_startup(force=True)
        with copied_workers():
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
    _given = socket.socket(fileno=int(sys.argv[1]))
    _LISTENS_AT = _given.getsockname()
    _serve(_given, os.fdopen(os.dup(0), "rb"), sys.argv[2], sys.argv[3:])
