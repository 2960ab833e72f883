"""The HTTP client of a service: its address, proxies and certificates, and what it may log.

The time-outs of httpx are for one read or write each: a service that sends a byte a second, or
``100 Continue`` without end, is never late by them. Here each read is granted what is left of
the attempt that the thread is making.
"""

from __future__ import annotations

import logging
import math
import os
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpcore
import httpx

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.web.reply import ACCEPTED
from pytest_dstfuzz.trackers.web.secrets import Secrets

#: Seconds that sockets take at most: more overflows the clock of some systems.
_LONGEST = 1e6


#: Of the attempt that this thread is making: when it has to end, by the monotonic clock, and what
#: must not be logged.
_END: ContextVar[float] = ContextVar("end", default=math.inf)
_SECRETS: ContextVar[Secrets | None] = ContextVar("secrets", default=None)


@contextmanager
def attempt(seconds: float, secrets: Secrets) -> Iterator[None]:
    """Give what this thread does an end, and mask what it logs."""
    end, masked = _END.set(time.monotonic() + seconds), _SECRETS.set(secrets)
    try:
        yield
    finally:
        _END.reset(end)
        _SECRETS.reset(masked)


def _granted(timeout: float | None) -> float:
    """Return how long one step may take: no longer than what is left, of which there is some."""
    granted = min(math.inf if timeout is None else timeout, _LONGEST, _END.get() - time.monotonic())
    if granted <= 0:
        raise httpcore.ReadTimeout
    return granted


class _Stream(httpcore.NetworkStream):
    """A connection each of whose steps is granted its time."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _granted(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _granted(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _granted(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens such connections."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        granted = _granted(timeout)
        return _Stream(super().connect_tcp(host, port, granted, local_address, socket_options))


#: Variables of the environment that httpx reads.
_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"),
)
_LOGGERS: Final = (
    "httpx",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


def _mask(record: logging.LogRecord) -> bool:
    """Mask the credentials in what httpx logs of requests of ours; they hold whole addresses."""
    if (secrets := _SECRETS.get()) is not None:
        record.msg, record.args = secrets.redact(record.getMessage()), None
    return True


def make_client(url: httpx.URL, headers: Mapping[str, str], connections: int) -> httpx.Client:
    """Return the client of a service, whose address may hold user and password.

    It has at most so many connections at once, bounded as `attempt` says.
    """
    # User and password, where no header says who asks.
    signed = url.userinfo and "authorization" not in map(str.lower, headers)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask)
    try:
        client = httpx.Client(
            auth=httpx.BasicAuth(url.username, url.password) if signed else None,
            headers={"Accept-Encoding": ACCEPTED, **headers},
            # None is kept: by a session's cookie, contexts would be one dialogue to the service.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
    except (httpx.InvalidURL, ImportError, OSError, ValueError, TypeError) as error:
        raise UserError(_environment_problem(error)) from None
    # httpx has no public way to have bounded connections and to keep its reading of the proxies of
    # the environment. Were these attributes to go, limits would again be those of single reads;
    # a test would fail.
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 - see above
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend()  # noqa: SLF001 - see above
    return client


def service_url(address: str, shown: str) -> httpx.URL:
    """Return the address of a service, which the message shows without credentials."""
    try:
        url = httpx.URL(address)
        # As sockets do it, where it would be too late for a message.
        url.raw_host.decode("ascii").encode("idna")
        known = url.scheme in ("http", "https") and url.host
        right = known and 0 < (1 if url.port is None else url.port) < 65536
    except (httpx.InvalidURL, UnicodeError):
        right = False
    if not right:
        raise UserError(
            f"{shown!r} is no address of a service: write http://HOST:PORT/PATH or https://..."
        )
    return url


def _environment_problem(error: Exception) -> str:
    """Return what is wrong with proxies or certificates; values may hold a password."""
    found = [name for name in _VARIABLES if os.environ.get(name) or os.environ.get(name.lower())]
    # Of an OSError the reason alone: Python's messages repeat a path, which is welcome, but
    # those about addresses repeat the address.
    about = str(error) if isinstance(error, OSError | ImportError) else ""
    why = f" ({' '.join(about.split())})" if about else ""
    return (
        f"the proxies or certificates of the environment cannot be used{why}: check "
        f"{', '.join(found) or ', '.join(_VARIABLES)}. A proxy is written http://HOST:PORT, "
        "SSL_CERT_FILE names a file of certificates in PEM"
    )
