"""A cache of predictions in SQLite, shared by runs and processes."""

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
    """A locked file. It shows other processes that this process is alive."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = _file_of(path, owner)
        self._held: int | None = None
        with suppress(OSError):
            self._held = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if not _lock(self._held):
                self.end()

    def end(self) -> None:
        """Release the lock and remove the file."""
        if self._held is not None:
            self.leave()
            with suppress(OSError):
                self._path.unlink()

    def leave(self) -> None:
        """Close the file. After a fork, the parent process keeps the lock."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


def is_dead(path: Path, owner: str) -> bool:
    """Return whether a process has certainly ended without releasing its claims."""
    file = _file_of(path, owner)
    try:
        found = os.open(file, os.O_RDWR)
    except OSError:
        # Without a file nothing is known: perhaps it could not be created.
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
    """Try to lock an open file without waiting. Return whether this succeeded."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


T = TypeVar("T")

#: Identifies the file as ours ("dstf"), and the version of its tables.
_APPLICATION: Final = 0x64737466
_VERSION: Final = 1
#: Seconds to wait for another process that writes.
_BUSY: Final = 20.0
#: Seconds after which a claim without progress expires: its process hangs, or may be dead.
_CLAIM_HOLDS: Final = 60.0
#: Share of the size limit that remains after the oldest values are removed.
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
    """A stored value is damaged."""


class _ForeignError(Exception):
    """The file is a database of another application, which must stay unchanged."""


class Store:
    """A table of values in a file, with limited size. The file is created on first use.

    If the values exceed ``limit`` bytes, the least recently used ones are removed first.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        #: Problems so far, as sentences for the user.
        self.problems: list[str] = []
        self._limit = limit
        self._open: sqlite3.Connection | None = None
        #: Device and inode of the file when it was opened.
        self._file: tuple[int, int] | None = None
        self._off = False
        #: Owner of claims -> file that shows that this process is alive.
        self._alive: dict[str, Alive] = {}
        if hasattr(os, "register_at_fork"):
            # A forked process must not inherit a connection.
            os.register_at_fork(
                before=_while_alive(self._disconnect), after_in_child=_while_alive(self._leave)
            )

    @property
    def usable(self) -> bool:
        """Whether values can be stored, as far as known. Opens the file."""
        self._try(lambda _: None, None)
        return not self._off

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored values by key. Keys without a value are left out."""
        return self._try(lambda base: self._get(base, keys), {}) if keys else {}

    def put(self, values: Mapping[bytes, bytes], *, owner: str = "") -> None:
        """Store all values or none. Existing values are kept.

        Also renew the claims of ``owner`` on keys whose values it is computing.
        """
        if values:
            self._try(lambda base: self._put(base, values, owner), None)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove the values of some keys."""
        self._try(lambda base: self._remove(base, keys), None)

    def add(self, keys: Sequence[bytes]) -> set[bytes]:
        """Store keys without a value. Return the keys that are new.

        If the file cannot be used, return all keys.
        """
        return self._try(lambda base: self._add(base, keys), set(keys)) if keys else set()

    def claim(self, run: str, owner: str, keys: Sequence[bytes]) -> set[bytes]:
        """Claim keys without a value, so that no other process of the run computes them.

        Return the claimed keys, without keys that another live process has claimed. If the file
        cannot be used, return all keys.
        """
        return self._try(lambda base: self._claim(base, run, owner, keys), set(keys))

    def release(self, run: str, owner: str) -> None:
        """Release the claims of a process, so that others may request these contexts."""
        delete = "DELETE FROM claims WHERE run = ? AND owner = ?"
        self._try(lambda base: base.execute(delete, (run, owner)), None)

    def close(self) -> None:
        """Close the file. Release the claims of this process.

        The file is opened again when it is next used.
        """
        for alive in self._alive.values():
            alive.end()
        self._alive.clear()
        self._disconnect()

    def _disconnect(self) -> None:
        base, self._open = self._open, None
        if base is not None:
            # A connection of another thread cannot be closed here.
            with suppress(sqlite3.Error):
                base.close()

    def _leave(self) -> None:
        """Close the parent's files in a forked process."""
        for alive in self._alive.values():
            alive.leave()
        self._alive.clear()

    def _try(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Call ``work`` with the connection. Return ``otherwise`` if the file cannot be used."""
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
            f"predictions are not cached: the cache {self.path} cannot be used ({_reason(error)})"
        )

    def _set_aside(self, error: Exception) -> bool:
        """Move a damaged file away. Return whether this succeeded."""
        self._disconnect()
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            # Another process may have moved it already, and this may be the new file.
            if _identity(self.path) == self._file:
                for suffix in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
                self.path.replace(aside)
        except OSError:
            return False
        self.problems.append(
            f"the cache of predictions {self.path} was damaged ({_reason(error)}): it was renamed "
            f"to {aside.name}, and a new one was started"
        )
        return True

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            self._file = _identity(self.path)
            # Transactions begin and end explicitly.
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
                    raise _DamagedError("the last day of use of an entry is not a number")
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
            # The pragma takes one step per page, and `execute` makes only one step.
            base.executescript("PRAGMA incremental_vacuum")

    def _remove(self, base: sqlite3.Connection, keys: Sequence[bytes]) -> None:
        with _transaction(base):
            base.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in keys])

    def _add(self, base: sqlite3.Connection, keys: Sequence[bytes]) -> set[bytes]:
        insert, today = "INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", _today()
        with _transaction(base):
            return {
                key
                for key in keys
                if base.execute(insert, (key, _checksum(key, b""), today)).rowcount
            }

    def _claim(
        self, base: sqlite3.Connection, run: str, owner: str, keys: Sequence[bytes]
    ) -> set[bytes]:
        if owner not in self._alive:
            # From now on other processes can detect the end of this one.
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
        """Remove the oldest values if the file is too large. Return whether any were removed."""
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
    """Create the tables of a new file. Replace tables of another version."""
    identity = ("PRAGMA application_id", "PRAGMA user_version")
    ours = [_APPLICATION, _VERSION]
    if [_number(base, question) for question in identity] != ours:
        # Only possible before the first table. Lets the file shrink later.
        base.execute("PRAGMA auto_vacuum = INCREMENTAL")
        with _transaction(base):
            # Another process may have been first.
            application, version = (_number(base, question) for question in identity)
            tables = _number(base, "SELECT count(*) FROM sqlite_master")
            if application != _APPLICATION and tables:
                raise _ForeignError("it is a database of another program")
            if [application, version] != ours:
                for statement in _SCHEMA:
                    base.execute(statement)
    _write_ahead(base)
    # A crash of the machine may lose the last values but does not damage the file.
    base.execute("PRAGMA synchronous = NORMAL")


def _write_ahead(base: sqlite3.Connection) -> None:
    """Switch to write-ahead mode, which fails while another process uses the file."""
    end = time.monotonic() + _BUSY
    while True:
        try:
            base.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            # SQLite's own timeout does not apply here.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _transaction(base: sqlite3.Connection) -> Generator[None]:
    """Commit the statements of a block together. Roll all of them back on an exception."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        # If the disk is full, the transaction has ended already.
        with suppress(sqlite3.Error):
            base.execute("ROLLBACK")
        raise


def _while_alive(method: Callable[[], None]) -> Callable[[], object]:
    """Return a function that calls a method. It does not keep the object alive."""
    weak = weakref.WeakMethod(method)
    return lambda: (found := weak()) and found()


def _checked(key: bytes, stored: object) -> bytes:
    if not isinstance(stored, bytes) or stored[:_CHECKSUM] != _checksum(key, stored[_CHECKSUM:]):
        raise _DamagedError("a value differs from the one that was written")
    return stored[_CHECKSUM:]


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=_CHECKSUM, key=key).digest()


