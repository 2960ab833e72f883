"""What a service answers, and what it means when it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_dstfuzz.errors import TrackerError


class ServiceError(TrackerError):
    """A service did not do what it was asked for.

    Attributes:
        status: of its answer; ``None`` where it gave none.
        text: body of its answer, without credentials.
    """

    def __init__(self, message: str, status: int | None = None, text: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.text = text


class MalformedReply(TrackerError):  # noqa: N818 - the reply is what is malformed
    """An answer that is not what was asked for; asked again, as it may be an accident."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered with a status below 300.

    Attributes:
        status: of HTTP.
        content: the body, decompressed.
        headers: by their names in lower case.
    """

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 in it is replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body's JSON value.

        Raises:
            MalformedReply: it is none.
        """
        try:
            return json.loads(self.content, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise MalformedReply(f"answered with a body that is no JSON ({error})") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
