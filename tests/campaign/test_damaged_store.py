"""Files of the cache with damage of every kind: each works or is replaced, with one note."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign import cache as store_module
from pytest_dstfuzz.campaign.cache import Store, is_dead

LIMIT = 10_000_000
VALUES = {bytes([number]): b"the north %d " % number * 20 for number in range(150)}

STATEMENTS = [
    "DROP TABLE entries",
    "DROP TABLE claims",
    "ALTER TABLE entries RENAME COLUMN value TO valu",
    "ALTER TABLE claims ADD COLUMN more",
    "UPDATE entries SET value = 'text'",
    "UPDATE entries SET day = 'text'",
    "UPDATE entries SET value = (SELECT value FROM entries WHERE rowid = 1)",
    "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END",
    "DROP INDEX by_day",
    "DELETE FROM entries",
]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store_module, "_BUSY", 1.0)
    made = tmp_path / "cache.sqlite"
    store = Store(made, LIMIT)
    store.put(VALUES)
    store.close()
    return made


def damaged(content: bytes, draws: random.Random) -> tuple[str, bytes]:
    """Return a kind of damage, and a file that has it."""
    changed = bytearray(content)
    kind = draws.choice(("bit", "bytes", "head", "cut", "zeros", "noise", "longer"))
    at = draws.randrange(len(content))
    if kind == "bit":
        changed[at] ^= 1 << draws.randrange(8)
    elif kind == "bytes":
        for _ in range(50):
            changed[draws.randrange(len(content))] = draws.randrange(256)
    elif kind == "head":
        at = draws.randrange(4096)
        changed[at : at + 8] = draws.randbytes(8)
    elif kind == "cut":
        del changed[at:]
    elif kind == "zeros":
        changed[at : at + 5000] = bytes(len(changed[at : at + 5000]))
    elif kind == "noise":
        changed = bytearray(draws.randbytes(3000))
    else:
        changed += draws.randbytes(5000)
    return kind, bytes(changed)


def used(path: Path) -> list[str]:
    """Do all that a run does with a store, and return what it had to say."""
    store = Store(path, LIMIT)
    found = store.get(list(VALUES))
    assert all(VALUES[key] == value for key, value in found.items()), "a wrong prediction"
    store.claim("run", "me", [b"new"])
    store.put({b"new": b"value"}, owner="me")
    store.release("run", "me")
    assert store.get([b"new"]) in ({b"new": b"value"}, {})
    store.close()
    return store.problems


@pytest.mark.parametrize("block", range(4))
def test_no_damage_ends_a_run_or_gives_a_wrong_prediction(path: Path, block: int) -> None:
    good = path.read_bytes()
    for seed in range(25 * block, 25 * block + 25):
        for left in path.parent.iterdir():
            left.unlink()
        kind, content = damaged(good, random.Random(seed))
        path.write_bytes(content)
        notes = used(path)
        assert len(notes) <= 1, (seed, kind, notes)
        if notes and "was renamed" in notes[0]:
            assert used(path) == [], (seed, kind)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_tables_that_are_others_are_replaced(path: Path, statement: str) -> None:
    base = sqlite3.connect(path)
    base.execute(statement)
    base.commit()
    base.close()
    notes = used(path)
    assert len(notes) <= 1
    assert all("a new one was started" in note for note in notes)
    assert used(path) == []
    again = Store(path, LIMIT)
    assert again.get([b"new"]) == {b"new": b"value"}
    again.close()


def test_a_log_of_something_else_beside_it_is_no_trouble(path: Path) -> None:
    draws = random.Random(0)
    for suffix, size in (("-wal", 40_000), ("-shm", 32_768)):
        path.with_name(path.name + suffix).write_bytes(draws.randbytes(size))
    assert len(used(path)) <= 1
    assert used(path) == []


def test_a_file_that_somebody_keeps_locked_is_done_without(path: Path) -> None:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    (note,) = used(path)
    assert note.endswith("(database is locked)")
    base.execute("ROLLBACK")
    base.close()
    assert used(path) == []


CLAIMS = """
import sys, time
from pathlib import Path
from pytest_dstfuzz.campaign.cache import Store
store = Store(Path(sys.argv[1]), 10_000_000)
print(len(store.claim("run", "other", [b"one", b"two"])), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
def test_what_a_process_had_claimed_is_free_once_it_is_dead(path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", CLAIMS, str(path)], stdout=subprocess.PIPE, text=True
    )
    store = Store(path, LIMIT)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "2\n"
        # As long as it lives, however quiet it is.
        other.send_signal(signal.SIGSTOP)
        assert store.claim("run", "me", [b"one", b"three"]) == {b"three"}
        other.kill()
        # Nobody has waited for it yet: its number is taken still, but its lock is not.
        end, wanted = time.monotonic() + 20, {b"one", b"two", b"three"}
        while store.claim("run", "me", sorted(wanted)) != wanted:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        other.kill()
        other.communicate()
        store.close()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["cache.sqlite"]


def test_who_shows_nothing_may_be_alive(path: Path) -> None:
    assert not is_dead(path, "nobody")
