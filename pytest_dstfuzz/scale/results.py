"""Result folders: the manifest of a run, its results in blocks, and merging of shards."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import uuid
from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Final, Self

from pytest_dstfuzz import Campaign, __version__
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.engine import (
    CampaignEngine,
    PlannedTurn,
    data_digest,
    digest_of_package,
)
from pytest_dstfuzz.campaign.results import MappedResults, Results, TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import (
    OutputSettings,
    Settings,
    settings_json,
    settings_of_json,
    shard_text,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.sampling import in_shard
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import lock_file, read_versioned, write_json
from pytest_dstfuzz.json_data import RawJson, from_json, json_decoder, json_encoded, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import format_list
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.report.forms import write_form
from pytest_dstfuzz.report.json_report import RunInfo, build_report, judge_info
from pytest_dstfuzz.report.packing import pack_turns, unpack_turns
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.search.registry import describe_trained
from pytest_dstfuzz.totals.totals import RelationFacts, Totals
from pytest_dstfuzz.trackers.tracker import Prediction

MANIFEST: Final = "run.json"
#: Since version 4, each line names its run, and the code of the package is part of the identity.
_VERSION: Final = 4
_KIND: Final = "folder of results"
#: Values of a run that are digests -> the message about a difference.
_HASHED: Final = {
    "digest": "the dialogues differ",
    "plugin": "the code of pytest-dstfuzz differs",
    "data": "the data differ",
    "fingerprint": "the trackers differ",
    "lexicon": "the lexicons differ",
    "policy": "the policies of the search differ",
}


#: Maximum number of shards, or of other names, in a message.
_MOST_NAMED: Final = 10


def list_differences(found: Mapping[str, Difference], shown: Callable[[str, Any, Any], str]) -> str:
    """Describe the differences of two runs for a message. Digests are left out.

    Args:
        found: the result of `RunManifest.differing`.
        shown: returns the text for one value. It takes the name and the two values.
    """
    texts = []
    for name, pair in found.items():
        one, other = pair or (None, None)
        if name in _HASHED:
            texts.append(_HASHED[name])
        elif pair is None:
            texts.append(
                f"{name}: a file, a credential or an environment variable that it uses has changed"
            )
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            texts += [f"the code of {key} differs" for key in keys]
        else:
            texts.append(shown(name, one, other))
    return "; ".join(texts)


class AnotherRunError(UserError):
    """A folder has the results of another run or another bot."""


#: Two different values; ``None`` if they look the same.
Difference = tuple[Any, Any] | None


@dataclass(frozen=True, kw_only=True)
class RunManifest:
    """The description of a run, as its result folder stores it.

    The values of `identity` determine the results. Runs are only continued, and shards only merged,
    if these values are equal.
    """

    #: Option -> value, as in the JSON report.
    settings: Mapping[str, Any]
    #: See `Campaign.identity`.
    decided: Mapping[str, Any]
    #: The version of the package, and a digest of its code and data.
    version: str
    plugin: str
    #: The names of the relations in order.
    relations: tuple[str, ...]
    #: Name of a relation -> its description of itself.
    facts: Mapping[str, RelationFacts]
    #: The digest of all drawn dialogues, including those of other shards.
    digest: str
    #: The fingerprints of the lexicon, and of the trained search policy.
    lexicon: str
    policy: str
    #: The name of the comparison of answers; ``""`` if states were compared.
    compared: str = ""
    #: The whole data set: name, split, normalisation, layout, dialogues, turns.
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: The number of the shard, from 1, and the number of shards; (1, 1) = all dialogues.
    shard: tuple[int, int] = (1, 1)
    #: The number of drawn dialogues, and of planned results under all relations.
    dialogues: int
    planned: int
    #: Why the run ended early; ``""`` if it did not, or still runs.
    ended: str = ""
    #: The command line without credentials.
    command: str = ""
    #: The contexts asked and the seconds used, over all calls for this folder.
    asked: int = 0
    seconds: float = 0.0
    #: Digests of the bot's answers to some unmodified turns, see `sample_answers`.
    answers: tuple[str, ...] = ()
    #: A digest of the identity that the run began with. Each line of results names it.
    run: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        """The values that determine the results."""
        own = {"version": self.version, "plugin": self.plugin, "digest": self.digest}
        return {**own, **self.decided}

    @property
    def begun(self) -> str:
        """The digest of `identity`, to store as `run` when the run begins."""
        return hashlib.sha256(json_encoded(self.identity)).hexdigest()[:16]

    @property
    def has_changed(self) -> bool:
        """Whether code or a file changed during the run, see `closed_by`."""
        return self.run != self.begun

    def differing(self, other: RunManifest) -> dict[str, Difference]:
        """Return the values of `identity` that differ, each as a pair (this run, the other run)."""
        mine, others = self.identity, other.identity
        return {
            name: self._shown(name, other)
            for name in {**mine, **others}
            if mine.get(name) != others.get(name)
        }

    def _shown(self, name: str, other: RunManifest) -> Difference:
        of = "settings" if name in self.settings else "identity"
        one, another = (getattr(run, of).get(name) for run in (self, other))
        return None if one == another else (one, another)

    def refuse_another(self, other: RunManifest, where: Path) -> None:
        """Raise an error if ``other`` differs too much from this run to continue it.

        Raises:
            UserError: settings, data, tracker or version differ. The message names the differences.
        """
        found = self.differing(other)
        if self.shard != other.shard:
            found["shard"] = shard_text(self.shard), shard_text(other.shard)
        if found:
            told = list_differences(
                found, lambda name, old, new: f"{name} was {old!r} and is {new!r}"
            )
            raise AnotherRunError(
                f"{where} has the results of another run, which cannot be continued as this one: "
                f"use another folder. Differences: {told}"
            )

    def unlike_answers(self, other: RunManifest) -> str:
        """Say that the bots of two runs answer many of the same turns differently, or ``""``.

        A bot whose answers vary may answer some turns differently.
        """
        differing, both = compare_answers(self.answers, other.answers)
        if len(differing) <= both * _MOST_UNLIKE:
            return ""
        return f"the bots answer {len(differing)} of {both} unmodified turns differently"

    def read_settings(self) -> Settings:
        """Return the settings of the run from the stored ones."""
        return settings_of_json(self.settings)

    def info(self, **more: Any) -> RunInfo:
        """Return the description of the run for a report. ``more`` sets further fields."""
        return RunInfo(
            **{
                **self.data,
                "lexicon": self.lexicon,
                "policy": self.policy,
                "notes": self.notes,
                "ended": self.ended,
                "compared": self.compared,
                "relations": dict(sorted(self.facts.items())),
                "recalled": self.asked,
                "seconds": self.seconds,
                **more,
            }
        )

    def write(self, folder: Path) -> None:
        """Write the manifest to a folder, atomically."""
        write_json(folder / MANIFEST, {"results_version": _VERSION, **to_json(self)})

    @classmethod
    def read(cls, folder: Path) -> RunManifest:
        """Read the manifest of a folder.

        Raises:
            DataError: the manifest is missing or damaged.
        """
        path = folder / MANIFEST
        content = read_versioned(path, _KIND, "results_version", _VERSION)
        try:
            return from_json(cls, content)
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}") from None

    def gone_on(self, *, asked: int, seconds: float, ended: str = "") -> RunManifest:
        """Return a copy of the manifest. Add the contexts and seconds of another call."""
        asked, seconds = self.asked + asked, self.seconds + seconds
        return replace(self, ended=ended, asked=asked, seconds=seconds)

    def closed_by(self, late: Mapping[str, str], settings: Mapping[str, Any]) -> RunManifest:
        """Return a copy that prevents later runs from continuing, because something changed.

        See `Campaign.late_code` and `Campaign.late_settings`.
        """
        decided, notes = dict(self.decided), [*self.notes]
        if settings:
            decided |= {name: [decided[name], now] for name, now in settings.items()}
            names = format_list(sorted(settings), _MOST_NAMED)
            notes.append(
                f"a file, a credential or an environment variable that {names} uses changed during "
                "the run: later runs will not continue these results, which may belong to two "
                "versions of the bot"
            )
        if late:
            code = decided["code"]
            both = {name: f"{code.get(name, '')} {own}" for name, own in late.items()}
            decided["code"] = {**code, **both}
            notes.append(
                f"the code of {format_list(sorted(late), _MOST_NAMED)} changed, or loaded further "
                "files, while it was running: later runs will not continue these results, which "
                "may belong to two versions of the code"
            )
        return replace(self, decided=decided, notes=tuple(dict.fromkeys(notes)))


#: Number of unmodified turns that a bot without a fingerprint answers to show that it is the same.
CHECKED_TURNS: Final = 16
#: Number of times that such a turn is asked again if the answer has changed.
_REPEATS: Final = 4
#: Maximum share of different answers in two processes. A bot may vary, or run on two machines.
_MOST_UNLIKE: Final = 0.25


def sample_answers(campaign: Campaign) -> tuple[str, ...]:
    """Return digests of a bot's answers to some unmodified turns, for a bot without a fingerprint.

    A failure, or a turn that the budget leaves out, is ``""``. Equal campaigns ask the same turns,
    whatever their shard. The turns are in the first block of all dialogues, so an unsharded
    campaign has to ask them anyway.
    """
    if campaign.identity["fingerprint"]:
        return ()
    contexts = _sample_contexts(campaign)
    answers = campaign.predictor.predict(contexts)
    return tuple(_digest(answers.get(context)) for context in contexts)


def compare_answers(one: Sequence[str], other: Sequence[str]) -> tuple[list[int], int]:
    """Return the indices of different answers, and the number of turns that both answered."""
    pairs = zip(one, other, strict=False)
    both = [(at, pair) for at, pair in enumerate(pairs) if all(pair)]
    return [at for at, (mine, others) in both if mine != others], len(both)


def _sample_contexts(campaign: Campaign) -> list[Context]:
    block = next(blocks_of(campaign.drawn), ())
    # With its own history, a bot decides what is said before later turns.
    first_only = campaign.settings.reply.history == "own"
    turns = [
        (dialogue, index)
        for dialogue, last in (one.planned for one in block)
        for index in range(1 if first_only else last + 1)
    ]
    count = min(CHECKED_TURNS, len(turns))
    chosen = (turns[number * len(turns) // count] for number in range(count))
    return [dialogue.context(index) for dialogue, index in chosen]


def _digest(answer: Answer | None) -> str:
    if not isinstance(answer, Prediction):
        return ""
    return hashlib.sha256(json_encoded(sorted(answer.state.items()))).hexdigest()[:16]


def _same_answers(campaign: Campaign, before: Sequence[str], where: Path) -> tuple[str, ...]:
    """Return the answers to the unmodified turns, those of earlier calls for the folder first.

    A turn with another answer than before is asked again several times. It does not count if these
    answers differ, because then the bot varies.

    Raises:
        AnotherRunError: the bot now answers turns in another way.
    """
    now = sample_answers(campaign)
    if not before:
        return now
    differing, both = compare_answers(before, now)
    contexts = _sample_contexts(campaign)
    again = {at: [contexts[at].again(n + 1) for n in range(_REPEATS)] for at in differing}
    answers = campaign.predictor.predict(one for some in again.values() for one in some)
    changed = [
        at for at in differing if {_digest(answers.get(one)) for one in again[at]} <= {now[at], ""}
    ]
    if changed:
        raise AnotherRunError(
            f"{where} has the results of another bot, and cannot be continued: the bot answers "
            f"{len(changed)} of {both} unmodified turns differently than the one that wrote the "
            "folder. Use another folder"
        )
    return _filled(before, now)


def _filled(before: Sequence[str], now: Sequence[str]) -> tuple[str, ...]:
    """Add answers to turns that the budget of an earlier call left out, or on which it failed."""
    pairs = zip_longest(before, now, fillvalue="")
    return tuple(old or new for old, new in pairs)


def data_of(info: RunInfo) -> dict[str, Any]:
    """Return the properties of the data that a manifest stores."""
    names = ("data", "split", "normalisation", "layout", "dialogues", "turns", "words")
    known = asdict(info)
    return {name: known[name] for name in names}


def plan_digest(planned: Sequence[tuple[Dialogue, int]]) -> str:
    """Return a digest of the complete dialogues of a plan, in order."""
    ends = [(dialogue.id, last) for dialogue, last in planned]
    drawn = data_digest(DialogueSet("", "", tuple(dialogue for dialogue, _ in planned)))
    return hashlib.sha256(f"{ends} {drawn}".encode(errors="replace")).hexdigest()[:32]


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


#: Minimum number of turns in a block: enough to fill batches, few enough to be repeated.
BLOCK_TURNS: Final = 256


@dataclass(frozen=True, slots=True)
class PlannedDialogue:
    """A dialogue of a block, with its index in the data."""

    place: int  #: The index in the plan of all dialogues.
    planned: PlannedTurn


Block = tuple[PlannedDialogue, ...]


def blocks_of(
    plan: Iterable[PlannedTurn], turns: int = BLOCK_TURNS, shard: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Divide a plan into blocks of consecutive dialogues with enough turns in total.

    If a ``shard`` is given, only its dialogues are included, with their indices among all
    dialogues.
    """
    found: list[PlannedDialogue] = []
    size = 0
    for place, planned in enumerate(plan):
        if not in_shard(planned[0].id, shard):
            continue
        found.append(PlannedDialogue(place, planned))
        size += planned[1] + 1
        if size >= turns:
            yield tuple(found)
            found, size = [], 0
    if found:
        yield tuple(found)


