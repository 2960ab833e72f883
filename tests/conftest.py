"""What all tests share: pytest's own tool to test plugins, and the surroundings they run in."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

# What pytest itself looks at: under `CI` its short summary repeats whole messages, and the
# others add options or colour. The runs within tests are to read the same everywhere.
_OUTSIDE = (
    "CI",
    "BUILD_NUMBER",
    "PYTEST_ADDOPTS",
    "FORCE_COLOR",
    "PY_COLORS",
    "COLUMNS",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
)


@pytest.fixture(autouse=True)
def _same_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _OUTSIDE:
        monkeypatch.delenv(name, raising=False)
