"""The turns of a report where they are too many for one object: lines of JSON on the disk.

A large report is two things: an object with all but the turns, and parts beside it with a turn a
line. Their names hold a digest of what is in them, so those of an earlier report stay as they are
until the object that names the new ones has taken its place.
"""

from __future__ import annotations

import glob
import json
import re
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import utf8, write_named
from pytest_dstfuzz.json_data import json_decoder
from pytest_dstfuzz.report.packing import packed, unpacked

#: Turns of the largest report that is one object, and of a part.
MOST_IN_ONE_FILE: Final = 5_000
TURNS_OF_PART: Final = 1_000
_DECODED: Final = json_decoder(TurnResult)


#: ``<name of the report>.turns-<number>-<digest>.jsonl``
_PART: Final = re.compile(r"[^/\\]+\.turns-\d{4,}-[0-9a-f]{8}\.jsonl")


class TurnLines(Collection[dict[str, Any]]):
    """Turns of a report, read from the disk each time that somebody goes over them."""

    @abstractmethod
    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON, without the end of the line."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self.lines())

    def __contains__(self, turn: object) -> bool:
        return any(one == turn for one in self)


class SpooledTurns(TurnLines):
    """Turns in a file of this process, which goes when nobody needs them any more.

    They stand in it as they came, dialogue by dialogue, and are read by dialogue, turn, id and
    text. Only one dialogue is in memory; of the others it is known where they are.
    """

    def __init__(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Write turns, those of a dialogue best next to each other."""
        self._count = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when this is collected
        weakref.finalize(self, self._file.close)
        #: Dialogue -> where some turns of it begin, and how long they are together.
        self._places: dict[str, list[tuple[int, int]]] = {}
        dialogue, lines = "", list[_Line]()
        for turn in turns:
            if turn["dialogue_id"] != dialogue:
                self._write(dialogue, lines)
                dialogue, lines = turn["dialogue_id"], []
            lines.append(_line(turn, json.dumps(turn, ensure_ascii=False, allow_nan=False)))
        self._write(dialogue, lines)

    def _write(self, dialogue: str, lines: Sequence[_Line]) -> None:
        if lines:
            block = b"".join(utf8(text) + b"\n" for *_, text in sorted(lines))
            place = self._file.seek(0, 2), len(block)
            self._file.write(block)
            self._places.setdefault(dialogue, []).append(place)
            self._count += len(lines)

    def __len__(self) -> int:
        return self._count

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON."""
        for _, places in sorted(self._places.items()):
            found = [line for place in places for line in self._read(*place)]
            if len(places) > 1:
                texts = [text.decode("utf-8") for text in found]
                found = [utf8(text) for *_, text in sorted(_line(json.loads(t), t) for t in texts)]
            yield from found

    def _read(self, start: int, size: int) -> list[bytes]:
        self._file.seek(start)
        return self._file.read(size).splitlines()


#: What sorts the turns of a dialogue: turn, id, text.
_Line = tuple[int, str, str]


def _line(turn: Mapping[str, Any], text: str) -> _Line:
    return turn["turn_index"], turn["id"], text


class TurnParts(TurnLines):
    """Turns in the parts of a large report."""

    def __init__(self, report: Path, entry: Mapping[str, Any]) -> None:
        """Take what a report says of its turns; a `DataError` if a part is not there."""
        self._folder = report.expanduser().resolve().parent
        self._names, self._count = list(map(str, entry["parts"])), int(entry["count"])
        for name in self._names:
            if not _PART.fullmatch(name) or not (self._folder / name).is_file():
                raise DataError(
                    f"{report} lacks its part {name}: the turns of a large report are in files "
                    "beside it, which go where it goes"
                )

    def __len__(self) -> int:
        return self._count

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON; a `DataError` if there are not as many as there should be."""
        return _encoded(unpacked(_decoded(self._raw())))

    def _raw(self) -> Iterator[bytes]:
        """Yield the lines as the files have them."""
        found = 0
        for name in self._names:
            try:
                with (self._folder / name).open("rb") as file:
                    for line in file:
                        found += 1
                        yield line.rstrip(b"\n")
            except OSError as error:
                text = f"cannot read {self._folder / name}: {error.strerror or error}"
                raise DataError(text) from None
        if found != self._count:
            raise DataError(f"{self._folder / name} is cut off: {found:,} of {self._count:,} turns")


class DecodedTurns(Collection[TurnResult]):
    """The turns of a large report as results."""

    def __init__(self, lines: TurnLines) -> None:
        self._lines: Final = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[TurnResult]:
        for number, line in enumerate(self._lines.lines()):
            try:
                yield _DECODED(line)
            except ValueError as error:
                raise DataError(f"entry {number} of 'turns' is no turn: {error}") from None

    def __contains__(self, turn: object) -> bool:
        return any(one == turn for one in self)


def _encoded(turns: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    return (utf8(json.dumps(turn, ensure_ascii=False, allow_nan=False)) for turn in turns)


def _decoded(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DataError(f"entry {number} of 'turns' is no turn: {error}") from None


def write_parts(report: Path, turns: TurnLines) -> dict[str, Any]:
    """Write the parts of a report, and return what it says of its turns."""
    names: list[str] = []
    folder = report.expanduser().resolve().parent
    lines = (line + b"\n" for line in _encoded(packed(turns)))
    for first in lines:
        part = write_named(
            folder,
            chain([first], islice(lines, TURNS_OF_PART - 1)),
            f"{report.stem}.turns-{len(names) + 1:04d}-",
            ".jsonl",
        )
        names.append(part.name)
    return {"count": len(turns), "parts": names}


def remove_parts(report: Path, keep: Collection[str] = ()) -> None:
    """Remove the parts of earlier reports of this name."""
    folder = report.expanduser().resolve().parent
    for old in folder.glob(f"{glob.escape(report.stem)}.turns-*.jsonl"):
        if _PART.fullmatch(old.name) and old.name not in keep:
            with suppress(OSError):  # It is in use, on Windows.
                old.unlink()
