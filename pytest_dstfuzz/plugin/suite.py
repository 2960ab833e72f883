"""The built-in suite: what a run that names a tracker tests when it has no test of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_dstfuzz.plugin.selection import NODE
from pytest_dstfuzz.plugin.turn import DstTurn


def test_belief_state_survives(dst_turn: DstTurn) -> None:
    """What the user means is the same, so the predicted belief state must be."""
    dst_turn.assert_unchanged()


class SuiteModule(pytest.Module):
    """This module as a collector, whatever names the user's configuration gives to tests."""

    def funcnamefilter(self, name: str) -> bool:
        """Take the tests of this module, also where ``python_functions`` was changed."""
        return name.startswith("test_")

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002  # there is no test class
        """Take no class."""
        return False


def builtin_items(session: pytest.Session) -> Iterator[pytest.Item]:
    """Collect the built-in suite."""
    module = SuiteModule.from_parent(session, path=Path(__file__), name=NODE, nodeid=NODE)
    return session.genitems(module)
