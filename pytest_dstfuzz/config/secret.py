"""Addresses and headers, which may contain credentials but are masked if they are shown.

Every output has the masked form: an `Address` is a masked text, and a `Header` shows only its name.
The code that needs the full form asks for it (`reveal_credentials`, ``Header.value``).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from string import Template
from urllib.parse import SplitResult, urlsplit

from pytest_dstfuzz.errors import MASK, UserError, hide_in_messages, mask_credentials

#: The environment variables with the token of the tested system, and with that of the judge, if it
#: differs.
TOKEN_VARIABLE = "DSTFUZZ_TOKEN"  # noqa: S105 - a name
JUDGE_TOKEN_VARIABLE = "DSTFUZZ_JUDGE_TOKEN"  # noqa: S105 - a name
#: A header name as HTTP allows it (RFC 9110, a token).
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
#: The name of an environment variable that cannot be a part of a secret.
PLAIN_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z0-9]+)*")
#: Names of keys whose value is a secret, even if it is a plain word.
_SECRET_NAME = re.compile(r"auth|cred|key|pass|secret|token", re.IGNORECASE)
_PLAIN_VALUE = re.compile(r"[A-Za-z]+|[\d.]+")
#: The value is an environment variable, so the text contains no secret.
_IN_ENVIRONMENT = re.compile(r"(?:[A-Za-z]+ )?\$(?:\w+|\{\w+\})")


class Address(str):
    """An address that is shown without its credentials. ``full`` includes the credentials.

    Two addresses are equal only if their credentials are equal too, because the query of an address
    may name the deployment.
    """

    __slots__ = ("full",)
    __hash__ = str.__hash__
    full: str

    def __new__(cls, full: str) -> Address:
        """Mask the credentials of ``full``."""
        made = super().__new__(cls, mask_credentials(full))
        made.full = full
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (self.full,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Address):
            return self.full == other.full
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def without_credentials(name: str) -> str:
    """Return the name of a tracker, which is an `Address` if the text is an address.

    A text with credentials also becomes an `Address` if its form is wrong, because messages show
    the text.
    """
    full = reveal_credentials(name)
    return Address(full) if "://" in full or mask_credentials(full) != full else name


def split_address(full: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        UserError: it cannot be split. Python's error would show a part of the password.
    """
    try:
        return urlsplit(full)
    except ValueError:
        raise UserError(
            f"{mask_credentials(full)!r} is not an address: in the user and the password, write "
            "special characters in percent encoding, such as %5B for ["
        ) from None


def reveal_credentials(text: str) -> str:
    """Return an `Address` with its credentials. Any other text is returned unchanged."""
    return text.full if isinstance(text, Address) else text


@dataclass(frozen=True, slots=True)
class Header:
    """One header of the requests to a service.

    ``$NAME`` in the user's value stands for an environment variable. It is resolved for each
    request, so that no settings contain it.
    """

    name: str
    value: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name}: {mask_value(self.value)}"

    @classmethod
    def parse(cls, text: str) -> Header:
        """Parse ``Name: value``. Error messages do not repeat the text, which may be a secret."""
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not value or not _NAME.fullmatch(name):
            raise UserError(
                "a header must be written as 'Name: value', in quotes, such as 'X-Team: bots'"
            )
        return cls(name, value)

    def read(self) -> str:
        """Return the value with its environment variables resolved."""
        value = from_environment(self.value, f"the header {self.name!r}")
        _hide(self.name, value.rpartition(" ")[2])
        return value


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key with its value for the factory of a tracker. Only the key is shown.

    The whole value may be an environment variable, ``$NAME``, which is read when the tracker is
    made.
    """

    name: str
    value: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name}={mask_value(self.value)}"

    def read(self) -> str:
        """Return the value, resolved if it names an environment variable."""
        value = self.value
        if _IN_ENVIRONMENT.fullmatch(value):
            value = from_environment(value, f"the key {self.name!r} of the tracker")
        _hide(self.name, value)
        return value


def _hide(name: str, value: str) -> None:
    """Mask a value in messages, but not a plain word or number: messages would be unreadable."""
    if _SECRET_NAME.search(name) or not _PLAIN_VALUE.fullmatch(value):
        hide_in_messages(value)


def from_environment(text: str, who: str) -> str:
    """Return a text with its environment variables resolved. Every variable must be set."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        name = str(error.args[0])
        # Otherwise the dollar sign may be a part of a secret, and the name the rest of it.
        if _IN_ENVIRONMENT.fullmatch(text) and PLAIN_VARIABLE.fullmatch(name):
            raise UserError(
                f"{who} needs the environment variable {name!r}, which is not set"
            ) from None
        raise UserError(
            f"{who} needs an environment variable that is not set: set the variable whose name "
            "follows the '$', or write $$ for a dollar sign"
        ) from None
    except ValueError:
        raise UserError(
            f"the value of {who} has a '$' without the name of an environment variable: write "
            "$NAME, or $$ for a dollar sign"
        ) from None


def mask_value(value: str) -> str:
    """Mask a value that may be a credential, unless it names an environment variable."""
    return value if _IN_ENVIRONMENT.fullmatch(value) else MASK
