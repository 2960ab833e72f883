"""The folder in which the runs of these tests take place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from seaside import write_seaside


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make a folder with all bots and dialogues."""
    return lambda: write_seaside(tmp_path_factory.mktemp("seaside"))


@pytest.fixture(scope="module")
def folder(new_folder: Callable[[], Path]) -> Path:
    """Such a folder for the tests of one module."""
    return new_folder()


@pytest.fixture
def fresh(new_folder: Callable[[], Path]) -> Path:
    """Such a folder for one test."""
    return new_folder()
