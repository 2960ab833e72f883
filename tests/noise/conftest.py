"""The shipped models."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.noise.model import SHIPPED, NoiseModel


@pytest.fixture(scope="session", params=SHIPPED)
def model(request: pytest.FixtureRequest) -> NoiseModel:
    return NoiseModel.load(request.param)


@pytest.fixture(scope="session")
def typing() -> NoiseModel:
    return NoiseModel.load("typing")


@pytest.fixture(scope="session")
def casual() -> NoiseModel:
    return NoiseModel.load("casual")
