"""Registry of readers, which are shipped, from installed packages, or from a test suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.dialogue.normalise import check_normalisation
from pytest_dstfuzz.dialogue.readers.corpora import (
    Canard,
    OriginalMultiwoz,
    Sgd,
    ShardedMultiwoz,
    Trade,
)
from pytest_dstfuzz.dialogue.readers.forms import FORMS
from pytest_dstfuzz.dialogue.readers.logs import JsonLines, Table, UserTexts
from pytest_dstfuzz.dialogue.readers.messages import Messages
from pytest_dstfuzz.dialogue.readers.rasa import RasaExamples, RasaStories, RasaTrackers
from pytest_dstfuzz.dialogue.readers.source import Reader, ReadOptions, SourceFile
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import Registry, blame_errors

#: Entry point group for the readers of packages. An entry point names an object, or a class that
#: needs no arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.readers"
#: In order of preference, if a source has a split in several formats.
_SHIPPED: Final[tuple[Reader, ...]] = (
    OriginalMultiwoz(),
    ShardedMultiwoz(),
    Trade(),
    Sgd(),
    Canard(),
    JsonLines(),
    *FORMS,
    Messages(),
    RasaStories(),
    RasaTrackers(),
    RasaExamples(),
    Table(),
    UserTexts(),
)
READERS: Final[Registry[object]] = Registry(
    "reader", ENTRY_POINT_GROUP, {reader.name: reader for reader in _SHIPPED}
)
_Given = TypeVar("_Given")


def register_reader(reader: _Given) -> _Given:
    """Register a reader, for example in a ``conftest.py``.

    Args:
        reader: a `Reader`, or a subclass that needs no arguments. For a class this also works as
            a decorator.

    Returns:
        The argument.

    Raises:
        UserError: If the argument is not a reader, or has the name of a shipped reader.
    """
    READERS.register(_CheckedReader(reader, "register_reader()").name, reader)
    return reader


def find_readers(wanted: str | None = None) -> tuple[Reader, ...]:
    """Return all readers, shipped ones first.

    If the reader of a package cannot be loaded, a placeholder takes its place. The placeholder
    recognises no file and has the reason in ``about``.

    Raises:
        UserError: If the ``wanted`` reader cannot be loaded.
    """
    return (*_SHIPPED, *(_other(name, wanted) for name in READERS.single[len(_SHIPPED) :]))


def _other(name: str, wanted: str | None) -> Reader:
    try:
        return _CheckedReader(READERS.find(name), READERS.where(name))
    except UserError as error:
        if name == wanted:
            raise
        return _BrokenReader(name, f"({error})")


def forms(readers: Iterable[Reader]) -> list[str]:
    """Return a line for each reader with its name and the description of its files."""
    return [f"{reader.name:<12} {reader.about}".rstrip() for reader in readers]


class _BrokenReader(Reader):
    """A placeholder for the reader of a package that cannot be loaded."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about

    def detect(self, file: SourceFile, head: str) -> float:  # noqa: ARG002 - as all readers
        """Return 0: the reader recognises no file."""
        return 0.0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:  # noqa: ARG002 - as all readers
        """Yield no dialogue."""
        return iter(())


class _CheckedReader(Reader):
    """A third-party reader whose results are checked."""

    def __init__(self, given: Any, where: str) -> None:
        if isinstance(given, type):
            with blame_errors(f"{where}: {given.__name__}()"):
                given = given()
        READERS.check_shape(given, where, "read(file, how)", "an iterator of dialogues")
        if not callable(getattr(given, "detect", None)):
            raise UserError(
                f"{where}: {type(given).__name__} lacks a method detect(file, head), which returns "
                "its confidence, from 0 to 1, that a file has its format"
            )
        self._given = given
        self.name = given.name
        self.about = getattr(given, "about", "")
        self.normalisation = check_normalisation(getattr(given, "normalisation", "plain"))
        self.published = getattr(given, "published", False)

    def detect(self, file: SourceFile, head: str) -> float:
        """Return the confidence of the reader, checked to be a number from 0 to 1."""
        who = f"detect() of the reader {self.name!r}"
        with blame_errors(who):
            sure = self._given.detect(file, head)
        if not isinstance(sure, int | float) or not 0 <= sure <= 1:
            raise UserError(f"{who} returned {sure!r}: it must return a number from 0 to 1")
        return sure

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of the reader, checked for type and turn indices."""
        who = f"read() of the reader {self.name!r}"
        with blame_errors(who):
            dialogues = iter(self._given.read(file, how))
        while True:
            with blame_errors(who):
                found: object = next(dialogues, READERS)  # No reader yields it.
            if found is READERS:
                return
            if not isinstance(found, Dialogue):
                kind = type(found).__name__
                raise UserError(f"{who} yielded {kind} for {file.place}: it must be a Dialogue")
            if [turn.index for turn in found.turns] != list(range(len(found.turns))):
                raise UserError(
                    f"{who}: the turns of the dialogue {found.id!r} of {file.place} must have "
                    "the indices 0, 1, 2 and so on"
                )
            yield found

    def phrases(self, how: ReadOptions) -> Mapping[str, str]:
        """Return the reader's words for slots, if the reader has this method."""
        with blame_errors(f"phrases() of the reader {self.name!r}"):
            return dict(self._given.phrases(how)) if hasattr(self._given, "phrases") else {}
