"""Masks credentials in texts."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from pytest_dstfuzz.config import MASK, Header
from pytest_dstfuzz.errors import UserError

#: Shorter texts are not masked, because that would garble every message.
_SHORTEST = 4
#: An escape in JSON, such as ``\/`` from PHP or ``\u002b`` from .NET. Groups: hex code, character.
_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|(.))", re.DOTALL)
#: Authentication schemes. Messages may show them.
_SCHEMES = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey)\s+", re.IGNORECASE)


class Secrets:
    """Masks credentials in texts, in all spellings that services and libraries use."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST}
        # Replace the longest first, because a credential may be part of another one.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._sure = [
            (form.encode(), MASK.encode()) for form in self._forms if _is_unmistakable(form)
        ]

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)} texts)"

    def redact(self, text: str) -> str:
        """Return ``text`` with every credential masked. Mask a text before you cut it."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def scrub(self, body: bytes) -> bytes:
        """Return the body of an answer with every unmistakable credential masked.

        A service may return credentials, even as the value of a slot. They must not reach reports.
        Words that may occur in dialogues are not masked, because answers must not change.
        """
        body = self._replaced(body)
        if self._sure and b"\\" in body:
            # Unescape only if that reveals a credential. Other bodies stay the same to the byte.
            plain = _ESCAPE.sub(_unescaped, body)
            if (masked := self._replaced(plain)) != plain:
                return masked
        return body

    def scrub_text(self, text: str) -> str:
        """Return a part of an answer, masked as in `scrub`."""
        return self.scrub(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _replaced(self, body: bytes) -> bytes:
        for form, mask in self._sure:
            body = body.replace(form, mask)
        return body


def in_json(change: Callable[[str], str], value: Any) -> Any:
    """Apply ``change`` to all texts and names in a JSON value."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): in_json(change, part) for key, part in value.items()}
    return [in_json(change, part) for part in value] if isinstance(value, list) else value


def header_values(headers: Iterable[Header], *, token: str, signed: bool) -> dict[str, str]:
    """Return the headers to send, with environment variables resolved now.

    If the variable ``token`` has a value, it is sent as ``Authorization: Bearer ...``, unless the
    address has its own credentials (``signed``) or the headers have an authorization.
    """
    values: dict[str, str] = {}
    for header in headers:
        shown = f"the value of the header {header.name!r}"
        values[header.name] = _sendable(header.read(), shown)
    value = os.environ.get(token, "").strip()
    if value and not signed and "authorization" not in map(str.lower, values):
        shown = f"the environment variable {token}"
        values["Authorization"] = f"Bearer {_sendable(value, shown)}"
    return values


def secrets_of(address: str, headers: Iterable[str]) -> Secrets:
    """Return a mask for the credentials in an address and in header values."""
    parts = urlsplit(address)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    values = [user, password, *(value for _, value in parse_qsl(parts.query))]
    # The whole query may be a token.
    values += [] if "=" in parts.query else [parts.query]
    pair = f"{unquote(user)}:{unquote(password)}"
    if user:
        values.append(base64.b64encode(pair.encode()).decode())
    for value in headers:
        values += [value, _SCHEMES.sub("", value, count=1)]
    return Secrets(values)


def _sendable(value: str, what: str) -> str:
    if not (value.isascii() and value.isprintable() and value.strip() == value and value):
        raise UserError(
            f"{what} cannot be sent: it must be printable ASCII without blanks or line ends at "
            "its start or end"
        )
    return value


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the printable character of an escape. Keep the escape if JSON requires it."""
    found = bytes([int(escape[1], 16)]) if escape[1] else escape[2]
    plain = found == b"/" if escape[2] else found not in b'"\\\x7f'
    return found if plain else escape[0]


def _is_unmistakable(form: str) -> bool:
    """Return whether a text cannot be part of a dialogue: a word, name, number or date."""
    kinds = any(map(str.isalpha, form)) + any(map(str.isdigit, form))
    return len(form) >= 16 or (len(form) >= 8 and kinds == 2)


def _forms(value: str) -> set[str]:
    """Return the spellings of a credential in addresses, JSON and Python."""
    found: set[str] = set()
    for text in (value, unquote(value)):
        found |= {text, quote(text), quote(text, safe=""), quote_plus(text), repr(text)[1:-1]}
        found |= {json.dumps(text, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
    return found
