"""Workers of pytest-xdist share the processor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from pytest_dstfuzz.models.neural import fair_threads  # noqa: E402


@pytest.fixture(autouse=True)
def _eight_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("workers", "threads"), [(None, 8), ("1", 8), ("2", 4), ("3", 2), ("16", 1)]
)
def test_each_worker_has_its_share(
    monkeypatch: pytest.MonkeyPatch, workers: str | None, threads: int
) -> None:
    if workers is None:
        monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    else:
        monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", workers)
    with fair_threads():
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 8
