"""What must not leave this process in a text, and how it is taken out."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from pytest_dstfuzz.config import MASK, Header
from pytest_dstfuzz.config.secret import from_environment
from pytest_dstfuzz.errors import UserError

#: Shorter texts are no secrets, and taking them out would garble every message.
_SHORTEST = 4
#: An escape of JSON, as ``\/`` of PHP or ``\u002b`` of .NET; of the first kind the code.
_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|(.))", re.DOTALL)
#: Authentication schemes, which a message may name.
_SCHEMES = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey)\s+", re.IGNORECASE)


class Secrets:
    """Takes credentials out of texts, in whatever way a service or a library spells them."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST}
        # The longest first: a credential may be part of another one.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._sure = [
            (form.encode(), MASK.encode()) for form in self._forms if _is_unmistakable(form)
        ]

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)} texts)"

    def redact(self, text: str) -> str:
        """Return ``text`` with every credential masked; cut texts afterwards, not before."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def scrub(self, body: bytes) -> bytes:
        """Return what a service answered with what can only be a credential masked.

        A service may repeat what it is sent, as the value of a slot even, and that would go into
        reports. A word that dialogues may have is left as it is: answers must not change.
        """
        body = self._replaced(body)
        if self._sure and b"\\" in body:
            # Only where one is hidden: what holds none stays as it came, to the byte.
            plain = _ESCAPE.sub(_unescaped, body)
            if (masked := self._replaced(plain)) != plain:
                return masked
        return body

    def scrub_text(self, text: str) -> str:
        """Return a part of an answer as `scrub` does a whole one."""
        return self.scrub(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _replaced(self, body: bytes) -> bytes:
        for form, mask in self._sure:
            body = body.replace(form, mask)
        return body


def in_json(change: Callable[[str], str], value: Any) -> Any:
    """Return a JSON value each of whose texts and names is changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): in_json(change, part) for key, part in value.items()}
    return [in_json(change, part) for part in value] if isinstance(value, list) else value


def header_values(headers: Iterable[Header], *, token: str, signed: bool) -> dict[str, str]:
    """Return the headers as they are sent; variables of the environment are read now.

    One of them, ``token``, is sent as ``Authorization: Bearer ...`` if it has a value; not where
    the address is signed, by credentials of its own.
    """
    values: dict[str, str] = {}
    for header in headers:
        who = f"the header {header.name!r}"
        values[header.name] = _sendable(from_environment(header.value, who), f"the value of {who}")
    value = os.environ.get(token, "").strip()
    if value and not signed and "authorization" not in map(str.lower, values):
        shown = f"the environment variable {token}"
        values["Authorization"] = f"Bearer {_sendable(value, shown)}"
    return values


def secrets_of(address: str, headers: Iterable[str]) -> Secrets:
    """Return the credentials of an address and of the values of headers."""
    parts = urlsplit(address)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    values = [user, password, *(value for _, value in parse_qsl(parts.query))]
    # A query may also be a token and nothing else.
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
            f"{what} cannot be sent: it must be printable ASCII, with no blank or line end "
            "around it"
        )
    return value


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the printable character of an escape, unless JSON needs it to be one."""
    found = bytes([int(escape[1], 16)]) if escape[1] else escape[2]
    plain = found == b"/" if escape[2] else found not in b'"\\\x7f'
    return found if plain else escape[0]


def _is_unmistakable(form: str) -> bool:
    """Whether a text is no word, name, number or date that a dialogue may have."""
    kinds = any(map(str.isalpha, form)) + any(map(str.isdigit, form))
    return len(form) >= 16 or (len(form) >= 8 and kinds == 2)


def _forms(value: str) -> set[str]:
    """Return the spellings of a credential in addresses, JSON and Python."""
    found: set[str] = set()
    for text in (value, unquote(value)):
        found |= {text, quote(text), quote(text, safe=""), quote_plus(text), repr(text)[1:-1]}
        found |= {json.dumps(text, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
    return found
