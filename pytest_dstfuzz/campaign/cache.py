"""Predictions that are kept from run to run and shared by processes, in SQLite."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
import uuid
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import RESTART, Again, Context, DialogueSet
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.tracker import Disagreement, Prediction

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_SUFFIX: Final = "alive"


class Alive:
    """The file that shows others that this process lives."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = _file_of(path, owner)
        self._held: int | None = None
        with suppress(OSError):
            self._held = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if not _lock(self._held):
                self.end()

    def end(self) -> None:
        """Give the lock back, and take the file away."""
        if self._held is not None:
            self.leave()
            with suppress(OSError):
                self._path.unlink()

    def leave(self) -> None:
        """Let go of the file; where it was forked, the lock stays with the parent."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


def is_dead(path: Path, owner: str) -> bool:
    """Whether a process is known to have ended without saying so."""
    file = _file_of(path, owner)
    try:
        found = os.open(file, os.O_RDWR)
    except OSError:
        # It shows nothing: perhaps it never could.
        return False
    dead = _lock(found)
    os.close(found)
    if dead:
        with suppress(OSError):
            file.unlink()
    return dead


def _file_of(path: Path, owner: str) -> Path:
    return path.with_name(f"{path.name}.{owner}.{_SUFFIX}")


def _lock(file: int) -> bool:
    """Lock an open file without waiting; return whether that could be done."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


T = TypeVar("T")

#: Says whose file it is ("dstf"), and which tables it has.
_APPLICATION: Final = 0x64737466
_VERSION: Final = 1
#: Seconds to wait for another process that writes.
_BUSY: Final = 20.0
#: Seconds after which whoever claimed a key, and kept nothing since, is not waited for any more:
#: it hangs, or it is not known whether it lives.
_CLAIM_HOLDS: Final = 60.0
#: What is left of the allowed size once the oldest values were removed.
_KEPT: Final = 0.9
_CHECKSUM: Final = 8
_SECONDS_A_DAY: Final = 86_400
_SCHEMA: Final = (
    "DROP TABLE IF EXISTS entries",
    "DROP TABLE IF EXISTS claims",
    "CREATE TABLE entries (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL, day INTEGER NOT NULL)",
    "CREATE INDEX by_day ON entries (day)",
    "CREATE TABLE claims (run TEXT, key BLOB, owner TEXT, since REAL, PRIMARY KEY (run, key))",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)


class _DamagedError(Exception):
    """A value is not what was written."""


class _ForeignError(Exception):
    """The file is a database, but none of ours: it is left alone."""


