"""Errors that a user can mend: one clear message each, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pytest_dstfuzz.printable import printable

__all__ = [
    "DataError",
    "DstFuzzError",
    "TrackerError",
    "UserError",
    "nearest",
    "needs_extra",
    "unknown_name",
]


class DstFuzzError(Exception):
    """Base of every error this package raises on purpose; its text is fit for a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UserError(DstFuzzError):
    """A mistake in what the user gave us.

    The message says what was wrong, where, and what would be right. The plugin
    and the command line print it alone and exit with 4 and 2.
    """


class DataError(UserError):
    """A data file that cannot be read; the message names file and line."""


class NoAnswerError(UserError):
    """A tracker that gave no sound answer at all before a run: its service may be down."""


class OutOfReachError(NoAnswerError):
    """Its time was over, or nobody answered, before a tracker was tested: no mistake of a user."""


class TrackerError(DstFuzzError):
    """A tracker raised, or answered with something that is no prediction."""


class MalformedAnswerError(TrackerError):
    """A system answered, and what it wrote cannot be read: arguments that are no JSON.

    A language model may write it well the next time, so it is asked again.
    """


class GivenUpError(TrackerError):
    """The run does not wait for this answer: its time is over, or nobody answers any more.

    It is no failure of the tracker on this context, which counts as not asked for. The message
    says why, as a clause without a full stop: it is told once, for all that was not asked for.
    """


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
    """Say which extra to install when an import within the block finds no such package.

    ``extra`` is the smallest one that has all of ``modules``, top-level packages; the absence of
    any other is an error of ours. The message begins with ``feature``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in modules:
            raise
        raise MissingExtraError(feature, extra, missing) from error


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most like ``name``, or ``None`` when none is close."""
    names = sorted(valid)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.5)
    return folded[close[0]] if close else None


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Build the error for a name that does not exist, with the nearest one that does."""
    names = sorted(valid)
    guess = nearest(name, names)
    hint = f" Did you mean {guess!r}?" if guess else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Valid: {', '.join(names) or 'none'}.")


def message_of(error: BaseException) -> str:
    """Return the message of an exception of a user's; ``""`` where it cannot say what it is."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, there is no message
        return ""
