"""Devices on which networks compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import torch
from torch import nn

from pytest_dstfuzz.errors import UserError

Network = TypeVar("Network", bound=nn.Module)

#: Where a worker of pytest-xdist finds how many there are.
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"


def move(network: Network, device: str, name: str) -> Network:
    """Return the network on ``device``; ``name`` says what it is, for the message.

    Raises:
        UserError: torch knows no such device, or cannot use it.
    """
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{name} cannot run on the device {device!r}: {reason}") from error


@contextmanager
def fair_threads() -> Iterator[None]:
    """Compute in as many threads as one of several workers of pytest-xdist may have.

    Each would take all cores otherwise, and threads that share an operation wait for each
    other: with more threads than cores a run takes many times as long.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // max(1, int(os.environ.get(_WORKERS, "1")))))
    try:
        yield
    finally:
        torch.set_num_threads(threads)