class Store:
    """A bounded table of values, in a file that is made when the store is first used.

    It may take some ``limit`` bytes; what was not used for the most days goes first.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        #: What went wrong, as sentences for the user.
        self.problems: list[str] = []
        self._limit = limit
        self._open: sqlite3.Connection | None = None
        #: What the path named when it was opened.
        self._file: tuple[int, int] | None = None
        self._off = False
        #: By owner: what shows that this process lives, which has claimed something under it.
        self._alive: dict[str, Alive] = {}
        if hasattr(os, "register_at_fork"):
            # A connection must not be carried into a forked process.
            os.register_at_fork(
                before=_while_alive(self._disconnect), after_in_child=_while_alive(self._leave)
            )

    @property
    def usable(self) -> bool:
        """Whether values can be kept, as far as is known; opens the file."""
        self._try(lambda _: None, None)
        return not self._off

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that have one."""
        return self._try(lambda base: self._get(base, keys), {}) if keys else {}

    def put(self, values: Mapping[bytes, bytes], *, owner: str = "") -> None:
        """Keep values, all of them or none; those that are there already stay as they are.

        It shows that the claims of ``owner`` are alive.
        """
        if values:
            self._try(lambda base: self._put(base, values, owner), None)

    def claim(self, run: str, owner: str, keys: Sequence[bytes]) -> set[bytes]:
        """Claim keys that have no value, so that no other process of a run computes them too.

        Not those that another process has claimed and is alive; all where the file cannot be used.
        """
        return self._try(lambda base: self._claim(base, run, owner, keys), set(keys))

    def release(self, run: str, owner: str) -> None:
        """Give up all claims of a process."""
        delete = "DELETE FROM claims WHERE run = ? AND owner = ?"
        self._try(lambda base: base.execute(delete, (run, owner)), None)

    def close(self) -> None:
        """Close the file, and let others have what was claimed; it is opened again when needed."""
        for alive in self._alive.values():
            alive.end()
        self._alive.clear()
        self._disconnect()

    def _disconnect(self) -> None:
        base, self._open = self._open, None
        if base is not None:
            # Another thread's connection cannot be closed here.
            with suppress(sqlite3.Error):
                base.close()

    def _leave(self) -> None:
        """Let a forked process not look like the one that it comes from."""
        for alive in self._alive.values():
            alive.leave()
        self._alive.clear()

    # -- when something goes wrong ------------------------------------------------------

    def _try(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Do something with the file; return ``otherwise`` where it cannot be done."""
        for anew in (False, True):
            if self._off:
                break
            try:
                return work(self._connection())
            except (sqlite3.Error, _DamagedError, _ForeignError, OSError, ValueError) as error:
                damaged = _is_damage(error)
                if anew or not damaged or not self._set_aside(error):
                    self._give_up(error)
        return otherwise

    def _give_up(self, error: Exception) -> None:
        self._off = True
        self.close()
        self.problems.append(
            f"predictions are not kept: the cache {self.path} cannot be used ({_reason(error)})"
        )

    def _set_aside(self, error: Exception) -> bool:
        """Move a damaged file out of the way; return whether that could be done."""
        self._disconnect()
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            # Another process may have done it, and this may be the new file already.
            if _identity(self.path) == self._file:
                for suffix in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
                self.path.replace(aside)
        except OSError:
            return False
        self.problems.append(
            f"the cache of predictions {self.path} was damaged ({_reason(error)}): it was set "
            f"aside as {aside.name}, and a new one was begun"
        )
        return True

    # -- the file -----------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            self._file = _identity(self.path)
            # Transactions are begun and ended in so many words.
            self._open = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None)
            _prepare(self._open)
        return self._open

    def _get(self, base: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        old, today = [], _today()
        for key in keys:
            row = base.execute("SELECT value, day FROM entries WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = _checked(key, row[0])
                if not isinstance(row[1], int):
                    raise _DamagedError("a day is no number")
                if row[1] < today:
                    old.append((today, key))
        if old:
            with _transaction(base):
                base.executemany("UPDATE entries SET day = ? WHERE key = ?", old)
        return found

    def _put(self, base: sqlite3.Connection, values: Mapping[bytes, bytes], owner: str) -> None:
        today = _today()
        rows = [(key, _checksum(key, value) + value, today) for key, value in values.items()]
        with _transaction(base):
            base.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", rows)
            if owner:
                base.execute("UPDATE claims SET since = ? WHERE owner = ?", (time.time(), owner))
            shrunk = self._shrink(base)
        if shrunk:
            # Takes a step for each page, and `execute` makes one.
            base.executescript("PRAGMA incremental_vacuum")

    def _claim(
        self, base: sqlite3.Connection, run: str, owner: str, keys: Sequence[bytes]
    ) -> set[bytes]:
        if owner not in self._alive:
            # From now on others see when this process ends.
            self._alive[owner] = Alive(self.path, owner)
        now, mine = time.time(), set[bytes]()
        with _transaction(base):
            gone = "DELETE FROM claims WHERE since < ? OR owner = ?"
            base.execute(gone, (now - _CLAIM_HOLDS, owner))
            others = base.execute("SELECT DISTINCT owner FROM claims WHERE run = ?", (run,))
            for (other,) in others.fetchall():
                if is_dead(self.path, str(other)):
                    base.execute(gone, (0.0, other))
            for key in keys:
                if base.execute("SELECT 1 FROM entries WHERE key = ?", (key,)).fetchone() is None:
                    claimed = base.execute(
                        "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", (run, key, owner, now)
                    )
                    mine.update([key] * claimed.rowcount)
        return mine

    def _shrink(self, base: sqlite3.Connection) -> bool:
        """Remove the oldest values where there are too many; return whether there were."""
        pages, free, size = (
            _number(base, f"PRAGMA {name}")
            for name in ("page_count", "freelist_count", "page_size")
        )
        used = (pages - free) * size
        if used <= self._limit:
            return False
        share = 1 - _KEPT * self._limit / used
        many = int(share * _number(base, "SELECT count(*) FROM entries")) + 1
        base.execute(
            "DELETE FROM entries WHERE rowid IN "
            "(SELECT rowid FROM entries ORDER BY day, rowid LIMIT ?)",
            (many,),
        )
        return True


def _prepare(base: sqlite3.Connection) -> None:
    """Give a new file its tables, and one of another version those of this one."""
    identity = ("PRAGMA application_id", "PRAGMA user_version")
    ours = [_APPLICATION, _VERSION]
    if [_number(base, question) for question in identity] != ours:
        # Only while there is no table; makes it possible to give room back.
        base.execute("PRAGMA auto_vacuum = INCREMENTAL")
        with _transaction(base):
            # Another process may have been first.
            application, version = (_number(base, question) for question in identity)
            tables = _number(base, "SELECT count(*) FROM sqlite_master")
            if application != _APPLICATION and tables:
                raise _ForeignError("it is a database of something else")
            if [application, version] != ours:
                for statement in _SCHEMA:
                    base.execute(statement)
    _write_ahead(base)
    # A crash of the machine may lose the last values, but does no damage.
    base.execute("PRAGMA synchronous = NORMAL")


def _write_ahead(base: sqlite3.Connection) -> None:
    """Switch to write-ahead mode; no other process may use the file at that moment."""
    end = time.monotonic() + _BUSY
    while True:
        try:
            base.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _transaction(base: sqlite3.Connection) -> Generator[None]:
    """Do all of something or nothing of it, whatever interrupts it."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        # A full disk has ended the transaction already.
        with suppress(sqlite3.Error):
            base.execute("ROLLBACK")
        raise


def _while_alive(method: Callable[[], None]) -> Callable[[], object]:
    """Return a call of a method that does not keep its object alive."""
    weak = weakref.WeakMethod(method)
    return lambda: (found := weak()) and found()


def _checked(key: bytes, stored: object) -> bytes:
    if not isinstance(stored, bytes) or stored[:_CHECKSUM] != _checksum(key, stored[_CHECKSUM:]):
        raise _DamagedError("a value is not the one that was written")
    return stored[_CHECKSUM:]


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=_CHECKSUM, key=key).digest()


