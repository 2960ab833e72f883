"""Result folders: the results of a run by dialogue, in parts that a killed run keeps."""

from __future__ import annotations

import os
import shutil
import uuid
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Self

from pytest_dstfuzz.campaign.results import MappedResults, Results, TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import (
    OutputSettings,
    Settings,
    shard_text,
)
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import lock_file
from pytest_dstfuzz.json_data import RawJson, from_json, json_decoder, json_encoded
from pytest_dstfuzz.report.forms import write_form
from pytest_dstfuzz.report.json_report import RunInfo, build_report, judge_info
from pytest_dstfuzz.report.packing import pack_turns, unpack_turns
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.scale.manifest import MANIFEST, RunManifest, fill_answers
from pytest_dstfuzz.totals.totals import Totals

#: Size in bytes after which a new file is started.
PART_SIZE: Final = 256_000_000
_PATTERN: Final = "results-*.jsonl"


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a results file. Its results are decoded only when needed."""

    place: int  #: The index of the dialogue in the data.
    relation: int  #: The index of the relation in the manifest.
    run: str  #: See `RunManifest.run`.
    count: int  #: The number of results.
    results: RawJson
    #: Whether the tracker failed on a turn or a variant, which is asked again when the run goes on.
    failed: bool = False
    #: What a language model judged since the line before; ``None`` = nothing.
    judge: JudgeFacts | None = None


_LINE: Final = json_decoder(_Line)
#: Results are encoded in two steps, since they refer to earlier results of the dialogue.
_PLAIN: Final = json_decoder(list[dict[str, Any]])


@dataclass(frozen=True, slots=True)
class DialogueResults:
    """The results of one dialogue under one relation."""

    #: The index of the dialogue in the data.
    place: int
    relation: str
    results: tuple[TurnResult, ...]
    judge: JudgeFacts | None = None  #: See `_Line`.


@dataclass(frozen=True, slots=True)
class EncodedResults:
    """The results of one dialogue in encoded form, which can be written without decoding."""

    place: int
    relation: str
    count: int  #: The number of results.
    text: bytes  #: The results as JSON.
    failed: bool = False  #: See `_Line`.
    judge: JudgeFacts | None = None  #: See `_Line`.

    @classmethod
    def of(cls, found: DialogueResults) -> EncodedResults:
        """Encode the results of a dialogue."""
        results = found.results
        text = json_encoded(list(pack_turns(_PLAIN(json_encoded(results)))))
        failed = any(
            one.outcome == "error" or any(each.outcome == "error" for each in one.variants)
            for one in results
        )
        return cls(found.place, found.relation, len(results), text, failed, found.judge)


class _Index:
    """The positions of all lines in the files, with five numbers per line."""

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

    def replace(self, at: int, part: int, start: int) -> None:
        self.part[at], self.start[at] = part, start


class ResultFolder:
    """Reads and writes a result folder. Only one process may write to it."""

    def __init__(self, path: Path, manifest: RunManifest) -> None:
        self.path, self.manifest = path, manifest
        self._index = _Index()
        self._parts: list[Path] = []
        self._done: set[tuple[int, int]] = set()
        #: (place, relation) with a failure of the tracker -> its place in the index.
        self._failed: dict[tuple[int, int], int] = {}
        #: Those of them to ask again now.
        self._again: set[tuple[int, int]] = set()
        self._size = 0
        #: The number of contexts that earlier calls for this folder asked.
        self.asked_before = 0
        #: Whether these calls left nothing to do.
        self.was_finished = False
        #: What a language model judged in all lines; ``None`` = nothing.
        self.judge: JudgeFacts | None = None
        self._lock = ExitStack()
        self._file: IO[bytes] | None = None
        self._number = {name: number for number, name in enumerate(manifest.relations)}

    @classmethod
    def create(cls, path: Path, manifest: RunManifest) -> Self:
        """Create a result folder.

        Raises:
            UserError: the path has a folder that is not empty.
        """
        if path.is_dir() and not _is_empty(path):
            raise UserError(
                f"{path} contains other files: name a folder of its own for the results"
            )
        path.mkdir(parents=True, exist_ok=True)
        manifest.write(path)
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing result folder. Ignore its last line if that is incomplete.

        Raises:
            DataError: the path is not a result folder, or the folder is damaged.
        """
        if path.is_file():
            raise DataError(
                f"{path} is a file, not a folder of results: write a folder with dstfuzz campaign "
                "--results DIR (with --shard K/N, the folder of one part)"
            )
        if not path.is_dir():
            raise DataError(
                f"there is no folder of results {path}: write one with dstfuzz campaign"
            )
        folder = cls(path, RunManifest.read(path))
        folder.asked_before = folder.manifest.asked
        for part in sorted(path.glob(_PATTERN)):
            folder._scan(part)
        return folder

    @staticmethod
    def part_name(number: int) -> str:
        """Return the name of the results file with this number, counted from 1."""
        return f"results-{number:04d}.jsonl"

    @property
    def parts(self) -> Sequence[Path]:
        """The results files, ordered by their creation."""
        return self._parts

    @staticmethod
    def is_one(path: Path) -> bool:
        """Return whether a path is a result folder."""
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
                    raise DataError(
                        f"{part}, byte {start}: not a line of results: {error}"
                    ) from None
                if line.run != self.manifest.run:
                    raise DataError(
                        f"{part}, byte {start}: a result of another run than {MANIFEST} describes. "
                        "Restore all files of the folder together, or use another folder"
                    )
                self._note(line, number, start)
                start += len(text)

    def _note(self, line: _Line, part: int, start: int) -> None:
        key = line.place, line.relation
        if line.judge is not None:
            self.judge = line.judge if self.judge is None else self.judge + line.judge
        if line.relation >= len(self.manifest.relations):
            return
        at = self._failed.pop(key, None)
        if at is not None:
            self._index.replace(at, part, start)
        elif key not in self._done:
            at = len(self._index)
            self._index.add(line, part, start)
            self._size += line.count
        else:
            # If a dialogue was run twice without a failure, the results are equal. Keep the first.
            return
        self._done.add(key)
        if line.failed:
            self._failed[key] = at

    # -- writing ----------------------------------------------------------------------

    def has(self, place: int, relation: str) -> bool:
        """Return whether a dialogue has results under a relation, so that it need not run."""
        key = place, self._number[relation]
        return key in self._done and key not in self._again

    def ask_failed_again(self) -> None:
        """Count dialogues with tracker failures as not tested from now on."""
        self._again = set(self._failed)

    def append(self, found: DialogueResults | EncodedResults) -> None:
        """Append the results of a dialogue. If the process is killed, at most one line is lost."""
        if isinstance(found, DialogueResults):
            found = EncodedResults.of(found)
        relation = self._number[found.relation]
        text = RawJson(found.text)
        run = self.manifest.run
        line = _Line(found.place, relation, run, found.count, text, found.failed, found.judge)
        self._again.discard((found.place, relation))
        with self._written():
            file = self._writer()
            start = file.tell()
            file.write(json_encoded(line) + b"\n")
            file.flush()
        self._note(line, len(self._parts) - 1, start)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Convert a failed write, for example to a full disk, to an error with one message."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"cannot write results to {self.path}: {error.strerror or error}. The results so "
                "far are kept: free some space and run the same command again"
            ) from None

    def _writer(self) -> IO[bytes]:
        if self._file is not None and self._file.tell() >= PART_SIZE:
            self._end_part()
        if self._file is None:
            if not self._parts or self._parts[-1].stat().st_size >= PART_SIZE:
                self._parts.append(self.path / self.part_name(len(self._parts) + 1))
            self._file = self._parts[-1].open("ab")
            _drop_half_line(self._parts[-1], self._file)
        return self._file

    def hold(self, lock: ExitStack) -> None:
        """Hold a lock until the folder is closed."""
        self._lock = lock

    def keep(self, manifest: RunManifest) -> None:
        """Flush all lines to disk, then write the manifest again.

        Raises:
            UserError: the disk is full, or the folder was removed or replaced.
        """
        if self._file is not None:
            with self._written():
                os.fsync(self._file.fileno())
        if not self.is_one(self.path) or RunManifest.read(self.path).run != manifest.run:
            raise UserError(
                f"{self.path} was removed or replaced while this run wrote to it, so the results "
                "of this run are lost: run the same command again, with a folder of its own"
            )
        self.manifest = manifest
        manifest.write(self.path)

    def close(self) -> None:
        """Close the file and release the lock of the folder."""
        self._end_part()
        self._lock.close()

    def _end_part(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # If the disk is full, the last line was refused already.
            with suppress(OSError):
                file.close()

    # -- reading ----------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of results in the folder."""
        return self._size

    @property
    def complete(self) -> bool:
        """Whether the folder has all planned results."""
        return len(self) >= self.manifest.planned

    @property
    def finished(self) -> bool:
        """Whether the run sends no more requests to the tracker."""
        return self.complete and not self._again

    @property
    def results(self) -> StoredResults:
        """All results in the folder, in the order of the data."""
        return StoredResults(self)

    def lines(self, relation: str = "") -> Iterator[DialogueResults]:
        """Yield the results of each dialogue in the order of the data.

        Raises:
            DataError: the results of a dialogue are damaged.
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
        """Return the number of results under a relation."""
        number, index = self._number.get(relation, -1), self._index
        pairs = zip(index.relation, index.count, strict=True)
        return sum(count for own, count in pairs if own == number)


class StoredResults(Collection[TurnResult]):
    """The results in a folder. Each iteration reads them from disk.

    The results are in the order of the data. For each turn, the relation ``metamorphic`` comes
    first, then the other relations by name.
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
    """Decode the results of a dialogue, or raise ``ValueError`` or `DataError`."""
    return from_json(list[TurnResult], list(unpack_turns(_PLAIN(text))))


def _in_order(results: Sequence[TurnResult]) -> list[TurnResult]:
    def key(result: TurnResult) -> tuple[int, str]:
        return result.turn_index, "" if result.relation == "metamorphic" else result.relation

    return sorted(results, key=key)


def _drop_half_line(path: Path, file: IO[Any]) -> None:
    """Remove an incomplete line from the end of a file."""
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


def describe_unfinished(folder: ResultFolder) -> str:
    """Describe which results a folder lacks, and the command that continues the run."""
    manifest = folder.manifest
    part = "" if manifest.shard == (1, 1) else f", part {shard_text(manifest.shard)},"
    why = f" ({manifest.ended})" if manifest.ended else ""
    text = f"{folder.path}{part} has {len(folder):,} of {manifest.planned:,} results{why}"
    return f"{text}: continue with {manifest.command}" if manifest.command else text


@contextmanager
def replacing(output: Path, manifest: RunManifest) -> Iterator[Path]:
    """Yield a new folder to fill.

    If the context ends without an error, the folder gets the manifest and replaces ``output``.

    Raises:
        UserError: ``output`` is not a result folder of the same run.
    """
    check_replaceable(output, manifest)
    held = lock_file(output / MANIFEST, wait=0.0) if output.is_dir() else nullcontext()
    with held, _replaced(output, manifest) as draft:
        yield draft


@contextmanager
def _replaced(output: Path, manifest: RunManifest) -> Iterator[Path]:
    target = output.expanduser().resolve()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        draft.mkdir(parents=True)
        yield draft
        manifest.write(draft)
        for file in draft.iterdir():
            _to_disk(file)
        if target.exists():
            old = draft.with_suffix(".old")
            target.rename(old)
            draft.rename(target)
            shutil.rmtree(old)
        else:
            draft.rename(target)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_replaceable(output: Path, manifest: RunManifest | None = None) -> None:
    """Raise an error if a new result folder would replace anything else.

    Raises:
        UserError: the path is a file, or a folder with other files. If a ``manifest`` is given,
            the folder must not have results of another run, either.
    """
    if not output.exists() or (output.is_dir() and _is_empty(output)):
        return
    if not ResultFolder.is_one(output):
        what = "contains other files" if output.is_dir() else "is not a folder"
        raise UserError(f"{output} {what}: name a folder of its own for the results")
    if manifest is None:
        return
    old = RunManifest.read(output)
    if old.differing(manifest) or old.shard != manifest.shard:
        raise UserError(f"{output} has the results of another run: use another folder")


def _is_empty(folder: Path) -> bool:
    """Return whether a folder has nothing but locks and drafts, as a killed run leaves them."""
    return all(one.suffix in (".lock", ".tmp") and one.is_file() for one in folder.iterdir())


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


class FolderReport:
    """Makes the reports of a result folder, redacted if required."""

    def __init__(self, folder: ResultFolder, *, redact: bool = False) -> None:
        manifest = folder.manifest
        self.settings: Settings = manifest.read_settings()
        before = folder.asked_before
        self.info: RunInfo = manifest.info(
            asked=manifest.asked - before,
            recalled=before,
            judge=judge_info(folder.judge, self.settings),
        )
        found = folder.results
        self.results: Results = MappedResults(found, redact_turn) if redact else found
        hide = redact_turn if redact else None
        fallbacks = self.settings.reply.fallback
        self.totals = Totals.of(found, self.info.relations, fallbacks, hide, self.info.words)
        self.summary: Summary = self.totals.first(self.settings.variant.relation).summary

    def page(self, page: TerminalPage) -> TerminalPage:
        """Add the figures of the folder to a page for the terminal."""
        given = (self.results, self.settings, self.info)
        width, encoding = page.width, page.encoding
        page.lines += report_lines(
            *given,
            width=width,
            encoding=encoding,
            totals=self.totals,
        )
        return page

    def write(self, output: OutputSettings, **run: Any) -> list[Path]:
        """Write the requested reports.

        ``run`` sets further fields in the description of the run.
        """
        wanted = [Path(path) for path in output.report]
        if wanted:
            settings = self.settings.replace_options(redact=output.redact)
            info = replace(self.info, **run)
            report = build_report(
                self.results,
                settings,
                info,
                totals=self.totals,
            )
            for path in wanted:
                write_form(path, report, {"": View.of(report, self.totals)})
        return wanted


@contextmanager
def closed_on_error(folder: ResultFolder) -> Iterator[None]:
    """Close a folder if an error is raised, and leave its manifest as it is."""
    try:
        yield
    except BaseException:
        folder.close()
        raise


def open_folder(path: Path, manifest: RunManifest) -> ResultFolder:
    """Open or create the folder of a run, and lock it until it is closed.

    Raises:
        UserError: the folder belongs to another run, or another process writes to it.
    """
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is not a folder: name a folder for the results")
    with ExitStack() as lock:
        lock.enter_context(lock_file(path / MANIFEST, wait=0.0))
        if ResultFolder.is_one(path):
            folder = ResultFolder.open(path)
            old = folder.manifest
            old.refuse_another(manifest, path)
            # Other reports and limits than those of the earlier call may be wanted.
            folder.manifest = replace(
                manifest,
                asked=old.asked,
                seconds=old.seconds,
                answers=fill_answers(old.answers, manifest.answers),
            )
            folder.ask_failed_again()
            folder.was_finished = folder.finished
        else:
            folder = ResultFolder.create(path, manifest)
        folder.hold(lock.pop_all())
    return folder
