"""Texts that hold a credential and show themselves without it: addresses and headers.

What is printed or written is the masked form, whoever prints it: an `Address` is a
masked text, and a `Header` shows its name alone. The one place that needs the full form
asks for it (`revealed`, ``Header.value``).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from string import Template

from pytest_dstfuzz.errors import UserError

#: What stands in the place of a credential.
MASK = "***"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:@]*)(?::\d*)?")
_QUERY = re.compile(r"([?&;])(?:([^=&;#]*=)[^&;#]*|[^=&;#]+)")
#: A name as HTTP allows it (RFC 9110, a token).
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
#: The value is in the environment: nothing of it is in the text.
_IN_ENVIRONMENT = re.compile(r"(?:[A-Za-z]+ )?\$(?:\w+|\{\w+\})")


def masked(text: str) -> str:
    """Return a text with the credentials of an address in it masked.

    They are user and password, every value of the query, and the fragment.
    """
    scheme = _SCHEME.search(text)
    if scheme is None:
        return text
    start, rest = text[: scheme.end()], text[scheme.end() :]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest and not _HOST.fullmatch(host):
        # Up to the last one: in a password that is not quoted there may be any character.
        rest = f"{MASK}@{rest.rpartition('@')[2]}"
    before, mark, _ = rest.partition("#")
    return start + _QUERY.sub(rf"\1\2{MASK}", before) + (mark and mark + MASK)


class Address(str):
    """An address without its credentials; ``full`` has them."""

    __slots__ = ("full",)
    full: str

    def __new__(cls, full: str) -> Address:
        """Mask the credentials of ``full``."""
        made = super().__new__(cls, masked(full))
        made.full = full
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (self.full,)


def without_credentials(name: str) -> str:
    """Return the name of a tracker; an address, as one that shows no credentials."""
    return Address(revealed(name)) if "://" in name else name


def revealed(text: str) -> str:
    """Return an `Address` with its credentials; any other text as it is."""
    return text.full if isinstance(text, Address) else text


@dataclass(frozen=True, slots=True)
class Header:
    """One header of the requests to a service.

    ``$NAME`` in the value that the user wrote stands for an environment variable and is replaced
    where a request is made, so that it is in no settings.
    """

    name: str
    value: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name}: {shown_value(self.value)}"

    @classmethod
    def parse(cls, text: str) -> Header:
        """Read ``Name: value``; no message repeats what may be a secret."""
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not value or not _NAME.fullmatch(name):
            raise UserError("a header is written 'Name: value', in quotes, such as 'X-Team: bots'")
        return cls(name, value)


@dataclass(frozen=True, slots=True)
class OwnKey:
    """One key of a tracker that is for its factory alone; it shows itself without its value.

    All of the value may be the name of an environment variable, ``$NAME``, read where the tracker
    is made.
    """

    name: str
    value: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name}={shown_value(self.value)}"

    def read(self) -> str:
        """Return the value, from the environment where it names a variable of it."""
        if not _IN_ENVIRONMENT.fullmatch(self.value):
            return self.value
        return from_environment(self.value, f"the key {self.name!r} of the tracker")


def from_environment(text: str, who: str) -> str:
    """Return a text with the variables of the environment that it names, and that must be there."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        raise UserError(
            f"{who} takes its value from the environment variable {error.args[0]!r}, which is not "
            "set"
        ) from None
    except ValueError:
        raise UserError(
            f"the value of {who} has a '$' that names no environment variable: write $NAME, or $$ "
            "for a dollar sign"
        ) from None


def shown_value(value: str) -> str:
    """Return a value that may be a credential: masked, unless the environment holds it."""
    return value if _IN_ENVIRONMENT.fullmatch(value) else MASK
