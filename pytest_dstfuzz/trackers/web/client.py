"""The HTTP client of a service: its address, proxies and certificates, and what it may log."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.parse import unquote

import httpx

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.web.body import ACCEPTED
from pytest_dstfuzz.trackers.web.bounded import Attempts, bound
from pytest_dstfuzz.trackers.web.secrets import Secrets

#: Variables of the environment that httpx reads.
_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"),
)
_LOGGERS: Final = (
    "httpx",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


class _Mask(logging.Filter):
    """Masks the credentials in what httpx logs of requests of ours; they hold whole addresses."""

    def __init__(self) -> None:
        super().__init__()
        self._asking = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        secrets: Secrets | None = getattr(self._asking, "secrets", None)
        if secrets is not None:
            record.msg, record.args = secrets.redact(record.getMessage()), None
        return True

    @contextmanager
    def masking(self, secrets: Secrets) -> Iterator[None]:
        """Mask what this thread logs."""
        self._asking.secrets = secrets
        try:
            yield
        finally:
            self._asking.secrets = None


_MASK: Final = _Mask()
masking = _MASK.masking


def make_client(
    url: httpx.URL, headers: Mapping[str, str], connections: int, attempts: Attempts
) -> httpx.Client:
    """Return the client of a service.

    Args:
        url: of the service; may hold user and password.
        headers: sent with every request.
        connections: open at once at most.
        attempts: what bounds them.

    Raises:
        UserError: proxies or certificates of the environment will not do.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_MASK)
    try:
        client = httpx.Client(
            auth=_auth(url, headers),
            headers={"Accept-Encoding": ACCEPTED, **headers},
            # None is kept: by a session's cookie, contexts would be one dialogue to the service.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )
    except (httpx.InvalidURL, ImportError, OSError, ValueError, TypeError) as error:
        raise UserError(_environment_problem(error)) from None
    bound(client, attempts)
    return client


def service_url(address: str, shown: str) -> httpx.URL:
    """Return the address of a service.

    Args:
        address: with credentials.
        shown: without them, for the message.

    Raises:
        UserError: it is none.
    """
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


def _auth(url: httpx.URL, headers: Mapping[str, str]) -> httpx.BasicAuth | None:
    """Return user and password of the address, where no header says who asks."""
    if not url.userinfo or "authorization" in map(str.lower, headers):
        return None
    user, _, password = url.userinfo.decode("ascii").partition(":")
    return httpx.BasicAuth(unquote(user), unquote(password))