class BlockRunner:
    """Runs blocks of dialogues one by one, under all relations of a campaign."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    @property
    def ended(self) -> str:
        """The reason why no more contexts may be sent to the tracker, or ``""``."""
        return self._campaign.predictor.stopped()

    @property
    def asked(self) -> int:
        """The number of contexts sent to the tracker so far."""
        return self._campaign.predictor.calls

    def run(
        self, block: Block, has: Callable[[int, str], bool], keep: Callable[[DialogueResults], None]
    ) -> None:
        """Run the part of a block that has no results. Store results as they arrive.

        Args:
            block: the dialogues with their indices.
            has: returns whether there are results. It takes the index of a dialogue and the name of
                a relation.
            keep: stores the results of a dialogue. Dialogues that the budget left unfinished are
                not stored. If an exception is raised, all finished results are stored first.
        """
        source = self.found(block, has)
        try:
            for found in source:
                keep(found)
        except BaseException as error:
            # If `keep` raised the error, the source still has finished results to yield.
            with suppress(type(error)):
                found = source.throw(error)
                while True:
                    keep(found)
                    found = next(source)
            raise

    def found(
        self, block: Block, has: Callable[[int, str], bool]
    ) -> Generator[DialogueResults, None, None]:
        """Yield the results of a block as they arrive.

        An exception comes after all finished results.
        """
        try:
            for relation in self._campaign.relations:
                missing = [one for one in block if not has(one.place, relation.name)]
                engine = self._campaign.engine(relation, [one.planned for one in missing])
                judged = self._campaign.judges.new_facts
                yield from _found(engine, missing, relation.name, judged)
        finally:
            self._campaign.predictor.forget()


def _found(
    engine: CampaignEngine,
    missing: Sequence[PlannedDialogue],
    relation: str,
    judged: Callable[[], JudgeFacts | None],
) -> Iterator[DialogueResults]:
    left = {one.planned[0].id: one.place for one in missing}

    def done(results: Iterable[TurnResult]) -> Iterator[DialogueResults]:
        together: dict[str, list[TurnResult]] = {}
        for result in results:
            if result.dialogue_id in left:
                together.setdefault(result.dialogue_id, []).append(result)
        for name, found in together.items():
            place = left.pop(name)
            if all(result.outcome != "skipped" for result in found):
                yield DialogueResults(place, relation, tuple(found), judged())

    try:
        for one in missing:
            yield from done(engine.results_of(one.planned[0].id))
    except GeneratorExit:
        # The consumer has stopped.
        raise
    except BaseException:
        # Leave out dialogues whose variants are not minimised yet; they run again.
        yield from done(engine.known())
        raise


def merge(folders: Sequence[ResultFolder], output: Path) -> ResultFolder:
    """Copy the results of all shards of a run to one folder.

    Args:
        folders: one for each shard, in any order. An unsharded run is its only shard.
        output: the folder to write. It appears when it is complete, and replaces a result folder of
            the same run.

    Raises:
        UserError: the shards belong to several runs, overlap, or are missing or incomplete. Or the
            output path is in use.
    """
    folders = sorted(folders, key=lambda folder: folder.manifest.shard)
    check_parts(folders)
    merged = merge_manifests([folder.manifest for folder in folders])
    with replacing(output, merged) as draft:
        sources = [part for folder in folders for part in folder.parts]
        for number, source in enumerate(sources, 1):
            shutil.copyfile(source, draft / ResultFolder.part_name(number))
    return ResultFolder.open(output)


def check_parts(folders: Sequence[ResultFolder]) -> None:
    """Check that the folders are all shards of one run, each of them complete and given once.

    Raises:
        UserError: a shard differs, or is missing, incomplete or repeated. The message names the
            differences, or the shards.
    """
    first = folders[0]
    parts = first.manifest.shard[1]
    by_number: dict[int, ResultFolder] = {}
    for folder in folders:
        manifest = folder.manifest
        if differing := first.manifest.differing(manifest):
            told = list_differences(
                differing,
                lambda name, one, other: (
                    f"{name} is {one!r} in {first.path} and {other!r} in {folder.path}"  # noqa: B023 - called at once
                ),
            )
            raise UserError(f"{first.path} and {folder.path} are not parts of one run: {told}")
        if problem := first.manifest.unlike_answers(manifest):
            raise UserError(f"{first.path} and {folder.path} are not parts of one run: {problem}")
        answers = first.manifest.answers, manifest.answers
        if all(answers) and not compare_answers(*answers)[1]:
            raise UserError(
                f"nothing shows that {first.path} and {folder.path} are of one bot, because it "
                "answered other unmodified turns in each: run both commands again, without a budget"
            )
        number, others = manifest.shard
        if others != parts:
            raise UserError(
                f"{first.path} is part {shard_text(first.manifest.shard)} and {folder.path} is "
                f"part {shard_text(manifest.shard)}: all parts of a run must have the same number "
                "of parts"
            )
        if number in by_number:
            raise UserError(
                f"part {shard_text(manifest.shard)} was given twice, in {by_number[number].path} "
                f"and in {folder.path}: leave one out"
            )
        by_number[number] = folder
    missing = [
        shard_text((number, parts)) for number in range(1, parts + 1) if number not in by_number
    ]
    if missing:
        raise UserError(f"parts of the run are missing: {format_list(missing, _MOST_NAMED)}")
    if lacking := [describe_unfinished(folder) for folder in folders if not folder.complete]:
        raise UserError("; ".join(lacking))


def describe_unfinished(folder: ResultFolder) -> str:
    """Describe which results a folder lacks, and the command that continues the run."""
    manifest = folder.manifest
    part = "" if manifest.shard == (1, 1) else f", part {shard_text(manifest.shard)},"
    why = f" ({manifest.ended})" if manifest.ended else ""
    text = f"{folder.path}{part} has {len(folder):,} of {manifest.planned:,} results{why}"
    return f"{text}: continue with {manifest.command}" if manifest.command else text


def merge_manifests(parts: Sequence[RunManifest]) -> RunManifest:
    """Return the manifest of a whole run, given the manifests of all its shards in order."""
    first = parts[0]
    return replace(
        first,
        settings={**first.settings, "shard": None},
        shard=(1, 1),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        dialogues=sum(part.dialogues for part in parts),
        planned=sum(part.planned for part in parts),
        ended="",
        command="",
        asked=sum(part.asked for part in parts),
        seconds=sum(part.seconds for part in parts),
    )


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


#: Called with the number of results so far and the total number.
Progress = Callable[[int, int], None]


def manifest_of(campaign: Campaign) -> RunManifest:
    """Return the manifest that a campaign has before its first run."""
    settings, data = campaign.settings, campaign.data
    variant, model = settings.variant, settings.tracker
    policy = note = ""
    searched = any(relation.edits == "search" for relation in campaign.relations)
    if searched:
        policy, note = describe_trained(variant.search, model.model, model.checkpoint)
    states = KINDS[settings.reply.outcome].has_slots
    whole = [relation.unit == "dialogue" for relation in campaign.relations]
    turns = sum(last + 1 for _, last in campaign.plan)
    dialogues = len(campaign.plan)
    begun = RunManifest(
        settings=settings_json(settings),
        decided=campaign.identity,
        version=__version__,
        plugin=digest_of_package() or "",
        relations=tuple(relation.name for relation in campaign.relations),
        facts={one.name: facts_of(one, campaign) for one in campaign.relations},
        digest=plan_digest(campaign.drawn),
        lexicon=campaign.lexicon.fingerprint,
        policy=policy,
        compared="" if states else campaign.identity["compared"],
        data=data_of(RunInfo.of(data)),
        notes=(*data.notes, *filter(None, [note])),
        shard=settings.data.shard or (1, 1),
        dialogues=dialogues,
        planned=whole.count(False) * turns + whole.count(True) * dialogues,
    )
    return replace(begun, run=begun.begun)


def facts_of(relation: Relation, campaign: Campaign) -> RelationFacts:
    """Return the facts about a relation that a manifest stores."""
    outcome = campaign.settings.reply.outcome
    expects = KINDS[outcome].words.fill(relation.expects)
    return RelationFacts(expects, relation.source, relation.unit, relation.edits)


def run_into(campaign: Campaign, path: Path, progress: Progress, command: str = "") -> ResultFolder:
    """Run a campaign, or the missing part of it, and write the results into a folder.

    Finished results are always kept: after Ctrl-C, at the end of a budget, or if the process is
    killed. The same call continues the run. Messages show ``command``, the command line that
    continues the run.

    Raises:
        UserError: the folder belongs to another run, or the tracker fails its tests.
    """
    manifest = replace(manifest_of(campaign), command=command)
    started, ended = time.monotonic(), "interrupted"
    folder = open_folder(path, manifest)
    runner = BlockRunner(campaign)
    with closed_on_error(folder):
        before = folder.manifest.answers
        if (answers := _same_answers(campaign, before, path)) != before:
            folder.keep(replace(folder.manifest, answers=answers))

    def keep(found: DialogueResults) -> None:
        folder.append(found)
        progress(len(folder), manifest.planned)

    def missing(place: int) -> bool:
        return not all(folder.has(place, name) for name in manifest.relations)

    try:
        for block in blocks_of(campaign.drawn, shard=campaign.settings.data.shard):
            if any(missing(one.place) for one in block):
                runner.run(block, folder.has, keep)
                if runner.ended:
                    break
        ended = "" if folder.complete else runner.ended
    finally:
        seconds = time.monotonic() - started
        asked = runner.asked
        manifest = folder.manifest.gone_on(asked=asked, seconds=seconds, ended=ended)
        with closing(folder):
            folder.keep(manifest.closed_by(campaign.late_code(), campaign.late_settings()))
    return folder


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
                answers=_filled(old.answers, manifest.answers),
            )
            folder.ask_failed_again()
            folder.was_finished = folder.finished
        else:
            folder = ResultFolder.create(path, manifest)
        folder.hold(lock.pop_all())
    return folder
