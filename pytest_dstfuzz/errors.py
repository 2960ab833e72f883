"""Exceptions, each with one clear message."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from pytest_dstfuzz.printable import printable

__all__ = [
    "KEPT_BACK",
    "DataError",
    "DstFuzzError",
    "TrackerError",
    "UserError",
    "hide_in_messages",
    "mask_credentials",
    "message_of",
    "nearest",
    "needs_extra",
    "passes_through",
    "redact_messages",
    "redact_text",
    "unknown_name",
]


#: Replaces a credential.
MASK: Final = "***"
#: Without a limit, the search would take the square of the length of a word.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
#: The beginning of an address with a typing error: ``http:/``, ``http//``, ``//``, ``user:...@``.
_NEARLY = re.compile(r"\s*(?:(?:[A-Za-z][A-Za-z0-9+.-]*)?(?::/|//)|[^\s@/:]+:(?!:)(?=[^\s@]*@))")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:@]*)(?::\d*)?")
_QUERY = re.compile(r"([?&;])(?:([^=&;#]*=)[^&;#]*|[^=&;#]+)")
#: The beginning of an address, and an address in a message. A path has only one slash.
_BEGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:/|//")
#: An unquoted password may have a blank.
_IN_TEXT = re.compile(rf"(?:{_BEGIN.pattern})(?:/?[^\n'\"/@]{{1,200}}@)?\S*")


def mask_credentials(text: str) -> str:
    """Mask the credentials of the addresses in a text.

    The credentials are user and password, every value of the query, and the fragment.
    """
    # A second address may follow a separator, or it is a part of a password or of a query. So mask
    # each one alone, and then all of them as one address.
    later = [found.start() for found in _BEGIN.finditer(text)][1:]
    pieces = (text[start:end] for start, end in pairwise([0, *later, len(text)]))
    return _mask_first("".join(map(_mask_first, pieces)))


def _mask_first(text: str) -> str:
    """Mask the credentials of the first address in a text, which ends with the text."""
    scheme = _SCHEME.search(text) or _NEARLY.match(text)
    if scheme is None:
        return text
    start, rest = text[: scheme.end()], text[scheme.end() :]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest and not _HOST.fullmatch(host):
        # Mask up to the last "@", because an unquoted password may contain any character.
        rest = f"{MASK}@{rest.rpartition('@')[2]}"
    before, mark, _ = rest.partition("#")
    return start + _QUERY.sub(rf"\1\2{MASK}", before) + (mark and mark + MASK)


def _mask_in_text(found: re.Match[str]) -> str:
    """Mask the credentials of an address. A quote or punctuation after it is not a part of it."""
    text = found.group()
    address = _without_quote(_without_quote(text).rstrip(".,:;!?)]"))
    return mask_credentials(address) + text[len(address) :]


def _without_quote(text: str) -> str:
    return text[:-1] if text.endswith(("'", '"')) else text


class DstFuzzError(Exception):
    """Base of all errors that this package raises on purpose; the text is safe for a terminal.

    The text has no credentials of addresses either, because a user may give an address to an option
    that takes a path.
    """

    def __str__(self) -> str:
        text = super().__str__()
        return printable(_IN_TEXT.sub(_mask_in_text, text))


class UserError(DstFuzzError):
    """A mistake in the user's input.

    The message names the mistake and its place, and says how to fix it. The plugin prints only this
    message and exits with status 4. The command ``dstfuzz`` exits with status 2.
    """


class DataError(UserError):
    """A data file cannot be read. The message names the file and the line."""


class NoAnswerError(UserError):
    """A tracker gave no valid answer in the checks before the run. Its service may be down."""


class OutOfReachError(NoAnswerError):
    """A tracker timed out or was unreachable in the checks before the run. Not a user's mistake."""


class TrackerError(DstFuzzError):
    """A tracker raised an exception, or its answer is not a prediction."""


class MalformedAnswerError(TrackerError):
    """A system answered, but the answer cannot be parsed, for example because of invalid JSON.

    The request is retried, since a language model may answer correctly the next time.
    """


