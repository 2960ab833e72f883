"""Run pytest and the command `dstfuzz` as users do, in this process or in one of its own."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from processes import LIGHT, OUTSIDE

#: Variables of the session that runs these tests.
_SESSION = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER")
#: Plugins of others that only cost time here.
_LIGHT = (*LIGHT.split(), "-p", "no:unraisableexception", "--color=no")


@dataclass(frozen=True)
class Done:
    """A run that ended: its exit status, the text that it printed, and its folder."""

    status: int
    printed: str
    folder: Path

    def json(self, name: str = "report.json") -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def run_pytest(folder: Path, *options: str, env: dict[str, str] | None = None) -> Done:
    """Run pytest in this process, in a folder."""
    with _within(folder, env) as printed:
        status = int(pytest.main([*_LIGHT, *options]))
    return _checked(Done(status, printed.getvalue(), folder))


def run_apart(folder: Path, *options: str) -> Done:
    """Run pytest in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *_LIGHT, *options],
        cwd=folder,
        env=_environment(None),
        capture_output=True,
        text=True,
        check=False,
    )
    return _checked(Done(done.returncode, done.stdout + done.stderr, folder))


def run_command(folder: Path, *words: str) -> Done:
    """Run the command `dstfuzz` in this process, in a folder."""
    (command,) = entry_points(group="console_scripts", name="dstfuzz")
    with _within(folder, None) as printed, mock.patch.object(sys, "argv", ["dstfuzz", *words]):
        try:
            status = command.load()()
        except SystemExit as ended:
            status = ended.code
    assert status is None or isinstance(status, int), status
    return _checked(Done(status or 0, printed.getvalue(), folder))


def outcomes(report: Any) -> dict[str, int]:
    """Return how many variants of a report have which outcome."""
    found = Counter(variant["outcome"] for _, variant in variants(report))
    return dict(sorted(found.items()))


def variants(report: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the turns of a report with each of their variants."""
    for turn in report["turns"]:
        for variant in turn["variants"]:
            yield turn, variant


def violations(report: Any) -> list[str]:
    """Return the ids of the violations of a report, in its order."""
    return [
        f"{turn['id']}-v{variant['index']}"
        for turn, variant in variants(report)
        if variant["outcome"] == "violation"
    ]


def changed(variant: Any) -> dict[str, tuple[str | None, str | None]]:
    """Return what a variant changed: by slot, argument or reply the value before and after."""
    return {one["slot"]: (one["before"], one["after"]) for one in variant["changed_slots"]}


def body(folder: Path, name: str = "report.json") -> list[str]:
    """Return the lines of a report, all but what is about the run itself."""
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith('"run": ')]


def _environment(extra: dict[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in (*OUTSIDE, *_SESSION)}
    return {**kept, "COLUMNS": "100", **(extra or {})}


@contextmanager
def _within(folder: Path, env: dict[str, str] | None) -> Iterator[io.StringIO]:
    """Be in a folder, forget the modules of it afterwards, and take what is printed."""
    before, path = Path.cwd(), list(sys.path)
    printed = io.StringIO()
    importlib.invalidate_caches()
    os.chdir(folder)
    try:
        with (
            mock.patch.dict(os.environ, _environment(env), clear=True),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            yield printed
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def _checked(done: Done) -> Done:
    for sign in ("INTERNALERROR>", "Traceback (most recent"):
        assert sign not in done.printed, done.printed
    return done
