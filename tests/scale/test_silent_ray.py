"""Ray prints nothing of its own, and one line names the problem."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.scale.ray import RayOptions, connect_to_ray

ray = pytest.importorskip("ray", reason="the extra ray is not installed")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What Ray prints by its logger, whose level `ray.init` sets."""
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, kept = logging.getLogger("ray"), Kept()
    monkeypatch.setattr(logger, "level", logger.level)
    logger.addHandler(kept)
    yield found
    logger.removeHandler(kept)
    logger.manager._clear_cache()  # type: ignore[attr-defined]


def say(level: int) -> None:
    logging.getLogger("ray").setLevel(level)
    logging.getLogger("ray._private.services").error("The last 20 lines of dashboard.log:\nInfo")


def test_a_ray_that_does_not_begin_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, printed: list[str]
) -> None:
    def init(*, logging_level: int, **_: Any) -> NoReturn:
        say(logging_level)
        raise RuntimeError("The current node timed out during startup.\nSee the log")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UserError, match="timed out") as found, connect_to_ray(RayOptions()):
        pass
    assert "\n" not in str(found.value.args[0])
    assert printed == []


def test_errors_of_ray_during_a_run_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, printed: list[str]
) -> None:
    # If an actor dies with two tasks, nobody asks for the second, and Ray logs its error.
    levels: list[int] = []
    monkeypatch.setattr(ray, "init", lambda *, logging_level, **_: levels.append(logging_level))
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 2.0}}])
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with connect_to_ray(RayOptions(actors=1, gpus=0)):
        say(levels[0])
    assert printed == []