def _is_damage(error: Exception) -> bool:
    """Whether an error says that the file is not what this module writes."""
    if isinstance(error, _DamagedError | UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # The last ones: other columns, a trigger; what is written here breaks no rule of its own.
    return code in (
        *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR),
        *(sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH),
    )


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _number(base: sqlite3.Connection, question: str) -> int:
    return int(base.execute(question).fetchone()[0])


def _today() -> int:
    return int(time.time() // _SECONDS_A_DAY)


Name = TypeVar("Name")

#: Raised when what is kept changes its form.
_FORMAT: Final = 2
#: Seconds between two looks whether another process has the answer that it asked for.
_PATIENCE: Final = 0.02


def scope_of(
    tracker: Sequence[str], data: DialogueSet, reply: ReplySettings | None = None
) -> bytes:
    """Return what a kept prediction depends on besides its context.

    What tells this tracker from every other one, and what answers are checked against:
    normalisation and, where it is complete, ontology of the data. Of replies that they are some,
    and whose replies the system is shown; never how they are compared.
    """
    if reply is not None and not KINDS[reply.outcome].has_slots:
        parts = [_FORMAT, __version__, list(tracker), reply.outcome, reply.history]
        return hashlib.sha256(_bytes(parts)).digest()
    ontology = data.ontology
    slots = ontology.slots if ontology is not None and ontology.complete else None
    parts = [_FORMAT, __version__, list(tracker), data.normalisation, slots]
    return hashlib.sha256(_bytes(parts)).digest()


class PredictionCache:
    """The predictions of one tracker in a store, which may hold those of others too.

    ``run`` names the run, where other processes of it share the store: a context that one of them
    is asking for is not asked for by another one. ``""`` = there are none.
    """

    def __init__(self, store: Store, scope: bytes, run: str = "") -> None:
        self._store = store
        self._scope = hashlib.sha256(scope)
        self._run = run
        self._owner = uuid.uuid4().hex if run else ""
        #: The data whose digest was asked for last, and that digest.
        self._told: tuple[DialogueSet, str | None] | None = None

    def recall(self, contexts: Iterable[Context]) -> dict[Context, Prediction]:
        """Return the predictions that are kept."""
        keys = {self._key(context): context for context in contexts if not restarts(context)}
        found = self._store.get(list(keys))
        kept = {keys[key]: json.loads(value) for key, value in found.items()}
        return {
            context: Prediction(Outcome(state), impurities)
            for context, (state, impurities) in kept.items()
        }

    def keep(self, answers: Mapping[Context, Answer]) -> None:
        """Keep the predictions among some answers."""
        values = {
            self._key(context): _bytes([answer.state.to_json(), to_json(answer.impurities)])
            for context, answer in answers.items()
            if isinstance(answer, Prediction) and not restarts(context)
        }
        self._store.put(values, owner=self._owner)

    def texts(self, keys: Mapping[Name, object]) -> dict[Name, bytes]:
        """Return texts that are kept for this tracker, each by the name that its key was given."""
        digests = {self._digest(key): name for name, key in keys.items()}
        return {digests[key]: text for key, text in self._store.get(list(digests)).items()}

    def keep_texts(self, texts: Iterable[tuple[object, bytes]]) -> None:
        """Keep texts by keys, which are values of JSON."""
        values = {self._digest(key): text for key, text in texts}
        self._store.put(values, owner=self._owner)

    def digest_of(
        self, data: DialogueSet, digest: Callable[[DialogueSet], str | None]
    ) -> str | None:
        """Return the digest of data, which the campaigns of a session share: it is made once."""
        if self._told is None or self._told[0] is not data:
            self._told = data, digest(data)
        return self._told[1]

    def claim(self, contexts: Sequence[Context]) -> list[Context]:
        """Return the contexts to ask for now: those that no other process is asking for.

        One that is left out has been answered elsewhere, or will be, or will not: then
        it can be claimed later.
        """
        if not (self._run and contexts):
            return list(contexts)
        # Nobody else's answer stands for that to a dialogue that is begun once more.
        keys = {context: self._key(context) for context in contexts if not restarts(context)}
        mine = self._store.claim(self._run, self._owner, list(keys.values()))
        return [one for one in contexts if one not in keys or keys[one] in mine]

    def release(self) -> None:
        """Give up all claims: what was claimed is answered and kept, or others may try."""
        if self._run:
            self._store.release(self._run, self._owner)

    def wait(self) -> None:
        """Give another process some time to answer."""
        time.sleep(_PATIENCE)

    def preflight(
        self,
        contexts: Sequence[Context],
        measure: Callable[[], Disagreement | None],
        *,
        varies: bool = False,
    ) -> Disagreement | None:
        """Return what the preflight measured on the contexts that it asks for.

        Where nothing is kept one process of the run measures; what that raises passes through.
        ``varies``: it measures how a tracker varies that need not be repeatable.
        """
        kind = "preflight of one that varies" if varies else "preflight"
        key = self._digest([kind, [context.key() for context in contexts]])
        while True:
            if (found := self._store.get([key]).get(key)) is not None:
                kept = json.loads(found)
                return None if kept is None else Disagreement(**kept)
            if self._run and not self._store.claim(self._run, self._owner, [key]):
                self.wait()
                continue
            try:
                measured = measure()
                self._store.put({key: _bytes(to_json(measured))}, owner=self._owner)
                return measured
            finally:
                self.release()

    def _key(self, context: Context) -> bytes:
        # One that is asked for again, for a vote, has an answer of its own.
        return self._digest([*context.key(), getattr(context, "repetition", 0)])

    def _digest(self, value: object) -> bytes:
        digest = self._scope.copy()
        digest.update(_bytes(value))
        return digest.digest()


def restarts(context: Context) -> bool:
    """Say whether a context is of a dialogue that is begun once more: its answer is never kept."""
    return isinstance(context, Again) and context.repetition <= RESTART


def _bytes(value: Any) -> bytes:
    # ASCII, as an utterance may hold half of a surrogate pair. Floats come back as they were.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
