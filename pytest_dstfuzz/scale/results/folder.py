"""A folder of results: a line for each dialogue under each relation, written as they come.

The lines stand in whatever order they came in. Read, they are in the order of the data, one
dialogue after the other, and only that dialogue is in memory; of the others it is known where
they are.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.json_data import RawJson, from_json, json_decoder, json_encoded
from pytest_dstfuzz.report.packing import packed, unpacked
from pytest_dstfuzz.scale.results.manifest import MANIFEST, RunManifest

#: Bytes after which another part is begun.
PART_SIZE: Final = 256_000_000
_PATTERN: Final = "results-*.jsonl"


@dataclass(frozen=True, slots=True)
class _Line:
    """One line, whose results are decoded when they are read."""

    place: int  #: Of the dialogue in the data.
    relation: int  #: Of the relation in the manifest.
    count: int  #: Results.
    results: RawJson


_LINE: Final = json_decoder(_Line)
#: In two steps each way: results refer to earlier ones of the dialogue.
_PLAIN: Final = json_decoder(list[dict[str, Any]])


@dataclass(frozen=True, slots=True)
class DialogueResults:
    """What was found at one dialogue under one relation."""

    #: Of the dialogue in the data.
    place: int
    relation: str
    results: tuple[TurnResult, ...]


@dataclass(frozen=True, slots=True)
class EncodedResults:
    """`DialogueResults` as they are written: who writes them down need not know what they say."""

    place: int
    relation: str
    count: int  #: Results.
    text: bytes  #: Their JSON.

    @classmethod
    def of(cls, found: DialogueResults) -> EncodedResults:
        """Encode what was found at a dialogue."""
        results = found.results
        text = json_encoded(list(packed(_PLAIN(json_encoded(results)))))
        return cls(found.place, found.relation, len(results), text)


class _Index:
    """Where each line is: five numbers a line, whatever it holds."""

    def __init__(self) -> None:
        self.place, self.relation, self.count = array("q"), array("q"), array("q")
        self.part, self.start = array("q"), array("q")

    def __len__(self) -> int:
        return len(self.place)

    def add(self, line: _Line, part: int, start: int) -> None:
        self.place.append(line.place)
        self.relation.append(line.relation)
        self.count.append(line.count)
        self.part.append(part)
        self.start.append(start)


class ResultFolder:
    """Reads and writes a folder of results; a writer holds it alone."""

    def __init__(self, path: Path, manifest: RunManifest) -> None:
        self.path, self.manifest = path, manifest
        self._index = _Index()
        self._parts: list[Path] = []
        self._done: set[tuple[int, int]] = set()
        self._file: IO[bytes] | None = None
        self._number = {name: number for number, name in enumerate(manifest.relations)}

    @classmethod
    def create(cls, path: Path, manifest: RunManifest) -> Self:
        """Begin a folder.

        Raises:
            UserError: there is something in the way.
        """
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is no folder: results are kept in one")
        if path.is_dir() and any(path.iterdir()):
            raise UserError(f"{path} holds other files: results want a folder of their own")
        path.mkdir(parents=True, exist_ok=True)
        manifest.write(path)
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder that is there; a last line that was cut off is as if it were not there.

        Raises:
            DataError: it is none, or it is damaged.
        """
        if path.is_file():
            raise DataError(
                f"{path} is a file, and results are read from a folder: dstfuzz campaign --results "
                "DIR writes one, of a part with --shard K/N"
            )
        if not path.is_dir():
            raise DataError(f"there is no folder of results {path}: dstfuzz campaign writes one")
        folder = cls(path, RunManifest.read(path))
        for part in sorted(path.glob(_PATTERN)):
            folder._scan(part)
        return folder

    @staticmethod
    def part_name(number: int) -> str:
        """Return the name of a file of lines, by its number from 1."""
        return f"results-{number:04d}.jsonl"

    @property
    def parts(self) -> Sequence[Path]:
        """The files of lines, in the order in which they were begun."""
        return self._parts

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether there is a folder of results."""
        return (path / MANIFEST).is_file()

    def _scan(self, part: Path) -> None:
        number, start = len(self._parts), 0
        self._parts.append(part)
        with part.open("rb") as file:
            for text in file:
                if not text.endswith(b"\n"):
                    break
                try:
                    line = _LINE(text)
                except ValueError as error:
                    raise DataError(f"{part}, byte {start}: no line of results: {error}") from None
                self._note(line, number, start)
                start += len(text)

    def _note(self, line: _Line, part: int, start: int) -> None:
        key = line.place, line.relation
        # Asked twice, a dialogue gave the same: the first time counts.
        if key not in self._done and line.relation < len(self.manifest.relations):
            self._done.add(key)
            self._index.add(line, part, start)

    # -- writing ----------------------------------------------------------------------

    def has(self, place: int, relation: str) -> bool:
        """Whether a dialogue has its results under a relation."""
        return (place, self._number[relation]) in self._done

    def append(self, found: DialogueResults | EncodedResults) -> None:
        """Keep what was found at a dialogue; a kill loses at most a line that is half written."""
        if isinstance(found, DialogueResults):
            found = EncodedResults.of(found)
        relation = self._number[found.relation]
        line = _Line(found.place, relation, found.count, RawJson(found.text))
        text = json_encoded(line) + b"\n"
        file = self._writer()
        start = file.tell()
        file.write(text)
        file.flush()
        self._note(line, len(self._parts) - 1, start)

    def _writer(self) -> IO[bytes]:
        if self._file is not None and self._file.tell() >= PART_SIZE:
            self.close()
        if self._file is None:
            if not self._parts or self._parts[-1].stat().st_size >= PART_SIZE:
                self._parts.append(self.path / self.part_name(len(self._parts) + 1))
            self._file = self._parts[-1].open("ab")
            _drop_half_line(self._parts[-1], self._file)
        return self._file

    def keep(self, manifest: RunManifest) -> None:
        """Write the manifest anew, after all lines are on the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.manifest = manifest
        manifest.write(self.path)

    def close(self) -> None:
        """Let go of the file that is written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # -- reading ----------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many results there are."""
        return sum(self._index.count)

    @property
    def complete(self) -> bool:
        """Whether every dialogue that was planned has its results."""
        return len(self) >= self.manifest.planned

    @property
    def results(self) -> StoredResults:
        """All results, in the order of the data."""
        return StoredResults(self)

    def lines(self, relation: str = "") -> Iterator[DialogueResults]:
        """Yield what was found, dialogue by dialogue in the order of the data.

        Raises:
            DataError: what is found of a dialogue is damaged.
        """
        index, names = self._index, self.manifest.relations
        wanted = None if not relation else self._number.get(relation, -1)
        order = [at for at in range(len(index)) if wanted is None or index.relation[at] == wanted]
        order.sort(key=lambda at: (index.place[at], index.relation[at]))
        files: dict[int, IO[bytes]] = {}
        try:
            for at in order:
                part = index.part[at]
                if part not in files:
                    files[part] = self._parts[part].open("rb")
                files[part].seek(index.start[at])
                try:
                    line = _LINE(files[part].readline())
                    found = tuple(_results(line.results))
                except (ValueError, DataError) as error:
                    where = f"{self._parts[part]}, byte {index.start[at]}"
                    raise DataError(f"{where}: damaged results: {error}") from None
                yield DialogueResults(line.place, names[line.relation], found)
        finally:
            for file in files.values():
                file.close()

    def count(self, relation: str) -> int:
        """Return how many results there are under a relation."""
        number, index = self._number.get(relation, -1), self._index
        pairs = zip(index.relation, index.count, strict=True)
        return sum(count for own, count in pairs if own == number)


