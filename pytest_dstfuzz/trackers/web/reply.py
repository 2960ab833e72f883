"""What a service answers, and what it means when it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_dstfuzz.errors import TrackerError

#: Characters of a page that a message shows.
_SHOWN = 60


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
    """An answer that is not what was asked for.

    Attributes:
        passing: whether it may well be an accident, so that the same is asked again as often as
            after other failures. For a whole answer of another shape that is once more.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


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
            MalformedReply: it is none: a page for people, or half of one perhaps.
        """
        if self._is_page:
            text = " ".join(self.text.split())
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
            raise MalformedReply(
                f"answered with a page for people ({shown}) where JSON is expected: is the "
                "address that of the tracker itself?"
            )
        try:
            return json.loads(
                self.content, parse_constant=_refuse_constant, object_pairs_hook=_once
            )
        except UnicodeDecodeError:
            raise MalformedReply(
                "answered with a body that is no JSON (it is not UTF-8)", passing=True
            ) from None
        except (ValueError, RecursionError) as error:
            raise MalformedReply(
                f"answered with a body that is no JSON ({error})", passing=True
            ) from None

    @property
    def _is_page(self) -> bool:
        """Whether the body is HTML or XML."""
        return self.content.lstrip()[:1] == b"<"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; of two values for one key it would not be known which is meant."""
    values = dict(pairs)
    if len(values) < len(pairs):
        for key, value in pairs:
            if values[key] != value:
                raise MalformedReply(f'answered with two values for the key "{key[:_SHOWN]}"')
    return values


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