def _is_damage(error: Exception) -> bool:
    """Return whether an error shows that the file is damaged or not from this module."""
    if isinstance(error, _DamagedError | UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # The last three mean other columns or a trigger: our own statements violate no constraint.
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

#: Increase it when the format of the values changes.
_FORMAT: Final = 2
#: Seconds between two checks whether another process has the answer.
_PATIENCE: Final = 0.02


def scope_of(
    tracker: Sequence[object], data: DialogueSet, reply: ReplySettings | None = None
) -> bytes:
    """Return a digest of everything except the context that a cached prediction depends on.

    For belief states, this includes the identity of the tracker and the normalisation of the data.
    It also includes the ontology if that is complete. For other answers, it includes the tracker,
    the kind of answer and the source of the history. The comparison of answers is not included.

    Args:
        tracker: its name, its fingerprint and its settings, see `identity_of`.
        data: the dialogues.
        reply: the kind of answer; ``None`` for belief states.
    """
    if reply is not None and not KINDS[reply.outcome].has_slots:
        parts = [_FORMAT, __version__, list(tracker), reply.outcome, reply.history]
        return hashlib.sha256(_bytes(parts)).digest()
    ontology = data.ontology
    slots = ontology.slots if ontology is not None and ontology.complete else None
    parts = [_FORMAT, __version__, list(tracker), data.normalisation, slots]
    return hashlib.sha256(_bytes(parts)).digest()


class PredictionCache:
    """The predictions of one tracker in a store, which other trackers may share.

    ``run`` is the name of the run if several of its processes share the store, otherwise ``""``.
    These processes never request the same context at the same time. They record in ``counted``, a
    store of that run, which values they requested or recalled.
    """

    def __init__(
        self, store: Store, scope: bytes, run: str = "", counted: Store | None = None
    ) -> None:
        self._store = store
        self._counted = counted
        self._scope = hashlib.sha256(scope)
        self._run = run
        self._owner = uuid.uuid4().hex if run else ""
        #: The last data whose digest was requested, with the digest.
        self._told: tuple[DialogueSet, str] | None = None

    def recall(self, contexts: Iterable[Context]) -> dict[Context, Prediction]:
        """Return the cached predictions of some contexts."""
        keys = {self._key(context): context for context in contexts if not restarts(context)}
        found = self._store.get(list(keys))
        kept = {keys[key]: json.loads(value) for key, value in found.items()}
        return {
            context: Prediction(Outcome(state), impurities)
            for context, (state, impurities) in kept.items()
        }

    def keep(self, answers: Mapping[Context, Answer]) -> None:
        """Store the answers that are predictions. Errors are not stored."""
        values = {
            self._key(context): _bytes([answer.state.to_json(), to_json(answer.impurities)])
            for context, answer in answers.items()
            if isinstance(answer, Prediction) and not restarts(context)
        }
        # Before another process can recall them.
        self._count_once(values)
        self._store.put(values, owner=self._owner)

    def drop(self, contexts: Iterable[Context]) -> None:
        """Remove the answers to some contexts."""
        self._store.remove([self._key(context) for context in contexts])

    def count_recalled(self, contexts: Iterable[Context]) -> int:
        """Return how many recalled contexts no process of this run has requested or counted."""
        return len(self._count_once([self._key(context) for context in contexts]))

    def texts(self, keys: Mapping[Name, object]) -> dict[Name, bytes]:
        """Return the cached text of each name in ``keys``, which maps names to keys."""
        digests = {self._digest(key): name for name, key in keys.items()}
        return {digests[key]: text for key, text in self._store.get(list(digests)).items()}

    def keep_texts(self, texts: Iterable[tuple[object, bytes]]) -> None:
        """Store texts by keys, which are JSON values."""
        values = {self._digest(key): text for key, text in texts}
        # Before another process can recall them.
        self._count_once(values)
        self._store.put(values, owner=self._owner)

    def count_texts(self, keys: Mapping[Name, object]) -> set[Name]:
        """Return the names of recalled texts that no process of this run has stored or counted."""
        digests = {self._digest(key): name for name, key in keys.items()}
        return {digests[key] for key in self._count_once(digests)}

    def _count_once(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that are new to this method in all processes of the run."""
        # The store may have a value under the key itself.
        marks = {hashlib.sha256(b"counted" + key).digest(): key for key in keys}
        new = set(marks) if self._counted is None else self._counted.add(list(marks))
        return {marks[mark] for mark in new}

    def digest_of(self, data: DialogueSet, digest: Callable[[DialogueSet], str]) -> str:
        """Return the digest of data. All campaigns of a session compute it only once."""
        if self._told is None or self._told[0] is not data:
            self._told = data, digest(data)
        return self._told[1]

    def claim(self, contexts: Sequence[Context]) -> list[Context]:
        """Return the contexts to request now, without those that another process has claimed.

        The other process usually stores the missing answers. If it does not, their contexts can be
        claimed later.
        """
        if not (self._run and contexts):
            return list(contexts)
        # A restarted dialogue needs fresh answers, so it is never shared.
        keys = {context: self._key(context) for context in contexts if not restarts(context)}
        mine = self._store.claim(self._run, self._owner, list(keys.values()))
        return [one for one in contexts if one not in keys or keys[one] in mine]

    def release(self) -> None:
        """Release all claims. Other processes may then request contexts without a stored answer."""
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
        """Return the preflight's measurement for some contexts, from the cache if possible.

        If it is not cached, one process of the run calls ``measure``. Exceptions of ``measure``
        propagate. ``varies`` says whether the tracker may give different answers.
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
        # Each repetition for a vote has a separate answer.
        return self._digest([*context.key(), getattr(context, "repetition", 0)])

    def _digest(self, value: object) -> bytes:
        digest = self._scope.copy()
        digest.update(_bytes(value))
        return digest.digest()


def restarts(context: Context) -> bool:
    """Return whether a context belongs to a restarted dialogue. Its answer is never cached."""
    return isinstance(context, Again) and context.repetition <= RESTART


def _bytes(value: Any) -> bytes:
    # ASCII, because an utterance may contain a lone surrogate. Floats survive a round trip.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
