"""Forgets the modules that tests of users' code have loaded, so that no later test finds them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def forget() -> None:
    """Remove the modules whose files are in a temporary folder of a test."""
    for name, module in list(sys.modules.items()):
        if "/pytest-of-" in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _forgotten_before_each_test() -> None:
    forget()


@pytest.fixture(autouse=True, scope="module")
def _forgotten_after_all_tests() -> Iterator[None]:
    # At the end of a test, monkeypatch may put a module back.
    yield
    forget()