class StoredResults(Collection[TurnResult]):
    """Results in a folder, read anew each time that somebody goes over them.

    They are in the order of the data; of a turn those of ``metamorphic`` come first, then those of
    the other relations by name.
    """

    def __init__(self, folder: ResultFolder, relation: str = "") -> None:
        self._folder, self._relation = folder, relation

    def __len__(self) -> int:
        return self._folder.count(self._relation) if self._relation else len(self._folder)

    def __contains__(self, result: object) -> bool:
        return any(one == result for one in self)

    def __iter__(self) -> Iterator[TurnResult]:
        together: list[TurnResult] = []
        place = -1
        for line in self._folder.lines(self._relation):
            if line.place != place:
                yield from _in_order(together)
                together, place = [], line.place
            together += line.results
        yield from _in_order(together)

    def of(self, relation: str) -> StoredResults:
        """Return the results under one relation."""
        return StoredResults(self._folder, relation)


def _results(text: RawJson) -> list[TurnResult]:
    """Read the results of a dialogue; a ``ValueError`` or `DataError` if they are damaged."""
    return from_json(list[TurnResult], list(unpacked(_PLAIN(text))))


def _in_order(results: Sequence[TurnResult]) -> list[TurnResult]:
    def key(result: TurnResult) -> tuple[int, str]:
        return result.turn_index, "" if result.relation == "metamorphic" else result.relation

    return sorted(results, key=key)


def _drop_half_line(path: Path, file: IO[Any]) -> None:
    """Cut off what was begun and not ended at the end of a file."""
    size = path.stat().st_size
    with path.open("rb") as old:
        left = size
        while left:
            begin = max(0, left - 65536)
            old.seek(begin)
            chunk = old.read(left - begin)
            if (at := chunk.rfind(b"\n")) >= 0:
                left = begin + at + 1
                break
            left = begin
    if left < size:
        file.truncate(left)
        file.seek(left)
