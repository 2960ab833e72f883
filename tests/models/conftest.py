"""The hand-made dialogues as a folder, for the tests that train TRADE."""

from __future__ import annotations

from pathlib import Path

import pytest
from trade_data import write_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("data"))
