"""Connections of which an attempt as a whole has an end.

The time-outs of httpx are for one read or write each: a service that sends a byte a second, or
``100 Continue`` without end, is never late by them. Here each read is granted what is left of
the attempt that the thread is making.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

#: Seconds that sockets take at most: more overflows the clock of some systems.
_LONGEST = 1e6


class Attempts(threading.local):
    """When the attempt that a thread is making has to end; by the monotonic clock."""

    end: float | None = None

    @contextmanager
    def ending_in(self, seconds: float) -> Iterator[None]:
        """Give what this thread does an end."""
        self.end = time.monotonic() + seconds
        try:
            yield
        finally:
            self.end = None

    def granted(self, timeout: float | None) -> float | None:
        """Return how long one step may take: no longer than what is left.

        Raises:
            httpcore.ReadTimeout: nothing is left.
        """
        limits = [_LONGEST] if timeout is None else [timeout, _LONGEST]
        if self.end is not None:
            limits.append(self.end - time.monotonic())
        granted = min(limits)
        if granted <= 0:
            raise httpcore.ReadTimeout
        return granted


class _Stream(httpcore.NetworkStream):
    """A connection each of whose steps is granted its time."""

    def __init__(self, inner: httpcore.NetworkStream, attempts: Attempts) -> None:
        self._inner = inner
        self._attempts = attempts

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._attempts.granted(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._attempts.granted(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        granted = self._attempts.granted(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, granted), self._attempts)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens such connections."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        granted = self._attempts.granted(timeout)
        opened = super().connect_tcp(host, port, granted, local_address, socket_options)
        return _Stream(opened, self._attempts)


def bound(client: httpx.Client, attempts: Attempts) -> None:
    """Let a client open bounded connections only, through proxies too.

    httpx has no public way to say so and to keep its reading of the proxies of the environment.
    Were these attributes to go, limits would again be those of single reads; a test would fail.
    """
    transports = [client._transport, *client._mounts.values()]  # noqa: SLF001 - see above
    for transport in transports:
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(attempts)  # noqa: SLF001 - see above
