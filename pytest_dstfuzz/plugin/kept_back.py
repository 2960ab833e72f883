"""Reports of tests under ``--dst-redact``: nothing of what pytest shows says what was said.

A traceback shows arguments and, with ``--showlocals``, local variables, and the message of an
exception may repeat a text, as the output and the logs of a bot do. All of that goes into the
report of a test, which the terminal and JUnit's XML show.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_dstfuzz.report.redact import KEPT_BACK

_PACKAGE: Final = Path(__file__).parents[1]
_PYTEST: Final = Path(inspect.getfile(pytest.Item)).parent
#: Its messages do not quote a dialogue; nor do this package's under ``--dst-redact``.
_TIMEOUT: Final = "pytest_timeout.py"
_OUTPUT: Final = f"What the test printed and logged is {KEPT_BACK}."


def is_about_dialogues(item: pytest.Item) -> bool:
    """Whether a test uses a fixture of this package."""
    return any(name.startswith("dst_") for name in getattr(item, "fixturenames", ()))


def keep_back(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> None:
    """Take out of a report what may repeat a dialogue; where it failed, and on what, stays."""
    printed, report.sections = bool(report.sections), []
    if call.excinfo is None or hasattr(report, "wasxfail"):
        return
    message = _message(call.excinfo)
    if report.skipped and isinstance(report.longrepr, tuple):
        path, line, _ = report.longrepr
        report.longrepr = (path, line, f"Skipped: {message}")
    elif report.failed:
        # A failure of this package has no traceback: it is text already.
        shown = message if _is_own(call.excinfo) else _places(call.excinfo, message)
        report.longrepr = f"{shown}\n{_OUTPUT}" if printed else shown


def keep_back_end(excinfo: pytest.ExceptionInfo[BaseException], config: pytest.Config) -> None:
    """Take out of what ends a session what may repeat a dialogue."""
    # The memo of Ctrl-C has the arguments of all functions.
    config.option.fulltrace = False
    if _is_own(excinfo):
        return
    if isinstance(excinfo.value, pytest.exit.Exception):
        excinfo.value.msg = KEPT_BACK
    if any(map(str, excinfo.value.args)):
        excinfo.value.args = (KEPT_BACK,)


def _message(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    shown = _is_own(excinfo) or _raised_in(excinfo).name == _TIMEOUT
    return str(excinfo.value) if shown else KEPT_BACK


def _is_own(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return _PACKAGE in _raised_in(excinfo).parents


def _raised_in(excinfo: pytest.ExceptionInfo[BaseException]) -> Path:
    """Return the file that raised an exception, or called what raises in pytest."""
    paths = [Path(str(one.path)) for one in excinfo.traceback]
    return next((path for path in reversed(paths) if _PYTEST not in path.parents), paths[-1])


def _places(excinfo: pytest.ExceptionInfo[BaseException], message: str) -> str:
    """Return a traceback without source, arguments and variables."""
    places = [f"{one.path}:{one.lineno + 1}: in {one.name}" for one in excinfo.traceback]
    return "\n".join([f"{excinfo.typename}: {message}", *places])
