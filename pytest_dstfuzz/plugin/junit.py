"""Adds a failed gate to the file of --junitxml, beside the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from pytest_dstfuzz.plugin.selection import NODE

_NAME: Final = "gate"


def record_failed_gate(config: pytest.Config, reasons: Sequence[str]) -> None:
    """Put a test case that failed into the file of --junitxml, where there is one.

    Under a gate tests pass, and what reads the file alone would see nothing but green. The test
    case counts nowhere else: the exit status says what failed.

    Args:
        config: of the session.
        reasons: why the gate failed, a sentence each; none if it did not.
    """
    if not reasons:
        return
    place, node = (NODE, None, _NAME), f"{NODE}::{_NAME}"
    failed = pytest.TestReport(node, place, {}, "failed", "\n".join(reasons), "call")
    over = pytest.TestReport(node, place, {}, "passed", None, "teardown")
    for plugin in config.pluginmanager.get_plugins():
        # What takes properties of the suite writes the file; it has no public name.
        if callable(getattr(plugin, "add_global_property", None)):
            for report in (failed, over):
                plugin.pytest_runtest_logreport(report)
