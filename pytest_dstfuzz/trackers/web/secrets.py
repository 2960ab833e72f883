"""Masks credentials in texts."""

from __future__ import annotations

import base64
import html
import os
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from pytest_dstfuzz.config import MASK, Header, split_address
from pytest_dstfuzz.errors import UserError

#: Shorter texts are not masked, because that would garble every message.
_SHORTEST = 4
#: The escapes of addresses, of JSON, JavaScript and Python, and of HTML.
_ESCAPES: Final = (
    re.compile(rb"%[0-9a-fA-F]{2}"),
    re.compile(
        rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        rb"|\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^0-9a-zA-Z])"
    ),
    re.compile(rb"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8}|[a-zA-Z][a-zA-Z0-9]{1,31});"),
)
#: Maximum number of ways to remove escapes from a text, such as those of HTML and then of JSON.
_MOST_WAYS: Final = 16
#: Authentication schemes. Messages may show them.
_SCHEMES = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey)\s+", re.IGNORECASE)


class _PlainLayer:
    """A text without one kind of escapes. It knows the place of each part in the text before."""

    def __init__(self, text: bytes, escape: re.Pattern[bytes]) -> None:
        #: Where each escape ends, in this text and in the one before, and its length in both.
        self._here: list[int] = []
        self._before: list[int] = []
        self._lengths: list[tuple[int, int]] = []
        parts: list[bytes] = []
        end = length = 0
        for found in escape.finditer(text):
            plain = _unescaped(found[0])
            parts += [text[end : found.start()], plain]
            length += found.start() - end + len(plain)
            end = found.end()
            self._here.append(length)
            self._before.append(end)
            self._lengths.append((len(plain), len(found[0])))
        self.text = b"".join([*parts, text[end:]])

    def start(self, place: int) -> int:
        """Return where the part at ``place`` begins in the text before."""
        number = bisect_right(self._here, place)
        if number < len(self._here):
            plain, escaped = self._lengths[number]
            if place >= self._here[number] - plain:
                return self._before[number] - escaped
        return place + (self._before[number - 1] - self._here[number - 1] if number else 0)

    def end(self, place: int) -> int:
        """Return where the part that ends at ``place`` ends in the text before."""
        number = bisect_left(self._here, place)
        if number < len(self._here) and place > self._here[number] - self._lengths[number][0]:
            return self._before[number]
        return place + (self._before[number - 1] - self._here[number - 1] if number else 0)


class Secrets:
    """Masks credentials in texts, in all spellings that services and libraries use.

    A text is searched as it is and without its escapes, layer by layer. So it does not matter how
    a service escapes a credential.
    """

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value)}
        shown = {form: form.decode("utf-8", "replace") for form in sorted(forms)}
        self._forms = [form for form, text in shown.items() if len(text.strip()) >= _SHORTEST]
        self._sure = [form for form in self._forms if _is_unmistakable(shown[form])]

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)} texts)"

    def redact(self, text: str) -> str:
        """Return ``text`` with every credential masked. Mask a text before you cut it."""
        found = _masked(text.encode("utf-8", "surrogatepass"), self._forms)
        return found.decode("utf-8", "surrogatepass")

    def scrub(self, body: bytes) -> bytes:
        """Return the body of an answer with every unmistakable credential masked.

        A service may return credentials, even as the value of a slot. They must not reach reports.
        Words that may occur in dialogues are not masked, because answers must not change. The rest
        of the body stays the same to the byte.
        """
        return _masked(body, self._sure)

    def scrub_text(self, text: str) -> str:
        """Return a part of an answer, masked as in `scrub`."""
        return self.scrub(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


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
    parts = split_address(address)
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


def _unescaped(escape: bytes) -> bytes:
    """Return what an escape stands for."""
    text = escape.decode("ascii", "surrogateescape")
    if text[0] == "%":
        return bytes([int(text[1:], 16)])
    if text[0] == "&":
        plain = html.unescape(text)
    elif text[1:2] in ("u", "x"):
        plain = "".join(chr(int(code, 16)) for code in re.split(r"\\[ux]", text)[1:])
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    else:
        return escape[1:]
    return plain.encode("utf-8", "surrogatepass")


def _layers(text: bytes) -> Iterator[tuple[_PlainLayer, ...]]:
    """Yield the text with fewer and fewer escapes. The last layer comes first.

    Each kind of escapes is removed alone, because a sign at the end of a credential and the next
    sign of the text may look like an escape of another kind.
    """
    seen, waiting = {text}, deque[tuple[bytes, tuple[_PlainLayer, ...]]]([(text, ())])
    while waiting:
        before, above = waiting.popleft()
        for escape in _ESCAPES:
            layer = _PlainLayer(before, escape)
            if layer.text not in seen and len(seen) < _MOST_WAYS:
                seen.add(layer.text)
                waiting.append((layer.text, (layer, *above)))
                yield layer, *above


def _masked(text: bytes, forms: Sequence[bytes]) -> bytes:
    """Return a text with all forms masked, with any escapes."""
    if not forms:
        return text
    spans = set(_places(text, forms))
    for layers in _layers(text):
        for begin, end in _places(layers[0].text, forms):
            for one in layers:
                begin, end = one.start(begin), one.end(end)  # noqa: PLW2901 - layer by layer
            spans.add((begin, end))
    parts: list[bytes] = []
    done = 0
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if begin >= done:
            parts += [text[done:begin], MASK.encode()]
        done = max(done, end)
    return b"".join([*parts, text[done:]])


def _places(text: bytes, forms: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each form in a text."""
    text = text.replace(b"+", b" ")
    for form in forms:
        begin = text.find(form)
        while begin >= 0:
            yield begin, begin + len(form)
            begin = text.find(form, begin + len(form))


def _is_unmistakable(form: str) -> bool:
    """Return whether a text cannot be part of a dialogue: a word, name, number or date."""
    kinds = any(map(str.isalpha, form)) + any(map(str.isdigit, form))
    return len(form) >= 16 or (len(form) >= 8 and kinds == 2)


def _forms(value: str) -> set[bytes]:
    """Return a credential as it is, and without each layer of escapes.

    Forms of web pages have ``+`` for a blank, so the search takes both for a blank.
    """
    plain = value.encode("utf-8", "surrogatepass")
    found = (plain, *(layer.text for layer, *_ in _layers(plain)))
    return {one.replace(b"+", b" ") for one in found}
