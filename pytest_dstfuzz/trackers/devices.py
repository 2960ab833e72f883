"""Devices on which networks compute."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from pytest_dstfuzz.errors import UserError

Network = TypeVar("Network", bound=nn.Module)


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