class GivenUpError(TrackerError):
    """The run stopped waiting for an answer: its time is over, or the service does not respond.

    This is no failure of the tracker. The context counts as not requested. The message gives the
    reason as a clause without a full stop. Reports show it once for all such contexts.
    """


class ChangedTrackerError(GivenUpError):
    """The tracker changed while it answered, so the newest answers are of an unknown version."""


class MissingExtraError(UserError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str, module: str) -> None:
        super().__init__(
            f"{feature} needs the package {module!r}, which is not installed: "
            f'pip install "pytest-dstfuzz[{extra}]"'
        )
        self.extra = extra


@contextmanager
def needs_extra(feature: str, extra: str, *modules: str) -> Iterator[None]:
    """Raise `MissingExtraError` if an import in the block fails because a package is missing.

    ``modules`` are the top-level packages that may be missing, and ``extra`` is the smallest extra
    that installs all of them. If any other package is missing, its error propagates, because that
    is a bug. The message begins with ``feature``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in modules:
            raise
        raise MissingExtraError(feature, extra, missing) from error


def nearest(name: str, valid: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the valid name most similar to ``name``, or ``None`` if none is similar.

    ``cutoff`` is the minimum similarity, from 0 to 1 (equal names).
    """
    names = sorted(valid)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


def did_you_mean(name: str, valid: Iterable[str], *, inside: bool = False) -> str:
    """Return ``" Did you mean 'x'?"`` with the most similar valid name, or ``""`` without any.

    With ``inside``, the text continues a sentence: ``"; did you mean 'x'?"``.
    """
    guess = nearest(name, valid)
    begin = "; did" if inside else " Did"
    return f"{begin} you mean {guess!r}?" if guess else ""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Return the error for an unknown name. Its message suggests the most similar valid name."""
    names = sorted(valid)
    hint = did_you_mean(name, names)
    return UserError(f"unknown {kind} {name!r}.{hint} Valid: {', '.join(names) or 'none'}.")


#: Shorter values are not masked, because that would garble every message.
_SHORTEST: Final = 4
#: Values that messages of exceptions must not repeat.
_HIDDEN: set[str] = set()


def hide_in_messages(value: str) -> None:
    """Mask a value in all later exception messages. Names of files are not masked."""
    if len(value) >= _SHORTEST and not os.path.lexists(value):
        _HIDDEN.update({value, repr(value)[1:-1]})


def message_of(error: BaseException) -> str:
    """Return the message of a user's exception, or ``""`` if its ``__str__`` raises.

    A tracker may quote the keys that it was given, so their values are masked.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return ""
    for value in sorted(_HIDDEN, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


#: Replaces a text that may repeat the dialogue.
KEPT_BACK: Final = "kept back (redact)"
#: Has the element "redact" if messages must not repeat texts of dialogues.
_MODES: set[str] = set()


def redact_messages(redact: bool) -> None:
    """Set whether later messages keep back the texts that a user's code got or returned."""
    (_MODES.add if redact else _MODES.discard)("redact")


def redact_text(text: str) -> str:
    """Return the text, or `KEPT_BACK` if messages are redacted. An empty text stays empty."""
    return KEPT_BACK if text and _MODES else text


class Overrun(BaseException):
    """The time is over, but a call has still not returned.

    Like ``KeyboardInterrupt``, it is not caught by ``except Exception``.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Place in the batch -> the answer received before.
        self.answers: Mapping[int, object] = {}


def passes_through(error: BaseException) -> bool:
    """Return whether an exception from a user's code belongs to Python or pytest.

    All other exceptions are failures of that code, even if they are not an `Exception`. For
    example, a panic in Rust (tokenizers, safetensors) reaches Python as a `BaseException`.
    ``sys.exit()`` in a tracker ends only that call. A generator that its consumer closes gets a
    ``GeneratorExit``, so it must not yield inside a block that converts exceptions.
    """
    if isinstance(error, KeyboardInterrupt | Overrun):
        return True
    # pytest's own exceptions: exit, skip, fail, and the one that stops a test that takes too long.
    return any(kind.__module__.split(".")[0] == "_pytest" for kind in type(error).__mro__)
